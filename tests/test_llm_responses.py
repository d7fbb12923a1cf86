"""Reading replies: each way to be no use has its kind, and no count is believed blindly."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from kpyramid.llm.endpoint import Place, raise_complaint, read_complaint, read_retry_after
from kpyramid.llm.task import (
    FailureKind,
    Message,
    ReplyError,
    Request,
    TransientError,
    Usage,
    has_usage,
    parse_json,
    quote_text,
    read_response,
    read_usage,
    unfence,
)
from tests.rows import each_row, read_bodies, read_rows

PLACE = Place("http://h/v1", "m", "SOME_KEY")
REQUEST = Request("t", 1, (Message("user", "x" * 300),), {"type": "object"}, 100)
NOW = 1_700_000_000.0


class Claims(BaseModel):
    model_config = ConfigDict(extra="forbid")
    claims: tuple[str, ...]
    count: int


def make_reply(**message: object) -> dict[str, Any]:
    finish = message.pop("finish_reason", "stop")
    message.setdefault("content", '{"a": 1}')
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}


def find_kind(raw: Any) -> FailureKind:
    with pytest.raises(ReplyError) as caught:
        read_response(raw)
    assert quote_text(caught.value.detail, 10_000) == caught.value.detail
    return caught.value.kind


@pytest.mark.parametrize("finish", ["stop", "eos", None, "tool_calls"])
def test_content_counts_whatever_the_server_calls_the_end(finish: str | None) -> None:
    assert read_response(make_reply(finish_reason=finish)) == '{"a": 1}'


@pytest.mark.parametrize(
    "raw",
    read_bodies("llm_responses.reply_without_content_is_empty"),
)
def test_reply_without_content_is_empty(raw: Mapping[str, Any]) -> None:
    assert find_kind(raw) is FailureKind.EMPTY


@pytest.mark.parametrize(
    "raw",
    read_bodies("llm_responses.reply_of_another_form_is_invalid"),
)
def test_reply_of_another_form_is_invalid(raw: Any) -> None:
    assert find_kind(raw) is FailureKind.INVALID


def test_refusal_and_content_filter_are_refused_even_beside_content() -> None:
    assert find_kind(make_reply(refusal="I will not")) is FailureKind.REFUSED
    assert find_kind(make_reply(content=None, refusal="No.\ud800")) is FailureKind.REFUSED
    assert find_kind(make_reply(finish_reason="content_filter")) is FailureKind.REFUSED


def test_cut_off_reply_is_truncated_even_when_it_looks_whole_or_is_empty() -> None:
    assert find_kind(make_reply(finish_reason="length")) is FailureKind.TRUNCATED
    assert find_kind(make_reply(content=None, finish_reason="length")) is FailureKind.TRUNCATED


def count(**usage: Any) -> Usage:
    return read_usage({**make_reply(), "usage": usage}, REQUEST)


def test_usage_is_read_with_its_details() -> None:
    details = {"completion_tokens_details": {"reasoning_tokens": 4}}
    prompt = {"prompt_tokens_details": {"cached_tokens": 1024}}
    usage = count(prompt_tokens=2000, completion_tokens=9, total_tokens=2009, **details, **prompt)
    assert usage == Usage(2000, 9, 4, 1024)
    assert has_usage({"usage": {"prompt_tokens": 1, "completion_tokens": 1}})


@pytest.mark.parametrize("bad", [None, -1, 0, "12", True, 1.5, 10**15, float("inf"), [], {}])
def test_usage_that_cannot_be_true_is_estimated(bad: Any) -> None:
    reply = make_reply()
    estimated = read_usage({"choices": reply["choices"]}, REQUEST)
    assert estimated == Usage(-(-(300 + len(json.dumps(REQUEST.schema))) // 3), 3)
    assert count(prompt_tokens=bad, completion_tokens=bad, total_tokens=bad) == estimated
    odd: dict[str, Any] = {
        "completion_tokens_details": bad,
        "prompt_tokens_details": {"cached_tokens": bad},
    }
    assert count(prompt_tokens=5, completion_tokens=6, total_tokens=bad, **odd) == Usage(5, 6)
    assert read_usage({**reply, "usage": bad}, REQUEST) == estimated
    assert not has_usage({"usage": {"prompt_tokens": 5, "completion_tokens": bad}})


@each_row("text")
def test_fence_around_all_of_the_text_is_taken_off(text: str) -> None:
    assert unfence(text) == '{"a": 1}'


@pytest.mark.parametrize("text", ['Sure!\n```json\n{"a": 1}\n```', "```json\n{", '"```"', ""])
def test_what_is_no_fence_around_all_stays(text: str) -> None:
    assert unfence(text) == text


def test_fenced_json_of_the_model_is_parsed() -> None:
    text = '```json\n{"claims": ["Ärger \\ud83d\\ude00"], "count": 2}\n```'
    assert parse_json(text, Claims) == Claims(claims=("Ärger 😀",), count=2)


@each_row("text")
def test_what_stands_around_a_good_reply_is_left_out(text: str) -> None:
    assert parse_json(text, Claims) == Claims(claims=("a {b}",), count=1)


@pytest.mark.parametrize(
    "text",
    [
        *read_rows("llm_responses.not_of_the_model"),
        '{"claims": ["a"], "count": ' + "9" * 5000 + "}",
        "[" * 100_000,
        '{"claims": ' + "[" * 500 + "]" * 500 + ', "count": 1}',
    ],
)
def test_text_that_is_not_of_the_model_is_invalid(text: str) -> None:
    with pytest.raises(ReplyError) as caught:
        parse_json(text, Claims)
    assert caught.value.kind is FailureKind.INVALID
    caught.value.detail.encode("utf-8")
    assert "\0" not in caught.value.detail and len(caught.value.detail) <= 320


def test_quoted_text_is_one_short_line_that_any_file_holds() -> None:
    assert quote_text("a\n\tb\0c\ud800\x1b[2J") == "a b c? [2J"
    assert len(quote_text("x" * 1000)) == 300


@each_row("headers, seconds")
def test_time_to_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert read_retry_after(headers, NOW) == seconds


@pytest.mark.parametrize(
    "body",
    read_bodies("llm_responses.error_that_came_with_200_is_busy_when_it_says_so"),
)
def test_error_that_came_with_200_is_busy_when_it_says_so(body: Any) -> None:
    with pytest.raises(TransientError, match="slow down") as caught:
        raise_complaint(read_complaint(200, body, ""), PLACE)
    assert (caught.value.retry_after, caught.value.sent) == (0.0, False)


@pytest.mark.parametrize(
    ("body", "words"),
    read_bodies("llm_responses.what_a_server_says_is_found_in_any_shape"),
)
def test_what_a_server_says_is_found_in_any_shape(body: Any, words: str) -> None:
    assert words in read_complaint(400, body, "the page").message


def test_a_replayed_reply_took_no_tokens() -> None:
    assert read_usage({**make_reply(), "replayed": True}, REQUEST) == Usage()
