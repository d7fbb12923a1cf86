"""Calls over real HTTP: what each failure means, and where no key goes."""

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import BudgetError, EndpointError, RefusedError
from kpyramid.keys import JsonValue
from kpyramid.llm.endpoint import (
    PROBE,
    Endpoint,
    HttpTransport,
    PageError,
    Pay,
    UnconnectedError,
    open_transport,
)
from kpyramid.llm.ledger import Ledger
from kpyramid.llm.task import (
    FailureKind,
    Message,
    ReplyError,
    Request,
    TransientError,
    Transport,
    read_response,
)
from kpyramid.settings import LLMSettings
from tests.llm_runs import Time
from tests.llm_wire import REQUEST, connect, find_unused_port, make_answer, probe, serve_bytes
from tests.loopback import Loopback, serve
from tests.rows import each_row, read_rows

SECRET = "sk-planted-5f1c7a90"


pytestmark = pytest.mark.usefixtures("no_key_of_the_shell")


def test_request_is_sent_as_strict_schema_and_the_reply_comes_back_whole(server: Loopback) -> None:
    with connect(server.base_url, temperature=0.5, seed=7, reasoning_effort="low") as transport:
        raw = transport.send(REQUEST)
    assert raw["system_fingerprint"] == "fp_loopback"
    assert read_response(raw) == '{"river": "x"}'
    assert server.log[-1]["body"] == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Name the river."},
            {"role": "user", "content": "Wien liegt an der Donau. 😀"},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "f_ent_2", "strict": True, "schema": REQUEST.schema},
        },
        "max_tokens": 200,
        "temperature": 0.5,
        "reasoning_effort": "low",
        "seed": 7,
    }


def test_temperature_of_the_model_itself_is_not_sent(server: Loopback) -> None:
    with connect(server.base_url, temperature="default") as transport:
        transport.send(REQUEST)
    assert "temperature" not in server.log[-1]["body"]


@each_row("fault, options, retry_after, sent")
def test_what_may_pass_is_transient_and_one_call(
    server: Loopback, fault: str, options: dict[str, Any], retry_after: float | None, sent: bool
) -> None:
    server.faults.add(fault, **options)
    with connect(server.base_url, timeout=1.0) as transport:
        with pytest.raises(TransientError) as caught:
            transport.send(REQUEST)
        server.faults.clear()
        assert transport.send(REQUEST)["object"] == "chat.completion"
    assert server.calls() == 2
    assert caught.value.sent is sent
    asked = caught.value.retry_after
    assert asked == (retry_after if retry_after is None else pytest.approx(retry_after, abs=1.5))


@each_row("fault, words")
def test_what_no_request_survives_is_said_with_what_to_mend(
    server: Loopback, fault: str, words: str
) -> None:
    server.faults.add(fault)
    with (
        connect(server.base_url, api_key_env="SOME_KEY") as transport,
        pytest.raises(RefusedError, match=words) as caught,
    ):
        transport.send(REQUEST)
    assert server.base_url in str(caught.value)
    assert server.calls() == 1


KINDS = (PageError, RefusedError, ReplyError, TransientError)
ERRORS: dict[str, type[Exception]] = {kind.__name__: kind for kind in KINDS}


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        *(
            (s, body.encode("latin-1"), ERRORS[error])
            for s, body, error in read_rows("llm_transport.odd_servers")
        ),
        ("200 OK", b"[" * 100_000, TransientError),
        ("500 Error", b"\xff" * 100, TransientError),
    ],
)
def test_answers_of_odd_servers_are_classified(
    status: str, body: bytes, error: type[Exception]
) -> None:
    answer = make_answer(body, status, "Location: http://127.0.0.1:9/v1\r\n")
    with serve_bytes(answer) as base_url, connect(base_url) as transport, pytest.raises(error):
        transport.send(REQUEST)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 900\r\n\r\n{",
    ],
)
def test_broken_http_is_transient(answer: bytes) -> None:
    with (
        serve_bytes(answer) as base_url,
        connect(base_url) as transport,
        pytest.raises(TransientError) as caught,
    ):
        transport.send(REQUEST)
    assert caught.value.sent


def test_reply_that_drips_is_cut_off_at_the_timeout() -> None:
    answer = make_answer(b'{"choices": []}' + b" " * 500)
    with (
        serve_bytes(answer, pause=0.01) as base_url,
        connect(base_url, timeout=0.3) as transport,
        pytest.raises(TransientError, match="too slowly"),
    ):
        transport.send(REQUEST)


def test_server_that_is_not_there_was_sent_nothing() -> None:
    base_url = f"http://127.0.0.1:{find_unused_port()}/v1"
    with connect(base_url) as transport, pytest.raises(UnconnectedError) as caught:
        transport.send(REQUEST)
    assert not caught.value.sent
    with pytest.raises(EndpointError, match=f"{base_url}: is the server running"):
        probe(base_url)


@pytest.mark.parametrize(
    "fault", ["401", "429", "500", "400", "html", "drop", "timeout", "quota", "error_200", "404"]
)
def test_planted_key_is_in_no_error_no_log_and_no_repr(
    fault: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("SOME_KEY", f" {SECRET}\n")
    caplog.set_level(logging.DEBUG)
    timeout = 1.0 if fault == "timeout" else 30.0  # a busy machine answers late
    with (
        serve(key=SECRET) as server,
        connect(server.base_url, api_key_env="SOME_KEY", timeout=timeout) as transport,
    ):
        transport.send(REQUEST)
        server.faults.add(fault, wait=1.5)
        with pytest.raises((EndpointError, ReplyError, TransientError)) as caught:
            transport.send(REQUEST)
        told = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        told += repr(transport) + repr(transport.connection) + repr(vars(transport))
    assert SECRET not in told + caplog.text
    assert caught.value.__cause__ is None
    assert not hasattr(caught.value.__context__, "request")


@pytest.mark.parametrize("status", ["200 OK", "401 No", "400 Bad", "500 Error"])
@pytest.mark.parametrize(
    "body", ["Bearer %s", '{"error": {"message": "bad key %s"}}', '{"k": "%s"}']
)
def test_key_that_a_server_echoes_is_blotted_out(
    status: str, body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", SECRET)
    answer = make_answer((body % SECRET).encode(), status)
    with serve_bytes(answer) as base_url, connect(base_url, api_key_env="SOME_KEY") as transport:
        try:
            told = str(transport.send(REQUEST))
        except (EndpointError, ReplyError, TransientError) as e:
            told = "".join(traceback.format_exception(e))
    assert SECRET not in told
    assert "[key]" in told


# Getting replies from an endpoint that fails: bounded calls, each booked, none beyond a budget.


class Bench:
    """An endpoint on a real server, in a time of its own."""

    def __init__(self, folder: Path, base_url: str, **changes: Any) -> None:
        values = {"provider": "openai", "model": "m", "timeout": 5.0, **changes}
        self.settings = LLMSettings(base_url=base_url, **values)
        self.clock = Time()
        self.books = folder / "ledger.jsonl"
        self.ledger = Ledger(self.books, self.settings)
        self.record = folder / "probe.json"
        self.opened: list[HttpTransport] = []
        self.endpoint = self.connect(self.open)

    def connect(self, opener: Callable[[Pay], Transport]) -> Endpoint:
        return Endpoint(
            opener,
            self.ledger,
            max_wait=self.settings.max_wait,
            clock=self.clock.read,
            sleep=self.clock.sleep,
        )

    def open(self, pay: Pay) -> HttpTransport:
        transport = open_transport(self.settings, self.record, pay)
        self.opened.append(transport)
        return transport

    def obtain(self, number: int = 0) -> Mapping[str, JsonValue]:
        return self.endpoint.obtain(f"key{number}", make_request(number))

    def fail(self, number: int = 0) -> FailureKind:
        with pytest.raises(ReplyError) as caught:
            self.obtain(number)
        return caught.value.kind

    @property
    def waited(self) -> float:
        return self.clock.now - 1000.0


def bound_tokens(bench: "Bench", number: int) -> int:
    """The most tokens that a request can take, prompt and reply."""
    call = bench.ledger.describe(make_request(number), "")
    return call.prompt_bound + call.completion_bound


def make_request(number: int) -> Request:
    return Request(
        "item", 1, (Message("user", f"Item {number}."),), PROBE.schema, 100, stage="extract"
    )


@pytest.fixture
def bench(tmp_path: Path, server: Loopback) -> Iterator[Bench]:
    bench = Bench(tmp_path, server.base_url)
    yield bench
    for transport in bench.opened:
        transport.close()


@pytest.mark.slow
def test_calls_that_time_out_are_bounded_and_may_have_been_billed(
    tmp_path: Path, server: Loopback
) -> None:
    bench = Bench(tmp_path, server.base_url, timeout=1.5)
    server.faults.add("timeout", skip=1, wait=3.0)
    assert bench.fail(1) is FailureKind.UNREACHED
    bench.opened[0].close()
    assert server.calls() == 1 + 5
    assert bench.ledger.spent().tokens >= 5 * bound_tokens(bench, 1)


@pytest.mark.parametrize("retry_after", [0, None])
def test_endpoint_that_stays_busy_is_asked_again_until_the_longest_wait(
    bench: Bench, server: Loopback, retry_after: float | None
) -> None:
    bench.obtain()
    before = bench.ledger.spent()
    server.faults.add("429", retry_after=retry_after)
    assert bench.fail(1) is FailureKind.DEFERRED
    assert 500 < bench.waited <= 600
    assert 20 < server.calls() < 60
    assert bench.ledger.spent() == before  # nothing was done, so nothing counts


def test_good_reply_between_bad_ones_keeps_the_run_going(bench: Bench, server: Loopback) -> None:
    bench.obtain()
    server.faults.add("500", when=lambda body: "7" not in body["messages"][-1]["content"])
    for number in range(1, 15):
        if number == 7:
            bench.obtain(number)
        else:
            assert bench.fail(number) is FailureKind.UNREACHED


def test_probe_that_fails_for_a_while_is_made_again(bench: Bench, server: Loopback) -> None:
    server.faults.add("503", times=2)
    bench.obtain()
    assert server.calls() == 4
    assert bench.record.exists()


def test_threads_probe_once(bench: Bench, server: Loopback) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(bench.obtain, range(16)))
    assert server.calls() == 17
    assert bench.record.exists()


def test_budget_below_one_call_stops_before_the_probe(tmp_path: Path, server: Loopback) -> None:
    bench = Bench(tmp_path, server.base_url, budget_tokens=100)
    with pytest.raises(BudgetError):
        bench.obtain()
    assert server.calls() == 0


class Scripted:
    """A transport that does what it is told."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def send(self, request: Request) -> Mapping[str, JsonValue]:
        raise self.error


def test_interrupted_call_counts_at_its_highest(bench: Bench) -> None:
    endpoint = bench.connect(lambda _: Scripted(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        endpoint.obtain("k", make_request(0))
    assert bench.ledger.spent().tokens == bound_tokens(bench, 0)


def test_call_that_was_not_sent_counts_for_nothing(bench: Bench) -> None:
    endpoint = bench.connect(lambda _: Scripted(TransientError("refused", sent=False)))
    with pytest.raises(ReplyError):
        endpoint.obtain("k", make_request(0))
    assert (endpoint.calls, bench.ledger.spent().tokens) == (5, 0)
