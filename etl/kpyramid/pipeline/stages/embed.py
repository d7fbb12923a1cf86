"""Embed: chunks and facts of the graph become vectors."""

import pyarrow as pa

from kpyramid.embeddings.port import Embedder
from kpyramid.pipeline.stages.tables import build_vectors, state_facts, title_chunks
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
    """`vectors` of every chunk, under its document's title, and of every triple, in words."""
    texts = title_chunks(documents, chunks)
    parts = [
        build_vectors("chunks", chunks["chunk_id"].to_pylist(), texts, embedder),
        build_vectors(
            "triples",
            triples["triple_id"].to_pylist(),
            state_facts(entities, relations, triples),
            embedder,
        ),
    ]
    filled = [part for part in parts if part.num_rows] or parts[:1]
    return {"vectors": load_contracts()["vectors"].finish(pa.concat_tables(filled))}
