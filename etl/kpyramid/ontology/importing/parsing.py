"""The child that parses RDF from outside; entities of XML are expanded within bounds.

A parser may be led to abort, to hang, or to write without end; whatever it does, it does here,
without files or sockets, and within the memory and the length that the parent allows.
"""

import codecs
import json
import re
import resource
import signal
import sys
from collections.abc import Mapping
from typing import IO, cast
from urllib.parse import quote

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology.sparql import shut_doors
from kpyramid.ontology.turtle import Object

# XML entities.

_LONGEST_ENTITY = 10_000
"""Characters of one entity, expanded; a namespace has under 200."""
_MOST_ENTITIES = 1000
"""Declared ones; the largest document types of published ontologies have under a hundred."""

_DECLARED = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._-]{1,40})[\"']")
ENCODINGS = (
    "utf-8-sig",
    "utf-16",
    "us-ascii",
    "ascii",
    "iso-8859-1",
    "iso-8859-15",
    "windows-1252",
)
_SPACE = re.compile(r"[ \t\r\n]*")
# What is not closed reaches to the end: looked for anew at each place, it would take for ever.
_PROLOG = re.compile(r"<\?.*?(?:\?>|\Z)|<!--.*?(?:-->|\Z)", re.DOTALL)
_DOCTYPE = re.compile(r"<!DOCTYPE[ \t\r\n]+[^\s\[>]+[ \t\r\n]*", re.IGNORECASE)
_ENTITY = re.compile(
    r"<!ENTITY[ \t\r\n]+(?P<name>[A-Za-z_:][\w:.-]*)[ \t\r\n]+"
    r"(?:\"(?P<double>[^\"]*)\"|'(?P<single>[^']*)')[ \t\r\n]*>"
)
_REFERENCE = re.compile(r"&([A-Za-z_:][\w:.-]*);")
_BODY = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)|&(?P<name>[A-Za-z_:][\w:.-]*);|(?P<late><!(?:DOCTYPE|ENTITY))",
    re.DOTALL | re.IGNORECASE,
)
_BUILT_IN = frozenset({"amp", "lt", "gt", "quot", "apos"})


def decode_xml(data: bytes, *, source: str) -> str:
    """The text by its byte order mark, else by the encoding it declares, else as UTF-8.

    Raises:
        InputError: the bytes are not of that encoding, or the encoding is not read.
    """
    declared = _DECLARED.match(data)
    encoding = declared[1].decode("ascii").lower() if declared else "utf-8"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif data.startswith(codecs.BOM_UTF8) or encoding == "utf-8":
        encoding = "utf-8-sig"
    if encoding not in ENCODINGS:
        raise InputError(f"{source}: XML in {encoding!r} is not read; convert the file to UTF-8")
    return decode(data, encoding, source=source)


def decode(data: bytes, encoding: str, *, source: str) -> str:
    """The bytes as text.

    Raises:
        InputError: they are not of that encoding; names the line.
    """
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise InputError(
            f"{source}, line {line}: byte {e.start} is no {encoding}; convert the file to UTF-8"
        ) from e


def expand_entities(text: str, *, most: int, source: str) -> str:
    """The XML without its document type, references to the entities declared there replaced.

    Ontologies use entities as shortcuts for namespaces. A parser that expands them without counting
    can be made to write petabytes by one kilobyte; one that follows external ones reads any file.

    Raises:
        InputError: the expanded text has over `most` characters, or something is declared beyond
            plain internal entities: an external file, a parameter entity, markup in an entity.
    """
    start = 0
    while True:
        start = _match_space(text, start)
        if not (match := _PROLOG.match(text, start)):
            break
        start = match.end()
    found = _DOCTYPE.match(text, start)
    declared, body = _read_doctype(text, found.end(), source) if found else ({}, start)
    entities = _resolve(declared, source)
    length = len(text) - body
    for match in _BODY.finditer(text, body):
        if match["late"]:
            raise InputError(
                f"{source}: {match['late']} in the midst of the document; it belongs at its head"
            )
        if (name := match["name"]) in entities:
            length += len(entities[name])
            if length > most:
                raise InputError(
                    f"{source}: its XML entities expand to more than {most} characters, which no "
                    "ontology needs; this looks like an entity bomb, and nothing of it is read"
                )

    def replace(match: re.Match[str]) -> str:
        found = match[0]
        if found.startswith("<![") and found.endswith("]]>"):
            # As plain text: the parser does not join it to the text beside it.
            return found[9:-3].replace("&", "&amp;").replace("<", "&lt;")
        if found.startswith("<!--") and found.endswith("-->"):
            return ""
        return entities.get(match["name"] or "", found)

    return _BODY.sub(replace, text[body:])


def _match_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _read_doctype(text: str, at: int, source: str) -> tuple[dict[str, str], int]:
    """The entities' stated values, and where the document begins."""
    declared: dict[str, str] = {}
    if not text.startswith("[", at):
        if text.startswith(">", at):
            return declared, at + 1
        raise InputError(
            f"{source}: <!DOCTYPE names an external file ({text[at : at + 60]!r}…); none is read: "
            "remove that name, or convert the ontology to Turtle"
        )
    at += 1
    while True:
        at = _match_space(text, at)
        if comment := _PROLOG.match(text, at):
            at = comment.end()
        elif entity := _ENTITY.match(text, at):
            value = entity["double"] if entity["double"] is not None else entity["single"]
            declared.setdefault(entity["name"], value)  # the first one counts, says XML
            if len(value) > _LONGEST_ENTITY or len(declared) > _MOST_ENTITIES:
                raise InputError(
                    f"{source}: over {_MOST_ENTITIES} XML entities, or one of over "
                    f"{_LONGEST_ENTITY} characters, which no ontology needs; nothing of it is read"
                )
            at = entity.end()
        elif end := re.compile(r"\][ \t\r\n]*>").match(text, at):
            return declared, end.end()
        else:
            line = text.count("\n", 0, at) + 1
            raise InputError(
                f"{source}, line {line}: <!DOCTYPE declares more than plain internal entities "
                f"({text[at : at + 60]!r}…); external and parameter entities are never read: "
                "remove the declaration, or convert the ontology to Turtle"
            )


def _resolve(declared: Mapping[str, str], source: str) -> dict[str, str]:
    """Each entity with the references in it replaced."""
    resolved: dict[str, str] = {}
    for first in declared:
        stack = [first]
        while stack:
            name = stack[-1]
            value = declared[name]
            inner = [r for r in _REFERENCE.findall(value) if r in declared and r not in resolved]
            if circle := next((r for r in inner if r in stack), None):
                raise InputError(
                    f"{source}: the XML entity &{circle}; refers to itself; remove the declaration"
                )
            if inner:
                stack.append(inner[0])
                continue
            parts = _REFERENCE.split(value)
            pieces = [resolved.get(p, f"&{p};") if i % 2 else p for i, p in enumerate(parts)]
            if sum(map(len, pieces)) > _LONGEST_ENTITY:
                raise InputError(
                    f"{source}: the XML entity &{name}; expands to more than {_LONGEST_ENTITY} "
                    "characters, which no ontology needs; this looks like an entity bomb, and "
                    "nothing of it is read"
                )
            whole = "".join(pieces)
            if "<" in whole or re.search("&#(?:60|x0*3c);", whole, re.IGNORECASE):
                raise InputError(
                    f"{source}: the XML entity &{name}; holds markup; write it out where it is used"
                )
            resolved[name] = whole.replace('"', "&quot;").replace("'", "&apos;")
            stack.pop()
    return {name: value for name, value in resolved.items() if name not in _BUILT_IN}


# The child's main function.

MOST_BYTES = 64 * 2**20
"""Of a file unpacked, and of its XML entities expanded; the largest FIBO module has 1 MB."""
MOST_STATEMENTS = 1_000_000
MOST_OUTPUT = 512 * 2**20
"""Bytes: prefixes are written out, and a long one may be used often."""

_FORMATS = {"turtle": ox.RdfFormat.TURTLE, "rdfxml": ox.RdfFormat.RDF_XML}
_N_TRIPLES = ox.RdfFormat.N_TRIPLES
_IRI_SIGNS = ("IRI", "host", "Invalid character")
_NOT_IN_AN_IRI = re.compile(r"[\x00-\x20<>\"{}|\\^`]|%(?![0-9A-Fa-f]{2})")


class _Output:
    """Writes to stdout, and counts."""

    def __init__(self) -> None:
        self._bytes = self._lines = 0
        self.problem = ""

    def write(self, data: bytes) -> int:
        self._bytes += len(data)
        self._lines += data.count(b"\n")
        if self._lines > MOST_STATEMENTS:
            self.problem = f"more than {MOST_STATEMENTS} statements"
        elif self._bytes > MOST_OUTPUT:
            self.problem = f"more than {MOST_OUTPUT >> 20} MiB when its prefixes are written out"
        if self.problem:
            raise OSError(self.problem)
        return sys.stdout.buffer.write(data)

    def flush(self) -> None:
        sys.stdout.buffer.flush()


def serve(kind: str, base: str, source: str, memory_bytes: int, seconds: int) -> None:
    """Parses stdin; the last line says as JSON what was mended or went wrong."""
    data = sys.stdin.buffer.read()
    for encoding in ENCODINGS:  # loaded while files can still be opened
        codecs.lookup(encoding)
    shut_doors(memory_bytes)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    signal.setitimer(signal.ITIMER_REAL, seconds + 1)  # ends it even when the parent is gone
    output = _Output()
    report: dict[str, object] = {}
    try:
        if kind == "rdfxml":
            text = decode_xml(data, source=source)
            data = expand_entities(text, most=MOST_BYTES, source=source).encode("utf-8")
        report = _parse(data, kind, base, source, output)
    except InputError as e:
        report = {"error": str(e)}
    except MemoryError:
        report = {"error": f"{source}: out of memory; import a part of it"}
    sys.stdout.buffer.write(b"\n" + json.dumps(report).encode() + b"\n")
    sys.stdout.buffer.flush()


def _parse(data: bytes, kind: str, base: str, source: str, output: _Output) -> dict[str, object]:
    try:
        # Once before anything is written: wrong IRIs need the lenient reading instead.
        for _ in ox.parse(data, format=_FORMATS[kind], base_iri=base):
            pass
        found = ox.parse(data, format=_FORMATS[kind], base_iri=base)
        ox.serialize((quad.triple for quad in found), cast("IO[bytes]", output), _N_TRIPLES)
    except SyntaxError as e:
        if any(sign in str(e) for sign in _IRI_SIGNS):
            mended = _parse_leniently(data, kind, base, output)
            if mended is not None:
                return {"mended": mended}
        where = f"{source}, line {e.lineno}" if e.lineno else source
        name = "RDF/XML" if kind == "rdfxml" else "Turtle"
        raise InputError(f"{where}: not valid {name}: {e.msg}; correct it there") from e
    except OSError as e:
        raise InputError(f"{source}: {output.problem or e}; import a part of it") from e
    return {}


def _parse_leniently(data: bytes, kind: str, base: str, output: _Output) -> dict[str, str] | None:
    """Writes the statements with wrong IRIs mended; says which, or None when that failed too."""
    mended: dict[str, str] = {}

    def mend(term: Object) -> Object:
        if not isinstance(term, ox.NamedNode):
            return term
        iri = _NOT_IN_AN_IRI.sub(lambda match: quote(match[0], safe=""), term.value)
        if iri != term.value:
            mended[term.value] = iri
        return ox.NamedNode(iri)

    lines = []
    try:
        for quad in ox.parse(data, format=_FORMATS[kind], base_iri=base, lenient=True):
            subject, predicate, value = quad.triple
            lines.append(f"{mend(subject)} {mend(predicate)} {mend(value)} .\n".encode())
    except (SyntaxError, ValueError):
        return None
    for line in lines:
        output.write(line)
    return mended
