"""Induce: the seed ontology's classes and properties find their instances (PolyRAG Eq. 1).

The rule-made form of `f_ins`: an entity's type names its class, a relation's phrase names the
property, and a value counts only when it passes domain and range.
"""

from collections import Counter

import pyarrow as pa

from kpyramid.contracts import map_column
from kpyramid.embeddings.port import Embedder
from kpyramid.ontology.schema import Schema
from kpyramid.stages.instances import (
    induce_values,
    list_facts,
    make_membership,
    state_values,
)
from kpyramid.stages.tables import Row, build_rejects, build_table, build_vectors


def run(
    claims: pa.Table,
    mentions: pa.Table,
    raw_triples: pa.Table,
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
    *,
    schema: Schema,
    embedder: Embedder,
) -> dict[str, pa.Table]:
    """`instances` with their evidence, the vectors of those with a value, and `rejects`.

    A triple whose phrase names no property is no reject: the graph is its place.
    """
    facts = list_facts(claims, raw_triples, entities, relations, triples)
    values, rejects = induce_values("induce", facts, schema.properties, schema)
    names = map_column(entities, "entity_id", "name")
    instances = values + _list_members(entities, mentions, schema)
    return {
        "instances": build_table("instances", instances),
        "vectors": build_vectors("instances", *state_values(values, schema, names), embedder),
        "rejects": build_rejects(rejects),
    }


def _list_members(entities: pa.Table, mentions: pa.Table, schema: Schema) -> list[Row]:
    """A membership per entity whose type names a class; its evidence is the first such mention."""
    mention = {row["mention_id"]: row for row in mentions.to_pylist()}
    members = []
    for row in entities.to_pylist():
        class_iri = schema.class_for_type(row["type"])
        if class_iri is None:
            continue
        own = [mention[key] for key in row["mentions"]]
        places = sorted(
            (m["chunk_id"], m["start"], m["end"]) for m in own if m["type"] == row["type"]
        )
        share = Counter(m["type"] for m in own)[row["type"]] / len(own)
        members.append(make_membership(row["entity_id"], class_iri, share, places[0], []))
    return members
