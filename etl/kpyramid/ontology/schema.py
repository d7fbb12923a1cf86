"""The ontology's schema: its classes and properties, read from Turtle and written back."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.literals import DATATYPES
from kpyramid.ontology.turtle import Statements, make_iri, write_turtle


@dataclass(frozen=True, slots=True)
class OntologyClass:
    """A class; `entity_types` are the NER labels that name its instances."""

    iri: str
    label: str
    alt_labels: tuple[str, ...] = ()
    comment: str = ""
    parents: tuple[str, ...] = ()
    entity_types: tuple[str, ...] = ()

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


@dataclass(frozen=True)
class Schema:
    """Classes and properties, sorted by IRI, under one base namespace; inverses are mutual."""

    base: str
    classes: tuple[OntologyClass, ...]
    properties: tuple[OntologyProperty, ...]

    def __post_init__(self) -> None:
        """Sorts, and states each inverse on both sides.

        Raises:
            InputError: an IRI is defined twice, or the base ends in neither # nor /.
        """
        problems = [] if self.base.endswith(("#", "/")) else [f"base {self.base}: ends without #"]
        iris = [c.iri for c in self.classes] + [p.iri for p in self.properties]
        problems += [f"<{iri}>: defined twice" for iri in sorted(set(iris)) if iris.count(iri) > 1]
        _refuse(problems, "the schema")
        stated = sorted((p.inverse_of, p.iri) for p in self.properties if p.inverse_of)
        inverses = {inverse: iri for inverse, iri in reversed(stated)}
        mutual = (
            replace(p, inverse_of=p.inverse_of or inverses.get(p.iri)) for p in self.properties
        )
        object.__setattr__(self, "classes", tuple(sorted(self.classes, key=lambda c: c.iri)))
        object.__setattr__(self, "properties", tuple(sorted(mutual, key=lambda p: p.iri)))

    @cached_property
    def class_by_iri(self) -> dict[str, OntologyClass]:
        """The classes under their IRIs."""
        return {c.iri: c for c in self.classes}

    @cached_property
    def property_by_iri(self) -> dict[str, OntologyProperty]:
        """The properties under their IRIs."""
        return {p.iri: p for p in self.properties}

    @cached_property
    def _ancestors(self) -> dict[str, frozenset[str]]:
        return {c.iri: frozenset(self._walk_up(c.iri)) for c in self.classes}

    def _walk_up(self, iri: str) -> Iterator[str]:
        seen: set[str] = set()
        queue = [iri]
        while queue:  # a cycle of subclasses is legal OWL: they are equivalent
            if (current := queue.pop()) not in seen:
                seen.add(current)
                yield current
                found = self.class_by_iri.get(current)
                queue += found.parents if found else ()

    @cached_property
    def _class_by_type(self) -> dict[str, str]:
        # Where two classes claim one NER label, the more general one makes no false statement.
        ordered = sorted(self.classes, key=lambda c: (len(self._ancestors[c.iri]), c.iri))
        return {t: c.iri for c in reversed(ordered) for t in c.entity_types}

    def class_for_type(self, entity_type: str) -> str | None:
        """The class whose instances carry an NER label, the most general if several do."""
        return self._class_by_type.get(entity_type)

    def is_subclass(self, child: str, parent: str) -> bool:
        """Whether every instance of `child` is one of `parent`; a class is its own subclass."""
        return child == parent or parent == n.THING or parent in self._ancestors.get(child, ())

    def extend(
        self, classes: Iterable[OntologyClass], properties: Iterable[OntologyProperty]
    ) -> "Schema":
        """The schema with these added; one whose IRI is there already replaces the old one.

        Raises:
            InputError: something added points to a class or property that is nowhere declared.
        """
        by_class = self.class_by_iri | {c.iri: c for c in classes}
        by_property = self.property_by_iri | {p.iri: p for p in properties}
        grown = Schema(self.base, tuple(by_class.values()), tuple(by_property.values()))
        _refuse(_find_dangling(grown), "the extended schema")
        return grown


def parse_schema(turtle: str, *, source: str) -> Schema:
    """The schema a Turtle text declares; `owl:imports` is ignored and nothing is fetched.

    Labels and comments are taken in English or in no stated language.

    Raises:
        InputError: not Turtle (names source and line), or incomplete (names every problem).
    """
    found = Statements(turtle, source=source)
    problems: list[str] = []
    headers = found.find_subjects(n.ONTOLOGY)
    if len(headers) != 1:
        problems.append(
            f"{len(headers)} owl:Ontology headers: state one, as in `<https://…> a owl:Ontology .`"
        )
    classes = [_read_class(iri, found, problems) for iri in found.find_subjects(n.CLASS)]
    if not classes:
        problems.append("no owl:Class: declare at least one")
    kinds = (n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY)
    objects, datatypes = (found.find_subjects(kind) for kind in kinds)
    properties = [
        _read_property(iri, found, problems, is_datatype=iri in datatypes)
        for iri in sorted({*objects, *datatypes})
    ]
    problems += _find_unread(found)
    both = sorted({*objects} & {*datatypes})
    problems += [f"<{iri}>: an object and a datatype property; choose one" for iri in both]
    _refuse(problems, source)
    base = headers[0] if headers[0].endswith(("#", "/")) else headers[0] + "#"
    schema = Schema(base, tuple(classes), tuple(properties))
    _refuse(_find_dangling(schema), source)
    return schema


def write_schema(schema: Schema) -> str:
    """The schema as Turtle, the same for equal schemas; `parse_schema` gives it back.

    Raises:
        InputError: an IRI of the schema is none.
    """
    statements = list(_list_statements(schema))
    prefixes = {"": schema.base, "owl": n.OWL, "rdfs": n.RDFS, "skos": n.SKOS, "kp": n.KP}
    return write_turtle(statements, prefixes | {"rdf": n.RDF, "xsd": n.XSD})


def _refuse(problems: Sequence[str], source: str) -> None:
    if problems:
        listed = "".join(f"\n  {problem}" for problem in problems)
        raise InputError(f"{source}: {len(problems)} to correct in the ontology:{listed}")


def _find_unread(found: Statements) -> list[str]:
    """Declarations of a kind that is not read: left alone, they would vanish without a word."""
    wanted = {
        n.RDFS + "Class": (n.CLASS,),
        n.RDF + "Property": (n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY, n.ANNOTATION_PROPERTY),
        n.FUNCTIONAL_PROPERTY: (n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY),
    }
    return [
        f"<{iri}>: only a {kind.rpartition('#')[2]}; make it an owl:{kinds[0].rpartition('#')[2]}"
        + (" or owl:DatatypeProperty" if len(kinds) > 1 else "")
        for kind, kinds in wanted.items()
        for iri in found.find_subjects(kind)
        if not {*kinds} & {*found.find_iris(iri, n.RDF_TYPE)}
    ]


def _find_dangling(schema: Schema) -> list[str]:
    """What points to nothing, or to a datatype whose values cannot be checked."""
    classes = {*schema.class_by_iri, n.THING}
    problems = [
        f"<{c.iri}>: rdfs:subClassOf <{parent}>, which is no class declared here"
        for c in schema.classes
        for parent in c.parents
        if parent not in classes
    ]
    for p in schema.properties:
        if p.domain not in classes:
            problems.append(f"<{p.iri}>: rdfs:domain <{p.domain}> is no class declared here")
        if p.is_datatype and p.range not in DATATYPES:
            known = ", ".join(sorted(d.rpartition("#")[2] for d in DATATYPES))
            problems.append(f"<{p.iri}>: rdfs:range <{p.range}> is none of {known}")
        if not p.is_datatype and p.range not in classes:
            problems.append(f"<{p.iri}>: rdfs:range <{p.range}> is no class declared here")
        inverse = schema.property_by_iri.get(p.inverse_of or p.iri)
        if inverse is None or (p.inverse_of and (p.is_datatype or inverse.is_datatype)):
            problems.append(f"<{p.iri}>: owl:inverseOf <{p.inverse_of}> is no object property here")
    return problems


def _read_class(iri: str, found: Statements, problems: list[str]) -> OntologyClass:
    return OntologyClass(
        iri=iri,
        label=_read_label(iri, found, problems),
        alt_labels=tuple(found.find_texts(iri, n.ALT_LABEL)),
        comment=_read_text(iri, n.COMMENT, found),
        parents=tuple(found.find_iris(iri, n.SUBCLASS)),
        entity_types=tuple(found.find_texts(iri, n.ENTITY_TYPE)),
    )


def _read_property(
    iri: str, found: Statements, problems: list[str], *, is_datatype: bool
) -> OntologyProperty:
    inverses = found.find_iris(iri, n.INVERSE_OF)
    if len(inverses) > 1:
        problems.append(f"<{iri}>: {len(inverses)} owl:inverseOf: keep one")
    return OntologyProperty(
        iri=iri,
        label=_read_label(iri, found, problems),
        alt_labels=tuple(found.find_texts(iri, n.ALT_LABEL)),
        comment=_read_text(iri, n.COMMENT, found),
        domain=_read_end(iri, n.DOMAIN, found, problems),
        range=_read_end(iri, n.RANGE, found, problems),
        is_datatype=is_datatype,
        is_functional=n.FUNCTIONAL_PROPERTY in found.find_iris(iri, n.RDF_TYPE),
        inverse_of=inverses[0] if inverses else None,
        competency_question=_read_text(iri, n.COMPETENCY_QUESTION, found),
    )


def _read_text(iri: str, predicate: str, found: Statements) -> str:
    texts = found.find_texts(iri, predicate)
    return texts[0] if texts else ""


def _read_label(iri: str, found: Statements, problems: list[str]) -> str:
    label = _read_text(iri, n.LABEL, found)
    if not label:
        problems.append(f"<{iri}>: no rdfs:label in English; add one")
    return label


def _read_end(iri: str, predicate: str, found: Statements, problems: list[str]) -> str:
    """The one domain or range; two would mean their intersection, which is seldom what is meant."""
    ends = found.find_iris(iri, predicate)
    name = f"rdfs:{predicate.rpartition('#')[2]}"
    if found.has_unnamed(iri, predicate):
        problems.append(f"<{iri}>: {name} is an unnamed class; name one class that covers it")
    elif len(ends) != 1:
        problems.append(f"<{iri}>: {len(ends) or 'no'} {name}; state exactly one")
    return ends[0] if ends else ""


def _list_statements(schema: Schema) -> Iterator[tuple[str, str, ox.NamedNode | ox.Literal]]:
    yield schema.base.removesuffix("#"), n.RDF_TYPE, make_iri(n.ONTOLOGY)
    for iri in (n.COMPETENCY_QUESTION, n.ENTITY_TYPE):
        yield iri, n.RDF_TYPE, make_iri(n.ANNOTATION_PROPERTY)
    for c in schema.classes:
        yield c.iri, n.RDF_TYPE, make_iri(n.CLASS)
        yield from _list_words(c)
        yield from ((c.iri, n.SUBCLASS, make_iri(parent)) for parent in c.parents)
        yield from ((c.iri, n.ENTITY_TYPE, ox.Literal(t)) for t in c.entity_types)
    for p in schema.properties:
        kind = n.DATATYPE_PROPERTY if p.is_datatype else n.OBJECT_PROPERTY
        yield p.iri, n.RDF_TYPE, make_iri(kind)
        if p.is_functional:
            yield p.iri, n.RDF_TYPE, make_iri(n.FUNCTIONAL_PROPERTY)
        yield from _list_words(p)
        yield p.iri, n.DOMAIN, make_iri(p.domain)
        yield p.iri, n.RANGE, make_iri(p.range)
        if p.inverse_of:
            yield p.iri, n.INVERSE_OF, make_iri(p.inverse_of)
        if p.competency_question:
            yield p.iri, n.COMPETENCY_QUESTION, ox.Literal(p.competency_question, language="en")


def _list_words(row: OntologyClass | OntologyProperty) -> Iterator[tuple[str, str, ox.Literal]]:
    yield row.iri, n.LABEL, ox.Literal(row.label, language="en")
    yield from ((row.iri, n.ALT_LABEL, ox.Literal(a, language="en")) for a in row.alt_labels)
    if row.comment:
        yield row.iri, n.COMMENT, ox.Literal(row.comment, language="en")
