"""The project's own embedding model for the measurements, each text embedded once.

Not a measurement itself: `make bench` leaves it out.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from kpyramid.embeddings.onnx import OnnxEmbedder
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.settings import EmbedSettings
from kpyramid.storage.identity import identify_embedding


class MemoEmbedder:
    """An embedder that keeps what it made; `known` has what was made before."""

    def __init__(self, embedder: Embedder, known: Mapping[str, Matrix]) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._known = dict(known)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`."""
        new = sorted(set(texts) - self._known.keys())
        if new:
            self._known.update(zip(new, self._embedder.embed(new), strict=True))
        rows = [self._known[text] for text in texts]
        return np.stack(rows) if rows else self._embedder.embed([])


def open_embedder(known: Mapping[str, Matrix] | None = None) -> MemoEmbedder:
    """The model of the default settings."""
    model = identify_embedding(EmbedSettings())
    files = model.files
    opened = OnnxEmbedder(model.name, files["model.onnx"], files["tokenizer.json"])
    return MemoEmbedder(opened, known or {})
