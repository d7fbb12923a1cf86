"""Publish, its pure part: the ontology layer as Turtle and N-Triples."""

import pyarrow as pa

from kpyramid.contracts import map_column
from kpyramid.ontology.proposals import adopt_proposals
from kpyramid.ontology.schema import Schema, write_schema
from kpyramid.ontology.store import InstanceStatement, entity_iri, write_instances


def run(
    entities: pa.Table, instances: pa.Table, proposals: pa.Table, *, schema: Schema
) -> dict[str, str]:
    """The files of the snapshot's `ontology/` folder: `schema.ttl` and `instances.nt`."""
    names = map_column(entities, "entity_id", "name")
    statements = (
        InstanceStatement(
            subject_iri=entity_iri(row["subject_id"]),
            property_iri=row["property_iri"],
            class_iri=row["class_iri"],
            object_iri=entity_iri(row["object_id"]) if row["object_id"] else None,
            literal=row["literal"],
            datatype=row["datatype"],
            subject_label=names[row["subject_id"]],
            object_label=names[row["object_id"]] if row["object_id"] else None,
            source_iri=entity_iri(row["chunk_id"]),
        )
        for row in instances.to_pylist()
    )
    return {
        "ontology/schema.ttl": write_schema(adopt_proposals(schema, proposals.to_pylist())),
        "ontology/instances.nt": write_instances(statements),
    }
