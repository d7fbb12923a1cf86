"""Chunk: documents become runs of whole sentences within a token budget."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from kpyramid.documents.blocks import read_blocks
from kpyramid.documents.sentences import Piece
from kpyramid.extraction.types import Titled
from kpyramid.keys import content_id
from kpyramid.pipeline.stages.tables import Row, build_rejects, build_table, make_reject

Splitter = Callable[[Sequence[Titled]], Sequence[Sequence[Piece]]]


def run(documents: pa.Table, *, splitter: Splitter) -> dict[str, pa.Table]:
    """`chunks` with `document.text[start:end] == chunk.text`; a text without words is a reject."""
    rows, texts = documents.select(["document_id", "text"]).to_pylist(), list_texts(documents)
    chunks: list[Row] = []
    rejects: list[Row] = []
    for row, pieces in zip(rows, splitter(texts), strict=True):
        document_id = row["document_id"]
        if not pieces:
            detail = "no word and no punctuation mark in the text"
            rejects.append(
                make_reject("chunk", "no_words", document_id, detail, document_id=document_id)
            )
        for piece in pieces:
            chunks.append(
                {
                    "chunk_id": content_id("chunk", document_id, piece.start, piece.end),
                    "document_id": document_id,
                    "start": piece.start,
                    "end": piece.end,
                    "text": row["text"][piece.start : piece.end],
                    "tokens": piece.tokens,
                }
            )
    return {"chunks": build_table("chunks", chunks), "rejects": build_rejects(rejects)}


def list_texts(documents: pa.Table) -> list[Titled]:
    """The text of each document with its headings: a chunk does not end in a heading."""
    return [
        Titled(row["text"], "", tuple(b for b in read_blocks(row["blocks"]) if b.kind == "heading"))
        for row in documents.select(["text", "blocks"]).to_pylist()
    ]
