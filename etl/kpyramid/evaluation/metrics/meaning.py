"""Measures of likeness in meaning, by an embedding model that runs here."""

from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np

from kpyramid.embeddings.onnx import OnnxEmbedder
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.evaluation.metrics.types import Metric, Response
from kpyramid.evaluation.metrics.words import is_open, list_references, word_answer
from kpyramid.evaluation.questions import EvalQuestion

_KEPT = 4096
"""Texts whose vectors are kept: the gold answers of a set, which every arm is compared with."""


class TokenEncoder(Protocol):
    """A pure function from a text to the vectors of its tokens in their context."""

    name: str

    def encode_tokens(self, text: str) -> Matrix:
        """One row of length 1 per word piece, shape (pieces, size), float32."""
        ...


class OnnxTokenEncoder(OnnxEmbedder):
    """The last hidden states of the model that `OnnxEmbedder` averages.

    The marks of beginning and end are left out, as bert-score gives them no weight; of a text of
    more than 256 word pieces the rest is not seen.
    """

    def __init__(self, name: str, model: Path, tokenizer: Path) -> None:
        super().__init__(name, model, tokenizer)

    def encode_tokens(self, text: str) -> Matrix:
        """See `TokenEncoder.encode_tokens`."""
        encoding = self._tokenizer.encode(text)
        ids = np.array([encoding.ids], dtype=np.int64)
        feed = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }
        output = self._session.run(None, {k: v for k, v in feed.items() if k in self._inputs})
        inner = np.flatnonzero(np.array(encoding.special_tokens_mask) == 0)
        rows = output[0][0][inner].astype(np.float64)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def match_tokens(answer: Matrix, reference: Matrix) -> tuple[float, float, float]:
    """BERTScore's precision, recall and F1 of token vectors of length 1.

    Zhang et al., "BERTScore: Evaluating Text Generation with BERT", ICLR 2020, §3: each token is
    matched with the most similar of the other text; recall averages over the reference's tokens,
    precision over the answer's. No weights by rarity, no rescaling. All 0 when either is empty.
    """
    if not len(answer) or not len(reference):
        return 0.0, 0.0, 0.0
    cosines = np.clip(answer.astype(np.float64) @ reference.astype(np.float64).T, -1.0, 1.0)
    precision, recall = float(cosines.max(axis=1).mean()), float(cosines.max(axis=0).mean())
    total = precision + recall
    return precision, recall, 2 * precision * recall / total if total > 0 else 0.0


def build_similarity(embedder: Embedder) -> Metric:
    """The cosine of answer and gold answer, the best over the references.

    PolyRAG's "BERT similarity, calculated based on MiniLM embeddings" (§V-B), by the embedder
    given. 0 without an answer.
    """

    @lru_cache(maxsize=_KEPT)
    def embed(text: str) -> Matrix:
        return np.asarray(embedder.embed([text])[0])

    def score(question: EvalQuestion, response: Response) -> float:
        answer = word_answer(response)
        if not answer.strip():
            return 0.0
        said = embed(answer)
        best = max(float(said @ embed(name)) for name in list_references(question))
        return min(max(best, -1.0), 1.0)  # unit lengths are rounded

    return Metric("similarity", f"cosine of answer and gold by {embedder.name}", is_open, score)


def build_bert_score(encoder: TokenEncoder) -> tuple[Metric, Metric, Metric]:
    """BERTScore's precision, recall and F1 against the reference with the best F1.

    The model is the encoder given and stands in `about`; published figures are by other models
    (RoK names none, WTS takes bert-base-uncased), so they are not comparable. 0 without an answer.
    """

    @lru_cache(maxsize=_KEPT)
    def encode(text: str) -> Matrix:
        return encoder.encode_tokens(text)

    @lru_cache(maxsize=_KEPT)
    def compare(text: str, references: tuple[str, ...]) -> tuple[float, float, float]:
        if not text.strip():
            return 0.0, 0.0, 0.0
        scores = [match_tokens(encode(text), encode(name)) for name in references]
        return max(scores, key=lambda score: score[2])

    def build(at: int, name: str) -> Metric:
        def score(question: EvalQuestion, response: Response) -> float:
            return compare(word_answer(response), tuple(list_references(question)))[at]

        about = f"{name} of matched token vectors by {encoder.name}"
        return Metric(f"bert_{name}", about, is_open, score)

    return build(0, "precision"), build(1, "recall"), build(2, "f1")
