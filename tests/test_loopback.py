"""The loopback server is a fair judge: it speaks the API, fails as told and counts right."""

import base64
import json
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.loopback import Answer, Loopback, Rule, answer_by_schema, serve, spawn
from tests.loopback_replies import BODY

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


def test_usage_counts_word_pieces_schema_and_frames_not_characters(client: openai.OpenAI) -> None:
    plain = ask(client, "one two three", response_format={"type": "text"}).usage
    assert plain.prompt_tokens == 3 + 4 + 3
    assert ask(client, "one two three").usage.prompt_tokens > 100, "the schema is billed"
    assert plain.completion_tokens == 1


def test_second_long_prompt_with_the_same_beginning_is_billed_as_cached(
    client: openai.OpenAI,
) -> None:
    messages = [{"role": "system", "content": "word " * 1100}, {"role": "user", "content": "a"}]
    first, second = (ask(client, messages=messages).usage for _ in range(2))
    assert first.prompt_tokens_details.cached_tokens == 0
    assert second.prompt_tokens_details.cached_tokens == 1024


def test_long_answer_is_cut_at_the_limit_that_was_sent_and_reasoning_counts() -> None:
    def think(body: dict[str, Any]) -> Answer:
        return Answer("word " * 50, reasoning=30)

    with serve(think) as server, connect(server) as client:
        cut = ask(client, max_completion_tokens=60)
        whole = ask(client, max_completion_tokens=80)
    assert cut.choices[0].finish_reason == "length"
    assert cut.usage.completion_tokens == 60
    assert cut.choices[0].message.content.count("word") == 30
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage.completion_tokens_details.reasoning_tokens == 30


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


@pytest.mark.parametrize(
    ("fault", "error", "code"),
    [
        ("429", openai.RateLimitError, "rate_limit_exceeded"),
        ("quota", openai.RateLimitError, "insufficient_quota"),
        ("500", openai.InternalServerError, None),
        ("503", openai.InternalServerError, None),
        ("401", openai.AuthenticationError, "invalid_api_key"),
        ("404", openai.NotFoundError, "model_not_found"),
        ("filter_400", openai.BadRequestError, "content_filter"),
    ],
)
def test_fault_of_http_reaches_the_client_as_the_error_it_stands_for(
    server: Loopback, client: openai.OpenAI, fault: str, error: type[openai.APIError], code: str
) -> None:
    server.faults.add(fault, times=1)
    with pytest.raises(error) as caught:
        ask(client)
    assert caught.value.code == code
    assert ask(client).choices
    assert [e["outcome"] for e in server.log] == [fault, "answered"]


@pytest.mark.parametrize("fault", ["drop", "short", "timeout"])
@pytest.mark.parametrize("after", [False, True])
def test_broken_connection_is_counted_as_done_only_after_the_work(
    server: Loopback, fault: str, after: bool
) -> None:
    server.faults.add(fault, times=1, after=after, wait=5.0)
    with connect(server, timeout=0.2) as client:
        with pytest.raises((openai.APIConnectionError, openai.APIResponseValidationError)):
            ask(client)
        assert ask(client).choices
    assert [e["done"] for e in server.log] == [after, True]


def test_retry_after_is_sent_as_seconds_or_as_a_date(
    server: Loopback, client: openai.OpenAI
) -> None:
    server.faults.add("429", times=1, retry_after=300)
    server.faults.add("429", times=1, retry_after=0)
    server.faults.add("429", times=1, retry_after=60, as_date=True)
    server.faults.add("429", times=1)
    found: list[Any] = []
    for _ in range(4):
        with pytest.raises(openai.RateLimitError) as caught:
            ask(client)
        found.append(caught.value.response.headers.get("Retry-After"))
    assert found[:2] == ["300", "0"]
    assert found[2].endswith("GMT")
    assert found[3] is None


def test_html_and_errors_come_with_status_200(server: Loopback, client: openai.OpenAI) -> None:
    server.faults.add("html", times=1)
    server.faults.add("error_200", times=1)
    raw = client.chat.completions.with_raw_response.create
    texts = [raw(model="m", messages=[]).text for _ in range(2)]
    assert texts[0].startswith("<!DOCTYPE html>")
    assert "choices" not in json.loads(texts[1])


@pytest.mark.parametrize("fault", sorted(BODY))
def test_spoiled_reply_differs_from_the_honest_one_and_is_counted_as_done(
    server: Loopback, client: openai.OpenAI, fault: str
) -> None:
    honest = ask(client).model_dump()
    server.faults.add(fault)
    spoiled = ask(client).model_dump()
    assert {k: v for k, v in spoiled.items() if k not in ("id", "created")} != {
        k: v for k, v in honest.items() if k not in ("id", "created")
    }
    assert server.log[-1]["done"] and server.log[-1]["outcome"] == fault


def test_lone_surrogate_and_nul_come_as_escape_and_as_the_character_itself(
    server: Loopback, client: openai.OpenAI
) -> None:
    contents = []
    for fault in ("surrogate", "surrogate_raw", "nul", "nul_raw"):
        server.faults.add(fault, times=1)
        contents.append(ask(client).choices[0].message.content)
    assert '"teal\\ud800"' in contents[0] and json.loads(contents[0])["colour"] == "teal\ud800"
    assert '"teal\ud800"' in contents[1]
    assert '"teal\\u0000"' in contents[2]
    assert '"teal\0"' in contents[3]


def test_rules_count_first_n_every_nth_pieces_of_the_body_and_predicates() -> None:
    rules = [
        Rule("500", contains="red", times=2),
        Rule("502", contains="blue", every=3),
        Rule("503", when=lambda body: body["model"] == "other", skip=1),
    ]

    def strikes(text: str, model: str = "m") -> list[str]:
        return (
            [rule.fault for rule in rules if rule.strikes("POST", "/chat/completions", body, "0")]
            if (body := {"model": model, "text": text})
            else []
        )

    assert [strikes("red") for _ in range(4)] == [["500"], ["500"], [], []]
    assert [strikes("blue") for _ in range(6)] == [[], [], ["502"], [], [], ["502"]]
    assert [strikes("green", "other") for _ in range(3)] == [[], ["503"], ["503"]]


def test_share_is_drawn_per_body_and_repeat_so_that_order_does_not_matter() -> None:
    def draw(order: list[int]) -> dict[int, bool]:
        rule = Rule("truncated", share=0.2, seed=3)
        return {n: rule.strikes("POST", "/chat/completions", {}, str(n)) for n in order}

    forward, backward = draw(list(range(500))), draw(list(range(499, -1, -1)))
    assert forward == backward
    assert 70 < sum(forward.values()) < 130
    rule = Rule("truncated", share=0.2, seed=3)
    assert len({rule.strikes("POST", "/chat/completions", {}, "one") for _ in range(50)}) == 2


def test_unknown_fault_and_misspelt_option_are_refused(server: Loopback) -> None:
    with pytest.raises(ValueError, match="no fault"):
        server.faults.add("tsunami")
    with pytest.raises(TypeError):
        server.faults.add("500", tines=2)


def test_embeddings_are_unit_vectors_of_the_text_alone_in_floats_and_base64(
    server: Loopback, client: openai.OpenAI
) -> None:
    floats = client.embeddings.create(model="e", input=["a", "b"], encoding_format="float").data
    again = client.embeddings.create(model="e", input=["b"], encoding_format="float").data
    assert floats[1].embedding == again[0].embedding != floats[0].embedding
    assert sum(x * x for x in floats[0].embedding) == pytest.approx(1.0)
    packed: Any = client.embeddings.with_raw_response.create(
        model="e", input="a", encoding_format="base64", dimensions=8
    )
    text = json.loads(packed.text)["data"][0]["embedding"]
    assert len(struct.unpack("<8f", base64.b64decode(text))) == 8
    with pytest.raises(openai.BadRequestError):
        client.embeddings.create(model="e", input=["a", ""])
    server.faults.add("shuffled", path="/embeddings")
    mixed = client.embeddings.create(model="e", input=["a", "b", "c"], encoding_format="float").data
    assert [row.index for row in mixed] != [0, 1, 2]
    assert sorted(row.index for row in mixed) == [0, 1, 2]


def test_latency_holds_each_reply_back_and_requests_overlap() -> None:
    with serve(latency=0.2) as server, connect(server) as client:
        threads = [threading.Thread(target=ask, args=(client,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.wait_idle()
    assert all(e["finished"] - e["started"] >= 0.2 for e in server.log)
    assert max(e["started"] for e in server.log) < min(e["finished"] for e in server.log)


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


@pytest.mark.parametrize("status", ["expired", "cancelled"])
def test_batch_that_ends_early_gives_what_was_done_and_names_the_rest(
    server: Loopback, client: openai.OpenAI, status: str
) -> None:
    server.faults.add(status, path="/batches")
    done = collect(client, submit(client, make_lines(10)).id)
    assert done.status == status
    assert len(read_rows(client, done.output_file_id)) == 5
    errors = read_rows(client, done.error_file_id)
    assert {row["error"]["code"] for row in errors} == {f"batch_{status}"}
    assert server.calls("item") == 5


def test_batch_can_fail_late_on_the_token_limit(server: Loopback, client: openai.OpenAI) -> None:
    server.faults.add("token_limit", path="/batches")
    batch = submit(client, make_lines(3))
    assert batch.status == "validating"
    failed = collect(client, batch.id)
    assert failed.status == "failed"
    assert failed.errors.data[0].code == "token_limit_exceeded"


def test_batch_file_with_twice_the_same_custom_id_or_no_json_fails(client: openai.OpenAI) -> None:
    failed = collect(client, submit(client, make_lines(1) * 2 + b"{\n").id)
    codes = [error.code for error in failed.errors.data]
    assert codes == ["duplicate_custom_id", "invalid_json_line"]


def test_batch_results_lose_gain_and_repeat_rows_on_demand(
    server: Loopback, client: openai.OpenAI
) -> None:
    found = {}
    for fault in ("duplicate_id", "missing_id", "foreign_id", "no_output_file"):
        server.faults.add(fault, path="/batches", times=1)
        done = collect(client, submit(client, make_lines(4)).id)
        rows = read_rows(client, done.output_file_id) if done.output_file_id else []
        found[fault] = sorted(row["custom_id"] for row in rows)
    assert len(found["duplicate_id"]) == 5 and len(set(found["duplicate_id"])) == 4
    assert len(found["missing_id"]) == 3
    assert "nobody-asked-this" in found["foreign_id"]
    assert found["no_output_file"] == []


def test_batch_vanishes_hangs_and_has_an_empty_error_file_id_on_demand(
    server: Loopback, client: openai.OpenAI
) -> None:
    for fault in ("vanished", "stuck", "empty_error_file_id"):
        server.faults.add(fault, path="/batches", times=1)
    gone, stuck, empty = (submit(client, make_lines(2)).id for _ in range(3))
    with pytest.raises(openai.NotFoundError):
        client.batches.retrieve(gone)
    assert collect(client, stuck, 9).status == "in_progress"
    assert collect(client, empty).error_file_id == ""
    server.batches.finish_all()
    assert collect(client, stuck, 1).status == "completed"


def test_open_batches_together_keep_below_the_enqueued_limit(
    server: Loopback, client: openai.OpenAI
) -> None:
    server.batches.enqueued = 5
    first, second = (submit(client, make_lines(3)).id for _ in range(2))
    assert collect(client, first, 1).status == "in_progress"
    assert collect(client, second, 1).errors.data[0].code == "token_limit_exceeded"
    assert collect(client, first, 1).status == "completed"
    assert collect(client, submit(client, make_lines(3)).id).status == "completed"
    assert (server.calls("/batches"), server.calls("/files")) == (3, 3)


def test_rows_of_result_files_can_be_edited(server: Loopback, client: openai.OpenAI) -> None:
    server.batches.edit = lambda kind, rows: [{**row, "custom_id": kind} for row in rows]
    done = collect(client, submit(client, make_lines(2)).id)
    assert {row["custom_id"] for row in read_rows(client, done.output_file_id)} == {"output"}


def test_items_of_a_batch_fail_alone_into_the_error_file(
    server: Loopback, client: openai.OpenAI
) -> None:
    server.faults.add("500", path="item", every=2)
    server.faults.add("truncated", path="item", times=1)
    done = collect(client, submit(client, make_lines(6)).id)
    assert done.request_counts.failed == 3
    assert {r["response"]["status_code"] for r in read_rows(client, done.error_file_id)} == {500}
    reasons = [
        row["response"]["body"]["choices"][0]["finish_reason"]
        for row in read_rows(client, done.output_file_id)
    ]
    assert sorted(reasons) == ["length", "stop", "stop"]


def test_connection_lost_after_a_batch_was_made_leaves_an_orphan_that_the_list_shows(
    server: Loopback, client: openai.OpenAI
) -> None:
    server.faults.add("drop", path="/batches", after=True, times=1)
    with pytest.raises(openai.APIConnectionError):
        submit(client, make_lines(2), intent="i7")
    assert [batch.metadata for batch in client.batches.list()] == [{"intent": "i7"}]


def test_lists_come_in_pages_the_newest_first(client: openai.OpenAI) -> None:
    made = [submit(client, make_lines(1), n=str(n)).id for n in range(5)]
    page = client.batches.list(limit=2)
    assert ([batch.id for batch in page.data], page.has_more) == (made[:2:-1], True)
    assert [batch.id for batch in client.batches.list(limit=2)] == made[::-1]
    assert [batch.id for batch in client.batches.list(after=made[1])] == made[:1]


def test_cancelled_batch_passes_through_cancelling(client: openai.OpenAI) -> None:
    batch = submit(client, make_lines(4))
    assert client.batches.cancel(batch.id).status == "cancelling"
    assert collect(client, batch.id, 1).status == "cancelled"
    with pytest.raises(openai.ConflictError):
        client.batches.cancel(batch.id)


def test_uploaded_file_is_read_back_listed_and_deleted(client: openai.OpenAI) -> None:
    content = make_lines(3) + "ÄÖ\r\n--x--\r\n".encode()
    file = client.files.create(file=("a.jsonl", content), purpose="batch")
    assert client.files.content(file.id).content == content
    assert [f.filename for f in client.files.list()] == ["a.jsonl"]
    assert client.files.delete(file.id).deleted
    with pytest.raises(openai.NotFoundError):
        client.files.content(file.id)


def test_files_and_batches_outlive_the_server_when_they_have_a_folder(tmp_path: Path) -> None:
    with serve(folder=tmp_path) as server, connect(server) as client:
        batch_id = submit(client, make_lines(2)).id
        collect(client, batch_id, 1)
    with serve(folder=tmp_path) as server, connect(server) as client:
        done = collect(client, batch_id, 1)
        assert done.status == "completed"
        assert len(read_rows(client, done.output_file_id)) == 2


def test_server_in_its_own_process_counts_on_disk_and_is_controlled(tmp_path: Path) -> None:
    with spawn(tmp_path, key="sk-own") as remote:
        with openai.OpenAI(base_url=remote.base_url, api_key="sk-own", max_retries=0) as client:
            ask(client)
            remote.control(add={"fault": "500", "times": 1})
            with pytest.raises(openai.InternalServerError):
                ask(client)
        assert remote.calls() == 2
        assert remote.control()["calls"] == {"/chat/completions": 2}
    assert [entry["outcome"] for entry in remote.read_log()] == ["answered", "500"]
    assert len({entry["sha256"] for entry in remote.read_log()}) == 1
