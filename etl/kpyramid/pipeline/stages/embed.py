"""Embed: chunks, facts and entities of the graph become vectors."""

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
    """`vectors` of every chunk, under its document's title, and of every triple, in words.

    Also of the name of every entity that a triple is about.
    """
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
    told = {*triples["head_id"].to_pylist(), *triples["tail_id"].to_pylist()}
    names = {
        row["entity_id"]: row["name"]
        for row in entities.select(["entity_id", "name"]).to_pylist()
        if row["entity_id"] in told
    }
    parts.append(build_vectors("entities", list(names), list(names.values()), embedder))
    filled = [part for part in parts if part.num_rows] or parts[:1]
    return {"vectors": load_contracts()["vectors"].finish(pa.concat_tables(filled))}
