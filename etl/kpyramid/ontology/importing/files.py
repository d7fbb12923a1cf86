"""Ontology files from outside: the form is found, a child process parses it."""

import gzip
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyoxigraph as ox

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.importing.parsing import MOST_BYTES, decode
from kpyramid.ontology.sandbox import list_python, name_end, run_limited
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema, write_schema
from kpyramid.ontology.turtle import XML_SIGNS

# Text2KGBench's JSON.

BASE = "https://w3id.org/kpyramid/text2kgbench/"
"""An ontology's namespace is this, its id and #."""

# Ranges that name no concept but a kind of literal, as Text2KGBench writes them.
_DATATYPES = {
    "number": n.XSD + "decimal",
    "integer": n.XSD + "integer",
    "string": n.XSD + "string",
    "date": n.XSD + "date",
    "year": n.XSD + "gYear",
}


def convert_ontology(text: str, *, source: str, merged: list[tuple[str, str]] | None = None) -> str:
    """The Turtle of an ontology in Text2KGBench's JSON; `parse_schema` reads it.

    A domain or range that no concept declares becomes a class of its own, or `owl:Thing` where
    only a Wikidata number or nothing is given. Concepts that differ in case only are one class. A
    relation stated twice is one property; an end on which its statements differ is `owl:Thing`.
    What was merged is added to `merged`: IRI, and what of it.

    Raises:
        InputError: not such JSON; names every problem.
    """
    try:
        data = json.loads(text.removeprefix("\ufeff"))
    except ValueError as e:
        raise InputError(f"{source}: no valid JSON: {e}; correct the file") from e
    except RecursionError as e:
        raise InputError(f"{source}: nested too deeply for an ontology; correct the file") from e
    problems: list[str] = []
    name = _read_field(data, "id", "the ontology", problems)
    concepts = _read_rows(data, "concepts", ("qid", "label"), problems)
    relations = _read_rows(data, "relations", ("pid", "label"), problems)
    pids = [row["pid"] for row in relations]
    if problems:
        listed = "".join(f"\n  {problem}" for problem in problems)
        raise InputError(f"{source}: {len(problems)} to correct in the ontology:{listed}")
    base = f"{BASE}{quote(name, safe='')}#"
    taken = {quote(pid, safe="") for pid in pids}
    classes: dict[str, OntologyClass] = {}

    def add_class(qid: str, label: str) -> str:
        local = quote(qid[:1].upper() + qid[1:], safe="")
        iri = base + local + ("Class" if local in taken else "")
        classes.setdefault(qid.casefold(), OntologyClass(iri, label))
        return classes[qid.casefold()].iri

    def find_end(name: str) -> str:
        key = name.casefold()
        if not name or (key not in classes and name[:1] == "Q" and name[1:].isdigit()):
            return n.THING
        return classes[key].iri if key in classes else add_class(name, name)

    notes: list[tuple[str, str]] = []
    qids = {row["qid"] for row in concepts}
    said: dict[str, str] = {}
    for row in concepts:
        iri = add_class(row["qid"], row["label"])
        first = said.setdefault(iri, row["qid"])
        if first != row["qid"]:
            notes.append((iri, f"the concepts {first!r} and {row['qid']!r} are one class"))
    properties: dict[str, OntologyProperty] = {}
    for row in relations:
        datatype = None if row["range"] in qids else _DATATYPES.get(row["range"].lower())
        new = OntologyProperty(
            iri=base + quote(row["pid"], safe=""),
            label=row["label"],
            alt_labels=(),
            comment="",
            domain=find_end(row["domain"]),
            range=datatype or find_end(row["range"]),
            is_datatype=datatype is not None,
        )
        old = properties.setdefault(new.iri, new)
        if old != new:
            properties[new.iri] = _merge(old, new)
            notes.append((new.iri, f"stated twice, as {_say(old)} and as {_say(new)}"))
    if merged is not None:
        merged += notes
    schema = Schema(base, tuple(classes.values()), tuple(properties.values()))
    return write_schema(schema)


def _merge(old: OntologyProperty, new: OntologyProperty) -> OntologyProperty:
    """One property of two statements: all labels, and no end that only one of them has.

    Where only one has values of a datatype, the first says what the property is.
    """
    labels = {old.label, *old.alt_labels}
    alt_labels = old.alt_labels if new.label in labels else (*old.alt_labels, new.label)
    range_ = old.range
    if old.range != new.range and old.is_datatype == new.is_datatype:
        range_ = n.RDFS + "Literal" if old.is_datatype else n.THING
    domain = old.domain if old.domain == new.domain else n.THING
    return replace(old, alt_labels=alt_labels, domain=domain, range=range_)


def _say(prop: OntologyProperty) -> str:
    ends = [iri.rpartition("#")[2] for iri in (prop.domain, prop.range)]
    return f"{prop.label!r} from {ends[0]} to {ends[1]}"


def _read_rows(
    data: object, key: str, needed: tuple[str, str], problems: list[str]
) -> list[dict[str, str]]:
    """The rows under a key, their fields stripped; domain and range are empty where not given."""
    rows = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(rows, list) or not rows:
        problems.append(f"no list {key!r}: is this an ontology of Text2KGBench?")
        return []
    found = []
    for at, row in enumerate(rows, 1):
        where = f"{key}, entry {at}"
        fields = {field: _read_field(row, field, where, problems) for field in needed}
        for end in ("domain", "range"):
            value = row.get(end) if isinstance(row, Mapping) else None
            fields[end] = value.strip() if isinstance(value, str) else ""
        found.append(fields)
    return found


def _read_field(row: object, field: str, where: str, problems: list[str]) -> str:
    value = row.get(field) if isinstance(row, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        problems.append(f"{where}: no text under {field!r}")
        return ""
    return value.strip()


# Files.

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
}


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
        text = decode(data, "UTF-8", source=str(path))
        data = convert_ontology(text, source=str(path), merged=merged).encode("utf-8")
    elif form == "Turtle":
        decode(data, "UTF-8", source=str(path))
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
    if head.lower().startswith(XML_SIGNS):
        return "RDF/XML"
    if head.startswith("{"):
        if '"@context"' in head or '"@graph"' in head or '"@id"' in head:
            raise InputError(f"{path}: JSON-LD is not read; convert it to Turtle")
        return "Text2KGBench's JSON"
    return "Turtle"


def _parse(data: bytes, kind: str, path: Path) -> tuple[list[ox.Triple], dict[str, str]]:
    base = BASE_FILES + quote(re.sub(r"\.\w+(\.gz)?$", "", path.name), safe="")
    memory = _MEMORY_BYTES + 4 * len(data)
    command = list_python(
        "kpyramid.ontology.importing.parsing:serve", kind, base, str(path), memory, _SECONDS
    )
    try:
        code, output = run_limited(command, seconds=_SECONDS + 5, given=data)
    except TimeoutError as e:
        raise InputError(f"{path}: stopped after {_SECONDS} seconds; import a part of it") from e
    written, _, said = output.rstrip(b"\n").rpartition(b"\n")
    try:
        report: dict[str, Any] = json.loads(said)
    except ValueError:
        raise InputError(
            f"{path}: its parser ended with {name_end(code)}, most likely at its limit of "
            f"{memory >> 20} MiB or {_SECONDS} seconds; import a part of it"
        ) from None
    if "error" in report:
        raise InputError(report["error"])
    triples = [quad.triple for quad in ox.parse(written, format=ox.RdfFormat.N_TRIPLES)]
    return triples, report.get("mended", {})
