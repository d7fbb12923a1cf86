"""BM25 over rows of texts, and the form in which names are kept and asked for."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from kpyramid.documents.words import (
    ARTICLES,
    JOINING,
    POINTING,
    PREPOSITIONS,
    normalise_name,
    stem_words,
)

# The form in which names are kept and asked for.

WORD = re.compile(r"\w+(?:['’.&-]\w+)*\.?")
MOST_SHARED = 100
"""Entities beyond which a word of their names is kept for none: it tells nobody apart."""


def join_words(name: str) -> str:
    """The normal form of a name without punctuation between its words."""
    return " ".join(WORD.findall(normalise_name(name)))


def hash_name(name: str) -> int:
    """A number of 64 bits for a name in the form of `join_words`."""
    data = name.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


# BM25 over rows of texts: each word's rows with its part in their score, worked out before.

Mask = npt.NDArray[np.bool_]
"""One truth value per row: whether a search may find it."""

_WORD = re.compile(r"\b\w\w+\b")
_ASIDE = ((ARTICLES | JOINING | PREPOSITIONS | POINTING) - {"from", "those"}) | frozenset(
    "are be but if into is it no not such their then there they was will".split()
)
"""Lucene's English stop words."""
_K1, _B = 1.5, 0.75


class Postings(Protocol):
    """The rows that have a stem, ascending, with its part in each row's score."""

    def find(self, stem: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]] | None: ...


def list_stems(text: str) -> list[str]:
    """The stems of a text's words, in order; words that stand everywhere are left out."""
    words = [word for word in _WORD.findall(text.lower()) if word not in _ASIDE]
    return stem_words(words)


def rank_words(
    text: str, postings: Postings, rows: int, k: int, mask: Mask | None = None
) -> list[tuple[int, float]]:
    """The k rows with the best BM25 score for a text: row, score; best first, then by row."""
    scores = np.zeros(rows, np.float32)
    touched = []
    for stem, count in sorted(Counter(list_stems(text)).items()):
        found = postings.find(stem)
        if found is not None:
            places, parts = found
            scores[places] += parts * np.float32(count)
            touched.append(places)
    if not touched or k < 1:
        return []
    if mask is not None:
        scores[~mask] = 0
    seen = touched[0] if len(touched) == 1 else np.flatnonzero(scores > 0)
    return pick_best(scores[seen], seen, k, least=0.0)


def pick_best(
    scores: npt.NDArray[np.float32], rows: npt.NDArray[Any], k: int, least: float = -np.inf
) -> list[tuple[int, float]]:
    """The k best of some rows, above `least`; equal scores in the order of the rows."""
    if 0 < k < len(scores):
        bound = np.partition(scores, len(scores) - k)[len(scores) - k]
        kept = np.flatnonzero((scores >= bound) & (scores > least))
    else:
        kept = np.flatnonzero(scores > least)
    order = kept[np.lexsort((rows[kept], -scores[kept]))][:k]
    return [(int(rows[at]), float(scores[at])) for at in order]


def weigh_words(
    texts: Iterable[str],
) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """The postings of texts: stems in order, where each one's rows begin, rows, parts of scores.

    BM25 as Lucene counts it (Kamphuis et al. 2020), k1 = 1.5, b = .75.
    """
    numbers: dict[str, int] = {}
    stems: list[npt.NDArray[np.int64]] = []
    lengths: list[int] = []
    for text in texts:
        found = list_stems(text)
        lengths.append(len(found))
        stems.append(
            np.fromiter((numbers.setdefault(s, len(numbers)) for s in found), np.int64, len(found))
        )
    names = sorted(numbers, key=lambda stem: stem.encode("utf-8", "surrogatepass"))
    rank = np.empty(len(names), np.int64)
    rank[np.array([numbers[name] for name in names], np.int64)] = np.arange(len(names))
    flat = rank[np.concatenate(stems)] if stems else np.zeros(0, np.int64)
    sizes = np.array(lengths, np.int64)
    codes = flat * max(len(lengths), 1) + np.repeat(np.arange(len(lengths)), sizes)
    codes, counts = np.unique(codes, return_counts=True)
    word, row = np.divmod(codes, max(len(lengths), 1))
    spread = np.bincount(word, minlength=len(names))
    rarity = np.log(1 + (len(lengths) - spread + 0.5) / (spread + 0.5))
    mean = sizes.mean() if len(lengths) and sizes.any() else 1.0
    often = counts / (counts + _K1 * (1 - _B + _B * sizes[row] / mean))
    starts = np.concatenate([[0], np.cumsum(spread)]).astype(np.int64)
    return names, starts, row.astype(np.int32), (rarity[word] * often).astype(np.float32)


class HeldPostings:
    """Postings made now, of a table that the index leaves out."""

    def __init__(self, texts: Sequence[str]) -> None:
        names, self._starts, self._rows, self._parts = weigh_words(texts)
        self._places = {name: at for at, name in enumerate(names)}

    def find(self, stem: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]] | None:
        """See `Postings.find`."""
        if (at := self._places.get(stem)) is None:
            return None
        part = slice(int(self._starts[at]), int(self._starts[at + 1]))
        return self._rows[part], self._parts[part]
