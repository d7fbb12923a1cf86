"""Constraints on single values from shapes and axioms, so that each bad value is rejected.

The gate at publish validates the whole ontology by all of SHACL. Here are the constraints that a
single value can violate, in a form that is fast for every value.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property, lru_cache
from operator import ge, gt, le, lt
from typing import Any

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.schema import Schema
from kpyramid.ontology.turtle import Graph, Node, parse_turtle

SH = "http://www.w3.org/ns/shacl#"
_MESSAGE = SH + "message"
_BOUNDS: Mapping[str, Callable[[Any, Any], bool]] = {
    **{"minInclusive": ge, "maxInclusive": le, "minExclusive": gt, "maxExclusive": lt}
}
_NOT_PATTERN = "not pattern"
"""sh:not with one sh:pattern in it: XPath's expressions have no other way to exclude words."""
_EMPTY = ox.Store()
_READ = ("datatype", "class", "pattern", "minLength", "maxLength", "maxCount", "in", *_BOUNDS)


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint on the values of a property.

    `target`: the class that it constrains; None: all subjects of the property. `kind`: the name of
    the SHACL component, such as `pattern`, with its `values`: one, or those of sh:in; or `domain`:
    one of the classes, of which the subject has to be.
    """

    target: str | None
    property_iri: str
    kind: str
    values: tuple[str, ...]
    flags: str = ""
    message: str = ""

    def allows(self, literal: str, datatype: str) -> bool:
        """Whether a literal satisfies it; constraints on individuals are satisfied."""
        (first, *_) = self.values
        match self.kind:
            case "datatype":
                return datatype == first
            case "pattern" | "not pattern":
                return _search(first, self.flags, literal) == (self.kind == "pattern")
            case "minLength":
                return len(literal) >= int(first)
            case "maxLength":
                return len(literal) <= int(first)
            case "in":
                return literal in self.values
        if self.kind in _BOUNDS:
            try:
                return _BOUNDS[self.kind](Decimal(literal), Decimal(first))
            except InvalidOperation:  # dates: their canonical forms sort as they follow
                return _BOUNDS[self.kind](literal, first)
        return True

    def __str__(self) -> str:
        return self.message or f"sh:{self.kind} {' '.join(self.values)}"


@lru_cache(maxsize=2**16)
def _search(pattern: str, flags: str, text: str) -> bool | None:
    """Whether a text matches a pattern; None if SPARQL's REGEX, as SHACL uses it, refuses it.

    This engine is linear in the text's length, whatever the pattern; Python's may be exponential.
    """
    known = "".join(letter for letter in "imsx" if letter in flags)
    words = [ox.Literal(part) for part in (text, pattern, known)]
    rows = _EMPTY.query("SELECT (REGEX({}, {}, {}) AS ?found) {{}}".format(*words))
    assert isinstance(rows, ox.QuerySolutions)
    match = next(rows)["found"]
    return match.value == "true" if isinstance(match, ox.Literal) else None


def read_constraints(turtle: str, *, source: str) -> tuple[Constraint, ...]:
    """The constraints on single values in a text of SHACL shapes, sorted.

    Shapes with other targets, paths of several steps, logical combinations, and patterns that look
    ahead or behind are left to the validator; so are warnings.

    Raises:
        InputError: not Turtle, or a pattern that is none.
    """
    graph = Graph(parse_turtle(turtle, source=source))
    constraints = {c for shape in graph.list_subjects() for c in _read_shape(shape, graph, source)}
    return tuple(sorted(constraints, key=_order))


def _order(c: Constraint) -> tuple[object, ...]:
    return str(c.target), c.property_iri, c.kind, c.values, c.flags, c.message


def _read_shape(shape: Node, graph: Graph, source: str) -> Iterator[Constraint]:
    if _is_off(shape, graph):
        return
    for user in graph.find_iris(shape, SH + "targetSubjectsOf"):
        message = min(map(_text, graph.find(shape, _MESSAGE)), default="")
        for classes in _read_classes(shape, graph) if not graph.find(shape, SH + "path") else ():
            yield Constraint(None, user, "domain", classes, message=message)
    targets: list[str | None] = [*graph.find_iris(shape, SH + "targetClass")]
    if isinstance(shape, ox.NamedNode) and n.CLASS in graph.find_types(shape):
        targets.append(shape.value)
    users = graph.find_iris(shape, SH + "targetSubjectsOf")
    inside = [v for v in graph.find(shape, SH + "property") if isinstance(v, Node)]
    for part in (shape, *inside):
        path = next(iter(graph.find_iris(part, SH + "path")), None)
        severities = graph.find(part, SH + "severity")  # not the node shape's: each has its own
        if path is None or _is_off(part, graph):
            continue
        if severities and severities[0] != ox.NamedNode(SH + "Violation"):
            continue
        messages = graph.find(part, _MESSAGE) or graph.find(shape, _MESSAGE)
        message = min((_text(m) for m in messages), default="")
        flags = _read_flags(part, graph)
        whose = [*targets, *([None] if path in users else [])]
        demands = [
            (kind, tuple(map(_text, graph.list_members(v) if kind == "in" else [v])), flags)
            for kind in _READ
            for v in graph.find(part, SH + kind)
        ]
        demands += [("class", c, "") for c in _read_classes(part, graph) if len(c) > 1]
        for denied in graph.find(part, SH + "not"):
            if isinstance(denied, Node) and (
                {*graph.list_predicates(denied)} - {SH + "flags"} == {SH + "pattern"}
            ):
                pattern = _text(graph.find(denied, SH + "pattern")[0])
                demands.append((_NOT_PATTERN, (pattern,), _read_flags(denied, graph)))
        for kind, values, flags in demands:
            if _check(kind, values, flags, source):
                for target in whose:
                    yield Constraint(target, path, kind, values, flags, message)


def _read_classes(part: Node, graph: Graph) -> Iterator[tuple[str, ...]]:
    """The classes by sh:class, and those of each sh:or that has nothing else."""
    yield from ((iri,) for iri in graph.find_iris(part, SH + "class"))
    for head in graph.find(part, SH + "or"):
        members = [m for m in graph.list_members(head) if isinstance(m, Node)]
        if all(graph.list_predicates(m) == [SH + "class"] for m in members):
            yield tuple(iri for m in members for iri in graph.find_iris(m, SH + "class"))


def _read_flags(part: Node, graph: Graph) -> str:
    return "".join(_text(f) for f in graph.find(part, SH + "flags"))


def _is_off(part: Node, graph: Graph) -> bool:
    return graph.is_true(part, SH + "deactivated")


def _check(kind: str, values: tuple[str, ...], flags: str, source: str) -> bool:
    """Whether a constraint can be checked value by value."""
    try:
        if kind in ("pattern", _NOT_PATTERN):
            re.compile(values[0])
            return _search(values[0], flags, "") is not None
        elif kind in ("minLength", "maxLength", "maxCount"):
            int(values[0])
    except (re.error, ValueError) as e:
        raise InputError(f"{source}: sh:{kind} {values[0]!r}: {e}; correct the shape") from e
    return True


def _text(term: object) -> str:
    return term.value if isinstance(term, ox.NamedNode | ox.Literal) else str(term)


@dataclass(frozen=True)
class Rules:
    """A schema with the constraints of its shapes, checked value by value."""

    schema: Schema
    constraints: tuple[Constraint, ...] = ()

    @cached_property
    def _by_property(self) -> dict[str, list[Constraint]]:
        by_iri: dict[str, list[Constraint]] = {}
        for constraint in self.constraints:
            by_iri.setdefault(constraint.property_iri, []).append(constraint)
        return by_iri

    def _list(self, classes: Collection[str], property_iri: str) -> Iterator[Constraint]:
        for constraint in self._by_property.get(property_iri, ()):
            if constraint.target is None or any(
                self.schema.is_subclass(iri, constraint.target) for iri in classes
            ):
                yield constraint

    def max_values(
        self, classes: Collection[str], property_iri: str, *, inferred: bool = False
    ) -> int | None:
        """The most values of an individual of these classes; None for any number.

        Shapes do not count `inferred` values.
        """
        bounds = [self.schema.max_values(iri, property_iri) for iri in classes or (n.THING,)]
        demands = () if inferred else self._list(classes, property_iri)
        bounds += [int(c.values[0]) for c in demands if c.kind == "maxCount"]
        return min((bound for bound in bounds if bound is not None), default=None)

    def find_broken(
        self, classes: Collection[str], property_iri: str, literal: str, datatype: str
    ) -> Constraint | None:
        """The first constraint that a literal of an individual of these classes violates."""
        for constraint in self._list(classes, property_iri):
            fits = constraint.kind != "domain" or self._is_one(classes, constraint)
            if not (fits and constraint.allows(literal, datatype)):
                return constraint
        return None

    def _is_one(self, classes: Iterable[str], constraint: Constraint) -> bool:
        """Whether an individual of these classes is of one that a constraint names."""
        above = self.schema.is_subclass
        return any(above(iri, wanted) for iri in classes for wanted in constraint.values)

    def find_missing(
        self, classes: Collection[str], property_iri: str, value_classes: Iterable[str]
    ) -> Constraint | None:
        """The first class constraint that the individual at the other end violates."""
        value_iris = list(value_classes)
        for constraint in self._list(classes, property_iri):
            if constraint.kind == "datatype":
                return constraint
            of = {"class": value_iris, "domain": classes}.get(constraint.kind)
            if of is not None and not self._is_one(of, constraint):
                return constraint
        return None
