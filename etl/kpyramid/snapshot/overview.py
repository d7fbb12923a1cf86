"""What is in a snapshot: its classes and properties with their members, what has most facts."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from kpyramid.numerics.arrays import Integers
from kpyramid.snapshot.snapshot import Snapshot

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
