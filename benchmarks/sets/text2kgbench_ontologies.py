"""Text2KGBench's ontologies: their JSON as Turtle that the package reads."""

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


def convert_ontology(text: str, *, source: str) -> str:
    """The Turtle of an ontology in Text2KGBench's JSON; `parse_schema` reads it.

    A domain or range that no concept declares becomes a class of its own, or `owl:Thing` where
    only a Wikidata number or nothing is given. Concepts that differ in case only are one class. A
    relation stated twice is one property; an end on which its statements differ is `owl:Thing`.

    Raises:
        InputError: not such JSON; names the first problem.
    """
    try:
        data = json.loads(text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as e:
        raise InputError(f"{source}: no valid JSON: {e}; correct the file") from e
    name = _read_field(data, "id", f"{source}: the ontology")
    concepts = _read_rows(data, "concepts", ("qid", "label"), source)
    relations = _read_rows(data, "relations", ("pid", "label"), source)
    base = f"{BASE}{quote(name, safe='')}#"
    taken = {quote(row["pid"], safe="") for row in relations}
    classes: dict[str, OntologyClass] = {}

    def add_class(qid: str, label: str) -> str:
        local = quote(qid[:1].upper() + qid[1:], safe="")
        iri = base + local + ("Class" if local in taken else "")
        return classes.setdefault(qid.casefold(), OntologyClass(iri, label)).iri

    def find_end(name: str) -> str:
        key = name.casefold()
        if not name or (key not in classes and name[:1] == "Q" and name[1:].isdigit()):
            return n.THING
        return classes[key].iri if key in classes else add_class(name, name)

    for row in concepts:
        add_class(row["qid"], row["label"])
    qids = {row["qid"] for row in concepts}
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
        properties[new.iri] = _merge(properties.get(new.iri, new), new)
    return write_schema(Schema(base, tuple(classes.values()), tuple(properties.values())))


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


def _read_rows(
    data: object, key: str, needed: tuple[str, str], source: str
) -> list[dict[str, str]]:
    """The rows under a key, their fields stripped; domain and range are empty where not given."""
    rows = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(rows, list) or not rows:
        raise InputError(f"{source}: no list {key!r}: is this an ontology of Text2KGBench?")
    found = []
    for at, row in enumerate(rows, 1):
        fields = {name: _read_field(row, name, f"{source}: {key}, entry {at}") for name in needed}
        ends = {end: str(row.get(end) or "").strip() for end in ("domain", "range")}
        found.append(fields | ends)
    return found


def _read_field(row: object, field: str, where: str) -> str:
    value = row.get(field) if isinstance(row, Mapping) else None
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: no text under {field!r}")
    return value.strip()
