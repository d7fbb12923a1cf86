"""Likeness in meaning: hand-computed on planted vectors, and sensible on the model's."""

from functools import cache

import numpy as np
import pytest

from kpyramid.embeddings.port import Matrix
from kpyramid.evaluation.harness import open_measures
from kpyramid.evaluation.metrics import (
    METRICS,
    OnnxTokenEncoder,
    Response,
    build_bert_score,
    build_similarity,
    match_tokens,
)
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.settings import EmbedSettings
from kpyramid.storage.identity import identify_embedding

PLANTED = {"east": (1.0, 0.0), "north": (0.0, 1.0), "northeast": (0.6, 0.8), "west": (-1.0, 0.0)}


class Planted:
    """Each word has the vector of its direction; a text the mean of its words."""

    name = "planted"

    def encode_tokens(self, text: str) -> Matrix:
        return np.array([PLANTED[word] for word in text.split()], np.float32).reshape(-1, 2)

    def embed(self, texts: list[str]) -> Matrix:
        means = [self.encode_tokens(text).mean(axis=0) for text in texts]
        return np.stack([mean / np.linalg.norm(mean) for mean in means])


def ask(*references: str) -> EvalQuestion:
    return EvalQuestion("q", "Where?", "open", (references,))


@cache
def open_encoder() -> OnnxTokenEncoder:
    files = identify_embedding(EmbedSettings()).files
    return OnnxTokenEncoder("all-MiniLM-L6-v2", files["model.onnx"], files["tokenizer.json"])


def score_bert(text: str, *references: str) -> tuple[float | None, ...]:
    metrics = build_bert_score(open_encoder())
    return tuple(metric.measure(ask(*references), Response(text)) for metric in metrics)


def test_tokens_are_matched_greedily_as_computed_by_hand() -> None:
    # Answer: east, northeast. Reference: north. Precision (0 + .8) / 2, recall .8.
    encoder = Planted()
    found = match_tokens(encoder.encode_tokens("east northeast"), encoder.encode_tokens("north"))
    assert found == pytest.approx((0.4, 0.8, 2 * 0.4 * 0.8 / 1.2))


def test_two_tokens_may_match_the_same_one() -> None:
    encoder = Planted()
    found = match_tokens(encoder.encode_tokens("east east"), encoder.encode_tokens("east north"))
    assert found == pytest.approx((1.0, 0.5, 2 / 3))


def test_opposite_meaning_has_an_f1_of_nothing_and_not_of_a_division_by_nothing() -> None:
    encoder = Planted()
    east, west, none = map(encoder.encode_tokens, ("east", "west", ""))
    assert match_tokens(east, west) == (-1.0, -1.0, 0.0)
    assert match_tokens(none, west) == match_tokens(east, none) == (0.0, 0.0, 0.0)


def test_reference_with_the_best_f1_gives_all_three() -> None:
    metrics = build_bert_score(Planted())
    question = ask("west", "east north", "north northeast")
    found = [metric.measure(question, Response("north")) for metric in metrics]
    assert found == pytest.approx([1.0, 0.9, 2 * 0.9 / 1.9])


def test_similarity_is_the_cosine_with_the_nearest_reference() -> None:
    metric = build_similarity(Planted())
    assert metric.measure(ask("west", "northeast"), Response("east")) == pytest.approx(0.6)
    assert metric.measure(ask("west"), Response("east")) == pytest.approx(-1.0)
    assert metric.measure(ask("west"), Response(" ")) == 0.0
    assert metric.measure(ask("east"), Response(choices=("east",))) == pytest.approx(1.0)


def test_measures_name_their_model_and_stand_beside_the_others() -> None:
    metrics = (build_similarity(Planted()), *build_bert_score(Planted()))
    assert all("planted" in metric.about for metric in metrics)
    names = [metric.name for metric in metrics]
    assert names == ["similarity", "bert_precision", "bert_recall", "bert_f1"]
    assert set(open_measures()) == {*METRICS, *names}


def test_tokens_of_the_model_average_to_its_sentence_but_for_the_marks() -> None:
    text = "Niels Bohr was born in Copenhagen."
    tokens = open_encoder().encode_tokens(text)
    assert np.linalg.norm(tokens, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert open_encoder().encode_tokens("").shape[0] == 0
    mean = tokens.mean(axis=0)
    cosine = float(mean @ open_encoder().embed([text])[0] / np.linalg.norm(mean))
    assert cosine > 0.95


def test_same_text_has_a_bert_score_of_one_and_a_paraphrase_more_than_a_stranger() -> None:
    reference = "The company was founded in Berlin by two engineers."
    same = score_bert(reference, reference)
    assert same == pytest.approx((1.0, 1.0, 1.0), abs=1e-5)
    near = score_bert("Two engineers started the firm in Berlin.", reference)
    far = score_bert("Bananas are rich in potassium.", reference)
    assert near[2] is not None and far[2] is not None
    assert same[2] > near[2] > far[2] + 0.2  # type: ignore[operator]


def test_precision_and_recall_change_places_with_answer_and_reference() -> None:
    one, other = "He was born in Copenhagen in 1885.", "Copenhagen"
    forth, back = score_bert(one, other), score_bert(other, one)
    assert (forth[0], forth[1], forth[2]) == pytest.approx((back[1], back[0], back[2]))


@pytest.mark.parametrize("text", ["", "   ", "\u0301", "😀", "東京", "a" * 5000, "word " * 600])
def test_any_text_has_a_bounded_score(text: str) -> None:
    for value in score_bert(text, "The cat sat on the mat."):
        assert value is not None and -1 <= value <= 1
    similarity = build_similarity(open_encoder())
    assert -1.001 <= (similarity.measure(ask("The cat"), Response(text)) or 0) <= 1.001
