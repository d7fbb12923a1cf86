"""What the patterns of a query match: the statements behind an answer."""

import re
from collections.abc import Iterator, Mapping

from kpyramid.errors import InputError

Pattern = tuple[str, str, str]
"""Subject, predicate and object: `?name`, or an IRI or a literal's text after an `=`."""

_TOKEN = re.compile(
    r'"{3}.*?"{3}|' + r"'{3}.*?'{3}|" + r'"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])*'|"
    r"<[^<>\"{}|^`\\\s]*>|\#[^\n]*|[{}]|(?<![\w:?$@-])(?:select|ask)\b(?!:)",
    re.DOTALL | re.IGNORECASE,
)
"""Braces and the query's first word, or what may hold such characters: strings, IRIs, comments."""


def select_all(query: str) -> str:
    """`SELECT *` over the prefixes and patterns of a query that has passed `check_query`.

    Raises:
        InputError: it has no patterns in braces.
    """
    head = start = None
    depth = 0
    for token in _TOKEN.finditer(query):
        word = token.group().lower()
        if word in {"select", "ask"} and head is None:
            head = token.start()
        elif word == "{":
            start = token.start() if start is None else start
            depth += 1
        elif word == "}":
            depth -= 1
            if not depth and head is not None:
                return f"{query[:head]}SELECT * WHERE {query[start : token.end()]}"
    raise InputError(f"SPARQL query: no patterns in braces in {query[:200]!r}")


def list_patterns(query: str) -> list[Pattern]:
    """The triple patterns that must or may match, in an order of their own.

    Those of MINUS and NOT EXISTS match nothing of an answer; paths of several steps and blank
    nodes have no values in a row, so they are left out. The query must have passed `check_query`.
    """
    from rdflib.paths import InvPath
    from rdflib.plugins.sparql import prepareQuery
    from rdflib.term import Literal, URIRef, Variable

    def write(term: object) -> str | None:
        if isinstance(term, Variable):
            return f"?{term}"
        return f"={term}" if isinstance(term, URIRef | Literal) else None

    found = []
    for subject, predicate, value in _walk_triples(prepareQuery(query).algebra):
        if isinstance(predicate, InvPath):
            subject, predicate, value = value, predicate.arg, subject
        ends = write(subject), write(predicate), write(value)
        if ends[0] and ends[1] and ends[2]:
            found.append((ends[0], ends[1], ends[2]))
    return sorted(found)


def bind_patterns(patterns: list[Pattern], row: Mapping[str, str]) -> Iterator[Pattern]:
    """The statements that a row of `select_all` matches, IRIs and literals as plain text."""
    for pattern in patterns:
        ends = [row.get(end[1:]) if end[0] == "?" else end[1:] for end in pattern]
        if ends[0] and ends[1] and ends[2]:
            yield ends[0], ends[1], ends[2]


def _walk_triples(node: object) -> Iterator[tuple[object, object, object]]:
    if not isinstance(node, Mapping):
        return
    name = getattr(node, "name", "")
    if name == "BGP":
        yield from node["triples"]
    for part in ("p", "p1") if name == "Minus" else ("p", "p1", "p2"):
        yield from _walk_triples(node.get(part))
