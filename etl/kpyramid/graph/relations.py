"""Relation clusters: which phrases say the same of the same things, in the same direction.

A likeness of vectors alone is never enough: `husband of` and `wife of`, `opened in` and `closed
in` lie nearer than many paraphrases do. Two phrases are one relation when they differ in light
words only, or when they are alike and were both said of the same pairs.
"""

from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from kpyramid.documents.words import RelationForm
from kpyramid.embeddings.port import Embedder

_Counted = TypeVar("_Counted", str, tuple[str, str])
_Key = TypeVar("_Key", bound=Hashable)
Numbers = npt.NDArray[np.integer[Any]]

_LIGHT = frozenset({"be", "a", "an", "the"})
"""Words that a relation phrase keeps or leaves without a change of meaning."""

_SIMILARITY = 0.8
"""Cosine from which phrases may be paraphrases; `bought` and `sold` have 0.77."""
_PAIRS = 2
"""Pairs of head and tail that two paraphrases must have been said of, both of them."""
_SHARE = 0.5
"""Share of the rarer phrase's pairs that the other phrase must have been said of too."""
_BUCKET = 16
"""Relations of one pair that are compared with each other."""


class Statement(NamedTuple):
    """One relation phrase of one pair of things, given by number, with the types of both."""

    form: RelationForm
    wording: str
    head: int
    tail: int
    types: tuple[str, str]


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

    def join(self, one: str, other: str) -> None:
        """Makes the sets of both keys one."""
        ends = self.find(one), self.find(other)
        self._parent[max(ends, key=self._rank)] = min(ends, key=self._rank)

    def find(self, key: str) -> str:
        """The root of a key's set."""
        while self._parent[key] != key:
            key = self._parent[key]
        return key

    def list_roots(self) -> dict[str, str]:
        """The root of each key, by key in order."""
        return {key: self.find(key) for key in sorted(self._parent)}


def cluster_relations(statements: Iterable[Statement], embedder: Embedder) -> dict[str, str]:
    """The cluster of each form's key, called by its member of which most is said."""
    codes: Codes[str] = Codes()
    wordings: Codes[str] = Codes()
    types: Codes[tuple[str, str]] = Codes()
    forms: dict[str, RelationForm] = {}
    columns = [array("i") for _ in range(5)]
    for form, wording, head, tail, kinds in statements:
        forms[form.key] = form
        numbers = codes[form.key], wordings[wording], types[kinds], head, tail
        for column, number in zip(columns, numbers, strict=True):
            column.append(number)
    said, worded, typed, *pair = (np.array(column, dtype=np.int64) for column in columns)
    counts = np.bincount(said, minlength=len(codes)).tolist()
    order = sorted(codes, key=lambda key: (-counts[codes[key]], key))
    rank = {key: place for place, key in enumerate(order)}
    phrase = dict(zip(codes, _pick_usual(said, worded, [*wordings]), strict=True))
    usual = dict(zip(codes, _pick_usual(said, typed, [*types]), strict=True))
    clusters = Union(order, rank.__getitem__)
    by_skeleton: dict[str, str] = {}
    for key in order:
        if _is_plain(forms[key], phrase[key]):
            clusters.join(by_skeleton.setdefault(spell_skeleton(forms[key]), key), key)
    candidates = [
        (one, other)
        for one, other in _list_sharing(codes, said, pair)
        if usual[one] == usual[other] and _is_parallel(forms[one], forms[other])
    ]
    wanted = sorted({phrase[key] for pair in candidates for key in pair})
    vector = dict(zip(wanted, embedder.embed(wanted), strict=True)) if wanted else {}
    for one, other in candidates:
        if float(vector[phrase[one]] @ vector[phrase[other]]) >= _SIMILARITY:
            clusters.join(one, other)
    return {key: clusters.find(key) for key in order}


def _is_plain(form: RelationForm, phrase: str) -> bool:
    """Its first word is a light one or stands as in the dictionary.

    `presented in` is a verb, `present in` with or without `is` is not.
    """
    return form.lemmas[0] in _LIGHT or phrase.casefold().split()[0] == form.lemmas[0]


def spell_skeleton(form: RelationForm) -> str:
    """The lemmas without light words, for phrases that a preposition ends: `capital of`.

    Other phrases keep them, for there they carry the meaning: `is a`, `was`.
    """
    rest = [lemma for lemma in form.lemmas if lemma not in _LIGHT]
    return form.key if form.passive_by or form.passive or len(rest) < 2 else " ".join(rest)


def _is_parallel(one: RelationForm, other: RelationForm) -> bool:
    """They read in one direction: the same voice, and the same last word or none but verbs."""
    lengths = (len(one.lemmas), len(other.lemmas))
    same_voice = (one.passive_by, one.passive) == (other.passive_by, other.passive)
    return same_voice and (
        max(lengths) == 1 or (min(lengths) > 1 and one.lemmas[-1] == other.lemmas[-1])
    )


def _list_sharing(
    codes: Mapping[str, int], said: Numbers, pair: Sequence[Numbers]
) -> list[tuple[str, str]]:
    """Keys of relations that were said of the same pairs often enough.

    `said`: the code of each statement's relation, `pair`: its head and its tail.
    """
    keys = sorted(codes)
    place = np.empty(len(keys), dtype=np.int64)
    place[[codes[key] for key in keys]] = np.arange(len(keys))
    order = np.lexsort((place[said], *pair))
    relation, head, tail = place[said][order], pair[0][order], pair[1][order]
    same = (np.diff(head, prepend=-1) == 0) & (np.diff(tail, prepend=-1) == 0)
    new = ~same | (np.diff(relation, prepend=-1) != 0)
    relation, starts = relation[new], np.flatnonzero(~same[new])
    sizes = np.bincount(relation, minlength=len(keys)).tolist()
    both = array("q")
    for start, count in zip(starts.tolist(), np.diff(starts, append=len(relation)), strict=True):
        if 1 < count <= _BUCKET:
            own = relation[start : start + count].tolist()
            both.extend(one * len(keys) + other for one, other in combinations(own, 2))
    shared, counts = np.unique(np.array(both, dtype=np.int64), return_counts=True)
    ends = [divmod(number, len(keys)) for number in shared.tolist()]
    return [
        (keys[one], keys[other])
        for (one, other), count in zip(ends, counts.tolist(), strict=True)
        if count >= max(_PAIRS, _SHARE * min(sizes[one], sizes[other]))
    ]


def _pick_usual(owners: Numbers, values: Numbers, words: Sequence[_Counted]) -> list[_Counted]:
    """The most frequent value of each owner, of equally frequent ones the first by alphabet."""
    both, counts = np.unique(owners * len(words) + values, return_counts=True)
    best: dict[int, tuple[int, _Counted]] = {}
    for number, count in zip(both.tolist(), counts.tolist(), strict=True):
        owner, value = divmod(number, len(words))
        found = -count, words[value]
        best[owner] = min(best.get(owner, found), found)
    return [best[owner][1] for owner in range(len(best))]
