"""Which options a context bears out: echoes, rare words, several right ones, and their layers."""

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pytest

from kpyramid.answering.reader import (
    Candidate,
    Piece,
    choose,
    compare,
    drop_echoes,
    find_candidates,
)
from kpyramid.answering.rules import Rules, judge_facts
from kpyramid.answering.sparql import ask_by_rules
from kpyramid.documents.values import Date, find_values
from kpyramid.embeddings.port import Matrix
from kpyramid.query import Snapshot, answer
from kpyramid.query.analysis import LinkedQuestion, QuestionAnalysis
from kpyramid.query.decisions import Found
from kpyramid.query.facts import gather_facts, match_candidates
from kpyramid.query.ontology_layer import ask_ontology
from kpyramid.query.options import Number, read_names, read_number
from kpyramid.query.polyrag import _unite
from kpyramid.query.types import Outcome, Question, Reading
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.snapshot import KeptVectors
from tests.told import open_told


def ask(text: str) -> QuestionAnalysis:
    linked = LinkedQuestion((), (), (), "what")
    return QuestionAnalysis(Question(text), open_told(), linked=linked)


def say(*sentences: str) -> list[Piece]:
    return [Piece(text, (), rank, "text") for rank, text in enumerate(sentences)]


def test_a_word_of_the_question_is_no_part_of_one_option() -> None:
    names = ("Harlow Riding Club", "Port Amsel United")
    options = [Candidate(name, frozenset(), "") for name in read_names(names, [(), ()])]
    pieces = say("Jan Roth belongs to the Norfolk club.", "Per Lund plays for Port Amsel United.")
    found = find_candidates(options, pieces)
    assert {names[hit.candidate] for hit in found} == set(names)
    kept = drop_echoes(found, ask("Which club does Jan Roth belong to?"))
    assert {names[hit.candidate] for hit in kept} == {"Port Amsel United"}


def test_the_rare_word_of_a_question_without_names_decides(snapshot: Snapshot) -> None:
    names = ("Violet Party", "Amber Party", "Ochre Party")
    pieces = say(
        "The political ideology of the Violet Party is known.",
        "The Ochre Party stands for secularism, a political ideology.",
        "A political ideology moves the Amber Party.",
        "Any political party has its political ideology.",
    )
    asked = ask("Which political party has the political ideology secularism?")
    assert choose(asked, names, pieces, snapshot).choices == ("Ochre Party",)


@pytest.mark.parametrize(
    ("question", "number"),
    [
        ("Which people was the firm founded by?", "several"),
        ("Which people are the founders of the firm?", "several"),
        ("Which airports is Leeds served by?", "several"),
        ("Which software have the platform MSX?", "several"),
        ("Which person was the firm founded by?", "one"),
        ("Which club has the coach Jan Roth?", "one"),
        ("When was the firm founded?", "one"),
        ("Who founded the firm?", "any"),
    ],
)
def test_how_many_are_asked_for_is_said_by_the_noun_or_by_its_verb(
    question: str, number: Number
) -> None:
    assert read_number(question) == number


def test_where_several_are_asked_for_they_are_no_rivals() -> None:
    best = {0: 2.0, 1: 1.0}
    assert compare(1, best, 1, "several") == compare(1, {1: 1.0}, 1, "several")
    assert compare(1, best, 1, "one")[1] == -1.0


@pytest.mark.parametrize("stated", ["30/11/1977", "30.11.1977", "30-11-1977", "11/30/1977"])
def test_a_date_in_figures_is_read_with_any_mark(stated: str) -> None:
    (found,) = find_values(f"He died on {stated}.")
    assert found.value == Date(1977, 11, 30)


def test_what_only_looks_like_a_date_in_figures_is_none() -> None:
    assert not any(isinstance(v.value, Date) for v in find_values("Runway 13/31 and 4/22."))
    assert [v.value for v in find_values("It is 3.5 long.")] == [Decimal("3.5")]


def test_the_graph_is_never_enough_for_several_and_hands_on_what_it_has(
    snapshot: Snapshot,
) -> None:
    question = Question("Which cities was Ada Lovelace born in?", ("Paris", "London", "Leeds"))
    asked = QuestionAnalysis(question, snapshot)
    judged = judge_facts(asked, gather_facts(asked), sufficient=0.0)
    assert (judged.enough, judged.values) == (False, ("London",))
    assert "several" in judged.reason
    found = answer(question.text, snapshot, candidates=question.candidates)
    assert found.trace[-1].layer == "text" and "London" in found.choices


def test_a_query_that_leaves_a_word_of_the_question_out_chooses_nothing(
    snapshot: Snapshot,
) -> None:
    options = ("Ada Lovelace", "Mary Stone")
    whole = "Which person has a birth place?"
    found = ask_ontology(QuestionAnalysis(Question(whole, options), snapshot), Rules())
    assert found.answer and found.answer.choices == ("Ada Lovelace",)
    overlooking = ask_by_rules(whole, snapshot)

    class Overlooking(Rules):
        def query_ontology(self, asked: QuestionAnalysis) -> Found:
            return overlooking

    strange = "Which person has secularism as birth place?"
    found = ask_ontology(QuestionAnalysis(Question(strange, options), snapshot), Overlooking())
    assert (found.answer, found.step.outcome) == (None, Outcome.INSUFFICIENT)
    assert "secularism" in found.step.reason


def test_a_date_is_an_option_however_it_is_written() -> None:
    options = ("28 November 1953", "1 May 1953", "November 1953")
    assert match_candidates("1953-11-28", options) == ("28 November 1953",)
    assert match_candidates("1954-11-28", options) == ()


def give(choice: str, confidence: float) -> Reading:
    place = Evidence("doc-1", "chunk-1", 0, 3, choice, "a.txt")
    return Reading(choice, (choice,), confidence, (place,))


def test_what_would_not_be_given_takes_no_part_in_what_several_layers_say() -> None:
    sound, weak = give("Oslo", 0.9), give("Rome", 0.16)
    assert _unite([weak, sound], ("Rome", "Oslo")) == sound
    both = _unite([give("Rome", 0.6), sound], ("Rome", "Oslo"))
    assert (both.choices, both.confidence) == (("Rome", "Oslo"), 0.6)
    assert _unite([give("Rome", 0.6), sound], ()).choices == ("Rome", "Oslo")


def test_a_text_is_embedded_once_and_rows_come_in_the_order_asked() -> None:
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> Matrix:
        asked.extend(texts)
        return np.array([[len(text)] for text in texts], dtype=np.float32)

    kept = KeptVectors(embed)
    assert kept.look_up(["a", "bbb", "a"]).tolist() == [[1], [3], [1]]
    assert kept.look_up(["bbb", "cc"]).tolist() == [[3], [2]]
    assert asked == ["a", "bbb", "cc"]
