"""Measures of answers: on planted ones as computed by hand, and what holds of any text."""

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.evaluation.metrics import (
    METRICS,
    names_value,
    rank_documents,
    read_verdict,
    state_same,
)
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.evaluation.results import bootstrap, compare_paired, correct_holm
from kpyramid.query.types import Answer, Item
from kpyramid.snapshot.evidence import Evidence
from tests.rows import each_row

TEXTS = st.text(max_size=40)
NAMES = TEXTS.filter(lambda text: bool(text.strip()))
WORDS = st.lists(st.sampled_from("ab cd ef gh Ü ß 東 . !".split()), max_size=12).map(" ".join)


def ask(*names: str) -> EvalQuestion:
    """A question whose one right answer has these spellings."""
    return EvalQuestion("q", "Who?", "open", (names,))


def score(name: str, question: EvalQuestion, text: str) -> float | None:
    return METRICS[name].measure(question, Answer(text))


@each_row("name, question, response, expected")
def test_a_measure_scores_as_computed_by_hand(
    name: str, question: Mapping[str, Any], response: dict[str, Any], expected: float | None
) -> None:
    """The first six are the published example of SQuAD's measures."""
    asked = EvalQuestion("q", "Which?", **{"kind": "open", **question})
    sources, texts = response.pop("documents", ()), response.pop("context", ())
    places = tuple(Evidence("", "", 0, 0, "", source) for source in sources)
    items = [Item("", text, "text", 0.0, ()) for text in texts]
    context = (*items, Item("", "", "text", 0.0, places))
    found = METRICS[name].measure(asked, Answer(context=context, **response))
    assert found == (None if expected is None else pytest.approx(expected))


@each_row("said, gold, exact, f1")
def test_answers_score_as_computed_by_hand(said: str, gold: str, exact: float, f1: float) -> None:
    assert score("exact_match", ask(gold), said) == exact
    assert score("token_f1", ask(gold), said) == pytest.approx(f1)


@each_row("gold, said, same")
def test_a_date_or_number_is_right_in_any_notation(gold: str, said: str, same: bool) -> None:
    response = Answer(said, (said,), confidence=0.9)
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
    found = [METRICS[name].measure(question, Answer(choices=tuple(chosen))) for name in names]
    assert found == pytest.approx([precision, recall, f1, accuracy, accuracy])


@each_row("text, verdict")
def test_verdict_is_the_first_word(text: str, verdict: str | None) -> None:
    assert read_verdict(Answer(text)) == verdict


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


def test_layer_shares_and_silence_add_up_to_one() -> None:
    layers = ("ontology", "graph", "text", "model")
    answers = [Answer("x", layer=layer) for layer in layers] + [Answer("", layer="text")]
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
        scores = [metric.measure(question, Answer()) for question in questions]
        assert {score for score in scores if score is not None} <= {0.0}
        assert any(metric.applies(question) for question in questions)


FLOATS = st.lists(st.floats(-100, 100), min_size=1, max_size=30)


def test_interval_holds_the_planted_mean_as_often_as_it_says() -> None:
    generator = np.random.default_rng(7)
    for draw in (
        lambda: generator.normal(2.0, 1.0, 15),
        lambda: generator.random(40) + 1.5,
        lambda: (generator.random(60) < 0.3) + 1.7,
    ):
        found = [bootstrap(draw().tolist(), 1, 1000) for _ in range(300)]
        held = np.mean([one.low <= 2.0 <= one.high for one in found])
        assert 0.91 <= held <= 0.985  # three standard errors of 300 trials at .95 are .038


@given(FLOATS, st.randoms(use_true_random=False))
def test_order_of_the_questions_does_not_matter(values: list[float], shuffle) -> None:  # type: ignore[no-untyped-def]
    other = shuffle.sample(values, len(values))
    assert bootstrap(values, 0, 100) == bootstrap(other, 0, 100)


@given(FLOATS)
def test_interval_lies_within_the_values_and_around_the_mean(values: list[float]) -> None:
    found = bootstrap(values, 0, 200)
    assert min(values) <= found.mean <= max(values)
    # A mean of a sample is rounded, so that it may pass the largest value by that.
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found.count == len(values)


def test_equal_values_have_an_interval_of_no_width() -> None:
    found = bootstrap([0.1] * 7, 0)
    assert (found.mean, found.low, found.high) == (0.1, 0.1, 0.1)


def test_nothing_and_what_is_no_number_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        bootstrap([], 0)
    with pytest.raises(ValueError, match="not a number"):
        bootstrap([1.0, float("nan")], 0)
    with pytest.raises(ValueError):
        compare_paired([1.0], [1.0, 2.0], 0)


def test_exact_test_is_that_of_scipy() -> None:
    from scipy.stats import permutation_test

    generator = np.random.default_rng(2)
    for count in (3, 8, 12):
        a, b = generator.random(count) + 0.2, generator.random(count)
        theirs = permutation_test(
            (a - b,),
            lambda x, axis: x.mean(axis=axis),
            permutation_type="samples",
            n_resamples=9999,
        )
        assert compare_paired(a.tolist(), b.tolist(), 0).p == pytest.approx(theirs.pvalue)


def test_questions_without_a_difference_do_not_change_the_chance() -> None:
    a, b = [0.9, 0.8, 0.7, 0.2], [0.1, 0.3, 0.2, 0.4]
    assert compare_paired(a, b, 0).p == compare_paired(a + [0.5] * 40, b + [0.5] * 40, 0).p


def test_differences_of_equal_size_on_paper_count_as_equal() -> None:
    # 0.1 + 0.2 is not 0.3 in floating point; the exact p is 6 of 8 all the same.
    assert compare_paired([0.1, 0.2, -0.3], [0.0, 0.0, 0.0], 0).p == 1.0


def test_holm_corrects_as_in_the_worked_example() -> None:
    assert correct_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert correct_holm([]) == []


def test_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    values = np.random.default_rng(0).random(20).tolist()
    assert bootstrap(values, 1, 500) == bootstrap(values, 1, 500) != bootstrap(values, 2, 500)


def test_one_difference_alone_proves_nothing() -> None:
    assert compare_paired([1.0, 0.5], [0.0, 0.5], 0).p == 1.0
