"""The embedding port: phrases in, one finite row of 32-bit floats per phrase out."""

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from kpyramid.errors import InputError

# The port of all embedding models.

Matrix: TypeAlias = npt.NDArray[np.float32]


class Embedder(Protocol):
    """A pure function from a text to a vector of unit length."""

    name: str

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row per text, shape (len(texts), size), float32, each of length 1.

        A row depends on its own text alone, never on its neighbours in the call.
        """
        ...


# Vectors that can be compared.

_LARGE = 1 << 26
"""Bytes from which vectors lie in a file: memory then holds the part that is in use."""


def allocate_matrix(rows: int, size: int, scratch: Path | None) -> Matrix:
    """Room for vectors, shape (rows, size); a large one in a nameless file of folder `scratch`.

    Raises:
        OSError: the disk is full.
    """
    if scratch is None or rows * size * 4 < _LARGE:
        return np.empty((rows, size), dtype=np.float32)
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=scratch) as file:
        file.truncate(rows * size * 4)
        if sys.platform == "linux":  # else a full disk kills the process that writes
            os.posix_fallocate(file.fileno(), 0, rows * size * 4)
        return np.memmap(file, dtype=np.float32, mode="r+", shape=(rows, size)).view(np.ndarray)


def embed_finite(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """The texts' vectors, shape (n, d).

    Raises:
        InputError: one holds what is no number; names its text.
    """
    vectors = embedder.embed(texts)
    if not len(vectors):
        return vectors
    wrong = np.flatnonzero(~np.isfinite(vectors.sum(axis=1)))
    if len(wrong):
        raise InputError(
            f"model {embedder.name}: {len(wrong)} of {len(texts)} vectors hold what is no number, "
            f"the first that of {texts[wrong[0]]!r}; check the model in [embed]"
        )
    return vectors
