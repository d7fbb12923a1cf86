"""Turtle in, looked up by subject; statements out as Turtle that is the same every time."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology.names import RDF_FIRST, RDF_NIL, RDF_REST, RDF_TYPE, XSD

Node = ox.NamedNode | ox.BlankNode
Object = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple

# Only the Turtle parser ever sees the text, so an entity bomb is a mere syntax error;
# these signs are looked for to say so in words.
XML_SIGNS = ("<?xml", "<!doctype", "<!--", "<rdf:rdf")


_NIL = ox.NamedNode(RDF_NIL)
_STRING = ox.NamedNode(XSD + "string")
# A subset of what Turtle allows after a prefix, so that nothing needs an escape.
_LOCAL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MOST_NESTED = 8
"""Levels written in place; what lies deeper is named, which no one needs to read twice."""


def parse_turtle(turtle: str, *, source: str) -> list[ox.Triple]:
    """The statements of a text; nothing it points to is ever fetched.

    Raises:
        InputError: it is not Turtle; names the source and the line.
    """
    if turtle.lstrip("\ufeff \t\r\n")[:10].lower().startswith(XML_SIGNS):
        raise InputError(
            f"{source}, line 1: this is XML, and only Turtle is read; "
            "convert it first with `kpyramid ontology import`"
        )
    try:
        found = ox.parse(turtle.removeprefix("\ufeff"), format=ox.RdfFormat.TURTLE)
        return [quad.triple for quad in found]
    except SyntaxError as e:
        raise InputError(
            f"{source}, line {e.lineno or 1}: not valid Turtle: {e.msg}; "
            "correct that line, or convert the file to Turtle"
        ) from e


class Graph:
    """Statements by subject and predicate, in the order in which they came; they can be changed.

    A subject that is text is an IRI. Statements about statements are left out.
    """

    def __init__(self, triples: Iterable[ox.Triple]) -> None:
        self._said: dict[Node, dict[str, dict[Object, None]]] = {}
        self._users: Counter[Object] = Counter()
        for triple in triples:
            if not isinstance(triple.subject, ox.Triple):
                self.add(triple.subject, triple.predicate.value, triple.object)

    def __iter__(self) -> Iterator[ox.Triple]:
        for subject, said in self._said.items():
            for predicate, values in said.items():
                for value in values:
                    yield ox.Triple(subject, ox.NamedNode(predicate), value)

    def add(self, subject: Node | str, predicate: str, value: Object) -> None:
        """States it."""
        subject = _make_node(subject)
        values = self._said.setdefault(subject, {}).setdefault(predicate, {})
        if value not in values:
            values[value] = None
            self._users[value] += 1

    def remove(self, subject: Node | str, predicate: str, value: Object | None = None) -> None:
        """Withdraws one value, or all; what only a withdrawn blank node said goes too."""
        subject = _make_node(subject)
        values = self._said.get(subject, {}).get(predicate, {})
        gone = [v for v in values if value is None or v == value]
        for each in gone:
            del values[each]
        while gone:
            node = gone.pop()
            self._users[node] -= 1
            if isinstance(node, ox.BlankNode) and not self._users[node]:
                gone += [v for said in self._said.pop(node, {}).values() for v in said]

    def find(self, subject: Node | str, predicate: str) -> list[Object]:
        """The values, in the order they came."""
        return list(self._said.get(_make_node(subject), {}).get(predicate, ()))

    def find_iris(self, subject: Node | str, predicate: str) -> list[str]:
        """The named values, sorted."""
        return sorted(v.value for v in self.find(subject, predicate) if isinstance(v, ox.NamedNode))

    def find_types(self, subject: Node | str) -> set[str]:
        """The named types."""
        return {*self.find_iris(subject, RDF_TYPE)}

    def find_texts(self, subject: Node | str, predicate: str) -> list[str]:
        """The texts in English or in no stated language, sorted; blank ones left out."""
        literals = (v for v in self.find(subject, predicate) if isinstance(v, ox.Literal))
        english = {v.value for v in literals if (v.language or "en").lower().split("-")[0] == "en"}
        return sorted(text for text in english if text.strip())

    def is_true(self, subject: Node | str, predicate: str) -> bool:
        """Whether the boolean is stated, and as true."""
        values = self.find(subject, predicate)
        return any(isinstance(v, ox.Literal) and v.value in ("true", "1") for v in values)

    def list_subjects(self) -> list[Node]:
        """All subjects, in the order they came."""
        return list(self._said)

    def list_predicates(self, subject: Node | str) -> list[str]:
        """The predicates of a subject."""
        return [p for p, values in self._said.get(_make_node(subject), {}).items() if values]

    def find_typed(self, *types: str) -> list[str]:
        """The named subjects of one of these types, sorted."""
        wanted = {ox.NamedNode(t) for t in types}
        return sorted(
            s.value
            for s, said in self._said.items()
            if isinstance(s, ox.NamedNode) and wanted & said.get(RDF_TYPE, {}).keys()
        )

    def list_members(self, head: Object) -> list[Object]:
        """The members of an RDF list."""
        members: list[Object] = []
        seen: set[Object] = set()
        while isinstance(head, Node) and head not in seen:
            seen.add(head)
            first = self.find(head, RDF_FIRST)
            if not first:
                break
            members.append(first[0])
            rest = self.find(head, RDF_REST)
            if not rest:
                break
            head = rest[0]
        return members


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
    """The statements as Turtle, for people: by subject, in the order in which subjects come.

    Blank nodes that one statement refers to are written in place, lists in brackets. The bytes
    follow from the statements' order and the blank nodes' names alone.
    """
    return _Writer(list(triples), prefixes).write()


class _Writer:
    def __init__(self, triples: Sequence[ox.Triple], prefixes: Mapping[str, str]) -> None:
        self._prefixes = prefixes
        self._said: dict[object, list[ox.Triple]] = {}
        self._users: Counter[object] = Counter()
        for triple in dict.fromkeys(triples):
            self._said.setdefault(triple.subject, []).append(triple)
            if isinstance(triple.object, ox.BlankNode):
                self._users[triple.object] += 1
        self._written: set[object] = set()
        self._pending: list[object] = []

    def write(self) -> str:
        blocks = [f"@prefix {name}: <{iri}> .\n" for name, iri in sorted(self._prefixes.items())]
        # First what nothing refers to from within; what is named there follows; circles are last.
        self._pending = [node for node in self._said if not self._stands_in_place(node)]
        for subject in self._pending:  # grows as it goes
            blocks.append(self._write_subject(subject))
        blocks += [self._write_subject(node) for node in self._said]
        return "".join(blocks)

    def _write_subject(self, subject: object) -> str:
        if subject in self._written or subject not in self._said:
            return ""
        name = "[]" if self._is_root(subject) else self._name(subject)
        return f"\n{name} {self._list_values(subject, 1)} .\n"

    def _stands_in_place(self, node: object) -> bool:
        return isinstance(node, ox.BlankNode) and self._users[node] == 1

    def _is_root(self, node: object) -> bool:
        return isinstance(node, ox.BlankNode) and not self._users[node]

    def _list_values(self, subject: object, depth: int) -> str:
        self._written.add(subject)
        indent = "\n" + "    " * depth
        values: dict[ox.NamedNode, list[str]] = {}
        for triple in self._said[subject]:
            shown = self._show_object(triple.object, depth + 1)
            values.setdefault(triple.predicate, []).append(shown)
        parts = (
            f"{'a' if p.value == RDF_TYPE else self._name(p)} {', '.join(objects)}"
            for p, objects in values.items()
        )
        return f" ;{indent}".join(parts)

    def _show_object(self, term: Object, depth: int) -> str:
        if not self._stands_in_place(term) or term in self._written:
            return self._name(term)
        if depth > _MOST_NESTED:
            self._pending.append(term)
            return self._name(term)
        if term not in self._said:
            return "[]"
        if (members := self._read_list(term)) is not None:
            shown = " ".join(self._show_object(member, depth + 1) for member in members)
            return f"( {shown} )"
        indent = "\n" + "    " * depth
        return f"[{indent}{self._list_values(term, depth)} ]"

    def _read_list(self, head: Object) -> list[Object] | None:
        """The members if the node begins a proper list that nothing else refers into."""
        members: list[Object] = []
        seen: set[Object] = set()
        while head != _NIL:
            said = {t.predicate.value: t.object for t in self._said.get(head, ())}
            if set(said) != {RDF_FIRST, RDF_REST} or len(self._said[head]) > 2:
                return None
            if not self._stands_in_place(head) or head in self._written or head in seen:
                return None
            seen.add(head)
            members.append(said[RDF_FIRST])
            head = said[RDF_REST]
        self._written |= seen
        return members

    def _name(self, term: object) -> str:
        if isinstance(term, ox.NamedNode):
            for name, iri in self._prefixes.items():
                if term.value.startswith(iri) and _LOCAL_NAME.fullmatch(term.value, len(iri)):
                    return f"{name}:{term.value[len(iri) :]}"
        if isinstance(term, ox.Literal) and not term.language and term.datatype != _STRING:
            bare = str(ox.Literal(term.value))
            return f"{bare}^^{self._name(term.datatype)}"
        return str(term)
