"""Anchors: which facts lie near a property of the ontology (PolyRAG §III-C).

An anchor is a class with one of its properties. It is compared with what the graph says of such
subjects: each distinct wording once per class, however many facts use it.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kpyramid.condensation.searching import find_nearest
from kpyramid.embeddings.checked import embed_finite
from kpyramid.embeddings.port import Embedder
from kpyramid.ontology.names import XSD
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.settings import CondenseSettings


@dataclass(frozen=True, slots=True)
class Phrase:
    """A wording, the type of its subjects, and whether its objects are literals."""

    wording: str
    head_type: str
    literal: bool


@dataclass(frozen=True, slots=True)
class Anchor:
    """A property of a class; `class_iri` is None where the subjects' class is not known."""

    property_iri: str
    class_iri: str | None


def find_anchors(
    phrases: Sequence[Phrase], schema: Schema, settings: CondenseSettings, embedder: Embedder
) -> list[tuple[Anchor, ...]]:
    """For each phrase the anchors it is near to, the nearest first.

    It is near when it is among the k nearest of the anchor, and near enough. Both are compared as
    "class wording"; where the class is not known by the wordings alone.

    Raises:
        InputError: the embedding of a wording is not finite.
    """
    near: list[list[tuple[float, Anchor]]] = [[] for _ in phrases]
    groups: dict[tuple[str | None, bool], list[int]] = defaultdict(list)
    for place, phrase in enumerate(phrases):
        groups[schema.class_for_type(phrase.head_type), phrase.literal].append(place)
    for (class_iri, literal), places in sorted(
        groups.items(), key=lambda item: (item[0][0] or "", item[0][1])
    ):
        properties = [p for p in schema.properties if _can_have(class_iri, literal, p, schema)]
        wordings = sorted({phrases[place].wording for place in places})
        subject = f"{schema.class_by_iri[class_iri].label} " if class_iri else ""
        found = _search(wordings, properties, subject, settings, embedder)
        for place in places:
            near[place] = [
                (-cosine, Anchor(iri, class_iri))
                for iri, cosine in found.get(phrases[place].wording, {}).items()
            ]
    return [
        tuple(anchor for _, anchor in sorted(found, key=lambda f: (f[0], f[1].property_iri)))
        for found in near
    ]


def _can_have(class_iri: str | None, literal: bool, prop: OntologyProperty, schema: Schema) -> bool:
    """Whether a subject of the class can have the property with such a value."""
    if class_iri is not None and not schema.is_subclass(class_iri, prop.domain):
        return False
    return prop.is_datatype if literal else not prop.is_datatype or prop.range == XSD + "string"


def _search(
    wordings: Sequence[str],
    properties: Sequence[OntologyProperty],
    subject: str,
    settings: CondenseSettings,
    embedder: Embedder,
) -> dict[str, dict[str, float]]:
    """For each wording the properties it is near to, and how near."""
    named = [(p.iri, text) for p in properties for text in (p.label, *p.alt_labels)]
    if not named:
        return {}
    queries = embed_finite(embedder, [f"{subject}{text}" for _, text in named])
    points = embed_finite(embedder, [f"{subject}{wording}" for wording in wordings])
    nearest: dict[str, dict[int, float]] = defaultdict(dict)
    found = find_nearest(
        queries,
        points,
        settings.neighbours,
        settings.anchor_similarity,
        exact_up_to=settings.exact_up_to,
    )
    for (iri, _), (places, cosines) in zip(named, found, strict=True):
        known = nearest[iri]
        for place, cosine in zip(places.tolist(), cosines.tolist(), strict=True):
            known[place] = max(known.get(place, cosine), cosine)
    near: dict[str, dict[str, float]] = defaultdict(dict)
    for iri, known in nearest.items():
        ranked = sorted(known.items(), key=lambda item: (-item[1], item[0]))
        for place, cosine in ranked[: settings.neighbours]:
            near[wordings[place]][iri] = cosine
    return near
