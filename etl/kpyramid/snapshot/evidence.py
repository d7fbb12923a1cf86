"""Facts, values and names in words, and the places in documents that support them."""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kpyramid.numerics.arrays import Mask
from kpyramid.snapshot.mapped import MappedRows

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
    section: str = ""
    """The headings that it stands under, from the highest, with ` › ` between them."""
    page: int = 0
    """The page of the source, from 1; 0 where it has none."""


SECTION = " › "


Place = tuple[int, int, int, int]
"""Row of the document, row of the chunk, first character, character after the last."""
ReadRows = Callable[[str], MappedRows]
_TABLES = {"condensed": "condensed", "chunk": "chunks", "instance": "instances"}
"""The tables of which the index has the places of each row, by how their keys begin."""


def name_table(key: str) -> str | None:
    """The table that has the row of a key; None for one whose places the index does not have."""
    return _TABLES.get(key.partition("-")[0])


def find_evidence(rows: ReadRows, table: str, row: int, seen: Mask | None) -> list[Evidence]:
    """The places that support a row, in their order; only those in documents that are `seen`."""
    documents, chunks = rows("documents"), rows("chunks")
    texts: dict[int, str] = {}
    headings: dict[int, list[dict[str, int]]] = {}
    titled, paged = documents.has("headings"), documents.has("pages")  # not in older indexes
    pages: dict[int, list[dict[str, int]]] = {}
    found = []
    for document, chunk, start, end in dict.fromkeys(_find_places(rows, table, row)):
        if seen is not None and not seen[document]:
            continue
        if document not in texts:
            texts[document] = documents.value("text", document)
            headings[document] = documents.value("headings", document) if titled else []
            pages[document] = documents.value("pages", document) if paged else []
        before = bisect_right(pages[document], start, key=lambda page: page["start"])
        found.append(
            Evidence(
                documents.keys[document],
                chunks.keys[chunk],
                start,
                end,
                texts[document][start:end],
                documents.value("source", document),
                "".join(_LEARNT.get(said, "") for said in documents.value("metadata", document)),
                SECTION.join(_list_headings(texts[document], headings[document], start)),
                pages[document][before - 1]["page"] if before else 0,
            )
        )
    return found


def _list_headings(text: str, headings: list[dict[str, int]], at: int) -> list[str]:
    """The headings above a character, the highest first."""
    path: list[tuple[int, str]] = []
    for heading in headings:
        if heading["start"] > at:
            break
        while path and path[-1][0] >= heading["level"]:
            path.pop()
        path.append((heading["level"], text[heading["start"] : heading["end"]]))
    return [words for _, words in path]


def _find_places(rows: ReadRows, table: str, row: int) -> Iterator[Place]:
    chunks, own = rows("chunks"), rows(table)
    documents = chunks.numbers("document")
    if table == "chunks":
        yield int(documents[row]), row, int(own.value("start", row)), int(own.value("end", row))
    elif table == "instances":
        for place in own.value("places", row):
            if (chunk := chunks.find(place["chunk_id"])) is not None:
                yield int(documents[chunk]), chunk, place["start"], place["end"]
    else:
        columns = ("place_chunks", "place_starts", "place_ends")
        for place in zip(*(own.list_of(name, row).tolist() for name in columns), strict=True):
            yield int(documents[place[0]]), *place
