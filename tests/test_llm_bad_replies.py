"""A reply that cannot be used costs its own item only: kept raw, counted, healed by a later run."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpyramid.errors import EndpointError
from kpyramid.llm.task import FailureKind
from tests.llm_runs import (
    ITEMS,
    SICK,
    TASK,
    Time,
    answer_item,
    check_books,
    check_healed,
    count_items,
    open_cache,
    read_failed,
    run,
    run_items,
)
from tests.loopback import Loopback, serve


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serve(answer_item) as server:
        yield server


# Rows 13 to 17: replies that cannot be used

UNUSABLE = {
    "choices_null": FailureKind.EMPTY,
    "choices_empty": FailureKind.EMPTY,
    "choices_missing": FailureKind.EMPTY,
    "message_null": FailureKind.EMPTY,
    "content_null": FailureKind.EMPTY,
    "content_empty": FailureKind.EMPTY,
    "malformed": FailureKind.INVALID,
    "wrong_schema": FailureKind.INVALID,
    "surrogate": FailureKind.INVALID,
    "surrogate_raw": FailureKind.INVALID,
    "nul": FailureKind.INVALID,
    "nul_raw": FailureKind.INVALID,
    "ignores_format": FailureKind.INVALID,
    "ignores_format_json": FailureKind.INVALID,
    "too_long": FailureKind.UNACCEPTED,
    "400": FailureKind.UNACCEPTED,
}


@pytest.mark.parametrize("fault", UNUSABLE)
def test_unusable_reply_fails_its_item_alone_is_kept_raw_and_asked_again_by_the_next_run(
    server: Loopback, tmp_path: Path, fault: str
) -> None:
    server.faults.add(fault, contains=f"Item 00{SICK}")
    spoiled = run(server, tmp_path)
    assert spoiled.failures == {SICK: UNUSABLE[fault]}
    assert spoiled.answered == set(range(ITEMS)) - {SICK}
    assert count_items(server) == Counter(range(ITEMS)), "no second call in the same run"
    (entry,) = read_failed(tmp_path)
    assert (entry.task, entry.document) == (TASK, f"doc-{SICK}")
    assert (entry.response is None) == (UNUSABLE[fault] is FailureKind.UNACCEPTED)
    check_healed(server, tmp_path, spoiled, asked=1)
    assert read_failed(tmp_path) == []


@pytest.mark.parametrize("fault", ["fenced", "no_usage", "usage_null"])
def test_reply_that_can_be_read_is_taken(server: Loopback, tmp_path: Path, fault: str) -> None:
    server.faults.add(fault, contains=f"Item 00{SICK}")
    good = run(server, tmp_path)
    assert good.answered == set(range(ITEMS))
    assert good.totals.documents[f"doc-{SICK}"].tokens > 20, "counted even if nobody counts it"
    check_healed(server, tmp_path, good, asked=0)


def test_item_whose_replies_stay_bad_is_asked_by_three_runs_and_no_more(
    server: Loopback, tmp_path: Path
) -> None:
    server.faults.add("wrong_schema", contains=f"Item 00{SICK}")
    runs = [run(server, tmp_path, f"run-{n}") for n in range(5)]
    assert all(r.failures == {SICK: FailureKind.INVALID} for r in runs)
    assert count_items(server)[SICK] == 3
    assert [r.calls for r in runs[3:]] == [0, 0]
    check_books(server, *runs)


@pytest.mark.parametrize(
    "fault", ["refusal", "content_filter", "content_filter_partial", "filter_400"]
)
def test_refusal_is_recorded_for_its_item_and_not_asked_again_until_it_is_forgotten(
    server: Loopback, tmp_path: Path, fault: str
) -> None:
    server.faults.add(fault, contains=f"Item 00{SICK}")
    first, second = (run(server, tmp_path, name) for name in ("first", "second"))
    assert first.failures == second.failures == {SICK: FailureKind.REFUSED}
    assert second.calls == 0
    (entry,) = read_failed(tmp_path)
    assert entry.document == f"doc-{SICK}"
    open_cache(tmp_path).drop_failure(entry.failure.key)
    check_healed(server, tmp_path, first, second, asked=1)


# Row 16: cut off


def test_cut_reply_is_asked_once_more_with_twice_the_room(server: Loopback, tmp_path: Path) -> None:
    cut = run(server, tmp_path, max_tokens=10)  # an answer has fifteen tokens
    assert cut.answered == set(range(ITEMS))
    asked = sorted(e["max_tokens"] for e in server.log if e["schema"] == TASK)
    assert asked == [10] * ITEMS + [20] * ITEMS
    calls = server.calls()
    assert run(server, tmp_path, "again", max_tokens=10).answered == set(range(ITEMS))
    assert server.calls() == calls


def test_reply_cut_twice_fails_its_item_and_the_next_run_asks_with_the_greater_room_only(
    server: Loopback, tmp_path: Path
) -> None:
    server.faults.add("truncated", contains=f"Item 00{SICK}")
    cut = run(server, tmp_path)
    assert cut.failures == {SICK: FailureKind.TRUNCATED}
    assert [e["max_tokens"] for e in server.log if e["outcome"] == "truncated"] == [64, 128]
    assert [entry.failure.kind for entry in read_failed(tmp_path)] == [FailureKind.TRUNCATED]
    check_healed(server, tmp_path, cut, asked=1)
    assert server.log[-1]["max_tokens"] == 128


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
    server: Loopback, tmp_path: Path
) -> None:
    server.faults.add("ignores_format_json")
    ignored = run(server, tmp_path)
    assert ignored.probe["schema"] == "ignored"
    assert ignored.failures == dict.fromkeys(range(ITEMS), FailureKind.INVALID)
    assert run(server, tmp_path / "other", "other").probe["schema"] == "ignored"
    server.faults.clear()
    assert run(server, tmp_path, "healed").probe["schema"] == "kept"


@pytest.mark.parametrize("fault", ["html", "404", "401", "400", "500", "error_200"])
def test_endpoint_that_cannot_be_used_is_found_out_by_the_probe_before_any_item(
    server: Loopback, tmp_path: Path, fault: str
) -> None:
    server.faults.add(fault)
    dead = run(server, tmp_path)
    assert isinstance(dead.error, EndpointError) and dead.error.exit_code == 8
    assert server.base_url in str(dead.error) or fault in ("500", "error_200")
    assert server.calls(schema=TASK) == 0
    assert server.calls() <= 5
    check_healed(server, tmp_path, dead, asked=ITEMS)
