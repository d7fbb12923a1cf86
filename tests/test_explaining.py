"""What `ask --explain` says to someone who has read nothing about the method."""

from dataclasses import replace

import pytest

from kpyramid.cli.answers import LAYERS, describe_answer
from kpyramid.query.types import Answer, Item, Outcome, Step
from kpyramid.snapshot.evidence import Evidence

PLACE = Evidence("doc-1", "chunk-1", 10, 60, "Ada Lovelace was born in London in 1815.", "ada.txt")
ONTOLOGY = Step(
    "ontology",
    Outcome.EMPTY,
    "its query is sound and finds no value",
    found=("Ada Lovelace birth year 1815",),
    query="SELECT ?x WHERE { «Ada Lovelace» :birthPlace ?x }",
)
GRAPH = Step(
    "graph",
    Outcome.ANSWERED,
    "the best fact answers with a probability of 0.93; 0.70 is asked for",
    found=("Ada Lovelace was born in London",),
    confidence=0.93,
)
ANSWERED = Answer(
    text="London",
    choices=("London",),
    context=(Item("condensed-1", "Ada Lovelace was born in London", "graph", 0.9, (PLACE,)),),
    layer="graph",
    evidence=(PLACE,),
    trace=(ONTOLOGY, GRAPH),
    confidence=0.93,
    question="Where was Ada Lovelace born?",
    recognised=("names that the pyramid knows: Ada Lovelace", "asks for: a place"),
)


def explain(answer: Answer) -> str:
    return "\n".join(describe_answer(answer, explain=True).show())


def test_question_layers_and_answer_stand_in_their_order() -> None:
    lines = explain(ANSWERED)
    order = [
        lines.index(part)
        for part in (
            "Question: Where was Ada Lovelace born?",
            "names that the pyramid knows: Ada Lovelace",
            "asks for: a place",
            f"1. Ontology ({LAYERS['ontology']})",
            "It knows nothing of this: its query is sound and finds no value.",
            "asked: SELECT ?x WHERE { «Ada Lovelace» :birthPlace ?x }",
            "found: Ada Lovelace birth year 1815",
            f"2. Graph ({LAYERS['graph']})",
            "It answers: the best fact answers with a probability of 0.93; 0.70 is asked for.",
            "Answer: London",
            "Layer: graph",
            "Probability that it is right: 0.93",
            "Ada Lovelace was born in [London] in 1815.",
            "ada.txt, characters 10-60",
        )
    ]
    assert order == sorted(order)
    assert LAYERS["text"] not in lines


def test_a_statement_that_cites_a_fact_stands_below_the_answer_or_beside_the_nearest() -> None:
    told = "Ada Lovelace was born and lived in London"
    context = (replace(ANSWERED.context[0], statement=told),)
    assert f"in short: {told}" in explain(replace(ANSWERED, context=context))
    nearest = explain(replace(ANSWERED, text="", context=context))
    assert f"Ada Lovelace was born in London (in short: {told})" in nearest


def test_no_answer_is_said_to_be_none_and_the_nearest_findings_follow() -> None:
    item = Item("chunk-1", "London is large.", "text", 0.4, ())
    said = explain(Answer("", (), (item,), "text", (), (), confidence=0.1))
    assert "Answer: not known; nearest:" in said and "London is large." in said
    assert "Probability" not in said


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_its_words(outcome: Outcome) -> None:
    said = explain(Answer("", (), (), None, (), (Step("graph", outcome, "why"),)))
    assert "why." in said and "not known" in said


def test_a_long_passage_is_cut_around_the_words_that_answer() -> None:
    text = "a " * 1000 + "Rome" + " z" * 1000
    place = Evidence("doc-1", "chunk-1", 0, len(text), text, "a.txt")
    said = explain(Answer("Rome", ("Rome",), (), "text", (place,), ()))
    assert "[Rome]" in said and "…" in said and len(said) < 2000
