"""Rerankers: scores of a text for a query, both encoded together."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from kpyramid.embeddings.onnx import OnnxModel
from kpyramid.embeddings.port import Matrix
from kpyramid.errors import SettingsError

MAX_WORD_PIECES = 512


Scorer = Callable[[Sequence[str], Sequence[str]], Matrix]
"""A pure function from queries and texts to scores, shape (texts, queries), float32; higher is
better, and each depends on its pair alone."""


class CrossEncoder:
    """A cross-encoder exported to ONNX, such as bge-reranker or ms-marco-MiniLM.

    `folder` has `model.onnx` and `tokenizer.json`. The score is the sigmoid of its logit, or of the
    difference of its two logits.
    """

    def __init__(self, folder: Path) -> None:
        files = folder / "model.onnx", folder / "tokenizer.json"
        try:
            self._model = OnnxModel(*files, MAX_WORD_PIECES)
        except SettingsError as e:
            raise SettingsError(
                f"rerank = {folder}: {e}; name a folder with model.onnx and tokenizer.json of "
                "a cross-encoder, or leave `rerank` out: cosines stand for it"
            ) from e

    def score(self, queries: Sequence[str], texts: Sequence[str]) -> Matrix:
        """See `Scorer`."""
        rows = [[self._score_pair(query, text) for query in queries] for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), len(queries))

    def _score_pair(self, query: str, text: str) -> float:
        output = self._model.run([self._model.encode(query, text)])
        logits = np.asarray(output, np.float64).ravel()
        logit = logits[-1] - logits[0] if len(logits) > 1 else logits[0]
        return float(1 / (1 + np.exp(-logit)))


@lru_cache(maxsize=1)
def open_cross_encoder(folder: Path) -> CrossEncoder:
    """The cross-encoder of a folder, loaded on first use, which takes seconds."""
    return CrossEncoder(folder)
