"""Retrieval by itself: facts, passages and how they connect, ready for anybody's prompt."""

import json

import pytest

import kpyramid
from kpyramid.errors import InputError
from kpyramid.query import Retrieval, answer, retrieve
from kpyramid.query.passages import Path, Start
from kpyramid.query.retrieval import Connection, _connect
from kpyramid.query.types import Item
from tests.told import TOLD, open_told

QUESTION = "Who directed The Glass Orchard?"


def test_retrieval_gives_facts_and_passages_each_with_the_characters_it_rests_on() -> None:
    found = retrieve(QUESTION, open_told(), facts=3, passages=2)
    assert [len(found.facts), len(found.passages)] == [3, 2]
    assert found.facts[0].text == "Glass Orchard was directed by Tomas Berrin"
    assert found.passages[0].evidence[0].source == "film.txt"
    places = [place for item in (*found.facts, *found.passages) for place in item.evidence]
    assert all(TOLD[p.source][p.start : p.end] == p.text for p in places)
    assert retrieve(QUESTION, open_told(), facts=3, passages=2) == found


def test_the_text_layer_reads_the_passages_that_retrieval_gives() -> None:
    question = "Which path did pilgrims take?"
    found = answer(question, open_told(), ontology=False, graph=False)
    given = retrieve(question, open_told(), passages=5)
    read = [item.key for item in found.context if item.layer == "text"]
    assert read == [item.key for item in given.passages]


def test_a_question_is_embedded_in_one_call() -> None:
    snapshot = open_told().scoped(kpyramid.PUBLIC)
    calls: list[list[str]] = []
    snapshot.__dict__["embedder"] = _Counting(open_told().embedder.embed, calls)
    retrieve(QUESTION, snapshot, candidates=("Tomas Berrin", "Edda Moll"))
    assert calls == [[QUESTION]]


@pytest.mark.parametrize(
    "question",
    [QUESTION, "Which flick did Tomas Berrin shoot?", "Who purchased the Orm Bridge?",
     "Where was the spouse of Ada Romanov born?", "How expensive is the Orm Bridge?"],
)  # fmt: skip
def test_the_look_up_embeds_once_for_each_layer_beside_the_question(question: str) -> None:
    snapshot = open_told().scoped(kpyramid.PUBLIC)
    calls: list[list[str]] = []
    snapshot.__dict__["embedder"] = _Counting(open_told().embedder.embed, calls)
    answer(question, snapshot)
    assert len(calls) <= 3


def test_options_bring_the_passages_that_say_them() -> None:
    found = retrieve("Who married Milo Tarn?", open_told(), passages=1, candidates=("Ada Romanov",))
    assert {p.source for item in found.passages for p in item.evidence} >= {"tarn.txt"}


def test_a_prompt_numbers_facts_and_passages_and_says_what_connects_them() -> None:
    fact = Item("f", "A leads\nB", "graph", 0.9, (), standard="head", statement="A leads B")
    items = [fact, Item("p", "B is far.", "text", 1.0, ())]
    found = Retrieval("Q?", (items[0],), (items[1],), (Connection("f", "b", "p"),), (), {"p": "B!"})
    assert found.to_prompt() == (
        "Facts:\n[F1] A leads B [head] (in short: A leads B)\n\nPassages:\n\n[P1] B!\nB is far.\n\n"
        "Connections:\n[F1] and [P1] both name 'b'"
    )
    given = json.loads(json.dumps(found.to_dict()))
    assert given["paths"] == [{"source": "f", "name": "b", "target": "p"}]
    assert (given["facts"][0]["standard"], given["facts"][0]["statement"]) == ("head", "A leads B")
    assert repr(found) == "Retrieval('Q?', 1 facts, 1 passages, 1 paths)"


def test_a_name_that_a_third_passage_has_connects_none_of_them() -> None:
    texts = ("Oslo and Vik.", "Vik in Oslo.", "Oslo.", "Bergen.", "Leeds.", "Kiruna.")
    items = [Item(f"p{n}", text, "text", 1.0, ()) for n, text in enumerate(texts)]
    paths = (Connection("p0", "oslo", "p1"), Connection("p0", "vik", "p1"))
    said = Retrieval("Q?", (), tuple(items), paths).to_prompt()
    assert "'vik'" in said and "'oslo'" not in said


def test_a_connection_starts_at_a_passage_or_at_the_fact_that_led_on() -> None:
    passage = Path(Start("chunk-1", "text", (), 1.0), "oslo", (), 0.5)
    fact = Path(Start(None, "A is in Oslo", (), 1.0), "oslo", (), 0.5)
    assert _connect("chunk-2", passage, {}) == Connection("chunk-1", "oslo", "chunk-2")
    assert _connect("chunk-2", fact, {"A is in Oslo": "f"}) == Connection("f", "oslo", "chunk-2")


PROMPTED = Retrieval(
    "Q?",
    (Item("f", "A is B", "graph", 0.4, ()), Item("g", "C is D", "graph", 0.1, ())),
    (Item("p", "A. " * 20, "text", 0.6, ()), Item("q", "E.", "text", 0.03, ())),
    (),
)


def test_a_prompt_has_what_scores_enough_and_fits() -> None:
    every = ["A is B", "C is D", "A. A.", "E."]
    for options, shown in [
        ({}, every),
        ({"min_score": 0.05}, every[:3]),
        ({"min_score": 0.3}, ["A is B", "A. A."]),
        ({"max_tokens": 17}, ["A is B", "A. A.", "E."]),  # 59, 6 and 2 characters of 68
        ({"max_tokens": 4}, ["A is B", "C is D", "E."]),
        ({"max_tokens": 1}, ["E."]),
        ({"min_score": 1.0}, []),
    ]:
        prompt = PROMPTED.to_prompt(**options)  # type: ignore[arg-type]
        assert [text for text in every if f"] {text}" in prompt] == shown


def test_facts_and_passages_are_on_one_scale() -> None:
    found = retrieve(QUESTION, open_told())
    scores = [item.score for item in found.passages]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score < 1 for score in scores)


def test_what_cannot_be_asked_or_shown_is_refused() -> None:
    for question, options, why in [
        ("", {}, "empty"),
        ("Who?", {"facts": -1}, "facts = -1"),
        ("Who?", {"passages": True}, "True"),
    ]:
        with pytest.raises(InputError, match=why):
            retrieve(question, open_told(), **options)  # type: ignore[arg-type]
    for wrong in ({"min_score": 2}, {"max_tokens": 0}):
        with pytest.raises(InputError, match="min_score"):
            PROMPTED.to_prompt(**wrong)  # type: ignore[arg-type]


def test_the_public_names_are_those_that_dir_shows() -> None:
    assert dir(kpyramid) == sorted(kpyramid.__all__)
    assert all(getattr(kpyramid, name) is not None for name in kpyramid.__all__)
    assert {"open_snapshot", "retrieve", "answer"} <= set(kpyramid.__all__)


class _Counting:
    """An embedder that keeps what it was asked."""

    name = "counting"

    def __init__(self, embed: object, calls: list[list[str]]) -> None:
        self._embed, self._calls = embed, calls

    def embed(self, texts: list[str]) -> object:
        self._calls.append(list(texts))
        return self._embed(texts)  # type: ignore[operator]
