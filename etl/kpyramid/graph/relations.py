"""Relation clusters: which phrases say the same of the same things, in the same direction.

A likeness of vectors alone is never enough: `husband of` and `wife of`, `opened in` and `closed
in` lie nearer than many paraphrases do. Two phrases are one relation when they differ in light
words only, or when they are alike and were both said of the same pairs.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeVar

from kpyramid.documents.words import RelationForm
from kpyramid.embeddings.port import Embedder

_Counted = TypeVar("_Counted", str, tuple[str, str])

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


@dataclass(frozen=True, slots=True)
class Statement:
    """One relation phrase of one pair of things, with the types of both."""

    form: RelationForm
    wording: str
    head: str
    tail: str
    types: tuple[str, str]


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
    forms: dict[str, RelationForm] = {}
    wordings: dict[str, Counter[str]] = defaultdict(Counter)
    pairs: dict[str, set[tuple[str, str]]] = defaultdict(set)
    types: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for statement in statements:
        key = statement.form.key
        forms[key] = statement.form
        wordings[key][statement.wording] += 1
        pairs[key].add((statement.head, statement.tail))
        types[key][statement.types] += 1
    order = sorted(forms, key=lambda key: (-wordings[key].total(), key))
    rank = {key: place for place, key in enumerate(order)}
    phrase = {key: _pick_first(wordings[key]) for key in order}
    usual = {key: _pick_first(types[key]) for key in order}
    clusters = Union(order, rank.__getitem__)
    by_skeleton: dict[str, str] = {}
    for key in order:
        if _is_plain(forms[key], phrase[key]):
            clusters.join(by_skeleton.setdefault(spell_skeleton(forms[key]), key), key)
    candidates = [
        (one, other)
        for one, other in _list_sharing(pairs)
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


def _list_sharing(pairs: Mapping[str, set[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Keys of relations that were said of the same pairs often enough."""
    by_pair: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key in sorted(pairs):
        for pair in pairs[key]:
            by_pair[pair].append(key)
    shared = Counter(
        both for keys in by_pair.values() if len(keys) <= _BUCKET for both in combinations(keys, 2)
    )
    return sorted(
        (one, other)
        for (one, other), count in shared.items()
        if count >= max(_PAIRS, _SHARE * min(len(pairs[one]), len(pairs[other])))
    )


def _pick_first(counts: Counter[_Counted]) -> _Counted:
    return min(counts, key=lambda item: (-counts[item], item))
