"""What every stage shares: making a table of its contract, making rejects."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.documents.words import deny
from kpyramid.embeddings.port import Embedder
from kpyramid.extraction.types import Chunk
from kpyramid.keys import content_id
from kpyramid.storage.columns import TextColumn
from kpyramid.storage.contracts import load_contracts, map_column

Row = Mapping[str, Any]


def build_table(name: str, rows: Iterable[Row]) -> pa.Table:
    """The table of that name with these rows, checked and sorted by key.

    Raises:
        IntegrityError: a row breaks the contract.
    """
    return load_contracts()[name].build(rows)


def build_rejects(rows: Iterable[Row]) -> pa.Table:
    """The distinct rejects as a table."""
    return build_table("rejects", {row["reject_id"]: row for row in rows}.values())


def title_chunks(documents: pa.Table, chunks: pa.Table) -> list[str]:
    """The texts of chunks for embedding: each under its document's title, if it has one."""
    title = map_column(documents, "document_id", "title")
    return [
        f"{title[row['document_id']]}\n{row['text']}" if title[row["document_id"]] else row["text"]
        for row in chunks.select(["document_id", "text"]).to_pylist()
    ]


def read_chunks(documents: pa.Table, chunks: pa.Table) -> list[Chunk]:
    """The chunks, each with its document's title, as a model is asked about them."""
    title = map_column(documents, "document_id", "title")
    return [
        Chunk(row["text"], title[row["document_id"]], row["document_id"])
        for row in chunks.select(["document_id", "text"]).to_pylist()
    ]


def make_reject(
    stage: str,
    reason: str,
    row_key: str,
    detail: str,
    *,
    document_id: str | None = None,
    chunk_id: str | None = None,
) -> Row:
    """The reject of a row that a stage could not use."""
    return {
        "reject_id": content_id("reject", stage, reason, row_key, document_id, chunk_id, detail),
        "stage": stage,
        "reason": reason,
        "row_key": row_key,
        "document_id": document_id,
        "chunk_id": chunk_id,
        "detail": detail,
    }


def build_vectors(
    owner_table: str,
    ids: Sequence[str] | pa.ChunkedArray,
    texts: Sequence[str],
    embedder: Embedder,
) -> pa.Table:
    """The rows of `vectors` for rows of one table."""
    matrix = embedder.embed(texts)  # may lie in a file: its numbers are not copied
    size = max(1, matrix.shape[1])
    table = pa.table(
        {
            "owner_table": pa.repeat(owner_table, len(ids)),
            "owner_id": ids if isinstance(ids, pa.ChunkedArray) else pa.array(ids, pa.string()),
            "text": texts.read() if isinstance(texts, TextColumn) else pa.array(texts, pa.string()),
            "model": pa.repeat(embedder.name, len(ids)),
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array(matrix.ravel(), pa.float32()), size
            ),
        }
    )
    return load_contracts()["vectors"].finish(table)


def state_facts(entities: pa.Table, relations: pa.Table, triples: pa.Table) -> TextColumn:
    """Each triple in words, `head relation tail`, in the order of the table; denials as such."""
    heads, tails = (
        entities["name"].take(pc.index_in(triples[end], entities["entity_id"].combine_chunks()))
        for end in ("head_id", "tail_id")
    )
    rows = pc.index_in(triples["relation_id"], relations["relation_id"].combine_chunks())
    verbs = relations["name"].take(rows).combine_chunks()
    negated = triples["negated"].combine_chunks()
    denials = map(deny, pc.array_filter(verbs, negated).to_pylist())
    verbs = pc.replace_with_mask(verbs, negated, pa.array(denials, pa.string()))
    tails = pc.coalesce(tails, triples["literal"])
    return TextColumn(pc.binary_join_element_wise(heads, verbs, tails, " "))
