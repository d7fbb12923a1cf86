"""Vectors that can be compared."""

from collections.abc import Sequence

import numpy as np

from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.errors import InputError


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
