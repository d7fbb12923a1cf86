"""What shapes and axioms say of one value at a time, so that a bad one is refused by itself.

The gate at publish validates the whole ontology by all of SHACL. Here are the parts of it that a
single value can break, in a form that is quick to ask for every value.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property, lru_cache

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.axioms import walk_list
from kpyramid.ontology.schema import Schema

SH = "http://www.w3.org/ns/shacl#"
_MESSAGE = SH + "message"
_BOUNDS: Mapping[str, Callable[[Decimal | str, Decimal | str], bool]] = {
    "minInclusive": lambda value, bound: value >= bound,  # type: ignore[operator]
    "maxInclusive": lambda value, bound: value <= bound,  # type: ignore[operator]
    "minExclusive": lambda value, bound: value > bound,  # type: ignore[operator]
    "maxExclusive": lambda value, bound: value < bound,  # type: ignore[operator]
}
_NOT_PATTERN = "not pattern"
"""sh:not with one sh:pattern in it: XPath's expressions have no other way to exclude words."""
_EMPTY = ox.Store()
_READ = ("datatype", "class", "pattern", "minLength", "maxLength", "maxCount", "in", *_BOUNDS)


@dataclass(frozen=True, slots=True)
class Constraint:
    """One demand on the values of a property.

    `target`: the class whose individuals it is made of; None: whoever has the property. `kind`:
    the name of the SHACL component, such as `pattern`, with its `values`: one, or those of sh:in.
    """

    target: str | None
    property_iri: str
    kind: str
    values: tuple[str, ...]
    flags: str = ""
    message: str = ""

    def allows(self, literal: str, datatype: str) -> bool:
        """Whether a literal meets it; demands on other things than literals are met."""
        (first, *_) = self.values
        if self.kind == "datatype":
            return datatype == first
        if self.kind in ("pattern", _NOT_PATTERN):
            return _search(first, self.flags, literal) == (self.kind == "pattern")
        if self.kind == "minLength":
            return len(literal) >= int(first)
        if self.kind == "maxLength":
            return len(literal) <= int(first)
        if self.kind == "in":
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
    """Whether a text has a pattern in it, None if SPARQL's REGEX, as SHACL uses it, has no such.

    This engine needs time by the text's length, whatever the pattern; Python's may need for ever.
    """
    known = "".join(letter for letter in "imsx" if letter in flags)
    words = [ox.Literal(part) for part in (text, pattern, known)]
    rows = _EMPTY.query("SELECT (REGEX({}, {}, {}) AS ?found) {{}}".format(*words))
    assert isinstance(rows, ox.QuerySolutions)
    found = next(rows)["found"]
    return found.value == "true" if isinstance(found, ox.Literal) else None


def read_constraints(turtle: str, *, source: str) -> tuple[Constraint, ...]:
    """The demands on single values that a text of SHACL shapes makes, sorted.

    Shapes with other targets, paths of several steps, what combines shapes, and patterns that look
    ahead or behind are left to the validator; so is what is only a warning.

    Raises:
        InputError: not Turtle, or a pattern that is none.
    """
    try:
        triples = [
            quad.triple
            for quad in ox.parse(turtle.removeprefix("\ufeff"), format=ox.RdfFormat.TURTLE)
        ]
    except SyntaxError as e:
        raise InputError(
            f"{source}, line {e.lineno or 1}: not valid Turtle: {e.msg}; correct that line"
        ) from e
    graph: dict[object, dict[str, list[object]]] = {}
    for triple in triples:
        said = graph.setdefault(triple.subject, {})
        said.setdefault(triple.predicate.value, []).append(triple.object)
    found = {c for shape in graph for c in _read_shape(shape, graph, source)}
    return tuple(sorted(found, key=_order))


def _order(c: Constraint) -> tuple[object, ...]:
    return str(c.target), c.property_iri, c.kind, c.values, c.flags, c.message


def _read_shape(
    shape: object, graph: Mapping[object, Mapping[str, list[object]]], source: str
) -> Iterator[Constraint]:
    said = graph[shape]
    if _is_off(said):
        return
    targets: list[str | None] = [_iri(t) for t in said.get(SH + "targetClass", ())]
    if isinstance(shape, ox.NamedNode) and ox.NamedNode(n.CLASS) in said.get(n.RDF_TYPE, ()):
        targets.append(shape.value)
    users = {_iri(t) for t in said.get(SH + "targetSubjectsOf", ())}
    for part in (shape, *said.get(SH + "property", ())):
        inner = graph.get(part, {})
        path = next((p.value for p in inner.get(SH + "path", ()) if _iri(p)), None)  # type: ignore[attr-defined]
        severity = inner.get(SH + "severity", [None])[0]  # not the node shape's: each has its own
        if path is None or _is_off(inner) or severity not in (None, ox.NamedNode(SH + "Violation")):
            continue
        messages = inner.get(_MESSAGE) or said.get(_MESSAGE, [])
        message = min((_text(m) for m in messages), default="")
        flags = "".join(_text(f) for f in inner.get(SH + "flags", ()))
        whose = [*targets, *([None] if path in users else [])]
        demands = [
            (kind, tuple(map(_text, walk_list(v, graph))) if kind == "in" else (_text(v),), flags)
            for kind in _READ
            for v in inner.get(SH + kind, ())
        ]
        for denied in inner.get(SH + "not", ()):
            words = graph.get(denied, {})
            if words.keys() - {SH + "flags"} == {SH + "pattern"}:
                flags = "".join(_text(f) for f in words.get(SH + "flags", ()))
                demands.append((_NOT_PATTERN, (_text(words[SH + "pattern"][0]),), flags))
        for kind, values, flags in demands:
            if _check(kind, values, flags, source):
                for target in whose:
                    yield Constraint(target, path, kind, values, flags, message)


def _is_off(said: Mapping[str, list[object]]) -> bool:
    return any(_text(value) in ("true", "1") for value in said.get(SH + "deactivated", ()))


def _check(kind: str, values: tuple[str, ...], flags: str, source: str) -> bool:
    """Whether values can be held against it one by one."""
    try:
        if kind in ("pattern", _NOT_PATTERN):
            re.compile(values[0])
            return _search(values[0], flags, "") is not None
        elif kind in ("minLength", "maxLength", "maxCount"):
            int(values[0])
    except (re.error, ValueError) as e:
        raise InputError(f"{source}: sh:{kind} {values[0]!r}: {e}; correct the shape") from e
    return True


def _iri(term: object) -> str | None:
    return term.value if isinstance(term, ox.NamedNode) else None


def _text(term: object) -> str:
    return term.value if isinstance(term, ox.NamedNode | ox.Literal) else str(term)


@dataclass(frozen=True)
class Rules:
    """A schema with the demands of its shapes, asked value by value."""

    schema: Schema
    constraints: tuple[Constraint, ...] = ()

    @cached_property
    def _by_property(self) -> dict[str, list[Constraint]]:
        found: dict[str, list[Constraint]] = {}
        for constraint in self.constraints:
            found.setdefault(constraint.property_iri, []).append(constraint)
        return found

    def _list(self, classes: Collection[str], property_iri: str) -> Iterator[Constraint]:
        for constraint in self._by_property.get(property_iri, ()):
            if constraint.target is None or any(
                self.schema.is_subclass(own, constraint.target) for own in classes
            ):
                yield constraint

    def max_values(
        self, classes: Collection[str], property_iri: str, *, inferred: bool = False
    ) -> int | None:
        """At most how many values an individual of these classes may have; None for any number.

        Shapes do not count what is only `inferred`.
        """
        bounds = [self.schema.max_values(iri, property_iri) for iri in classes or (n.THING,)]
        demands = () if inferred else self._list(classes, property_iri)
        bounds += [int(c.values[0]) for c in demands if c.kind == "maxCount"]
        return min((bound for bound in bounds if bound is not None), default=None)

    def find_broken(
        self, classes: Collection[str], property_iri: str, literal: str, datatype: str
    ) -> Constraint | None:
        """The first demand that a literal of an individual of these classes does not meet."""
        demands = self._list(classes, property_iri)
        return next((c for c in demands if not c.allows(literal, datatype)), None)

    def find_missing(
        self, classes: Collection[str], property_iri: str, value_classes: Iterable[str]
    ) -> Constraint | None:
        """The first class that the individual at the other end had to be in and is not."""
        own = list(value_classes)
        for constraint in self._list(classes, property_iri):
            if constraint.kind == "datatype":
                return constraint
            if constraint.kind == "class" and not any(
                self.schema.is_subclass(iri, constraint.values[0]) for iri in own
            ):
                return constraint
        return None
