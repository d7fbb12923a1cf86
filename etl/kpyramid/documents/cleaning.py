"""Text cleaned for the parser: noise removed, blocks separated, references recognised."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kpyramid.documents.sentences import Span, split_sentences, trim

# Control characters, which are not text in any format: they would occur in names and split words.

_UNWRITTEN = re.compile(
    "\x1b\\[[0-9;:?]{0,40}[ -/]?[@-~]"  # a terminal's colours
    "|\x1b\\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\\\)"
    "|[\u00ad\u200b\u2060]+"  # where a word may be parted
)


def normalise_text(text: str) -> str:
    r"""The text with `\n` as the only line ending, without signs that only steer its display."""
    return _UNWRITTEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


# Remains of typesetting in texts that are read as they are.

_PARTED = re.compile(
    r"(?<!\w)([^\W\d_]{1,30})[-‐]\n[^\S\n]*([^\W\d_]{1,30})(?![^\W\d_])(\S*+)([^\S\n]?)"
)
_BOLD = re.compile(r"(?<!')('{2,3}|'{5})(?=[^'\s])((?:[^'\n]|'(?!'))+)\1(?!')")
_IS_TEX = re.compile(
    r"\\(?:[a-zA-Z]{0,10}cite[a-z]{0,10}|emph|text(?:bf|it|tt|sc)|(?:sub)*section|begin|label|ref"
    r"|footnote)\*?[\[{]"
)
_TEX = re.compile(
    r"""
    (?P<gone> ^%[^\n]*\n?
      | [~\ ]?\\(?:[a-zA-Z]{0,10}cite[a-z]{0,10}|label|(?:eq|page|auto|c)?ref|index|footnote
                   |bibliography(?:style)?|usepackage|documentclass|begin|end|input|vspace)\*?
        (?:\[[^\[\]\n]{0,200}\]){0,2} \{[^{}]{0,1000}\} )
  | \\(?:emph|text[a-z]{2}|(?:sub){0,2}section|chapter|paragraph|title|author|caption|url|mbox)\*?
    \{ (?P<words>[^{}]{0,1000}) \}
  | (?P<blank> ~ | \\(?:[\ ,;]|\\|item\b|noindent\b|maketitle\b)\s? )
  | \\(?P<sign>[%&$\#_{}])
    """,
    re.VERBOSE | re.MULTILINE,
)


def mend_text(text: str) -> str:
    """A plain text without remains of typesetting.

    Words hyphenated at line ends are joined; bold and italic marks of wikitext, and citations and
    commands of LaTeX are removed.
    """
    if "-\n" in text or "‐\n" in text:
        text = _join_parted(text)
    if "''" in text and "``" not in text:
        text = _BOLD.sub(r"\2", text)
    if "\\" in text and _IS_TEX.search(text):
        text = _TEX.sub(_read_tex, text)
    return text


def _read_tex(command: re.Match[str]) -> str:
    blank = " " if command["blank"] else ""
    return command["words"] or command["sign"] or blank


def _join_parted(text: str) -> str:
    """The text with each word that is hyphenated at a line end joined on one line.

    The hyphen stays where the text has the hyphenated word elsewhere, or where both parts are
    words and the whole is not: "well-known".
    """
    from simplemma import is_known

    words = set(_HYPHENATED.findall(text))

    def join(parted: re.Match[str]) -> str:
        first, last, rest, blank = parted.groups()
        hyphen = "-"
        if last.islower() and not (rest.startswith("-") or f"{first}-{last}" in words):
            whole = first + last
            parts = is_known(first, "en") and is_known(last, "en")
            known = is_known(whole, "en") and first.lower() not in _COMPOUNDING
            if whole in words or known or not parts:
                hyphen = ""
        return f"{first}{hyphen}{last}{rest}" + ("\n" if blank else "")

    return _PARTED.sub(join, text)


_HYPHENATED = re.compile(r"\w+(?:-\w+)*")
_COMPOUNDING = frozenset("ill long self so well two three four five six ten".split())
"""Words that keep their hyphen, though dictionaries list some compounds without it: longterm."""

# Noise: characters that the parser's training data did not contain.

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

    `starts` and `ends` map each of its characters to the offsets in the text that it stands for.
    Without them the characters are those of the text from `start` on.
    """

    words: str
    start: int
    starts: array[int] | None = None
    ends: array[int] | None = None

    def locate(self, first: int, length: int) -> tuple[int, int]:
        """The start and end in the text of `length` cleaned characters from `first` on."""
        if self.starts is None or self.ends is None:
            return self.start + first, self.start + first + length
        return self.starts[first], self.ends[first + length - 1]


def clean_part(text: str, start: int, end: int, codes: Iterable[Span] = ()) -> CleanText:
    """The characters `start` to `end` of a text without noise for the parser.

    Noise is line breaks within sentences, runs of blanks, soft hyphens, zero-width marks,
    footnote numbers, references in brackets, and quotation marks as TeX and treebanks write them.
    Each of `codes`, spans of inline code, becomes the one word `CODE`.
    """
    part = text[start:end]
    inside = [
        (c.start - start, c.end - start, CODE) for c in codes if start <= c.start < c.end <= end
    ]
    if not inside and part.isprintable() and not _SIGNS.search(part):
        return CleanText(part, start)
    words: list[str] = []
    starts, ends = array("q"), array("q")
    position = 0
    noises = ((*noise.span(), _replace(noise, part)) for noise in _NOISE.finditer(part))
    for first, last, read in sorted([*inside, *noises]):
        if first < position:
            continue  # noise within code
        words += (part[position:first], read)
        starts.extend(range(start + position, start + first))
        ends.extend(range(start + position + 1, start + first + 1))
        starts.extend([start + first] * len(read))
        ends.extend([start + last] * len(read))
        position = last
    if not words:
        return CleanText(part, start)
    words.append(part[position:])
    starts.extend(range(start + position, end))
    ends.extend(range(start + position + 1, end + 1))
    return CleanText("".join(words), start, starts, ends)


CODE = "Unix"
"""A word for inline code, which every tagger reads as a name and which is of no kind."""


def _replace(noise: re.Match[str], part: str) -> str:
    """The replacement of a piece of noise."""
    if noise.lastgroup == "gone":
        return ""
    if noise.lastgroup != "quote":
        return " "
    follows = part[noise.end() : noise.end() + 1]
    return '" ' if noise.group() == "''" and follows.isalnum() else '"'


# Blocks: spans between blank lines or the dots of a line of items, each parsed at once.

MAX_BLOCK = 5_000
"""Characters parsed at once; the parser needs about 1 GB per million."""
_GAP = re.compile(r"\n[^\S\n]*+\n\s*+|(?<=\s)[·•]\s++")
"""A blank line, or the dot between items of a line."""


def list_blocks(text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """The spans between gaps; long ones are cut at sentence ends, else between words.

    No block is empty or begins or ends with white space; every other character from `start` to
    `end`, but for the dots between items, is in exactly one.
    """
    end = len(text) if end is None else end
    for gap in _GAP.finditer(text, start, end):
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


# References to works: author, year, volume, number.

_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_NUMBERED = r"(?:\[\d{1,4}\]\s | \d{1,4}\.\s)? \s*"
_FAMILY_NAME_FIRST = re.compile(
    _NUMBERED
    + r"""[^\W\d_a-z][\w'’-]{0,40}, \s (?:[^\W\d_a-z]\.\s?-?){1,4}+
        (?=\s?[(,&"“;:]|\s?(?:and\s|[^\Wa-z])|$)""",
    re.VERBOSE,
)
_INITIALS_FIRST = re.compile(
    _NUMBERED + r"(?:[^\W\d_a-z]\.\s?-?){1,4} [^\W\d_a-z][\w'’-]{0,40} "
    r"(?:,\s(?:[^\W\d_a-z]\.|and\s|[\"“])|\sand\s)",
    re.VERBOSE,
)
_PAGES = re.compile(r"\b(?:pp?|vol|no)\.\s?\d|[\"“][^\"”]{5,200},?[\"”],?\s[^\Wa-z]|\(\d{4}\)[.,:]")
_VOLUME = re.compile(
    r"(?<!\d)\d{1,4}\s?(?:\(\d{1,4}\)\s?[:,]|:)\s?(?:pp?\.?\s?)?[A-Za-z]?\d{1,6}\s?[–-]\s?\d{1,6}"
)
_IDENTIFIED = re.compile(r"\b(?:doi:|DOI:?\s10|ISBN|ISSN|arXiv:|PMID)|doi\.org/")
_NUMBERED_LIST = re.compile(r"\[\d{1,4}\]\s")
_FETCHED = re.compile(r"(?:Retrieved|Archived|Accessed)\s(?:on\s|from\s)?[\w,]")


def is_citation(line: str, share: float) -> bool:
    """Whether a line or sentence is only a citation; `share`: its share of function words."""
    if _INITIALS_FIRST.match(line):
        return bool(_PAGES.search(line) or _VOLUME.search(line))
    if _FAMILY_NAME_FIRST.match(line):
        return bool(_YEAR.search(line[:200]) or _VOLUME.search(line[:400]))
    if _NUMBERED_LIST.match(line) and _YEAR.search(line):
        return share < 0.25
    if share < 0.15 and (_VOLUME.search(line) or _IDENTIFIED.search(line)):
        return True
    return bool(_FETCHED.match(line)) and len(line) < 60


CLOSING = re.compile(
    r"^(?:(?:with )?(?:(?:my|our|the|all) )?(?:(?:kind|kindest|best|good|warm|many) )?"
    r"(?:regards|wishes|thanks)[,.!]?"
    r"|yours(?: sincerely| faithfully| truly)?,?|sincerely,?|cheers,?)$",
    re.I | re.M,
)
"""The line that ends a letter; its sender's name, role and firm follow."""
