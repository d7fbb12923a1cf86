"""Sentence embeddings by an INSTRUCTOR model, through the loader of sentence-transformers."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import numpy as np

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import IntegrityError, SettingsError


class InstructorEmbedder:
    """An INSTRUCTOR model: the encoder reads the instruction, the mean excludes its tokens.

    Texts go through one at a time, on one thread each: in a batch a vector would depend on the
    padding that its neighbours need, and on several threads on how many there are. torch is set to
    one thread for the whole process; threads may share the embedder.
    """

    def __init__(self, name: str, folder: Path, instruction: str) -> None:
        try:
            import torch
            from sentence_transformers import SentenceTransformer
        except ImportError as e:
            raise SettingsError(
                f"embed.provider 'instructor' cannot be loaded ({e}); "
                "run `pip install 'kpyramid[instructor]'`"
            ) from e
        self.name = name
        self._instruction = instruction
        import_module("transformers.utils.logging").disable_progress_bar()
        torch.set_num_threads(1)
        try:
            self._model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
            # Published folders do not state it, and the library includes the instruction in the
            # mean by default: other vectors, without a warning.
            self._model.set_pooling_include_prompt(False)
            self._model.eval()
            # The tokenizer is set up by its first use, which no two threads may do at once.
            self._encode("a")
        except Exception as e:  # the loader raises whatever its parts do on a bad file
            raise SettingsError(f"embedding model {folder} cannot be loaded: {e}") from e

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([self._encode(text) for text in texts])

    def _encode(self, text: str) -> Matrix:
        rows = self._model.encode(
            [text], prompt=self._instruction, batch_size=1, show_progress_bar=False
        )
        vector = rows[0].astype(np.float64)
        length = np.linalg.norm(vector)
        if not 0 < length < np.inf:
            raise IntegrityError(
                f"embedding model {self.name} makes no vector of {text[:40]!r}: its weights are "
                "damaged; get its files again"
            )
        return np.asarray(vector / length, dtype=np.float32)
