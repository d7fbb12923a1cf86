"""Text2KGBench's ontologies: JSON with concepts and relations in, Turtle out."""

import json
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema, write_schema

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
