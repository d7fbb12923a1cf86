"""Text2KGBench's ontologies: JSON with concepts and relations in, Turtle out."""

import json
from collections.abc import Mapping
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
    only a Wikidata number or nothing is given. The same concept twice is one class.

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
    problems += [
        f"relation {pid}: stated twice" for pid in sorted(set(pids)) if pids.count(pid) > 1
    ]
    if problems:
        listed = "".join(f"\n  {problem}" for problem in problems)
        raise InputError(f"{source}: {len(problems)} to correct in the ontology:{listed}")
    base = f"{BASE}{quote(name, safe='')}#"
    taken = {quote(pid, safe="") for pid in pids}
    classes: dict[str, OntologyClass] = {}

    def add_class(qid: str, label: str) -> str:
        local = quote(qid[:1].upper() + qid[1:], safe="")
        iri = base + local + ("Class" if local in taken else "")
        classes.setdefault(qid, OntologyClass(iri, label))
        return classes[qid].iri

    def find_end(name: str) -> str:
        if not name or (name not in classes and name[:1] == "Q" and name[1:].isdigit()):
            return n.THING
        return classes[name].iri if name in classes else add_class(name, name)

    for row in concepts:
        add_class(row["qid"], row["label"])
    properties = []
    for row in relations:
        datatype = None if row["range"] in classes else _DATATYPES.get(row["range"].lower())
        properties.append(
            OntologyProperty(
                iri=base + quote(row["pid"], safe=""),
                label=row["label"],
                alt_labels=(),
                comment="",
                domain=find_end(row["domain"]),
                range=datatype or find_end(row["range"]),
                is_datatype=datatype is not None,
            )
        )
    return write_schema(Schema(base, tuple(classes.values()), tuple(properties)))


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
