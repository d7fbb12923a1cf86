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


_PIECES_TOGETHER = 512
"""Word pieces that go through the model at once: more are no faster."""


class OnnxModel:
    """A model with its tokenizer, which reads at most `most_pieces` of a text or a pair.

    One session thread: a pure function may not depend on the number of cores.

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

    def encode(self, text: str, pair: str | None = None) -> "Encoding":
        """The word pieces of a text or a pair."""
        return self._tokenizer.encode(text, pair)

    def run(self, encoded: Sequence["Encoding"]) -> Any:
        """The first output, a row for each text or pair; all have equal numbers of word pieces."""
        feed = {
            "input_ids": [item.ids for item in encoded],
            "attention_mask": [item.attention_mask for item in encoded],
            "token_type_ids": [item.type_ids for item in encoded],
        }
        taken = {k: np.array(v, np.int64) for k, v in feed.items() if k in self._inputs}
        return self._session.run(None, taken)[0]


class OnnxEmbedder:
    """A BERT-like encoder such as all-MiniLM-L6-v2 (384 dimensions).

    `prefix` is put before each text, such as "query: ". Texts with equal numbers of word pieces are
    encoded together, without padding, if the first such batch gives the same bytes as its texts one
    by one: a model that scales its activations over the batch does not, and reads each text alone.
    """

    def __init__(self, name: str, model: Path, tokenizer: Path, prefix: str = "") -> None:
        self.name = name
        self._prefix = prefix
        self._takes_several: bool | None = None
        try:
            self._model = OnnxModel(model, tokenizer, MAX_WORD_PIECES)
        except SettingsError as e:
            raise SettingsError(f"embedding model {model} cannot be loaded: {e}") from e

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`."""
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        encoded = [self._model.encode(self._prefix + text) for text in texts]
        lengths = [len(item.ids) for item in encoded]
        rows: dict[int, Matrix] = {}
        for length in sorted({*lengths}):
            group = [place for place, pieces in enumerate(lengths) if pieces == length]
            most = max(1, _PIECES_TOGETHER // length)
            for part in (group[first : first + most] for first in range(0, len(group), most)):
                rows.update(zip(part, self._run([encoded[row] for row in part]), strict=True))
        return np.stack([rows[place] for place in range(len(texts))])

    def _run(self, encoded: Sequence["Encoding"]) -> list[Matrix]:
        """The vectors of texts of one length."""
        if self._takes_several or len(encoded) == 1:
            return [_average(tokens) for tokens in self._model.run(encoded)]
        alone = [self._model.run([item])[0] for item in encoded]
        if self._takes_several is None:
            self._takes_several = np.array_equal(self._model.run(encoded), alone)
        return [_average(tokens) for tokens in alone]


def _average(tokens: Matrix) -> Matrix:
    """The mean of the token vectors, shape (pieces, size), of length 1."""
    mean = tokens.astype(np.float64).mean(axis=0)
    return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)
