"""What a text supports: a chunk made ready, and whether it knows the words of a phrase."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kpyramid.extraction.cascade.chunks import Chunk, find_clause
from kpyramid.extraction.cascade.evidence import (
    Folded,
    fold,
    list_lemmas,
    list_words,
    locate_name,
)
from kpyramid.extraction.cascade.literals import guess_literal
from kpyramid.extraction.normal import lemmatise
from kpyramid.extraction.text.sentences import Span, split_sentences
from kpyramid.extraction.types import Claim

UNKNOWN = "NOUN"
"""The type of a name that neither the rules nor its form tell."""

_JOINTS = frozenset("a an the of in on at to from by with for as and or but not also than".split())
_FUNCTION_WORDS = _JOINTS | frozenset(
    (
        "is was are were be been being has have had having do does did its his her their it that"
    ).split()
)
_PRONOUNS = frozenset(
    (
        "i me my mine we us our ours you your yours he him his she her hers it its they them their "
        "theirs this that these those who whom whose which himself herself itself themselves"
    ).split()
)
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Text:
    """A chunk made ready by `prepare_text`: folded for searching, its words and its title's."""

    chunk: Chunk
    folded: Folded
    words: frozenset[str]
    title: frozenset[str]
    types: Mapping[str, Counter[str]]
    """What the rules take each name for."""

    @property
    def whole(self) -> Span:
        """All of it."""
        return Span(0, len(self.chunk.text))


def prepare_text(chunk: Chunk) -> Text:
    """A chunk, ready to hold replies against."""
    types: dict[str, Counter[str]] = {}
    for mention in chunk.found.mentions:
        if mention.type != UNKNOWN:
            types.setdefault(mention.text.casefold(), Counter())[mention.type] += 1
    words, title = list_forms(chunk.text), list_forms(chunk.title or "")
    return Text(chunk, fold(chunk.text), words, title, types)


def list_forms(text: str) -> frozenset[str]:
    """The words of a text and their dictionary forms."""
    return frozenset(list_words(text)) | list_lemmas(text)


def quote(text: Text, spans: Sequence[Span]) -> str:
    """The words of some stretches, one after the other."""
    return " ".join(text.chunk.text[span.start : span.end] for span in spans)


def says_something(phrase: str) -> bool:
    """Whether it holds a word beside pronouns and function words."""
    words = _WORD.findall(phrase)
    return any(word.casefold() not in _FUNCTION_WORDS and not is_pronoun(word) for word in words)


def supports(text: Text, claim: Claim, head: str, tail: str) -> bool:
    """Whether a claim's evidence states something of head and tail.

    One of them stands there, and where only one does, something is said of it. The other one is
    what the title or the rules' antecedents call it, or it is in the claim: as a part of the same
    sentence, or in place of a pronoun of that.
    """
    quoted = quote(text, claim.spans)
    words = list_forms(quoted)
    outside = [
        end
        for end in (head, tail)
        if locate_name(text.chunk.text, text.folded, end, claim.spans) is None
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
    """The words that a claim's evidence may mean without saying them."""
    ruled = " ".join(
        each.text
        for each in text.chunk.found.claims
        if _overlaps(find_clause(each), claim.spans)  # the rules write antecedents out
    )
    around = [s for s in split_sentences(text.chunk.text) if _overlaps(s, claim.spans)]
    sentences = quote(text, around)
    replaced = _list_pronouns(sentences) - _list_pronouns(claim.text)
    known = text.words if replaced else list_forms(sentences)
    return list_forms(ruled) | (list_forms(claim.text) & known)


def _list_pronouns(phrase: str) -> frozenset[str]:
    return frozenset(word.casefold() for word in _WORD.findall(phrase) if is_pronoun(word))


def _overlaps(one: Span, others: Sequence[Span]) -> bool:
    return any(one.start < other.end and other.start < one.end for other in others)


def list_strange(phrase: str, known: frozenset[str]) -> list[str]:
    """The words of a phrase that are not among the known ones, function words aside."""
    return [
        word
        for word in _WORD.findall(phrase)
        if word.casefold() not in _FUNCTION_WORDS
        and word.casefold() not in known
        and lemmatise(word.casefold()) not in known
    ]


def is_telling(word: str) -> bool:
    """Whether it is a name or a number: what cannot be a rewording."""
    return word != word.lower() or any(character.isdigit() for character in word)


def is_supported(phrase: str, known: frozenset[str]) -> bool:
    """Whether all names and numbers of a phrase are known, and half of its other words."""
    strange = list_strange(phrase, known)
    if any(is_telling(word) for word in strange):
        return False
    content = [w for w in _WORD.findall(phrase) if w.casefold() not in _FUNCTION_WORDS]
    return 2 * len(strange) <= len(content)


def is_pronoun(words: str) -> bool:
    """Whether it is a pronoun and nothing else; "US" and "WHO" are names."""
    return words.casefold() in _PRONOUNS and (len(words) == 1 or not words.isupper())


def find_type(name: str, known: Mapping[str, Counter[str]]) -> str:
    """What the rules most often take a name for, else what its form tells, else NOUN."""
    counts = known.get(name.casefold())
    if counts:
        return min(counts, key=lambda kind: (-counts[kind], kind))
    return guess_literal(name) or UNKNOWN
