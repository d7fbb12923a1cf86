"""Facts, values and names in words, and the places in documents that support them."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

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
_TOLD = ("text", "source", "metadata", "headings", "pages")
_Starts = Sequence[tuple[int, Any]]
"""Where sections or pages begin, and what they are."""
_TABLES = {"condensed": "condensed", "chunk": "chunks", "instance": "instances"}
"""The tables of which the index has the places of each row, by how their keys begin."""


def name_table(key: str) -> str | None:
    """The table that has the row of a key; None for one whose places the index does not have."""
    return _TABLES.get(key.partition("-")[0])


def find_evidence(rows: ReadRows, table: str, row: int, seen: Mask | None) -> list[Evidence]:
    """The places that support a row, in their order; only those in documents that are `seen`."""
    documents, chunks = rows("documents"), rows("chunks")

    @cache
    def read(document: int) -> tuple[str, str, str, _Starts, _Starts]:
        """Text, source, whether it was learnt, sections and pages; older indexes lack the last."""
        told: list[Any] = [documents.value(n, document) if documents.has(n) else () for n in _TOLD]
        text, source, metadata, headings, pages = told
        learnt = "".join(_LEARNT.get(said, "") for said in metadata)
        above = stack_headings((h["level"], text[h["start"] : h["end"]]) for h in headings)
        sections = [(heading["start"], path) for heading, path in zip(headings, above, strict=True)]
        return text, source, learnt, sections, [(page["start"], page["page"]) for page in pages]

    found = []
    for document, chunk, start, end in dict.fromkeys(_find_places(rows, table, row)):
        if seen is None or seen[document]:
            text, source, learnt, sections, pages = read(document)
            key, own = documents.keys[document], chunks.keys[chunk]
            within = _find_start(sections, start, ""), _find_start(pages, start, 0)
            found.append(Evidence(key, own, start, end, text[start:end], source, learnt, *within))
    return found


def _find_start(starts: _Starts, at: int, none: Any) -> Any:
    """What begins last of what begins up to a character."""
    before = bisect_right(starts, at, key=lambda pair: pair[0])
    return starts[before - 1][1] if before else none


def stack_headings(headings: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Of headings in order, with their levels, each with those above it, the highest first."""
    path: list[tuple[int, str]] = []
    for level, words in headings:
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, words))
        yield SECTION.join(text for _, text in path)


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
