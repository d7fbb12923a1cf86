"""The look-up: stored values of the kind asked for, else silence; choices; what is withheld."""

from dataclasses import replace
from unittest.mock import ANY

import pytest

from kpyramid.query import Snapshot, answer
from kpyramid.query.analysis import analyse
from kpyramid.query.facts import gather_facts
from kpyramid.query.lookup import (
    choose_values,
    list_others,
    list_relations,
    look_up,
    read_kind_nouns,
)
from tests.corpora import open_told
from tests.rows import each_row, read_bodies

TEXTS = read_bodies("lookup.texts")


@pytest.fixture(scope="module")
def told() -> Snapshot:
    return open_told("lookup", TEXTS)


@each_row("question, value")
def test_a_stored_value_is_given_with_its_sentence(
    told: Snapshot, question: str, value: str
) -> None:
    found = answer(question, told)
    assert found.choices[:1] == (value,), (found.text, found.trace)
    assert found.confidence >= 0.5 and found.evidence


@each_row("question")
def test_what_is_not_stored_or_of_another_kind_is_silence_with_context(
    told: Snapshot, question: str
) -> None:
    found = answer(question, told)
    assert (found.text, found.confidence) == ("", 0.0) and found.context


@each_row("question, nouns")
def test_the_noun_that_says_the_kind_of_answer(question: str, nouns: tuple[str, ...]) -> None:
    assert read_kind_nouns(question) == nouns


def test_the_ontology_answers_by_what_a_statement_is_about_and_by_its_value(told: Snapshot) -> None:
    for question, value in (
        ("Who founded Nordlys Press?", "Edda Holm"),
        ("Who was born in Oslo?", "Edda Holm"),
        ("Where was Edda Holm born?", "Oslo"),
    ):
        found = answer(question, told, graph=False, text=False)
        assert (found.text, found.layer) == (value, "ontology"), found.trace


def test_no_floor_lifts_a_chance_and_the_best_is_what_is_told(told: Snapshot) -> None:
    asked = analyse("Where was Edda Holm born?", told)
    rated = look_up(asked, gather_facts(asked))
    assert rated == sorted(rated, key=lambda one: -one.chance)
    found = answer(asked.text, told, ontology=False)
    assert found.confidence == rated[0].chance == found.trace[-1].confidence
    assert [one.value for one in choose_values(asked, rated)] == ["Oslo"]


def test_an_answer_names_the_other_values_of_its_relation(told: Snapshot) -> None:
    asked = analyse("Where was Edda Holm born?", told)
    rated = look_up(asked, gather_facts(asked))
    other = replace(rated[0], value="SK Lyn", entity=None)
    assert list_others([*rated, other], rated[:1]) == ["SK Lyn"]
    assert not list_others(rated, rated[:1])


def test_the_relation_that_a_question_asks_for(told: Snapshot) -> None:
    asked = analyse("Where was Ola Berg born?", told)
    known = ("was born in", "died in", "founded")
    assert list_relations(asked, "Ola Berg", "Oslo", known) == ["was born in"]
    assert not list_relations(asked, "Ola Berg", "Oslo", known[1:])


@each_row("question, options, choices", "lookup.options_are_chosen")
@pytest.mark.parametrize("strategy", ["polyrag", "naive"])
def test_options_are_chosen_by_what_joins_them_to_the_question(
    told: Snapshot, strategy: str, question: str, options: tuple[str, ...], choices: tuple[str, ...]
) -> None:
    assert answer(question, told, strategy, candidates=options).choices == choices


@pytest.mark.parametrize("strategy", ["wts", "rok", "hykge", "exact", "kaping", "naive"])
def test_no_strategy_that_follows_paper_withholds_answer(told: Snapshot, strategy: str) -> None:
    question = "Where was the founder of Nordlys Press born?"
    assert answer(question, told, strategy) == replace(
        answer(question, told, strategy, floor=0.0), seconds=ANY
    )
