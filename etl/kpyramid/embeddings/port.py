"""The embedding port: phrases in, one finite row of 32-bit floats per phrase out."""

from collections.abc import Sequence
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


def embed_finite(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """The texts' vectors, shape (n, d).

    Raises:
        InputError: a vector is not finite; names its text.
    """
    vectors = embedder.embed(texts)
    wrong = np.flatnonzero(~np.isfinite(vectors.sum(axis=1)))
    if len(wrong):
        raise InputError(
            f"model {embedder.name}: {len(wrong)} of {len(texts)} vectors hold what is no number, "
            f"the first that of {texts[wrong[0]]!r}; check the model in [embed]"
        )
    return vectors
