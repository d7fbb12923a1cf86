"""Sentence boundaries without a parser, for cutting chunks: linear time, any length of text."""

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end`, end exclusive."""

    start: int
    end: int


_END = re.compile(
    r"""
    (?<![.!?…]) [.!?…]++ ["'”’»)\]]*+ \s++ (?= ["'“‘«(\[]*+ [^\Wa-z_] )  # no small letter follows
    | [。！？]++ [」』”’)]*+                        # full-width stops need no space
    | \n [^\S\n]*+ \n \s*+ | \n (?= [^\S\n]*+ [-*•] \s )  # blank line, list item
    """,
    re.VERBOSE,
)
# Possessive runs, and none begun in its middle: a million stops or spaces cost linear time.
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|Rev|Hon|Gen|Col|Lt|Sgt|Capt|Gov|Sen|Rep|Pres|Mt|Ft|No"
    r"|Nos|vs|cf|al|ca|approx|Inc|Ltd|Co|Corp|Vol|pp|Fig|Eq|Jan|Feb|Aug|Sept|Oct|Nov|Dec)"
    r"|\b[A-Z]|\b[a-z](?:\.[a-z])+)\.$"
)
"""What ends in a stop without ending the sentence: titles, initials, e.g., i.e."""


def split_sentences(text: str) -> Iterator[Span]:
    """The sentences in order, without the white space between them; never an empty one."""
    start = 0
    for match in _END.finditer(text):
        stop = match.group().rstrip()
        if stop == "." and _ABBREVIATION.search(
            text, max(start, match.start() - 12), match.start() + 1
        ):
            continue
        yield from trim(text, start, match.end())
        start = match.end()
    yield from trim(text, start, len(text))


def trim(text: str, start: int, end: int) -> Iterator[Span]:
    """The span without white space at its ends, unless nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield Span(start, end)
