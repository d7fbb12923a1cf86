"""The lexicon of a snapshot: the schema's words, and the names of its entities."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from kpyramid.ontology import names as n
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema
from kpyramid.query.pyramid.linking import KIND_TYPES
from kpyramid.query.pyramid.names import EntitiesByName
from kpyramid.query.questions.lexicon import Category, Compare, Lexicon, Relation, Run


@dataclass
class SnapshotLexicon(Lexicon):
    """A lexicon that looks names up in the index, and reads all of none but places and kinds."""

    entities: EntitiesByName | None = None

    @property
    def _entities(self) -> EntitiesByName:
        assert self.entities is not None  # `read_snapshot_lexicon` gives them
        return self.entities

    def find_by_word(self, word: str) -> frozenset[str]:
        """See `Lexicon`; a word that more than a hundred individuals share finds none."""
        return frozenset(self._entities.with_word(word))

    def find_by_start(self, start: str) -> frozenset[str]:
        """See `Lexicon`; a start that more than a hundred individuals share finds none."""
        return frozenset(self._entities.with_start(start))

    def list_words(self, iri: str) -> frozenset[str]:
        """See `Lexicon`."""
        return frozenset(w for name in self._entities.list_names(iri) for w in name.split())

    def name_members(self, classes: set[str]) -> Mapping[str, tuple[str, ...]]:
        """See `Lexicon`."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for iri in sorted(self.list_members(classes)):
            for name in self._entities.list_names(iri):
                found[name].append(iri)
        # What shares its name with a place may be meant as well, as in `names`.
        return {name: self._entities.get(name, tuple(found[name])) for name in sorted(found)}


def read_snapshot_lexicon(
    schema: Schema, entities: EntitiesByName, run: Run, compare: Compare
) -> Lexicon:
    """The lexicon; `entities` gives the IRIs of entities by name in small letters."""
    types = {
        c.iri: {
            t for d in schema.classes if schema.is_subclass(d.iri, c.iri) for t in d.entity_types
        }
        for c in schema.classes
    }
    return SnapshotLexicon(
        {c.iri: _read_class(c, types[c.iri]) for c in schema.classes},
        {p.iri: _read_property(p) for p in schema.properties},
        entities,
        {},
        run,
        compare,
        entities=entities,
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
