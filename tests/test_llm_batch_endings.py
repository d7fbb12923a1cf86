"""Ways a batch ends (row 20 of the fault catalogue): paid replies are kept, counts add up."""

import json
from pathlib import Path

import pytest

from kpyramid.llm.batch.collect import collect
from kpyramid.llm.batch.jobs import LIMITS, Outcome, Record, read_results
from kpyramid.llm.batch.submit import submit
from kpyramid.llm.cache import ReplyCache
from kpyramid.llm.task import FailureKind
from kpyramid.settings import LLMSettings
from kpyramid.storage.store import FolderStore
from tests.batch_desk import (
    DAY,
    NOW,
    collect_twice,
    count_booked,
    list_records,
    list_replies,
    make_pending,
    make_settings,
    open_desk,
    open_till,
)
from tests.loopback import Loopback
from tests.rows import read_rows


@pytest.fixture
def settings(server: Loopback) -> LLMSettings:
    return make_settings(server.base_url)


def sum_outcomes(record: Record) -> int:
    assert record.counts is not None
    return sum(record.counts[outcome] for outcome in Outcome)


@pytest.mark.parametrize(
    ("fault", "expected"),
    read_rows("llm_batch_endings.counts_add_up_and_what_was_paid_for_is_kept"),
)
def test_counts_add_up_and_what_was_paid_for_is_kept(
    fault: str,
    expected: dict[str, int],
    server: Loopback,
    settings: LLMSettings,
    tmp_path: Path,
) -> None:
    server.faults.add(fault, path="/batches", times=1)
    pending = make_pending(settings, 6)
    submit(pending, open_desk(settings, tmp_path))
    collection = collect_twice(settings, tmp_path)
    record = list_records(tmp_path)[0]
    assert record.state == "collected"
    assert {k: v for k, v in (record.counts or {}).items() if v} == expected
    assert sum_outcomes(record) == record.requests == 6
    good = expected.get("success", 0)
    assert len(list_replies(tmp_path)) == collection.replies == good
    assert sum(count_booked(tmp_path).values()) == good
    rest = submit(pending, open_desk(settings, tmp_path))
    assert (rest.answered, rest.submitted) == (good, 6 - good)
    collect_twice(settings, tmp_path)
    assert len(list_replies(tmp_path)) == 6


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("400", FailureKind.UNACCEPTED),
        ("too_long", FailureKind.UNACCEPTED),
        ("filter_400", FailureKind.REFUSED),
        ("429", None),
        ("500", None),
        ("401", None),
    ],
)
def test_refused_lines_become_failures_and_failed_ones_stay_pending(
    fault: str,
    kind: FailureKind | None,
    server: Loopback,
    settings: LLMSettings,
    tmp_path: Path,
) -> None:
    server.faults.add(fault, path="item", contains="Text 1.")
    pending = make_pending(settings, 3)
    bad = list(pending)[1]
    submit(pending, open_desk(settings, tmp_path))
    collection = collect_twice(settings, tmp_path)
    assert (collection.replies, collection.failures + collection.again) == (2, 1)
    entry = ReplyCache(FolderStore(tmp_path / "store")).read_failure_entry(bad)
    if kind is None:
        assert entry is None
    else:
        assert entry is not None
        assert (entry.failure.kind, entry.failure.attempts) == (kind, 1)
        assert (entry.document, entry.stage) == ("document-1", "extract")
        assert entry.messages[1] == ("user", "Text 1.")
        assert entry.response is not None
    again = submit(pending, open_desk(settings, tmp_path))
    refused = kind is FailureKind.REFUSED
    assert (again.submitted, again.failed) == ((0, 1) if refused else (1, 0))


def test_a_request_that_is_never_accepted_is_asked_three_times(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("400", path="item")
    pending = make_pending(settings, 1)
    for _ in range(5):
        submit(pending, open_desk(settings, tmp_path))
        collect_twice(settings, tmp_path)
    assert server.calls("item") == 3
    failure = ReplyCache(FolderStore(tmp_path / "store")).read_failure(next(iter(pending)))
    assert failure is not None
    assert failure.attempts == 3


def test_lines_that_are_no_results_are_counted() -> None:
    good = {"custom_id": "a", "response": {"status_code": 200, "body": {"choices": []}}}
    late = {"custom_id": "b", "response": None, "error": {"code": "odd", "message": "odd"}}
    rows: list[object] = [
        {**good, "custom_id": "c", "response": {"status_code": 200, "body": "<html>"}},
        {**good, "custom_id": "d", "response": {"status_code": "200", "body": {}}},
        {**good, "custom_id": "e", "response": None},
        {**good, "custom_id": 7},
        {"response": None},
        ["a"],
        "a",
        late,
        {**late, **good, "custom_id": "b"},
        late,
        good,
    ]
    torn = b'{"custom_id": "f", "response": {"status_code": 200, "bo'
    nan = json.dumps({**good, "custom_id": "f", "x": float("nan")}).encode()
    data = b"\n".join([*(json.dumps(row).encode() for row in rows), b"", b"[" * 9999, nan, torn])
    results = read_results("abcdef", [data], "completed")
    assert {key: str(result.outcome) for key, result in results.by_key.items()} == {
        "a": "success",
        "b": "success",
        "c": "invalid",
        "d": "invalid",
        "e": "invalid",
        "f": "missing",
    }
    assert results.strays == {"malformed": 7, "duplicate": 2}


def test_promised_output_file_is_waited_for(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 3), open_desk(settings, tmp_path))
    server.batches.finish_all()
    batch = next(iter(server.batches.batches.values()))
    file, batch["output_file_id"] = batch["output_file_id"], None
    for later in (0.0, 3599.0):
        waiting = collect(
            open_till(settings, tmp_path, limits=LIMITS, now=lambda later=later: NOW + later)  # type: ignore[misc]
        )
        assert (waiting.open, len(waiting.notes)) == (3, 1)
    batch["output_file_id"] = file
    assert collect(open_till(settings, tmp_path, limits=LIMITS)).replies == 3


def test_vanished_batch_gives_its_requests_back_after_a_while(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("vanished", path="/batches", times=1)
    pending = make_pending(settings, 3)
    submit(pending, open_desk(settings, tmp_path))
    for later, held in ((0.0, 3), (3599.0, 3), (3600.0, 0)):
        till = open_till(settings, tmp_path, limits=LIMITS, now=lambda at=later: NOW + at)  # type: ignore[misc]
        assert collect(till).open == held
    assert submit(pending, open_desk(settings, tmp_path)).submitted == 3
    assert collect_twice(settings, tmp_path).replies == 3
    far = open_till(settings, tmp_path, now=lambda: NOW + 31 * DAY)
    collect(far)
    assert [record.state for record in list_records(tmp_path)] == ["gone", "collected"]
    assert sum_outcomes(list_records(tmp_path)[0]) == 3
    assert open_desk(settings, tmp_path).ledger.list_owed() == set()


def test_stuck_batch_is_cancelled_and_what_it_still_gives_is_kept(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("stuck", path="/batches", times=1)
    pending = make_pending(settings, 4)
    submit(pending, open_desk(settings, tmp_path))
    for later in (0.0, 1.2 * DAY):
        assert collect(open_till(settings, tmp_path, now=lambda at=later: NOW + at)).open == 4  # type: ignore[misc]
    collect(open_till(settings, tmp_path, limits=LIMITS, now=lambda: NOW + 1.26 * DAY))
    assert server.calls("/batches/batch_000001/cancel") == 1
    late = collect(open_till(settings, tmp_path, limits=LIMITS, now=lambda: NOW + 1.27 * DAY))
    assert (late.open, late.replies, late.again) == (0, 2, 2)
    assert submit(pending, open_desk(settings, tmp_path)).submitted == 2
