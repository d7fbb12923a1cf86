"""Searching rows: by the words of their texts (BM25), by their vectors, and names by their form."""

import hashlib
import logging
import math
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController, threadpool_limits

from kpyramid.documents.words import (
    ARTICLES,
    JOINING,
    POINTING,
    PREPOSITIONS,
    normalise_name,
    stem_words,
)
from kpyramid.embeddings.port import Matrix


class OneThread(ContextDecorator):
    """Keeps numerical libraries on one thread while a question is worked on.

    A question's products are so small that further threads wait for each other longer than they
    compute: on two busy cores a retrieval took three times as long. The limit holds in the whole
    process; the last of several callers to leave takes it away.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0

    @cached_property
    def _controller(self) -> Any:
        return ThreadpoolController()  # looks through all loaded libraries: 5 ms

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limits = self._controller.limit(limits=1)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limits.restore_original_limits()


one_thread = OneThread()


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


# Clusters of vectors (IVF), which find nearly the nearest ones: written, and searched.
#
# Each vector is rounded to a byte per dimension, so that a million of 384 take 0.4 GB; the reader
# compares what is found by exact vectors. Centres are found here and not by faiss, whose own
# arithmetic is several times slower on one thread.

_WIDER = 5
"""How many more rows than asked for the index gives; their exact cosines then decide."""
_LEAST = 64
_FEW = 20_000
"""Rows that a mask leaves up to which they are all compared: 30 MB of 384 dimensions, 10 ms."""
_PER_LIST = 64
"""Vectors per list from which centres are learnt; faiss warns below 39."""
_ROUNDS = 10
_BLOCK = 16_384
_ASKED = 200
_NEAREST = 10
_BETWEEN = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """How a table is searched: so many lists, of which `probes` are looked through.

    `recall_at_10` is the share of the ten exactly nearest rows that are found, over `asked`
    vectors: each the middle of three rows. A question lies between facts; of a million facts real
    questions found .976 where middles of three found .966, of two .996 and rows .998.
    """

    lists: int
    probes: int
    recall_at_10: float
    asked: int


def write_clusters(path: Path, matrix: Matrix, least_recall: float, seed: int) -> Plan:
    """Writes the faiss index of some vectors, and says how to search it.

    `probes` are the fewest, growing by half, that reach the recall. Everything runs on one thread
    and draws from `seed`, so that the bytes do not depend on the machine's cores.
    """
    faiss = load_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        with threadpool_limits(1):
            index = _build(matrix, seed)
            plan = _measure(index, matrix, least_recall, seed)
            faiss.write_index(index, str(path))
    finally:
        faiss.omp_set_num_threads(before)
    return plan


def _build(matrix: Matrix, seed: int) -> Any:
    rows, width = matrix.shape
    lists = max(1, min(2 ** round(math.log2(2 * math.sqrt(rows))), rows // _PER_LIST))
    chance = np.random.default_rng(seed)
    sample = np.sort(chance.choice(rows, min(rows, lists * _PER_LIST), replace=False))
    centres = _find_centres(np.ascontiguousarray(matrix[sample]), lists, chance)
    faiss = load_faiss()
    quantiser = faiss.IndexFlatIP(width)
    quantiser.add(centres)
    index = faiss.IndexIVFScalarQuantizer(
        quantiser, width, lists, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT, False
    )
    index.train(np.ascontiguousarray(matrix[sample]))
    for start in range(0, rows, _BLOCK):
        block = np.ascontiguousarray(matrix[start : start + _BLOCK])
        nearest = _assign(block, centres).astype(np.int64)
        ids = np.arange(start, start + len(block), dtype=np.int64)
        swig = load_faiss().swig_ptr
        index.add_core(len(block), swig(block), swig(ids), swig(nearest))
    return index


def _find_centres(sample: Matrix, lists: int, chance: np.random.Generator) -> Matrix:
    """Spherical k-means (Dhillon and Modha 2001); an empty list takes a vector drawn anew."""
    centres = sample[np.sort(chance.choice(len(sample), lists, replace=False))].copy()
    for _ in range(_ROUNDS):
        nearest = np.concatenate(
            [_assign(sample[at : at + _BLOCK], centres) for at in range(0, len(sample), _BLOCK)]
        )
        order = np.argsort(nearest, kind="stable")
        counts = np.bincount(nearest, minlength=lists)
        filled = np.flatnonzero(counts)
        starts = (np.cumsum(counts) - counts)[filled]
        sums = np.add.reduceat(sample[order], starts, axis=0)
        centres[filled] = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
        empty = np.flatnonzero(counts == 0)
        centres[empty] = sample[chance.choice(len(sample), len(empty), replace=False)]
    return centres


def _assign(block: Matrix, centres: Matrix) -> npt.NDArray[np.intp]:
    return np.asarray(np.argmax(block @ centres.T, axis=1))


def _measure(index: Any, matrix: Matrix, least_recall: float, seed: int) -> Plan:
    """The fewest probes that reach the recall, and the recall they reach."""
    chance = np.random.default_rng(seed + 1)
    asked = min(_ASKED, len(matrix))
    drawn = [matrix[chance.choice(len(matrix), asked, replace=False)] for _ in range(_BETWEEN)]
    questions = sum(drawn[1:], drawn[0])
    questions /= np.maximum(np.linalg.norm(questions, axis=1, keepdims=True), 1e-12)
    exact = [{row for row, _ in rank_exactly(matrix, q, _NEAREST)} for q in questions]
    probes = min(4, index.nlist)
    while True:
        found = [rank_nearly(index, probes, matrix, q, _NEAREST) for q in questions]
        shared = sum(
            len(known & {row for row, _ in near}) for known, near in zip(exact, found, strict=True)
        )
        recall = shared / max(1, sum(map(len, exact)))
        if recall >= least_recall or probes == index.nlist:
            return Plan(index.nlist, probes, round(recall, 4), len(questions))
        probes = min(probes + probes // 2, index.nlist)


def rank_nearly(
    index: Any, probes: int, matrix: Vectors, vector: Matrix, k: int, mask: Mask | None = None
) -> list[tuple[int, float]]:
    """What `rank_exactly` gives, nearly: `probes` lists of a faiss index are looked through.

    The index ranks by rounded vectors; of those it finds the exact cosines decide. Where a mask
    leaves few rows they are all compared; where it leaves a part, more lists are looked through.
    """
    faiss = load_faiss()
    options: dict[str, Any] = {"nprobe": probes}
    if mask is not None:
        left = int(mask.sum())
        if left <= max(_FEW, k):
            return compare_rows(matrix, vector, np.flatnonzero(mask), k)
        options["nprobe"] = min(index.nlist, -(-probes * len(mask) // left))
        bits = np.packbits(mask, bitorder="little")
        options["sel"] = faiss.IDSelectorBitmap(len(bits), faiss.swig_ptr(bits))
    wanted = min(max(_LEAST, _WIDER * k), len(matrix))
    parameters = faiss.SearchParametersIVF(**options)
    _, found = index.search(vector[None, :], wanted, params=parameters)
    rows = np.unique(found[0])
    rows = rows[(rows >= 0) & (rows < len(matrix))]
    return compare_rows(matrix, vector, rows, k)


def load_faiss() -> Any:
    """The library faiss: a second to load, so only where it is used.

    Its loader says at INFO which build of it suits the processor, in every process.
    """
    logging.getLogger("faiss.loader").setLevel(logging.WARNING)
    import faiss

    return faiss
