"""What a text supports: a chunk made ready, and whether it knows the words of a phrase."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from kpyramid.extraction.cascade.chunks import Chunk
from kpyramid.extraction.cascade.evidence import Folded, fold, list_lemmas, list_words
from kpyramid.extraction.cascade.literals import guess_literal
from kpyramid.extraction.normal import lemmatise
from kpyramid.extraction.types import Span

UNKNOWN = "NOUN"
"""The type of a name that neither the rules nor its form tell."""

_FUNCTION_WORDS = frozenset(
    (
        "is was are were be been being has have had having do does did a an the of in on at to "
        "from by with for as and or but not also than its his her their it that"
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
