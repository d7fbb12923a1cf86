"""The rows whose vectors are nearest to one: compared with all, or found through an index."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kpyramid.embeddings.port import Matrix
from kpyramid.indexing.words import Mask, pick_best
from kpyramid.numerics.neighbours import load_faiss

_WIDER = 5
"""How many more rows than asked for the index gives; their exact cosines then decide."""
_LEAST = 64
_FEW = 20_000
"""Rows that a mask leaves up to which they are all compared: 30 MB of 384 dimensions, 10 ms."""


def rank_exactly(
    matrix: Matrix, vector: Matrix, k: int, mask: Mask | None = None
) -> list[tuple[int, float]]:
    """The k rows with the largest cosine: row, cosine; best first, equal ones by row."""
    if mask is None:
        return pick_best(matrix @ vector, np.arange(len(matrix)), k)
    return compare_rows(matrix, vector, np.flatnonzero(mask), k)


def compare_rows(
    matrix: Matrix, vector: Matrix, rows: npt.NDArray[np.intp], k: int
) -> list[tuple[int, float]]:
    """The k best of some rows, ascending, by their exact cosine."""
    return pick_best(matrix[rows] @ vector, rows, k)


def rank_nearly(
    index: Any, probes: int, matrix: Matrix, vector: Matrix, k: int, mask: Mask | None = None
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
