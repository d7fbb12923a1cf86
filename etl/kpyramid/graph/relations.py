"""Relation clusters: phrases of the same tense that differ only in light words are one relation.

Paraphrases are merged by meaning later, where facts are condensed.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kpyramid.documents.words import BE, DO, HAVE, MODALS, RelationForm, lemmatise

_Key = TypeVar("_Key", bound=Hashable)
Numbers = npt.NDArray[np.integer[Any]]

_LIGHT = frozenset({"be", "a", "an", "the"})
"""Words that do not change the meaning of a relation phrase."""


_PAST = frozenset({"was", "were", "had", "did"})


class Statement(NamedTuple):
    """A relation phrase as worded by a fact."""

    wording: str
    form: RelationForm

    @property
    def key(self) -> str:
        """The common key of a relation's phrases: the form, and whether it is past."""
        return spell_key(self.form.key, self.wording)


def spell_key(form: str, wording: str) -> str:
    """A form's key with the tense of a wording: "lived in" does not entail "lives in"."""
    word = wording.casefold().split()[0]
    if word in MODALS:
        return form
    if word in HAVE and "have" not in form.split():
        return f"{form} <perfect>"
    full = word not in BE | HAVE | DO and not word.endswith(("s", "ing"))
    return f"{form} <past>" if word in _PAST or (full and lemmatise(word) != word) else form


class Codes(dict[_Key, int]):
    """Numbers of keys, in the order in which they were first asked for."""

    def __missing__(self, key: _Key) -> int:
        self[key] = number = len(self)
        return number


class Union:
    """Disjoint sets of keys; the root of a set is its member of smallest rank."""

    def __init__(self, keys: Iterable[str], rank: Callable[[str], Any]) -> None:
        self._parent = {key: key for key in keys}
        self._rank = rank

    def join(self, left: str, right: str) -> None:
        """Merges the sets of both keys."""
        ends = self.find(left), self.find(right)
        self._parent[max(ends, key=self._rank)] = min(ends, key=self._rank)

    def find(self, key: str) -> str:
        """The root of a key's set."""
        while self._parent[key] != key:
            key = self._parent[key]
        return key


def cluster_relations(statements: Mapping[Statement, int]) -> dict[str, str]:
    """The cluster of each statement's key, named by its most frequent member.

    `statements`: the number of times that each is made.
    """
    forms: dict[str, RelationForm] = {}
    counts: Counter[tuple[str, str]] = Counter()
    for statement, count in statements.items():
        forms[statement.key] = statement.form
        counts[statement.key, statement.wording] += count
    totals: Counter[str] = Counter()
    usual: dict[str, str] = {}
    for (key, wording), count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])):
        totals[key] += count
        usual.setdefault(key, wording)
    order = sorted(totals, key=lambda key: (-totals[key], key))
    rank = {key: place for place, key in enumerate(order)}
    clusters = Union(order, rank.__getitem__)
    by_skeleton: dict[str, str] = {}
    for key in order:
        if _is_plain(forms[key], usual[key]):
            skeleton = spell_key(spell_skeleton(forms[key]), usual[key])
            clusters.join(by_skeleton.setdefault(skeleton, key), key)
    return {key: clusters.find(key) for key in order}


def _is_plain(form: RelationForm, phrase: str) -> bool:
    """Whether its first word is light or in dictionary form.

    `presented in` is a verb, `present in` with or without `is` is not.
    """
    return form.lemmas[0] in _LIGHT or phrase.casefold().split()[0] == form.lemmas[0]


def spell_skeleton(form: RelationForm) -> str:
    """The lemmas without light words, for phrases of two or more other words: `capital of`.

    Shorter phrases retain them, since they carry the meaning there: `is a`, `was`.
    """
    rest = [lemma for lemma in form.lemmas if lemma not in _LIGHT]
    return form.key if form.passive_by or form.passive or len(rest) < 2 else " ".join(rest)
