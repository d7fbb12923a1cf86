"""The nearest vectors: all compared up to a stated size, an index beyond it."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from kpyramid.embeddings.port import Matrix
from kpyramid.numerics.neighbours import load_faiss

Places = npt.NDArray[np.int64]
Cosines = npt.NDArray[np.float64]

_DECIMALS = 6
"""Digits of a cosine that do not depend on how a product is cut into blocks."""
_BLOCK = 2**25
"""Cosines that are held at a time: 128 MB."""
_TRAINING = 40
"""Points per list of the index from which its centres are made, as faiss advises."""
_ROUNDS = 10
"""Of k-means; 25, its default, costs more and finds no more."""
_PROBED = 0.08
"""Share of the lists that a search looks into: recall .98 and more of the exact ten nearest."""


def find_nearest(
    queries: Matrix, points: Matrix, k: int, least: float, *, exact_up_to: int
) -> Iterator[tuple[Places, Cosines]]:
    """Per query the at most k points of cosine `least` and more: best first, ties by place.

    `queries` (q, d) and `points` (n, d) have rows of unit length. Up to q * n = `exact_up_to`
    all pairs are compared; beyond, an inverted file (faiss) is searched, which is near exact.
    """
    k = min(k, len(points))
    if not k:
        nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
        yield from [nothing] * len(queries)
    elif len(queries) * len(points) <= exact_up_to:
        yield from _compare_all(queries, points, k, least)
    else:
        yield from _search_index(queries, points, k, least)


def _compare_all(
    queries: Matrix, points: Matrix, k: int, least: float
) -> Iterator[tuple[Places, Cosines]]:
    size = max(1, _BLOCK // len(points))
    for start in range(0, len(queries), size):
        for row in queries[start : start + size] @ points.T:
            lowest = max(float(np.partition(row, len(row) - k)[len(row) - k]), least)
            near = np.flatnonzero(row >= lowest - 10.0**-_DECIMALS)
            yield _order(near, row[near], k, least)


def _search_index(
    queries: Matrix, points: Matrix, k: int, least: float
) -> Iterator[tuple[Places, Cosines]]:
    faiss = load_faiss()
    count, size = points.shape
    lists = max(1, min(int(np.sqrt(count)), count // _TRAINING))
    centres = faiss.IndexFlatIP(size)
    index = faiss.IndexIVFFlat(centres, size, lists, faiss.METRIC_INNER_PRODUCT)
    index.cp.niter = _ROUNDS
    index.train(points[:: max(1, count // (lists * _TRAINING))])
    index.add(points)
    index.nprobe = max(1, int(np.ceil(lists * _PROBED)))
    cosines, places = index.search(queries, k)
    for found, row in zip(places, cosines, strict=True):
        near = found >= 0
        yield _order(found[near], row[near], k, least)


def _order(
    places: npt.NDArray[np.integer], cosines: Matrix, k: int, least: float
) -> tuple[Places, Cosines]:
    rounded = np.round(cosines.astype(np.float64), _DECIMALS)
    order = np.lexsort((places, -rounded))[:k]
    order = order[rounded[order] >= least]
    return places[order].astype(np.int64), np.asarray(rounded[order], dtype=np.float64)
