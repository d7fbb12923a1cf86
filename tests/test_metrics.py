"""Measures of answers: on planted ones as computed by hand, and what holds of any text."""

import subprocess
import sys
from collections.abc import Mapping
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kpyramid.evaluation.metrics import (
    METRICS,
    Response,
    names_value,
    rank_documents,
    read_verdict,
    score_bleu,
    score_rouge,
    state_same,
)
from kpyramid.evaluation.questions import EvalQuestion
from tests.rows import each_row

TEXTS = st.text(max_size=40)
NAMES = TEXTS.filter(lambda text: bool(text.strip()))
WORDS = st.lists(st.sampled_from("ab cd ef gh Ü ß 東 . !".split()), max_size=12).map(" ".join)


def ask(*names: str) -> EvalQuestion:
    """A question whose one right answer has these spellings."""
    return EvalQuestion("q", "Who?", "open", (names,))


def score(name: str, question: EvalQuestion, text: str) -> float | None:
    return METRICS[name].measure(question, Response(text))


@each_row("name, question, response, expected")
def test_a_measure_scores_as_computed_by_hand(
    name: str, question: Mapping[str, Any], response: Mapping[str, Any], expected: float | None
) -> None:
    """The first six are the published example of SQuAD's measures."""
    asked = EvalQuestion("q", "Which?", **{"kind": "open", **question})
    found = METRICS[name].measure(asked, Response(**response))
    assert found == (None if expected is None else pytest.approx(expected))


@each_row("said, gold, exact, f1")
def test_answers_score_as_computed_by_hand(said: str, gold: str, exact: float, f1: float) -> None:
    assert score("exact_match", ask(gold), said) == exact
    assert score("token_f1", ask(gold), said) == pytest.approx(f1)


@each_row("gold, said, same")
def test_a_date_or_number_is_right_in_any_notation(gold: str, said: str, same: bool) -> None:
    response = Response(said, (said,), confidence=0.9)
    found = {name: METRICS[name].measure(ask(gold), response) for name in
             ("exact_match", "hit_rate", "right", "wrong_confident")}  # fmt: skip
    assert found["exact_match"] == float(same)
    if same or not names_value(said, gold):
        assert found["right"] == found["hit_rate"] == float(same)
        assert found["wrong_confident"] == float(not same)


@each_row("chosen, precision, recall, f1, accuracy")
def test_chosen_options_score_as_computed_by_hand(
    chosen: str, precision: float, recall: float, f1: float, accuracy: float
) -> None:
    question = EvalQuestion("q", "Which?", "choice", (("A",), ("B",)), tuple("ABCDEFGH"))
    names = ("precision", "recall", "f1", "accuracy", "exact_match")
    found = [METRICS[name].measure(question, Response(choices=tuple(chosen))) for name in names]
    assert found == pytest.approx([precision, recall, f1, accuracy, accuracy])


@each_row("text, verdict")
def test_verdict_is_the_first_word(text: str, verdict: str | None) -> None:
    assert read_verdict(Response(text)) == verdict


@given(TEXTS, NAMES)
def test_scores_of_any_text_are_bounded_and_ordered(said: str, gold: str) -> None:
    question = ask(gold)
    exact, f1 = score("exact_match", question, said), score("token_f1", question, said)
    assert exact is not None and f1 is not None
    assert 0 <= f1 <= 1 + 1e-12
    assert 0 <= exact <= f1 or state_same(gold, said)  # 1.0 is 1, and they share no word
    assert exact <= (score("hits_at_1", question, said) or 0)


@settings(max_examples=60)
@given(WORDS, WORDS.filter(bool))
def test_overlap_of_any_text_is_bounded(said: str, reference: str) -> None:
    for order in (2, 4):
        assert 0 <= score_bleu(said, [reference], order) <= 1
    assert 0 <= score_rouge(said, reference) <= 1


def test_name_counts_as_whole_words_only() -> None:
    assert names_value("He painted Mona Lisa.", "mona lisa")
    assert not names_value("The party began.", "art")
    assert not names_value("Mona and Lisa", "Mona Lisa")
    assert names_value("首都は東京です。", "東京")
    assert not names_value("", "art")


def test_layer_shares_and_silence_add_up_to_one() -> None:
    layers = ("ontology", "graph", "text", "model")
    answers = [Response("x", layer=layer) for layer in layers] + [Response("", layer="text")]
    names = (*(f"layer_{layer}" for layer in layers), "answered")
    means = [fmean(METRICS[n].measure(ask("x"), a) or 0.0 for a in answers) for n in names]
    assert means == [0.2, 0.2, 0.2, 0.2, 0.8]


def test_source_is_known_by_what_stands_after_its_hash() -> None:
    documents = ("corpus.jsonl#7", "a#b.jsonl#x#1", "3", "corpus.jsonl#3")
    assert rank_documents(("3", "x#1", "7"), documents) == ["7", "x#1", "3"]
    assert rank_documents(("corpus.jsonl#7",), documents)[0] == "corpus.jsonl#7"
    assert rank_documents(("17",), documents) == list(documents)
    assert rank_documents(("a",), ("#", "a#", "##")) == ["#", "a#", "##"]


def test_every_measure_scores_silence_with_zero_or_none_and_says_what_it_is() -> None:
    questions = [
        EvalQuestion("q", "Who?", "open", (("x",),), entities=("y",)),
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
