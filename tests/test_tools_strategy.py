"""A model calls typed questions at a real server; what it reads is what they gave."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kpyramid.query import Answer, Backends, answer
from tests.asked_model import ask_scripted, list_prompts
from tests.tiny_pyramid import open_tiny

WHERE = "Where was Ada Lovelace born?"


def call(tool: str, **arguments: Any) -> dict[str, str]:
    return {"call": tool, "arguments": json.dumps(arguments)}


def play(*turns: Any) -> Callable[[dict[str, Any]], Any]:
    left: Iterator[Any] = iter(turns)
    return lambda _: next(left)


def ask(folder: Path, *turns: Any, cites: tuple[int, ...] = (2,), **options: Any) -> Any:
    read = {"says": True, "cites": cites, "answer": "London", "choices": [], "confidence": 0.9}
    with ask_scripted(folder, query_tools=play(*turns), query_read=read) as (server, asker):
        backends = Backends(reader="llm", walk="llm", asker=asker)
        found = answer(WHERE, open_tiny(), "tools", backends=backends, **options)
        return found, list_prompts(server, "query_tools")


BORN = call("find", class_name="person", where=[["birth place", {"not": None}]])
DONE = {"call": "answer", "arguments": ""}


def test_an_answer_rests_on_what_the_calls_gave(tmp_path: Path) -> None:
    found, prompts = ask(tmp_path, BORN, DONE)

    assert found.text == "London"
    assert any("born in London" in place.text for place in found.evidence)
    assert found.context[0].text.endswith("at least 1")
    assert [step.outcome for step in found.trace] == ["insufficient", "answered"]
    assert len(prompts) == 2 and "Ada Lovelace; birth place: London" in prompts[1][1]


def test_a_refused_call_is_told_and_tried_again(tmp_path: Path) -> None:
    wrong = call("find", class_name="person", where=[["birth plce", None]])
    found, prompts = ask(tmp_path, wrong, BORN, DONE)

    assert found.text == "London" and found.trace[0].outcome == "failed"
    assert "no property 'birth plce'; nearest: birth place" in prompts[1][1]


def test_comparisons_paths_and_queries_are_context_too(tmp_path: Path) -> None:
    sparql = "SELECT ?name WHERE { ?p rdfs:label ?name } LIMIT 1"
    turns = (
        call("compare", first="Ada Lovelace", second="London", name="birth place"),
        call("paths", first="Ada Lovelace", second="London", hops=1),
        {"call": "sparql", "arguments": sparql},
        DONE,
    )
    found, _ = ask(tmp_path, *turns, cites=(3,))

    texts = [item.text for item in found.context]
    assert "Ada Lovelace to London by birth place: unknown" in texts
    assert "Ada Lovelace was born in London" in texts
    assert any(text.startswith("name: ") for text in texts)


def test_calls_end_with_the_budget(tmp_path: Path) -> None:
    _, prompts = ask(tmp_path, BORN, BORN, BORN, calls=2)
    assert len(prompts) == 2


@pytest.mark.parametrize("reply", ["no JSON", {"call": "seek", "arguments": "{}"}])
def test_a_reply_that_is_no_call_ends_the_calls(tmp_path: Path, reply: Any) -> None:
    found, _ = ask(tmp_path, reply, reply)
    assert found.text == "" and found.trace[0].reason.startswith("no call: invalid")


def test_without_a_model_nothing_is_asked() -> None:
    found: Answer = answer(WHERE, open_tiny(), "tools")
    assert found.text == "" and "walk = llm" in found.trace[-1].reason
