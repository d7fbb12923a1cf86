"""Anchors: which facts lie near a property of the ontology (PolyRAG §III-C).

An anchor is a class with one of its properties. It is compared with what the graph says of such
subjects: each distinct wording once, however many facts use it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kpyramid.condensation.merging import LITERAL
from kpyramid.condensation.searching import find_nearest
from kpyramid.embeddings.checked import embed_finite
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import XSD
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.settings import CondenseSettings

_Class = str | None
"""Of a head or tail; None where it is not known."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A wording and the types of what it joins.

    The type of a literal tail is `LITERAL` and the datatypes that it can be a value of.
    """

    wording: str
    head_type: str
    tail_type: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """A property of a class; `class_iri` is None where the subjects' class is not known."""

    property_iri: str
    class_iri: str | None


@dataclass(frozen=True, slots=True, eq=False)
class _Wordings:
    """Those of the ontology, each with its property, and those of the graph, with their vectors."""

    named: Sequence[tuple[OntologyProperty, str]]
    queries: Matrix
    said: Sequence[str]
    points: Matrix


def find_anchors(
    phrases: Sequence[Phrase], schema: Schema, settings: CondenseSettings, embedder: Embedder
) -> list[tuple[Anchor, ...]]:
    """For each phrase the anchors it is near to, the nearest first.

    It is near when it is among the k nearest of the anchor, near enough, and joins what the
    property can join. Wordings are compared, and the subject's class decides with which: with its
    name before them all wordings are alike.

    Raises:
        InputError: the embedding of a wording is not finite.
    """
    said = sorted({phrase.wording for phrase in phrases})
    named = [(p, text) for p in schema.properties for text in (p.label, *p.alt_labels)]
    if not said or not named:
        return [() for _ in phrases]
    queries = embed_finite(embedder, [text for _, text in named])
    wordings = _Wordings(named, queries, said, embed_finite(embedder, said))
    place = {wording: at for at, wording in enumerate(said)}
    keys = [
        (place[p.wording], _class_of(p.head_type, schema), _class_of(p.tail_type, schema))
        for p in phrases
    ]
    used: dict[_Class, dict[_Class, set[int]]] = defaultdict(lambda: defaultdict(set))
    for at, head, tail in keys:
        used[head][tail].add(at)
    near: dict[tuple[int, _Class, _Class], list[tuple[float, str]]] = defaultdict(list)
    for head, by_tail in used.items():
        ranked: dict[str, list[tuple[float, int, _Class]]] = defaultdict(list)
        for tail, places in by_tail.items():
            fitting = [at for at, (p, _) in enumerate(named) if _can_join(head, tail, p, schema)]
            for (iri, at), cosine in _search(wordings, fitting, sorted(places), settings).items():
                ranked[iri].append((-cosine, at, tail))
        for iri, neighbours in ranked.items():
            order = sorted(neighbours, key=lambda n: (n[0], n[1], n[2] or ""))
            for distance, at, tail in order[: settings.neighbours]:
                near[at, head, tail].append((distance, iri))
    return [tuple(Anchor(iri, key[1]) for _, iri in sorted(near.get(key, ()))) for key in keys]


def _search(
    wordings: _Wordings, fitting: Sequence[int], places: Sequence[int], settings: CondenseSettings
) -> dict[tuple[str, int], float]:
    """How near wordings of the graph are to properties: the cosine by property and place."""
    rows = np.array(places)
    found = find_nearest(
        wordings.queries[fitting],
        wordings.points[rows],
        settings.neighbours,
        settings.anchor_similarity,
        exact_up_to=settings.exact_up_to,
    )
    best: dict[tuple[str, int], float] = {}
    for at, (near, cosines) in zip(fitting, found, strict=True):
        for row, cosine in zip(rows[near].tolist(), cosines.tolist(), strict=True):
            key = wordings.named[at][0].iri, row
            best[key] = max(best.get(key, cosine), cosine)
    return best


def find_ranges(literal: str, ranges: Iterable[str]) -> list[str]:
    """The datatypes, of some, that a literal can be a value of."""
    return [iri for iri in ranges if parse_literal(literal, iri) is not None]


def _class_of(entity_type: str, schema: Schema) -> _Class:
    is_literal = entity_type.startswith(LITERAL)
    return entity_type if is_literal else schema.class_for_type(entity_type)


def _can_join(head: _Class, tail: _Class, prop: OntologyProperty, schema: Schema) -> bool:
    """Whether a property can join things of these classes; what is not known may fit."""
    if not _is_near(head, prop.domain, schema):
        return False
    if tail is not None and tail.startswith(LITERAL):
        return prop.is_datatype and prop.range in tail.removeprefix(LITERAL).split()
    if prop.is_datatype:
        return prop.range == XSD + "string"
    return _is_near(tail, prop.range, schema)


def _is_near(found: _Class, wanted: str, schema: Schema) -> bool:
    """Whether a thing of one class can be one of the other: an organisation may be a school."""
    return found is None or schema.is_subclass(found, wanted) or schema.is_subclass(wanted, found)
