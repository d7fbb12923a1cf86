"""Likeness in meaning: hand-computed on planted vectors, and bounded on the model's."""

from functools import cache

import numpy as np
import pytest

from kpyramid.embeddings.onnx import OnnxEmbedder
from kpyramid.embeddings.port import Matrix
from kpyramid.evaluation.metrics import build_similarity
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.query.types import Answer
from kpyramid.settings import EmbedSettings
from kpyramid.storage.identity import identify_embedding

PLANTED = {"east": (1.0, 0.0), "north": (0.0, 1.0), "northeast": (0.6, 0.8), "west": (-1.0, 0.0)}


class Planted:
    """Each word has the vector of its direction; a text the mean of its words."""

    name = "planted"

    def embed(self, texts: list[str]) -> Matrix:
        means = [np.mean([PLANTED[word] for word in text.split()], axis=0) for text in texts]
        return np.stack([mean / np.linalg.norm(mean) for mean in means]).astype(np.float32)


def ask(*references: str) -> EvalQuestion:
    return EvalQuestion("q", "Where?", "open", (references,))


@cache
def open_embedder() -> OnnxEmbedder:
    files = identify_embedding(EmbedSettings()).files
    return OnnxEmbedder("all-MiniLM-L6-v2", files["model.onnx"], files["tokenizer.json"])


def test_similarity_is_the_cosine_with_the_nearest_reference() -> None:
    metric = build_similarity(Planted())
    assert metric.measure(ask("west", "northeast"), Answer("east")) == pytest.approx(0.6)
    assert metric.measure(ask("west"), Answer("east")) == pytest.approx(-1.0)
    assert metric.measure(ask("west"), Answer(" ")) == 0.0
    assert metric.measure(ask("east"), Answer(choices=("east",))) == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["", "   ", "\u0301", "😀", "東京", "a" * 5000, "word " * 600])
def test_any_text_has_a_bounded_score(text: str) -> None:
    similarity = build_similarity(open_embedder())
    assert -1.001 <= (similarity.measure(ask("The cat"), Answer(text)) or 0) <= 1.001
