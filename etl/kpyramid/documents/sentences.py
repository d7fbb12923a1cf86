"""Text cut into sentences, passages and chunks of whole sentences."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from kpyramid.documents.words import AUXILIARIES, FUNCTION_WORDS, MODALS, lemmatise

if TYPE_CHECKING:
    from kpyramid.documents.blocks import Block
    from kpyramid.settings import ChunkSettings


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Characters `start` to `end`, end exclusive; spans sort in text order."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """A rejected text or candidate fact, with the reason."""

    reason: str
    text: str
    span: Span


_END = re.compile(
    r"""
    (?<![.!?…]) [.!?…]++ ["'”’»)\]]*+ \s++ (?= ["'“‘«(\[]*+ [^\Wa-z_] )  # no small letter follows
    | [。！？]++ [」』”’)]*+                        # full-width stops need no space
    | \n [^\S\n]*+ \n \s*+ | \n (?= [^\S\n]*+ [-*•] \s )  # blank line, list item
    | \n (?= [^\n\t]* \t )  # row of a table
    | (?<= \s) [·•] \s++  # items in a line
    """,
    re.VERBOSE,
)
# Possessive quantifiers without backtracking: a million stops or spaces cost linear time.
_ABBREVIATION = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Sr|Jr|Rev|Hon|Gen|Col|Lt|Sgt|Capt|Gov|Sen|Rep|Pres|Mt|Ft|No"
    r"|Nos|vs|cf|al|ca|approx|Inc|Ltd|Co|Corp|Vol|pp|Fig|Eq|Jan|Feb|Aug|Sept|Oct|Nov|Dec)"
    r"|\b[A-Z]|\b[a-z](?:\.[a-z])+)\.$"
)
"""Words that end in a stop without ending the sentence: titles, initials, e.g., i.e."""
_NAMED = re.compile(r"(?:[A-Z][\w.&'’-]*\s+(?:(?:of|de|van|von|the)\s+)?){1,5}(?=[a-z])")
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
FIRM_END = re.compile(r"\b(?:Inc|Ltd|Co|Corp)\.$")
"""A firm's name at the end of a text, whose stop may also end the sentence."""
_FINITE = (AUXILIARIES | MODALS) - frozenset("be been being having".split())
_OPENING = (
    FUNCTION_WORDS
    | frozenset(
        "after although before but during each however later its "
        "meanwhile nobody since some then today while".split()
    )
) - frozenset("of and i us".split())
"""Words that begin a sentence where they are capitalised, and are no part of a firm's name."""
_WAITING = frozenset("that because when while if although said says say".split())
"""Words after which a name still needs its verb."""
_OFFICES = frozenset(
    "board ceo cfo chair chairman chairwoman chief co-founder director executive founder "
    "general head manager president senior vice".split()
)


def split_sentences(text: str) -> Iterator[Span]:
    """The sentences in order, without the white space between them; none is empty.

    No parser is needed, and the time is linear in the length of the text.
    """
    start = 0
    for match in _END.finditer(text):
        stop = match.group().rstrip()
        parted = "\n\n" in match.group()
        begin, end = max(start, match.start() - 12), match.start() + 1
        parted = parted or text.endswith(("°C", "°F"), begin, match.start())
        abbreviated = stop == "." and not parted and _ABBREVIATION.search(text, begin, end)
        if abbreviated and not (
            _ends_at_letter(text, match.end(), end)
            if abbreviated[0][1] == "." and abbreviated[0][0].isupper()
            else ends_at_firm(text, start, match.end())
        ):
            continue
        yield from trim(text, start, match.end())
        start = match.end()
    yield from trim(text, start, len(text))


def cut_parts(text: str, blocks: "Sequence[Block]") -> Iterator[tuple[Span, bool]]:
    """The sentences and table rows of a text, each with whether it is a row."""
    position = 0
    for (is_cell, _), listed in groupby(
        blocks, key=lambda block: (block.kind == "cell", block.row)
    ):
        row = list(listed)
        if is_cell:
            for span in split_sentences(text[position : row[0].start]):
                yield Span(span.start + position, span.end + position), False
            position = row[-1].end
            yield Span(row[0].start, position), True
    for span in split_sentences(text[position:]):
        yield Span(span.start + position, span.end + position), False


def ends_at_firm(text: str, start: int, following: int) -> bool:
    """Whether a sentence ends in a firm's `Ltd.` and the like before the word at `following`.

    It does before a word that opens sentences, or where it has a verb and a name with another
    verb follows: "Marl owns Pell Ltd. Saint Mard is a village."
    """
    before = text[max(start, following - _NEAR) : following].rstrip()
    if not FIRM_END.search(before):
        return False
    after = text[following : following + _NEAR]
    word = _WORD.match(after)
    if word is None:
        return False
    if word[0].lower() in _OPENING:
        return True
    name = _NAMED.match(after)
    words = before.split()
    lower = [w.strip(",;:()") for w in words if w.islower()]
    if name is None or word[0].lower() in _OFFICES or not any(map(_is_verb, lower)):
        return False
    firm = len(words) - 1
    while firm > 0 and not words[firm].islower():
        firm -= 1
    verb = _WORD.match(after, name.end())
    return words[firm] not in _WAITING and verb is not None and _is_verb(verb[0])


def _ends_at_letter(text: str, following: int, end: int) -> bool:
    """Whether a sentence ends in a capital that is no initial: "Vitamin C.", "Lot A.", "mmol/L.".

    It does after a noun that letters number, and before a word that opens sentences and is no
    name: "World War I. After it". `end`: that of the stop.
    """
    if _LETTERED.search(text, max(0, end - _LONGEST_LABEL), end):
        return True
    word = _WORD.match(text, following)
    opens = word is not None and word[0].lower() in _OPENING - MODALS
    return opens and not _INITIAL.match(text, following)


_INITIAL = re.compile(r"\w\.|(?:An|Do|He|No|So|You)(?:,| (?:and|et|&) )")
"""Another initial, or a surname that is also a word, in a list of authors."""
_LETTERED = re.compile(
    r"\b(?:\w{1,4}/|(?:appendix|bank|bay|berth|block|boiler|box|building|channel|class|column"
    r"|compressor|corridor|court|deck|dock|exhibit|factor|figure|gate|grade|group|hall|hangar"
    r"|hepatitis|influenza|kiln|lane|level|line|lot|option|part|phase|plan|platform|point|product"
    r"|pump|rack|room|row|schedule|section|shed|site|table|tank|terminal|tower|type|unit|valve"
    r"|van|vitamin|ward|warehouse|wing|zone)s?[ ](?:[A-Z](?:,|[ ]and|[ ]or)[ ])*)[A-Z]\.$"
    r"|\b(?:and|or)[ ]I\.$",
    re.IGNORECASE,
)
_LONGEST_LABEL = 24
"""Characters of "Warehouses A, B and C"."""
_NEAR = 300
"""Characters before and after a stop that are examined."""


def _is_verb(word: str) -> bool:
    """Whether a lower-case word is a finite verb by its form: auxiliary, past, third person."""
    if word in _FINITE:
        return True
    if len(word) < 3 or word.endswith(("ing", "er", "est", "ss", "us")):
        return False
    return lemmatise(word) != word


def trim(text: str, start: int, end: int) -> Iterator[Span]:
    """The span without white space at its ends; none where nothing is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        yield Span(start, end)


# Passages: the units of extraction, a whole document or a part of a long one.

MAX_CHARACTERS = 20_000
"""About eight pages: words refer back within a section, and an edit invalidates one passage."""


def cut_passages(text: str) -> Iterator[Span]:
    """The text in spans of at most `MAX_CHARACTERS`, cut at a blank line or a sentence's end.

    Every character that is not white space is in exactly one span.
    """
    start = 0
    while len(text) - start > MAX_CHARACTERS:
        part = text[start : start + MAX_CHARACTERS]
        blank = part.rfind("\n\n") + 2
        if blank <= MAX_CHARACTERS // 2:
            blank = max((span.start for span in split_sentences(part)), default=0)
        cut = blank or MAX_CHARACTERS
        if part[:cut].strip():
            yield Span(start, start + cut)
        start += cut
    if text[start:].strip():
        yield Span(start, len(text))


# Chunks: whole sentences within a token budget, with overlap.

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


def split_text(
    text: str, settings: "ChunkSettings", headings: "Sequence[Block]" = ()
) -> list[Piece]:
    """The chunks in order. Each is at most `max_tokens` long and ends where a sentence ends.

    A sentence beyond the budget is cut between words; a heading stays with what follows it. Each
    chunk after the first begins with the last sentences of the one before, up to `overlap_tokens`.
    """
    sentences = [part for span in split_sentences(text) for part in _fit(text, span, settings)]
    starts = {heading.start for heading in headings}
    pieces: list[Piece] = []
    first = 0
    while first < len(sentences):
        last, tokens = first, sentences[first].tokens
        while (
            last + 1 < len(sentences) and tokens + sentences[last + 1].tokens <= settings.max_tokens
        ):
            last += 1
            tokens += sentences[last].tokens
        while first < last < len(sentences) - 1 and sentences[last].start in starts:
            tokens -= sentences[last].tokens
            last -= 1
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


def _fit(text: str, span: Span, settings: "ChunkSettings") -> Iterator[Piece]:
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
