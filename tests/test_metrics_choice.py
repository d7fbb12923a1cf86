"""Measures of chosen options, values and verdicts."""

import pytest

from kpyramid.evaluation.metrics import METRICS, Response, read_verdict
from kpyramid.evaluation.questions import EvalQuestion
from tests.rows import read_rows

OPTIONS = tuple("ABCDEFGH")


def ask(*right: str, kind: str = "choice") -> EvalQuestion:
    answers = tuple((value,) for value in right)
    options = OPTIONS if kind == "choice" else ()
    return EvalQuestion("q", "Which?", kind, answers, candidates=options)  # type: ignore[arg-type]


def score(name: str, question: EvalQuestion, *chosen: str, text: str = "") -> float | None:
    return METRICS[name].measure(question, Response(text, choices=chosen))


@pytest.mark.parametrize(
    ("chosen", "precision", "recall", "f1", "accuracy"),
    read_rows("metrics_choice.chosen_options_score_as_computed_by_hand"),
)
def test_chosen_options_score_as_computed_by_hand(
    chosen: str, precision: float, recall: float, f1: float, accuracy: float
) -> None:
    names = ("precision", "recall", "f1", "accuracy")
    found = [score(name, ask("A", "B"), *chosen) for name in names]
    assert found == pytest.approx([precision, recall, f1, accuracy])
    assert score("exact_match", ask("A", "B"), *chosen) == accuracy


def test_spaces_around_an_option_do_not_count() -> None:
    question = EvalQuestion("q", "Which?", "choice", (("Polish",),), ("Finnish", "Polish"))
    assert score("accuracy", question, "Finnish") == 0.0
    assert score("accuracy", question, " Polish ") == 1.0


def test_option_in_another_form_of_unicode_is_the_same_option() -> None:
    question = EvalQuestion("q", "Which?", "choice", (("Café",),), candidates=("Café", "Bar"))
    assert score("accuracy", question, "Cafe\u0301") == 1.0


def test_option_in_the_text_alone_counts_as_chosen() -> None:
    assert score("accuracy", ask("A"), text="A") == 1.0


def test_what_is_no_option_counts_against_precision() -> None:
    assert score("precision", ask("A"), "A", "none of these") == 0.5


def test_values_match_in_any_spelling_and_count_once() -> None:
    gold = (("Albert Einstein", "Einstein"), ("Niels Bohr",))
    question = EvalQuestion("q", "Who?", "values", gold)
    assert score("f1", question, "einstein", "Albert  Einstein", "NIELS BOHR") == 1.0
    assert score("precision", question, "Einstein", "Max Planck") == 0.5


def test_dates_and_numbers_are_the_same_values_in_any_notation() -> None:
    question = EvalQuestion("q", "When?", "values", (("28 November 1953",), ("12,000 km",)))
    assert score("f1", question, "1953-11-28", "12000 km") == 1.0
    assert score("precision", question, "1953-11-29", "12000 km", "12000 miles") == 1 / 3


def test_articles_do_not_part_one_of_several_values() -> None:
    question = EvalQuestion(
        "q", "Which films?", "values", (("Grey Harbour",), ("The Glass Orchard",))
    )
    assert score("accuracy", question, "Grey Harbour", "Glass Orchard") == 1.0
    assert score("accuracy", question, "Grey Harbour", "Glass Arch") == 0.0


def test_numbers_are_values_and_not_digits() -> None:
    question = EvalQuestion("q", "How much?", "values", (("1.50",), ("-0",)))
    assert score("accuracy", question, "1.5", "0.0") == 1.0
    assert score("recall", question, "15") == 0.0
    thousand = EvalQuestion("q", "How much?", "values", (("1000",),))
    assert score("accuracy", thousand, "1000.00") == 1.0
    assert score("accuracy", thousand, "1") == 0.0


@pytest.mark.parametrize(
    ("text", "verdict"),
    read_rows("metrics_choice.verdict_is_the_first_word"),
)
def test_verdict_is_the_first_word(text: str, verdict: str | None) -> None:
    assert read_verdict(Response(text)) == verdict


def test_two_verdicts_are_none() -> None:
    assert score("accuracy", ask("yes", kind="yesno"), "yes", "no") == 0.0
    assert score("accuracy", ask("yes", kind="yesno"), "Yes") == 1.0
    assert score("accuracy", ask("no", kind="yesno")) == 0.0


def test_measures_of_choices_do_not_apply_to_open_questions() -> None:
    question = EvalQuestion("q", "Who?", "open", (("Bohr",),))
    for name in ("precision", "recall", "f1", "accuracy"):
        assert score(name, question, "Bohr") is None
