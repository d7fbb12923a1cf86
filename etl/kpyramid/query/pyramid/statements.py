"""Facts, values and names in words, by the numbers of their rows in the index."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from kpyramid.indexing.mapped import MappedRows
from kpyramid.indexing.words import Mask
from kpyramid.ontology.schema import Schema
from kpyramid.query.pyramid.index import Index

LITERAL = "LITERAL"
_MENTION = ("text", "type", "start", "end")

Statement = tuple[str, str, str, str, str | None, str, str]
"""Id, name and type of the head, relation, id, name and type of the tail."""
Weight = tuple[float, int, bool, bool]
"""Confidence of the best triple, statements, whether one is negated, whether one is hedged."""


def state_condensed(index: Index, key: str) -> Statement:
    """A condensed fact in words; a literal tail has no id and the type `LITERAL`.

    Raises:
        KeyError: there is no such fact.
    """
    facts = index.rows("condensed")
    row = facts.find(key)
    if row is None:
        raise KeyError(key)
    relation = index.rows("relations").value("name", int(facts.numbers("relation")[row]))
    tail = int(facts.numbers("tail")[row])
    value: tuple[str | None, str, str] = (None, facts.value("literal", row), LITERAL)
    if tail >= 0:
        value = state_entity(index, tail)
    return *state_entity(index, int(facts.numbers("head")[row])), relation, *value


def state_entity(index: Index, row: int) -> tuple[str, str, str]:
    """Id, name and type of an entity."""
    entities = index.rows("entities")
    return entities.keys[row], entities.value("name", row), entities.value("type", row)


def weigh_condensed(index: Index, key: str) -> Weight:
    """How well a condensed fact is supported.

    Raises:
        KeyError: there is no such fact.
    """
    facts = index.rows("condensed")
    row = facts.find(key)
    if row is None:
        raise KeyError(key)
    return (
        float(facts.numbers("confidence")[row]),
        int(facts.numbers("support")[row]),
        bool(facts.value("negated", row)),
        bool(facts.value("hedged", row)),
    )


def list_facts(
    index: Index, entity_ids: Collection[str], most: int | None, seen: Mask | None = None
) -> list[str]:
    """The keys of the first `most` condensed facts about entities, in key order."""
    entities, facts = index.rows("entities"), index.rows("condensed")
    rows = [row for key in entity_ids if (row := entities.find(key)) is not None]
    if not rows:
        return []
    found = np.unique(np.concatenate([entities.list_of("facts", row) for row in rows]))
    found = found if seen is None else found[seen[found]]
    return [facts.keys[int(row)] for row in found[:most]]


def list_instances(
    index: Index, subject_ids: Collection[str], seen: Mask | None = None
) -> list[dict[str, Any]]:
    """The rows of the table `instances` about some individuals, in key order."""
    entities, instances = index.rows("entities"), index.rows("instances")
    rows = [row for key in subject_ids if (row := entities.find(key)) is not None]
    found = sorted({int(at) for row in rows for at in entities.list_of("instances", row)})
    return [instances.read(row) for row in found if seen is None or seen[row]]


def state_instance(
    index: Index, schema: Schema, key: str
) -> tuple[str, str, str, str, str | None, str, str]:
    """A statement of the ontology: subject with name and type, label of the property, value.

    Of a membership the label is `is a` and the value the class's label.

    Raises:
        KeyError: there is no such instance.
    """
    instances = index.rows("instances")
    row = instances.find(key)
    if row is None:
        raise KeyError(key)
    said = instances.read(row)
    subject = _state_entity_of(index, said["subject_id"])
    if said["property_iri"] is None:
        return *subject, "is a", None, schema.class_by_iri[said["class_iri"]].label, LITERAL
    label = schema.property_by_iri[said["property_iri"]].label
    if said["object_id"] is None:
        return *subject, label, None, said["literal"], LITERAL
    return *subject, label, *_state_entity_of(index, said["object_id"])


def _state_entity_of(index: Index, key: str) -> tuple[str, str, str]:
    row = index.rows("entities").find(key)
    if row is None:
        raise KeyError(key)
    return state_entity(index, row)


def list_mentions(index: Index, chunk_ids: Sequence[str]) -> list[dict[str, Any]]:
    """The mentions in some chunks, in key order: chunk_id, text, type, start, end."""
    chunks, mentions = index.rows("chunks"), index.rows("mentions")
    found: list[tuple[str, dict[str, Any]]] = []
    for key in sorted(set(chunk_ids)):
        row = chunks.find(key)
        if row is None:
            continue
        first, last = map(int, np.searchsorted(mentions.numbers("chunk"), [row, row + 1]))
        names, *columns = (
            mentions.column(name)[first:last].to_pylist() for name in ("mention_id", *_MENTION)
        )
        found += [
            (name, {"chunk_id": key, **dict(zip(_MENTION, said, strict=True))})
            for name, *said in zip(names, *columns, strict=True)
        ]
    return [mention for _, mention in sorted(found, key=lambda pair: pair[0])]


def read_by_key(rows: MappedRows, column: str, keys: Collection[str]) -> dict[str, Any]:
    """One column by the keys of some rows; unknown keys are left out."""
    places = {key: rows.find(key) for key in keys}
    return {key: rows.value(column, row) for key, row in places.items() if row is not None}
