"""Question to SPARQL by rules (`Query_onto`): one property of one named entity.

A query is only made when the question's words are accounted for by the entity and the property;
a question that says more than that is for the layers below.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kpyramid.extraction.normal import normalise_relation
from kpyramid.ontology.names import XSD
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.ontology.store import entity_iri
from kpyramid.query.linking import KIND_TYPES, LinkedQuestion

_LIGHT = frozenset("be have do a an the of in on at to for from by with as into after".split())
_COVER = 0.75
"""Share of the question's content words that a property must account for."""
_DATES = frozenset(XSD + name for name in ("date", "gYear", "gYearMonth"))
_NUMBERS = frozenset(
    XSD + name for name in ("integer", "decimal", "double", "nonNegativeInteger", "float")
)


@dataclass(frozen=True, slots=True)
class OntologyQuery:
    """One candidate: SPARQL that asks for `?value`, and what it stands for."""

    sparql: str
    property_iri: str
    entity_id: str
    forward: bool
    score: float


def write_queries(question: LinkedQuestion, schema: Schema) -> list[OntologyQuery]:
    """The candidates for a question, the most certain first; none when words are left over."""
    found = {
        query.sparql: query
        for entity in question.entities
        for prop in schema.properties
        for query in _try_property(question, entity, prop, schema)
    }
    return sorted(found.values(), key=lambda q: (-q.score, q.sparql))


def _try_property(
    question: LinkedQuestion, entity: str, prop: OntologyProperty, schema: Schema
) -> Iterator[OntologyQuery]:
    cover = max(
        _measure_cover(phrase, question.lemmas) for phrase in (prop.label, *prop.alt_labels)
    )
    if cover < _COVER:
        return
    if _answers(question.asks_for, prop.range, schema):
        yield _make_query(entity, prop, forward=True, score=cover)
    if not prop.is_datatype and _answers(question.asks_for, prop.domain, schema):
        # The other way round is less certain: the phrase is read from domain to range.
        yield _make_query(entity, prop, forward=False, score=cover - 0.1)


def _measure_cover(phrase: str, words: Sequence[str]) -> float:
    """Share of the question's words that the phrase says; 0 unless it says nothing else."""
    said = set(normalise_relation(phrase).lemmas) - _LIGHT
    asked = set(words) - _LIGHT
    if not said or not asked or not said <= asked:
        return 0.0
    return len(said & asked) / len(asked)


def _answers(kind: str, iri: str, schema: Schema) -> bool:
    """Whether values of a class or datatype can answer a question of a kind."""
    if kind == "when":
        return iri in _DATES
    if kind == "number":
        return iri in _NUMBERS
    if iri in _DATES | _NUMBERS:
        return kind == "what"
    if iri.startswith(XSD):
        return kind in {"what", "who"}
    if kind == "what":
        return True
    types = {t for c in schema.classes if schema.is_subclass(c.iri, iri) for t in c.entity_types}
    # Countries are agents too: `where` wants a class of places only.
    return types <= KIND_TYPES[kind] if kind == "where" else bool(types & KIND_TYPES[kind])


def _make_query(
    entity: str, prop: OntologyProperty, *, forward: bool, score: float
) -> OntologyQuery:
    node = f"<{entity_iri(entity)}>"
    pattern = f"{node} <{prop.iri}> ?value" if forward else f"?value <{prop.iri}> {node}"
    label = "OPTIONAL { ?value <http://www.w3.org/2000/01/rdf-schema#label> ?label }"
    sparql = f"SELECT DISTINCT ?value ?label WHERE {{ {pattern} . {label} }}"
    return OntologyQuery(sparql, prop.iri, entity, forward, score)
