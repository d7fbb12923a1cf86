"""Cutting a text into chunks of whole sentences within a token budget, with overlap."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kpyramid.extraction.text.sentences import Span, split_sentences
from kpyramid.settings import ChunkSettings

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_TOKEN = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+|[^\w\s]")
"""A word, a punctuation mark, or one character of a script without spaces."""
_LONGEST_TOKEN = 20
"""Characters; a longer run without a break (a 10 MB line, base64) is cut at this length."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One chunk's span in its text, and its tokens."""

    start: int
    end: int
    tokens: int


def split_text(text: str, settings: ChunkSettings) -> list[Piece]:
    """The chunks in order. Each is at most `max_tokens` long and ends where a sentence ends.

    A sentence beyond the budget is cut between words. Each chunk after the first begins with
    the last sentences of the one before, up to `overlap_tokens`.
    """
    sentences = [part for span in split_sentences(text) for part in _fit(text, span, settings)]
    pieces: list[Piece] = []
    first = 0
    while first < len(sentences):
        last, tokens = first, sentences[first].tokens
        while (
            last + 1 < len(sentences) and tokens + sentences[last + 1].tokens <= settings.max_tokens
        ):
            last += 1
            tokens += sentences[last].tokens
        pieces.append(Piece(sentences[first].start, sentences[last].end, tokens))
        if last + 1 == len(sentences):
            break
        following = last + 1
        room = min(settings.overlap_tokens, settings.max_tokens - sentences[following].tokens)
        earliest = first + 1  # every chunk moves on by a sentence, whatever the overlap
        first = following
        while first > earliest and sentences[first - 1].tokens <= room:
            first -= 1
            room -= sentences[first].tokens
    return pieces


def _fit(text: str, span: Span, settings: ChunkSettings) -> Iterator[Piece]:
    """The sentence, or its parts when it is longer than a chunk may be."""
    start, end, tokens = span.start, span.start, 0
    for match in _TOKEN.finditer(text, span.start, span.end):
        for cut in range(match.start(), match.end(), _LONGEST_TOKEN):
            if tokens == settings.max_tokens:
                yield Piece(start, end, tokens)
                start, tokens = cut, 0
            end, tokens = min(cut + _LONGEST_TOKEN, match.end()), tokens + 1
    if tokens:
        yield Piece(start, end, tokens)
