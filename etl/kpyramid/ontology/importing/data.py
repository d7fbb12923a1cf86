"""RDF data read as facts: each statement in words, by the names that the data gives to things."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from operator import itemgetter
from typing import NamedTuple
from urllib.parse import quote, unquote

import pyoxigraph as ox

from kpyramid.ontology import names as n
from kpyramid.ontology.axioms import name_blank_nodes
from kpyramid.ontology.importing.conversion import SCHEMA_ORG, Datatypes, derive_label
from kpyramid.ontology.importing.files import BASE_FILES
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.schema import Schema
from kpyramid.ontology.turtle import Graph, Node, Object, walk

_FORMS = {
    ".nt": ox.RdfFormat.N_TRIPLES,
    ".nq": ox.RdfFormat.N_QUADS,
    ".ttl": ox.RdfFormat.TURTLE,
    ".trig": ox.RdfFormat.TRIG,
    ".jsonld": ox.RdfFormat.JSON_LD,
}
_OF_LINES = (".nt", ".nq")
_MOST_STATEMENTS = 1_000_000
"""Of a file, held at once: some 600 MB."""
_MOST_CHARACTERS = 2**28
"""With prefixes written out: a long one may be used often."""
_MOST_NESTED = 1000
_DEEPEST = 3
"""Unnamed things within each other whose statements are told of the thing that has them."""

_FOAF, _DC = "http://xmlns.com/foaf/0.1/", "http://purl.org/dc/elements/1.1/title"
_NAMES = (n.LABEL, n.PREF_LABEL, *(base + "name" for base in SCHEMA_ORG), _FOAF + "name")
_NAMING = (*_NAMES, n.DCT + "title", _DC)
_OTHER_NAMES = {n.ALT_LABEL, _FOAF + "nick", *(base + "alternateName" for base in SCHEMA_ORG)}
_KNOWN_AS = "is also known as"
_PAGES = frozenset(
    "depiction email homepage image logo mbox page phone thumbnail url website".split()
)
"""Last parts of properties whose values are addresses, not things with a name."""
_OF_SCHEMAS = (*n.BUILT_IN, "http://www.w3.org/ns/shacl#")
_OF_ALL = {n.NAMED_INDIVIDUAL, n.THING, n.RDFS + "Resource"}
_DATES, _TEXTS = {n.XSD + "date", n.XSD + "gYear", n.XSD + "gYearMonth"}, {n.XSD + "string"}
_TEXTS |= {n.XSD + "anyURI", n.RDFS + "Literal"}
_FLAGS = {"true": "true", "1": "true", "false": "false", "0": "false"}
_BOOLEAN, _NIL = n.XSD + "boolean", ox.NamedNode(n.RDF_NIL)
_UNNAMED = re.compile(r"_:\w+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_WORD = re.compile(r"[^\W\d_]{2}")
_CAPITAL = re.compile(r"(?<=[A-Za-z][a-z]{2})(?=[A-Z][a-z]{2})")
_ADDRESS = re.compile(r"^(?:mailto|tel):")
_MOST_DIGITS, _MOST_SHOWN = 24, 200


class Statement(NamedTuple):
    """A statement in words; `kind` of its value: text, number, date or flag.

    `graph`: the IRI of its named graph, empty for the default graph.
    """

    graph: str
    subject: str
    relation: str
    value: str
    kind: str


class Left(NamedTuple):
    """Statements that are no fact: the reason, their number, and the first of them in words."""

    reason: str
    detail: str


def read_data(path: str, text: str, language: str) -> tuple[list[Statement], list[Left]]:
    """The facts of a file in N-Triples, N-Quads, Turtle, TriG or JSON-LD, and what is none.

    Nothing that the file names is fetched. Relative IRIs lie below the file's name. `language`:
    that of the names and texts to read; a name in another one is used where there is no other.
    """
    data, size = _Data(language), 0
    for number, quad in enumerate(_parse(text, path, data), 1):
        size += sum(len(getattr(term, "value", "")) for term in quad)
        if number > _MOST_STATEMENTS or size > _MOST_CHARACTERS:
            return [], [Left("too_large", _WHY["too_large"])]
        data.add(quad)
    return [*data.write()], data.list_left()


def _parse(text: str, path: str, data: "_Data") -> Iterator[ox.Quad]:
    """The statements; what is malformed is left, of files of lines one by one."""
    base, ending = BASE_FILES + quote(path, safe="/"), path[path.rindex(".") :].lower()
    parts = text.split("\n") if ending in _OF_LINES else [text]
    for number, part in enumerate(parts, 1):
        if part.count("<<") > _MOST_NESTED:  # within each other they overflow the parser's stack
            data.leave("bad_statement", (f"line {number}: more than {_MOST_NESTED} times <<",))
            continue
        try:
            yield from ox.parse(
                part, format=_FORMS[ending], base_iri=None if ending in _OF_LINES else base
            )
        except (SyntaxError, MemoryError) as e:  # a text of 16 MB is too long for the parser
            if "remote context" in str(e):
                data.leave("remote_context", (), 0)
                return
            line = number if ending in _OF_LINES else getattr(e, "lineno", None) or 1
            rest = "" if ending in _OF_LINES else "; the rest is unread"
            said = re.sub(r"^.*?: | \(line \d+\)$", "", str(e))
            data.leave("bad_rdf", (f"line {line}: {said}{rest}",))


_WHY = {
    "bad_rdf": "they cannot be parsed",
    "bad_statement": "they are about statements",
    "bad_value": "the value is none of its datatype",
    "binary": "they have control characters",
    "remote_context": "its @context is at another address, and nothing is fetched: write the terms "
    'into the file, such as {"@vocab": "https://schema.org/"}',
    "too_large": f"it has more than {_MOST_STATEMENTS:,} statements, or long prefixes too often"
    ": cut it into parts",
    "blank_node": "they are of something that has no name and no single owner",
    "no_label": "nothing tells what the property or class means: give it an rdfs:label",
    "other_language": "the text is in another language",
    "schema": "they say something of a schema: import it by `kpyramid ontology import`",
}
_Stated = dict[Node, list[tuple[str, Object]]]
_Shown = tuple[object, ...]
"""Subject, predicate and value of a statement, or words for it."""
_Words = tuple[str, str, str]
"""Relation, value and the value's kind."""


class _Data:
    """Statements by graph and subject, the name of each thing, and what is no fact."""

    def __init__(self, language: str) -> None:
        self._language = language.split("-")[0].lower()
        self._graphs: dict[str, _Stated] = {}
        self._named: dict[Node, tuple[tuple[bool, int], str]] = {}
        self._schema: set[Node] = set()
        self._uses: Counter[Object] = Counter()
        self._stated: _Stated = {}
        self._told: set[Object] = set()
        self._left: dict[str, tuple[int, str]] = {}
        self._datatypes = Datatypes(Graph(()))
        self._terms: dict[str, str] = {}

    def leave(self, reason: str, shown: _Shown, count: int = 1) -> None:
        """Counts statements that are no fact; the first of each reason is shown."""
        if reason not in self._left:
            # The parser names unnamed nodes anew each time.
            words = " ".join(repr(str(each))[1:-1] for each in shown)
            self._left[reason] = 0, _UNNAMED.sub("[]", words)[:_MOST_SHOWN]
        before, first = self._left[reason]
        self._left[reason] = before + count, first

    def list_left(self) -> list[Left]:
        """What is no fact, by reason."""
        left = []
        for reason, (count, first) in sorted(self._left.items()):
            counted = f" ({count:,} statement{'s' * (count > 1)})" if count else ""
            shown = f"; the first: {first}" if first else ""
            left.append(Left(reason, f"{_WHY[reason]}{counted}{shown}"))
        return left

    def add(self, quad: ox.Quad) -> None:
        """Adds a statement."""
        subject, predicate, value = quad.subject, quad.predicate.value, quad.object
        if not isinstance(subject, Node) or isinstance(value, ox.Triple):
            self.leave("bad_statement", (quad,))
            return
        graph = getattr(quad.graph_name, "value", "")
        self._graphs.setdefault(graph, {}).setdefault(subject, []).append((predicate, value))
        if isinstance(value, ox.Literal):
            if predicate in _NAMING and value.value.strip():
                rank = not self._is_read(value), _NAMING.index(predicate)
                names = (rank, " ".join(value.value.split())), self._named.get(subject)
                self._named[subject] = min(filter(None, reversed(names)), key=itemgetter(0))
        elif predicate == n.RDF_TYPE:
            kind = getattr(value, "value", "")
            if kind.startswith(_OF_SCHEMAS) and kind not in _OF_ALL:
                self._schema.add(subject)
        elif isinstance(value, ox.BlankNode):
            self._uses[value] += 1

    def _is_read(self, literal: ox.Literal) -> bool:
        return (literal.language or self._language).split("-")[0].lower() == self._language

    def write(self) -> Iterator[Statement]:
        """The facts, each thing's together."""
        counts = Counter(
            name
            for node, (_, name) in self._named.items()
            if isinstance(node, ox.NamedNode) and node not in self._schema
        )
        self._shared = {name for name, count in counts.items() if count > 1}
        for graph, stated in self._graphs.items():
            self._stated, self._told = stated, set()
            for node in stated:
                if name := "" if node in self._schema else self._find_name(node):
                    for words in self._tell(node, ()):
                        if _CONTROL.search("".join((name, *words))):
                            self.leave("binary", (name, *words))
                        else:
                            yield Statement(graph, name, *words)
            for node, statements in stated.items():
                if node in self._schema:
                    left = [each for each in statements if each[0] not in _NAMING]
                    self._leave_all("schema", node, left)
                elif node not in self._told and not self._find_name(node):
                    self._leave_all("blank_node", node, statements)

    def _leave_all(self, reason: str, node: Node, left: Sequence[tuple[str, Object]]) -> None:
        if left:
            self.leave(reason, (node, *left[0]), len(left))

    def _find_name(self, node: Node) -> str:
        """The name of a thing: its label, else the last part of its IRI; empty if it has none.

        The last part follows on a label that several things have.
        """
        label = self._named[node][1] if node in self._named else ""
        if isinstance(node, ox.BlankNode):
            return label
        if label and (label not in self._shared or node in self._schema):
            return label
        local = unquote(re.split(r"[#/]", node.value.rstrip("#/"))[-1].removeprefix("urn:"))
        words = " ".join(_CAPITAL.sub(" ", local).replace("_", " ").split())
        return f"{label} ({words})" if label else words

    def _find_term(self, iri: str) -> str:
        """The words of a class or property: its label, else the last part of its IRI."""
        if iri not in self._terms:
            known = self._named.get(ox.NamedNode(iri))
            words = known[1] if known else derive_label(iri)
            self._terms[iri] = words if _WORD.search(words) else ""
        return self._terms[iri]

    def _tell(self, node: Node, above: tuple[str, ...]) -> Iterator[_Words]:
        """What is stated of a node, and of the unnamed nodes that only it has.

        `above`: the words of the properties that lead to an unnamed node.
        """
        label = self._named[node][1] if node in self._named else ""
        for predicate, value in self._stated[node]:
            term, shown = self._find_term(predicate), (node, predicate, value)
            if isinstance(value, ox.Literal) and predicate in (*_NAMING, *_OTHER_NAMES):
                text = " ".join(value.value.split())
                if text and text != label:
                    if self._is_read(value):
                        yield _KNOWN_AS, text, "text"
                    else:
                        self.leave("other_language", shown)
            elif predicate == n.RDF_TYPE and isinstance(value, ox.NamedNode) and not above:
                if value.value.startswith(_OF_SCHEMAS):
                    self.leave("schema", shown)
                elif kind := self._find_term(value.value):
                    yield "is an" if kind[0].lower() in "aeiou" else "is a", kind, "text"
                else:
                    self.leave("no_label", shown)
            elif predicate.startswith(_OF_SCHEMAS) and predicate != n.COMMENT:
                self.leave("blank_node" if predicate == n.RDF_TYPE else "schema", shown)
            elif not term:
                self.leave("no_label", shown)
            else:
                for each in self._list_values(value):
                    yield from self._tell_value(each, (*above, term), shown)

    def _tell_value(self, value: Object, terms: tuple[str, ...], shown: _Shown) -> Iterator[_Words]:
        relation = " ".join(terms)
        if isinstance(value, ox.Literal):
            if words := self._read_literal(value, shown):
                yield (relation, *words)
        elif isinstance(value, ox.NamedNode):
            is_page = terms[-1].replace(" ", "") in _PAGES
            name = _ADDRESS.sub("", value.value) if is_page else self._find_name(value)
            yield relation, name or value.value, "text"
        elif not isinstance(value, ox.BlankNode):
            self.leave("bad_statement", shown)
        elif name := self._find_name(value):
            yield relation, name, "text"
        elif self._is_part(value) and len(terms) <= _DEEPEST:
            self._told.add(value)
            yield from self._tell(value, terms)
        else:
            self.leave("blank_node", shown)

    def _is_part(self, node: Node) -> bool:
        """Whether an unnamed node is of one thing only, and not told of yet."""
        return node in self._stated and node not in self._told and self._uses[node] == 1

    def _list_values(self, value: Object) -> Iterator[Object]:
        """The members of a list, else the value itself."""
        parts = self._find_parts(value)
        if value != _NIL and n.RDF_FIRST not in parts:
            yield value
        while n.RDF_FIRST in parts and value not in self._told:
            self._told.add(value)
            yield parts[n.RDF_FIRST]
            value = parts.get(n.RDF_REST, _NIL)
            parts = self._find_parts(value)

    def _find_parts(self, value: Object) -> dict[str, Object]:
        return dict(self._stated.get(value, ())) if isinstance(value, ox.BlankNode) else {}

    def _read_literal(self, literal: ox.Literal, shown: _Shown) -> tuple[str, str] | None:
        """The text and the kind of a value; None for one in another language or of no value."""
        text = " ".join(literal.value.split())
        datatype = self._datatypes.find(literal)
        kind = "date" if datatype in _DATES else "flag" if datatype == _BOOLEAN else "number"
        kind = "text" if datatype in _TEXTS else kind
        if not self._is_read(literal):
            self.leave("other_language", shown)
            return None
        if kind == "flag":
            text = _FLAGS.get(text, "")
        elif kind == "date":
            day, _, time = text.partition("T")
            text = "" if parse_literal(day, datatype) is None else text
            text = day if text and not time.strip("0:.Z+-") else text
        elif kind == "number":
            text = _write_number(text)
        if not text:
            self.leave("bad_value", shown)
            return None
        return text, kind


def _write_number(text: str) -> str:
    """A number without an exponent; empty if it is none or needs more digits than one writes."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return ""
    if not number.is_finite() or abs(number.adjusted()) > _MOST_DIGITS:
        return ""
    return f"{number.normalize():f}" if "e" in text.lower() else text


def write_individuals(triples: Sequence[ox.Triple], schema: Schema) -> tuple[str, int]:
    """What an ontology's file says of individuals, as N-Quads in its own graph; their number.

    The labels of classes and properties go with it, as the schema has them.
    """
    graph = Graph(triples)
    labels = {c.iri: c.label for c in schema.classes}
    kinds = graph.find_typed(n.NAMED_INDIVIDUAL, *labels)
    labels |= {prop.iri: prop.label for prop in schema.properties}
    individuals = [iri for iri in kinds if iri not in labels]

    def list_stated(node: Node) -> list[ox.Triple]:
        return [
            ox.Triple(node, ox.NamedNode(predicate), value)
            for predicate in graph.list_predicates(node)
            for value in graph.find(node, predicate)
            if value != ox.NamedNode(n.NAMED_INDIVIDUAL)
        ]

    def step(node: Node) -> Iterator[Node]:
        return (t.object for t in list_stated(node) if isinstance(t.object, ox.BlankNode))

    starts: list[Node] = [ox.NamedNode(iri) for iri in individuals]
    stated = [t for node in walk(starts, step) for t in list_stated(node)]
    used = {str(term).strip("<>") for t in stated for term in (t.predicate, t.object)}
    stated += [
        ox.Triple(ox.NamedNode(iri), ox.NamedNode(n.LABEL), ox.Literal(labels[iri]))
        for iri in sorted(used & labels.keys())
    ]
    of = ox.NamedNode(schema.base.rstrip("#/"))
    lines = dict.fromkeys(f"{t} {of} .\n" for t in name_blank_nodes(stated))
    return "".join(lines), len(individuals)
