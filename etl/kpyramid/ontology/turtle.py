"""Turtle read into a graph by subject; statements written as reproducible Turtle."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology.names import RDF_FIRST, RDF_NIL, RDF_REST, RDF_TYPE

Node = ox.NamedNode | ox.BlankNode
Object = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple

_Node = TypeVar("_Node", bound=Hashable)

# Only the Turtle parser ever sees the text, so an entity bomb is a mere syntax error;
# these signs are looked for to say so in words.
XML_SIGNS = ("<?xml", "<!doctype", "<!--", "<rdf:rdf")


def parse_turtle(turtle: str, *, source: str) -> list[ox.Triple]:
    """The statements of a text; nothing it refers to is fetched.

    Raises:
        InputError: it is not Turtle; names the source and the line.
    """
    if turtle.lstrip("\ufeff \t\r\n")[:10].lower().startswith(XML_SIGNS):
        raise InputError(
            f"{source}, line 1: this is XML, and only Turtle is read; "
            "convert it first with `kpyramid ontology import`"
        )
    try:
        quads = ox.parse(turtle.removeprefix("\ufeff"), format=ox.RdfFormat.TURTLE)
        return [quad.triple for quad in quads]
    except SyntaxError as e:
        raise InputError(
            f"{source}, line {e.lineno or 1}: not valid Turtle: {e.msg}; "
            "correct that line, or convert the file to Turtle"
        ) from e


def walk(starts: Iterable[_Node], step: Callable[[_Node], Iterable[_Node]]) -> dict[_Node, int]:
    """All nodes reachable by steps, the starts included, with the least number of steps."""
    reached = dict.fromkeys(starts, 0)
    queue = list(reached)
    for current in queue:  # grows as it goes; circles are legal
        for following in step(current):
            if following not in reached:
                reached[following] = reached[current] + 1
                queue.append(following)
    return reached


class Graph:
    """Statements by subject and predicate, in order of insertion; it can be changed.

    A subject that is text is an IRI. Statements about statements are left out.
    """

    def __init__(self, triples: Iterable[ox.Triple]) -> None:
        self._values: dict[Node, dict[str, dict[Object, None]]] = {}
        self._users: Counter[Object] = Counter()
        for triple in triples:
            if not isinstance(triple.subject, ox.Triple):
                self.add(triple.subject, triple.predicate.value, triple.object)

    def __iter__(self) -> Iterator[ox.Triple]:
        for subject, by_predicate in self._values.items():
            for predicate, values in by_predicate.items():
                for value in values:
                    yield ox.Triple(subject, ox.NamedNode(predicate), value)

    def add(self, subject: Node | str, predicate: str, value: Object) -> None:
        """Adds a statement."""
        subject = _make_node(subject)
        values = self._values.setdefault(subject, {}).setdefault(predicate, {})
        if value not in values:
            values[value] = None
            self._users[value] += 1

    def remove(self, subject: Node | str, predicate: str, value: Object | None = None) -> None:
        """Removes one value, or all, with the statements of blank nodes that become unused."""
        subject = _make_node(subject)
        values = self._values.get(subject, {}).get(predicate, {})
        gone = [v for v in values if value is None or v == value]
        for each in gone:
            del values[each]
        while gone:
            node = gone.pop()
            self._users[node] -= 1
            if isinstance(node, ox.BlankNode) and not self._users[node]:
                gone += [v for values in self._values.pop(node, {}).values() for v in values]

    def find(self, subject: Node | str, predicate: str) -> list[Object]:
        """The values, in order of insertion."""
        return list(self._values.get(_make_node(subject), {}).get(predicate, ()))

    def find_iris(self, subject: Node | str, predicate: str) -> list[str]:
        """The values that are IRIs, sorted."""
        return sorted(v.value for v in self.find(subject, predicate) if isinstance(v, ox.NamedNode))

    def find_types(self, subject: Node | str) -> set[str]:
        """The types that are IRIs."""
        return {*self.find_iris(subject, RDF_TYPE)}

    def find_texts(self, subject: Node | str, predicate: str) -> list[str]:
        """The texts in English or without a language, sorted, without blank ones."""
        literals = (v for v in self.find(subject, predicate) if isinstance(v, ox.Literal))
        english = {v.value for v in literals if (v.language or "en").lower().split("-")[0] == "en"}
        return sorted(text for text in english if text.strip())

    def is_true(self, subject: Node | str, predicate: str) -> bool:
        """Whether the value is the boolean true."""
        values = self.find(subject, predicate)
        return any(isinstance(v, ox.Literal) and v.value in ("true", "1") for v in values)

    def list_subjects(self) -> list[Node]:
        """All subjects, in order of insertion."""
        return list(self._values)

    def list_predicates(self, subject: Node | str) -> list[str]:
        """The predicates of a subject."""
        return [p for p, values in self._values.get(_make_node(subject), {}).items() if values]

    def find_typed(self, *types: str) -> list[str]:
        """The IRIs of subjects of one of these types, sorted."""
        wanted = {ox.NamedNode(t) for t in types}
        return sorted(
            s.value
            for s, by_predicate in self._values.items()
            if isinstance(s, ox.NamedNode) and wanted & by_predicate.get(RDF_TYPE, {}).keys()
        )

    def add_list(self, members: Iterable[Object]) -> Node:
        """Adds an RDF list; returns its head."""
        head: Node = ox.NamedNode(RDF_NIL)
        for member in reversed([*members]):
            rest, head = head, ox.BlankNode()
            self.add(head, RDF_FIRST, member)
            self.add(head, RDF_REST, rest)
        return head

    def list_members(self, head: Object) -> list[Object]:
        """The members of an RDF list."""

        def follow(node: Object) -> list[Object]:
            return self.find(node, RDF_REST)[:1] if isinstance(node, Node) else []

        nodes = (node for node in walk([head], follow) if isinstance(node, Node))
        return [first for node in nodes for first in self.find(node, RDF_FIRST)[:1]]


def _make_node(subject: Node | str) -> Node:
    return ox.NamedNode(subject) if isinstance(subject, str) else subject


def make_iri(text: str) -> ox.NamedNode:
    """The IRI node of a text.

    Raises:
        InputError: the text is no absolute IRI.
    """
    try:
        return ox.NamedNode(text)
    except ValueError as e:
        raise InputError(
            f"{text!r} is not an absolute IRI ({e}); build IRIs from ids or percent-encoded labels"
        ) from e


def write_turtle(triples: Iterable[ox.Triple], prefixes: Mapping[str, str]) -> str:
    """The statements as Turtle, grouped by subject in order of first occurrence.

    The bytes depend only on the statements' order and the blank nodes' names.
    """
    by_subject: dict[object, dict[ox.Triple, None]] = {}
    for triple in triples:
        by_subject.setdefault(triple.subject, {})[triple] = None
    # The library lists prefixes in any order, and shortens by any of two that fit.
    names = {iri: name for name, iri in sorted(prefixes.items())}
    apart = {
        name: iri
        for iri, name in names.items()
        if not any(iri != prefix and iri.startswith(prefix) for prefix in names)
    }
    ordered = chain.from_iterable(by_subject.values())
    written = ox.serialize(ordered, format=ox.RdfFormat.TURTLE, prefixes=apart) or b""
    lines = written.decode().split("\n")
    head, body = sorted(lines[: len(apart)]), "\n".join(lines[len(apart) :])
    return "\n".join([*head, "", body.strip("\n").replace(" .\n", " .\n\n"), ""])
