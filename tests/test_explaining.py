"""What `ask --explain` says to someone who has read nothing about the method."""

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from kpyramid.cli.answers import LAYERS, Asked
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
    out = StringIO()
    console = Console(file=out, width=200, highlight=False)
    for part in Asked(answer=answer, explain=True).show():
        console.print(part)
    return out.getvalue()


def test_the_question_comes_first_with_what_was_recognised_in_it() -> None:
    lines = explain(ANSWERED).splitlines()
    assert lines[0].startswith("Question  Where was Ada Lovelace born?")
    assert "names that the pyramid knows: Ada Lovelace" in lines[1]
    assert "asks for: a place" in lines[2]


def test_a_statement_that_cites_a_fact_stands_below_the_answer_or_beside_the_nearest() -> None:
    told = "Ada Lovelace was born and lived in London"
    context = (replace(ANSWERED.context[0], statement=told),)
    assert f"in short: {told}" in explain(replace(ANSWERED, context=context))
    nearest = explain(replace(ANSWERED, text="", context=context))
    assert f"Ada Lovelace was born in London (in short: {told})" in nearest


def test_layers_stand_in_the_order_in_which_they_were_asked_with_query_and_findings() -> None:
    said = explain(ANSWERED)
    order = [
        said.index(part)
        for part in (
            "1. Ontology",
            "It knows nothing of this: its query is sound and finds no value.",
            "asked: SELECT ?x WHERE { «Ada Lovelace» :birthPlace ?x }",
            "found: Ada Lovelace birth year 1815",
            "What was found is kept for the next layer.",
            "2. Graph",
            "It answers: the best fact answers with a probability of 0.93; 0.70 is asked for.",
            "Answer  London",
        )
    ]
    assert order == sorted(order)


@pytest.mark.parametrize("later", [(), (Step("graph", Outcome.SKIPPED, "it is switched off"),)])
def test_findings_are_kept_only_for_a_layer_that_is_asked(later: tuple[Step, ...]) -> None:
    said = explain(Answer("", (), (), None, (), (ONTOLOGY, *later)))
    assert "found: Ada Lovelace birth year 1815" in said and "is kept" not in said
    assert "is kept" in explain(Answer("", (), (), None, (), (ONTOLOGY, *later, GRAPH)))


def test_the_answer_shows_its_probability_and_its_places_with_the_words_marked() -> None:
    said = explain(ANSWERED)
    assert "probability that it is right: 0.93; from the graph" in said
    assert "Ada Lovelace was born in [London] in 1815." in said
    assert "ada.txt, characters 10 to 60" in said


def test_the_last_line_says_what_each_layer_is_that_was_asked() -> None:
    last = " ".join(explain(ANSWERED).partition("Layers are asked")[2].split())
    assert LAYERS["ontology"] in last and LAYERS["graph"] in last
    assert LAYERS["text"] not in last


def test_no_answer_is_said_to_be_none_and_the_nearest_findings_follow() -> None:
    item = Item("chunk-1", "London is large.", "text", 0.4, ())
    said = explain(Answer("", (), (item,), "text", (), (), confidence=0.1))
    assert "Answer  not known; nearest:" in said and "London is large." in said
    assert "probability" not in said


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_its_words(outcome: Outcome) -> None:
    said = explain(Answer("", (), (), None, (), (Step("graph", outcome, "why"),)))
    assert "why." in said and "not known" in said


def test_what_looks_like_layout_in_a_document_is_shown_as_it_is() -> None:
    place = Evidence("doc-1", "chunk-1", 0, 9, "[bold]Rome[/] \\[x]", "a[b].txt")
    answer = Answer("Rome", ("Rome",), (), "text", (place,), ())
    said = explain(answer)
    assert "[bold][Rome][/] \\[x]" in said and "a[b].txt" in said


def test_a_long_passage_is_cut_around_the_words_that_answer() -> None:
    text = "a " * 1000 + "Rome" + " z" * 1000
    place = Evidence("doc-1", "chunk-1", 0, len(text), text, "a.txt")
    said = explain(Answer("Rome", ("Rome",), (), "text", (place,), ()))
    assert "[Rome]" in said and "…" in said and len(said) < 2000
