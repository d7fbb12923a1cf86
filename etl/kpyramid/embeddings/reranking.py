"""The port of rerankers: how well a text goes with a query, both read together."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import SettingsError

MAX_WORD_PIECES = 512


class Reranker(Protocol):
    """A pure function from a query and a text to a score, higher is better."""

    name: str

    def score(self, queries: Sequence[str], texts: Sequence[str]) -> Matrix:
        """Shape (len(texts), len(queries)), float32; each score depends on its pair alone."""
        ...


class CosineReranker:
    """Cosines of an embedding model's vectors: what there is without a cross-encoder."""

    name = "cosines"

    def __init__(self, embed: Callable[[Sequence[str]], Matrix]) -> None:
        self._embed = embed

    def score(self, queries: Sequence[str], texts: Sequence[str]) -> Matrix:
        """See `Reranker.score`."""
        if not queries or not texts:
            return np.zeros((len(texts), len(queries)), np.float32)
        return np.asarray(self._embed(texts) @ self._embed(queries).T, dtype=np.float32)


class CrossEncoder:
    """A cross-encoder exported to ONNX, such as bge-reranker or ms-marco-MiniLM.

    `folder` holds `model.onnx` and `tokenizer.json`. Its one logit, or of two the difference, goes
    through a sigmoid. Pairs go through one at a time in one thread, as in `OnnxEmbedder`.
    """

    def __init__(self, folder: Path) -> None:
        from onnxruntime import InferenceSession, SessionOptions
        from tokenizers import Tokenizer

        self.name = folder.name
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        model, tokenizer = folder / "model.onnx", folder / "tokenizer.json"
        read = model
        try:
            providers = ["CPUExecutionProvider"]
            self._session = InferenceSession(str(model), options, providers=providers)
            read = tokenizer
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
        except Exception as e:  # both libraries raise bare Exception on a bad file
            fault = "cannot be read as what it is named" if read.is_file() else "is not there"
            raise SettingsError(
                f"rerank = {folder}: {read.name} {fault}; name a folder with model.onnx and "
                "tokenizer.json of a cross-encoder, or leave `rerank` out: cosines stand for it"
            ) from e
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_WORD_PIECES)
        self._inputs = {node.name for node in self._session.get_inputs()}

    def score(self, queries: Sequence[str], texts: Sequence[str]) -> Matrix:
        """See `Reranker.score`."""
        rows = [[self._score_pair(query, text) for query in queries] for text in texts]
        return np.array(rows, np.float32).reshape(len(texts), len(queries))

    def _score_pair(self, query: str, text: str) -> float:
        encoded = self._tokenizer.encode(query, text)
        feed = {
            "input_ids": np.array([encoded.ids], np.int64),
            "attention_mask": np.array([encoded.attention_mask], np.int64),
            "token_type_ids": np.array([encoded.type_ids], np.int64),
        }
        output = self._session.run(None, {k: v for k, v in feed.items() if k in self._inputs})
        logits = np.asarray(output[0], np.float64).ravel()
        logit = logits[-1] - logits[0] if len(logits) > 1 else logits[0]
        return float(1 / (1 + np.exp(-logit)))


@lru_cache(maxsize=1)
def open_cross_encoder(folder: Path) -> CrossEncoder:
    """The cross-encoder of a folder, loaded when first asked for: loading one takes seconds."""
    return CrossEncoder(folder)
