"""Batches at a real HTTP server: sent once, split where they must be, bad input named."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import ConflictError, EndpointError, IntegrityError, RefusedError
from kpyramid.llm.batch.collect import collect
from kpyramid.llm.batch.jobs import LIMITS, Outcome, Record, read_results, save_record
from kpyramid.llm.caller import Caller, Collector, KeyLocks
from kpyramid.llm.endpoint import Dialect, open_transport, shape_request
from kpyramid.llm.task import FailureKind, Request, describe_model
from kpyramid.settings import LLMSettings
from kpyramid.storage.store import FolderStore
from tests.batch_desk import DAY, HASTY, Bench, make_request, make_settings, submit
from tests.loopback import Loopback, serve
from tests.processes import wait_until
from tests.rows import each_row


@pytest.fixture
def bench(server: Loopback, tmp_path: Path) -> Bench:
    return Bench(server, tmp_path, make_settings(server.base_url))


def read_claims(content: str) -> list[str]:
    return list(json.loads(content)["claims"])


# Round trip


def test_results_are_found_by_a_later_build(bench: Bench) -> None:
    requests = [make_request(number) for number in range(3)]
    cache = bench.cache
    model = describe_model(bench.settings)

    def build() -> tuple[list[object], Collector]:
        source = Collector()
        caller = Caller(model, source, cache, KeyLocks(None))
        return [caller.ask(request, read_claims) for request in requests], source

    _, source = build()
    submission = bench.submit(source.pending)
    assert (submission.submitted, submission.open, submission.pending) == (3, 3, 0)
    assert bench.collect().open == 3
    collection = bench.collect()
    assert (collection.replies, collection.open, collection.again) == (3, 0, 0)
    answers, source = build()
    assert answers == [[], [], []]
    assert source.pending == {}
    assert bench.server.calls("/batches") == 1


def test_a_line_is_what_the_transport_would_have_sent(bench: Bench) -> None:
    transport = open_transport(bench.settings, bench.folder / "probe.json")
    transport.send(make_request(0))
    sent = [entry["sha256"] for entry in bench.server.log if entry["path"] == "/chat/completions"]
    submit(bench.pend(1), bench.open(), transport.shape_request)
    bench.collect_twice()
    assert [e["sha256"] for e in bench.server.log if e["path"] == "item"] == sent[-1:]
    transport.close()


def test_what_is_open_or_answered_is_not_submitted_again(bench: Bench) -> None:
    pending = bench.pend(3)
    bench.submit(pending)
    again = bench.submit(pending | bench.pend(1, first=3))
    assert (again.submitted, again.open) == (1, 4)
    bench.collect_twice()
    late = bench.submit(pending)
    assert (late.submitted, late.answered, late.open) == (0, 3, 0)
    assert sorted(bench.list_asked()) == sorted({*bench.list_asked()})


# Splitting


def test_files_are_no_larger_than_allowed(bench: Bench) -> None:
    desk = bench.open(limits=replace(HASTY, bytes=2000))
    submit(bench.pend(9), desk)
    sizes = [len(content) for content in bench.server.batches.contents.values()]
    assert len(sizes) > 1
    assert 1000 < max(sizes) <= 2000
    assert len(set(bench.list_asked())) == 9


def test_a_batch_over_the_token_limit_is_resubmitted_in_halves(bench: Bench) -> None:
    bench.server.faults.add("token_limit", path="/batches", times=1)
    pending = bench.pend(5)
    bench.submit(pending)
    failed = bench.collect()
    assert (failed.open, failed.again, failed.problems) == (0, 5, [])
    for sent, waiting in ((2, 3), (2, 1), (1, 0)):
        half = bench.submit(pending)
        assert (half.submitted, half.waiting) == (sent, waiting)
        assert bench.collect_twice().replies == sent
    assert len(bench.list_replies()) == 5


def test_what_does_not_fit_the_queue_waits_until_there_is_room(bench: Bench) -> None:
    bench.server.batches.enqueued = 3
    pending = bench.pend(6)
    desk = bench.open(limits=replace(HASTY, requests=3))
    submit(pending, desk)
    bench.collect()
    for _ in range(5):
        waiting = submit(pending, desk)
        assert (waiting.submitted, waiting.waiting, waiting.open) == (0, 3, 3)
    assert bench.server.calls("/batches") == 2
    bench.collect()
    assert [r.requests for r in submit(pending, desk).batches] == [1]


# Bad input


def test_fault_of_one_batch_does_not_keep_the_others_from_being_collected(bench: Bench) -> None:
    desk = bench.open(limits=replace(HASTY, requests=2))
    submit(bench.pend(4), desk)
    bench.server.batches.finish_all()
    bench.server.faults.add("404", path="/files/*/content", method="GET", times=1)
    bench.server.faults.add("400", path="/batches/batch_000002", method="GET", times=1)
    collection = bench.collect(limits=LIMITS)
    assert (collection.open, len(collection.notes), len(collection.problems)) == (4, 1, 1)
    assert bench.collect(limits=LIMITS).replies == 4


@pytest.mark.parametrize("fault", ["401", "drop"])
def test_server_that_answers_nobody_is_asked_for_one_batch_only(fault: str, bench: Bench) -> None:
    desk = bench.open(limits=replace(HASTY, requests=1))
    submit(bench.pend(4), desk)
    bench.server.faults.add(fault, path="/batches/*", method="GET", times=3)
    collection = bench.collect()
    assert (collection.open, len(collection.problems)) == (4, 1)
    assert collection.refused is (fault == "401")
    assert bench.server.calls("/batches/batch_000002", method="GET") == 0


@pytest.mark.parametrize("fault", ["short", "drop", "html", "500", "not_json", "error_200"])
@pytest.mark.parametrize("path", ["/batches/*", "/files/*/content"])
def test_answer_that_is_no_answer_leaves_the_batch_open(
    fault: str, path: str, bench: Bench
) -> None:
    bench.submit(bench.pend(2))
    bench.server.batches.finish_all()
    bench.server.faults.add(fault, path=path, method="GET", times=3)
    bench.collect(limits=LIMITS)
    bench.server.faults.clear()
    done = bench.collect(limits=LIMITS)
    assert (done.replies, len(bench.list_replies())) == (2, 2)


@pytest.mark.parametrize("lost", ["records", "requests"])
def test_damaged_file_of_an_open_batch_is_named(bench: Bench, lost: str) -> None:
    bench.submit(bench.pend(2))
    path = next((bench.folder / "store" / "batches" / lost).iterdir())
    path.write_bytes(path.read_bytes()[:-9])
    bench.server.batches.finish_all()
    with pytest.raises(IntegrityError, match=path.name):
        bench.collect()


# Books of batches: each reply is paid once and booked once, within the budget.


@pytest.mark.slow
def test_collect_killed_midway_and_called_again_books_each_reply_once(bench: Bench) -> None:
    pending = bench.pend(6)
    bench.submit(pending)
    bench.server.batches.finish_all()
    assert bench.run_child("collect", "3").wait() == -9
    assert len(bench.list_replies()) == 3
    assert bench.collect().replies == 6
    booked = bench.count_booked()
    assert sorted(booked.values()) == [1] * 6
    assert bench.collect().booked == 0
    assert bench.count_booked() == booked


def test_replies_are_booked_at_the_batch_price_for_what_they_used(bench: Bench) -> None:
    bench.submit(bench.pend(3))
    most = bench.count_spent()
    collection = bench.collect_twice()
    items = [entry for entry in bench.server.log if entry["path"] == "item"]
    prompt = sum(entry["prompt_tokens"] for entry in items)
    completion = sum(entry["completion_tokens"] for entry in items)
    dollars = (prompt * 1.0 + completion * 4.0) / 1_000_000 * 0.5
    spent = bench.count_spent()
    assert (spent.tokens, collection.tokens) == (prompt + completion, prompt + completion)
    assert spent.dollars == pytest.approx(dollars)
    assert collection.cost == pytest.approx(dollars)
    assert most.tokens > spent.tokens


def test_batch_that_another_warehouse_collected_counts_at_its_highest_where_it_was_submitted(
    bench: Bench,
) -> None:
    bench.submit(bench.pend(3))
    most = bench.count_spent()
    elsewhere = replace(bench.open(), open_ledger=lambda run: None)
    bench.server.batches.finish_all()
    assert (collect(elsewhere).replies, len(bench.list_replies())) == (3, 3)
    assert bench.collect().booked == 0
    assert bench.count_spent() == most


def test_submit_sends_what_the_budget_allows_and_the_rest_when_there_is_room(
    server: Loopback, tmp_path: Path
) -> None:
    free = Bench(server, tmp_path / "probe", make_settings(server.base_url))
    pending = free.pend(6)
    free.submit(pending)
    most = free.count_spent().dollars
    bench = Bench(server, tmp_path, make_settings(server.base_url, budget=most * 0.7))
    first = bench.submit(pending)
    assert (first.submitted, first.refused) == (4, 2)
    assert first.refusal is not None
    assert "llm.budget" in str(first.refusal)
    assert bench.count_spent().dollars <= most * 0.7
    second = bench.submit(pending)
    assert (second.submitted, second.refused) == (0, 2)
    bench.collect_twice()
    assert bench.submit(pending).submitted == 2


# Ways a batch ends (row 20 of the fault catalogue): paid replies are kept, counts add up.


def sum_outcomes(record: Record) -> int:
    assert record.counts is not None
    return sum(record.counts[outcome] for outcome in Outcome)


@each_row("fault, expected", "llm_batch_endings.counts_add_up_and_what_was_paid_for_is_kept")
def test_counts_add_up_and_what_was_paid_for_is_kept(
    fault: str,
    expected: dict[str, int],
    bench: Bench,
) -> None:
    bench.server.faults.add(fault, path="/batches", times=1)
    pending = bench.pend(6)
    bench.submit(pending)
    collection = bench.collect_twice()
    record = bench.list_records()[0]
    assert record.state == "collected"
    assert {k: v for k, v in (record.counts or {}).items() if v} == expected
    assert sum_outcomes(record) == record.requests == 6
    good = expected.get("success", 0)
    assert len(bench.list_replies()) == collection.replies == good
    assert sum(bench.count_booked().values()) == good
    rest = bench.submit(pending)
    assert (rest.answered, rest.submitted) == (good, 6 - good)
    bench.collect_twice()
    assert len(bench.list_replies()) == 6


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
    bench: Bench,
) -> None:
    bench.server.faults.add(fault, path="item", contains="Text 1.")
    pending = bench.pend(3)
    bad = list(pending)[1]
    bench.submit(pending)
    collection = bench.collect_twice()
    assert (collection.replies, collection.failures + collection.again) == (2, 1)
    entry = bench.cache.read_failure_entry(bad)
    if kind is None:
        assert entry is None
    else:
        assert entry is not None
        assert (entry.failure.kind, entry.failure.attempts) == (kind, 1)
        assert (entry.document, entry.stage) == ("document-1", "extract")
        assert entry.messages[1] == ("user", "Text 1.")
        assert entry.response is not None
    again = bench.submit(pending)
    refused = kind is FailureKind.REFUSED
    assert (again.submitted, again.failed) == ((0, 1) if refused else (1, 0))


def test_a_request_that_is_never_accepted_is_asked_three_times(bench: Bench) -> None:
    bench.server.faults.add("400", path="item")
    pending = bench.pend(1)
    for _ in range(5):
        bench.submit(pending)
        bench.collect_twice()
    assert bench.server.calls("item") == 3
    failure = bench.cache.read_failure(next(iter(pending)))
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


def test_promised_output_file_is_waited_for(bench: Bench) -> None:
    bench.submit(bench.pend(3))
    bench.server.batches.finish_all()
    batch = next(iter(bench.server.batches.batches.values()))
    file, batch["output_file_id"] = batch["output_file_id"], None
    for later in (0.0, 3599.0):
        waiting = collect(bench.open(limits=LIMITS, later=later))
        assert (waiting.open, len(waiting.notes)) == (3, 1)
    batch["output_file_id"] = file
    assert bench.collect(limits=LIMITS).replies == 3


def test_vanished_batch_gives_its_requests_back_after_a_while(bench: Bench) -> None:
    bench.server.faults.add("vanished", path="/batches", times=1)
    pending = bench.pend(3)
    bench.submit(pending)
    for later, held in ((0.0, 3), (3599.0, 3), (3600.0, 0)):
        till = bench.open(limits=LIMITS, later=later)
        assert collect(till).open == held
    assert bench.submit(pending).submitted == 3
    assert bench.collect_twice().replies == 3
    far = bench.open(later=31 * DAY)
    collect(far)
    assert [record.state for record in bench.list_records()] == ["gone", "collected"]
    assert sum_outcomes(bench.list_records()[0]) == 3
    assert bench.count_owed() == 0


def test_stuck_batch_is_cancelled_and_what_it_still_gives_is_kept(bench: Bench) -> None:
    bench.server.faults.add("stuck", path="/batches", times=1)
    pending = bench.pend(4)
    bench.submit(pending)
    for later in (0.0, 1.2 * DAY):
        assert bench.collect(later=later).open == 4
    bench.collect(limits=LIMITS, later=1.26 * DAY)
    assert bench.server.calls("/batches/batch_000001/cancel") == 1
    late = bench.collect(limits=LIMITS, later=1.27 * DAY)
    assert (late.open, late.replies, late.again) == (0, 2, 2)
    assert bench.submit(pending).submitted == 2


# Crashes and rivals at a batch (row 19 of the fault catalogue): each request is sent once.


def wait_and_kill(child: subprocess.Popen[bytes], reached: Mapping[str, Any]) -> None:
    """SIGKILL as soon as the server has what the child sent."""
    wait_until(lambda: reached)
    child.kill()
    child.wait()


@pytest.mark.slow
def test_batch_of_a_process_killed_before_it_knew_the_id_is_found_and_not_made_again(
    bench: Bench,
) -> None:
    bench.server.faults.add("timeout", path="/batches", after=True, times=1)
    wait_and_kill(bench.run_child("submit"), bench.server.batches.batches)
    assert [record.state for record in bench.list_records()] == ["intent"]
    again = bench.submit(bench.pend(4))
    assert [record.batch for record in again.batches] == list(bench.server.batches.batches)
    assert bench.server.calls("/batches") == 1
    assert bench.collect_twice().replies == 4


def test_orphan_is_found_by_collect_too_behind_pages_of_other_batches(bench: Bench) -> None:
    bench.submit(bench.pend(4))
    forgotten = replace(bench.list_records()[0], state="intent", batch=None, submitted=None)
    save_record(FolderStore(bench.folder / "store"), forgotten)
    first = next(iter(bench.server.batches.batches.values()))
    for number in range(250):
        bench.server.batches.create({**first, "metadata": {"whose": f"another's {number}"}}, None)
    assert bench.collect_twice().replies == 4
    assert bench.server.calls("/batches", method="GET") == 3
    assert bench.server.calls("/batches") == 1


@pytest.mark.slow
def test_what_a_process_killed_before_it_made_the_batch_began_is_sent_anew(bench: Bench) -> None:
    bench.server.faults.add("timeout", path="/files", after=True, times=1)
    wait_and_kill(bench.run_child("submit"), bench.server.batches.files)
    pending = bench.pend(4)
    patient = replace(LIMITS, doubt=0.0)
    early = bench.submit(pending, limits=patient)
    assert (early.submitted, early.unfinished, bench.server.calls("/batches")) == (0, 4, 0)
    later = bench.submit(pending, limits=patient, later=1801)
    assert later.submitted == 4
    assert bench.server.calls("/batches") == 1
    assert sorted(bench.list_asked()) == sorted(pending)
    assert [record.state for record in bench.list_records()] == ["dropped", "submitted"]


def test_intent_whose_requests_were_answered_meanwhile_is_dropped(bench: Bench) -> None:
    bench.server.faults.add("401", path="/files")
    pending = bench.pend(4)
    with pytest.raises(EndpointError):
        bench.submit(pending)
    bench.server.faults.clear()
    rest = dict(list(pending.items())[1:])
    assert bench.submit(rest).submitted == 3
    assert [record.state for record in bench.list_records()] == ["dropped", "submitted"]
    assert sorted(bench.list_asked()) == sorted(rest)
    bench.collect_twice()
    assert bench.count_owed() == 0


@pytest.mark.parametrize("fault", ["drop", "500", "html", "409"])
def test_batch_whose_creation_was_not_acknowledged_is_found_at_once(
    fault: str, bench: Bench
) -> None:
    bench.server.faults.add(fault, path="/batches", after=True, times=1)
    assert bench.submit(bench.pend(4)).submitted == 4
    assert len(bench.server.batches.batches) == 1


@pytest.mark.parametrize("fault", ["drop", "500", "html"])
def test_creation_that_may_have_happened_is_not_repeated_before_it_is_sure(
    fault: str, bench: Bench
) -> None:
    bench.server.faults.add(fault, path="/batches", times=1)
    pending, patient = bench.pend(4), replace(LIMITS, doubt=0.0)
    with pytest.raises(EndpointError, match="create a batch"):
        bench.submit(pending, limits=patient)
    early = bench.submit(pending, limits=patient, later=300)
    assert (early.submitted, early.unfinished) == (0, 4)
    later = bench.submit(pending, limits=patient, later=1801)
    assert later.submitted == 4
    assert len(bench.server.batches.batches) == 1


@pytest.mark.parametrize("fault", ["400", "401", "429", "quota", "404"])
@pytest.mark.parametrize("path", ["/files", "/batches"])
def test_refused_submission_is_repeated_by_the_next_call(
    fault: str, path: str, bench: Bench
) -> None:
    bench.server.faults.add(fault, path=path, times=1)
    pending = bench.pend(4)
    with pytest.raises(EndpointError) as caught:
        bench.submit(pending, limits=LIMITS)
    assert bench.server.base_url in str(caught.value)
    assert isinstance(caught.value, RefusedError) is (fault in ("401", "quota", "404"))
    assert bench.submit(pending, limits=LIMITS).submitted == 4
    assert len(bench.server.batches.batches) == 1


def test_machine_that_submits_beside_another_asks_for_nothing(bench: Bench) -> None:
    desk = bench.open()

    def shape(request: Request) -> Mapping[str, Any]:
        """Another machine is faster."""
        if not bench.server.batches.batches:
            assert submit(bench.pend(2), desk).submitted == 2
        return shape_request(request, Dialect("max_tokens"), bench.settings)

    with pytest.raises(ConflictError, match="one at a time"):
        submit(bench.pend(4), desk, shape)
    assert len(bench.server.batches.batches) == 1
    assert submit(bench.pend(4), desk).submitted == 2
    assert len(bench.list_asked()) == len({*bench.list_asked()}) == 4


@pytest.mark.parametrize("by_variable", [False, True])
def test_what_was_begun_at_another_endpoint_is_let_run_out(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_variable: bool
) -> None:
    def point(base_url: str) -> LLMSettings:
        monkeypatch.setenv("OPENAI_BASE_URL", base_url)
        return make_settings(None if by_variable else base_url)

    bench = Bench(server, tmp_path, point(server.base_url))
    server.faults.add("drop", path="/batches", times=1)
    pending = bench.pend(2)
    with pytest.raises(EndpointError):
        bench.submit(pending)
    with serve() as other:
        moved = Bench(other, tmp_path, point(other.base_url))
        for later, submitted in ((0.0, 0), (1.2 * DAY, 0), (1.26 * DAY, 2)):
            assert moved.submit(pending, later=later).submitted == submitted
    assert server.calls("/batches") == 1
