"""Classes and properties, and the statements that say all of them in RDF."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyoxigraph as ox

from kpyramid.ontology import names as n
from kpyramid.ontology.turtle import make_iri


@dataclass(frozen=True, slots=True)
class OntologyClass:
    """A class; `entity_types` are the NER labels that name its instances.

    With `common_nouns` its instances are named in small letters too, as substances are.
    """

    iri: str
    label: str
    alt_labels: tuple[str, ...] = ()
    comment: str = ""
    parents: tuple[str, ...] = ()
    entity_types: tuple[str, ...] = ()
    common_nouns: bool = False

    def __post_init__(self) -> None:
        # RDF keeps no order: sorted, a class equals what is read back from its Turtle.
        for field in ("alt_labels", "parents", "entity_types"):
            object.__setattr__(self, field, tuple(sorted(set(getattr(self, field)))))


@dataclass(frozen=True, slots=True)
class OntologyProperty:
    """A property from `domain`, a class, to `range`: a class, or a datatype if `is_datatype`.

    `alt_labels` are the phrases that state it, read from domain to range. A property that is
    its own `inverse_of` holds in both directions.
    """

    iri: str
    label: str
    alt_labels: tuple[str, ...]
    comment: str
    domain: str
    range: str
    is_datatype: bool = False
    is_functional: bool = False
    inverse_of: str | None = None
    competency_question: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "alt_labels", tuple(sorted(set(self.alt_labels))))


def list_statements(
    base: str, classes: Iterable[OntologyClass], properties: Iterable[OntologyProperty]
) -> Iterator[ox.Triple]:
    """The header, then all that the fields of these classes and properties hold.

    Raises:
        InputError: an IRI is none.
    """
    yield _state(base.removesuffix("#"), n.RDF_TYPE, n.ONTOLOGY)
    for iri in (n.COMMON_NOUNS, n.COMPETENCY_QUESTION, n.ENTITY_TYPE):
        yield _state(iri, n.RDF_TYPE, n.ANNOTATION_PROPERTY)
    for c in classes:
        yield _state(c.iri, n.RDF_TYPE, n.CLASS)
        yield from _list_words(c)
        yield from (_state(c.iri, n.SUBCLASS, parent) for parent in c.parents)
        yield from (_state(c.iri, n.ENTITY_TYPE, ox.Literal(t)) for t in c.entity_types)
        if c.common_nouns:
            yield _state(c.iri, n.COMMON_NOUNS, ox.Literal(True))
    for p in properties:
        kind = n.DATATYPE_PROPERTY if p.is_datatype else n.OBJECT_PROPERTY
        yield _state(p.iri, n.RDF_TYPE, kind)
        if p.is_functional:
            yield _state(p.iri, n.RDF_TYPE, n.FUNCTIONAL_PROPERTY)
        yield from _list_words(p)
        yield _state(p.iri, n.DOMAIN, p.domain)
        yield _state(p.iri, n.RANGE, p.range)
        if p.inverse_of:
            yield _state(p.iri, n.INVERSE_OF, p.inverse_of)
        if p.competency_question:
            question = ox.Literal(p.competency_question, language="en")
            yield _state(p.iri, n.COMPETENCY_QUESTION, question)


def _list_words(row: OntologyClass | OntologyProperty) -> Iterator[ox.Triple]:
    yield _state(row.iri, n.LABEL, ox.Literal(row.label, language="en"))
    for other in row.alt_labels:
        yield _state(row.iri, n.ALT_LABEL, ox.Literal(other, language="en"))
    if row.comment:
        yield _state(row.iri, n.COMMENT, ox.Literal(row.comment, language="en"))


def _state(subject: str, predicate: str, value: str | ox.Literal) -> ox.Triple:
    term = make_iri(value) if isinstance(value, str) else value
    return ox.Triple(make_iri(subject), make_iri(predicate), term)
