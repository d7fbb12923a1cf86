"""Ontology files from outside: the form is found, a child process parses it.

A parser may be led to abort, to hang, or to write without end; whatever it does, it does in the
child, without files or sockets, and within the memory and the length that the parent allows.
"""

import gzip
import json
import re
import resource
import signal
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree.ElementTree import ParseError, canonicalize

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology.sandbox import list_python, name_end, run_limited
from kpyramid.ontology.sparql import shut_doors
from kpyramid.ontology.turtle import XML_SIGNS

_MOST_BYTES = 64 * 2**20
"""Of a file unpacked; the largest FIBO module has 1 MB."""
_MOST_STATEMENTS = 1_000_000
_MOST_OUTPUT = 512 * 2**20
"""Bytes: prefixes are written out, and a long one may be used often."""
_SECONDS = 120
"""64 MiB of Turtle take about 20 seconds."""
_MEMORY_BYTES = 2**30
"""On top of the file's own size, and what the parser needs for it."""

BASE_FILES = "https://w3id.org/kpyramid/imported/"
"""Relative IRIs of a file that states no base are resolved under this and the file's name."""

_FOREIGN = {
    "Prefix(": "OWL functional syntax",
    "Ontology(": "OWL functional syntax",
    "Prefix:": "Manchester syntax",
    "Ontology:": "Manchester syntax",
    "format-version:": "OBO",
    "PK\x03\x04": "a zip archive",
    "{": "JSON",
}


@dataclass(frozen=True, slots=True)
class OutsideText:
    """The statements of a file, and its form."""

    triples: list[ox.Triple]
    form: str


def read_outside(path: Path) -> OutsideText:
    """The statements of Turtle, N-Triples or RDF/XML; the file may be packed by gzip.

    Nothing that the file names is opened or fetched.

    Raises:
        InputError: no such file, of no such form, or malformed (names the line); too large, or
            its parser had to be stopped.
    """
    data = _read_bytes(path)
    form = _find_form(data, path)
    base = BASE_FILES + quote(re.sub(r"\.\w+(\.gz)?$", "", path.name), safe="")
    memory = _MEMORY_BYTES + 4 * len(data)
    command = list_python(f"{__name__}:serve", form, base, memory)
    try:
        code, output = run_limited(command, seconds=_SECONDS + 5, given=data)
    except TimeoutError as e:
        raise InputError(f"{path}: stopped after {_SECONDS} seconds; import a part of it") from e
    written, _, last = output.rstrip(b"\n").rpartition(b"\n")
    try:
        report: dict[str, Any] = json.loads(last)
    except ValueError:
        raise InputError(
            f"{path}: its parser ended with {name_end(code)}, most likely at its limit of "
            f"{memory >> 20} MiB or {_SECONDS} seconds; import a part of it"
        ) from None
    if "error" in report:
        raise InputError(f"{path}{report['error']}")
    triples = [quad.triple for quad in ox.parse(written, format=ox.RdfFormat.N_TRIPLES)]
    return OutsideText(triples, form)


def _read_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise InputError(f"{path}: a folder; name one file of it")
    if not path.is_file():
        raise InputError(f"{path}: no such file; name one in Turtle, N-Triples or RDF/XML")
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise InputError(f"{path}: broken gzip: {e}; fetch or pack the file again") from e
    if len(data) > _MOST_BYTES:
        unpacked = ", unpacked" if packed else ""
        raise InputError(
            f"{path}: over {_MOST_BYTES >> 20} MiB{unpacked}; an ontology is far smaller: "
            "leave its individuals out, or import a part of it"
        )
    return data


def _find_form(data: bytes, path: Path) -> str:
    # UTF-16 is for XML only, and its zero bytes do not hide the signs.
    head = data[:2000].decode("utf-8", "replace").lstrip("\ufeff \t\r\n\ufffd").replace("\0", "")
    if not head:
        raise InputError(f"{path}: empty; an ontology declares at least one class")
    for sign, name in _FOREIGN.items():
        if head.startswith(sign):
            raise InputError(
                f"{path}: this is {name}, which is not read; convert it to OWL or Turtle, for "
                f"example with ROBOT: robot convert --input {path.name} --output {path.stem}.owl"
            )
    return "RDF/XML" if head.lower().startswith(XML_SIGNS) else "Turtle"


# The child process.

_FORMATS = {"Turtle": ox.RdfFormat.TURTLE, "RDF/XML": ox.RdfFormat.RDF_XML}


def serve(form: str, base: str, memory_bytes: int) -> None:
    """Writes the statements of stdin as N-Triples; the last line is `{}` or has an error.

    The error follows on the file's name.
    """
    data = sys.stdin.buffer.read()
    for encoding in ("iso-8859-15", "windows-1252"):  # loaded while files can still be opened
        b"".decode(encoding)
    shut_doors(memory_bytes)
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS + 1))
    signal.setitimer(signal.ITIMER_REAL, _SECONDS + 1)  # ends it even when the parent is gone
    report = {}
    try:
        _write_statements(_decode(data, form), form, base)
    except InputError as e:
        report = {"error": str(e)}
    except MemoryError:
        report = {"error": ": out of memory; import a part of it"}
    sys.stdout.buffer.write(b"\n" + json.dumps(report).encode() + b"\n")
    sys.stdout.buffer.flush()


def _decode(data: bytes, form: str) -> bytes:
    """The text as UTF-8; of XML its canonical form, in which entities are written out.

    Expat reads no external entity, and stops where entities grow to a hundred times the file.
    """
    try:
        if form == "RDF/XML":
            return canonicalize(data).encode()
        data.decode()
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise InputError(
            f", line {line}: byte {e.start} is no utf-8; convert the file to UTF-8"
        ) from e
    except (ParseError, LookupError, ValueError) as e:
        raise InputError(f": not valid XML: {e}; correct it there, or convert it to Turtle") from e
    return data.removeprefix(b"\xef\xbb\xbf")


def _write_statements(data: bytes, form: str, base: str) -> None:
    """Writes to stdout as N-Triples, within limits."""
    size = 0
    try:
        for number, quad in enumerate(ox.parse(data, format=_FORMATS[form], base_iri=base), 1):
            line = f"{quad.triple} .\n".encode()
            size += len(line)
            if number > _MOST_STATEMENTS:
                raise InputError(f": more than {_MOST_STATEMENTS} statements; import a part of it")
            if size > _MOST_OUTPUT:
                raise InputError(
                    f": more than {_MOST_OUTPUT >> 20} MiB when its prefixes are written out; "
                    "import a part of it"
                )
            sys.stdout.buffer.write(line)
    except SyntaxError as e:
        where = f", line {e.lineno}" if e.lineno else ""
        raise InputError(f"{where}: not valid {form}: {e.msg}; correct it there") from e
