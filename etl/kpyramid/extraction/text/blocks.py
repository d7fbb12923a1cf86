"""Cutting a text into what is parsed at once: stretches between blank lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kpyramid.extraction.text.sentences import Span, split_sentences, trim

MAX_BLOCK = 5_000
"""Characters parsed at once; the parser needs about 1 GB per million."""
_BLANK_LINE = re.compile(r"\n[^\S\n]*+\n\s*+")


def list_blocks(text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """The stretches between blank lines, long ones cut at sentence ends, else between words.

    No block is empty or begins or ends with white space; every other character from `start` to
    `end` is in exactly one.
    """
    end = len(text) if end is None else end
    for gap in _BLANK_LINE.finditer(text, start, end):
        yield from _cut_block(text, start, gap.start())
        start = gap.end()
    yield from _cut_block(text, start, end)


def _cut_block(text: str, start: int, end: int) -> Iterator[Span]:
    while end - start > MAX_BLOCK:
        part = text[start : start + MAX_BLOCK]
        # The last sentence begins within the part and may go on after it.
        last = max((span.start for span in split_sentences(part)), default=0)
        space = max(part.rfind(mark) for mark in " \t\n") + 1
        cut = start + (last or space or MAX_BLOCK)
        yield from trim(text, start, cut)
        start = cut
    yield from trim(text, start, end)
