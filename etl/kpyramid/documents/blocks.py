"""Blocks of a document: headings, paragraphs, items, cells, each with its characters."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from kpyramid.documents.words import (
    ARTICLES,
    AUXILIARIES,
    JOINING,
    LETTERS,
    MODALS,
    PREPOSITIONS,
    PRONOUNS,
)

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
    "inline_code",
]
"""`item` is one of a list, `pair` a line `Key: value`, `turn` what a named speaker says.

`inline_code` lies within the prose block before it: a command, a setting, a path.
"""


PROSE = frozenset({"item", "paragraph", "quotation", "turn"})
"""Kinds of blocks that are made of sentences."""
STATED = ("", "", "", "", "text", "number", "date", "flag")
"""The kinds of values in statements, by the level of their cells."""


class Block(NamedTuple):
    """Characters `start` to `end` of a document's text, end exclusive.

    `level`: a heading's, 1 being the highest, or how deep an item's list is nested, from 1.
    `row` and `column` count a table's cells from 0; row 0 is the header where `level` is 1;
    level 2 is the header above the subjects of the rows, 3 where it is their class. A row whose
    cells are of level 4 or more is a statement: subject, relation and value, whose level is its
    place in `STATED`.
    The cells of a table follow each other; the next table begins at a row that is not larger.
    `page`: of the source, from 1; 0 where it has none.
    """

    kind: Kind
    start: int
    end: int
    level: int = 0
    row: int = 0
    column: int = 0
    page: int = 0


def read_blocks(stored: Iterable[Mapping[str, Any]] | None) -> tuple[Block, ...]:
    """The blocks of a row of `documents`; none where only the text is stored."""
    return tuple(Block(**block) for block in stored or ())


def cut_blocks(blocks: Iterable[Block], start: int, end: int) -> Iterator[Block]:
    """The parts of blocks between two characters, with offsets from the first character."""
    for block in blocks:
        first, last = max(block.start, start), min(block.end, end)
        if first < last:
            yield block._replace(start=first - start, end=last - start)


def list_letters(text: str) -> str:
    """The letters and digits of a text, to compare texts that differ in other characters."""
    return "".join(filter(str.isalnum, text))


def number_pages(text: str, blocks: Iterable[Block], pages: Sequence[str]) -> Iterator[Block]:
    """The blocks with their page numbers; `pages` are the letters and digits of each page.

    A short block, and a block that no page nearby contains, gets the page of the block before it.
    """
    letters = "".join(pages)
    ends = [*accumulate(map(len, pages))]
    position = 0
    for block in blocks:
        key = list_letters(text[block.start : block.start + 2 * _KEY])[:_KEY]
        is_long = len(key) > _KEY / 2
        place = letters.find(key, position, position + (_FAR if is_long else _NEAR))
        if place >= 0 and is_long:
            position = place
        yield block._replace(page=min(bisect_right(ends, max(place, position)), len(ends) - 1) + 1)


_KEY, _NEAR, _FAR = 40, 500, 20_000
"""The letters of a block to search for, and the letters to search for short and long blocks: a
contents page repeats short headings, and a page without text of its own has some 1,000 letters."""

# Labels: a few words and a colon before a value, or before a speaker's words.

_INSIDE = r"\([^()\n]{0,40}\)"
_LABEL = re.compile(rf"[^\W\d_](?:{_INSIDE}|[^\n:?!;()]){{0,47}}:\s+(?=\S)")
_MARKED = re.compile(rf"[^\W\d_](?:{_INSIDE}|[^\n:?!;—–()]){{0,47}}(?::|\s[—–-])\s+(?=\S)")
NOTED = re.compile(r"([^\Wa-z][^():]*) \(([^():]+): ([^()]+)\)")
"""A thing with a key and a value in brackets: "Corvid (owner: Ann Lee)"."""
_MOST_WORDS = 4
_CLOSED = ARTICLES | JOINING | PREPOSITIONS
_VERBAL = AUXILIARIES | MODALS | PRONOUNS
_NO_LABEL = _VERBAL | ARTICLES
_STOP = re.compile(r"[.!?…][\"'”’»)\]]*$")


def read_label(line: str, *, is_marked: bool) -> int:
    """The number of characters of a line's label, with its colon and the space after it; 0 if none.

    A label in bold letters (`is_marked`) may have a dash instead of a colon.
    """
    if noted := NOTED.fullmatch(line):
        return noted.start(3)
    label = (_MARKED if is_marked else _LABEL).match(line)
    if label is None or line[0].islower():
        return 0
    words = [word.lower() for word in LETTERS.findall(label[0])]
    is_label = len(words) == 1 or (len(words) <= _MOST_WORDS and _NO_LABEL.isdisjoint(words))
    return label.end() if is_label else 0


def is_sentence(text: str) -> bool:
    """Whether a text is a sentence: capitalised, with a full stop, or with a verb or pronoun.

    Behind a label it may begin in lower case: "Staff: the firm has lost two of them."
    """
    if len(text.split()) < 3:
        return False
    small = {word for word in LETTERS.findall(text) if word.islower()}
    stops, verbal = _STOP.search(text[-4:]) is not None, not small.isdisjoint(_VERBAL)
    if text[:1].islower():
        return stops and (verbal or ". " in text)
    return not small <= _CLOSED if stops else verbal


def classify_labels(lines: Iterable[tuple[str, bool]]) -> list[tuple[Kind, int] | None]:
    """For each line the kind of its label, `pair` or `turn`, and the label's length; else None.

    The flag of a line says whether its label is marked by bold letters. Any other label counts
    only beside a line with a label, or where it is repeated: a single colon is prose. A run of
    labels is of turns if most of its labels are followed by sentences, else of pairs.
    """
    given = list(lines)
    ends = [read_label(text, is_marked=marked) for text, marked in given]
    labels = [text[:end] for (text, _), end in zip(given, ends, strict=True)]
    frequent = Counter(filter(None, labels))
    kinds: list[tuple[Kind, int] | None] = []
    for first, last in _find_runs(ends):
        values = [is_sentence(given[index][0][ends[index] :]) for index in range(first, last)]
        repeated = any(frequent[label] > 1 for label in labels[first:last])
        spoken = 2 * sum(values) > len(values) or (repeated and any(values))
        kinds += [None] * (first - len(kinds))
        for index, value in enumerate(values, first):
            marked = given[index][1] or last - first > 1 or frequent[labels[index]] > 1
            kinds.append(("turn" if value or spoken else "pair", ends[index]) if marked else None)
    return kinds + [None] * (len(given) - len(kinds))


def _find_runs(ends: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first index and the index after the last of each run of lines with labels."""
    first = 0
    for index, end in enumerate([*ends, 0]):
        if not end:
            if index > first:
                yield first, index
            first = index + 1
