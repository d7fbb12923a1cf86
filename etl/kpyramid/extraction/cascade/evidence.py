"""Where words stand in a text: quotations, names, and the sentences that support a triple."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from kpyramid.extraction.normal import lemmatise
from kpyramid.extraction.text.sentences import Span, split_sentences

_WORD = re.compile(r"\w+")
_ELLIPSIS = re.compile(r"\s*(?:…|\.\.\.|\[…\]|\[\.\.\.\])\s*")
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛`´ʼ′", "'"),
        **dict.fromkeys("“”„‟«»″", '"'),
        **dict.fromkeys("‐‑‒–—−", "-"),
    }
)
"""Quotation marks and dashes that a model writes plainly."""
_UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
"""Scripts that are written without spaces between words."""
_ENDS = "\"'.,;:!? "
_ARTICLES = frozenset({"a", "an", "the"})


@dataclass(frozen=True, slots=True)
class Folded:
    """A text without differences of case, white space, quotation marks and dashes.

    `places` holds for each of its characters the offset in the text that it came from.
    """

    text: str
    places: tuple[int, ...]

    def find(self, wanted: str, within: Span) -> Iterator[Span]:
        """The places of a folded string in the text itself, between words, in order."""
        at = self.text.find(wanted) if wanted else -1
        while at >= 0:
            end = at + len(wanted)
            span = Span(self.places[at], self.places[end - 1] + 1)
            whole = at == 0 or self.places[at - 1] != self.places[at]  # not half a character
            whole = whole and (end == len(self.text) or self.places[end] != self.places[end - 1])
            if whole and within.start <= span.start and span.end <= within.end:
                yield span
            at = self.text.find(wanted, at + 1)


@lru_cache(maxsize=1024)
def fold(text: str) -> Folded:
    """The text in the form in which a quotation may differ from it."""
    characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        if character.isspace():
            if characters and characters[-1] != " ":
                characters.append(" ")
                places.append(place)
            continue
        plain = character if character.isascii() else unicodedata.normalize("NFKC", character)
        for part in plain.translate(_ALIKE).casefold():
            characters.append(" " if part.isspace() else part)
            places.append(place)
    return Folded("".join(characters), tuple(places))


def locate_quotation(text: str, folded: Folded, quotation: str) -> tuple[Span, ...]:
    """Where a quotation stands, part by part if it was shortened by dots; empty if it does not.

    It may differ from the text in what `fold` takes away and in punctuation at its ends.
    """
    whole = _locate(text, folded, quotation.strip(), 0)
    if whole is not None:
        return (whole,)
    spans: list[Span] = []
    for part in filter(str.strip, _ELLIPSIS.split(quotation)):
        found = _locate(text, folded, part.strip(), spans[-1].end if spans else 0)
        if found is None:
            return ()
        spans.append(found)
    return tuple(spans)


def locate_name(
    text: str, folded: Folded, name: str, within: Sequence[Span], *, exact: bool = False
) -> Span | None:
    """Where a name stands first in some stretches; as written or, unless `exact`, in another case.

    A place where the text breaks the line inside of it, or writes it with other marks, is none:
    the words of the span are to be the name's.
    """
    if not name:
        return None
    for span in within:
        at = text.find(name, span.start, span.end)
        while at >= 0:
            if _stands_alone(text, at, at + len(name)):
                return Span(at, at + len(name))
            at = text.find(name, at + 1, span.end)
    wanted = fold(name).text.strip()
    for span in () if exact else within:
        for found in folded.find(wanted, span):
            words = text[found.start : found.end]
            if words.casefold() == name.casefold() and _stands_alone(text, found.start, found.end):
                return found
    return None


def list_words(text: str) -> list[str]:
    """The words in small letters, without articles."""
    words = (word.casefold() for word in _WORD.findall(text))  # "İ" folds into two characters
    return [word for word in words if word not in _ARTICLES]


def list_lemmas(text: str) -> frozenset[str]:
    """The dictionary forms of its words."""
    return frozenset(lemmatise(word) for word in list_words(text))


def names(words: Sequence[str], name: Sequence[str]) -> bool:
    """Whether the words hold the name as a run."""
    size = len(name)
    return bool(name) and any(words[at : at + size] == name for at in range(len(words) - size + 1))


def find_naming(text: str, ends: Sequence[str]) -> Span | None:
    """The smallest run of sentences that names all ends: fewest sentences, then characters."""
    sentences = list(split_sentences(text))
    wanted = [list_words(end) for end in ends]
    if not all(wanted):
        return None
    words = [list_words(text[span.start : span.end]) for span in sentences]
    for size in range(1, len(sentences) + 1):
        found = [
            Span(sentences[first].start, sentences[first + size - 1].end)
            for first in range(len(sentences) - size + 1)
            if all(names([*chain(*words[first : first + size])], name) for name in wanted)
        ]
        if found:
            return min(found, key=lambda span: (span.end - span.start, span.start))
    return None


def find_evidence(text: str, claim: str) -> str:
    """The sentence that shares most words with a claim; for worked examples."""
    wanted = set(list_words(claim))
    sentences = [text[span.start : span.end] for span in split_sentences(text)]
    return max(sentences, key=lambda s: len(wanted & set(list_words(s))), default=text)


def assign_triples(
    claims: Sequence[str], triples: Sequence[tuple[str, str, str]]
) -> list[list[tuple[str, str, str]]]:
    """For each claim the triples that it states: the one that shares most of a triple's words.

    Head and tail count double. Ties go to the shorter claim, then to the first.
    """
    lemmas = [list_lemmas(claim) for claim in claims]
    rows: list[list[tuple[str, str, str]]] = [[] for _ in claims]
    for head, relation, tail in triples:
        ends, verb = list_lemmas(f"{head} {tail}"), list_lemmas(relation)
        scores = [
            (2 * len(ends & words) + len(verb & words), -len(words), -at)
            for at, words in enumerate(lemmas)
        ]
        if scores:
            rows[-max(scores)[2]].append((head, relation, tail))
    return rows


def _locate(text: str, folded: Folded, quotation: str, start: int) -> Span | None:
    """The first place from `start` on: letter by letter, else folded, else without its ends."""
    at = text.find(quotation, start) if quotation else -1
    while at >= 0:
        if _stands_alone(text, at, at + len(quotation)):
            return Span(at, at + len(quotation))
        at = text.find(quotation, at + 1)
    plain = fold(quotation).text.strip()
    for wanted in (plain, plain.strip(_ENDS)):
        for span in folded.find(wanted, Span(start, len(text))):
            if _stands_alone(text, span.start, span.end):
                return span
    return None


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether no word is cut at either end."""
    before = start > 0 and _is_inside_word(text[start - 1], text[start])
    after = end < len(text) and _is_inside_word(text[end - 1], text[end])
    return not before and not after


def _is_inside_word(one: str, next_one: str) -> bool:
    """Whether no word ends between two characters; where no spaces are written, any may."""
    both = one.isalnum() and next_one.isalnum()
    return both and not _UNSPACED.match(one) and not _UNSPACED.match(next_one)
