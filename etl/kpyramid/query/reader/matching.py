"""Where a name stands in a text: by whole words, in any of its forms."""

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

import Stemmer

from kpyramid.query.reader.values import Date, Value, agree, read_value

_WORD = re.compile(r"\b(?:[^\W\d_]\.){2,}(?:[^\W\d_]\b)?|\w+")
"""A word, or initials with their stops: `A.C.` is `AC`."""
_ASIDE = re.compile(r"\s*\([^)]*\)\s*$")
_ARTICLES = frozenset({"the", "a", "an"})
_STEMMER = Stemmer.Stemmer("english")
_GENERIC = 0.5
"""Share of the candidates from which a word that they have in common tells none apart."""
_PART = re.compile(r"\s*[,;/]\s*")
_SHORTEST = 3
"""Letters of a word that stands for a name by itself."""


class Word(NamedTuple):
    """A word's stem and plain form, its place, and whether it is written large."""

    plain: str
    stem: str
    start: int
    end: int
    large: bool


@dataclass(frozen=True, slots=True)
class Place:
    """Words `first` to `last`, exclusive, of a text, and how surely they are the name: 0 to 1."""

    first: int
    last: int
    strength: float


@dataclass(frozen=True, slots=True)
class Name:
    """What is looked for: forms in plain words, each with how surely it means it; or a value."""

    text: str
    forms: tuple[tuple[tuple[str, ...], float], ...]
    value: Date | Decimal | None = None


@lru_cache(maxsize=4096)
def split_words(text: str) -> tuple[Word, ...]:
    """The words of a text without case and accents, with their places."""
    return tuple(
        Word(*_read_word(match.group()), match.start(), match.end(), match.group()[0].isupper())
        for match in _WORD.finditer(text)
    )


@lru_cache(maxsize=100_000)
def _read_word(written: str) -> tuple[str, str]:
    """Plain form and stem of a word."""
    plain = _fold(written.replace(".", ""))
    return plain, _stem(plain)


def read_name(text: str, aliases: Collection[str] = ()) -> Name:
    """A name with its other forms: those given, and itself without article or aside."""
    return _read_name(text, tuple(aliases))


@lru_cache(maxsize=4096)
def _read_name(text: str, aliases: tuple[str, ...]) -> Name:
    forms: dict[tuple[str, ...], float] = {}
    for form, strength in (
        (text, 1.0),
        (_ASIDE.sub("", text), 0.95),
        (_PART.split(text)[0], 0.6),
        *((a, 0.95) for a in aliases),
    ):
        words = tuple(word.plain for word in split_words(form))
        if words[:1] and words[0] in _ARTICLES and len(words) > 1:
            words = words[1:]
        if words and words not in forms:
            forms[words] = strength
    return Name(text, tuple(forms.items()), read_value(text))


def read_names(texts: Sequence[str], aliases: Sequence[Collection[str]]) -> list[Name]:
    """The names of candidates, each also by the words that only it has.

    What most candidates share ("language" of "German language") tells none of them apart.
    """
    names = [read_name(text, forms) for text, forms in zip(texts, aliases, strict=True)]
    counts: dict[str, int] = {}
    for name in names:
        for word in {word for form, _ in name.forms[:1] for word in form}:
            counts[word] = counts.get(word, 0) + 1
    generic = {word for word, count in counts.items() if count > _GENERIC * len(names) > 1}
    return [_add_distinctive(name, generic, counts) for name in names]


def find_name(name: Name, words: Sequence[Word], values: Sequence[Value]) -> list[Place]:
    """Where a text says a name, surest first; `values` are the text's dates and numbers."""
    if name.value is not None:
        return _find_value(name.value, words, values)
    found: dict[tuple[int, int], float] = {}
    for form, strength in name.forms:
        stems = tuple(_stem(word) for word in form)
        for first in range(len(words) - len(form) + 1):
            run = words[first : first + len(form)]
            if run[0].stem != stems[0]:
                continue
            if tuple(word.plain for word in run) == form:
                sure = strength
            elif tuple(word.stem for word in run) == stems:
                sure = 0.9 * strength
            else:
                continue
            span = (first, first + len(form))
            sure *= _weigh_neighbours(run, words, *span)
            found[span] = max(found.get(span, 0.0), sure)
    longest = [  # "Berrin" within "Tomas Berrin" is no place of its own
        span
        for span in found
        if not any(a <= span[0] and span[1] <= b for a, b in found if (a, b) != span)
    ]
    places = [Place(*span, found[span]) for span in longest]
    return sorted(places, key=lambda place: (-place.strength, place.first, place.last))


def _find_value(
    wanted: Date | Decimal, words: Sequence[Word], values: Sequence[Value]
) -> list[Place]:
    places = []
    for value in values:
        sure = agree(wanted, value.value)
        covered = [i for i, w in enumerate(words) if value.start <= w.start < value.end]
        if sure and covered:
            places.append(Place(covered[0], covered[-1] + 1, sure))
    return sorted(places, key=lambda place: (-place.strength, place.first))


def _weigh_neighbours(run: Sequence[Word], words: Sequence[Word], first: int, last: int) -> float:
    """Less for a name that is part of a longer one: `London` in `London Bridge Company`."""
    if not run[0].large:
        return 1.0
    after = words[last] if last < len(words) else None
    before = words[first - 1] if first else None
    weight = 1.0
    if after and after.large and after.start == run[-1].end + 1:
        weight *= 0.6
    apart = before is None or before.plain in _ARTICLES
    if before and not apart and first > 1 and before.large and run[0].start == before.end + 1:
        weight *= 0.8
    return weight


def _add_distinctive(name: Name, generic: set[str], counts: dict[str, int]) -> Name:
    full = name.forms[0][0] if name.forms else ()
    forms = dict(name.forms)
    kept = tuple(word for word in full if word not in generic)
    if kept and kept != full:
        forms.setdefault(kept, 0.8)
    last = full[-1:]
    if len(full) > 1 and len(last[0]) >= _SHORTEST and counts[last[0]] == 1 and last[0].isalpha():
        forms.setdefault(last, 0.5)
    return Name(name.text, tuple(forms.items()), name.value)


@lru_cache(maxsize=100_000)
def _fold(word: str) -> str:
    parts = unicodedata.normalize("NFKD", word)
    return "".join(c for c in parts if not unicodedata.combining(c)).casefold()


@lru_cache(maxsize=100_000)
def _stem(word: str) -> str:
    return str(_STEMMER.stemWord(word))
