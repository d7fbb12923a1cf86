"""The child that parses RDF from outside: `serve` reads it on stdin and writes N-Triples.

A parser may be led to abort, to hang, or to write without end; whatever it does, it does here,
without files or sockets, and within the memory and the length that the parent allows.
"""

import codecs
import json
import re
import resource
import signal
import sys
from typing import IO, cast
from urllib.parse import quote

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology.foreign.entities import ENCODINGS, decode_xml, expand_entities
from kpyramid.ontology.sparql import shut_doors
from kpyramid.ontology.turtle import Object

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
    """Parses stdin; what went wrong, or was mended, is one JSON object on stderr."""
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
    output.flush()
    sys.stderr.write(json.dumps(report) + "\n")
    sys.stderr.flush()


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
