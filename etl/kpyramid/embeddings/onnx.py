"""Sentence embeddings by onnxruntime: mean of the token vectors, then unit length."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import SettingsError

MAX_WORD_PIECES = 256


class OnnxEmbedder:
    """A BERT-like encoder exported to ONNX, such as all-MiniLM-L6-v2 (384 dimensions).

    Texts go through one at a time: an int8 model scales its activations over the whole batch,
    so that in a batch a vector would depend on its neighbours. One session thread, for the same
    reason: a pure function may not depend on the number of cores. `prefix` is put before each
    text, such as "query: ".
    """

    def __init__(self, name: str, model: Path, tokenizer: Path, prefix: str = "") -> None:
        from onnxruntime import InferenceSession, SessionOptions
        from tokenizers import Tokenizer

        self.name = name
        self._prefix = prefix
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        try:
            self._session = InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
        except Exception as e:  # both libraries raise bare Exception on a bad file
            raise SettingsError(f"embedding model {model} cannot be loaded: {e}") from e
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_WORD_PIECES)
        self._inputs = {node.name for node in self._session.get_inputs()}

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([self._embed_one(self._prefix + text) for text in texts])

    def _embed_one(self, text: str) -> Matrix:
        ids = np.array([self._tokenizer.encode(text).ids], dtype=np.int64)
        feed = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        output = self._session.run(None, {k: v for k, v in feed.items() if k in self._inputs})
        mean = output[0][0].astype(np.float64).mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)
