"""Searching rows: by the words of their texts (BM25), by their vectors, and names by their form."""

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ContextDecorator
from functools import cached_property
from threading import Lock, local
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from threadpoolctl import OpenBLASController, ThreadpoolController

from kpyramid.documents import words as w
from kpyramid.embeddings.port import Matrix
from kpyramid.numerics.arrays import Integers, Mask


class OneThread(ContextDecorator):
    """Keeps numerical libraries on one thread while a question is worked on.

    A question's products are so small that further threads wait for each other longer than they
    compute: on two busy cores a retrieval took three times as long. The limit holds in the whole
    process; the last of several callers to leave takes it away. The thread that limits OpenBLAS
    owns its limit, and what another asks for is ignored without a word: so nobody owns it here.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._asked = local()

    @cached_property
    def _controller(self) -> Any:
        return ThreadpoolController()  # looks through all loaded libraries: 5 ms

    def is_new(self, thing: object) -> bool:
        """Whether a thing is named for the first time in this thread's question, or outside one."""
        named: set[int] | None = getattr(self._asked, "named", None)
        if named is None:
            return True
        new = id(thing) not in named
        named.add(id(thing))
        return new

    def __enter__(self) -> None:
        self._asked.depth = getattr(self._asked, "depth", 0) + 1
        if self._asked.depth == 1:
            self._asked.named = set()
        with self._lock:
            if not self._inside:
                OpenBLASController.clear_controlling_thread(force=True)
                self._limits = self._controller.limit(limits=1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        self._asked.depth -= 1
        if not self._asked.depth:
            self._asked.named = None
        with self._lock:
            self._inside -= 1
            if not self._inside:
                OpenBLASController.clear_controlling_thread(force=True)
                self._limits.restore_original_limits()
                OpenBLASController.clear_controlling_thread(force=True)


one_thread = OneThread()


# The form in which names are kept and asked for.


WORD = re.compile(r"\w+(?:['’.&-]\w+)*\.?")
MOST_SHARED = 100
"""Entities beyond which a word of their names is kept for none: it tells nobody apart."""

MOST_TITLE = 12
"""Words of a title at most; a longer one is a sentence, which no other text repeats."""
MOST_TITLED = 5
"""Documents that share a title at most: one of more, such as "Notes", names none of them."""


def join_words(name: str) -> str:
    """The normal form of a name without punctuation between its words."""
    return " ".join(WORD.findall(w.normalise_name(name)))


def fold_title(words: Sequence[str]) -> str:
    """Words as titles are compared: as written, but the first of several may be written small."""
    return " ".join((words[0].casefold(), *words[1:]) if len(words) > 1 else words)


def hash_name(name: str) -> int:
    """A number of 64 bits for a name in the form of `join_words`."""
    data = name.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


# BM25 over rows of texts: each word's rows with its part in their score, worked out before.


_WORD = re.compile(r"\b\w\w+\b")
_ASIDE = ((w.ARTICLES | w.JOINING | w.PREPOSITIONS | w.POINTING) - {"from", "those"}) | frozenset(
    "are be but if into is it no not such their then there they was will".split()
)
"""Lucene's English stop words."""


class Postings(Protocol):
    """The rows that have a stem, ascending, with its part in each row's score."""

    def find(self, stem: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]] | None: ...


def list_stems(text: str) -> list[str]:
    """The stems of a text's words, in order; words that stand everywhere are left out."""
    words = [word for word in _WORD.findall(text.lower()) if word not in _ASIDE]
    return w.stem_words(words)


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


def rank_holding(
    name: str, beside: str, postings: Postings, k: int, mask: Mask | None = None
) -> list[tuple[int, float]]:
    """The k rows that have all stems of a name, by their BM25 score for it and what is beside it.

    None for a name without a stem. It costs what the name's rarest stem has rows.
    """
    wanted = set(list_stems(name))
    counts = Counter(list_stems(f"{name} {beside}"))
    found = {stem: postings.find(stem) for stem in sorted(counts)}
    holding = sorted((len(pair[0]) if (pair := found[stem]) else 0, stem) for stem in wanted)
    if not holding or not holding[0][0]:
        return []
    rows = found[holding[0][1]][0]  # type: ignore[index]
    if mask is not None:
        rows = rows[mask[rows]]
    scores = np.zeros(len(rows), np.float32)
    for stem, pair in found.items():
        if pair is not None and len(rows):
            places, parts = pair
            at = np.minimum(places.searchsorted(rows), len(places) - 1)
            has = places[at] == rows
            scores += np.where(has, parts[at] * np.float32(counts[stem]), 0)
            if stem in wanted:
                rows, scores = rows[has], scores[has]
    return pick_best(scores, rows, k)


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


K1, B = 1.5, 0.75


def weigh_words(
    texts: Iterable[str],
) -> tuple[list[str], Integers, npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """The postings of texts: stems in order, where each one's rows begin, rows, parts of scores.

    BM25 as Lucene counts it (Kamphuis et al. 2020), k1 = 1.5, b = .75.
    """
    numbers: dict[str, int] = {}
    stems: list[Integers] = []
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
    often = counts / (counts + K1 * (1 - B + B * sizes[row] / mean))
    starts = np.concatenate([[0], np.cumsum(spread)]).astype(np.int64)
    return names, starts, row.astype(np.int32), (rarity[word] * often).astype(np.float32)


# Vectors, compared with all rows.


class PlacedVectors:
    """The vectors of a table, a row each, which lie in parts that are mapped.

    `places` says where in all parts together a row's is.
    """

    def __init__(self, parts: Sequence[Matrix], places: npt.NDArray[Any]) -> None:
        self._parts = parts
        self._places = places
        self._ends = np.cumsum([len(part) for part in parts])
        self.shape: tuple[int, int] = len(places), parts[0].shape[1]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, rows: Any) -> Matrix:
        """The vectors of some rows, in the form of these: a number, or an array of any shape."""
        wanted = self._places[rows]
        at = np.ravel(wanted)
        part = np.searchsorted(self._ends, at, side="right")
        found = np.empty((len(at), self.shape[1]), np.float32)
        for number in np.unique(part).tolist():
            inside = part == number
            first = self._ends[number] - len(self._parts[number])
            found[inside] = self._parts[number][at[inside] - first]
        return found.reshape(*np.shape(wanted), self.shape[1])

    def __matmul__(self, vector: Matrix) -> Matrix:
        """The products of all rows with a vector."""
        return np.asarray(np.concatenate([part @ vector for part in self._parts])[self._places])


Vectors = Matrix | PlacedVectors


def rank_exactly(
    matrix: Vectors, vector: Matrix, k: int, mask: Mask | None = None
) -> list[tuple[int, float]]:
    """The k rows with the largest cosine: row, cosine; best first, equal ones by row."""
    if mask is None:
        return pick_best(matrix @ vector, np.arange(len(matrix)), k)
    return compare_rows(matrix, vector, np.flatnonzero(mask), k)


def compare_rows(
    matrix: Vectors, vector: Matrix, rows: npt.NDArray[np.intp], k: int
) -> list[tuple[int, float]]:
    """The k best of some rows, ascending, by their exact cosine."""
    return pick_best(matrix[rows] @ vector, rows, k)


# The library of clusters, which are in `clusters`: only large tables have any.


def load_faiss() -> Any:
    """The library faiss: a second to load, so only where it is used.

    Its loader says at INFO which build of it suits the processor, in every process.
    """
    logging.getLogger("faiss.loader").setLevel(logging.WARNING)
    import faiss

    return faiss
