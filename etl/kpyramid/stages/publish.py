"""Publish, its pure part: the ontology layer as Turtle and N-Triples, with its provenance."""

from collections.abc import Mapping

import pyarrow as pa

from kpyramid.contracts import map_column
from kpyramid.ontology.proposals import adopt_proposals
from kpyramid.ontology.schema import Schema, write_schema
from kpyramid.ontology.store import (
    InstanceStatement,
    Place,
    entity_iri,
    write_instances,
    write_provenance,
)


def run(
    documents: pa.Table,
    chunks: pa.Table,
    entities: pa.Table,
    instances: pa.Table,
    proposals: pa.Table,
    *,
    schema: Schema,
) -> dict[str, str]:
    """The files of the snapshot's `ontology/` folder.

    `seed.ttl` is the schema before completion. `schema.ttl` and `instances.nt` hold what is stated,
    with the sentences each individual is derived from; `provenance.nt` has every sentence that
    states a statement.
    """
    names = map_column(entities, "entity_id", "name")
    document_of = map_column(chunks, "chunk_id", "document_id")
    document = {row["document_id"]: row for row in documents.to_pylist()}

    def locate(place: Mapping[str, object]) -> Place:
        start, end = int(str(place["start"])), int(str(place["end"]))
        row = document[document_of[str(place["chunk_id"])]]
        return Place(
            row["document_id"], start, end, row["text"][start:end], row["source"], row["title"]
        )

    statements = [
        InstanceStatement(
            subject_iri=entity_iri(row["subject_id"]),
            property_iri=row["property_iri"],
            class_iri=row["class_iri"],
            object_iri=entity_iri(row["object_id"]) if row["object_id"] else None,
            literal=row["literal"],
            datatype=row["datatype"],
            subject_label=names[row["subject_id"]],
            object_label=names[row["object_id"]] if row["object_id"] else None,
            places=tuple(locate(place) for place in row["places"]),
            instance_id=row["instance_id"],
        )
        for row in instances.to_pylist()
    ]
    return {
        "ontology/seed.ttl": write_schema(schema),
        "ontology/schema.ttl": write_schema(adopt_proposals(schema, proposals.to_pylist())),
        "ontology/instances.nt": write_instances(statements),
        "ontology/provenance.nt": write_provenance(statements),
    }
