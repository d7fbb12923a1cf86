"""Whatever an endpoint does, no item is lost, every call is counted, and the next run heals.

Each test runs items through caller, endpoint, openai's client, cache and books against the
loopback server; what was asked is counted there.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import BudgetError, EndpointError
from kpyramid.llm.task import FailureKind
from tests.llm_runs import (
    ITEMS,
    SICK,
    TASK,
    Time,
    answer_item,
    check_healed,
    count_items,
    read_failed,
    run,
    run_items,
)
from tests.loopback import Loopback, serve


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serve(answer_item) as server:
        yield server


def test_unchanged_second_run_makes_no_call_at_all(server: Loopback, tmp_path: Path) -> None:
    first = run(server, tmp_path)
    check_healed(server, tmp_path, first, asked=0)
    assert count_items(server) == Counter(range(ITEMS))


# Row 10: 429


@pytest.mark.parametrize(
    ("options", "least"),
    [({}, 0.1), ({"retry_after": 0}, 0.1), ({"retry_after": 300}, 300.0)],
    ids=["none", "0", "300"],
)
def test_busy_endpoint_is_waited_for_and_no_item_is_lost(
    server: Loopback, tmp_path: Path, options: dict[str, float], least: float
) -> None:
    server.faults.add("429", times=2, contains="Item", **options)
    busy = run(server, tmp_path)
    assert busy.answered == set(range(ITEMS))
    assert least <= busy.slept < 700
    assert server.calls(schema=TASK) == ITEMS + 2
    check_healed(server, tmp_path, busy, asked=0)


def test_retry_after_as_a_date_is_waited_for(server: Loopback, tmp_path: Path) -> None:
    server.faults.add("429", times=1, contains="Item", retry_after=60, as_date=True)
    busy = run(server, tmp_path, concurrency=1)
    assert busy.answered == set(range(ITEMS))
    assert 57 <= busy.slept < 70


def test_wait_longer_than_allowed_leaves_the_item_for_the_next_run(
    server: Loopback, tmp_path: Path
) -> None:
    server.faults.add("429", times=1, contains=f"Item 00{SICK}", retry_after=300)
    busy = run(server, tmp_path, max_wait=60.0)
    assert busy.failures == {SICK: FailureKind.DEFERRED}
    assert busy.answered == set(range(ITEMS)) - {SICK}
    assert busy.slept < 60
    check_healed(server, tmp_path, busy, asked=1)


# Row 11: what no waiting mends


@pytest.mark.parametrize("fault", ["quota", "401", "404"])
@pytest.mark.parametrize("begun", [False, True], ids=["first call", "in the midst"])
def test_fatal_answer_ends_the_run_after_one_call_and_resuming_pays_nothing_twice(
    server: Loopback, tmp_path: Path, fault: str, begun: bool
) -> None:
    server.faults.add(fault, skip=1 + SICK if begun else 0)
    dead = run(server, tmp_path, concurrency=1)
    assert isinstance(dead.error, EndpointError) and dead.error.exit_code == 8
    assert dead.answered == set(range(SICK if begun else 0))
    assert [e["outcome"] for e in server.log if e["path"] == "/chat/completions"].count(fault) == 1
    assert dead.slept == 0
    check_healed(server, tmp_path, dead, asked=ITEMS - len(dead.answered))


def test_refusal_for_all_stops_the_threads_that_have_not_asked_yet(tmp_path: Path) -> None:
    with serve(answer_item, latency=0.03) as server:
        server.faults.add("quota", contains="Item")
        dead = run_items(server.base_url, tmp_path, 40, concurrency=4, clock=Time())
        assert isinstance(dead.error, EndpointError)
        assert server.calls(schema=TASK) <= 4


def test_wrong_key_and_unknown_model_are_told_apart_and_cost_one_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(answer_item, key="sk-right-key-1234", models=["loopback"]) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-key-1234")
        wrong_key = run(server, tmp_path)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-right-key-1234")
        wrong_model = run(server, tmp_path, "two", model="gpt-5000")
        assert server.calls() == 2
        good = run(server, tmp_path, "three")
    assert "OPENAI_API_KEY" in str(wrong_key.error) and "sk-wrong" not in str(wrong_key.error)
    assert "gpt-5000" in str(wrong_model.error) and "loopback" in str(wrong_model.error)
    assert good.answered == set(range(ITEMS))
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert kept and not any(b"sk-right" in data or b"sk-wrong" in data for data in kept)


# Row 12: what may pass

PASSING = [
    ("500", {}),
    ("502", {}),
    ("503", {}),
    ("408", {}),
    ("timeout", {}),
    ("drop", {}),
    ("drop", {"after": True}),
    ("short", {}),
    ("short", {"after": True}),
    ("html", {}),
    ("html", {"status": 502}),
    ("error_200", {}),
    ("not_json", {}),
]


@pytest.mark.parametrize(("fault", "options"), PASSING)
def test_failure_that_passes_is_asked_again_within_the_run(
    server: Loopback, tmp_path: Path, fault: str, options: dict[str, Any]
) -> None:
    server.faults.add(fault, times=2, contains="Item", wait=3.0, **options)
    shaken = run(server, tmp_path, timeout=1.5 if fault == "timeout" else 5.0)
    assert shaken.answered == set(range(ITEMS))
    assert server.calls(schema=TASK) == ITEMS + 2
    check_healed(server, tmp_path, shaken, asked=0)


@pytest.mark.parametrize(("fault", "options"), [p for p in PASSING if p[0] != "timeout"])
def test_failure_that_stays_is_tried_five_times_then_left_for_the_next_run(
    server: Loopback, tmp_path: Path, fault: str, options: dict[str, Any]
) -> None:
    server.faults.add(fault, contains=f"Item 00{SICK}", **options)
    shaken = run(server, tmp_path)
    assert shaken.error is None
    assert shaken.failures == {SICK: FailureKind.UNREACHED}
    assert shaken.answered == set(range(ITEMS)) - {SICK}
    assert count_items(server)[SICK] == 5
    assert shaken.slept < 60
    assert [entry.failure.kind for entry in read_failed(tmp_path)] == [FailureKind.UNREACHED]
    check_healed(server, tmp_path, shaken, asked=1)
    assert read_failed(tmp_path) == []


def test_endpoint_that_fails_everybody_ends_the_run_and_the_next_one_asks_the_rest(
    server: Loopback, tmp_path: Path
) -> None:
    server.faults.add("500", contains="Item", skip=10)
    down = run_items(server.base_url, tmp_path, 40, concurrency=1, clock=Time())
    assert isinstance(down.error, EndpointError) and down.error.exit_code == 8
    assert len(down.answered) == 10
    assert server.calls(schema=TASK) == 10 + 8 * 5
    server.faults.clear()
    healed = run_items(server.base_url, tmp_path, 40, clock=Time(), name="healed")
    assert healed.answered == set(range(40))
    assert server.calls(schema=TASK) == 50 + 30


def test_work_that_was_done_before_the_connection_broke_counts_at_its_highest(
    server: Loopback, tmp_path: Path
) -> None:
    server.faults.add("drop", times=1, contains="Item", after=True)
    shaken = run(server, tmp_path)
    assert shaken.totals.run.assumed == 1
    billed = sum(
        e["prompt_tokens"] + e["completion_tokens"] for e in server.log if e["prompt_tokens"]
    )
    assert shaken.totals.run.tokens > billed


# The budget


def test_budget_stops_before_it_is_passed_and_raising_it_asks_only_for_the_rest(
    server: Loopback, tmp_path: Path
) -> None:
    items = 20
    stopped = run_items(
        server.base_url, tmp_path, items, clock=Time(), concurrency=1, budget_tokens=1200
    )
    assert isinstance(stopped.error, BudgetError) and stopped.error.exit_code == 5
    billed = sum(e["prompt_tokens"] + e["completion_tokens"] for e in server.log)
    assert 0 < billed == stopped.totals.run.tokens <= 1200
    assert 0 < len(stopped.answered) < items
    resumed = run_items(server.base_url, tmp_path, items, clock=Time(), name="resumed")
    assert resumed.answered == set(range(items))
    assert count_items(server) == Counter(range(items))
