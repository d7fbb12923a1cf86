"""Facts, values and names in words, and the places in documents that support them."""

from collections.abc import Callable, Collection, Iterator, Mapping
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
_TABLES = {
    **{"condensed": "condensed", "chunk": "chunks", "instance": "instances", "claim": "claims"},
    **{"proposal": "proposals", "triple": "triples", "raw": "raw_triples", "mention": "mentions"},
}
"""The tables whose rows stand in documents, by how their keys begin."""


def name_table(key: str) -> str:
    """The table that has the row of a key; empty for one that has no places."""
    return _TABLES.get(key.partition("-")[0], "")


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
    for document, chunk, start, end in sorted(
        set(_find_places(store, read_table, name_table(key), {key}))
    ):
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


def _find_places(
    store: Store, read_table: ReadTable, table: str, keys: Collection[str]
) -> Iterator[Place]:
    """The spans of some rows, else those of the rows that they rest on, of claims first."""
    if not table:
        return
    if table in _INDEXED:
        yield from _find_indexed(store, table, keys)
        return
    from kpyramid.storage.contracts import load_contracts  # questions do without

    contract, whole = load_contracts()[table], read_table(table)
    wanted = pa.array(sorted(keys), pa.string())
    rows = whole.filter(pc.is_in(whole[contract.key[0]], wanted)).to_pylist()
    for row in rows:
        for span in row.get("spans", [row] if "start" in row else []):
            yield from _locate(store, {"chunk_id": row["chunk_id"], **span})
    if not {"spans", "start"} & {*whole.column_names}:
        source = "claim_id" if "claim_id" in whole.column_names else contract.visible_by[0]
        listed = (row[source] if isinstance(row[source], list) else [row[source]] for row in rows)
        below = {key for keys in listed for key in keys}
        yield from _find_places(store, read_table, str(contract.column(source).target), below)


_INDEXED = ("condensed", "chunks", "instances")


def _find_indexed(store: Store, table: str, keys: Collection[str]) -> Iterator[Place]:
    rows = store.rows(table)
    for row in [row for key in keys if (row := rows.find(key)) is not None]:
        if table == "instances":
            for place in rows.value("places", row):
                yield from _locate(store, place)
        elif table == "chunks":
            span = int(rows.numbers("start")[row]), int(rows.numbers("end")[row])
            yield int(rows.numbers("document")[row]), row, *span
        else:
            columns = ("place_chunks", "place_starts", "place_ends")
            documents = store.rows("chunks").numbers("document")
            for place in zip(*(rows.list_of(name, row).tolist() for name in columns), strict=True):
                yield int(documents[place[0]]), *place


def _locate(store: Store, place: Mapping[str, Any]) -> Iterator[Place]:
    chunks = store.rows("chunks")
    if (row := chunks.find(place["chunk_id"])) is not None:
        yield int(chunks.numbers("document")[row]), row, int(place["start"]), int(place["end"])
