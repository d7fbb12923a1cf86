"""Clusters of vectors (IVF) for approximate nearest neighbours: writing and search.

Each vector is rounded to a byte per dimension, so that a million of 384 take 0.4 GB; candidates are
then compared by exact vectors. Centres are computed here and not by faiss, whose arithmetic is
several times slower on one thread.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from kpyramid.embeddings.port import Matrix
from kpyramid.numerics.arrays import Mask
from kpyramid.snapshot.search import Vectors, compare_rows, load_faiss, rank_exactly

_WIDER = 5
"""Factor of the rows requested from the index; their exact cosines then decide."""
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
    """How a table is searched: `probes` of its `lists`.

    `recall_at_10`: share of the ten exactly nearest rows that are retrieved, over `asked` vectors,
    each the mean of three rows. A question lies between facts: among a million facts the recall was
    .976 for real questions, .966 for means of three rows, .996 of two, and .998 for rows.
    """

    lists: int
    probes: int
    recall_at_10: float
    asked: int


def write_clusters(path: Path, matrix: Matrix, least_recall: float, seed: int) -> Plan:
    """Writes the faiss index of some vectors; returns how to search it.

    `probes`: the fewest, growing by half, that reach the recall. Everything runs on one thread and
    draws from `seed`, so that the bytes do not depend on the machine's cores.
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
        index.add_core(len(block), *map(faiss.swig_ptr, (block, ids, nearest)))
    return index


def _find_centres(sample: Matrix, lists: int, chance: np.random.Generator) -> Matrix:
    """Spherical k-means (Dhillon and Modha 2001); an empty list takes a vector drawn anew."""
    centres = sample[np.sort(chance.choice(len(sample), lists, replace=False))].copy()
    for _ in range(_ROUNDS):
        nearest = np.concatenate(
            [_assign(sample[i : i + _BLOCK], centres) for i in range(0, len(sample), _BLOCK)]
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
        nearly = [rank_nearly(index, probes, matrix, q, _NEAREST) for q in questions]
        shared = sum(
            len(known & {row for row, _ in near}) for known, near in zip(exact, nearly, strict=True)
        )
        recall = shared / max(1, sum(map(len, exact)))
        if recall >= least_recall or probes == index.nlist:
            return Plan(index.nlist, probes, round(recall, 4), len(questions))
        probes = min(probes + probes // 2, index.nlist)


def rank_nearly(
    index: Any, probes: int, matrix: Vectors, vector: Matrix, k: int, mask: Mask | None = None
) -> list[tuple[int, float]]:
    """An approximation of `rank_exactly` that searches `probes` lists of a faiss index.

    The index ranks by rounded vectors; exact cosines then rank its candidates. If a mask leaves few
    rows, all are compared; if it leaves a part, more lists are searched.
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
    _, candidates = index.search(vector[None, :], wanted, params=parameters)
    rows = np.unique(candidates[0])
    rows = rows[(rows >= 0) & (rows < len(matrix))]
    return compare_rows(matrix, vector, rows, k)
