"""Facts, values and names in words, and the places in documents that support them."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.numerics.arrays import Mask
from kpyramid.snapshot.store import Store

_LEARNT = {"experience=gold": "gold", "experience=rating": "rating"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Characters `start` to `end` of a document, and where that document came from.

    `learnt`: `gold` or `rating` where it was learnt from an answered question, else empty.
    """

    document_id: str
    chunk_id: str
    start: int
    end: int
    text: str
    source: str
    learnt: str = ""


Place = tuple[int, int, int, int]
"""Row of the document, row of the chunk, first character, character after the last."""
ReadTable = Callable[[str], pa.Table]


def find_evidence(
    store: Store, read_table: ReadTable, key: str, seen: Mask | None = None
) -> list[Evidence]:
    """The places that support the row of a key, in their order; none for an unknown key.

    Only those in documents that are `seen`.

    Condensed facts, chunks and instances are found in the index; for other rows whole tables
    are read.
    """
    documents, chunks = store.rows("documents"), store.rows("chunks")
    texts: dict[int, str] = {}
    found = []
    for document, chunk, start, end in sorted(_find_places(store, read_table, key)):
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
                "".join(_LEARNT.get(said, "") for said in documents.value("metadata", document)),
            )
        )
    return found


def _find_places(store: Store, read_table: ReadTable, key: str) -> set[Place]:
    kind = key.partition("-")[0]
    if kind == "condensed":
        return _cover_condensed(store, key)
    if kind == "chunk":
        chunks = store.rows("chunks")
        row = chunks.find(key)
        if row is None:
            return set()
        span = int(chunks.numbers("start")[row]), int(chunks.numbers("end")[row])
        return {(_document_of(store, row), row, *span)}
    if kind == "instance":
        instances = store.rows("instances")
        row = instances.find(key)
        return set() if row is None else _locate(store, instances.value("places", row))
    if kind == "proposal":
        rows = _pick(read_table("proposals"), {key})
        return _cover_triples(store, read_table, {i for row in rows for i in row["triple_ids"]})
    if kind == "triple":
        return _cover_triples(store, read_table, {key})
    if kind == "raw":
        return _cover_raw(store, read_table, {key})
    if kind == "claim":
        return _cover_claims(store, read_table, {key})
    if kind == "mention":
        return _locate(store, _pick(read_table("mentions"), {key}))
    return set()


def _cover_condensed(store: Store, key: str) -> set[Place]:
    facts = store.rows("condensed")
    row = facts.find(key)
    if row is None:
        return set()
    columns = ("place_chunks", "place_starts", "place_ends")
    listed = (facts.list_of(name, row).tolist() for name in columns)
    return {
        (_document_of(store, chunk), chunk, start, end)
        for chunk, start, end in zip(*listed, strict=True)
    }


def _cover_triples(store: Store, read_table: ReadTable, ids: Collection[str]) -> set[Place]:
    rows = _pick(read_table("triples"), ids)
    return _cover_raw(store, read_table, {i for row in rows for i in row["raw_triple_ids"]})


def _cover_raw(store: Store, read_table: ReadTable, ids: Collection[str]) -> set[Place]:
    """Per raw triple the spans of the claim it was read from."""
    rows = _pick(read_table("raw_triples"), ids)
    return _cover_claims(store, read_table, {row["claim_id"] for row in rows})


def _cover_claims(store: Store, read_table: ReadTable, ids: Collection[str]) -> set[Place]:
    rows = _pick(read_table("claims"), ids)
    spans = ({"chunk_id": row["chunk_id"], **span} for row in rows for span in row["spans"])
    return _locate(store, spans)


def _locate(store: Store, rows: Iterable[dict[str, Any]]) -> set[Place]:
    chunks = store.rows("chunks")
    return {
        (_document_of(store, chunk), chunk, int(row["start"]), int(row["end"]))
        for row in rows
        if (chunk := chunks.find(row["chunk_id"])) is not None
    }


def _document_of(store: Store, chunk: int) -> int:
    return int(store.rows("chunks").numbers("document")[chunk])


def _pick(table: pa.Table, keys: Collection[str]) -> list[dict[str, Any]]:
    wanted = pa.array(sorted(keys), pa.string())
    return list(table.filter(pc.is_in(table[table.column_names[0]], wanted)).to_pylist())
