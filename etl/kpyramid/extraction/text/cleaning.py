"""What the parser reads instead of the raw characters, and where each of them stands in the text.

Line breaks inside of sentences, runs of blanks, soft hyphens, zero-width marks, footnote numbers
and references in brackets are noise to a parser that was trained without them; so are quotation
marks as TeX and treebanks write them.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass

_NAME = r"[^\W\d_a-z][\w'’-]{1,30}"
_DATED = rf"{_NAME}(?:\s(?:and|&)\s{_NAME})?,?\s(?:1[89]|20)\d\d[a-z]?"
_NOISE = re.compile(
    rf"""
    (?P<gone> [\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]+
      | (?<=[\w.!?,;:)"'”’]) (?:\[(?:\d{{1,3}}|[a-z]|note\s\d{{1,3}}|citation\sneeded)
                                (?:[,–-]\s?\d{{1,3}}){{0,5}}\])+
      | \s?\((?:see\s|e\.g\.,?\s|cf\.\s)? (?: {_NAME}[^()]{{0,150}}?\bet\sal\b[^()]{{0,150}}
                                             | {_DATED}(?:;\s{_DATED})+ ) \) )
  | (?P<blank> \s\s+ | [^\S ] )
  | (?P<quote> (?<!`)``(?!`) | (?<!')''(?!') )
  | (?P<glued> (?<=[a-z0-9)][.!?]) (?=[A-Z][a-z]+[\s,]) )  # a stop without a blank after it
    """,
    re.VERBOSE,
)
_SIGNS = re.compile(r"  |\[|``|''|\bet al\b|; ?[A-Z]|[.!?][A-Z]")


@dataclass(frozen=True, slots=True)
class CleanText:
    """Part of a text as the parser reads it.

    `starts` and `ends` say for each of its characters which ones of the text it stands for.
    Without them it is that part, character by character, from `start` on.
    """

    words: str
    start: int
    starts: array[int] | None = None
    ends: array[int] | None = None

    def locate(self, first: int, length: int) -> tuple[int, int]:
        """Where in the text `length` characters from `first` on start and end."""
        if self.starts is None or self.ends is None:
            return self.start + first, self.start + first + length
        return self.starts[first], self.ends[first + length - 1]


def clean_part(text: str, start: int, end: int) -> CleanText:
    """The characters `start` to `end` of a text without what is noise to a parser."""
    part = text[start:end]
    if part.isprintable() and not _SIGNS.search(part):
        return CleanText(part, start)
    words: list[str] = []
    starts, ends = array("q"), array("q")
    at = 0
    for noise in _NOISE.finditer(part):
        read = _replace(noise, part)
        words += (part[at : noise.start()], read)
        starts.extend(range(start + at, start + noise.start()))
        ends.extend(range(start + at + 1, start + noise.start() + 1))
        starts.extend([start + noise.start()] * len(read))
        ends.extend([start + noise.end()] * len(read))
        at = noise.end()
    if not words:
        return CleanText(part, start)
    words.append(part[at:])
    starts.extend(range(start + at, end))
    ends.extend(range(start + at + 1, end + 1))
    return CleanText("".join(words), start, starts, ends)


def _replace(noise: re.Match[str], part: str) -> str:
    """What the parser reads for a piece of noise."""
    if noise.lastgroup == "gone":
        return ""
    if noise.lastgroup != "quote":
        return " "
    follows = part[noise.end() : noise.end() + 1]
    return '" ' if noise.group() == "''" and follows.isalnum() else '"'
