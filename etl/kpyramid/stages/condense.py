"""Condense: facts around the ontology's anchors that say the same become one (PolyRAG §III-C).

The rule-made form of `f_con`. Nothing is dropped: every triple stands in the `derived_from` of
exactly one condensed triple, merged, linked to an anchor, or as it was.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from kpyramid.condensation.asking import Condenser
from kpyramid.contracts import map_column
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.extraction.normal import normalise_relation
from kpyramid.keys import content_id
from kpyramid.ontology.proposals import adopt_proposals
from kpyramid.ontology.schema import Schema
from kpyramid.settings import CondenseSettings
from kpyramid.stages.stated import index_phrases
from kpyramid.stages.tables import Row, build_rejects, build_table, build_vectors, state_facts

_Key = tuple[str, str, str, str]


def run(
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
    proposals: pa.Table,
    *,
    settings: CondenseSettings,
    schema: Schema,
    embedder: Embedder,
    condenser: Condenser | None,
) -> dict[str, pa.Table]:
    """`condensed` with `derived_from`, and its `vectors`."""
    schema = adopt_proposals(schema, proposals.to_pylist())
    rows = _turn_passives(triples.to_pylist(), relations)
    phrase = map_column(relations, "relation_id", "name")
    wordings = sorted(set(phrase.values()))
    vectors = embedder.embed(wordings)
    vector = {text: vectors[index] for index, text in enumerate(wordings)}
    anchor_of = _assign_anchors(rows, phrase, vector, entities, settings, schema, embedder)
    stated = index_phrases(schema.properties)
    forms = {key: normalise_relation(text) for key, text in phrase.items()}
    meaning = {key: tuple(p.iri for p in stated.get(form.key, ())) for key, form in forms.items()}
    groups: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in rows:
        anchor = anchor_of.get(_key(row))
        # What may be is never merged with what is.
        apart = forms[str(row["relation_id"])].modal if anchor else row["relation_id"]
        groups[row["head_id"], row["tail_id"], row["literal"], anchor, apart].append(row)
    support = map_column(relations, "relation_id", "support")
    condensed: list[Row] = []
    for place, group in groups.items():
        anchor = str(place[3]) if place[3] else None
        for same in _split_by_meaning(group, phrase, vector, meaning, settings.merge_similarity):
            condensed.append(_merge(same, anchor, support))
    table = build_table("condensed", condensed)
    texts = state_facts(entities, relations, table)
    ids = table["condensed_id"].to_pylist()
    return {
        "condensed": table,
        "vectors": build_vectors("condensed", ids, texts, embedder),
        "rejects": build_rejects(()),
    }


def _turn_passives(rows: Sequence[Row], relations: pa.Table) -> list[Row]:
    """The triples, those in the passive turned round when the graph has the active relation."""
    active = map_column(relations, "relation_id", "inverse_of")
    return [
        {
            **row,
            "head_id": row["tail_id"],
            "tail_id": row["head_id"],
            "relation_id": active[str(row["relation_id"])],
        }
        if active[str(row["relation_id"])] and row["tail_id"]
        else row
        for row in rows
    ]


def _assign_anchors(
    rows: Sequence[Row],
    phrase: Mapping[str, str],
    vector: Mapping[str, Matrix],
    entities: pa.Table,
    settings: CondenseSettings,
    schema: Schema,
    embedder: Embedder,
) -> dict[_Key, str]:
    """The nearest anchor of each triple that is among that anchor's nearest and near enough.

    A triple is near an anchor as its relation's wording is near the property's, and only where
    the class of its subject can have the property.
    """
    wordings = [(p.iri, text) for p in schema.properties for text in (p.label, *p.alt_labels)]
    used = sorted({phrase[str(row["relation_id"])] for row in rows})
    if not wordings or not used:
        return {}
    types = map_column(entities, "entity_id", "type")
    anchors = embedder.embed([text for _, text in wordings])
    cosines = np.stack([vector[text] for text in used]) @ anchors.T
    close: dict[str, dict[str, float]] = {text: {} for text in used}
    for row_index, column in np.argwhere(cosines >= settings.anchor_similarity).tolist():
        found, iri = close[used[row_index]], wordings[column][0]
        found[iri] = max(found.get(iri, -1.0), float(cosines[row_index, column]))
    near: dict[str, set[tuple[float, _Key]]] = defaultdict(set)
    for row in rows:
        class_iri = schema.class_for_type(types[row["head_id"]])
        for iri, cosine in close[phrase[str(row["relation_id"])]].items():
            domain = schema.property_by_iri[iri].domain
            if class_iri is None or schema.is_subclass(class_iri, domain):
                near[iri].add((-cosine, _key(row)))
    chosen: dict[_Key, tuple[float, str]] = {}
    for iri in sorted(near):
        for distance, key in sorted(near[iri])[: settings.neighbours]:
            if key not in chosen or distance < chosen[key][0]:
                chosen[key] = (distance, iri)
    return {key: iri for key, (_, iri) in chosen.items()}


def _key(row: Row) -> _Key:
    """What a fact says; an active triple and the passive one turned round share it."""
    return (
        str(row["head_id"]),
        str(row["relation_id"]),
        str(row["tail_id"] or ""),
        str(row["literal"] or ""),
    )


def _split_by_meaning(
    group: Sequence[Row],
    phrase: Mapping[str, str],
    vector: Mapping[str, Matrix],
    meaning: Mapping[str, tuple[str, ...]],
    similarity: float,
) -> list[list[Row]]:
    """Triples of one head, tail and anchor, apart unless their relations say the same.

    Two relations say the same when they state the same property of the ontology, or when
    neither states one and their wordings are near. Two that state different properties never
    do, however near they look: `was born in` and `died in`.
    """
    parts: list[list[Row]] = []
    for row in sorted(group, key=lambda r: str(r["triple_id"])):
        relation = str(row["relation_id"])
        for part in parts:
            other = str(part[0]["relation_id"])
            if relation == other or _is_same(
                meaning[relation],
                meaning[other],
                float(vector[phrase[relation]] @ vector[phrase[other]]),
                similarity,
            ):
                part.append(row)
                break
        else:
            parts.append([row])
    return parts


def _is_same(
    one: tuple[str, ...], other: tuple[str, ...], cosine: float, similarity: float
) -> bool:
    if one and other:
        return bool(set(one) & set(other))
    return cosine >= similarity


def _merge(group: Sequence[Row], anchor: str | None, support: Mapping[str, int]) -> Row:
    """One condensed triple for the group; its relation is the one with most support."""
    chosen = min(group, key=lambda r: (-support[str(r["relation_id"])], str(r["relation_id"])))
    return {
        "condensed_id": content_id("condensed", *_key(chosen)),
        "head_id": chosen["head_id"],
        "relation_id": chosen["relation_id"],
        "tail_id": chosen["tail_id"],
        "literal": chosen["literal"],
        "anchor": anchor,
        "derived_from": sorted(str(row["triple_id"]) for row in group),
    }
