"""Chunks in the order in which they are read, so that one is seen with what stands around it."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kpyramid.embeddings.port import Matrix
from kpyramid.indexing.mapped import MappedRows
from kpyramid.indexing.words import Mask

Rows = npt.NDArray[Any]

REACH = 2
"""Chunks on either side that count as a chunk's surroundings."""
OWN, AROUND, FIRST = 0.4, 0.4, 0.2
"""What a chunk, its surroundings, and the beginning of its document count for in its vector."""


class ReadingOrder:
    """The rows of the table of chunks by document and place."""

    def __init__(self, chunks: MappedRows) -> None:
        starts = chunks.numbers("start")
        self._lengths = (chunks.numbers("end") - starts).astype(np.float32)
        self.documents: Rows = chunks.numbers("document")
        self._matrix: Matrix = chunks.numbers("vector")
        self._rows = np.lexsort((starts, self.documents))
        self._places = np.empty(len(self._rows), np.int64)
        self._places[self._rows] = np.arange(len(self._rows))
        self._sorted = self.documents[self._rows]

    def place_vectors(self, rows: Rows, seen: Mask | None = None) -> Matrix:
        """The vectors of some chunks in their places, shape (rows, d): not of unit length.

        The sum of the chunk's own, of the mean over the chunks within `REACH`, and of that of its
        document's first, each of unit length and with its share, so that the product with a
        question is a mean of cosines. A chunk that is not `seen` has no part in the others'.
        """
        matrix = self._matrix
        own = np.asarray(matrix[rows])
        places = self._places[rows, None] + np.arange(-REACH, REACH + 1)
        inside = (places >= 0) & (places < len(self._rows))
        near = self._rows[np.where(inside, places, 0)]
        inside &= self.documents[near] == self.documents[rows, None]
        firsts = self._rows[np.searchsorted(self._sorted, self.documents[rows])]
        if seen is not None:
            inside &= seen[near]
            firsts = np.where(seen[firsts], firsts, rows)
        shares = np.where(inside, self._lengths[near], 0)
        shares[:, REACH] = np.maximum(shares[:, REACH], 1)
        around = (shares[:, None, :] @ matrix[near])[:, 0]
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        placed = OWN * own + AROUND * around + FIRST * matrix[firsts]
        return np.asarray(placed, dtype=np.float32)
