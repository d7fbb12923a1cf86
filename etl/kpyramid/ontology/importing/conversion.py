"""A parsed ontology becomes one that a build can read; every change is named."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from urllib.parse import quote, unquote

import pyoxigraph as ox

from kpyramid.ontology import names as n
from kpyramid.ontology.axioms import CHARACTERISTICS, Limits, find_limits
from kpyramid.ontology.importing.files import BASE_FILES, OutsideText
from kpyramid.ontology.literals import DATATYPES, parse_literal
from kpyramid.ontology.schema import Schema, find_nearest_common, read_schema, refuse, write_schema
from kpyramid.ontology.turtle import Graph, Node, Object, parse_turtle, walk

# One mapping of datatypes for all that an ontology states: ranges, restrictions, literals.

ANY, TEXT = n.RDFS + "Literal", n.XSD + "string"
"""The datatype of all values, and the default."""
SCHEMA_ORG = ("http://schema.org/", "https://schema.org/")
_TABLE = """
    xsd date dateTime dateTimeStamp
    xsd int short byte
    xsd nonNegativeInteger unsignedLong unsignedInt unsignedShort unsignedByte
    xsd integer negativeInteger nonPositiveInteger
    owl decimal real rational
    rdf string langString PlainLiteral XMLLiteral HTML JSON
    schema boolean Boolean
    schema date Date DateTime
    schema double Float
    schema integer Integer
    schema decimal Number
    schema string Text Time
    schema anyURI URL
"""
_SPACES = {"xsd": (n.XSD,), "owl": (n.OWL,), "rdf": (n.RDF,), "schema": SCHEMA_ORG}
_NEAREST = {base + "DataType": ANY for base in SCHEMA_ORG}
for _space, _nearest, *_names in map(str.split, _TABLE.strip().splitlines()):
    _NEAREST |= {b + name: n.XSD + _nearest for b in _SPACES[_space] for name in _names}
"""The datatype whose values can be checked and come nearest; any other is taken as a string."""
_WIDER = {"int": "long", "long": "integer", "integer": "decimal"}
_WIDER |= {"positiveInteger": "nonNegativeInteger", "nonNegativeInteger": "integer"}
_DAY_OF_TIME = re.compile(r"\s*(-?\d{4,}-\d\d-\d\d)T")
_RESTRICTED = tuple(n.OWL + name for name in ("someValuesFrom", "allValuesFrom", "onDataRange"))
_GIVEN = (n.OWL + "hasValue", n.OWL + "targetValue", n.RDF_FIRST)
"""Predicates of unnamed nodes whose literals are values of some property."""


def is_built_in(value: Object) -> bool:
    """Whether a node is a datatype of a standard."""
    return isinstance(value, ox.NamedNode) and (
        value.value in _NEAREST or value.value.startswith(n.XSD)
    )


def is_datatype(graph: Graph, value: Object) -> bool:
    """Whether a range is a datatype, named or not."""
    if isinstance(value, ox.NamedNode):
        if is_built_in(value) or value.value == ANY:
            return True
        if value.value.startswith(n.BUILT_IN):
            return False
    if not isinstance(value, ox.NamedNode | ox.BlankNode):
        return False
    if graph.find_types(value) & {n.RDFS + "Datatype", n.OWL + "DataRange"}:
        return True
    if graph.find(value, n.OWL + "onDatatype"):
        return True
    heads = (*graph.find(value, n.UNION_OF), *graph.find(value, n.OWL + "oneOf"))
    members = [member for head in heads for member in graph.list_members(head)]
    return any(
        isinstance(m, ox.Literal) or (isinstance(m, ox.NamedNode) and m.value.startswith(n.XSD))
        for m in members
    )


def choose_narrowest(datatypes: Iterable[str]) -> str | None:
    """The datatype whose values all of these allow; None if there is none."""
    wanted = {*datatypes} - {ANY} or {ANY}
    for start in sorted(wanted):
        name, above = start.removeprefix(n.XSD), {start}
        while name := _WIDER.get(name, ""):
            above.add(n.XSD + name)
        if wanted <= above:
            return start
    return None


class Datatypes:
    """The datatypes of one ontology, each with the checkable one that replaces it."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def find(self, value: Object, seen: frozenset[Object] = frozenset()) -> str:
        """The datatype itself if its values can be checked, else its base or the nearest one.

        That of what is made of several is the datatype of all values. `seen`: what it is part of.
        """
        if isinstance(value, ox.Literal):
            value = value.datatype
        if isinstance(value, ox.NamedNode):
            if value.value in DATATYPES:
                return value.value
            if value.value in _NEAREST:
                return _NEAREST[value.value]
        if not isinstance(value, ox.NamedNode | ox.BlankNode) or value in seen:
            return TEXT
        made = {self.find(part, seen | {value}) for part in self._list_parts(value)}
        return TEXT if not made else made.pop() if len(made) == 1 else ANY

    def _list_parts(self, value: ox.NamedNode | ox.BlankNode) -> list[Object]:
        """The datatypes that one is composed of; all values for a complement."""
        parts = self._graph.find(value, n.OWL + "onDatatype")
        parts += self._graph.find(value, n.EQUIVALENT_CLASS)
        for kind in (n.OWL + "oneOf", n.UNION_OF, n.INTERSECTION_OF):
            for head in self._graph.find(value, kind):
                parts += self._graph.list_members(head)
        if self._graph.find(value, n.OWL + "datatypeComplementOf"):
            parts.append(ox.NamedNode(ANY))
        return parts

    def map_all(self) -> Iterator[tuple[Node, str, Object, Object]]:
        """Subject, predicate and value wherever an unchecked datatype is named.

        Each with its replacement.
        """
        values = {*self._graph.find_typed(n.DATATYPE_PROPERTY)}
        named = {ox.NamedNode(iri) for iri in self._graph.find_typed(n.RDFS + "Datatype")}
        ranges = (each for iri in values for each in self._graph.find(iri, n.RANGE))
        named |= {each for each in ranges if isinstance(each, ox.NamedNode)}
        undefined = {each for each in named if not self._list_parts(each)}
        for t in self._graph:
            value: Object = t.object
            if isinstance(value, ox.Literal):
                is_given = t.predicate.value in _GIVEN or t.predicate.value.startswith(n.XSD)
                if t.predicate.value in values or (
                    is_given and isinstance(t.subject, ox.BlankNode)
                ):
                    value = self._map_literal(value)
            elif t.predicate.value != n.RDF_TYPE and (is_built_in(value) or value in undefined):
                value = ox.NamedNode(self.find(value))
            if value != t.object and not isinstance(t.subject, ox.Triple):
                yield t.subject, t.predicate.value, t.object, value

    def _map_literal(self, literal: ox.Literal) -> ox.Literal:
        datatype = ox.NamedNode(self.find(literal))
        if datatype == literal.datatype:
            return literal
        day = _DAY_OF_TIME.match(literal.value)
        if datatype.value == n.XSD + "date" and day is None:
            return literal
        return ox.Literal(day[1] if day else literal.value, datatype=datatype)

    @cached_property
    def _used(self) -> dict[str, set[str]]:
        """The datatypes of each property's values in restrictions and individuals."""
        used: defaultdict[str, set[str]] = defaultdict(set)
        for t in self._graph:
            if isinstance(t.object, ox.Literal):
                used[t.predicate.value].add(self.find(t.object))
        for node in self._graph.list_subjects():
            for iri in self._graph.find_iris(node, n.OWL + "onProperty"):
                ranges = [v for p in _RESTRICTED for v in self._graph.find(node, p)]
                given = self._graph.find(node, n.OWL + "hasValue")
                used[iri] |= {self.find(v) for v in (*ranges, *given)}
            for iri in self._graph.find_iris(node, n.SUBPROPERTY):
                used[iri].add(ANY)
        return used

    def assume(self, iri: str) -> str:
        """A range for a property without: of all values where it groups others or has several.

        Else the datatype of the values that the file gives it, else a string.
        """
        used = self._used.get(iri, {TEXT})
        return next(iter(used)) if len(used) == 1 else ANY


# A parsed ontology becomes one that a build can read; every change is named.

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W\d_]+")


def derive_label(iri: str) -> str:
    """The words of an IRI's last part: `…#hasLegalPerson` gives "has legal person"."""
    local = unquote(re.split(r"[#/:]", iri.rstrip("#/"))[-1])
    parts = _PARTS.findall(local)
    words = [p if len(p) > 1 and p.isupper() else p.lower() for p in parts]
    return " ".join(words) or local or iri


@dataclass(frozen=True, slots=True)
class Change:
    """One change by the import: its kind, its subject, and details."""

    kind: str
    subject: str
    detail: str


@dataclass(frozen=True, slots=True)
class Imported:
    """A schema to review, every change that the import made, and SHACL for what OWL's ends lack."""

    schema: Schema
    form: str
    changes: tuple[Change, ...]
    shapes: str = ""


def import_ontology(read: OutsideText, *, name: str, source: str) -> Imported:
    """The schema that the statements declare, completed where a build needs more.

    `name` is that of the file, for a base if the ontology states none.

    Raises:
        InputError: it declares no term, or contradicts itself; every problem is named.
    """
    graph = Graph(read.triples)
    base = f"{BASE_FILES}{quote(name, safe='')}"
    terms = _Terms(graph)
    if any(f"<{base}" in str(t.subject) for t in read.triples):
        terms.note("base assumed", base, "the file has relative IRIs")
    terms.remove_code()
    terms.drop_built_in()
    terms.leave_out_deprecated()
    terms.declare_classes()
    terms.settle_kinds()
    terms.map_datatypes()
    terms.declare_stubs()
    ends = _Ends(graph)
    ends.mend_all()
    classes = graph.find_typed(n.CLASS)
    properties = graph.find_typed(_OBJECT, _DATA)
    made, problems = [*terms.made, *ends.made], [*terms.problems, *ends.problems]
    for iri in sorted({*classes} & {*properties}):
        problems.append(f"<{iri}>: a class and a property; give one of them another IRI")
    if not classes and not properties:
        problems.append(
            "it declares no class and no property; where it has individuals only, "
            "this is data: import the ontology that declares their classes"
        )
    words = _Words(graph)
    words.mend_header([*classes, *properties], base)
    for iri in [*classes, *properties]:
        words.mend(iri)
    refuse(problems, source, "by hand")
    made += words.made + _leave_out_individuals(graph, {*classes, *properties})
    schema = read_schema(graph, source=source)
    return Imported(schema, read.form, tuple(made), _write_shapes(ends.bounds, schema))


def _leave_out_individuals(graph: Graph, terms: Set[str]) -> list[Change]:
    """Leaves out what is stated of individuals that no axiom names: it is data with a source."""
    individuals = {*graph.find_typed(n.NAMED_INDIVIDUAL, *terms)} - terms
    axioms = (t.object for t in graph if isinstance(t.subject, ox.BlankNode))
    gone = individuals - {value.value for value in axioms if isinstance(value, ox.NamedNode)}
    for iri in gone:
        for predicate in graph.list_predicates(iri):
            graph.remove(iri, predicate)
    why = "what is stated of them is data: NAME.individuals.nq has it, for the corpus"
    return [Change("individuals apart", f"{len(gone)} individuals", why)] if gone else []


class _Conversion:
    """A graph under conversion: the changes `made`, and the `problems` left to a person."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.made: list[Change] = []
        self.problems: list[str] = []

    def note(self, kind: str, subject: object, detail: str) -> None:
        """Records a change; a subject that is text is an IRI."""
        shown = f"<{subject}>" if isinstance(subject, str) else str(subject)
        self.made.append(Change(kind, shown, detail))


# Terms: the declarations of the ontology, by kind.

_OBJECT, _DATA = n.OBJECT_PROPERTY, n.DATATYPE_PROPERTY
_CLASSES = {n.CLASS, n.RDFS + "Class"}
_ONLY_OBJECTS = CHARACTERISTICS - {n.FUNCTIONAL_PROPERTY}
_BUILT_IN_KINDS = (
    *(*_CLASSES, n.RDF + "Property", _OBJECT, _DATA),
    *(n.ANNOTATION_PROPERTY, n.RDFS + "Datatype"),
)
_OBSOLETE = "http://www.geneontology.org/formats/oboInOwl#ObsoleteClass"


def _list_included(graph: Graph, iri: str, predicate: str) -> list[Object]:
    """The ends by schema.org's domainIncludes or rangeIncludes, any of which will do."""
    name = f"{_name(predicate)}Includes"
    iris = {v for base in SCHEMA_ORG for v in graph.find_iris(iri, base + name)}
    return [ox.NamedNode(iri) for iri in sorted(iris)]


class _Terms(_Conversion):
    def remove_code(self) -> None:
        """Removes the annotations that name Python modules for owlready2."""
        for subject in self._graph.list_subjects():
            for predicate in self._graph.list_predicates(subject):
                if predicate.startswith(n.OWLREADY):
                    named = ", ".join(map(str, self._graph.find(subject, predicate)))
                    self._graph.remove(subject, predicate)
                    detail = f"owlready2 would run the Python that {named} names: <{predicate}>"
                    self.note("code removed", subject, detail)

    def drop_built_in(self) -> None:
        """Drops the declarations of terms of OWL and of datatypes."""
        for iri in self._graph.find_typed(*_BUILT_IN_KINDS):
            stays = iri.startswith(n.BUILT_IN)
            if stays or is_built_in(ox.NamedNode(iri)):
                for predicate in [n.RDF_TYPE] if stays else self._graph.list_predicates(iri):
                    self._graph.remove(iri, predicate)
                self.note("declaration dropped", iri, "the standards have it built in")

    def leave_out_deprecated(self) -> None:
        """Leaves out deprecated classes, properties and individuals."""
        graph = self._graph
        gone = {*graph.find_typed(n.OWL + "DeprecatedClass", n.OWL + "DeprecatedProperty")}
        classes = {*graph.find_typed(*_CLASSES)}
        for subject in graph.list_subjects():
            if isinstance(subject, ox.NamedNode) and n.ONTOLOGY not in graph.find_types(subject):
                is_obsolete = _OBSOLETE in graph.find_iris(subject, n.SUBCLASS) or any(
                    graph.find(subject, base + "supersededBy") for base in SCHEMA_ORG
                )
                if is_obsolete or graph.is_true(subject, n.OWL + "deprecated"):
                    gone.add(subject.value)
        gone |= classes & {_OBSOLETE}
        if classes and classes <= gone:  # the file as a whole gave way to another
            detail = "they have all its classes"
            self.made.append(Change("deprecated terms stay", f"{len(gone)} terms", detail))
            return
        leave_out(graph, gone)
        for iri in sorted(gone):
            self.note("term left out", iri, "it is deprecated")

    def declare_classes(self) -> None:
        """Declares the classes of RDFS, or the concepts of a file that is only a thesaurus."""
        graph = self._graph
        kinds = {kind for node in graph.list_subjects() for kind in graph.find_types(node)}
        alone = all(kind.startswith(n.SKOS) or kind == n.ONTOLOGY for kind in kinds)
        kind = n.SKOS + "Concept" if alone else n.RDFS + "Class"
        for iri in graph.find_typed(kind):
            graph.remove(iri, n.RDF_TYPE, ox.NamedNode(kind))
            if n.CLASS not in graph.find_types(iri):
                self.declare_class(iri, f"<{kind}> is read as an owl:Class")
            for above in graph.find_iris(iri, n.SKOS + "broader"):
                graph.add(iri, n.SUBCLASS, ox.NamedNode(above))
            for below in graph.find_iris(iri, n.SKOS + "narrower"):
                graph.add(below, n.SUBCLASS, ox.NamedNode(iri))

    def settle_kinds(self) -> None:
        """Makes each property either an object or a datatype property."""
        graph = self._graph
        object_only = {*graph.find_typed(*_ONLY_OBJECTS)}
        with_literals = {t.predicate.value for t in graph if isinstance(t.object, ox.Literal)}
        declared = graph.find_typed(_OBJECT, _DATA, n.RDF + "Property", n.FUNCTIONAL_PROPERTY)
        for iri in sorted({*declared, *object_only}):
            stated = graph.find_types(iri)
            kinds = stated & {_OBJECT, _DATA}
            is_annotation = not kinds and n.ANNOTATION_PROPERTY in stated
            if is_annotation or iri.startswith((n.RDF, n.RDFS, n.OWL)):
                continue
            shown = self._find_kinds(iri)
            if len(shown) > 1:
                ranges = ", ".join(str(v) for v in graph.find(iri, n.RANGE))
                self.problems.append(
                    f"<{iri}>: its ranges {ranges} are a class and a datatype, which share no "
                    "value; remove one of them"
                )
                graph.remove(iri, n.RANGE)  # the ontology is refused; one message is enough
                continue
            if not shown and len(kinds) > 1:
                self.problems.append(
                    f"<{iri}>: an object and a datatype property, and no range tells which; "
                    "remove one"
                )
                continue
            is_data = iri in with_literals and iri not in object_only
            wanted = next(iter(shown or kinds), _DATA if is_data else _OBJECT)
            for characteristic in sorted(stated & _ONLY_OBJECTS) if wanted == _DATA else ():
                graph.remove(iri, n.RDF_TYPE, ox.NamedNode(characteristic))
                detail = f"<{characteristic}>: OWL allows it of object properties only"
                self.note("characteristic dropped", iri, detail)
            if kinds == {wanted}:
                continue
            for kind in kinds:
                graph.remove(iri, n.RDF_TYPE, ox.NamedNode(kind))
            graph.add(iri, n.RDF_TYPE, ox.NamedNode(wanted))
            name = f"owl:{_name(wanted)}"
            if kinds:
                was = " and ".join(sorted(map(_name, kinds)))
                self.note("kind settled", iri, f"it was {was}; its range says {name}")
            else:
                self.note("property declared", iri, f"as {name}")

    def _find_kinds(self, iri: str) -> set[str]:
        """The kinds of property that its ranges imply: none, one or both."""
        kinds = set()
        stated = self._graph.find(iri, n.RANGE)
        for value in stated or _list_included(self._graph, iri, n.RANGE):
            if is_datatype(self._graph, value):
                kinds.add(_DATA)
            elif not isinstance(value, ox.NamedNode) or self._graph.find_types(value) & _CLASSES:
                kinds.add(_OBJECT)
        return kinds if stated or _OBJECT not in kinds else {_OBJECT}

    def map_datatypes(self) -> None:
        """Replaces the datatypes whose values cannot be checked, wherever the file names one."""
        places: Counter[tuple[str, str]] = Counter()
        for subject, predicate, old, new in [*Datatypes(self._graph).map_all()]:
            self._graph.remove(subject, predicate, old)
            self._graph.add(subject, predicate, new)
            was, now = (str(v.datatype if isinstance(v, ox.Literal) else v) for v in (old, new))
            if predicate == n.RANGE and isinstance(subject, ox.NamedNode):
                self.note("datatype replaced", subject, f"{now} for {was}")
            else:
                places[was, now] += 1
        for (was, now), count in sorted(places.items()):
            detail = f"{now}, in {count} restrictions and values"
            self.made.append(Change("datatype mapped", was, detail))

    def declare_stubs(self) -> None:
        """Declares the classes of other files that terms refer to: imports are not followed."""
        graph = self._graph
        known = {*graph.find_typed(n.CLASS), n.THING}
        uses = [(iri, n.SUBCLASS, "superclass") for iri in sorted(known - {n.THING})]
        objects = graph.find_typed(_OBJECT)
        uses += [(iri, end, _name(end)) for iri in objects for end in (n.DOMAIN, n.RANGE)]
        uses += [(iri, n.DOMAIN, _name(n.DOMAIN)) for iri in graph.find_typed(_DATA)]
        for iri, predicate, use in uses:
            for target in graph.find_iris(iri, predicate):
                if target in known:
                    continue
                if not target.startswith(n.BUILT_IN):
                    known.add(target)
                    self.declare_class(target, f"{use} of <{iri}>, but not declared in this file")
                elif predicate == n.SUBCLASS:
                    graph.remove(iri, n.SUBCLASS, ox.NamedNode(target))
                    self.note("superclass dropped", iri, f"<{target}> is built in")

    def declare_class(self, iri: str, why: str) -> None:
        """States that a term is a class."""
        self._graph.add(iri, n.RDF_TYPE, ox.NamedNode(n.CLASS))
        self.note("class declared", iri, why)


def _name(iri: str) -> str:
    return iri.rpartition("#")[2]


def leave_out(graph: Graph, iris: Iterable[str]) -> None:
    """Removes terms and all axioms that name one; lists of disjoint classes only get shorter.

    The remaining statements follow from the whole.
    """
    gone: set[Object] = {ox.NamedNode(iri) for iri in iris}
    for subject in graph.list_subjects() if gone else ():
        for head in graph.find(subject, n.MEMBERS):
            members = graph.list_members(head)
            stay = [member for member in members if member not in gone]
            if len(stay) < len(members):
                graph.remove(subject, n.MEMBERS)
                graph.add(subject, n.MEMBERS, graph.add_list(stay))
    users: defaultdict[Object, list[Object]] = defaultdict(list)
    for t in graph:
        if isinstance(t.subject, ox.BlankNode):
            users[t.object].append(t.subject)
            users[t.predicate].append(t.subject)
    gone.update(walk(gone, lambda term: users.get(term, ())))
    for t in [*graph] if gone else ():
        if t.subject in gone or t.object in gone or t.predicate in gone:
            graph.remove(t.subject, t.predicate.value, t.object)


# One domain and one range for each property, and at most one inverse.


class _Ends(_Conversion):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._classes = {*graph.find_typed(n.CLASS)}
        self._objects = {*graph.find_typed(_OBJECT)}
        self._properties = sorted({*self._objects, *graph.find_typed(_DATA)})
        self._datatypes = Datatypes(graph)
        self.bounds: list[_Bound] = []

    def mend_all(self) -> None:
        """Gives each property exactly one domain and one range."""
        for iri in self._properties:
            self._mend_inverse(iri)
        # Looked up before anything is filled in: what was assumed must not be inherited.
        inherited = {
            (iri, predicate): self._find_inherited(iri, predicate)
            for iri in self._properties
            for predicate in (n.DOMAIN, n.RANGE)
            if not self._graph.find(iri, predicate)
        }
        for iri in self._properties:
            for predicate in (n.DOMAIN, n.RANGE):
                self._mend(iri, predicate, inherited.get((iri, predicate)))

    def _mend_inverse(self, iri: str) -> None:
        inverses = self._graph.find_iris(iri, n.INVERSE_OF)
        usable = [value for value in inverses if value in self._objects and iri in self._objects]
        for value in inverses:
            if value not in usable[:1]:
                why = "another one is kept" if value in usable else "it is no object property here"
                self._graph.remove(iri, n.INVERSE_OF, ox.NamedNode(value))
                self.note("inverse dropped", iri, f"<{value}>: {why}")

    @cached_property
    def _limits(self) -> Limits:
        return find_limits(self._graph)

    @cached_property
    def _equal(self) -> Mapping[str, Set[str]]:
        equal: defaultdict[str, set[str]] = defaultdict(set)
        for node in self._graph.list_subjects():
            for equivalent in self._graph.find_iris(node, n.OWL + "equivalentProperty"):
                if isinstance(node, ox.NamedNode):
                    equal[node.value].add(equivalent)
                    equal[equivalent].add(node.value)
        return equal

    def _find_inherited(self, iri: str, end: str) -> tuple[str, str] | None:
        """The nearest end of super-properties, equivalents or inverses, and its property."""

        def step(place: tuple[str, str]) -> list[tuple[str, str]]:
            current, wanted = place
            opposite = n.RANGE if wanted == n.DOMAIN else n.DOMAIN
            steps = [(i, opposite) for i in self._graph.find_iris(current, n.INVERSE_OF)]
            above = self._graph.find_iris(current, n.SUBPROPERTY)
            return steps + [(s, wanted) for s in (*above, *sorted(self._equal.get(current, ())))]

        for current, wanted in walk([(iri, end)], step):
            ends = self._graph.find(current, wanted)
            if current != iri and len(ends) == 1 and isinstance(ends[0], ox.NamedNode):
                return ends[0].value, current
        return None

    def _mend(self, iri: str, predicate: str, inherited: tuple[str, str] | None) -> None:
        """Gives a property exactly one end: the stated, inherited, included, or widest one."""
        is_data = predicate == n.RANGE and iri not in self._objects
        stated = self._graph.find(iri, predicate)
        if stated and is_data:
            end = self._choose_datatype(iri, stated)
        elif stated:
            end = self._choose_class(iri, predicate, stated)
        else:
            if inherited and self._fits(inherited[0], is_data=is_data):
                end, why = inherited[0], f"from <{inherited[1]}>"
                end = self._datatypes.find(ox.NamedNode(end)) if is_data else end
            elif included := self._choose_included(iri, predicate, is_data=is_data):
                end, why = included, f"by schema:{_name(predicate)}Includes"
            else:
                end = self._datatypes.assume(iri) if is_data else n.THING
                why = "none was stated"
            self.note(f"{_name(predicate)} added", iri, f"<{end}>, {why}")
        if stated != [ox.NamedNode(end)]:
            self._graph.remove(iri, predicate)
            self._graph.add(iri, predicate, ox.NamedNode(end))

    def _list_union(self, value: Object) -> list[Object]:
        """The members of a union whose members are all classes with a name."""
        heads = self._graph.find(value, n.UNION_OF) if isinstance(value, ox.BlankNode) else []
        members = [member for head in heads for member in self._graph.list_members(head)]
        known = (isinstance(m, ox.NamedNode) and m.value in self._classes for m in members)
        return members if all(known) else []

    def _choose_included(self, iri: str, predicate: str, *, is_data: bool) -> str | None:
        ends = _list_included(self._graph, iri, predicate)
        if is_data:
            datatypes = {self._datatypes.find(v) for v in ends if is_datatype(self._graph, v)}
            return datatypes.pop() if len(datatypes) == 1 else ANY if datatypes else None
        classes = [
            v.value for v in ends if isinstance(v, ox.NamedNode) and v.value in self._classes
        ]
        return self._find_common(classes) if classes else None

    def _fits(self, end: str, *, is_data: bool) -> bool:
        datatype = is_datatype(self._graph, ox.NamedNode(end))
        return datatype if is_data else end in self._classes or end == n.THING

    def _choose_datatype(self, iri: str, stated: Sequence[Object]) -> str:
        chosen = sorted({self._datatypes.find(value) for value in stated})
        narrowest = choose_narrowest(chosen)
        if narrowest is None:
            self.problems.append(
                f"<{iri}>: its ranges {', '.join(chosen)} are several datatypes; remove all but one"
            )
        end = narrowest or chosen[0]
        if stated != [ox.NamedNode(end)]:
            facets = [f for value in stated for f in self._list_facets(value, end)]
            self.bounds += [(iri, n.RANGE, *facet) for facet in facets]
            shown = ", ".join(sorted(map(self._show, stated)))
            noted = f"; kept as shapes: {', '.join(sorted({f for f, _ in facets}))}"
            self.note("datatype replaced", iri, f"<{end}> for {shown}{noted if facets else ''}")
        return end

    def _list_facets(self, value: Object, end: str) -> Iterator[tuple[str, tuple[Object, ...]]]:
        """The limits of a datatype beyond those of the one that replaces it, as SHACL has them."""
        graph, steps = self._graph, (n.EQUIVALENT_CLASS, n.OWL + "onDatatype")

        def step(node: Node) -> list[Node]:
            return [v for p in steps for v in graph.find(node, p) if isinstance(v, Node)]

        def cast(value: Object) -> ox.Literal:
            text = value.value if isinstance(value, ox.Literal) else str(value)
            return ox.Literal(parse_literal(text, end) or text, datatype=ox.NamedNode(end))

        for node in walk([value], step) if isinstance(value, Node) else ():
            for head in graph.find(node, n.OWL + "oneOf"):
                yield "in", tuple(map(cast, graph.list_members(head)))
            parts = (p for h in graph.find(node, _FACETS) for p in graph.list_members(h))
            for part in (p for p in parts if isinstance(p, Node)):
                for facet in graph.list_predicates(part):
                    limits = [v for v in graph.find(part, facet) if isinstance(v, ox.Literal)]
                    name = facet.removeprefix(n.XSD)
                    for limit in limits if name in _SAID else ():
                        if name == "pattern" and _is_pattern(limit.value):
                            yield name, (ox.Literal(f"^(?:{limit.value})$"),)
                        elif name.endswith("Length") and limit.value.isdecimal():
                            yield name, (ox.Literal(int(limit.value)),)
                        elif name.endswith("clusive"):
                            yield name, (cast(limit),)

    def _choose_class(self, iri: str, predicate: str, stated: Sequence[Object]) -> str:
        if stated == [ox.NamedNode(n.THING)]:
            return n.THING
        candidates: dict[str, None] = {}
        members: set[str] = set()
        for value in stated:
            named, inside = self._read_class(value)
            candidates |= dict.fromkeys(named)
            members |= inside
        narrow = [c for c in candidates if c != n.THING] or [n.THING]
        name = _name(predicate)
        for a, b in combinations(narrow, 2):
            if self._limits.are_disjoint(self._climb(a), self._climb(b)):
                self.problems.append(
                    f"<{iri}>: its {name}s <{a}> and <{b}> are stated disjoint, so nothing "
                    "could ever be its value; remove one"
                )
                break
        most_special = [c for c in narrow if all(o in self._climb(c) for o in narrow)]
        end = min(most_special) if most_special else self._find_common(narrow)
        if stated != [ox.NamedNode(end)]:
            includes = f"https://schema.org/{name}Includes"
            left = sorted((members or {*narrow}) - {end, n.THING})
            for member in left:
                self._graph.add(iri, includes, ox.NamedNode(member))
            shown = ", ".join(sorted(map(self._show, stated)))
            noted = f"; kept as schema:{name}Includes: {', '.join(left)}" if left else ""
            unions = [
                tuple(u)
                for v in stated
                if (u := self._list_union(v)) and not {*u} & {ox.NamedNode(end)}
            ]
            self.bounds += [(iri, predicate, "class", union) for union in unions]
            noted += ", and as shapes" if unions else ""
            self.note(f"{name} settled", iri, f"<{end}> for {shown}{noted}")
        return end

    def _read_class(self, value: Object) -> tuple[list[str], set[str]]:
        """The classes above all instances of a class expression, and the classes it names."""
        if isinstance(value, ox.NamedNode):
            return [value.value if value.value in self._classes else n.THING], set()
        if not isinstance(value, ox.BlankNode):
            return [n.THING], set()
        for predicate in (n.UNION_OF, n.INTERSECTION_OF):
            for head in self._graph.find(value, predicate):
                members = self._graph.list_members(head)
                named = [m.value for m in members if isinstance(m, ox.NamedNode)]
                known = [m for m in named if m in self._classes]
                if predicate == n.INTERSECTION_OF:
                    return known or [n.THING], set()
                if len(known) < len(members):
                    return [n.THING], {*known}
                return [self._find_common(named)], {*named}
        return [n.THING], set()

    def _list_parents(self, iri: str) -> list[str]:
        parents = self._graph.find_iris(iri, n.SUBCLASS)
        return [parent for parent in parents if parent in self._classes]

    def _climb(self, iri: str) -> Set[str]:
        """A class and those above it."""
        return walk([iri], self._list_parents).keys()

    def _find_common(self, classes: Sequence[str]) -> str:
        """The nearest class above all of these, owl:Thing if there is none."""
        return find_nearest_common(classes, self._list_parents) or n.THING

    def _show(self, value: Object) -> str:
        if not isinstance(value, ox.BlankNode):
            return str(value)
        for predicate, word in ((n.UNION_OF, "union"), (n.INTERSECTION_OF, "intersection")):
            for head in self._graph.find(value, predicate):
                named = ", ".join(map(str, self._graph.list_members(head)))
                return f"the {word} of {named}"
        return "an unnamed class"


# What one domain and one range cannot say, as SHACL.

_FACETS = n.OWL + "withRestrictions"
_SAID = {
    "class": "of class",
    "in": "one of",
    "minInclusive": "at least",
    "maxInclusive": "at most",
    "minExclusive": "above",
    "maxExclusive": "below",
    "minLength": "of a length of at least",
    "maxLength": "of a length of at most",
    "pattern": "of the form",
}
"""SHACL's components in words."""
_Bound = tuple[str, str, str, tuple[Object, ...]]
"""The property, its end, the SHACL component, and its value, the values of a list or classes."""


def _is_pattern(text: str) -> bool:
    """Whether an expression of XML Schema is one here, too."""
    try:
        re.compile(text)
    except re.error:
        return False
    return True


def _write_shapes(bounds: Sequence[_Bound], schema: Schema) -> str:
    """Shapes in Turtle: unions of classes, enumerated values, and limits of values."""
    labels = {c.iri: c.label for c in schema.classes}
    lines = ["@prefix sh: <http://www.w3.org/ns/shacl#> .\n"] if bounds else []
    for number, (iri, end, component, values) in enumerate(bounds):
        texts = [v.value for v in values if not isinstance(v, ox.Triple)]
        named = ", ".join(f"“{labels.get(text, text)}”" for text in texts)
        whose = "what has" if end == n.DOMAIN else "a value of"
        says = f"sh:{component} {values[0]}"
        if component == "in":
            says = f"sh:in ( {' '.join(map(str, values))} )"
        elif component == "class":
            says = f"sh:or ( {' '.join(f'[ sh:class {v} ]' for v in values)} )"
        path = f"sh:path <{iri}> ; " if end == n.RANGE else ""
        kind = "PropertyShape" if path else "NodeShape"
        label = schema.property_by_iri[iri].label
        message = ox.Literal(f"{whose} “{label}” must be {_SAID[component]} {named}")
        lines.append(
            f"<urn:kpyramid:import:{number}> a sh:{kind} ; sh:targetSubjectsOf <{iri}> ; {path}"
            f"{says} ; sh:message {message} .\n"
        )
    return "".join(lines)


# The header, labels, synonyms and definitions.

_COMMENTS = (
    n.SKOS + "definition",
    "http://purl.obolibrary.org/obo/IAO_0000115",
    n.DCT + "description",
    "http://purl.org/dc/elements/1.1/description",
)
_LABELS = (n.LABEL, n.PREF_LABEL)
_SYNONYMS = (
    n.PREF_LABEL,
    "http://www.geneontology.org/formats/oboInOwl#hasExactSynonym",
    "https://www.omg.org/spec/Commons/AnnotationVocabulary/synonym",
)


class _Words(_Conversion):
    def mend_header(self, iris: Iterable[str], base: str) -> None:
        """Leaves one header, with an IRI, without imports. `base`: if there are no terms."""
        graph, kind = self._graph, ox.NamedNode(n.ONTOLOGY)
        for subject in graph.list_subjects():
            if isinstance(subject, ox.BlankNode) and kind in graph.find(subject, n.RDF_TYPE):
                graph.remove(subject, n.RDF_TYPE, kind)
                self.note("header dropped", subject, "it has no IRI")
        spaces = Counter(re.sub(r"[^#/]*$", "", iri) for iri in iris)
        commonest = max(sorted(spaces), key=lambda space: spaces[space], default="")
        headers = graph.find_typed(n.ONTOLOGY)
        if not headers:
            headers = [commonest.removesuffix("#") or base]
            graph.add(headers[0], n.RDF_TYPE, kind)
            self.note("header added", headers[0], "no owl:Ontology was stated")
        main = [h for h in headers if h.rstrip("#/") == commonest.rstrip("#/")]
        chosen = (main or headers)[0]
        for header in headers:
            if header != chosen:
                graph.remove(header, n.RDF_TYPE, kind)
                self.note("header dropped", header, f"<{chosen}> is the ontology's own")
            for imported in graph.find(header, n.IMPORTS):
                graph.remove(header, n.IMPORTS, imported)
                graph.add(header, n.RDFS + "seeAlso", imported)
                detail = "nothing is fetched; it is kept as rdfs:seeAlso"
                self.note("import not followed", imported, detail)

    @cached_property
    def _languages(self) -> list[str]:
        """The languages of labels, the most frequent first."""
        counts = Counter(
            t.object.language or ""
            for t in self._graph
            if t.predicate.value in _LABELS and isinstance(t.object, ox.Literal)
        )
        return sorted(counts, key=lambda language: (-counts[language], language))

    def _find_label(self, iri: str) -> tuple[str, str]:
        """A label for a term without an rdfs:label in English, and its origin."""
        if stated := self._graph.find_texts(iri, n.PREF_LABEL):
            return stated[0], "its skos:prefLabel"
        texts = [v for p in _LABELS for v in self._graph.find(iri, p) if isinstance(v, ox.Literal)]
        known = [
            (self._languages.index(v.language or ""), v.value, v.language)
            for v in texts
            if v.value.strip()
        ]
        if not known:
            return derive_label(iri), "its name"
        _, text, language = min(known, key=lambda each: each[:2])
        return text, f"its label in the language {language}"

    def mend(self, iri: str) -> None:
        """Gives a term a label, and its synonyms and definition where OWL tools look for them."""
        graph = self._graph
        labels = graph.find_texts(iri, n.LABEL)
        synonyms = {text for predicate in _SYNONYMS for text in graph.find_texts(iri, predicate)}
        if not labels:
            label, came = self._find_label(iri)
            if label not in graph.find_texts(iri, n.PREF_LABEL) and not re.search(r"\d", iri):
                synonyms.add(derive_label(iri))  # names of IRIs are English more often than not
            labels = [label]
            graph.add(iri, n.LABEL, ox.Literal(label, language="en"))
            self.note("label added", iri, f'"{label}", from {came}')
        for text in sorted(synonyms - {*labels, *graph.find_texts(iri, n.ALT_LABEL)}):
            graph.add(iri, n.ALT_LABEL, ox.Literal(text, language="en"))
            self.note("synonym added", iri, f'"{text}"')
        stated = [(p, text) for p in _COMMENTS for text in graph.find_texts(iri, p)[:1]]
        if stated and not graph.find_texts(iri, n.COMMENT):
            graph.add(iri, n.COMMENT, ox.Literal(stated[0][1], language="en"))
            self.note("comment added", iri, f"from <{stated[0][0]}>")


# Classes that can have no instance.


def leave_out_empty(imported: Imported, empty: Mapping[str, str], *, source: str) -> Imported:
    """The import without the classes that can have no instance, and what depends on them.

    `empty`: the reason for each, by IRI. Dependent are the properties with one as domain or range,
    and the axioms that name any of these.

    Raises:
        InputError: no class is left.
    """
    made = [
        Change("class left out", f"<{iri}>", f"it can have no instance: {why}".rstrip(": "))
        for iri, why in sorted(empty.items())
    ]
    gone = {*empty}
    for prop in imported.schema.properties:
        if ends := {prop.domain, prop.range} & empty.keys():
            gone.add(prop.iri)
            why = f"<{min(ends)}>, its domain or range, can have no instance"
            made.append(Change("property left out", f"<{prop.iri}>", why))
    graph = Graph(parse_turtle(write_schema(imported.schema), source=source))
    leave_out(graph, gone)
    schema = read_schema(graph, source=source)
    return replace(imported, schema=schema, changes=(*imported.changes, *made))
