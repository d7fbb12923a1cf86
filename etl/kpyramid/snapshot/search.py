"""Search of rows: by the words of their texts (BM25), by vectors, and of names by form."""

import hashlib
import logging
import re
from array import array
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
    """Limits numerical libraries to one thread during a question.

    A question's products are so small that further threads wait for each other longer than they
    compute: on two busy cores a retrieval took three times as long. The limit holds in the whole
    process; the last of several callers to leave removes it. The thread that limits OpenBLAS owns
    its limit, and requests of others are silently ignored; so ownership is cleared here.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._asked = local()

    @cached_property
    def _controller(self) -> Any:
        return ThreadpoolController()  # looks through all loaded libraries: 5 ms

    def is_new(self, thing: object) -> bool:
        """Whether a thing is new in this thread's question; always true outside a question."""
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


# The form in which names are stored and looked up.


WORD = re.compile(r"\w+(?:['’.&-]\w+)*\.?")
MOST_SHARED = 100
"""Most entities with a word in their names for it to be indexed: more make it too general."""

MOST_TITLE = 12
"""Most words of a title; a longer title is a sentence, which no other text repeats."""
MOST_TITLED = 5
"""Most documents that share a title: a more frequent one, such as "Notes", names none of them."""


def join_words(name: str) -> str:
    """The normal form of a name without punctuation between its words."""
    return " ".join(WORD.findall(w.normalise_name(name)))


def fold_title(words: Sequence[str]) -> str:
    """Words in the form in which titles are compared: the first of several in lower case."""
    return " ".join((words[0].casefold(), *words[1:]) if len(words) > 1 else words)


def hash_name(name: str) -> int:
    """A number of 64 bits for a name in the form of `join_words`."""
    data = name.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


# BM25 over rows of texts: each word's rows with its part of their score, computed beforehand.


_WORD = re.compile(r"\b\w\w+\b")
_ASIDE = ((w.ARTICLES | w.JOINING | w.PREPOSITIONS | w.POINTING) - {"from", "those"}) | frozenset(
    "are be but if into is it no not such their then there they was will".split()
)
"""Lucene's English stop words."""


class Postings(Protocol):
    """The rows with a stem, ascending, and its part of each row's score."""

    def find(self, stem: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]] | None: ...


def list_stems(text: str) -> list[str]:
    """The stems of a text's words, in order, without stop words."""
    words = [word for word in _WORD.findall(text.lower()) if word not in _ASIDE]
    return w.stem_words(words)


def rank_words(
    text: str, postings: Postings, rows: int, k: int, mask: Mask | None = None
) -> list[tuple[int, float]]:
    """The k rows with the best BM25 score for a text: row, score; best first, then by row."""
    scores = np.zeros(rows, np.float32)
    touched = []
    for stem, count in sorted(Counter(list_stems(text)).items()):
        posting = postings.find(stem)
        if posting is not None:
            places, parts = posting
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
    """The k rows with all stems of a name, by their BM25 score for it and the words beside it.

    Empty for a name without a stem. The cost grows with the rows of the name's rarest stem.
    """
    wanted = set(list_stems(name))
    counts = Counter(list_stems(f"{name} {beside}"))
    postings_of = {stem: postings.find(stem) for stem in sorted(counts)}
    holding = sorted((len(pair[0]) if (pair := postings_of[stem]) else 0, stem) for stem in wanted)
    if not holding or not holding[0][0]:
        return []
    rows = postings_of[holding[0][1]][0]  # type: ignore[index]
    if mask is not None:
        rows = rows[mask[rows]]
    scores = np.zeros(len(rows), np.float32)
    for stem, pair in postings_of.items():
        if pair is not None and len(rows):
            places, parts = pair
            index = np.minimum(places.searchsorted(rows), len(places) - 1)
            has = places[index] == rows
            scores += np.where(has, parts[index] * np.float32(counts[stem]), 0)
            if stem in wanted:
                rows, scores = rows[has], scores[has]
    return pick_best(scores, rows, k)


def pick_best(
    scores: npt.NDArray[np.float32], rows: npt.NDArray[Any], k: int, least: float = -np.inf
) -> list[tuple[int, float]]:
    """The k best of some rows, above `least`; equal scores in the order of the rows."""
    if 0 < k < len(scores):
        bound = np.partition(scores, len(scores) - k)[len(scores) - k]
        chosen = np.flatnonzero((scores >= bound) & (scores > least))
    else:
        chosen = np.flatnonzero(scores > least)
    order = chosen[np.lexsort((rows[chosen], -scores[chosen]))][:k]
    return [(int(rows[i]), float(scores[i])) for i in order]


K1, B = 1.5, 0.75


def weigh_words(
    texts: Iterable[str],
) -> tuple[list[str], Integers, npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """The postings of texts: sorted stems, offsets of their rows, rows, parts of scores.

    BM25 as in Lucene (Kamphuis et al. 2020), k1 = 1.5, b = .75.
    """
    numbers: dict[str, int] = {}
    known: dict[str, Sequence[int]] = {}
    flat_stems, lengths = array("q"), []
    for text in texts:
        before = len(flat_stems)
        for word in _WORD.findall(text.lower()):
            if (found := known.get(word)) is None:
                found = [numbers.setdefault(stem, len(numbers)) for stem in list_stems(word)]
                known[word] = found
            flat_stems.extend(found)
        lengths.append(len(flat_stems) - before)
    names = sorted(numbers, key=lambda stem: stem.encode("utf-8", "surrogatepass"))
    rank = np.empty(len(names), np.int64)
    rank[np.array([numbers[name] for name in names], np.int64)] = np.arange(len(names))
    flat = rank[np.array(flat_stems, np.int64)]
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
    """The vectors of a table, a row each, in parts that are mapped into memory.

    `places`: index of each row's vector in the concatenated parts.
    """

    def __init__(self, parts: Sequence[Matrix], places: npt.NDArray[Any]) -> None:
        self._parts = parts
        self._places = places
        self._ends = np.cumsum([len(part) for part in parts])
        self.shape: tuple[int, int] = len(places), parts[0].shape[1]

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, rows: Any) -> Matrix:
        """The vectors of rows, given as a number or an array of any shape; shape (*rows, d)."""
        wanted = self._places[rows]
        flat = np.ravel(wanted)
        part = np.searchsorted(self._ends, flat, side="right")
        vectors = np.empty((len(flat), self.shape[1]), np.float32)
        for number in np.unique(part).tolist():
            inside = part == number
            first = self._ends[number] - len(self._parts[number])
            vectors[inside] = self._parts[number][flat[inside] - first]
        return vectors.reshape(*np.shape(wanted), self.shape[1])

    def __matmul__(self, vector: Matrix) -> Matrix:
        """The products of all rows with a vector, shape (n,)."""
        return np.asarray(np.concatenate([part @ vector for part in self._parts])[self._places])


Vectors = Matrix | PlacedVectors


def rank_exactly(
    matrix: Vectors, vector: Matrix, k: int, mask: Mask | None = None
) -> list[tuple[int, float]]:
    """The k rows with the largest cosine: row, cosine; best first, ties by row."""
    if mask is None:
        return pick_best(matrix @ vector, np.arange(len(matrix)), k)
    return compare_rows(matrix, vector, np.flatnonzero(mask), k)


def compare_rows(
    matrix: Vectors, vector: Matrix, rows: npt.NDArray[np.intp], k: int
) -> list[tuple[int, float]]:
    """The k best of some rows, ascending, by their exact cosine."""
    return pick_best(matrix[rows] @ vector, rows, k)


# The library for the clusters of large tables, see `clusters`.


def load_faiss() -> Any:
    """The library faiss, which takes a second to load and is therefore loaded where it is used.

    Its loader logs at INFO the build that suits the processor, in every process.
    """
    logging.getLogger("faiss.loader").setLevel(logging.WARNING)
    import faiss

    return faiss
