"""The lexicon of a snapshot: the schema's words, and the names of its entities."""

from collections.abc import Mapping

from kpyramid.ontology import names as n
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema
from kpyramid.ontology.store import entity_iri
from kpyramid.query.linking import KIND_TYPES
from kpyramid.query.questions.lexicon import Category, Compare, Lexicon, Relation, Run


def read_snapshot_lexicon(
    schema: Schema, entities: Mapping[str, tuple[str, ...]], run: Run, compare: Compare
) -> Lexicon:
    """The lexicon; `entities` gives the ids of entities by name in small letters."""
    types = {
        c.iri: {
            t for d in schema.classes if schema.is_subclass(d.iri, c.iri) for t in d.entity_types
        }
        for c in schema.classes
    }
    return Lexicon(
        {c.iri: _read_class(c, types[c.iri]) for c in schema.classes},
        {p.iri: _read_property(p) for p in schema.properties},
        {name: tuple(map(entity_iri, ids)) for name, ids in entities.items() if name},
        {},
        run,
        compare,
    )


def _read_class(row: OntologyClass, types: set[str]) -> Category:
    return Category(
        row.iri,
        (row.label, *row.alt_labels),
        frozenset(row.parents),
        person=bool(types & KIND_TYPES["who"]),
        # Countries are agents too: `where` wants a class of places only.
        place=bool(types) and types <= KIND_TYPES["where"],
    )


def _read_property(row: OntologyProperty) -> Relation:
    ends = [frozenset({iri} - {n.THING}) for iri in (row.domain, row.range)]
    return Relation(
        row.iri,
        (row.label,),
        ends[0],
        frozenset() if row.is_datatype else ends[1],
        frozenset({row.range}) if row.is_datatype else frozenset(),
        spoken=row.alt_labels,
    )
