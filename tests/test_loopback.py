"""The loopback server is a fair judge: it speaks the API, fails as told and counts right."""

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.loopback import Loopback, answer_by_schema, serve

COLOURS = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["teal", "ochre"]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    },
    "required": ["colour", "parts", "note"],
    "additionalProperties": False,
    "$defs": {
        "part": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
            "additionalProperties": False,
        }
    },
}
STRICT: Any = {
    "type": "json_schema",
    "json_schema": {"name": "colours", "strict": True, "schema": COLOURS},
}


def connect(server: Loopback, key: str = "sk-test", **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.base_url, api_key=key, max_retries=0, **options)


def ask(client: openai.OpenAI, text: str = "Say it.", **options: Any) -> Any:
    return client.chat.completions.create(
        **{
            "model": "m",
            "messages": [{"role": "user", "content": text}],
            "response_format": STRICT,
            **options,
        }
    )


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serve(answer_by_schema) as server:
        yield server


@pytest.fixture
def client(server: Loopback) -> Iterator[openai.OpenAI]:
    with connect(server) as client:
        yield client


def test_reply_is_the_smallest_instance_of_the_strict_schema(client: openai.OpenAI) -> None:
    content = json.loads(ask(client).choices[0].message.content)
    assert content == {"colour": "teal", "parts": [{"name": "x"}], "note": "x"}


def test_schema_that_is_not_strict_is_refused_with_400(client: openai.OpenAI) -> None:
    loose = {**COLOURS, "required": ["colour"]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": loose}}
    with pytest.raises(openai.BadRequestError, match="required"):
        ask(client, response_format=form)


def test_wrong_key_unknown_model_and_unwelcome_parameter_are_refused_and_counted() -> None:
    with serve(key="sk-right", models=["m"], refuses=["max_tokens"]) as server:
        with connect(server) as client, pytest.raises(openai.AuthenticationError):
            ask(client)
        with connect(server, "sk-right") as client:
            with pytest.raises(openai.NotFoundError):
                ask(client, model="n")
            with pytest.raises(openai.BadRequestError) as caught:
                ask(client, max_tokens=5)
            ask(client, max_completion_tokens=50)
            assert [m.id for m in client.models.list()] == ["m"]
    assert caught.value.code == "unsupported_parameter"
    assert [e["status"] for e in server.log] == [401, 404, 400, 200, 200]
    assert [e["done"] for e in server.log] == [False, False, False, True, True]
    assert "sk-" not in json.dumps(server.log)


@pytest.mark.parametrize("fault", ["drop", "short", "timeout"])
@pytest.mark.parametrize("after", [False, True])
def test_broken_connection_is_counted_as_done_only_after_the_work(
    server: Loopback, fault: str, after: bool
) -> None:
    server.faults.add(fault, times=1, after=after, wait=5.0)
    with connect(server, timeout=1.5) as client:
        with pytest.raises((openai.APIConnectionError, openai.APIResponseValidationError)):
            ask(client)
        assert ask(client).choices
    assert [e["done"] for e in server.log] == [after, True]


def test_mistake_of_the_answer_function_ends_the_test() -> None:
    def fail(body: dict[str, Any]) -> str:
        raise KeyError("planned")

    with (
        pytest.raises(KeyError, match="planned"),
        serve(fail) as server,
        connect(server) as client,
        pytest.raises(openai.InternalServerError),
    ):
        ask(client)


# Files and batches


def make_lines(count: int) -> bytes:
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    rows = [
        {"custom_id": f"c{n}", "method": "POST", "url": "/v1/chat/completions", "body": body}
        for n in range(count)
    ]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def submit(client: openai.OpenAI, lines: bytes, **metadata: str) -> Any:
    file = client.files.create(file=("in.jsonl", lines), purpose="batch")
    return client.batches.create(
        input_file_id=file.id,
        endpoint="/v1/chat/completions",
        completion_window="24h",
        metadata=metadata,
    )


def collect(client: openai.OpenAI, batch_id: str, looks: int = 2) -> Any:
    for _ in range(looks):
        batch = client.batches.retrieve(batch_id)
    return batch


def read_rows(client: openai.OpenAI, file_id: str | None) -> list[dict[str, Any]]:
    assert file_id
    return [json.loads(line) for line in client.files.content(file_id).text.splitlines()]


def test_batch_goes_from_validating_to_completed_and_answers_out_of_order(
    server: Loopback, client: openai.OpenAI
) -> None:
    batch = submit(client, make_lines(10), run="r1")
    assert batch.status == "validating"
    assert collect(client, batch.id, 1).status == "in_progress"
    done = collect(client, batch.id, 1)
    assert done.status == "completed"
    assert done.metadata == {"run": "r1"}
    rows = read_rows(client, done.output_file_id)
    assert sorted(row["custom_id"] for row in rows) == sorted(f"c{n}" for n in range(10))
    assert rows[0]["response"]["body"]["choices"][0]["message"]["content"] == "ok"
    assert [row["custom_id"] for row in rows] != [f"c{n}" for n in range(10)]
    assert (done.request_counts.completed, done.error_file_id) == (10, None)
    assert server.calls("item") == 10
