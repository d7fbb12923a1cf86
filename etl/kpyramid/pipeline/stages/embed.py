"""Embed: chunks, facts and entities of the graph become vectors."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.embeddings.port import Embedder
from kpyramid.pipeline.stages.tables import build_vectors, state_facts, title_chunks
from kpyramid.storage.columns import TextColumn
from kpyramid.storage.contracts import load_contracts


def run(
    documents: pa.Table,
    chunks: pa.Table,
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
    *,
    embedder: Embedder,
) -> dict[str, pa.Table]:
    """`vectors` of chunks under their documents' titles, triples in words, and entities' names.

    Entities are those that a triple has as head or tail.
    """
    mentioned = pc.is_in(
        entities["entity_id"],
        value_set=pa.chunked_array([*triples["head_id"].chunks, *triples["tail_id"].chunks]),
    )
    named = entities.filter(mentioned)
    owners: dict[str, tuple[pa.ChunkedArray, Sequence[str]]] = {  # in the order of the contract
        "chunks": (chunks["chunk_id"], title_chunks(documents, chunks)),
        "entities": (named["entity_id"], TextColumn(named["name"])),
        "triples": (triples["triple_id"], state_facts(entities, relations, triples)),
    }
    parts = [build_vectors(table, ids, texts, embedder) for table, (ids, texts) in owners.items()]
    return {"vectors": load_contracts()["vectors"].unite(parts)}
