"""Individuals with all that ontology and graph say of them, and what a snapshot has of them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.errors import InputError
from kpyramid.numerics.arrays import Integers
from kpyramid.ontology.names import ENTITY
from kpyramid.snapshot.adjacency import Adjacency
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.mapped import to_mask
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import LITERAL
from kpyramid.snapshot.view import Statement as Said

_NEAR = 5


@dataclass(frozen=True, slots=True)
class Sentence:
    """A place that states something: characters `start` to `end` of a document.

    `marked`: from where to where in `text` the individual and its value are named.
    """

    source: str
    start: int
    end: int
    text: str
    marked: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """A class of an individual, or a value: its own, or with `of` one that it is, of another."""

    instance_id: str
    label: str
    value: str | None
    of: str | None
    confidence: float
    producer: str
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True, slots=True)
class Individual:
    """An individual, its classes and values, the surest first."""

    entity_id: str
    iri: str
    name: str
    surface_forms: tuple[str, ...]
    classes: tuple[Statement, ...]
    values: tuple[Statement, ...]
    value_of: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class EntityFact:
    """A fact of the graph as an entity has it; ids lead to its ends and to its sentences.

    `tail_id` is None where the object is a date, a number or a text. `qualifiers` say when, where
    and how it holds, as `time: 2019`; `support` is the number of documents that state it.
    """

    fact_id: str
    head_id: str
    head: str
    relation: str
    tail_id: str | None
    tail: str
    standard: str
    qualifiers: tuple[str, ...]
    confidence: float
    support: int
    evidence: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing with all that the pyramid says of it; `count`: of facts and denials."""

    individual: Individual
    type: str
    facts: tuple[EntityFact, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Members:
    """What a class or a property has: how many rows, and the first of them in words."""

    iri: str
    label: str
    kind: str
    count: int
    first: tuple[str, ...]


def find_individuals(name: str, snapshot: Snapshot) -> list[str]:
    """The ids of the individuals that a name, id or IRI means.

    Raises:
        InputError: there is none, or the scope hides all of it; gives the nearest names.
    """
    counts = {key: len(_list_rows(key, snapshot)) for key in _link(name, snapshot)}
    if any(counts.values()):
        return sorted((key for key in counts if counts[key]), key=lambda i: (-counts[i], i))
    raise InputError(
        f"snapshot {snapshot.id} has no individual, class or property {name!r}"
        f"{_name_nearest(name, snapshot)}"
    )


def describe_individual(entity_id: str, snapshot: Snapshot) -> Individual:
    """What the ontology says of an individual in sentences that the scope shows."""
    view = snapshot._view
    rows = _sort(map(view.read_instance, _list_rows(entity_id, snapshot)))
    stated = [(row, _state(row, entity_id, snapshot)) for row in rows]
    own = [pair for pair in stated if pair[1].of is None]
    entity = view.locate("entities", entity_id)
    return Individual(
        entity_id=entity_id,
        iri=ENTITY + entity_id,
        name=view.name_of(entity),
        surface_forms=view.forms_of(entity),
        classes=tuple(s for row, s in own if row["property_iri"] is None),
        values=tuple(s for row, s in own if row["property_iri"]),
        value_of=tuple(s for _, s in stated if s.of is not None),
    )


def list_members(name: str, snapshot: Snapshot, most: int) -> Members | None:
    """The first individuals of a class, or values of a property, of that label or IRI."""
    schema, wanted = snapshot.schema, join_words(name)
    labels = {p.iri: p.label for p in schema.properties}
    labels |= {c.iri: c.label for c in schema.classes}
    found = [i for i, label in labels.items() if name == i or wanted == join_words(label)]
    if not found:
        return None
    iri = min(found)
    if iri in schema.class_by_iri:
        below = [c.iri for c in schema.classes if schema.is_subclass(c.iri, iri)]
        rows = _select("class_iri", below, snapshot)
        names = sorted({snapshot.names[row["subject_id"]] for row in rows})
        return Members(iri, labels[iri], "class", len(names), tuple(names[:most]))
    rows = _sort(_select("property_iri", [iri], snapshot))
    stated = (state_value(row["instance_id"], snapshot) for row in rows[:most])
    first = tuple(f"{subject} | {value}" for _, subject, _, _, _, value, _ in stated)
    return Members(iri, labels[iri], "property", len(rows), first)


def _list_rows(entity_id: str, snapshot: Snapshot) -> list[int]:
    """The rows of the statements that have an individual as an end."""
    about, naming = _list_stated([entity_id], snapshot)
    return [*about, *naming]


def _select(column: str, iris: Sequence[str], snapshot: Snapshot) -> list[dict[str, Any]]:
    """The rows of `instances` that are seen and have one of some values in a column."""
    view, wanted = snapshot._view, pa.array(iris, pa.string())
    held = to_mask(pc.is_in(view.rows("instances").column(column), wanted))
    return [*map(view.read_instance, view.select("instances", np.flatnonzero(held)))]


def _state(row: Mapping[str, Any], entity_id: str, snapshot: Snapshot) -> Statement:
    _, subject, _, label, _, value, _ = state_value(row["instance_id"], snapshot)
    is_class = row["property_iri"] is None
    return Statement(
        instance_id=row["instance_id"],
        label=value if is_class else label,
        value=None if is_class else value,
        of=None if row["subject_id"] == entity_id else subject,
        confidence=row["confidence"],
        producer=row["producer"],
        sentences=tuple(_quote(row, snapshot)),
    )


def _quote(row: Mapping[str, Any], snapshot: Snapshot) -> Iterator[Sentence]:
    """The sentences that the scope shows, the strongest first; only its words are marked."""
    shown = {(e.chunk_id, e.start, e.end): e for e in snapshot.evidence(row["instance_id"])}
    for place in ((p["chunk_id"], p["start"], p["end"]) for p in row["places"]):
        if (evidence := shown.get(place)) is None:
            continue
        is_strongest = place == (row["chunk_id"], row["start"], row["end"])
        spans = (row["subject_span"], row["object_span"]) if is_strongest else ()
        marked = sorted(
            (span["start"] - evidence.start, span["end"] - evidence.start) for span in spans if span
        )
        yield Sentence(evidence.source, evidence.start, evidence.end, evidence.text, tuple(marked))


def _sort(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The surest first."""
    return sorted(rows, key=lambda row: (-row["confidence"], row["instance_id"]))


_MOST_RANKED = 1_000
"""Facts of a thing that are ranked by their support."""


def find_entities(name: str, snapshot: Snapshot) -> list[str]:
    """The ids of the entities that a name, id or IRI means, those with most facts first.

    Raises:
        InputError: there is none, or the scope hides all of it; gives the nearest names.
    """
    graph = Adjacency(snapshot)
    rows = graph.locate(sorted(_link(name, snapshot)))
    if not rows:
        near = _name_nearest(name, snapshot)
        raise InputError(f"snapshot {snapshot.id} has nothing named {name!r}{near}")
    counts = graph.count_facts(np.array([*rows.values()])).tolist()
    return [key for _, key in sorted(zip(counts, rows, strict=True), key=lambda p: (-p[0], p[1]))]


def _link(name: str, snapshot: Snapshot) -> set[str]:
    """The ids of the entities that a name, id or IRI means."""
    key = name.removeprefix(ENTITY)
    is_id = snapshot._view.find("entities", key) is not None
    return {*((key,) if is_id else ()), *snapshot.entities_by_name().get(join_words(name), ())}


def _name_nearest(name: str, snapshot: Snapshot) -> str:
    names = snapshot.entities_by_name()
    near = get_close_matches(join_words(name), names, n=_NEAR, cutoff=0.5)
    stated = dict.fromkeys(snapshot.names[names[form][0]] for form in near)
    return f"; near: {', '.join(stated)}" if near else ""


def describe_entity(entity_id: str, snapshot: Snapshot, most: int) -> Entity:
    """What ontology and graph say of an entity: at most so many facts, the best supported first.

    After them at most so many that are denied.

    Raises:
        KeyError: the id is unknown, or the scope hides it.
    """
    facts, count = [], 0
    for denied in (False, True):
        keys = snapshot.facts_about([entity_id], denied=denied)
        count += len(keys)
        read = [snapshot.read_fact(key) for key in keys[:_MOST_RANKED]]
        facts += sorted(read, key=lambda f: (-f.support, -f.confidence, f.condensed_id))[:most]
    listed = tuple(
        EntityFact(
            fact.condensed_id,
            *(fact.head_id, fact.head, fact.relation, fact.tail_id, fact.tail),
            snapshot.standardise_condensed(fact.condensed_id),
            *(fact.qualifiers, fact.confidence, fact.support),
            tuple(snapshot.evidence(fact.condensed_id)),
        )
        for fact in facts
    )
    individual = describe_individual(entity_id, snapshot)
    return Entity(individual, snapshot.types[entity_id], listed, count)


def list_classes(entity_id: str, snapshot: Snapshot) -> tuple[str, ...]:
    """The IRIs of the classes that an individual is seen to be of, from the index alone."""
    stated = map(snapshot._view.read_instance, _list_stated([entity_id], snapshot)[0])
    return tuple(dict.fromkeys(r["class_iri"] for r in stated if r["property_iri"] is None))


def find_instances(
    facts: Collection[tuple[str, Any, Any]], snapshot: Snapshot
) -> list[dict[str, Any]]:
    """The rows of `instances` that state some facts: subject, property, object or literal.

    In key order. Entities are given by their ids; a property's inverse states its facts too.
    Without property and object a fact is that the subject is of a class.
    """
    inverse = {p.iri: p.inverse_of for p in snapshot.schema.properties if p.inverse_of}
    wanted = {*facts} | {(o, inverse[p], s) for s, p, o in facts if p in inverse}
    about, _ = _list_stated({subject for subject, _, _ in wanted}, snapshot)
    return [
        row
        for row in map(snapshot._view.read_instance, about)
        if (row["subject_id"], row["property_iri"], row["object_id"] or row["literal"]) in wanted
    ]


def list_instances(entity_ids: Collection[str], snapshot: Snapshot, most: int) -> list[str]:
    """The keys of at most `most` statements of properties: of some entities, then with them."""
    about, naming = _list_stated(entity_ids, snapshot)
    read = map(snapshot._view.read_instance, [*about, *naming])
    stated = (row["instance_id"] for row in read if row["property_iri"] is not None)
    return list(islice(stated, most))


def _list_stated(entity_ids: Collection[str], snapshot: Snapshot) -> tuple[list[int], list[int]]:
    """The rows of the statements about some entities, and of those whose value one of them is."""
    view = snapshot._view
    listed = view.rows("entities").list_of
    rows = view.find_all("entities", entity_ids).values()
    # Arrays throughout: a country is the value of a tenth of all statements.
    none = np.zeros(0, np.int64)
    found = np.unique(np.concatenate([none, *(listed("instances", row) for row in rows)]))
    subjects = view.rows("instances").column("subject_id").take(pa.array(found))
    own = to_mask(pc.is_in(subjects, pa.array(sorted(entity_ids), pa.string())))
    return view.select("instances", found[own]), view.select("instances", found[~own])


def state_value(instance_id: str, snapshot: Snapshot) -> Said:
    """Id, name and type of an individual, label of its property, and those of its value.

    A membership has the label `is a` and the class's label as a literal value.

    Raises:
        KeyError: the id is unknown.
    """
    view, schema = snapshot._view, snapshot.schema
    row = view.rows("instances").read(view.locate("instances", instance_id))

    def state_entity(key: str) -> tuple[str, str, str]:
        at = view.rows("entities").find(key)
        if at is None:
            raise KeyError(key)
        return view.state_entity(at)

    subject = state_entity(row["subject_id"])
    if row["property_iri"] is None:
        return *subject, "is a", None, schema.class_by_iri[row["class_iri"]].label, LITERAL
    label = schema.property_by_iri[row["property_iri"]].label
    if row["object_id"] is None:
        return *subject, label, None, row["literal"], LITERAL
    return *subject, label, *state_entity(row["object_id"])


# What there is: classes and properties with their members, and what has most facts.

_COUNTED = ("documents", "chunks", "entities", "condensed", "instances")


@dataclass(frozen=True, slots=True)
class ClassCount:
    """A class of the ontology; `count`: individuals that are stated to be of it itself."""

    iri: str
    label: str
    comment: str
    parents: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class PropertyCount:
    """A property of the ontology and the number of its values; domain and range are IRIs."""

    iri: str
    label: str
    comment: str
    domain: str
    range: str
    count: int


@dataclass(frozen=True, slots=True)
class Thing:
    """An entity with the number of its facts."""

    id: str
    name: str
    type: str
    facts: int


@dataclass(frozen=True, slots=True)
class Overview:
    """What of a snapshot its reader sees; the things with most facts first."""

    snapshot: str
    counts: dict[str, int]
    classes: tuple[ClassCount, ...]
    properties: tuple[PropertyCount, ...]
    things: tuple[Thing, ...]


def summarise_snapshot(snapshot: Snapshot, most: int = 20) -> Overview:
    """The overview of what is seen of a snapshot, with at most so many things."""
    view, schema = snapshot._view, snapshot.schema
    instances = view.rows("instances")
    seen = view.select("instances", range(len(instances.keys)))
    counts: Counter[str] = Counter()
    if seen:
        classes, properties = (
            instances.column(name).take(seen).to_pylist() for name in ("class_iri", "property_iri")
        )
        counts.update(p or c for c, p in zip(classes, properties, strict=True))
    return Overview(
        snapshot.id,
        {name: snapshot.count(name) for name in _COUNTED},
        tuple(
            ClassCount(c.iri, c.label, c.comment, c.parents, counts[c.iri]) for c in schema.classes
        ),
        tuple(
            PropertyCount(p.iri, p.label, p.comment, p.domain, p.range, counts[p.iri])
            for p in schema.properties
        ),
        tuple(_rank_things(snapshot, most)),
    )


def _rank_things(snapshot: Snapshot, most: int) -> list[Thing]:
    view = snapshot._view
    facts, mask = view.rows("condensed"), view.mask("condensed")
    plain = view.plain if mask is None else view.plain & mask
    ends: Integers = np.concatenate([facts.numbers(end)[plain] for end in ("head", "tail")])
    counts = np.bincount(ends[ends >= 0], minlength=len(view.rows("entities").keys))
    order = np.argsort(-counts, kind="stable")[:most]
    return [
        Thing(*view.state_entity(int(row)), int(counts[row])) for row in order if counts[row] > 0
    ]
