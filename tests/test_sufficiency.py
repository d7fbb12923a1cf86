"""How facts are weighed against a question, and when they are enough to answer from."""

import math

import pytest

from kpyramid.answering.rules import MOST_LEAD, SUFFICIENCY, judge_facts, weigh_best
from kpyramid.query import Snapshot
from kpyramid.query.analysis import QuestionAnalysis, link_text
from kpyramid.query.backends import Chosen
from kpyramid.query.facts import (
    RELEVANCE,
    NearFact,
    apply_weights,
    gather_facts,
    match_candidates,
    open_side,
    rate_facts,
)
from kpyramid.query.types import RULES, Backends, Question
from tests.cascade_script import ScriptedAsker

BORN = Question("Where was Ada Lovelace born?")


def weigh(text: str, snapshot: Snapshot, *candidates: str) -> list[tuple[str, float]]:
    asked = QuestionAnalysis(Question(text, candidates), snapshot)
    return [(b.value, b.chance) for b in rate_facts(asked, gather_facts(asked))]


def test_the_logistic_model_is_that_of_its_weights() -> None:
    weights = {"bias": -1.0, "a": 2.0}
    assert apply_weights({"a": 1.0, "unknown": 9.0}, weights) == pytest.approx(
        1 / (1 + math.exp(-1.0))
    )
    assert apply_weights({"a": 10_000.0}, weights) < 1.0


def test_the_signs_of_the_weights_say_what_must_hold_whatever_they_are_fitted_on() -> None:
    for name in ("cosine", "said", "fits", "chosen"):
        assert RELEVANCE[name] > 0, name
    for name in ("left", "unfit"):
        assert RELEVANCE[name] < 0, name
    assert SUFFICIENCY["best"] > 0 and SUFFICIENCY["lead"] > 0


def test_the_fact_that_says_what_is_asked_comes_first(snapshot: Snapshot) -> None:
    assert weigh(BORN.text, snapshot)[0][0] == "London"
    assert weigh("Who founded the Harlow Brewing Company?", snapshot)[0][0] == "John Harlow"


def test_a_value_of_the_wrong_kind_is_less_probable_than_one_that_fits(snapshot: Snapshot) -> None:
    where = dict(reversed(weigh(BORN.text, snapshot)))
    when = dict(reversed(weigh("When was Ada Lovelace born?", snapshot)))
    date = next(value for value in when if "1815" in value)
    assert where["London"] > where[date]
    assert when[date] > when["London"]


def test_a_fact_about_another_name_is_less_probable(snapshot: Snapshot) -> None:
    own = dict(reversed(weigh("Who founded the Harlow Brewing Company?", snapshot)))
    other = dict(reversed(weigh("Who founded the Norfolk Brewing Company?", snapshot)))
    assert other.get("John Harlow", 0.0) < own["John Harlow"] / 2


def test_a_candidate_makes_its_fact_more_probable(snapshot: Snapshot) -> None:
    bare = dict(reversed(weigh(BORN.text, snapshot)))
    chosen = dict(reversed(weigh(BORN.text, snapshot, "London", "Paris")))
    assert chosen["London"] > bare["London"]


def test_who_or_what_something_is_is_said_by_a_copula(snapshot: Snapshot) -> None:
    asked = QuestionAnalysis(Question("What is the Brent Tor?"), snapshot)
    assert asked.is_definition
    assert not QuestionAnalysis(
        Question("What is the height of Brent Tor?"), snapshot
    ).is_definition
    (known,) = asked.linked.entities
    own = known, "Brent Tor", "LOC"

    def leave_open(relation: str, tail: str, head: tuple[str, str, str] = own) -> str:
        return open_side(NearFact("c", *head, relation, "e2", tail, "NOUN", 0.5), asked)[0]

    assert leave_open("is a", "hill in Devon") == "hill in Devon"
    assert leave_open("is part of", "Dartmoor") == "part of Dartmoor"
    for relation in ("was published as", "is composed of", "is in", "overlooks"):
        assert leave_open(relation, "Lydford") == ""
    assert leave_open("is a", "hill", ("e9", "Black Tor", "LOC")) == ""


def test_the_open_side_is_the_one_that_the_question_does_not_name(snapshot: Snapshot) -> None:
    asked = QuestionAnalysis(Question("Where is Brent Tor?"), snapshot)
    (known,) = asked.linked.entities
    fact = NearFact("c", known, "Brent Tor", "LOC", "is in", "e2", "Devon", "GPE", 0.5)
    turned = NearFact("c", "e2", "Devon", "GPE", "has", known, "Brent Tor", "LOC", 0.5)
    neither = NearFact("c", "e2", "Devon", "GPE", "has", "e3", "hills", "NOUN", 0.5)
    assert open_side(fact, asked) == ("Devon", "GPE", "Brent Tor")
    assert open_side(turned, asked) == ("Devon", "GPE", "Brent Tor")
    assert open_side(neither, asked) == ("", None, "")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("the Harlow Brewing Company", ("Harlow Brewing Company",)),
        ("HARLOW BREWING COMPANY", ("Harlow Brewing Company",)),
        ("New York City", ("New York City",)),
        ("New York", ("New York",)),
        ("a large company in the city of New York", ()),
        ("York", ()),
        ("", ()),
    ],
)
def test_a_value_is_a_candidate_in_normal_form_or_as_most_of_its_words(
    value: str, expected: tuple[str, ...]
) -> None:
    candidates = ("Harlow Brewing Company", "New York", "New York City")
    assert match_candidates(value, candidates) == expected


def test_what_is_enough_is_said_with_its_probability_and_the_one_asked_for(
    snapshot: Snapshot,
) -> None:
    asked = QuestionAnalysis(BORN, snapshot)
    facts = gather_facts(asked)
    judged = judge_facts(asked, facts, sufficient=0.0)
    assert judged.enough and judged.values[0] == "London"
    assert f"{judged.probability:.2f}" in judged.reason and "0.00 is asked for" in judged.reason
    assert judged.supporting[0].tail == "London"
    never = judge_facts(asked, facts, sufficient=1.0)
    assert not never.enough and never.values == ()
    assert never.probability == judged.probability


@pytest.mark.parametrize(
    ("text", "candidates", "why"),
    [
        ("Who wrote Atlantis?", (), "no fact is about anything that the question names"),
        (BORN.text, ("Paris", "Rome"), "gives one of the candidates"),
    ],
)
def test_why_facts_are_not_enough_is_said(
    snapshot: Snapshot, text: str, candidates: tuple[str, ...], why: str
) -> None:
    asked = QuestionAnalysis(Question(text, candidates), snapshot)
    judged = judge_facts(asked, gather_facts(asked))
    assert not judged.enough and judged.probability == 0.0
    assert why in judged.reason


def test_no_facts_are_not_enough_whoever_judges(snapshot: Snapshot) -> None:
    asker = ScriptedAsker(lambda _: "never asked")
    for backends in (RULES, Backends(sufficiency="llm", asker=asker)):
        assert not Chosen(backends).judge_facts(QuestionAnalysis(BORN, snapshot), []).enough
    assert asker.tasks == []


def test_a_rival_that_says_something_else_makes_the_best_less_sure(snapshot: Snapshot) -> None:
    asked = QuestionAnalysis(BORN, snapshot)
    weighed = rate_facts(asked, gather_facts(asked))
    best = next(b for b in weighed if b.value == "London")
    rest = [b for b in weighed if b.value and b.meaning != best.meaning]
    alone = weigh_best(asked, [best])
    beside = weigh_best(asked, [best, *rest])
    assert alone and beside and alone.measures["lead"] == MOST_LEAD
    assert beside.measures["lead"] < MOST_LEAD and beside.chance < alone.chance


def test_values_of_one_relation_are_given_together_only_when_as_probable(
    snapshot: Snapshot,
) -> None:
    facts = [
        NearFact("condensed-x", "e1", "Ada Lovelace", "PERSON", "was born in", f"v{at}", value,
                 kind, cosine)
        for at, (value, kind, cosine) in enumerate(
            [("London", "GPE", 0.8), ("Leeds", "GPE", 0.79), ("Byron", "PERSON", 0.0)]
        )
    ]  # fmt: skip
    (known,) = link_text(BORN.text, snapshot).entities
    asked = QuestionAnalysis(BORN, snapshot)
    key = gather_facts(asked)[0].condensed_id
    stated = [
        NearFact(key, known, f.head, f.head_type, f.relation, f.tail_id, f.tail, f.tail_type,
                 f.cosine)
        for f in facts
    ]  # fmt: skip
    best = weigh_best(asked, rate_facts(asked, stated))
    assert best and best.values == ("London", "Leeds")
