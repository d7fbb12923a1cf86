"""Normal forms: which names and which relation phrases are the same."""

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from simplemma import lemmatize

_ARTICLES = re.compile(r"^(?:the|a|an)\s+")
_EDGES = re.compile(r"^[\W_]+|[\W_]+$")
_SPACE = re.compile(r"\s+")
_POSSESSIVE = re.compile(r"['’]s?$")

_FILLERS = frozenset("also then now later still currently the".split())
_AUXILIARIES = frozenset({"be", "have"})
MODALS = frozenset("can could may might must ought shall should will would".split())
MONTHS = tuple(
    "January February March April May June July August September October November December".split()
)
MONTH = rf"(?:{'|'.join(MONTHS)}|Sept|{'|'.join(name[:3] for name in MONTHS if len(name) > 3)})"
"""The pattern of a month's name or its abbreviation without a stop."""
_OVERRIDES = {"born": "bear"}
"""Participles that the dictionary takes for adjectives."""


def read_words(module: str, name: str) -> Mapping[str, frozenset[str]]:
    """The lists of words in a TOML file beside a module, by name; `table.name` in a table."""
    found: dict[str, frozenset[str]] = {}

    def take(name: str, value: object) -> None:
        if isinstance(value, str):
            found[name] = frozenset(value.split())
        else:
            pairs = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
            for key, inner in pairs:
                take(f"{name}.{key}" if name else str(key), inner)

    take("", tomllib.loads(Path(module).with_name(name).read_text("utf-8")))
    return found


def normalise_name(name: str) -> str:
    """The form in which names of one entity agree: NFKC, case, articles, edges, possessive."""
    text = unicodedata.normalize("NFKC", name).casefold()
    text = _SPACE.sub(" ", text).strip()
    text = _POSSESSIVE.sub("", text)
    text = _EDGES.sub("", _ARTICLES.sub("", text))
    return text or _SPACE.sub(" ", name.casefold()).strip()


@dataclass(frozen=True, slots=True)
class RelationForm:
    """A relation phrase's lemmas and voice; `active` is the phrase seen from the other side."""

    lemmas: tuple[str, ...]
    passive_by: bool
    suffered: bool = False
    """Whether it is a passive of one verb alone: `was built` (in 1901) is not `built`."""

    @property
    def key(self) -> str:
        """What phrases of one relation agree in."""
        voice = " <by>" if self.passive_by else " <passive>" if self.suffered else ""
        return " ".join(self.lemmas) + voice

    @property
    def modal(self) -> str | None:
        """The modal verb that makes it a possibility, a habit or a duty: `may` of `may cause`."""
        return self.lemmas[0] if self.lemmas[0] in MODALS else None

    @property
    def inverse_key(self) -> str | None:
        """The active form's key for a passive with an agent: `was founded by` → `found`."""
        return " ".join(self.lemmas) if self.passive_by else None


def normalise_relation(phrase: str) -> RelationForm:
    """The lemma form of a relation phrase.

    `was founded by` and `founded` share the lemma `found` and differ in voice. A form of `be`
    or `have` is dropped before a participle, where it only carries the tense, and kept where
    it carries the meaning (`is capital of`, `has elevation`).
    """
    words = _SPACE.split(unicodedata.normalize("NFKC", phrase).casefold().strip())
    if len(words) == 2 and words[1] in {"a", "an"} and lemmatise(words[0]) == "be":
        return RelationForm(("be", "a"), passive_by=False)
    words = [word for word in words if word not in _FILLERS] or words
    first = 0
    while first + 1 < len(words) and lemmatise(words[first]) in _AUXILIARIES:
        first += 1
    if first and not _is_participle(words[first]):
        first -= 1
    lemmas = tuple(lemmatise(word) for word in words[first:])
    if _is_participle(words[first]) and len(lemmas) == 2 and lemmas[-1] == "by":
        return RelationForm(lemmas[:-1], passive_by=True)
    passive = first > 0 and lemmatise(words[first - 1]) == "be" and _is_participle(words[first])
    suffered = passive and len(lemmas) == 1 and not words[first].endswith("ing")
    return RelationForm(lemmas, passive_by=False, suffered=suffered)


@lru_cache(maxsize=100_000)
def lemmatise(word: str) -> str:
    """The dictionary form of one English word in small letters."""
    return _OVERRIDES.get(word) or lemmatize(word, lang="en")


def _is_participle(word: str) -> bool:
    return lemmatise(word) != word and not word.endswith("s")
