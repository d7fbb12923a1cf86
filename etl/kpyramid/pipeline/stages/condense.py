"""Condense: equivalent facts become one, and a broader one is absorbed (PolyRAG §III-C).

Broader facts are absorbed only around the ontology's anchors, where a model may be asked as well.
Every triple stands in the `derived_from` of exactly one condensed fact. Contradictions are
reported, and their facts stay.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import partial
from itertools import compress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.condensation.condenser import Condenser, list_neighbourhoods, merge_agreed
from kpyramid.condensation.contradictions import Contradiction, find_contradictions
from kpyramid.condensation.detail import group_details, link_details
from kpyramid.condensation.graph import Graph, Statement, unfold_nouns
from kpyramid.condensation.merging import (
    Condensation,
    Linked,
    condense_graph,
    guard_comparer,
    link_facts,
    list_compared,
)
from kpyramid.condensation.standard import Standard, keep_names, name_relations
from kpyramid.condensation.statements import Group, Summariser, Summary
from kpyramid.documents.qualifiers import CORRECTED, WHEREABOUTS, unite_qualifiers
from kpyramid.documents.validity import date_fact, list_times
from kpyramid.documents.words import normalise_relation, word_relation
from kpyramid.embeddings.port import Embedder
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.graph.synonyms.lexicon import find_kind
from kpyramid.keys import content_id
from kpyramid.llm.caller import Loss
from kpyramid.numerics.arrays import Integers
from kpyramid.ontology.proposals import adopt_proposals, name_by_wording
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.pipeline.stages.instances import index_phrases
from kpyramid.pipeline.stages.tables import build_rejects, build_vectors, make_reject, state_facts
from kpyramid.settings import CondenseSettings
from kpyramid.storage.columns import BLOCK, TextColumn
from kpyramid.storage.contracts import find_rows, load_contracts, map_column
from kpyramid.storage.former import Former


def run(
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
    proposals: pa.Table,
    chunks: pa.Table,
    raw_triples: pa.Table,
    *,
    former: Former | None,
    settings: CondenseSettings,
    schema: Schema,
    embedder: Embedder,
    condenser: Condenser | None,
    summariser: Summariser | None,
) -> dict[str, pa.Table]:
    """`condensed` with its `vectors`, `contradictions`, a model's `statements`, and `rejects`.

    Rejects are pairs that a model left open, and refused statements of a model. Facts that stood
    for others in the `former` snapshot still do, under the former name of their relation.

    Raises:
        InputError: the embedding of a wording is not finite.
    """
    schema = adopt_proposals(schema, map(name_by_wording, proposals.to_pylist()))
    comparer = Comparer(embedder)
    sources = list_sources(triples, raw_triples, chunks)
    condensed, contradictions, losses = _condense(
        *(entities, relations, triples, sources, former),
        *(settings, schema, embedder, comparer, condenser),
    )
    texts = state_facts(entities, relations, condensed)
    summaries: list[Summary] = []
    refused: list[Loss] = []
    # What waits for an answer may still merge facts: they are not paid for before.
    if summariser and (summariser.foresees or not any(loss.reason in _WAITING for loss in losses)):
        groups = _group_facts(condensed, contradictions, entities, relations, schema, comparer)
        summaries, refused = summariser.summarise(groups)
    return {
        "condensed": condensed,
        "contradictions": contradictions,
        "vectors": build_vectors("condensed", condensed["condensed_id"], texts, embedder),
        "statements": _build_statements(summaries),
        "rejects": build_rejects(
            make_reject("condense", loss.reason, loss.key, loss.detail)
            for loss in (*losses, *refused)
        ),
    }


_WAITING = frozenset({"llm_pending", "llm_deferred"})


def _condense(
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
    sources: Sequence[frozenset[int]],
    former: Former | None,
    settings: CondenseSettings,
    schema: Schema,
    embedder: Embedder,
    comparer: Comparer,
    condenser: Condenser | None,
) -> tuple[pa.Table, pa.Table, Sequence[Loss]]:
    """The tables `condensed` and `contradictions`, and the pairs that a model left open."""
    graph = unfold_nouns(read_graph(entities, relations, triples))
    linked = link_facts(graph, schema, settings, embedder)
    near = {row for rows in group_details(graph, range(len(graph))) for row in rows}
    comparer.prepare(
        list_compared(graph) | {graph.wordings[r] for r in graph.relations[sorted(near)].tolist()}
    )
    stated = find_stated(graph, schema)
    compare = guard_comparer(comparer)
    keys = _key_facts(triples)
    had = _find_former(keys, former) if former else {}
    made = condense_graph(graph, linked, stated, schema, compare, had)
    losses: tuple[Loss, ...] = ()
    if condenser is not None:
        ids = triples["triple_id"].to_pylist()
        asked = list_neighbourhoods(graph, made, ids, schema)
        answer = condenser.condense(asked, partial(_bars, comparer))
        merge_agreed(made, ids, answer.merged)
        losses = answer.losses
    standards = name_relations(graph, linked, schema, comparer)
    if former is not None:
        known = parse_schema(former.read_schema(), source="the last snapshot")
        standards = keep_names(standards, had, schema, known)
    conflicts = find_contradictions(graph, made, stated, standards, schema, sources)
    held = _unite_qualifiers(triples, made)
    qualified = {
        row: frozenset(pair for pair in pairs if pair[0] not in WHEREABOUTS)
        for row, pairs in held.items()
    }
    details = link_details(graph, made, qualified, comparer, compare)
    condensed = _build_condensed(
        triples, entities, graph, made, linked, standards, keys, held, details
    )
    return condensed, _build_contradictions(conflicts, keys), losses


def _group_facts(
    condensed: pa.Table,
    contradictions: pa.Table,
    entities: pa.Table,
    relations: pa.Table,
    schema: Schema,
    comparer: Comparer,
) -> list[Group]:
    """The facts of each subject near each anchor, in groups of two and more.

    Denied, possible and contradicted facts are left out: a sentence that joins their words with
    others could state what none of them does.
    """
    name = map_column(entities, "entity_id", "name")
    verb = map_column(relations, "relation_id", "name")
    doubtful = pc.is_in(
        condensed["condensed_id"], value_set=pc.list_flatten(contradictions["condensed_ids"])
    )
    plain = pc.invert(pc.or_(doubtful, condensed["negated"]))
    asked = condensed.filter(pc.and_(pc.is_valid(condensed["anchor"]), plain))
    held: dict[tuple[str, str], list[Statement]] = defaultdict(list)
    for row in asked.to_pylist():
        wording = verb[row["relation_id"]]
        read = comparer.read(wording)
        if not (read.modal or read.negated):
            tail = name[row["tail_id"]] if row["tail_id"] else row["literal"]
            qualifiers = tuple(pair for pair in row["qualifiers"] if pair[0] not in WHEREABOUTS)
            fact = Statement(row["condensed_id"], name[row["head_id"]], wording, tail, qualifiers)
            held[row["head_id"], row["anchor"]].append(fact)
    return [
        Group(head, anchor, schema.property_by_iri[anchor].label, tuple(facts))
        for (head, anchor), facts in sorted(held.items())
        if len(facts) > 1
    ]


def _build_statements(made: Sequence[Summary]) -> pa.Table:
    return load_contracts()["statements"].build(
        {
            "statement_id": content_id("statement", s.group.head_id, s.group.anchor, *s.keys),
            "head_id": s.group.head_id,
            "anchor": s.group.anchor,
            "text": s.text,
            "condensed_ids": list(s.keys),
        }
        for s in made
    )


def find_stated(graph: Graph, schema: Schema) -> Mapping[str, Set[str]]:
    """By wording, the properties whose labels it states."""
    index = index_phrases(schema.properties)
    keys = ((wording, normalise_relation(wording).key) for wording in graph.wordings)
    return {
        wording: frozenset(prop.iri for prop in index[key]) for wording, key in keys if key in index
    }


def _bars(comparer: Comparer, left: Statement, right: Statement) -> bool:
    """Whether two facts cannot be equivalent, whatever a model's verdict.

    Only one is possible or denied, or they are contrary, or equal words stand in reverse.
    """
    first, second = comparer.read(left.relation), comparer.read(right.relation)
    verdict = comparer.compare(left.relation, right.relation)
    turned = left.head != right.head
    return (
        (first.modal, first.negated) != (second.modal, second.negated)
        or verdict.likeness == "contrary"
        or (verdict.likeness != "different" and not verdict.symmetric and verdict.turned != turned)
    )


_STATED = ("head_id", "relation_id", "tail_id", "literal", "negated")
_TAKEN = (*_STATED, "modality")
"""Columns that a condensed fact takes from its triple."""


def _find_former(keys: pa.ChunkedArray, former: Former) -> dict[int, Standard]:
    """The rows of facts that stood for others before, each with its standard relation."""
    known = former.read("condensed", ("condensed_id", "standard_relation", "standard_turned"))
    matches = find_rows(keys, known["condensed_id"])
    _, *standards = known.take(pa.array(matches[matches >= 0])).to_pydict().values()
    rows = np.flatnonzero(matches >= 0).tolist()
    return dict(zip(rows, map(Standard, *standards), strict=True))


def _key_facts(triples: pa.Table) -> pa.ChunkedArray:
    """The keys of facts as condensed ones: hashes of their content."""
    keys = []
    for start in range(0, len(triples), BLOCK):
        block = triples.select(_STATED).slice(start, BLOCK)
        block_keys = [
            content_id(
                "condensed", *(part or "" for part in parts), *(["negated"] if denied else [])
            )
            for *parts, denied in zip(*block.to_pydict().values(), strict=True)
        ]
        keys.append(pa.array(block_keys, pa.string()))
    return pa.chunked_array(keys, pa.string())


def _build_condensed(
    triples: pa.Table,
    entities: pa.Table,
    graph: Graph,
    made: Condensation,
    linked: Linked,
    standards: Sequence[Standard],
    keys: pa.ChunkedArray,
    qualifiers: Mapping[int, Sequence[tuple[str, str]]],
    details: Mapping[int, int],
) -> pa.Table:
    rows = np.unique(made.stands)
    rows = rows[pc.sort_indices(keys.take(rows))]  # as the contract orders: sorting would copy it
    wider = np.array([details.get(row, -1) for row in rows.tolist()], dtype=np.int64)
    order = np.argsort(made.stands, kind="stable")
    stands = made.stands[order]
    starts, ends = (np.searchsorted(stands, rows, side) for side in ("left", "right"))
    offsets = np.append(0, np.cumsum(ends - starts)).astype(np.int32)
    order = order[np.arange(len(order)) + np.repeat(starts - offsets[:-1], ends - starts)]
    called = [standards[row] for row in rows.tolist()]
    turned = np.array([standard.turned for standard in called], dtype=np.bool_)
    heads, tails = graph.heads[rows], graph.tails[rows]
    turned &= tails >= 0  # a value is no subject
    subjects, objects = np.where(turned, tails, heads), np.where(turned, heads, tails)
    held = entities["entity_id"].combine_chunks()
    held_by = [qualifiers.get(row, ()) for row in rows.tolist()]
    stated = (word_relation(graph.tell(row)[1], row in graph.denied) for row in rows.tolist())
    valid = [*map(date_fact, held_by, stated)]
    nearest = [anchors[0] if (anchors := linked.of(row)) else None for row in rows.tolist()]
    ids = triples["triple_id"].combine_chunks().take(pa.array(order))
    columns = {
        **{name: triples[name].take(pa.array(rows)) for name in _TAKEN},
        "condensed_id": keys.take(rows),
        "qualifiers": held_by,
        "valid_from": [first for first, _ in valid],
        "valid_to": [last for _, last in valid],
        "standard_relation": pa.array([standard.name for standard in called], pa.string()),
        "standard_turned": pa.array(turned),
        "standard_head_id": held.take(pa.array(subjects)),
        "standard_tail_id": held.take(pa.array(objects, mask=objects < 0)),
        "more_detailed_id": keys.take(pa.array(wider, mask=wider < 0)),
        "anchor": pa.array([a and a.property_iri for a in nearest], pa.string()),
        "anchor_class": pa.array([a and a.class_iri for a in nearest], pa.string()),
        "derived_from": pa.ListArray.from_arrays(pa.array(offsets), ids),
        "how": pa.ListArray.from_arrays(pa.array(offsets), pa.array(made.how[order], pa.string())),
    }
    return load_contracts()["condensed"].fill(columns)


def _unite_qualifiers(triples: pa.Table, made: Condensation) -> dict[int, list[tuple[str, str]]]:
    """The qualifiers of condensed facts, from the triples that are not broader."""
    qualifiers: dict[int, list[tuple[str, str]]] = defaultdict(list)
    for row, pairs in enumerate(triples["qualifiers"].to_pylist()):
        if pairs and made.how[row] != "broader":
            qualifiers[int(made.stands[row])] += pairs
    return {row: unite_qualifiers(pairs) for row, pairs in qualifiers.items()}


def _build_contradictions(contradictions: list[Contradiction], keys: pa.ChunkedArray) -> pa.Table:
    ids = [sorted(keys.take(pa.array(c.rows, pa.int64())).to_pylist()) for c in contradictions]
    return load_contracts()["contradictions"].build(
        {
            "contradiction_id": content_id("contradiction", c.kind, c.anchor, *facts),
            "kind": c.kind,
            "anchor": c.anchor,
            "condensed_ids": facts,
            "detail": c.detail,
        }
        for c, facts in zip(contradictions, ids, strict=True)
    )


_FEW = 1 << 18
"""Names that are strings, 25 MB: they are read one by one."""


def read_graph(entities: pa.Table, relations: pa.Table, triples: pa.Table) -> Graph:
    """The three tables as columns."""
    held = {row: pairs for row, pairs in enumerate(triples["qualifiers"].to_pylist()) if pairs}
    literals = triples["literal"].combine_chunks().dictionary_encode()
    codes = literals.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    names = TextColumn(entities["name"])
    return Graph(
        heads=find_rows(triples["head_id"], entities["entity_id"]),
        relations=find_rows(triples["relation_id"], relations["relation_id"]),
        tails=find_rows(triples["tail_id"], entities["entity_id"]),
        literals=codes.astype(np.int64),
        texts=literals.dictionary.to_pylist(),
        names=[*names] if len(names) <= _FEW else names,
        types=list(map(find_kind, entities["name"].to_pylist(), entities["type"].to_pylist())),
        wordings=relations["name"].to_pylist(),
        support=relations["support"].to_pylist(),
        qualifiers={row: frozenset(pairs) for row, pairs in held.items()},
        times={row: times for row, pairs in held.items() if (times := tuple(list_times(pairs)))},
        denied=np.flatnonzero(triples["negated"].to_numpy()).tolist(),
        corrected=[row for row, pairs in held.items() if any(r == CORRECTED for r, _ in pairs)],
    )


def list_sources(
    triples: pa.Table, raw_triples: pa.Table, chunks: pa.Table
) -> list[frozenset[int]]:
    """The numbers of the documents that state each triple."""
    owners = chunks["document_id"].combine_chunks().dictionary_encode().indices
    numbers = owners.to_numpy()[find_rows(raw_triples["chunk_id"], chunks["chunk_id"])]
    places = find_rows(pc.list_flatten(triples["raw_triple_ids"]), raw_triples["raw_triple_id"])
    ends = np.cumsum(pc.list_value_length(triples["raw_triple_ids"]).to_numpy())[:-1]
    return [frozenset(documents.tolist()) for documents in np.split(numbers[places], ends)]


def read_derivations(triples: pa.Table, condensed: pa.Table) -> tuple[Integers, list[str]]:
    """For each triple the row of its condensed fact (-1 unless it has exactly one), and why."""
    place = find_rows(pc.list_flatten(condensed["derived_from"]), triples["triple_id"])
    rows = pc.list_parent_indices(condensed["derived_from"]).to_numpy()
    reasons = pc.list_flatten(condensed["how"]).to_pylist()
    known = place >= 0  # another gate reports triples that are nowhere
    place, rows = place[known], rows[known]
    stands = np.full(triples.num_rows, -1, dtype=np.int64)
    stands[place] = rows
    stands[np.bincount(place, minlength=triples.num_rows) != 1] = -1
    how = ["none"] * triples.num_rows
    for triple, why in zip(place.tolist(), compress(reasons, known.tolist()), strict=True):
        how[triple] = why
    return stands, how
