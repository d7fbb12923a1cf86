"""The ontology's schema: its classes and properties, read from Turtle and written back."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.axioms import Limits, find_limits, read_axioms, write_axioms
from kpyramid.ontology.literals import DATATYPES
from kpyramid.ontology.turtle import Graph, make_iri, parse_turtle, walk, write_turtle

# Classes and properties, and their statements in RDF.


@dataclass(frozen=True, slots=True)
class OntologyClass:
    """A class; `entity_types` are the NER labels that name its instances.

    With `common_nouns` its instances have names in small letters too, as substances do.
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


Term = OntologyClass | OntologyProperty


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


def _list_words(row: Term) -> Iterator[ox.Triple]:
    yield _state(row.iri, n.LABEL, ox.Literal(row.label, language="en"))
    for label in row.alt_labels:
        yield _state(row.iri, n.ALT_LABEL, ox.Literal(label, language="en"))
    if row.comment:
        yield _state(row.iri, n.COMMENT, ox.Literal(row.comment, language="en"))


def _state(subject: str, predicate: str, value: str | ox.Literal) -> ox.Triple:
    term = make_iri(value) if isinstance(value, str) else value
    return ox.Triple(make_iri(subject), make_iri(predicate), term)


# The schema.


def find_nearest_common(
    classes: Iterable[str], list_parents: Callable[[str], Iterable[str]]
) -> str | None:
    """The class above all of these with the fewest steps to it; None if there is none."""
    climbs = [walk([iri], list_parents) for iri in classes]
    common = set.intersection(*({*climb} for climb in climbs)) if climbs else set()
    return min(sorted(common), key=lambda iri: sum(climb[iri] for climb in climbs), default=None)


_LARGEST_CACHED = 1000
"""Most ancestors of a class that is cached: no real hierarchy is as deep, and a chain of ten
thousand classes would fill the memory with fifty million."""


@dataclass(frozen=True)
class Schema:
    """Classes and properties, sorted by IRI, under one base namespace; inverses are mutual.

    `axioms` are N-Triples lines, sorted: what the ontology states that no field holds, such as
    disjointness, restrictions, mappings to other vocabularies, and its own title and licence.
    """

    base: str
    classes: tuple[OntologyClass, ...]
    properties: tuple[OntologyProperty, ...]
    axioms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Sorts, and states each inverse on both sides.

        Raises:
            InputError: an IRI is defined twice, or the base ends in neither # nor /.
        """
        problems = [] if self.base.endswith(("#", "/")) else [f"base {self.base}: ends without #"]
        iris = Counter([*(c.iri for c in self.classes), *(p.iri for p in self.properties)])
        problems += [f"<{iri}>: defined twice" for iri in sorted(iris) if iris[iri] > 1]
        refuse(problems, "the schema")
        stated = sorted((p.inverse_of, p.iri) for p in self.properties if p.inverse_of)
        inverses = {inverse: iri for inverse, iri in reversed(stated)}
        mutual = (
            replace(p, inverse_of=p.inverse_of or inverses.get(p.iri)) for p in self.properties
        )
        object.__setattr__(self, "classes", tuple(sorted(self.classes, key=lambda c: c.iri)))
        object.__setattr__(self, "properties", tuple(sorted(mutual, key=lambda p: p.iri)))

    @cached_property
    def class_by_iri(self) -> dict[str, OntologyClass]:
        """The classes by IRI."""
        return {c.iri: c for c in self.classes}

    @cached_property
    def property_by_iri(self) -> dict[str, OntologyProperty]:
        """The properties by IRI."""
        return {p.iri: p for p in self.properties}

    @cached_property
    def term_by_iri(self) -> dict[str, Term]:
        """The classes and properties by IRI."""
        return {**self.class_by_iri, **self.property_by_iri}

    @cached_property
    def _ancestors(self) -> dict[str, frozenset[str]]:
        return {}

    def find_ancestors(self, iri: str) -> frozenset[str]:
        """A class and all classes above it; without owl:Thing, unless it is stated."""
        ancestors = self._ancestors.get(iri)
        if ancestors is None:
            ancestors = frozenset(walk([iri], self._list_parents))
            if len(ancestors) <= _LARGEST_CACHED:
                self._ancestors[iri] = ancestors
        return ancestors

    def list_above(self, iri: str) -> Iterator[OntologyClass]:
        """A class and the declared classes above it."""
        above = map(self.class_by_iri.get, self.find_ancestors(iri))
        return (c for c in above if c)

    def _list_parents(self, iri: str) -> Sequence[str]:
        entry = self.class_by_iri.get(iri)
        return entry.parents if entry else ()

    @cached_property
    def _classes_by_type(self) -> dict[str, tuple[str, ...]]:
        typed: dict[str, list[str]] = {}
        for entry in self.classes:
            for label in entry.entity_types:
                typed.setdefault(label, []).append(entry.iri)
        return {
            label: tuple(
                iri for iri in iris if not any(o != iri and self.is_subclass(iri, o) for o in iris)
            )
            for label, iris in typed.items()
        }

    @cached_property
    def _limits(self) -> Limits:
        return find_limits(read_axioms(self.axioms))

    def list_types(self, iri: str) -> tuple[str, ...]:
        """The NER labels of a class; none of one that is not declared."""
        entry = self.class_by_iri.get(iri)
        return entry.entity_types if entry else ()

    def list_classes_for_type(self, entity_type: str) -> tuple[str, ...]:
        """The classes whose instances carry an NER label, without those below one of them."""
        return self._classes_by_type.get(entity_type, ())

    def class_for_type(self, entity_type: str) -> str | None:
        """The most general class with an NER label; None where several stand apart."""
        claims = self.list_classes_for_type(entity_type)
        return claims[0] if len(claims) == 1 else None

    @property
    def knows_types(self) -> bool:
        """Whether any class has NER labels."""
        return bool(self._classes_by_type)

    def is_subclass(self, child: str, parent: str) -> bool:
        """Whether every instance of `child` is one of `parent`; a class is its own subclass."""
        return child == parent or parent == n.THING or parent in self.find_ancestors(child)

    def may_share(self, first: str, second: str) -> bool:
        """Whether a thing can be of both classes: they are equal, or one is above the other."""
        return self.is_subclass(first, second) or self.is_subclass(second, first)

    def are_disjoint(self, first: str, second: str) -> bool:
        """Whether the two classes can share no instance, by axioms on them or on classes above."""
        above, others = self.find_ancestors(first), self.find_ancestors(second)
        return self._limits.are_disjoint(above, others)

    def max_values(self, class_iri: str, property_iri: str) -> int | None:
        """The most values of an instance; None for any number.

        One if the property is functional, else the least owl:maxCardinality or owl:cardinality
        of the class and the classes above it.
        """
        prop = self.property_by_iri.get(property_iri)
        bounds = [1] if prop and prop.is_functional else []
        if self._limits.most:
            pairs = ((iri, property_iri) for iri in self.find_ancestors(class_iri))
            bounds += [self._limits.most[pair] for pair in pairs if pair in self._limits.most]
        return min(bounds, default=None)

    def find_characteristics(self, property_iri: str) -> frozenset[str]:
        """A property's further types, such as `names.SYMMETRIC_PROPERTY`, as IRIs."""
        return self._limits.characteristics.get(property_iri, frozenset())

    def find_entailed(self, property_iri: str) -> Sequence[tuple[str, bool]]:
        """The properties that one entails, itself first, each with whether the ends are swapped.

        By inverses, symmetry, and super-properties.
        """
        entailed = self._entailed.get(property_iri)
        if entailed is None:
            entailed = list(walk([(property_iri, False)], self._list_wider))
            self._entailed[property_iri] = entailed
        return entailed

    @cached_property
    def _entailed(self) -> dict[str, Sequence[tuple[str, bool]]]:
        return {}

    def _list_wider(self, end: tuple[str, bool]) -> list[tuple[str, bool]]:
        iri, swapped = end
        turned = self._inverses.get(iri, set())
        if n.SYMMETRIC_PROPERTY in self.find_characteristics(iri):
            turned = turned | {iri}
        straight = self._limits.wider.get(iri, frozenset())
        return [
            *((inverse, not swapped) for inverse in sorted(turned)),
            *((wider, swapped) for wider in sorted(straight)),
        ]

    @cached_property
    def _inverses(self) -> dict[str, set[str]]:
        inverses: dict[str, set[str]] = {}
        for prop in self.properties:
            if prop.inverse_of:
                inverses.setdefault(prop.iri, set()).add(prop.inverse_of)
                inverses.setdefault(prop.inverse_of, set()).add(prop.iri)
        return inverses

    def extend(self, terms: Iterable[Term]) -> "Schema":
        """The schema with these added; an existing IRI's class or property is replaced.

        Raises:
            InputError: something added points to a class or property that is nowhere declared.
        """
        by_class, by_property = self.class_by_iri.copy(), self.property_by_iri.copy()
        for term in terms:
            if isinstance(term, OntologyClass):
                by_class[term.iri] = term
            else:
                by_property[term.iri] = term
        grown = Schema(
            self.base, tuple(by_class.values()), tuple(by_property.values()), self.axioms
        )
        refuse(_find_dangling(grown), "the extended schema")
        return grown


def parse_schema(turtle: str, *, source: str) -> Schema:
    """The schema a Turtle text declares; `owl:imports` is not followed and nothing is fetched.

    Labels and comments are taken in English or in no stated language.

    Raises:
        InputError: not Turtle (names source and line), or incomplete (names every problem).
    """
    return read_schema(parse_turtle(turtle, source=source), source=source)


def read_schema(triples: Iterable[ox.Triple], *, source: str) -> Schema:
    """The schema that statements declare; see `parse_schema`.

    Raises:
        InputError: incomplete; names every problem.
    """
    triples = list(triples)
    graph = Graph(triples)
    problems: list[str] = []
    headers = graph.find_typed(n.ONTOLOGY)
    if len(headers) != 1:
        problems.append(
            f"{len(headers)} owl:Ontology headers: state one, as in `<https://…> a owl:Ontology .`"
        )
    classes = [_read_class(iri, graph, problems) for iri in graph.find_typed(n.CLASS)]
    kinds = (n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY)
    objects, datatypes = (graph.find_typed(kind) for kind in kinds)
    if not (classes or objects or datatypes):
        problems.append("no owl:Class and no property: declare at least one")
    properties = [
        _read_property(iri, graph, problems, is_datatype=iri in datatypes)
        for iri in sorted({*objects, *datatypes})
    ]
    problems += _find_unread(graph)
    problems += [
        f"{subject} <{predicate}>: tools that read this run the Python module it names; "
        "remove the statement"
        for subject, predicate in sorted((str(t.subject), t.predicate.value) for t in triples)
        if predicate.startswith(n.OWLREADY)
    ]
    both = sorted({*objects} & {*datatypes})
    problems += [f"<{iri}>: an object and a datatype property; choose one" for iri in both]
    refuse(problems, source)
    base = headers[0] if headers[0].endswith(("#", "/")) else headers[0] + "#"
    schema = Schema(base, tuple(classes), tuple(properties))
    refuse(_find_dangling(schema), source)
    return replace(schema, axioms=_read_axioms(schema, headers[0], triples, source))


def write_schema(schema: Schema) -> str:
    """The schema as Turtle, equal for equal schemas; `parse_schema` reads it back.

    Raises:
        InputError: an IRI of the schema is none.
    """
    prefixes = {"": schema.base, "owl": n.OWL, "rdfs": n.RDFS, "skos": n.SKOS, "kp": n.KP}
    statements = [
        *list_statements(schema.base, schema.classes, schema.properties),
        *read_axioms(schema.axioms),
    ]
    return write_turtle(statements, prefixes | {"rdf": n.RDF, "xsd": n.XSD, "dct": n.DCT})


def _read_axioms(
    schema: Schema, header: str, triples: Iterable[ox.Triple], source: str
) -> tuple[str, ...]:
    """The statements of the text that no field of the schema holds."""
    stated = set(list_statements(schema.base, schema.classes, schema.properties))
    old, new = make_iri(header), make_iri(schema.base.removesuffix("#"))
    left = []
    for triple in triples:
        subject = new if triple.subject == old else triple.subject
        value = new if triple.object == old else triple.object
        beyond = ox.Triple(subject, triple.predicate, value)
        if not {beyond, _tag_english(beyond)} & stated:
            left.append(beyond)
    try:
        return write_axioms(left)
    except InputError as e:
        raise InputError(f"{source}: {e}") from e


def _tag_english(triple: ox.Triple) -> ox.Triple:
    """The statement with untagged text tagged as English."""
    value = triple.object
    if isinstance(value, ox.Literal) and value.datatype == make_iri(n.XSD + "string"):
        value = ox.Literal(value.value, language="en")
    return ox.Triple(triple.subject, triple.predicate, value)


def refuse(problems: Sequence[str], source: str, where: str = "in the ontology") -> None:
    """Raises an InputError that lists the problems, if there are any."""
    if problems:
        listed = "".join(f"\n  {problem}" for problem in problems)
        raise InputError(f"{source}: {len(problems)} to correct {where}:{listed}")


def _find_unread(graph: Graph) -> list[str]:
    """Problems: declarations of kinds that are not read, which would be lost silently."""
    wanted = {
        n.RDFS + "Class": (n.CLASS,),
        n.RDF + "Property": (n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY, n.ANNOTATION_PROPERTY),
        n.FUNCTIONAL_PROPERTY: (n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY),
    }
    return [
        f"<{iri}>: only a {kind.rpartition('#')[2]}; make it an owl:{kinds[0].rpartition('#')[2]}"
        + (" or owl:DatatypeProperty" if len(kinds) > 1 else "")
        for kind, kinds in wanted.items()
        for iri in graph.find_typed(kind)
        if not {*kinds} & {*graph.find_iris(iri, n.RDF_TYPE)}
    ]


def _find_dangling(schema: Schema) -> list[str]:
    """Problems: references to undeclared terms, and datatypes that cannot be checked."""
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


def _read_class(iri: str, graph: Graph, problems: list[str]) -> OntologyClass:
    return OntologyClass(
        iri=iri,
        label=_read_label(iri, graph, problems),
        alt_labels=tuple(graph.find_texts(iri, n.ALT_LABEL)),
        comment=_read_text(iri, n.COMMENT, graph),
        parents=tuple(graph.find_iris(iri, n.SUBCLASS)),
        entity_types=tuple(graph.find_texts(iri, n.ENTITY_TYPE)),
        common_nouns=graph.is_true(iri, n.COMMON_NOUNS),
    )


def _read_property(
    iri: str, graph: Graph, problems: list[str], *, is_datatype: bool
) -> OntologyProperty:
    inverses = graph.find_iris(iri, n.INVERSE_OF)
    if len(inverses) > 1:
        problems.append(f"<{iri}>: {len(inverses)} owl:inverseOf: keep one")
    return OntologyProperty(
        iri=iri,
        label=_read_label(iri, graph, problems),
        alt_labels=tuple(graph.find_texts(iri, n.ALT_LABEL)),
        comment=_read_text(iri, n.COMMENT, graph),
        domain=_read_end(iri, n.DOMAIN, graph, problems),
        range=_read_end(iri, n.RANGE, graph, problems),
        is_datatype=is_datatype,
        is_functional=n.FUNCTIONAL_PROPERTY in graph.find_iris(iri, n.RDF_TYPE),
        inverse_of=inverses[0] if inverses else None,
        competency_question=_read_text(iri, n.COMPETENCY_QUESTION, graph),
    )


def _read_text(iri: str, predicate: str, graph: Graph) -> str:
    texts = graph.find_texts(iri, predicate)
    return texts[0] if texts else ""


def _read_label(iri: str, graph: Graph, problems: list[str]) -> str:
    label = _read_text(iri, n.LABEL, graph)
    if not label:
        problems.append(f"<{iri}>: no rdfs:label in English; add one")
    return label


def _read_end(iri: str, predicate: str, graph: Graph, problems: list[str]) -> str:
    """The domain or range; two would mean their intersection, which is seldom meant."""
    ends = graph.find_iris(iri, predicate)
    name = f"rdfs:{predicate.rpartition('#')[2]}"
    if any(isinstance(end, ox.BlankNode) for end in graph.find(iri, predicate)):
        problems.append(f"<{iri}>: {name} is an unnamed class; name one class that covers it")
    elif len(ends) != 1:
        problems.append(f"<{iri}>: {len(ends) or 'no'} {name}; state exactly one")
    return ends[0] if ends else ""
