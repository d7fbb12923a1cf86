"""The port of all embedding models."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float32]


class Embedder(Protocol):
    """A pure function from a text to a vector of unit length."""

    name: str

    def embed(self, texts: Sequence[str]) -> Matrix:
        """One row per text, shape (len(texts), size), float32, each of length 1.

        A row depends on its own text alone, never on its neighbours in the call.
        """
        ...
