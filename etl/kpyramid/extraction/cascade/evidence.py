"""Evidence of replies: the spans of a chunk that support a name, a literal or a phrase."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TypeVar

from kpyramid.documents.sentences import Span, split_sentences
from kpyramid.documents.values import DAY, MONTH
from kpyramid.documents.words import (
    ARTICLES,
    AUXILIARIES,
    JOINING,
    POINTING,
    PREPOSITIONS,
    PRONOUNS,
    WORD,
    lemmatise,
)
from kpyramid.extraction.types import Chunk, Claim, find_clause

# Spans of quotations and names, and the sentences that support a triple.

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


@dataclass(frozen=True, slots=True)
class Folded:
    """A text normalised in case, white space, quotation marks and dashes.

    `places`: for each of its characters the offset in the original text.
    """

    text: str
    places: tuple[int, ...]

    def find(self, wanted: str, within: Span) -> Iterator[Span]:
        """The spans of a folded string in the original text, in order."""
        i = self.text.find(wanted) if wanted else -1
        while i >= 0:
            end = i + len(wanted)
            span = Span(self.places[i], self.places[end - 1] + 1)
            whole = i == 0 or self.places[i - 1] != self.places[i]  # not half a character
            whole = whole and (end == len(self.text) or self.places[end] != self.places[end - 1])
            if whole and within.start <= span.start and span.end <= within.end:
                yield span
            i = self.text.find(wanted, i + 1)


@lru_cache(maxsize=1024)
def fold(text: str) -> Folded:
    """The normalised text, in which a quotation is searched."""
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
    """The spans of a quotation, one per part between ellipses; empty where a part is missing.

    It may differ from the text in what `fold` normalises and in punctuation at its ends.
    """
    whole = _locate(text, folded, quotation.strip(), 0)
    if whole is not None:
        return (whole,)
    spans: list[Span] = []
    for part in filter(str.strip, _ELLIPSIS.split(quotation)):
        span = _locate(text, folded, part.strip(), spans[-1].end if spans else 0)
        if span is None:
            return ()
        spans.append(span)
    return tuple(spans)


def locate_name(
    text: "Text", name: str, within: Sequence[Span], *, exact: bool = False
) -> Span | None:
    """The first occurrence of a name in some spans; unless `exact`, in another case too.

    An occurrence with a line break inside, or with other quotation marks or dashes, does not
    count: the text of the span must be the name.
    """
    whole = text.chunk.text
    for span in within:
        if (place := _find_alone(whole, name, span)) is not None:
            return place
    wanted = fold(name).text.strip()
    for span in () if exact else within:
        for place in text.folded.find(wanted, span):
            words = whole[place.start : place.end]
            if words.casefold() == name.casefold() and _stands_alone(whole, place):
                return place
    return None


def list_words(text: str) -> list[str]:
    """The words in lower case, without articles."""
    words = (word.casefold() for word in WORD.findall(text))  # "İ" folds into two characters
    return [word for word in words if word not in ARTICLES]


def list_lemmas(text: str) -> frozenset[str]:
    """The dictionary forms of a text's words."""
    return frozenset(lemmatise(word) for word in list_words(text))


def names(words: Sequence[str], name: Sequence[str]) -> bool:
    """Whether the words contain the name as consecutive words."""
    size = len(name)
    return bool(name) and any(words[i : i + size] == name for i in range(len(words) - size + 1))


def find_naming(text: str, ends: Sequence[str]) -> Span | None:
    """The smallest run of sentences that names all ends: fewest sentences, then characters."""
    sentences = list(split_sentences(text))
    wanted = [list_words(end) for end in ends]
    if not all(wanted):
        return None
    words = [list_words(text[span.start : span.end]) for span in sentences]
    for size in range(1, len(sentences) + 1):
        runs = [
            Span(sentences[first].start, sentences[first + size - 1].end)
            for first in range(len(sentences) - size + 1)
            if all(names([*chain(*words[first : first + size])], name) for name in wanted)
        ]
        if runs:
            return min(runs, key=lambda span: (span.end - span.start, span.start))
    return None


def find_evidence(text: str, claim: str) -> str:
    """The sentence that shares most words with a claim; for worked examples."""
    wanted = set(list_words(claim))
    sentences = [text[span.start : span.end] for span in split_sentences(text)]
    return max(sentences, key=lambda s: len(wanted & set(list_words(s))), default=text)


Words = TypeVar("Words", bound=tuple[str, str, str])


def assign_triples(claims: Sequence[str], triples: Sequence[Words]) -> list[list[Words]]:
    """Assigns each triple to the claim that shares most of its words; a row of triples per claim.

    Head and tail count double. Ties go to the shorter claim, then to the first.
    """
    lemmas = [list_lemmas(claim) for claim in claims]
    rows: list[list[Words]] = [[] for _ in claims]
    for triple in triples:
        head, relation, tail = triple
        ends, verb = list_lemmas(f"{head} {tail}"), list_lemmas(relation)
        scores = [
            (2 * len(ends & words) + len(verb & words), -len(words), -index)
            for index, words in enumerate(lemmas)
        ]
        if scores:
            rows[-max(scores)[2]].append(triple)
    return rows


def _locate(text: str, folded: Folded, quotation: str, start: int) -> Span | None:
    """The first place from `start` on: letter by letter, else folded, else without its ends."""
    within = Span(start, len(text))
    if (literal := _find_alone(text, quotation, within)) is not None:
        return literal
    plain = fold(quotation).text.strip()
    for wanted in (plain, plain.strip(_ENDS)):
        for span in folded.find(wanted, within):
            if _stands_alone(text, span):
                return span
    return None


def _find_alone(text: str, words: str, within: Span) -> Span | None:
    """The first place of words letter by letter, at which no other word is cut."""
    position = text.find(words, within.start, within.end) if words else -1
    while position >= 0:
        place = Span(position, position + len(words))
        if _stands_alone(text, place):
            return place
        position = text.find(words, position + 1, within.end)
    return None


def _stands_alone(text: str, span: Span) -> bool:
    """Whether no word is cut at either end."""
    start, end = span.start, span.end
    before = start > 0 and _is_inside_word(text[start - 1], text[start])
    after = end < len(text) and _is_inside_word(text[end - 1], text[end])
    return not before and not after


def _is_inside_word(left: str, right: str) -> bool:
    """Whether no word ends between two characters; in scripts without spaces a word always may."""
    both = left.isalnum() and right.isalnum()
    return both and not _UNSPACED.match(left) and not _UNSPACED.match(right)


# Types of names by their form: dates, numbers and quantities.

_NUMBER = r"\d+(?:[.,]\d+)*"
_FORMS = (
    ("DATE", r"(?:(?:early|late|mid)[- ])?(?:c\. ?)?(?:1[0-9]|20)\d\d(?:s|[-–](?:\d\d){1,2})?"),
    ("DATE", rf"(?:{DAY} )?{MONTH.lower()}\.?(?: {DAY})?(?:,? \d{{4}})?"),
    ("DATE", r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}(?:st|nd|rd|th) century"),
    ("PERCENT", rf"{_NUMBER} ?(?:%|percent|per cent)"),
    ("MONEY", rf"(?:us)?[$€£¥] ?{_NUMBER}(?: ?(?:thousand|million|billion|trillion|[mbk]n?))?"),
    ("CARDINAL", rf"{_NUMBER}(?: (?:hundred|thousand|million|billion|trillion))?"),
    (
        "QUANTITY",
        rf"{_NUMBER} ?(?:mm|cm|m|km|metres?|meters?|kilomet(?:re|er)s?|miles?|feet|ft|"
        r"inch(?:es)?|kg|g|mg|tons?|tonnes?|pounds?|acres?|hectares?|km²|sq(?:uare)? \w+)",
    ),
)
_PATTERNS = tuple((label, re.compile(form, re.IGNORECASE)) for label, form in _FORMS)


def guess_literal(name: str) -> str | None:
    """The type of a name that is a date, a number or a quantity; None for other names.

    "May" alone is no date: it is a name as often.
    """
    text = name.strip()
    if text.casefold() in {"may", "march", "august", "mar", "dec", "jan"}:
        return None
    return next((label for label, form in _PATTERNS if form.fullmatch(text)), None)


# Support: whether a chunk has the words of a phrase.

UNKNOWN = "NOUN"
"""The type of a name that neither the rules nor its form determine."""

_JOINTS = ARTICLES | PREPOSITIONS | JOINING | frozenset("but not also than".split())
_SILENT = _JOINTS | AUXILIARIES | frozenset("its his her their it that".split())
"""Function words, which state nothing by themselves."""
_PRONOUNS = PRONOUNS | POINTING | frozenset("who whom whose which".split())


@dataclass(frozen=True, slots=True)
class Text:
    """A chunk prepared for checking replies: folded for searching, its words and its title's."""

    chunk: Chunk
    folded: Folded
    words: frozenset[str]
    title: frozenset[str]
    types: Mapping[str, Counter[str]]
    """The entity types that the rules assign to each name, with their frequencies."""

    @property
    def whole(self) -> Span:
        """The span of the whole text."""
        return Span(0, len(self.chunk.text))


def prepare_text(chunk: Chunk) -> Text:
    """The chunk, folded, with its words and the types that the rules give its names."""
    types: dict[str, Counter[str]] = {}
    for mention in chunk.extraction.mentions:
        if mention.type != UNKNOWN:
            types.setdefault(mention.text.casefold(), Counter())[mention.type] += 1
    words, title = list_forms(chunk.text), list_forms(chunk.title or "")
    return Text(chunk, fold(chunk.text), words, title, types)


def list_forms(text: str) -> frozenset[str]:
    """The words of a text and their dictionary forms."""
    return frozenset(list_words(text)) | list_lemmas(text)


def quote(text: Text, spans: Sequence[Span]) -> str:
    """The words of some spans, joined by spaces."""
    return " ".join(text.chunk.text[span.start : span.end] for span in spans)


def says_something(phrase: str) -> bool:
    """Whether a phrase has a word other than pronouns and function words."""
    words = WORD.findall(phrase)
    return any(word.casefold() not in _SILENT and not is_pronoun(word) for word in words)


def supports(text: Text, claim: Claim, head: str, tail: str) -> bool:
    """Whether a claim's evidence states something about head and tail.

    The evidence names at least one of them, and more than that name. The other end is named by
    the title or the rules' antecedents, or by the claim: in the same sentence, or in place of a
    pronoun of it.
    """
    quoted = quote(text, claim.spans)
    words = list_forms(quoted)
    outside = [
        end
        for end in (head, tail)
        if locate_name(text, end, claim.spans) is None
        and not (says_something(end) and is_supported(end, words))
    ]
    if not outside:
        return True
    named = tail if outside[0] == head else head
    if len(outside) > 1 or set(list_words(quoted)) <= _JOINTS | list_forms(named):
        return False
    return says_something(outside[0]) and is_supported(
        outside[0], words | text.title | _list_referents(text, claim)
    )


def _list_referents(text: Text, claim: Claim) -> frozenset[str]:
    """The words that a claim's evidence may refer to without naming them."""
    ruled = " ".join(
        each.text
        for each in text.chunk.extraction.claims
        if _overlaps(find_clause(each), claim.spans)  # the rules write antecedents out
    )
    around = [s for s in split_sentences(text.chunk.text) if _overlaps(s, claim.spans)]
    sentences = quote(text, around)
    replaced = _list_pronouns(sentences) - _list_pronouns(claim.text)
    known = text.words if replaced else list_forms(sentences)
    return list_forms(ruled) | (list_forms(claim.text) & known)


def _list_pronouns(phrase: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in WORD.findall(phrase) if is_pronoun(word))


def _overlaps(span: Span, spans: Sequence[Span]) -> bool:
    return any(span.start < each.end and each.start < span.end for each in spans)


def list_strange(phrase: str, known: frozenset[str]) -> list[str]:
    """The words of a phrase that are not among the known ones, function words aside."""
    return [
        word
        for word in WORD.findall(phrase)
        if word.casefold() not in _SILENT
        and word.casefold() not in known
        and lemmatise(word.casefold()) not in known
    ]


def is_telling(word: str) -> bool:
    """Whether a word is a name or a number, which cannot be a rewording."""
    return word != word.lower() or any(character.isdigit() for character in word)


def is_supported(phrase: str, known: frozenset[str]) -> bool:
    """Whether all names and numbers of a phrase are known, and half of its other words."""
    strange = list_strange(phrase, known)
    if any(is_telling(word) for word in strange):
        return False
    content = [w for w in WORD.findall(phrase) if w.casefold() not in _SILENT]
    return 2 * len(strange) <= len(content)


def is_pronoun(words: str) -> bool:
    """Whether a word is a pronoun; "US" and "WHO" are names."""
    return words.casefold() in _PRONOUNS and (len(words) == 1 or not words.isupper())


def find_type(name: str, known: Mapping[str, Counter[str]]) -> str:
    """The type that the rules most often assign to a name, else that of its form, else NOUN."""
    counts = known.get(name.casefold())
    if counts:
        return min(counts, key=lambda kind: (-counts[kind], kind))
    return guess_literal(name) or UNKNOWN
