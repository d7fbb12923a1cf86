"""Publish, its pure part: the ontology layer as Turtle and N-Triples, with its provenance."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.ontology.proposals import adopt_proposals
from kpyramid.ontology.schema import Schema, write_schema
from kpyramid.ontology.store import (
    InstanceStatement,
    Quotation,
    state_row,
    write_instances,
    write_ontology,
    write_provenance,
)
from kpyramid.ontology.validation.repair import Withdrawal
from kpyramid.pipeline.stages.tables import build_rejects, make_reject
from kpyramid.storage.contracts import load_contracts, map_column

_BLOCK = 4096
"""Rows that are objects at a time."""


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

    `seed.ttl` is the schema before completion. `schema.ttl` and `instances.nt` hold the statements,
    with the sentences each individual is derived from; `provenance.nt` has every sentence of every
    statement. `ontology.nt` holds schema and statements, for readers of OWL.
    """
    statements = list_statements(documents, chunks, entities, instances)
    return complete_texts(write_judged(statements, proposals, schema), statements, schema)


def write_judged(
    statements: Sequence[InstanceStatement], proposals: pa.Table, schema: Schema
) -> dict[str, str]:
    """Those files of the `ontology/` folder that `judge_ontology` reads, see `run`."""
    return {
        "ontology/schema.ttl": write_schema(adopt_proposals(schema, proposals.to_pylist())),
        "ontology/instances.nt": write_instances(statements),
        "ontology/provenance.nt": write_provenance(statements),
    }


def complete_texts(
    judged: Mapping[str, str], statements: Sequence[InstanceStatement], schema: Schema
) -> dict[str, str]:
    """All files of the `ontology/` folder, from those of `write_judged`."""
    stated = write_instances(statements, sourced=False)
    return {
        **judged,
        "ontology/seed.ttl": write_schema(schema),
        "ontology/ontology.nt": write_ontology(judged["ontology/schema.ttl"], stated),
    }


def list_statements(
    documents: pa.Table, chunks: pa.Table, entities: pa.Table, instances: pa.Table
) -> list[InstanceStatement]:
    """The rows of `instances` with their names and sentences."""
    names = map_column(entities, "entity_id", "name")
    document_of = map_column(chunks, "chunk_id", "document_id")
    columns = documents.select(["document_id", "text", "source", "title"])
    document = {row["document_id"]: row for row in columns.to_pylist()}

    def locate(place: Mapping[str, Any]) -> Quotation:
        start, end = place["start"], place["end"]
        row = document[document_of[place["chunk_id"]]]
        return Quotation(
            row["document_id"], start, end, row["text"][start:end], row["source"], row["title"]
        )

    return [
        state_row(row, names, map(locate, row["places"]))
        for block in instances.to_batches(_BLOCK)
        for row in block.to_pylist()
    ]


def reject_withdrawn(instances: pa.Table, withdrawn: Iterable[Withdrawal]) -> pa.Table:
    """A reject for each withdrawn statement, under the key of its row."""
    chunk_of = map_column(instances, "instance_id", "chunk_id")
    return build_rejects(
        make_reject(
            "publish",
            withdrawal.reason,
            str(withdrawal.statement.instance_id),
            withdrawal.detail,
            document_id=withdrawal.statement.places[0].document_id,
            chunk_id=chunk_of[str(withdrawal.statement.instance_id)],
        )
        for withdrawal in withdrawn
    )


def leave_out(
    tables: Mapping[str, pa.Table], rejects: pa.Table
) -> dict[str, pa.Table | Iterable[pa.Table]]:
    """The tables that name instances without the rejected ones, and `rejects` with these rows."""
    gone = rejects["row_key"].combine_chunks()
    left = {
        name: tables[name].filter(pc.invert(pc.is_in(tables[name]["instance_id"], gone)))
        for name in ("instances", "additions")
    }
    return {**left, "rejects": load_contracts()["rejects"].unite([tables["rejects"], rejects])}
