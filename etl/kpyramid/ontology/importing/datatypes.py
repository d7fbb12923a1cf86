"""One mapping of datatypes for all that an ontology states: ranges, restrictions, literals."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

import pyoxigraph as ox

from kpyramid.ontology import names as n
from kpyramid.ontology.literals import DATATYPES
from kpyramid.ontology.turtle import Graph, Node, Object

ANY, TEXT = n.RDFS + "Literal", n.XSD + "string"
"""The datatype of all values, and that of what has no nearer one."""
SCHEMA_ORG = ("http://schema.org/", "https://schema.org/")
_SAID = """
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
for _space, _nearest, *_names in map(str.split, _SAID.strip().splitlines()):
    _NEAREST |= {b + name: n.XSD + _nearest for b in _SPACES[_space] for name in _names}
"""The datatype whose values can be checked and come nearest; any other is taken as a string."""
_WIDER = {"int": "long", "long": "integer", "integer": "decimal"}
_WIDER |= {"positiveInteger": "nonNegativeInteger", "nonNegativeInteger": "integer"}
_DAY_OF_TIME = re.compile(r"\s*(-?\d{4,}-\d\d-\d\d)T")
_RESTRICTED = tuple(n.OWL + name for name in ("someValuesFrom", "allValuesFrom", "onDataRange"))
_GIVEN = (n.OWL + "hasValue", n.OWL + "targetValue", n.RDF_FIRST)
"""Predicates of unnamed nodes whose literals are values of some property."""


def is_built_in(value: Object) -> bool:
    """Whether it is a datatype of a standard."""
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
    """The one of these whose values all others have too; None if there is none."""
    wanted = {*datatypes} - {ANY} or {ANY}
    for start in sorted(wanted):
        name, above = start.removeprefix(n.XSD), {start}
        while name := _WIDER.get(name, ""):
            above.add(n.XSD + name)
        if wanted <= above:
            return start
    return None


class Datatypes:
    """The datatypes of one ontology, each with the one that is checked in its place."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def find(self, value: Object) -> str:
        """The datatype itself if its values can be checked, else what it is made of, or nearest.

        That of what is made of several is the datatype of all values.
        """
        return self._find(value, frozenset())

    def _find(self, value: Object, seen: frozenset[Object]) -> str:
        if isinstance(value, ox.Literal):
            value = value.datatype
        if isinstance(value, ox.NamedNode):
            if value.value in DATATYPES:
                return value.value
            if value.value in _NEAREST:
                return _NEAREST[value.value]
        if not isinstance(value, ox.NamedNode | ox.BlankNode) or value in seen:
            return TEXT
        made = {self._find(part, seen | {value}) for part in self._list_parts(value)}
        return TEXT if not made else made.pop() if len(made) == 1 else ANY

    def _list_parts(self, value: ox.NamedNode | ox.BlankNode) -> list[Object]:
        """What a datatype is made of; of a complement all values."""
        parts = self._graph.find(value, n.OWL + "onDatatype")
        parts += self._graph.find(value, n.EQUIVALENT_CLASS)
        for kind in (n.OWL + "oneOf", n.UNION_OF, n.INTERSECTION_OF):
            for head in self._graph.find(value, kind):
                parts += self._graph.list_members(head)
        if self._graph.find(value, n.OWL + "datatypeComplementOf"):
            parts.append(ox.NamedNode(ANY))
        return parts

    def map_all(self) -> Iterator[tuple[Node, str, Object, Object]]:
        """Subject, predicate and value of what names a datatype that is not checked.

        With each the value that takes its place.
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
        """The datatypes of values that restrictions and individuals give each property."""
        used: defaultdict[str, set[str]] = defaultdict(set)
        for t in self._graph:
            if isinstance(t.object, ox.Literal):
                used[t.predicate.value].add(self.find(t.object))
        for node in self._graph.list_subjects():
            for iri in self._graph.find_iris(node, n.OWL + "onProperty"):
                ranges = [v for p in _RESTRICTED for v in self._graph.find(node, p)]
                given = self._graph.find(node, n.OWL + "hasValue")
                used[iri] |= {self.find(v) for v in (*ranges, *given)}
        for narrow in self._graph.list_subjects():
            for iri in self._graph.find_iris(narrow, n.SUBPROPERTY):
                used[iri].add(ANY)
        return used

    def assume(self, iri: str) -> str:
        """A range for a property without: of all values where it groups others or has several.

        Else the datatype of the values that the file gives it, else a string.
        """
        used = self._used.get(iri, {TEXT})
        return next(iter(used)) if len(used) == 1 else ANY
