"""From facts of the graph to instances of the ontology; induce and complete share it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from kpyramid.contracts import map_column
from kpyramid.extraction.normal import normalise_relation
from kpyramid.keys import content_id
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import THING
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.stages.tables import Row, make_reject

_GUESSED = 0.7
"""Weight of a class that only the property's domain or range suggests."""


@dataclass(frozen=True, slots=True)
class NamedTriple:
    """A triple with its names looked up; `relation` is the normal form of its phrase."""

    triple_id: str
    head_id: str
    head: str
    head_type: str
    phrase: str
    relation: str
    tail_id: str | None
    tail: str
    tail_type: str
    confidence: float
    chunk_id: str
    start: int
    end: int


def list_facts(
    claims: pa.Table,
    raw_triples: pa.Table,
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
) -> list[NamedTriple]:
    """The triples in words, each with its strongest evidence, in the order of the table."""
    entity = {row["entity_id"]: row for row in entities.to_pylist()}
    phrase = map_column(relations, "relation_id", "name")
    spans = map_column(claims, "claim_id", "spans")
    raw = {row["raw_triple_id"]: row for row in raw_triples.to_pylist()}
    facts = []
    for row in triples.to_pylist():
        best = min(
            (raw[key] for key in row["raw_triple_ids"]),
            key=lambda r: (-r["confidence"], r["raw_triple_id"]),
        )
        start, end = _cover(best, spans[best["claim_id"]])
        head, tail = entity[row["head_id"]], entity.get(row["tail_id"])
        facts.append(
            NamedTriple(
                triple_id=row["triple_id"],
                head_id=row["head_id"],
                head=head["name"],
                head_type=head["type"],
                phrase=phrase[row["relation_id"]],
                relation=normalise_relation(phrase[row["relation_id"]]).key,
                tail_id=row["tail_id"],
                tail=tail["name"] if tail else row["literal"],
                tail_type=tail["type"] if tail else "LITERAL",
                confidence=row["confidence"],
                chunk_id=best["chunk_id"],
                start=start,
                end=end,
            )
        )
    return facts


def _cover(
    raw: Mapping[str, dict[str, int] | None], claim: list[dict[str, int]]
) -> tuple[int, int]:
    """From the first to the last word of a raw triple; the claim's first span where it has none."""
    spans = [s for part in ("head", "relation", "tail") if (s := raw[f"{part}_span"])]
    spans = spans or claim[:1]
    return min(s["start"] for s in spans), max(s["end"] for s in spans)


def index_phrases(properties: Iterable[OntologyProperty]) -> dict[str, list[OntologyProperty]]:
    """The properties that a relation's normal form may state."""
    index: dict[str, dict[str, OntologyProperty]] = defaultdict(dict)
    for prop in properties:
        for phrase in (prop.label, *prop.alt_labels):
            index[normalise_relation(phrase).key][prop.iri] = prop
    return {key: [found[iri] for iri in sorted(found)] for key, found in index.items()}


def induce_values(
    stage: str, facts: Iterable[NamedTriple], properties: Iterable[OntologyProperty], schema: Schema
) -> tuple[list[Row], list[Row]]:
    """Instances of the properties that facts state, and rejects.

    A fact whose phrase names a property either supports an instance of one of the properties of
    that phrase, or is a reject that says which of domain and range it fails. A second value of
    a functional property loses to the one with more confidence, then more support, then the
    smaller id.
    """
    index = index_phrases(properties)
    found: dict[str, tuple[Row, list[NamedTriple]]] = {}
    rejects: list[Row] = []
    for fact in facts:
        candidates = index.get(fact.relation, [])
        rows = [row for prop in candidates if (row := _make_value(fact, prop, schema))]
        for row in rows:
            found.setdefault(str(row["instance_id"]), (row, []))[1].append(fact)
        if candidates and not rows:
            names = ", ".join(prop.label for prop in candidates)
            detail = (
                f"{fact.head} ({fact.head_type}) | {fact.phrase} | {fact.tail} ({fact.tail_type}) "
                f"stays in the graph only: it fits domain and range of none of: {names}"
            )
            rejects.append(
                make_reject(
                    stage, "domain_or_range", fact.triple_id, detail, chunk_id=fact.chunk_id
                )
            )
    merged = [_merge_support(row, support) for row, support in found.values()]
    kept, lost = _settle_conflicts(stage, merged, schema)
    return kept, rejects + lost


def _make_value(fact: NamedTriple, prop: OntologyProperty, schema: Schema) -> Row | None:
    subject = fit_class(fact.head, fact.head_type, prop.domain, schema)
    if subject is None:
        return None
    class_iri, confidence = subject[0], subject[1] * fact.confidence
    subject_id, object_id, literal, datatype = fact.head_id, fact.tail_id, None, None
    if prop.is_datatype:
        object_id, datatype = None, prop.range
        literal = parse_literal(fact.tail, prop.range)
        if literal is None:
            return None
    else:
        value = fit_class(fact.tail, fact.tail_type, prop.range, schema)
        if value is None or object_id is None:
            return None
        confidence *= value[1]
        inverse = schema.property_by_iri.get(prop.inverse_of or "")
        if inverse is not None and inverse.iri < prop.iri:  # one direction, so one instance
            prop, class_iri = inverse, value[0]
            subject_id, object_id = object_id, subject_id
    key = [class_iri, prop.iri, subject_id, object_id or literal, datatype]
    return {
        "instance_id": content_id("instance", *key),
        "class_iri": class_iri,
        "property_iri": prop.iri,
        "subject_id": subject_id,
        "object_id": object_id,
        "literal": literal,
        "datatype": datatype,
        "confidence": confidence,
        "chunk_id": fact.chunk_id,
        "start": fact.start,
        "end": fact.end,
        "triple_ids": [],
    }


def fit_class(name: str, entity_type: str, wanted: str, schema: Schema) -> tuple[str, float] | None:
    """The class of an entity under a property's domain or range, and how sure that is.

    A name that the recogniser could not type takes the class that the property asks for, as
    rdfs:domain and rdfs:range entail, when it is written as a name; a common noun does not.
    """
    known = schema.class_for_type(entity_type)
    if known is not None and schema.is_subclass(known, wanted):
        return known, 1.0
    if entity_type == "NOUN" and name[:1].isupper() and wanted != THING:
        return wanted, _GUESSED
    return (wanted, 1.0) if wanted == THING else None


def _merge_support(row: Row, support: list[NamedTriple]) -> Row:
    """The instance with all its facts; its evidence is the strongest one's."""
    best = min(support, key=lambda fact: (-fact.confidence, fact.triple_id))
    return {
        **row,
        "chunk_id": best.chunk_id,
        "start": best.start,
        "end": best.end,
        "triple_ids": sorted({fact.triple_id for fact in support}),
    }


def _settle_conflicts(stage: str, rows: list[Row], schema: Schema) -> tuple[list[Row], list[Row]]:
    groups: dict[tuple[object, object], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["property_iri"], row["subject_id"]].append(row)
    kept: list[Row] = []
    lost: list[Row] = []
    for (iri, _), group in groups.items():
        if not schema.property_by_iri[str(iri)].is_functional:
            kept += group
            continue
        first, *others = sorted(group, key=_rank)
        kept.append(first)
        for row in others:
            detail = (
                f"{iri} is functional; kept {first['object_id'] or first['literal']}, "
                f"not {row['object_id'] or row['literal']}"
            )
            lost.append(
                make_reject(
                    stage,
                    "functional_conflict",
                    str(row["instance_id"]),
                    detail,
                    chunk_id=str(row["chunk_id"]),
                )
            )
    return kept, lost


def _rank(row: Row) -> tuple[float, int, str]:
    support = row["triple_ids"]
    count = len(support) if isinstance(support, list) else 0
    return -float(str(row["confidence"])), -count, str(row["instance_id"])


def make_membership(
    entity_id: str,
    class_iri: str,
    confidence: float,
    place: tuple[str, int, int],
    triple_ids: list[str],
) -> Row:
    """The instance that states the class of an individual."""
    return {
        "instance_id": content_id("instance", class_iri, None, entity_id, None, None),
        "class_iri": class_iri,
        "property_iri": None,
        "subject_id": entity_id,
        "object_id": None,
        "literal": None,
        "datatype": None,
        "confidence": confidence,
        "chunk_id": place[0],
        "start": place[1],
        "end": place[2],
        "triple_ids": triple_ids,
    }


def state_values(
    rows: Iterable[Row], schema: Schema, names: Mapping[str, str]
) -> tuple[list[str], list[str]]:
    """Ids and wordings, `subject property value`, of the instances that state a value."""
    valued = [row for row in rows if row["property_iri"] is not None]
    texts = [
        f"{names[str(row['subject_id'])]} "
        f"{schema.property_by_iri[str(row['property_iri'])].label} "
        f"{names[str(row['object_id'])] if row['object_id'] else row['literal']}"
        for row in valued
    ]
    return [str(row["instance_id"]) for row in valued], texts


def majority(counts: Counter[str]) -> tuple[str, float]:
    """The most frequent key, ties by alphabet, and its share; the counter must not be empty."""
    key = min(counts, key=lambda k: (-counts[k], k))
    return key, counts[key] / counts.total()
