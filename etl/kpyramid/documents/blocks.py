"""Blocks of a document: headings, paragraphs, items, cells, each with its characters."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

Kind = Literal[
    "heading",
    "paragraph",
    "item",
    "cell",
    "pair",
    "quotation",
    "code",
    "caption",
    "footnote",
    "turn",
]
"""`item` is one of a list, `pair` a line `Key: value`, `turn` what a named speaker says."""


class Block(NamedTuple):
    """Characters `start` to `end` of a document's text, end exclusive.

    `level`: a heading's, 1 being the highest, or how deep an item's list is nested, from 1.
    `row` and `column` count a table's cells from 0; row 0 is the header where `level` is 1.
    The cells of a table follow each other; the next table begins at a row that is not larger.
    """

    kind: Kind
    start: int
    end: int
    level: int = 0
    row: int = 0
    column: int = 0


def read_blocks(stored: Iterable[Mapping[str, Any]] | None) -> tuple[Block, ...]:
    """The blocks of a row of `documents`; none where the text is all that is known."""
    return tuple(Block(**block) for block in stored or ())


def cut_blocks(blocks: Iterable[Block], start: int, end: int) -> Iterator[Block]:
    """What of the blocks lies between two characters, counted from the first of them."""
    for block in blocks:
        first, last = max(block.start, start), min(block.end, end)
        if first < last:
            yield block._replace(start=first - start, end=last - start)
