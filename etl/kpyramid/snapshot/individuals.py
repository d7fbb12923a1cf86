"""An individual with all that the ontology says of it, and the sentences that say so."""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any

from kpyramid.errors import InputError
from kpyramid.ontology.names import ENTITY
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
class Members:
    """What a class or a property has: how many rows, and the first of them in words."""

    iri: str
    label: str
    kind: str
    count: int
    first: tuple[str, ...]


class Individuals:
    """Finds the individuals of a snapshot by name, id or IRI."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._rows: list[dict[str, Any]] = snapshot.table("instances").to_pylist()
        self._entities = {r["entity_id"]: r for r in snapshot.table("entities").to_pylist()}
        self._about: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in self._rows:
            for entity in {row["subject_id"], row["object_id"]} - {None}:
                self._about[entity].append(row)

    def find(self, name: str) -> list[str]:
        """The ids of the individuals that a name, id or IRI means.

        Raises:
            InputError: there is none, or the scope hides all of it; gives the nearest names.
        """
        key = name.removeprefix(ENTITY)
        if key in self._about:
            return [key]
        wanted = join_words(name)
        by_name: dict[str, set[str]] = defaultdict(set)
        for entity in self._about:
            for form in (self._entities[entity]["name"], *self._entities[entity]["surface_forms"]):
                by_name[join_words(form)].add(entity)
        if seen := by_name.pop(wanted, None):
            return sorted(seen, key=lambda i: (-len(self._about[i]), i))
        near = get_close_matches(wanted, [n for n in by_name if n], n=_NEAR, cutoff=0.5)
        names = [self._entities[min(by_name[form])]["name"] for form in near]
        advice = f"; near: {', '.join(dict.fromkeys(names))}" if names else ""
        raise InputError(
            f"snapshot {self._snapshot.id} has no individual, class or property {name!r}{advice}"
        )

    def describe(self, entity_id: str) -> Individual:
        """What the ontology says of an individual in sentences that the scope shows."""
        rows = sorted(self._about[entity_id], key=lambda r: (-r["confidence"], r["instance_id"]))
        own = [row for row in rows if row["subject_id"] == entity_id]
        entity = self._entities[entity_id]
        return Individual(
            entity_id=entity_id,
            iri=ENTITY + entity_id,
            name=entity["name"],
            surface_forms=tuple(entity["surface_forms"]),
            classes=tuple(self._state(r, None) for r in own if r["property_iri"] is None),
            values=tuple(self._state(r, None) for r in own if r["property_iri"]),
            value_of=tuple(
                self._state(r, self._snapshot.names[r["subject_id"]])
                for r in rows
                if r["subject_id"] != entity_id
            ),
        )

    def list_members(self, name: str, most: int) -> Members | None:
        """The first individuals of a class, or values of a property, of that label or IRI."""
        schema = self._snapshot.schema
        labels = {
            **{p.iri: p.label for p in schema.properties},
            **{c.iri: c.label for c in schema.classes},
        }
        found = [iri for iri, label in labels.items() if name == iri or _same(name, label)]
        if not found:
            return None
        iri = min(found)
        if iri in schema.class_by_iri:
            own = [
                r
                for r in self._rows
                if not r["property_iri"] and schema.is_subclass(r["class_iri"], iri)
            ]
            names = Counter(self._snapshot.names[r["subject_id"]] for r in own)
            first = tuple(sorted(names)[:most])
            return Members(iri, labels[iri], "class", len(names), first)
        rows = [r for r in self._rows if r["property_iri"] == iri]
        rows.sort(key=lambda r: (-r["confidence"], r["instance_id"]))
        first = tuple(
            f"{self._snapshot.names[r['subject_id']]} | {self._value(r)}" for r in rows[:most]
        )
        return Members(iri, labels[iri], "property", len(rows), first)

    def _state(self, row: Mapping[str, Any], of: str | None) -> Statement:
        schema = self._snapshot.schema
        iri = row["property_iri"]
        label = (
            schema.property_by_iri[iri].label
            if iri
            else schema.class_by_iri[row["class_iri"]].label
        )
        return Statement(
            instance_id=row["instance_id"],
            label=label,
            value=self._value(row) if iri else None,
            of=of,
            confidence=row["confidence"],
            producer=row["producer"],
            sentences=tuple(self._quote(row)),
        )

    def _value(self, row: Mapping[str, Any]) -> str:
        return self._snapshot.names[row["object_id"]] if row["object_id"] else row["literal"]

    def _quote(self, row: Mapping[str, Any]) -> list[Sentence]:
        """The sentences that the scope shows, the strongest first; only its words are marked."""
        order = [(p["chunk_id"], p["start"], p["end"]) for p in row["places"]]
        strongest = row["chunk_id"], row["start"], row["end"]
        found = {
            (e.chunk_id, e.start, e.end): e for e in self._snapshot.evidence(row["instance_id"])
        }
        quoted = []
        for place in order:
            if place not in found:
                continue
            evidence = found[place]
            spans = [row["subject_span"], row["object_span"]] if place == strongest else []
            marked = sorted(
                (span["start"] - evidence.start, span["end"] - evidence.start)
                for span in spans
                if span
            )
            quoted.append(
                Sentence(
                    evidence.source, evidence.start, evidence.end, evidence.text, tuple(marked)
                )
            )
        return quoted


def list_classes(entity_id: str, snapshot: Snapshot) -> tuple[str, ...]:
    """The IRIs of the classes that an individual is seen to be of, from the index alone."""
    view = snapshot._view
    row = view.find("entities", entity_id)
    if row is None:
        return ()
    listed = view.rows("entities").list_of("instances", row)
    stated = [view.read_instance(at) for at in view.select("instances", sorted(map(int, listed)))]
    own = [r for r in stated if r["subject_id"] == entity_id and r["property_iri"] is None]
    return tuple(dict.fromkeys(r["class_iri"] for r in own))


def find_instances(
    facts: Collection[tuple[str, Any, Any]], snapshot: Snapshot
) -> list[dict[str, Any]]:
    """The rows of `instances` that state some facts: subject, property, object or literal.

    In key order. Entities are given by their ids; a property's inverse states its facts too.
    Without property and object a fact is that the subject is of a class.
    """
    view = snapshot._view
    inverse = {p.iri: p.inverse_of for p in snapshot.schema.properties if p.inverse_of}
    wanted = {*facts} | {(o, inverse[p], s) for s, p, o in facts if p in inverse}
    listed = view.rows("entities").list_of
    subjects = {view.find("entities", subject) for subject, _, _ in wanted}
    about = sorted(
        {int(at) for row in subjects if row is not None for at in listed("instances", row)}
    )
    rows = map(view.read_instance, view.select("instances", about))
    return [
        row
        for row in rows
        if (row["subject_id"], row["property_iri"], row["object_id"] or row["literal"]) in wanted
    ]


def list_instances(entity_ids: Collection[str], snapshot: Snapshot, most: int) -> list[str]:
    """The keys of the first `most` statements of properties of or with some entities."""
    view = snapshot._view
    rows = [at for key in entity_ids if (at := view.find("entities", key)) is not None]
    listed = view.rows("entities").list_of
    about = sorted({int(at) for row in rows for at in listed("instances", row)})
    read = map(view.read_instance, view.select("instances", about))
    stated = (row["instance_id"] for row in read if row["property_iri"] is not None)
    return list(islice(stated, most))


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


def _same(name: str, label: str) -> bool:
    return join_words(name) == join_words(label)
