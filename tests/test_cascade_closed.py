"""The cascade in the form for small models: numbered sentences, heads and tails by choice."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

import pytest

from kpyramid.cached import Silence
from kpyramid.extraction.cascade import closed
from kpyramid.extraction.cascade.chunks import Chunk
from kpyramid.extraction.cascade.prompts import Form
from kpyramid.extraction.cascade.reading import Cascade
from kpyramid.extraction.types import Extraction
from kpyramid.keys import JsonValue
from kpyramid.llm.types import Failure, FailureKind, ReplyError, Request
from kpyramid.model_settings import CascadeSettings, Example

T = TypeVar("T")

TEXT = (
    "Marie Curie was born in Warsaw in 1867. She shared the Nobel Prize with Pierre Curie. "
    "It was cold."
)
CHUNK = Chunk(TEXT, "Marie Curie", "doc-1")
SENTENCES = closed.list_sentences(TEXT)
CLOSED = CascadeSettings(paraphrase="llm", entities="llm", relations="llm", closed=True)
PAPER = replace(CLOSED, mode="paper")
FORM = Form(CLOSED, 512)
CLAIMS = ("Marie Curie was born in Warsaw.", "Marie Curie shared the Nobel Prize.", "It was cold.")
ENTITIES = ("Nobel Prize", "Warsaw", "Marie Curie")


class ScriptedAsker:
    """Answers every request by a function and notes it."""

    def __init__(self, answer: Callable[[Request], object]) -> None:
        self._answer = answer
        self.asked: list[Request] = []

    def ask(self, request: Request, parse: Callable[[str], T]) -> T | Failure:
        self.asked.append(request)
        try:
            return parse(json.dumps(self._answer(request)))
        except ReplyError as e:
            return Failure("key", e.kind, e.detail)


def answer(request: Request) -> object:
    replies: dict[str, object] = {
        closed.PARAPHRASE: {"1": [CLAIMS[0]], "2": [CLAIMS[1]], "3": [CLAIMS[2]]},
        closed.MERGED: {
            "1": {"entities": ["Marie Curie", "Warsaw"], "claims": [CLAIMS[0]]},
            "2": {"entities": ["Nobel Prize"], "claims": [CLAIMS[1]]},
            "3": {"entities": ["cold"], "claims": [CLAIMS[2]]},
        },
        closed.ENTITIES: {"1": ["Marie Curie", "Warsaw"], "2": ["Nobel Prize"], "3": ["cold"]},
        closed.RELATIONS: {
            "1": [
                {"head": "Marie Curie", "relation": "was born in", "tail": "Warsaw"},
                {"head": "Marie Curie", "relation": "was born in", "tail": "Warsaw"},
            ],
            "2": [{"head": "Marie Curie", "relation": "shared", "tail": "Nobel Prize"}],
        },
    }
    return replies[request.task]


def read(
    settings: CascadeSettings, answer: Callable[[Request], object]
) -> tuple[Extraction | Failure, ScriptedAsker]:
    def refuse(texts: Sequence[str]) -> Sequence[Extraction]:
        raise AssertionError("the rules were asked")

    asker = ScriptedAsker(answer)
    cascade = Cascade(asker, settings, model="m", max_tokens=512, concurrency=1, progress=Silence())
    (made,) = cascade.read([CHUNK], refuse)
    return made, asker


def list_parts(schema: JsonValue) -> Iterator[dict[str, JsonValue]]:
    if isinstance(schema, dict):
        yield schema
        for part in schema.values():
            yield from list_parts(part)


@pytest.mark.parametrize(
    ("settings", "tasks"),
    [
        (CLOSED, [closed.MERGED, closed.RELATIONS]),
        (PAPER, [closed.PARAPHRASE, closed.ENTITIES, closed.RELATIONS]),
    ],
    ids=["merged", "paper"],
)
def test_facts_rest_on_the_sentence_of_their_number(
    settings: CascadeSettings, tasks: list[str]
) -> None:
    made, asker = read(settings, answer)
    assert isinstance(made, Extraction)
    assert [request.task for request in asker.asked] == tasks
    assert [(fact.head, fact.relation, fact.tail) for fact in made.facts] == [
        ("Marie Curie", "was born in", "Warsaw"),
        ("Marie Curie", "shared", "Nobel Prize"),
    ]
    evidence = [made.claims[fact.claim].spans[0] for fact in made.facts]
    assert [TEXT[span.start : span.end] for span in evidence] == SENTENCES[:2]
    assert [(dropped.reason, dropped.text) for dropped in made.dropped] == [
        ("repeated", "Marie Curie | was born in | Warsaw")
    ]


def test_reply_has_a_short_list_for_every_sentence_and_no_other() -> None:
    schema = closed.render_paraphrase(CHUNK, FORM).schema
    assert schema["required"] == ["1", "2", "3"]
    for request in (closed.render_paraphrase(CHUNK, FORM), closed.render_merged(CHUNK, FORM)):
        lists = [part for part in list_parts(request.schema) if part.get("type") == "array"]
        assert lists
        assert all({"minItems", "maxItems"} <= part.keys() for part in lists)


def test_every_object_of_a_schema_is_strict() -> None:
    for task in closed.SYSTEMS:
        objects = [
            part
            for part in list_parts(closed.describe_form(task, FORM))
            if part.get("type") == "object"
        ]
        assert objects
        for each in objects:
            assert each["additionalProperties"] is False
            assert each["required"] == list(each["properties"])  # type: ignore[arg-type]


def test_heads_and_tails_are_chosen_from_the_entities_that_the_claim_names() -> None:
    request = closed.render_relations(CLAIMS, ENTITIES, CHUNK, FORM)
    assert request is not None
    enums = [part["enum"] for part in list_parts(request.schema) if "enum" in part]
    first, second = ["Marie Curie", "Warsaw"], ["Marie Curie", "Nobel Prize"]
    assert enums == [first, first, second, second]
    assert "1: Marie Curie was born in Warsaw. [Marie Curie; Warsaw]" in request.messages[1].content
    assert "It was cold." not in request.messages[1].content


def test_without_a_claim_that_names_two_entities_nothing_is_asked() -> None:
    assert closed.render_relations(CLAIMS, ("Warsaw",), CHUNK, FORM) is None
    made, asker = read(
        PAPER,
        lambda request: (
            {"1": ["Warsaw"], "2": ["Warsaw"], "3": ["cold"]}
            if request.task == closed.ENTITIES
            else answer(request)
        ),
    )
    assert isinstance(made, Extraction)
    assert made.facts == ()
    assert len(made.claims) == 3
    assert len(asker.asked) == 2


def test_claim_that_runs_ahead_rests_on_the_sentence_that_states_it() -> None:
    content = json.dumps({"1": [CLAIMS[0], CLAIMS[1]], "2": [CLAIMS[1]], "3": ["It was warm."]})
    statements = closed.parse_paraphrase(content, TEXT)
    assert [s.claim for s in statements] == [*CLAIMS[:2], "It was warm."]
    assert [s.evidence for s in statements] == SENTENCES


def test_clause_is_no_entity_and_the_same_one_is_said_once() -> None:
    long = "a very cold winter in which nobody could go out"
    content = json.dumps(
        {"1": ["Warsaw.", "warsaw", long, "its winter, Warsaw"], "2": ["Rome, Italy"]}
    )
    assert closed.parse_entities(content, 2) == ("Warsaw", "Rome", "Italy")


def test_end_that_a_server_let_through_against_the_enum_costs_its_row_only() -> None:
    def invent(request: Request) -> object:
        if request.task != closed.RELATIONS:
            return answer(request)
        rows = [
            {"head": "Marie Curie", "relation": "was born in", "tail": "Warsaw"},
            {"head": "Marie Curie", "relation": "was born in", "tail": "Paris"},
            {"head": "Warsaw", "relation": "is", "tail": "Warsaw"},
        ]
        return {"1": rows, "2": []}

    made, _ = read(CLOSED, invent)
    assert isinstance(made, Extraction)
    assert [fact.tail for fact in made.facts] == ["Warsaw"]
    assert [dropped.reason for dropped in made.dropped] == ["unknown_entity", "self_reference"]


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"1": ["a"], "2": ["b"]},
        {"1": ["a"], "2": ["b"], "3": ["c"], "4": ["d"]},
        {"1": "a", "2": "b", "3": "c"},
        {"claims": ["a"]},
        ["a", "b", "c"],
    ],
    ids=str,
)
def test_reply_without_a_list_for_each_number_is_invalid(reply: object) -> None:
    made, asker = read(PAPER, lambda _: reply)
    assert isinstance(made, Failure)
    assert made.kind is FailureKind.INVALID
    assert len(asker.asked) == 1


@pytest.mark.parametrize(
    "content", ["{}", '{"1": []}', '{"1": [], "2": [], "3": []}', '{"1": [], "2": [], "9": []}']
)
def test_triples_of_other_claims_than_were_asked_about_are_invalid(content: str) -> None:
    assert closed.parse_relations('{"1": [], "2": []}', CLAIMS, ENTITIES) == ((), (), ())
    with pytest.raises(ReplyError, match="each of 1, 2"):
        closed.parse_relations(content, CLAIMS, ENTITIES)


def test_examples_of_the_settings_take_the_place_of_the_built_in_one() -> None:
    example = Example(
        "Aspirin treats headache.",
        ("Aspirin treats headache.",),
        ("Aspirin", "headache"),
        (("Aspirin", "treats", "headache"),),
    )
    given = Form(replace(CLOSED, examples=(example,)), 512)
    for task in closed.SYSTEMS:
        assert "Aspirin" in closed.write_static(task, given)
        assert "Hedda" not in closed.write_static(task, given)
        assert "Hedda" in closed.write_static(task, FORM)


def test_what_all_chunks_share_comes_first_and_is_the_same() -> None:
    other = Chunk("Oslo is the capital of Norway.", "Oslo", "doc-2")
    for render in (closed.render_paraphrase, closed.render_merged):
        assert render(CHUNK, FORM).messages[0] == render(other, FORM).messages[0]
        assert "Curie" not in render(CHUNK, FORM).messages[0].content
