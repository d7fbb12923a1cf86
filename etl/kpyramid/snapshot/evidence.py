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
    """Characters `start` to `end` of a document, and the document's source.

    `learnt`: `gold` or `rating` if it was learnt from an answered question, else empty.
    """

    document_id: str
    chunk_id: str
    start: int
    end: int
    text: str
    source: str
    learnt: str = ""
    section: str = ""
    """The headings above it, from the highest, with ` › ` between them."""
    page: int = 0
    """The page of the source, from 1; 0 where it has none."""


SECTION = " › "


Place = tuple[int, int, int, int]
"""Row of the document, row of the chunk, first character, character after the last."""
ReadRows = Callable[[str], MappedRows]
_NAMES = ("text", "source", "metadata", "headings", "pages")
_Starts = Sequence[tuple[int, Any]]
"""Starts of sections or pages, with their names or numbers."""
_TABLES = {"condensed": "condensed", "chunk": "chunks", "instance": "instances"}
"""The tables for which the index has the places of each row, by the prefix of their keys."""


def name_table(key: str) -> str | None:
    """The table of a key; None for a table whose places are not in the index."""
    return _TABLES.get(key.partition("-")[0])


def find_evidence(rows: ReadRows, table: str, row: int, seen: Mask | None) -> list[Evidence]:
    """The places that support a row, in order; only those in documents that are `seen`."""
    documents, chunks = rows("documents"), rows("chunks")

    @cache
    def read(document: int) -> tuple[str, str, str, _Starts, _Starts]:
        """Text, source, whether it was learnt, sections and pages; older indexes lack the last."""
        data: list[Any] = [documents.value(n, document) if documents.has(n) else () for n in _NAMES]
        text, source, metadata, headings, pages = data
        learnt = "".join(_LEARNT.get(field, "") for field in metadata)
        above = stack_headings((h["level"], text[h["start"] : h["end"]]) for h in headings)
        sections = [(heading["start"], path) for heading, path in zip(headings, above, strict=True)]
        return text, source, learnt, sections, [(page["start"], page["page"]) for page in pages]

    places = []
    for document, chunk, start, end in dict.fromkeys(_find_places(rows, table, row)):
        if seen is None or seen[document]:
            text, source, learnt, sections, pages = read(document)
            key, part = documents.keys[document], chunks.keys[chunk]
            within = _find_start(sections, start, ""), _find_start(pages, start, 0)
            places.append(Evidence(key, part, start, end, text[start:end], source, learnt, *within))
    return places


def _find_start(starts: _Starts, character: int, none: Any) -> Any:
    """The last section or page that begins at or before a character, else `none`."""
    before = bisect_right(starts, character, key=lambda pair: pair[0])
    return starts[before - 1][1] if before else none


def stack_headings(headings: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Each heading, of a sequence with levels, with the headings above it, the highest first."""
    path: list[tuple[int, str]] = []
    for level, words in headings:
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, words))
        yield SECTION.join(text for _, text in path)


def _find_places(rows: ReadRows, table: str, row: int) -> Iterator[Place]:
    chunks, index = rows("chunks"), rows(table)
    documents = chunks.numbers("document")
    if table == "chunks":
        yield int(documents[row]), row, int(index.value("start", row)), int(index.value("end", row))
    elif table == "instances":
        for place in index.value("places", row):
            if (chunk := chunks.find(place["chunk_id"])) is not None:
                yield int(documents[chunk]), chunk, place["start"], place["end"]
    else:
        for chunk, start, end in list_stretches(index, row):
            yield int(documents[chunk]), chunk, start, end


def list_stretches(facts: MappedRows, row: int) -> Iterator[tuple[int, int, int]]:
    """Row of the chunk, first character, and character after the last, of each place of a fact."""
    columns = ("place_chunks", "place_starts", "place_ends")
    return zip(*(facts.list_of(name, row).tolist() for name in columns), strict=True)
