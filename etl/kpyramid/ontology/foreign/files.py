"""Ontologies from outside, read safely: the file's form is found, and a child process parses it."""

import gzip
import json
import re
import subprocess
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology.foreign.parsing import MOST_BYTES
from kpyramid.ontology.limited import list_environment
from kpyramid.ontology.sandbox import name_end
from kpyramid.ontology.text2kgbench import convert_ontology

_SECONDS = 120
"""64 MiB of Turtle take about 20 seconds."""
_MEMORY_BYTES = 2**30
"""On top of the file's own size, and what the parser needs for it."""

BASE = "https://w3id.org/kpyramid/imported/"
"""Relative IRIs of a file that states no base are resolved under this and the file's name."""

_FOREIGN = {
    "Prefix(": "OWL functional syntax",
    "Ontology(": "OWL functional syntax",
    "Prefix:": "Manchester syntax",
    "Ontology:": "Manchester syntax",
    "format-version:": "OBO",
    "PK\x03\x04": "a zip archive",
}
_XML_SIGNS = ("<?xml", "<!doctype", "<!--", "<rdf:rdf")


@dataclass(frozen=True, slots=True)
class OutsideText:
    """The statements of a file, its form, and IRIs that were mended, by what they were.

    `merged`: IRIs of what was stated more than once, and how.
    """

    triples: list[ox.Triple]
    form: str
    mended: Mapping[str, str]
    merged: Sequence[tuple[str, str]] = ()


def read_outside(path: Path) -> OutsideText:
    """The statements of Turtle, N-Triples, RDF/XML or Text2KGBench's JSON; may end in .gz.

    Nothing that the file names is opened or fetched.

    Raises:
        InputError: no such file, of no such form, or malformed (names the line); too large, or
            its parser had to be stopped.
    """
    data = _read_bytes(path)
    form = _find_form(data, path)
    merged: list[tuple[str, str]] = []
    if form == "Text2KGBench's JSON":
        text = _decode(data, path)
        data = convert_ontology(text, source=str(path), merged=merged).encode("utf-8")
    elif form == "Turtle":
        _decode(data, path)
        data = data.removeprefix(b"\xef\xbb\xbf")
    triples, mended = _parse(data, "rdfxml" if form == "RDF/XML" else "turtle", path)
    return OutsideText(triples, form, mended, merged)


def _read_bytes(path: Path) -> bytes:
    if path.is_dir():
        raise InputError(f"{path}: a folder; name one file of it")
    if not path.is_file():
        raise InputError(f"{path}: no such file; name one in Turtle, N-Triples, RDF/XML or JSON")
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as e:
        raise InputError(f"{path}: broken gzip: {e}; fetch or pack the file again") from e
    if len(data) > MOST_BYTES:
        unpacked = ", unpacked" if packed else ""
        raise InputError(
            f"{path}: over {MOST_BYTES >> 20} MiB{unpacked}; an ontology is far smaller: "
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
                f"{path}: this is {name}, which is not read; "
                "convert it to Turtle, for example with ROBOT or Protégé"
            )
    if head.lower().startswith(_XML_SIGNS):
        return "RDF/XML"
    if head.startswith("{"):
        if '"@context"' in head or '"@graph"' in head or '"@id"' in head:
            raise InputError(f"{path}: JSON-LD is not read; convert it to Turtle")
        return "Text2KGBench's JSON"
    return "Turtle"


def _decode(data: bytes, path: Path) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as e:
        line = data.count(b"\n", 0, e.start) + 1
        raise InputError(
            f"{path}, line {line}: byte {e.start} is no UTF-8; convert the file to UTF-8"
        ) from e


def _parse(data: bytes, kind: str, path: Path) -> tuple[list[ox.Triple], dict[str, str]]:
    base = BASE + quote(re.sub(r"\.\w+(\.gz)?$", "", path.name), safe="")
    memory = _MEMORY_BYTES + 4 * len(data)
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        "from kpyramid.ontology.foreign.parsing import serve; "
        f"serve({kind!r}, {base!r}, {str(path)!r}, {memory}, {_SECONDS})"
    )
    child = subprocess.Popen(  # noqa: S603  our own interpreter and our own code
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=list_environment(),
    )
    try:
        written, said = child.communicate(data, timeout=_SECONDS + 5)
    except subprocess.TimeoutExpired as e:
        raise InputError(f"{path}: stopped after {_SECONDS} seconds; import a part of it") from e
    finally:
        child.kill()
        child.communicate()
    report = _read_report(said)
    if report is None:
        end = name_end(child.returncode)
        raise InputError(
            f"{path}: its parser ended with {end}, most likely at its limit of "
            f"{memory >> 20} MiB or {_SECONDS} seconds; import a part of it"
        )
    if "error" in report:
        raise InputError(str(report["error"]))
    triples = [quad.triple for quad in ox.parse(written, format=ox.RdfFormat.N_TRIPLES)]
    return triples, report.get("mended", {})


def _read_report(said: bytes) -> "dict[str, dict[str, str]] | None":
    """The child's last line, if it is its report; native code may write to stderr as well."""
    try:
        found = json.loads(said.decode("utf-8", "replace").strip().rpartition("\n")[2])
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
