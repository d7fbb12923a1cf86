"""What a question is about: the entities it names, the words that are left."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from kpyramid.extraction.normal import lemmatise
from kpyramid.indexing.wording import WORD, join_words

__all__ = ["KIND_TYPES", "LinkedQuestion", "find_names", "join_words", "link_question"]

_LONGEST_NAME = 10
"""Words; names of entities are seldom longer, and a question of n words costs 10 n look-ups."""
_ASIDE = frozenset(
    (
        "a an the of in on at to for from by with and or as is are was were be been being do does "
        "did have has had it its this that these those there who whom whose what which when where "
        "why how many much name year date time place kind type term call know"
    ).split()
)

KIND_TYPES: Mapping[str, frozenset[str]] = {
    "where": frozenset({"GPE", "LOC", "FAC"}),
    "who": frozenset({"PERSON", "ORG", "NORP"}),
}
"""The entity types that can answer a question of a kind."""


@dataclass(frozen=True, slots=True)
class LinkedQuestion:
    """Entity ids in the order of their names in the question, and the content lemmas left."""

    entities: tuple[str, ...]
    names: tuple[str, ...]
    lemmas: tuple[str, ...]
    asks_for: str

    @property
    def rest(self) -> str:
        """The question without its names."""
        return " ".join(self.lemmas)


def link_question(question: str, index: Mapping[str, tuple[str, ...]]) -> LinkedQuestion:
    """The entities that a question names, longest name first, and what else it says.

    `index` gives the entity ids of a name in the form of `join_words`.
    """
    words = [match.group() for match in WORD.finditer(question)]
    taken = [False] * len(words)
    found: list[tuple[int, str, tuple[str, ...]]] = []
    for length in range(min(_LONGEST_NAME, len(words)), 0, -1):
        for start in range(len(words) - length + 1):
            if any(taken[start : start + length]):
                continue
            name = " ".join(words[start : start + length])
            ids = index.get(join_words(name), ()) if _looks_like_name(name, start) else ()
            if ids:
                taken[start : start + length] = [True] * length
                found.append((start, name, ids))
    found.sort()
    rest = [word.casefold().strip(".") for word, used in zip(words, taken, strict=True) if not used]
    return LinkedQuestion(
        entities=tuple(entity for *_, ids in found for entity in ids),
        names=tuple(name for _, name, _ in found),
        lemmas=tuple(lemmatise(word) for word in rest if word not in _ASIDE),
        asks_for=_find_kind(question),
    )


def find_names(text: str, *, first_counts: bool) -> frozenset[str]:
    """The words of a text that are written as names, in small letters.

    A question's first word is written large whatever it is; a sentence's may be a name.
    """
    words = [match.group().strip(".") for match in WORD.finditer(text)]
    return frozenset(
        word.casefold()
        for word in words[0 if first_counts else 1 :]
        if word[:1].isupper() and word.casefold() not in _ASIDE
    )


def _looks_like_name(name: str, start: int) -> bool:
    first = name[:1]
    return (first.isupper() or first.isdigit()) and (
        start > 0 or " " in name or name.lower() not in _ASIDE
    )


def _find_kind(question: str) -> str:
    """`who`, `where`, `when`, `number` or `what`: what the question asks for."""
    text = question.casefold()
    for kind, pattern in _kinds().items():
        if pattern.search(text):
            return kind
    return "what"


@cache
def _kinds() -> Mapping[str, re.Pattern[str]]:
    patterns = {
        "number": r"\bhow (?:many|much|old|tall|long|high|far|large|big)\b",
        "when": r"\bwhen\b|\b(?:what|which) (?:year|date|day|month|time|century)\b",
        "where": r"\bwhere\b|\b(?:what|which) (?:city|country|state|place|county|town)\b",
        "who": r"\bwho(?:m|se)?\b|\b(?:what|which) (?:person|actor|author|company|band)\b",
    }
    return {kind: re.compile(pattern) for kind, pattern in patterns.items()}
