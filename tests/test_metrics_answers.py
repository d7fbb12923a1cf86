"""Metrics of answers in words, of layers and of confidence."""

import subprocess
import sys
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.evaluation.metrics import (
    METRICS,
    Response,
    names_value,
    score_right,
    score_wrong_confident,
    state_same,
)
from kpyramid.evaluation.questions import EvalQuestion
from tests.rows import read_rows

TEXTS = st.text(max_size=40)
NAMES = TEXTS.filter(lambda text: bool(text.strip()))


def ask(*names: str, entities: tuple[str, ...] = ()) -> EvalQuestion:
    """A question whose one right answer has these spellings."""
    return EvalQuestion("q", "Who?", "open", (names,), entities=entities)


def score(name: str, question: EvalQuestion, text: str, *choices: str) -> float | None:
    return METRICS[name].measure(question, Response(text, choices))


def average(name: str, pairs: list[tuple[EvalQuestion, Response]]) -> float:
    scores = [METRICS[name].measure(question, response) for question, response in pairs]
    return fmean(score for score in scores if score is not None)


def test_mean_of_squad_scores_is_that_of_the_published_example() -> None:
    # From the description of the measure "squad" in the library `evaluate`: 66.67 and 66.67.
    pairs = [
        (ask("1976"), Response("1976")),
        (ask("Beyoncé and Bruno Mars"), Response("Beyonce")),
        (ask("climate change"), Response("climate change")),
    ]
    for name in ("exact_match", "token_f1"):
        assert average(name, pairs) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("said", "gold", "exact", "f1"),
    read_rows("metrics_answers.answers_score_as_computed_by_hand"),
)
def test_answers_score_as_computed_by_hand(said: str, gold: str, exact: float, f1: float) -> None:
    assert score("exact_match", ask(gold), said) == exact
    assert score("token_f1", ask(gold), said) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("gold", "said", "same"),
    read_rows("metrics_answers.a_date_or_number_is_right_in_any_notation"),
)
def test_a_date_or_number_is_right_in_any_notation(gold: str, said: str, same: bool) -> None:
    response = Response(said, (said,), confidence=0.9)
    found = {name: METRICS[name].measure(ask(gold), response) for name in
             ("exact_match", "hit_rate", "right", "wrong_confident")}  # fmt: skip
    assert found["exact_match"] == float(same)
    if same or not names_value(said, gold):
        assert found["right"] == found["hit_rate"] == float(same)
        assert found["wrong_confident"] == float(not same)


def test_best_spelling_and_best_value_count() -> None:
    question = EvalQuestion("q", "Who?", "open", (("Sigma", "the letter S"), ("Tau",)))
    assert score("token_f1", question, "letter") == pytest.approx(2 / 3)
    assert score("exact_match", question, "a tau") == 1.0


@given(TEXTS, NAMES)
def test_scores_of_any_text_are_bounded_and_ordered(said: str, gold: str) -> None:
    question = ask(gold)
    exact, f1 = score("exact_match", question, said), score("token_f1", question, said)
    assert exact is not None and f1 is not None
    assert 0 <= f1 <= 1 + 1e-12
    assert 0 <= exact <= f1 or state_same(gold, said)  # 1.0 is 1, and they share no word
    assert exact <= (score("hits_at_1", question, said) or 0)


def test_name_counts_as_whole_words_only() -> None:
    assert names_value("He painted Mona Lisa.", "mona lisa")
    assert not names_value("The party began.", "art")
    assert not names_value("Mona and Lisa", "Mona Lisa")
    assert names_value("首都は東京です。", "東京")
    assert not names_value("", "art")


def test_first_value_must_hit() -> None:
    question = ask("Niels Bohr", "Bohr")
    assert score("hits_at_1", question, "It was Bohr who said it.") == 1.0
    assert score("hits_at_1", question, "Einstein; Bohr", "Einstein", "Bohr") == 0.0
    assert score("hits_at_1", question, "") == 0.0


def test_hit_rate_is_the_share_of_entities_named() -> None:
    question = ask("x", entities=("Einstein", "Bohr", "Max Planck", "Curie"))
    assert score("hit_rate", question, "Bohr met Planck", "Einstein") == 0.5
    assert score("hit_rate", question, "") == 0.0


def test_without_entities_the_hit_rate_is_of_gold_values() -> None:
    question = EvalQuestion("q", "Who?", "open", (("Einstein", "Albert"), ("Bohr",)))
    assert score("hit_rate", question, "albert") == 0.5


def test_name_does_not_run_from_one_value_into_the_next() -> None:
    question = ask("x", entities=("New York",))
    assert score("hit_rate", question, "", "New", "York") == 0.0


def test_explanation_is_neither_right_nor_wrong() -> None:
    question = ask("one two three four five six seven eight nine ten eleven")
    assert score_right(question, Response("something")) is None
    assert score("wrong_confident", question, "something") is None
    assert score("right", ask("ten"), "it is ten") == 1.0


def test_wrong_and_confident_are_those_at_the_level_or_above() -> None:
    question = ask("Bohr")
    for text, confidence, expected in (
        ("Planck", 0.5, 1.0),
        ("Planck", 0.49, 0.0),
        ("Bohr", 0.9, 0.0),
        ("", 0.9, 0.0),
    ):
        response = Response(text, confidence=confidence)
        assert METRICS["wrong_confident"].measure(question, response) == expected
    assert score_wrong_confident(question, Response("Planck", confidence=0.6), 0.7) == 0.0


def test_layer_shares_and_silence_add_up_to_one() -> None:
    layers = ("ontology", "graph", "text", "model")
    answers = [Response("x", layer=layer) for layer in layers] + [Response("", layer="text")]
    pairs = [(ask("x"), answer) for answer in answers]
    assert [average(f"layer_{layer}", pairs) for layer in layers] == [0.2] * 4
    assert average("answered", pairs) == 0.8


def test_every_measure_scores_silence_with_zero_or_none_and_says_what_it_is() -> None:
    questions = [
        ask("x", entities=("y",)),
        EvalQuestion("q", "Which?", "choice", (("A",),), candidates=("A", "B")),
        EvalQuestion("q", "Does it?", "yesno", (("no",),)),
        EvalQuestion("q", "Which?", "values", (("A",), ("B",))),
        EvalQuestion("q", "What of it?", "retrieval", gold_documents=("1",)),
    ]
    for name, metric in METRICS.items():
        assert metric.name == name and metric.about
        scores = [metric.measure(question, Response()) for question in questions]
        assert {score for score in scores if score is not None} <= {0.0}
        assert any(metric.applies(question) for question in questions)


def test_nothing_heavy_is_loaded_before_a_measure_needs_it() -> None:
    code = (
        "import sys, kpyramid.evaluation.metrics, kpyramid.evaluation.harness\n"
        "heavy = {'sacrebleu', 'rouge_score', 'nltk', 'sklearn', 'scipy', 'onnxruntime', 'spacy'}\n"
        "sys.exit(', '.join(heavy & sys.modules.keys()) or None)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
