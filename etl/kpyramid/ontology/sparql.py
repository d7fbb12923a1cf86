"""SPARQL from outside: checked, run in a child process, traced back to statements.

Two walls stand between a query and the machine. `check_query` lets only plain SELECT and ASK
through. And because two SPARQL parsers never agree on every byte, the child can, by its own
resource limits, open no file and no socket, and ends itself when its time is over.
"""

import json
import re
import resource
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TypedDict
from urllib.parse import urljoin

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n

# Queries from outside, and the child process that runs them.

Rows = list[dict[str, str]]

LONGEST_QUERY = 20_000
"""Most characters of a query; the longest of a benchmark has under 2,000."""
MOST_REPLY_BYTES = 64 * 2**20

_REFUSED = {
    "ServiceGraphPattern": "SERVICE reaches out to another server",
    "DatasetClause": "FROM names data outside the snapshot",
}


_PREFIXES = {
    "kp": n.KP, "owl": n.OWL, "prov": n.PROV, "rdf": n.RDF, "rdfs": n.RDFS, "rel": n.RELATION,
    "skos": n.SKOS, "xsd": n.XSD,
}  # fmt: skip


class Data(TypedDict):
    """The first line to the child: the data."""

    schema: str
    instances: str
    facts: str
    memory_bytes: int


class Request(TypedDict):
    """A further line to the child: a query, and the statements that leave its data before."""

    gone: str
    query: str
    limit: int
    seconds: float


class Reply(TypedDict, total=False):
    """The child's answer to a line: one of the three."""

    rows: Rows
    error: str
    stopped: str


def load_store(schema_turtle: str, instances_nt: str, facts_nt: str = "") -> ox.Store:
    """An in-memory store: schema and instances in the default graph, facts in `names.GRAPH`.

    Raises:
        InputError: one of them cannot be parsed; names which, and the line.
    """
    store = ox.Store()
    texts = (
        ("schema", schema_turtle, ox.RdfFormat.TURTLE, None),
        ("instances", instances_nt, ox.RdfFormat.N_TRIPLES, None),
        ("facts", facts_nt, ox.RdfFormat.N_TRIPLES, ox.NamedNode(n.GRAPH)),
    )
    for name, text, rdf_format, graph in texts:
        try:
            store.bulk_load(text, rdf_format, to_graph=graph)
        except SyntaxError as e:
            raise InputError(
                f"ontology {name}, line {e.lineno}: {e.msg}; publish the snapshot again"
            ) from e
    return store


def read_prefixes(turtle: str) -> dict[str, str]:
    """The prefixes that queries may use undeclared: those of the ontology and of the standards."""
    parsed = ox.parse(turtle.removeprefix("\ufeff"), format=ox.RdfFormat.TURTLE)
    for _ in parsed:  # a prefix may be declared on any line
        continue
    return _PREFIXES | parsed.prefixes


def run_query(
    store: ox.Store, query: str, limit: int, prefixes: Mapping[str, str] | None = None
) -> Rows:
    """At most `limit` solutions, unbound variables left out; ASK gives one row `{"ask": …}`.

    A query may use `prefixes` without declaring them. Solutions are drawn one by one, so the limit
    holds like a LIMIT at the query's end.

    Raises:
        InputError: the query cannot be parsed or run, or is neither SELECT nor ASK.
    """
    try:
        results = store.query(query, prefixes=dict(prefixes or {}))
        if isinstance(results, ox.QueryBoolean):
            return [{"ask": "true" if results else "false"}]
        if isinstance(results, ox.QuerySolutions):
            names = [variable.value for variable in results.variables]
            return [
                {
                    name: term.value if isinstance(term, ox.NamedNode | ox.Literal) else str(term)
                    for name in names
                    if (term := solution[name]) is not None
                }
                for solution in islice(results, limit)
            ]
    except (SyntaxError, OSError, RuntimeError, ValueError) as e:
        raise InputError(f"SPARQL query: {e}; correct the query: {query[:200]!r}") from e
    raise InputError(f"SPARQL query: only SELECT and ASK are answered, not {query[:200]!r}")


def check_query(query: str) -> str:
    r"""The query to run, if it is a plain SELECT or ASK; words in strings and IRIs do not matter.

    Raises:
        InputError: names what is refused, and why.
    """
    from rdflib.plugins.sparql.parser import parseQuery

    if len(query) > LONGEST_QUERY:
        raise InputError(f"SPARQL query: {len(query)} characters; at most {LONGEST_QUERY} are read")
    if re.search(r"\\[uU]", query):
        # rdflib decodes these before it splits strings from comments, pyoxigraph after.
        raise InputError(r"SPARQL query: \u escapes are refused; write the character itself")
    # A comment ends at \r for pyoxigraph but not for rdflib: what follows would be hidden.
    query = query.replace("\r\n", "\n").replace("\r", "\n")
    try:
        _, parsed = parseQuery(query)
        kinds = set(_walk_kinds(parsed))
    except RecursionError as e:
        raise InputError("SPARQL query: nested too deeply; make it simpler") from e
    except Exception as e:  # rdflib and pyparsing raise bare Exceptions as well
        raise InputError(
            f"SPARQL query: only SELECT and ASK of SPARQL 1.1 are answered: {e}"
        ) from e
    if parsed.name not in ("SelectQuery", "AskQuery"):
        kind = parsed.name.removesuffix("Query").upper()
        raise InputError(f"SPARQL query: only SELECT and ASK are answered, not {kind}")
    for kind, reason in _REFUSED.items():
        if kind in kinds:
            raise InputError(f"SPARQL query refused: {reason}; leave it out")
    return query


def _walk_kinds(node: object) -> Iterator[str]:
    """The name of every node of a parse tree."""
    from pyparsing import ParseResults
    from rdflib.plugins.sparql.parserutils import CompValue

    if isinstance(node, CompValue):
        yield node.name
        for value in node.values():
            yield from _walk_kinds(value)
    elif isinstance(node, ParseResults | list | tuple):
        for value in node:
            yield from _walk_kinds(value)


_IRI = re.compile(
    r"""\bBASE\s*<([^>]*)>|<([^<>"{}|^`\\\s]*)>|\bPREFIX\s+([\w.-]*):\s*<([^>]*)>|([\w.-]*):((?:[\w:.%-]|\\.)*)"""
    r"""|"{3}.*?(?<!\\)"{3}|'{3}.*?(?<!\\)'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|\#[^\n]*""",
    re.DOTALL | re.IGNORECASE,
)
"""Base, IRIs, prefixes and prefixed names; string literals and comments are skipped."""


def list_iris(query: str) -> set[str]:
    """All IRIs in a query that has passed `check_query`, prefixed ones expanded.

    By regular expression: loading rdflib takes longer than running the queries.
    """
    prefixes: dict[str, str] = {}
    iris: set[str] = set()
    base = ""
    for match in _IRI.finditer(query):
        base_iri, iri, declared, place, prefix, local = match.groups()
        if base_iri is not None:
            base = base_iri
        elif declared is not None:
            prefixes[declared] = place
        elif prefix in prefixes:
            iris.add(prefixes[prefix] + local.rstrip(".").replace("\\", ""))
        elif iri:
            iris.add(iri if ":" in iri else urljoin(base, iri) if "//" in base else base + iri)
    return iris


def serve() -> None:
    """Reads data, then requests, from stdin as JSON lines; answers each on stdout."""
    data: Data = json.loads(sys.stdin.readline())
    try:
        store = load_store(data["schema"], data["instances"], data["facts"])
        # Imports open files: the parser must be there before the door is shut.
        check_query("ASK { ?s ?p ?o FILTER NOT EXISTS { ?s ?p 1 } }")
        memory_bytes, prefixes = data["memory_bytes"], read_prefixes(data["schema"])
        del data
        shut_doors(memory_bytes)
        _send({"rows": []})
    except InputError as e:
        _send({"error": str(e)})
        return
    for line in sys.stdin:
        request: Request = json.loads(line)
        for quad in ox.parse(request["gone"], format=ox.RdfFormat.N_TRIPLES):
            store.remove(quad)
        # The signal's default action ends the process even inside native code, and even when
        # the parent is gone; the parent's own clock is a second earlier.
        signal.setitimer(signal.ITIMER_REAL, request["seconds"] + 1)
        try:
            query = check_query(request["query"])
            _send({"rows": run_query(store, query, request["limit"], prefixes)})
        except InputError as e:
            _send({"error": str(e)})
        except MemoryError:
            _send({"stopped": "SPARQL query stopped: out of memory; ask for less"})
        signal.setitimer(signal.ITIMER_REAL, 0)


def _send(reply: Reply) -> None:
    line = json.dumps(reply)
    if len(line) > MOST_REPLY_BYTES:
        line = json.dumps({"error": "SPARQL query: the answer is over 64 MiB; ask for less"})
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def shut_doors(memory_bytes: int) -> None:
    """Forbids this process new files, sockets, core dumps, and more memory than `memory_bytes`."""
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        most = pages * resource.getpagesize() + memory_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


# The statements that a query's patterns match.

Pattern = tuple[str, str, str]
"""Subject, predicate and object: `?name`, or an IRI or a literal's text after an `=`."""

_TOKEN = re.compile(
    r'"{3}.*?"{3}|' + r"'{3}.*?'{3}|" + r'"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])*'|"
    r"<[^<>\"{}|^`\\\s]*>|\#[^\n]*|[{}]|(?<![\w:?$@-])(?:select|ask)\b(?!:)",
    re.DOTALL | re.IGNORECASE,
)
"""Braces and the query's first word, and tokens that may contain them: strings, IRIs, comments."""


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
    """The triple patterns of a query, sorted, optional ones among them.

    Patterns in MINUS and NOT EXISTS, which match nothing of an answer, and paths of several steps
    and blank nodes, which have no values in a row, are left out. The query must have passed
    `check_query`.
    """
    from rdflib.paths import InvPath

    patterns = []
    for subject, predicate, value in _list_triples(query):
        if isinstance(predicate, InvPath):
            subject, predicate, value = value, predicate.arg, subject
        ends = _write_term(subject), _write_term(predicate), _write_term(value)
        if ends[0] and ends[1] and ends[2]:
            patterns.append((ends[0], ends[1], ends[2]))
    return sorted(patterns)


Steps = tuple[tuple[str, bool], ...]
"""The properties of a path, each with whether it is followed from value to subject."""


def list_paths(query: str) -> list[tuple[Steps, Pattern]]:
    """The property paths of a query with their ends, which `list_patterns` leaves out."""
    from rdflib.paths import Path as PropertyPath

    paths = []
    for subject, predicate, value in _list_triples(query):
        ends = _write_term(subject), _write_term(value)
        if isinstance(predicate, PropertyPath) and ends[0] and ends[1]:
            steps = tuple(sorted({*_walk_path(predicate, turned=False)}))
            paths.append((steps, (ends[0], "=", ends[1])))
    return sorted(paths)


def _walk_path(path: object, *, turned: bool) -> Iterator[tuple[str, bool]]:
    from rdflib.paths import InvPath, MulPath
    from rdflib.term import URIRef

    if isinstance(path, URIRef):
        yield str(path), turned
    elif isinstance(path, InvPath):
        yield from _walk_path(path.arg, turned=not turned)
    elif isinstance(path, MulPath):
        yield from _walk_path(path.path, turned=turned)
    else:
        for part in getattr(path, "args", ()):
            yield from _walk_path(part, turned=turned)


def bind_patterns(patterns: Iterable[Pattern], row: Mapping[str, str]) -> Iterator[Pattern]:
    """The statements that a row of `select_all` matches, IRIs and literals as plain text."""
    for pattern in patterns:
        subject, predicate, value = (_bind(end, row) for end in pattern)
        if subject and predicate and value:
            yield subject, predicate, value


def bind_paths(
    paths: Iterable[tuple[Steps, Pattern]], row: Mapping[str, str]
) -> Iterator[tuple[Steps, str, str]]:
    """The properties, start and end of each path that a row of `select_all` matches."""
    for steps, (start, _, end) in paths:
        first, last = _bind(start, row), _bind(end, row)
        if first and last:
            yield steps, first, last


def _bind(end: str, row: Mapping[str, str]) -> str | None:
    return row.get(end[1:]) if end[0] == "?" else end[1:]


def _write_term(term: object) -> str | None:
    from rdflib.term import Literal, URIRef, Variable

    if isinstance(term, Variable):
        return f"?{term}"
    return f"={term}" if isinstance(term, URIRef | Literal) else None


def _list_triples(query: str) -> Iterator[tuple[object, object, object]]:
    from rdflib.plugins.sparql import prepareQuery

    return _walk_triples(prepareQuery(query).algebra)


def _walk_triples(node: object) -> Iterator[tuple[object, object, object]]:
    if not isinstance(node, Mapping):
        return
    name = getattr(node, "name", "")
    if name == "BGP":
        yield from node["triples"]
    for part in ("p", "p1") if name == "Minus" else ("p", "p1", "p2"):
        yield from _walk_triples(node.get(part))
