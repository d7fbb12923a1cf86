"""Getting replies from an endpoint that fails: bounded calls, each booked, none beyond a budget."""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import BudgetError
from kpyramid.keys import JsonValue
from kpyramid.llm.endpoint import PROBE, Endpoint, HttpTransport, Pause, Pay, open_transport
from kpyramid.llm.ledger import Ledger
from kpyramid.llm.task import FailureKind, Message, ReplyError, Request, TransientError, Transport
from kpyramid.settings import LLMSettings
from tests.loopback import Loopback


class Clock:
    """A time that only sleeping moves; threads may share it."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._guard = threading.Lock()

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        with self._guard:
            self.now += seconds


class Bench:
    """An endpoint on a real server, in a time of its own."""

    def __init__(self, folder: Path, base_url: str, **changes: Any) -> None:
        values = {"provider": "openai", "model": "m", "timeout": 5.0, **changes}
        self.settings = LLMSettings(base_url=base_url, **values)
        self.clock = Clock()
        self.books = folder / "ledger.jsonl"
        self.ledger = Ledger(self.books, self.settings)
        self.probes: list[Mapping[str, JsonValue]] = []
        self.opened: list[HttpTransport] = []
        self.pause = Pause(folder / "pause", clock=self.clock.read, sleep=self.clock.sleep)
        self.endpoint = self.connect(self.open)

    def connect(self, opener: Callable[[Pay], Transport]) -> Endpoint:
        return Endpoint(
            opener,
            self.ledger,
            self.pause,
            max_wait=self.settings.max_wait,
            clock=self.clock.read,
            sleep=self.clock.sleep,
        )

    def open(self, pay: Pay) -> HttpTransport:
        transport = open_transport(self.settings, self.probes.append, pay)
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
    assert len(bench.probes) == 1


def test_threads_probe_once(bench: Bench, server: Loopback) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(bench.obtain, range(16)))
    assert server.calls() == 17
    assert len(bench.probes) == 1


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
