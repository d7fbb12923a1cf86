"""Whatever an endpoint does, no item is lost, every call is counted, and the next run heals.

Each test runs items through caller, endpoint, openai's client, cache and books against the
loopback server; what was asked is counted there.
"""

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import BudgetError, EndpointError
from kpyramid.llm.task import FailureKind, describe_model, key_request
from kpyramid.settings import LLMSettings
from tests.llm_runs import (
    ITEMS,
    SICK,
    TASK,
    Lab,
    Time,
    answer_item,
    check_books,
    count_items,
    make_request,
    open_cache,
    run_items,
)
from tests.loopback import Loopback, serve
from tests.rows import each_row, read_rows

ANSWER = answer_item


@pytest.fixture
def lab(server: Loopback, tmp_path: Path) -> Lab:
    return Lab(server, tmp_path)


def test_unchanged_second_run_makes_no_call_at_all(lab: Lab) -> None:
    first = lab.run()
    lab.check_healed(first, asked=0)
    assert lab.count_items() == Counter(range(ITEMS))


# Row 10: 429


@pytest.mark.parametrize(
    ("options", "least"),
    [({}, 0.1), ({"retry_after": 0}, 0.1), ({"retry_after": 300}, 300.0)],
    ids=["none", "0", "300"],
)
def test_busy_endpoint_is_waited_for_and_no_item_is_lost(
    lab: Lab, options: dict[str, float], least: float
) -> None:
    lab.server.faults.add("429", times=2, contains="Item", **options)
    busy = lab.run()
    assert busy.answered == set(range(ITEMS))
    assert least <= busy.slept < 700
    assert lab.server.calls(schema=TASK) == ITEMS + 2
    lab.check_healed(busy, asked=0)


def test_retry_after_as_a_date_is_waited_for(lab: Lab) -> None:
    lab.server.faults.add("429", times=1, contains="Item", retry_after=60, as_date=True)
    busy = lab.run(concurrency=1)
    assert busy.answered == set(range(ITEMS))
    assert 57 <= busy.slept < 70


def test_wait_longer_than_allowed_leaves_the_item_for_the_next_run(lab: Lab) -> None:
    lab.server.faults.add("429", times=1, contains=f"Item 00{SICK}", retry_after=300)
    busy = lab.run(max_wait=60.0)
    assert busy.failures == {SICK: FailureKind.DEFERRED}
    assert busy.answered == set(range(ITEMS)) - {SICK}
    assert busy.slept < 60
    lab.check_healed(busy, asked=1)


# Row 11: what no waiting mends


@pytest.mark.parametrize("fault", ["quota", "401", "404"])
@pytest.mark.parametrize("begun", [False, True], ids=["first call", "in the midst"])
def test_fatal_answer_ends_the_run_after_one_call_and_resuming_pays_nothing_twice(
    lab: Lab, fault: str, begun: bool
) -> None:
    lab.server.faults.add(fault, skip=1 + SICK if begun else 0)
    dead = lab.run(concurrency=1)
    assert isinstance(dead.error, EndpointError) and dead.error.exit_code == 8
    assert dead.answered == set(range(SICK if begun else 0))
    asked = [e["outcome"] for e in lab.server.log if e["path"] == "/chat/completions"]
    assert asked.count(fault) == 1
    assert dead.slept == 0
    lab.check_healed(dead, asked=ITEMS - len(dead.answered))


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
        lab = Lab(server, tmp_path)
        wrong_key = lab.run()
        monkeypatch.setenv("OPENAI_API_KEY", "sk-right-key-1234")
        wrong_model = lab.run("two", model="gpt-5000")
        assert server.calls() == 2
        good = lab.run("three")
    assert "OPENAI_API_KEY" in str(wrong_key.error) and "sk-wrong" not in str(wrong_key.error)
    assert "gpt-5000" in str(wrong_model.error) and "kpyramid doctor" in str(wrong_model.error)
    assert good.answered == set(range(ITEMS))
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert kept and not any(b"sk-right" in data or b"sk-wrong" in data for data in kept)


# Row 12: what may pass


@each_row("fault, options")
def test_failure_that_stays_is_tried_five_times_then_left_for_the_next_run(
    lab: Lab, fault: str, options: dict[str, Any]
) -> None:
    lab.server.faults.add(fault, contains=f"Item 00{SICK}", **options)
    shaken = lab.run()
    assert shaken.error is None
    assert shaken.failures == {SICK: FailureKind.UNREACHED}
    assert shaken.answered == set(range(ITEMS)) - {SICK}
    assert lab.count_items()[SICK] == 5
    assert shaken.slept < 60
    assert [entry.failure.kind for entry in lab.read_failed()] == [FailureKind.UNREACHED]
    lab.check_healed(shaken, asked=1)
    assert lab.read_failed() == []


def test_endpoint_that_fails_everybody_ends_the_run_and_the_next_one_asks_the_rest(
    lab: Lab,
) -> None:
    lab.server.faults.add("500", contains="Item", skip=10)
    down = run_items(lab.server.base_url, lab.folder, 40, concurrency=1, clock=Time())
    assert isinstance(down.error, EndpointError) and down.error.exit_code == 8
    assert len(down.answered) == 10
    assert lab.server.calls(schema=TASK) == 10 + 8 * 5
    lab.server.faults.clear()
    healed = run_items(lab.server.base_url, lab.folder, 40, clock=Time(), name="healed")
    assert healed.answered == set(range(40))
    assert lab.server.calls(schema=TASK) == 50 + 30


def test_work_that_was_done_before_the_connection_broke_counts_at_its_highest(lab: Lab) -> None:
    lab.server.faults.add("drop", times=1, contains="Item", after=True)
    shaken = lab.run()
    assert shaken.totals.run.assumed == 1
    billed = sum(
        e["prompt_tokens"] + e["completion_tokens"] for e in lab.server.log if e["prompt_tokens"]
    )
    assert shaken.totals.run.tokens > billed


# The budget


def test_budget_stops_before_it_is_passed_and_raising_it_asks_only_for_the_rest(lab: Lab) -> None:
    items = 20
    stopped = run_items(
        lab.server.base_url, lab.folder, items, clock=Time(), concurrency=1, budget_tokens=1200
    )
    assert isinstance(stopped.error, BudgetError) and stopped.error.exit_code == 5
    billed = sum(e["prompt_tokens"] + e["completion_tokens"] for e in lab.server.log)
    assert 0 < billed == stopped.totals.run.tokens <= 1200
    assert 0 < len(stopped.answered) < items
    resumed = run_items(lab.server.base_url, lab.folder, items, clock=Time(), name="resumed")
    assert resumed.answered == set(range(items))
    assert lab.count_items() == Counter(range(items))


# A reply that cannot be used costs its own item only: kept raw, counted, healed by a later run.


# Rows 13 to 17: replies that cannot be used

UNUSABLE = {fault: FailureKind[kind] for fault, kind in read_rows("llm_faults.unusable")}


@pytest.mark.parametrize("fault", UNUSABLE)
def test_unusable_reply_fails_its_item_alone_is_kept_raw_and_asked_again_by_the_next_run(
    lab: Lab, fault: str
) -> None:
    lab.server.faults.add(fault, contains=f"Item 00{SICK}")
    spoiled = lab.run()
    assert spoiled.failures == {SICK: UNUSABLE[fault]}
    assert spoiled.answered == set(range(ITEMS)) - {SICK}
    assert lab.count_items() == Counter(range(ITEMS)), "no second call in the same run"
    (entry,) = lab.read_failed()
    assert (entry.task, entry.document) == (TASK, f"doc-{SICK}")
    assert (entry.response is None) == (UNUSABLE[fault] is FailureKind.UNACCEPTED)
    lab.check_healed(spoiled, asked=1)
    assert lab.read_failed() == []


@pytest.mark.parametrize("fault", ["fenced", "no_usage", "usage_null"])
def test_reply_that_can_be_read_is_taken(lab: Lab, fault: str) -> None:
    lab.server.faults.add(fault, contains=f"Item 00{SICK}")
    good = lab.run()
    assert good.answered == set(range(ITEMS))
    assert good.totals.documents[f"doc-{SICK}"].tokens > 20, "counted even if nobody counts it"
    lab.check_healed(good, asked=0)


def test_item_whose_replies_stay_bad_is_asked_by_three_runs_and_no_more(lab: Lab) -> None:
    lab.server.faults.add("wrong_schema", contains=f"Item 00{SICK}")
    runs = [lab.run(f"run-{n}") for n in range(5)]
    assert all(r.failures == {SICK: FailureKind.INVALID} for r in runs)
    assert lab.count_items()[SICK] == 3
    assert [r.calls for r in runs[3:]] == [0, 0]
    lab.check_books(*runs)


@pytest.mark.parametrize(
    "fault", ["refusal", "content_filter", "content_filter_partial", "filter_400"]
)
def test_refusal_is_recorded_for_its_item_and_not_asked_again_until_it_is_forgotten(
    lab: Lab, fault: str
) -> None:
    lab.server.faults.add(fault, contains=f"Item 00{SICK}")
    first, second = (lab.run(name) for name in ("first", "second"))
    assert first.failures == second.failures == {SICK: FailureKind.REFUSED}
    assert second.calls == 0
    (entry,) = lab.read_failed()
    assert entry.document == f"doc-{SICK}"
    open_cache(lab.folder).drop_failure(entry.failure.key)
    lab.check_healed(first, second, asked=1)


# Row 16: cut off


def test_cut_reply_is_asked_once_more_with_twice_the_room(lab: Lab) -> None:
    cut = lab.run(max_tokens=10)  # an answer has fifteen tokens
    assert cut.answered == set(range(ITEMS))
    asked = sorted(e["max_tokens"] for e in lab.server.log if e["schema"] == TASK)
    assert asked == [10] * ITEMS + [20] * ITEMS
    calls = lab.server.calls()
    assert lab.run("again", max_tokens=10).answered == set(range(ITEMS))
    assert lab.server.calls() == calls


def test_reply_cut_twice_fails_its_item_and_the_next_run_asks_with_the_greater_room_only(
    lab: Lab,
) -> None:
    lab.server.faults.add("truncated", contains=f"Item 00{SICK}")
    cut = lab.run()
    assert cut.failures == {SICK: FailureKind.TRUNCATED}
    assert [e["max_tokens"] for e in lab.server.log if e["outcome"] == "truncated"] == [64, 128]
    assert [entry.failure.kind for entry in lab.read_failed()] == [FailureKind.TRUNCATED]
    lab.check_healed(cut, asked=1)
    assert lab.server.log[-1]["max_tokens"] == 128


@pytest.mark.parametrize("fault", ["truncated", "truncated_empty"])
def test_one_reply_in_five_cut_off_loses_nothing_and_heals(tmp_path: Path, fault: str) -> None:
    items, runs = 40, []
    with serve(answer_item) as server:
        server.faults.add(fault, contains="Item", share=0.2, seed=1)
        for number in range(4):
            runs.append(
                run_items(server.base_url, tmp_path, items, clock=Time(), name=f"run-{number}")
            )
            assert len(runs[-1].answered) + len(runs[-1].failures) == items
            check_books(server, *runs)
        cut = sum(e["outcome"] == fault for e in server.log)
        calls = server.calls(schema=TASK)
    assert set(runs[0].failures.values()) == {FailureKind.TRUNCATED}, "choose another seed"
    assert runs[-1].answered == set(range(items))
    assert runs[-1].calls == 0
    assert calls == items + cut, "one call per item and one per reply that was cut"


# Row 17: the probe


def test_probe_says_that_the_schema_is_ignored_and_replies_are_checked_all_the_same(
    lab: Lab,
) -> None:
    lab.server.faults.add("ignores_format_json")
    ignored = lab.run()
    assert ignored.probe["schema"] == "ignored"
    assert ignored.failures == dict.fromkeys(range(ITEMS), FailureKind.INVALID)
    assert Lab(lab.server, lab.folder / "other").run("other").probe["schema"] == "ignored"
    lab.server.faults.clear()
    assert lab.run("healed").probe["schema"] == "kept"


@pytest.mark.parametrize("fault", ["html", "404", "401", "400", "500", "error_200"])
def test_endpoint_that_cannot_be_used_is_found_out_by_the_probe_before_any_item(
    lab: Lab, fault: str
) -> None:
    lab.server.faults.add(fault)
    dead = lab.run()
    assert isinstance(dead.error, EndpointError) and dead.error.exit_code == 8
    assert lab.server.base_url in str(dead.error) or fault in ("500", "error_200")
    assert lab.server.calls(schema=TASK) == 0
    assert lab.server.calls() <= 5
    lab.check_healed(dead, asked=ITEMS)


# A run that dies at any moment has lost nothing it paid for: counted at the lab.server.


ROOT = Path(__file__).resolve().parent.parent


def start_child(server: Loopback, folder: Path, items: int, *death: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.llm_runs", server.base_url, str(folder), str(items)]
    return subprocess.Popen([*command, *death], cwd=ROOT)


def find_stored(folder: Path, items: int) -> set[int]:
    """The items whose replies are in the cache."""
    model = describe_model(LLMSettings(provider="openai", model="loopback"))
    cache = open_cache(folder)
    keys = {n: key_request(make_request(n), model) for n in range(items)}
    return {n for n, key in keys.items() if cache.read_reply(key) is not None}


def check_resumed(server: Loopback, folder: Path, items: int, stored: set[int]) -> None:
    """The run after a death asks for every item that is not stored, and for no other."""
    server.wait_idle()
    before = count_items(server)
    resumed = run_items(server.base_url, folder, items, name="resumed")
    assert resumed.answered == set(range(items))
    asked = count_items(server) - before
    assert asked == Counter(set(range(items)) - stored)
    repeated = before.keys() & asked.keys()
    assert len(repeated) <= 4, "only what was under way when it died"
    calls = server.calls()
    assert run_items(server.base_url, folder, items, name="again").calls == 0
    assert server.calls() == calls


@pytest.mark.slow
@pytest.mark.parametrize("moment", [1, 7, 41, 60])
def test_killed_among_sixty_requests_no_finished_item_is_asked_again(
    tmp_path: Path, moment: int
) -> None:
    with serve(answer_item, latency=0.02) as server:
        child = start_child(server, tmp_path, 60)
        while len(server.log) < moment:  # the probe is the first
            assert child.poll() is None
            time.sleep(0.001)
        child.kill()
        assert child.wait() == -9
        stored = find_stored(tmp_path, 60)
        assert len(stored) >= moment - 1 - 4
        check_resumed(server, tmp_path, 60, stored)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "number"), [("send", 2), ("received", 1), ("received", 17), ("stored", 17)]
)
def test_death_between_two_steps_costs_at_most_the_calls_under_way(
    lab: Lab, step: str, number: int
) -> None:
    assert start_child(lab.server, lab.folder, 60, f"{step}:{number}").wait() == -9
    stored = find_stored(lab.folder, 60)
    if step == "stored":
        assert len(stored) >= number
    check_resumed(lab.server, lab.folder, 60, stored)


@pytest.mark.slow
def test_two_processes_at_once_ask_each_item_once(tmp_path: Path) -> None:
    with serve(answer_item, latency=0.02) as server:
        children = [start_child(server, tmp_path, 60) for _ in range(2)]
        assert [child.wait() for child in children] == [0, 0]
        assert count_items(server) == Counter(range(60))
        books = list(tmp_path.glob("run-*/ledger.jsonl"))
        lines = [json.loads(line) for path in books for line in path.read_text().splitlines()]
        settled = [line for line in lines if line["event"] != "reserved"]
        assert len(settled) == server.calls()
