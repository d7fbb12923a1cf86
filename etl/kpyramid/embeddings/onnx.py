"""Models exported to ONNX, and sentence embeddings by them: mean of the token vectors."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import SettingsError

if TYPE_CHECKING:
    from tokenizers import Encoding

MAX_WORD_PIECES = 256


class OnnxModel:
    """A model with its tokenizer, which reads at most so many word pieces of a text or a pair.

    Texts go through one at a time: an int8 model scales its activations over the whole batch, so
    that in a batch a result would depend on its neighbours. One session thread, for the same
    reason: a pure function may not depend on the number of cores.

    Raises:
        SettingsError: a file is missing or bad; the message begins with its name.
    """

    def __init__(self, model: Path, tokenizer: Path, most_pieces: int) -> None:
        from onnxruntime import InferenceSession, SessionOptions
        from tokenizers import Tokenizer

        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        providers = ["CPUExecutionProvider"]
        path = model
        try:
            self._session = InferenceSession(str(model), options, providers=providers)
            path = tokenizer
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
        except Exception as e:  # both libraries raise bare Exception on a bad file
            fault = (
                f"cannot be read as what it is named ({e})" if path.is_file() else "is not there"
            )
            raise SettingsError(f"{path.name} {fault}") from e
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(most_pieces)
        self._inputs = {node.name for node in self._session.get_inputs()}

    def run(self, text: str, pair: str | None = None) -> tuple[Any, "Encoding"]:
        """The first output for a text or a pair, and the word pieces that it is of."""
        encoded = self._tokenizer.encode(text, pair)
        feed = {
            "input_ids": encoded.ids,
            "attention_mask": encoded.attention_mask,
            "token_type_ids": encoded.type_ids,
        }
        taken = {k: np.array([v], np.int64) for k, v in feed.items() if k in self._inputs}
        return self._session.run(None, taken)[0], encoded


class OnnxEmbedder:
    """A BERT-like encoder such as all-MiniLM-L6-v2 (384 dimensions).

    `prefix` is put before each text, such as "query: ".
    """

    def __init__(self, name: str, model: Path, tokenizer: Path, prefix: str = "") -> None:
        self.name = name
        self._prefix = prefix
        try:
            self._model = OnnxModel(model, tokenizer, MAX_WORD_PIECES)
        except SettingsError as e:
            raise SettingsError(f"embedding model {model} cannot be loaded: {e}") from e

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([self._embed_text(self._prefix + text) for text in texts])

    def _embed_text(self, text: str) -> Matrix:
        output, _ = self._model.run(text)
        mean = output[0].astype(np.float64).mean(axis=0)
        return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)
