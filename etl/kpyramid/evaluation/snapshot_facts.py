"""What a snapshot knows, as facts that questions are made of."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kpyramid.evaluation.facts import Fact, Thing, Words, fold_words, split_label
from kpyramid.evaluation.values import Form, say_value
from kpyramid.ontology import names as n
from kpyramid.ontology.schema import Schema
from kpyramid.query.pyramid.snapshot import Snapshot

TYPE_WORDS: Mapping[str, str] = {
    "PERSON": "person",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
    "ORG": "organisation",
    "WORK_OF_ART": "work",
    "EVENT": "event",
    "NORP": "nationality or group",
    "LANGUAGE": "language",
    "PRODUCT": "product",
    "LAW": "law",
}
"""What the recogniser's types are called; a NOUN is anything."""
_COUNTS = frozenset(
    n.XSD + name
    for name in "integer decimal double float int long nonNegativeInteger positiveInteger".split()
)


def list_things(snapshot: Snapshot) -> tuple[list[Thing], list[tuple[str, str]]]:
    """Its entities with what the recogniser takes them for, and the names that facts link."""
    rows = snapshot.table("entities").select(["entity_id", "name", "type", "surface_forms"])
    things = [
        Thing(row["entity_id"], row["name"], (kind,), tuple(row["surface_forms"]))
        for row in rows.to_pylist()
        if (kind := TYPE_WORDS.get(row["type"])) and row["name"][:1].isupper()
    ]
    facts = snapshot.table("condensed").select(["head_id", "tail_id"]).to_pylist()
    names = snapshot.names
    linked = [(names[f["head_id"]], names[f["tail_id"]]) for f in facts if f["tail_id"]]
    return things, linked


def type_things(things: Iterable[Thing]) -> dict[Words, Thing]:
    """Things under their names; one that shares a name with another under none."""
    found: dict[Words, list[Thing]] = defaultdict(list)
    for thing in things:
        for words in {fold_words(name) for name in (thing.name, *thing.names)}:
            found[words].append(thing)
    return {words: same[0] for words, same in found.items() if len(same) == 1}


def list_instance_facts(snapshot: Snapshot) -> Iterator[Fact]:
    """The values of properties in the ontology layer."""
    schema = snapshot.schema
    rows = snapshot.table("instances").to_pylist()
    classes = _list_classes(rows, schema)
    names, spellings = snapshot.names, _list_spellings(snapshot)
    places = _Places(snapshot)

    def name_thing(entity_id: str) -> Thing:
        kinds = tuple(_name_class(iri, schema) for iri in classes.get(entity_id, ()))
        return Thing(entity_id, names[entity_id], kinds, spellings.get(entity_id, ()))

    for row in rows:
        found = schema.property_by_iri.get(row["property_iri"] or "")
        if found is None:
            continue
        if row["object_id"]:
            value = name_thing(row["object_id"])
        else:
            said, form = say_value(row["literal"], counts=row["datatype"] in _COUNTS)
            value = Thing(said, said, (), form=form or _read_text(row["datatype"]))
        documents, evidence = places.read(row["places"])
        ends = (_name_class(found.domain, schema), _name_class(found.range, schema))
        subject = name_thing(row["subject_id"])
        yield Fact(subject, found.label, value, ends, documents, evidence, row["confidence"])


def _read_text(datatype: str | None) -> Form:
    return "text" if datatype else ""


def _name_class(iri: str, schema: Schema) -> str:
    """A class in words; nothing for the most general, and for datatypes."""
    found = schema.class_by_iri.get(iri)
    return split_label(found.label) if found and iri != n.THING else ""


def _list_classes(rows: Iterable[Mapping[str, Any]], schema: Schema) -> dict[str, list[str]]:
    """The classes of each individual with those above them, the narrowest first."""
    own: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        own[row["subject_id"]].add(row["class_iri"])
        found = schema.property_by_iri.get(row["property_iri"] or "")
        if row["object_id"] and found and found.range in schema.class_by_iri:
            own[row["object_id"]].add(found.range)
    ordered = {}
    for entity, iris in own.items():
        every = {up for iri in iris for up in schema.find_ancestors(iri)} - {n.THING}
        known = every & set(schema.class_by_iri)
        ordered[entity] = sorted(known, key=lambda c: (-len(schema.find_ancestors(c)), c))
    return ordered


def _list_spellings(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    rows = snapshot.table("entities").select(["entity_id", "surface_forms"]).to_pylist()
    return {row["entity_id"]: tuple(row["surface_forms"]) for row in rows}


class _Places:
    """The rows of the corpus and the sentences behind places, all tables read once."""

    def __init__(self, snapshot: Snapshot) -> None:
        documents = snapshot.table("documents").select(["document_id", "source", "text"])
        self._documents = {row["document_id"]: row for row in documents.to_pylist()}
        chunks = snapshot.table("chunks").select(["chunk_id", "document_id"]).to_pylist()
        self._document_of = {row["chunk_id"]: row["document_id"] for row in chunks}

    def read(self, places: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The ids of the rows (what stands after "#" in the source), and the sentences."""
        ids: dict[str, None] = {}
        texts: dict[str, None] = {}
        for place in places:
            document = self._documents[self._document_of[place["chunk_id"]]]
            source = str(document["source"])
            ids[source.rpartition("#")[2]] = None
            texts[document["text"][place["start"] : place["end"]]] = None
        return tuple(ids), tuple(texts)
