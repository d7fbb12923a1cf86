"""Batches at a real HTTP server: sent once, split where they must be, bad input named."""

import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import ConflictError, EndpointError, IntegrityError, RefusedError
from kpyramid.llm.batch.collect import collect
from kpyramid.llm.batch.jobs import LIMITS, Outcome, Record, read_results, save_record
from kpyramid.llm.cache import ReplyCache
from kpyramid.llm.caller import Caller, Collector, KeyLocks
from kpyramid.llm.endpoint import Dialect, open_transport, shape_request
from kpyramid.llm.task import FailureKind, Request, describe_model
from kpyramid.settings import LLMSettings
from kpyramid.storage.store import FolderStore
from tests.batch_desk import (
    DAY,
    HASTY,
    NOW,
    collect_twice,
    count_booked,
    count_owed,
    count_spent,
    list_asked,
    list_records,
    list_replies,
    make_pending,
    make_request,
    make_settings,
    open_desk,
    run_child,
    submit,
)
from tests.loopback import Loopback, serve
from tests.rows import each_row


@pytest.fixture
def settings(server: Loopback) -> LLMSettings:
    return make_settings(server.base_url)


def read_claims(content: str) -> list[str]:
    return list(json.loads(content)["claims"])


# Round trip


def test_results_are_found_by_a_later_build(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    requests = [make_request(number) for number in range(3)]
    cache = ReplyCache(FolderStore(tmp_path / "store"))
    model = describe_model(settings)

    def build() -> tuple[list[object], Collector]:
        source = Collector()
        caller = Caller(model, source, cache, KeyLocks(None))
        return [caller.ask(request, read_claims) for request in requests], source

    _, source = build()
    submission = submit(source.pending, open_desk(settings, tmp_path))
    assert (submission.submitted, submission.open, submission.pending) == (3, 3, 0)
    assert collect(open_desk(settings, tmp_path)).open == 3
    collection = collect(open_desk(settings, tmp_path))
    assert (collection.replies, collection.open, collection.again) == (3, 0, 0)
    answers, source = build()
    assert answers == [[], [], []]
    assert source.pending == {}
    assert server.calls("/batches") == 1


def test_a_line_is_what_the_transport_would_have_sent(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    transport = open_transport(settings, tmp_path / "probe.json")
    transport.send(make_request(0))
    sent = [entry["sha256"] for entry in server.log if entry["path"] == "/chat/completions"]
    submit(make_pending(settings, 1), open_desk(settings, tmp_path), transport.shape_request)
    collect_twice(settings, tmp_path)
    assert [e["sha256"] for e in server.log if e["path"] == "item"] == sent[-1:]
    transport.close()


def test_what_is_open_or_answered_is_not_submitted_again(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    pending = make_pending(settings, 3)
    submit(pending, open_desk(settings, tmp_path))
    again = submit(pending | make_pending(settings, 1, first=3), open_desk(settings, tmp_path))
    assert (again.submitted, again.open) == (1, 4)
    collect_twice(settings, tmp_path)
    late = submit(pending, open_desk(settings, tmp_path))
    assert (late.submitted, late.answered, late.open) == (0, 3, 0)
    assert sorted(list_asked(server)) == sorted({*list_asked(server)})


# Splitting


def test_files_are_no_larger_than_allowed(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    desk = open_desk(settings, tmp_path, limits=replace(HASTY, bytes=2000))
    submit(make_pending(settings, 9), desk)
    sizes = [len(content) for content in server.batches.contents.values()]
    assert len(sizes) > 1
    assert 1000 < max(sizes) <= 2000
    assert len(set(list_asked(server))) == 9


def test_a_batch_over_the_token_limit_is_resubmitted_in_halves(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("token_limit", path="/batches", times=1)
    pending = make_pending(settings, 5)
    submit(pending, open_desk(settings, tmp_path))
    failed = collect(open_desk(settings, tmp_path))
    assert (failed.open, failed.again, failed.problems) == (0, 5, [])
    for sent, waiting in ((2, 3), (2, 1), (1, 0)):
        half = submit(pending, open_desk(settings, tmp_path))
        assert (half.submitted, half.waiting) == (sent, waiting)
        assert collect_twice(settings, tmp_path).replies == sent
    assert len(list_replies(tmp_path)) == 5


def test_what_does_not_fit_the_queue_waits_until_there_is_room(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.batches.enqueued = 3
    pending = make_pending(settings, 6)
    desk = open_desk(settings, tmp_path, limits=replace(HASTY, requests=3))
    submit(pending, desk)
    collect(open_desk(settings, tmp_path))
    for _ in range(5):
        waiting = submit(pending, desk)
        assert (waiting.submitted, waiting.waiting, waiting.open) == (0, 3, 3)
    assert server.calls("/batches") == 2
    collect(open_desk(settings, tmp_path))
    assert [r.requests for r in submit(pending, desk).batches] == [1]


# Bad input


def test_fault_of_one_batch_does_not_keep_the_others_from_being_collected(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    desk = open_desk(settings, tmp_path, limits=replace(HASTY, requests=2))
    submit(make_pending(settings, 4), desk)
    server.batches.finish_all()
    server.faults.add("404", path="/files/*/content", method="GET", times=1)
    server.faults.add("400", path="/batches/batch_000002", method="GET", times=1)
    collection = collect(open_desk(settings, tmp_path, limits=LIMITS))
    assert (collection.open, len(collection.notes), len(collection.problems)) == (4, 1, 1)
    assert collect(open_desk(settings, tmp_path, limits=LIMITS)).replies == 4


@pytest.mark.parametrize("fault", ["401", "drop"])
def test_server_that_answers_nobody_is_asked_for_one_batch_only(
    fault: str, server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    desk = open_desk(settings, tmp_path, limits=replace(HASTY, requests=1))
    submit(make_pending(settings, 4), desk)
    server.faults.add(fault, path="/batches/*", method="GET", times=3)
    collection = collect(open_desk(settings, tmp_path))
    assert (collection.open, len(collection.problems)) == (4, 1)
    assert collection.refused is (fault == "401")
    assert server.calls("/batches/batch_000002", method="GET") == 0


@pytest.mark.parametrize("fault", ["short", "drop", "html", "500", "not_json", "error_200"])
@pytest.mark.parametrize("path", ["/batches/*", "/files/*/content"])
def test_answer_that_is_no_answer_leaves_the_batch_open(
    fault: str, path: str, server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 2), open_desk(settings, tmp_path))
    server.batches.finish_all()
    server.faults.add(fault, path=path, method="GET", times=3)
    collect(open_desk(settings, tmp_path, limits=LIMITS))
    server.faults.clear()
    done = collect(open_desk(settings, tmp_path, limits=LIMITS))
    assert (done.replies, len(list_replies(tmp_path))) == (2, 2)


def test_damaged_record_is_named(server: Loopback, settings: LLMSettings, tmp_path: Path) -> None:
    submit(make_pending(settings, 2), open_desk(settings, tmp_path))
    path = next((tmp_path / "store" / "batches" / "records").iterdir())
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(IntegrityError, match=path.name):
        collect(open_desk(settings, tmp_path))


def test_lost_requests_of_an_open_batch_are_named(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 2), open_desk(settings, tmp_path))
    path = next((tmp_path / "store" / "batches" / "requests").iterdir())
    path.write_bytes(path.read_bytes()[:-9])
    server.batches.finish_all()
    with pytest.raises(IntegrityError, match=path.name):
        collect(open_desk(settings, tmp_path))


# Books of batches: each reply is paid once and booked once, within the budget.


@pytest.mark.slow
def test_collect_killed_midway_and_called_again_books_each_reply_once(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    pending = make_pending(settings, 6)
    submit(pending, open_desk(settings, tmp_path))
    server.batches.finish_all()
    assert run_child("collect", server, tmp_path, "3").wait() == -9
    assert len(list_replies(tmp_path)) == 3
    assert collect(open_desk(settings, tmp_path)).replies == 6
    booked = count_booked(tmp_path)
    assert sorted(booked.values()) == [1] * 6
    assert collect(open_desk(settings, tmp_path)).booked == 0
    assert count_booked(tmp_path) == booked


def test_replies_are_booked_at_the_batch_price_for_what_they_used(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 3), open_desk(settings, tmp_path))
    most = count_spent(settings, tmp_path)
    collection = collect_twice(settings, tmp_path)
    items = [entry for entry in server.log if entry["path"] == "item"]
    prompt = sum(entry["prompt_tokens"] for entry in items)
    completion = sum(entry["completion_tokens"] for entry in items)
    dollars = (prompt * 1.0 + completion * 4.0) / 1_000_000 * 0.5
    spent = count_spent(settings, tmp_path)
    assert (spent.tokens, collection.tokens) == (prompt + completion, prompt + completion)
    assert spent.dollars == pytest.approx(dollars)
    assert collection.cost == pytest.approx(dollars)
    assert most.tokens > spent.tokens


def test_batch_that_another_warehouse_collected_counts_at_its_highest_where_it_was_submitted(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 3), open_desk(settings, tmp_path))
    most = count_spent(settings, tmp_path)
    elsewhere = replace(open_desk(settings, tmp_path), open_ledger=lambda run: None)
    server.batches.finish_all()
    assert (collect(elsewhere).replies, len(list_replies(tmp_path))) == (3, 3)
    assert collect(open_desk(settings, tmp_path)).booked == 0
    assert count_spent(settings, tmp_path) == most


def test_submit_sends_what_the_budget_allows_and_the_rest_when_there_is_room(
    server: Loopback, tmp_path: Path
) -> None:
    free = make_settings(server.base_url)
    pending = make_pending(free, 6)
    submit(pending, open_desk(free, tmp_path / "probe"))
    most = count_spent(free, tmp_path / "probe").dollars
    settings = make_settings(server.base_url, budget=most * 0.7)
    first = submit(pending, open_desk(settings, tmp_path))
    assert (first.submitted, first.refused) == (4, 2)
    assert first.refusal is not None
    assert "llm.budget" in str(first.refusal)
    assert count_spent(settings, tmp_path).dollars <= most * 0.7
    second = submit(pending, open_desk(settings, tmp_path))
    assert (second.submitted, second.refused) == (0, 2)
    collect_twice(settings, tmp_path)
    assert submit(pending, open_desk(settings, tmp_path)).submitted == 2


# Ways a batch ends (row 20 of the fault catalogue): paid replies are kept, counts add up.


def sum_outcomes(record: Record) -> int:
    assert record.counts is not None
    return sum(record.counts[outcome] for outcome in Outcome)


@each_row("fault, expected", "llm_batch_endings.counts_add_up_and_what_was_paid_for_is_kept")
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
            open_desk(settings, tmp_path, limits=LIMITS, now=lambda later=later: NOW + later)  # type: ignore[misc]
        )
        assert (waiting.open, len(waiting.notes)) == (3, 1)
    batch["output_file_id"] = file
    assert collect(open_desk(settings, tmp_path, limits=LIMITS)).replies == 3


def test_vanished_batch_gives_its_requests_back_after_a_while(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("vanished", path="/batches", times=1)
    pending = make_pending(settings, 3)
    submit(pending, open_desk(settings, tmp_path))
    for later, held in ((0.0, 3), (3599.0, 3), (3600.0, 0)):
        till = open_desk(settings, tmp_path, limits=LIMITS, now=lambda at=later: NOW + at)  # type: ignore[misc]
        assert collect(till).open == held
    assert submit(pending, open_desk(settings, tmp_path)).submitted == 3
    assert collect_twice(settings, tmp_path).replies == 3
    far = open_desk(settings, tmp_path, now=lambda: NOW + 31 * DAY)
    collect(far)
    assert [record.state for record in list_records(tmp_path)] == ["gone", "collected"]
    assert sum_outcomes(list_records(tmp_path)[0]) == 3
    assert count_owed(tmp_path) == 0


def test_stuck_batch_is_cancelled_and_what_it_still_gives_is_kept(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("stuck", path="/batches", times=1)
    pending = make_pending(settings, 4)
    submit(pending, open_desk(settings, tmp_path))
    for later in (0.0, 1.2 * DAY):
        assert collect(open_desk(settings, tmp_path, now=lambda at=later: NOW + at)).open == 4  # type: ignore[misc]
    collect(open_desk(settings, tmp_path, limits=LIMITS, now=lambda: NOW + 1.26 * DAY))
    assert server.calls("/batches/batch_000001/cancel") == 1
    late = collect(open_desk(settings, tmp_path, limits=LIMITS, now=lambda: NOW + 1.27 * DAY))
    assert (late.open, late.replies, late.again) == (0, 2, 2)
    assert submit(pending, open_desk(settings, tmp_path)).submitted == 2


# Crashes and rivals at a batch (row 19 of the fault catalogue): each request is sent once.


def wait_and_kill(child: subprocess.Popen[bytes], reached: Mapping[str, Any]) -> None:
    """SIGKILL as soon as the server has what the child sent."""
    deadline = time.monotonic() + 60
    while not reached and time.monotonic() < deadline:
        assert child.poll() is None
        time.sleep(0.02)
    assert reached
    child.kill()
    child.wait()


@pytest.mark.slow
def test_batch_of_a_process_killed_before_it_knew_the_id_is_found_and_not_made_again(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("timeout", path="/batches", after=True, times=1)
    wait_and_kill(run_child("submit", server, tmp_path), server.batches.batches)
    assert [record.state for record in list_records(tmp_path)] == ["intent"]
    again = submit(make_pending(settings, 4), open_desk(settings, tmp_path))
    assert [record.batch for record in again.batches] == list(server.batches.batches)
    assert server.calls("/batches") == 1
    assert collect_twice(settings, tmp_path).replies == 4


def test_orphan_is_found_by_collect_too_behind_pages_of_other_batches(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 4), open_desk(settings, tmp_path))
    forgotten = replace(list_records(tmp_path)[0], state="intent", batch=None, submitted=None)
    save_record(FolderStore(tmp_path / "store"), forgotten)
    first = next(iter(server.batches.batches.values()))
    for number in range(250):
        server.batches.create({**first, "metadata": {"whose": f"another's {number}"}}, None)
    assert collect_twice(settings, tmp_path).replies == 4
    assert server.calls("/batches", method="GET") == 3
    assert server.calls("/batches") == 1


@pytest.mark.slow
def test_what_a_process_killed_before_it_made_the_batch_began_is_sent_anew(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("timeout", path="/files", after=True, times=1)
    wait_and_kill(run_child("submit", server, tmp_path), server.batches.files)
    pending = make_pending(settings, 4)
    patient = replace(LIMITS, doubt=0.0)
    early = submit(pending, open_desk(settings, tmp_path, limits=patient))
    assert (early.submitted, early.unfinished, server.calls("/batches")) == (0, 4, 0)
    later = submit(pending, open_desk(settings, tmp_path, limits=patient, now=lambda: NOW + 1801))
    assert later.submitted == 4
    assert server.calls("/batches") == 1
    assert sorted(list_asked(server)) == sorted(pending)
    assert [record.state for record in list_records(tmp_path)] == ["dropped", "submitted"]


def test_intent_whose_requests_were_answered_meanwhile_is_dropped(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("401", path="/files")
    pending = make_pending(settings, 4)
    with pytest.raises(EndpointError):
        submit(pending, open_desk(settings, tmp_path))
    server.faults.clear()
    rest = dict(list(pending.items())[1:])
    assert submit(rest, open_desk(settings, tmp_path)).submitted == 3
    assert [record.state for record in list_records(tmp_path)] == ["dropped", "submitted"]
    assert sorted(list_asked(server)) == sorted(rest)
    collect_twice(settings, tmp_path)
    assert count_owed(tmp_path) == 0


@pytest.mark.parametrize("fault", ["drop", "500", "html", "409"])
def test_batch_whose_creation_was_not_acknowledged_is_found_at_once(
    fault: str, server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add(fault, path="/batches", after=True, times=1)
    assert submit(make_pending(settings, 4), open_desk(settings, tmp_path)).submitted == 4
    assert len(server.batches.batches) == 1


@pytest.mark.parametrize("fault", ["drop", "500", "html"])
def test_creation_that_may_have_happened_is_not_repeated_before_it_is_sure(
    fault: str, server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add(fault, path="/batches", times=1)
    pending, patient = make_pending(settings, 4), replace(LIMITS, doubt=0.0)
    with pytest.raises(EndpointError, match="create a batch"):
        submit(pending, open_desk(settings, tmp_path, limits=patient))
    early = submit(pending, open_desk(settings, tmp_path, limits=patient, now=lambda: NOW + 300))
    assert (early.submitted, early.unfinished) == (0, 4)
    later = submit(pending, open_desk(settings, tmp_path, limits=patient, now=lambda: NOW + 1801))
    assert later.submitted == 4
    assert len(server.batches.batches) == 1


@pytest.mark.parametrize("fault", ["400", "401", "429", "quota", "404"])
@pytest.mark.parametrize("path", ["/files", "/batches"])
def test_refused_submission_is_repeated_by_the_next_call(
    fault: str, path: str, server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add(fault, path=path, times=1)
    pending = make_pending(settings, 4)
    with pytest.raises(EndpointError) as caught:
        submit(pending, open_desk(settings, tmp_path, limits=LIMITS))
    assert server.base_url in str(caught.value)
    assert isinstance(caught.value, RefusedError) is (fault in ("401", "quota", "404"))
    assert submit(pending, open_desk(settings, tmp_path, limits=LIMITS)).submitted == 4
    assert len(server.batches.batches) == 1


def test_machine_that_submits_beside_another_asks_for_nothing(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    desk = open_desk(settings, tmp_path)

    def shape(request: Request) -> Mapping[str, Any]:
        """Another machine is faster."""
        if not server.batches.batches:
            assert submit(make_pending(settings, 2), desk).submitted == 2
        return shape_request(request, Dialect("max_tokens"), settings)

    with pytest.raises(ConflictError, match="one at a time"):
        submit(make_pending(settings, 4), desk, shape)
    assert len(server.batches.batches) == 1
    assert submit(make_pending(settings, 4), desk).submitted == 2
    assert len(list_asked(server)) == len({*list_asked(server)}) == 4


@pytest.mark.parametrize("by_variable", [False, True])
def test_what_was_begun_at_another_endpoint_is_let_run_out(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_variable: bool
) -> None:
    def point(base_url: str) -> LLMSettings:
        monkeypatch.setenv("OPENAI_BASE_URL", base_url)
        return make_settings(None if by_variable else base_url)

    settings = point(server.base_url)
    server.faults.add("drop", path="/batches", times=1)
    pending = make_pending(settings, 2)
    with pytest.raises(EndpointError):
        submit(pending, open_desk(settings, tmp_path))
    with serve() as other:
        moved = point(other.base_url)
        for later, submitted in ((0.0, 0), (1.2 * DAY, 0), (1.26 * DAY, 2)):
            desk = open_desk(moved, tmp_path, now=lambda at=later: NOW + at)  # type: ignore[misc]
            assert submit(pending, desk).submitted == submitted
    assert server.calls("/batches") == 1
