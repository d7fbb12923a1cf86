"""Facts, values and names in words, and the places in documents that support them."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.snapshot.index import Index
from kpyramid.snapshot.words import Mask


@dataclass(frozen=True, slots=True)
class Evidence:
    """Characters `start` to `end` of a document, and where that document came from."""

    document_id: str
    chunk_id: str
    start: int
    end: int
    text: str
    source: str


Place = tuple[int, int, int, int]
"""Row of the document, row of the chunk, first character, character after the last."""
ReadTable = Callable[[str], pa.Table]


def find_evidence(
    index: Index, read_table: ReadTable, key: str, seen: Mask | None = None
) -> list[Evidence]:
    """The places that support the row of a key, in their order; none for an unknown key.

    Only those in documents that are `seen`.

    Condensed facts, chunks and instances are found in the index; for other rows whole tables
    are read.
    """
    documents, chunks = index.rows("documents"), index.rows("chunks")
    texts: dict[int, str] = {}
    found = []
    for document, chunk, start, end in sorted(_find_places(index, read_table, key)):
        if seen is not None and not seen[document]:
            continue
        if document not in texts:
            texts[document] = documents.value("text", document)
        found.append(
            Evidence(
                documents.keys[document],
                chunks.keys[chunk],
                start,
                end,
                texts[document][start:end],
                documents.value("source", document),
            )
        )
    return found


def _find_places(index: Index, read_table: ReadTable, key: str) -> set[Place]:
    kind = key.partition("-")[0]
    if kind == "condensed":
        return _cover_condensed(index, key)
    if kind == "chunk":
        chunks = index.rows("chunks")
        row = chunks.find(key)
        if row is None:
            return set()
        span = int(chunks.numbers("start")[row]), int(chunks.numbers("end")[row])
        return {(_document_of(index, row), row, *span)}
    if kind == "instance":
        instances = index.rows("instances")
        row = instances.find(key)
        return set() if row is None else _locate(index, instances.value("places", row))
    if kind == "proposal":
        rows = _pick(read_table("proposals"), {key})
        return _cover_triples(index, read_table, {i for row in rows for i in row["triple_ids"]})
    if kind == "triple":
        return _cover_triples(index, read_table, {key})
    if kind == "raw":
        return _cover_raw(index, read_table, {key})
    if kind == "claim":
        return _cover_claims(index, read_table, {key})
    if kind == "mention":
        return _locate(index, _pick(read_table("mentions"), {key}))
    return set()


def _cover_condensed(index: Index, key: str) -> set[Place]:
    facts = index.rows("condensed")
    row = facts.find(key)
    if row is None:
        return set()
    columns = ("place_chunks", "place_starts", "place_ends")
    listed = (facts.list_of(name, row).tolist() for name in columns)
    return {
        (_document_of(index, chunk), chunk, start, end)
        for chunk, start, end in zip(*listed, strict=True)
    }


def _cover_triples(index: Index, read_table: ReadTable, ids: Collection[str]) -> set[Place]:
    rows = _pick(read_table("triples"), ids)
    return _cover_raw(index, read_table, {i for row in rows for i in row["raw_triple_ids"]})


def _cover_raw(index: Index, read_table: ReadTable, ids: Collection[str]) -> set[Place]:
    """Per raw triple the spans of the claim it was read from."""
    rows = _pick(read_table("raw_triples"), ids)
    return _cover_claims(index, read_table, {row["claim_id"] for row in rows})


def _cover_claims(index: Index, read_table: ReadTable, ids: Collection[str]) -> set[Place]:
    rows = _pick(read_table("claims"), ids)
    spans = ({"chunk_id": row["chunk_id"], **span} for row in rows for span in row["spans"])
    return _locate(index, spans)


def _locate(index: Index, rows: Iterable[dict[str, Any]]) -> set[Place]:
    chunks = index.rows("chunks")
    return {
        (_document_of(index, chunk), chunk, int(row["start"]), int(row["end"]))
        for row in rows
        if (chunk := chunks.find(row["chunk_id"])) is not None
    }


def _document_of(index: Index, chunk: int) -> int:
    return int(index.rows("chunks").numbers("document")[chunk])


def _pick(table: pa.Table, keys: Collection[str]) -> list[dict[str, Any]]:
    wanted = pa.array(sorted(keys), pa.string())
    return list(table.filter(pc.is_in(table[table.column_names[0]], wanted)).to_pylist())
