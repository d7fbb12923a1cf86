"""Individuals with the statements of ontology and graph about them, and overviews of a snapshot."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any, NoReturn

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

_NEAR = 5


@dataclass(frozen=True, slots=True)
class Statement:
    """A class of an individual, or a value: its own, or with `of` one that it is, of another."""

    instance_id: str
    label: str
    value: str | None
    of: str | None
    confidence: float
    producer: str
    sentences: tuple[Evidence, ...]


@dataclass(frozen=True, slots=True)
class Individual:
    """An individual, its classes and values, by falling confidence."""

    entity_id: str
    iri: str
    name: str
    surface_forms: tuple[str, ...]
    classes: tuple[Statement, ...]
    values: tuple[Statement, ...]
    value_of: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class EntityFact:
    """A fact of the graph about an entity, with ids of its ends, and its sentences.

    `tail_id` is None where the object is a date, a number or a text. `qualifiers`: when, where and
    how it holds, as `time: 2019`; `support`: number of documents that state it.
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
    """A thing with the pyramid's statements about it; `count`: of facts and denials."""

    individual: Individual
    type: str
    facts: tuple[EntityFact, ...]
    count: int


@dataclass(frozen=True, slots=True)
class Members:
    """The members of a class or the values of a property: their number, and the first in words."""

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
    counts = {key: len(list_stated([key], snapshot)) for key in _link(name, snapshot)}
    if not any(counts.values()):
        _refuse("individual, class or property", name, snapshot)
    return sorted((key for key in counts if counts[key]), key=lambda i: (-counts[i], i))


def describe_individual(entity_id: str, snapshot: Snapshot) -> Individual:
    """The ontology's statements about an individual, with sentences that the scope shows."""
    view = snapshot._view
    rows = _sort(map(view.read_instance, list_stated([entity_id], snapshot)))
    stated = [(row, _state(row, entity_id, snapshot)) for row in rows]
    direct = [pair for pair in stated if pair[1].of is None]
    entity = view.locate("entities", entity_id)
    return Individual(
        entity_id=entity_id,
        iri=ENTITY + entity_id,
        name=view.name_of(entity),
        surface_forms=view.forms_of(entity),
        classes=tuple(s for row, s in direct if row["property_iri"] is None),
        values=tuple(s for row, s in direct if row["property_iri"]),
        value_of=tuple(s for _, s in stated if s.of is not None),
    )


def list_members(name: str, snapshot: Snapshot, most: int) -> Members | None:
    """The first individuals of the class, or values of the property, with a label or IRI."""
    view, schema, wanted = snapshot._view, snapshot.schema, join_words(name)
    labels = {p.iri: p.label for p in schema.properties}
    labels |= {c.iri: c.label for c in schema.classes}
    iris = [i for i, label in labels.items() if name == i or wanted == join_words(label)]
    if not iris:
        return None
    iri = min(iris)
    is_class = iri in schema.class_by_iri
    column = "class_iri" if is_class else "property_iri"
    below = [c.iri for c in schema.classes if schema.is_subclass(c.iri, iri)] if is_class else [iri]
    held = pc.is_in(view.rows("instances").column(column), pa.array(below, pa.string()))
    rows = _sort(map(view.read_instance, view.select("instances", np.flatnonzero(to_mask(held)))))
    if is_class:
        names = sorted({snapshot.names[row["subject_id"]] for row in rows})
        return Members(iri, labels[iri], "class", len(names), tuple(names[:most]))
    facts = [snapshot.read_fact(row["instance_id"]) for row in rows[:most]]
    first = tuple(f"{fact.head} | {fact.tail}" for fact in facts)
    return Members(iri, labels[iri], "property", len(rows), first)


def _state(row: Mapping[str, Any], entity_id: str, snapshot: Snapshot) -> Statement:
    fact, is_class = snapshot.read_fact(row["instance_id"]), row["property_iri"] is None
    return Statement(
        instance_id=fact.condensed_id,
        label=fact.tail if is_class else fact.relation,
        value=None if is_class else fact.tail,
        of=None if fact.head_id == entity_id else fact.head,
        confidence=row["confidence"],
        producer=row["producer"],
        sentences=tuple(snapshot.evidence(fact.condensed_id)),
    )


def _sort(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows by falling confidence."""
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
        _refuse("thing", name, snapshot)
    counts = graph.count_facts(np.array([*rows.values()])).tolist()
    return [key for _, key in sorted(zip(counts, rows, strict=True), key=lambda p: (-p[0], p[1]))]


def _link(name: str, snapshot: Snapshot) -> set[str]:
    """The ids of the entities that a name, id or IRI means."""
    key = name.removeprefix(ENTITY)
    is_id = snapshot._view.find("entities", key) is not None
    return {*((key,) if is_id else ()), *snapshot.entities_by_name().get(join_words(name), ())}


def _refuse(what: str, name: str, snapshot: Snapshot) -> NoReturn:
    names = snapshot.entities_by_name()
    near = get_close_matches(join_words(name), names, n=_NEAR, cutoff=0.5)
    stated = dict.fromkeys(snapshot.names[names[form][0]] for form in near)
    listed = f"; near: {', '.join(stated)}" if near else ""
    raise InputError(f"snapshot {snapshot.id} has no {what} {name!r}{listed}")


def describe_entity(entity_id: str, snapshot: Snapshot, most: int) -> Entity:
    """The statements about an entity, with at most `most` facts, the best supported first.

    At most `most` denied facts follow.

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
    rows = map(snapshot._view.read_instance, list_stated([entity_id], snapshot, alone=True))
    return tuple(dict.fromkeys(r["class_iri"] for r in rows if r["property_iri"] is None))


def find_instances(
    facts: Collection[tuple[str, Any, Any]], snapshot: Snapshot
) -> list[dict[str, Any]]:
    """The rows of `instances` that state some facts: subject, property, object or literal.

    In key order. Entities are given by their ids; a property's inverse states its facts too.
    Without property and object a fact is that the subject is of a class.
    """
    inverse = {p.iri: p.inverse_of for p in snapshot.schema.properties if p.inverse_of}
    wanted = {*facts} | {(o, inverse[p], s) for s, p, o in facts if p in inverse}
    about = list_stated({subject for subject, _, _ in wanted}, snapshot, alone=True)
    return [
        row
        for row in map(snapshot._view.read_instance, about)
        if (row["subject_id"], row["property_iri"], row["object_id"] or row["literal"]) in wanted
    ]


def list_instances(entity_ids: Collection[str], snapshot: Snapshot, most: int) -> list[str]:
    """The keys of up to `most` statements of properties: about some entities, then with them."""
    rows = map(snapshot._view.read_instance, list_stated(entity_ids, snapshot))
    stated = (row["instance_id"] for row in rows if row["property_iri"] is not None)
    return list(islice(stated, most))


def list_stated(entities: Collection[str], snapshot: Snapshot, *, alone: bool = False) -> list[int]:
    """The rows of the statements about some entities, then of those with one of them as value.

    `alone`: only the former.
    """
    view = snapshot._view
    listed = view.rows("entities").list_of
    rows = view.find_all("entities", entities).values()
    # Arrays throughout: a country is the value of a tenth of all statements.
    none = np.zeros(0, np.int64)
    stated = np.unique(np.concatenate([none, *(listed("instances", row) for row in rows)]))
    subjects = view.rows("instances").column("subject_id").take(pa.array(stated))
    about = to_mask(pc.is_in(subjects, pa.array(sorted(entities), pa.string())))
    return view.select("instances", stated[about] if alone else [*stated[about], *stated[~about]])


# Overview: classes and properties with their members, and the things with most facts.

_COUNTED = ("documents", "chunks", "entities", "condensed", "instances")


@dataclass(frozen=True, slots=True)
class ClassCount:
    """A class of the ontology; `count`: individuals stated to be of it, without subclasses."""

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
    """The visible content of a snapshot; the things with most facts come first."""

    snapshot: str
    counts: dict[str, int]
    classes: tuple[ClassCount, ...]
    properties: tuple[PropertyCount, ...]
    things: tuple[Thing, ...]


def summarise_snapshot(snapshot: Snapshot, most: int = 20) -> Overview:
    """The overview of the visible part of a snapshot, with at most `most` things."""
    view, schema = snapshot._view, snapshot.schema
    instances = view.rows("instances")
    seen = view.select("instances")
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
