"""BLEU and ROUGE against the libraries' own, the papers' and hand-computed examples."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpyramid.evaluation.metrics import (
    METRICS,
    Response,
    score_bleu,
    score_rouge,
)
from kpyramid.evaluation.questions import EvalQuestion


def ask(*references: str) -> EvalQuestion:
    return EvalQuestion("q", "What?", "open", (references,))


def score(name: str, question: EvalQuestion, text: str, *context: str) -> float | None:
    return METRICS[name].measure(question, Response(text, context=context))


def test_short_right_answer_has_the_bleu_of_the_runs_it_can_have() -> None:
    for name in ("bleu_2", "bleu_4", "rouge_r"):
        assert score(name, ask("Paris"), "Paris") == pytest.approx(1.0)


def test_chinese_is_compared_by_characters() -> None:
    assert score("bleu_2", ask("今天天气很好"), "今天天气不好") == pytest.approx(
        math.sqrt(5 / 6 * 3 / 5)
    )
    assert score("rouge_r", ask("今天天气很好"), "今天天气不好") == pytest.approx(5 / 6)


def test_empty_answer_scores_nothing() -> None:
    for name in ("bleu_2", "bleu_4", "rouge_r"):
        assert score(name, ask("the cat is here"), "  ") == 0.0


def test_values_stand_in_for_an_answer_without_text() -> None:
    found = METRICS["rouge_r"].measure(ask("Bohr and Planck"), Response(choices=("Bohr", "Planck")))
    assert found == pytest.approx(2 / 3)


def test_best_reference_counts() -> None:
    assert score("rouge_r", ask("one two", "three four five"), "five three four") == 1.0
    assert score("bleu_2", ask("one two", "three four five"), "three four five") == pytest.approx(1)


WORDS = st.lists(st.sampled_from("ab cd ef gh Ü ß 東 . !".split()), max_size=12).map(" ".join)


@settings(max_examples=60)
@given(WORDS, WORDS.filter(bool))
def test_scores_of_any_text_are_bounded(said: str, reference: str) -> None:
    for order in (2, 4):
        assert 0 <= score_bleu(said, [reference], order) <= 1
    assert 0 <= score_rouge(said, reference) <= 1
