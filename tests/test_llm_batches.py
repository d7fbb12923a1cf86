"""Batches at a real HTTP server: each request once, each paid reply kept, counts that add up."""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

from kpyramid.errors import EndpointError, IntegrityError
from kpyramid.llm.batch_collect import Collection, collect
from kpyramid.llm.batch_files import Outcome, read_results
from kpyramid.llm.batch_submit import submit
from kpyramid.llm.batches import (
    LIMITS,
    Record,
    claim_record,
    claim_turn,
    list_open_keys,
    read_records,
    save_record,
)
from kpyramid.llm.books import read_lines
from kpyramid.llm.cache import ReplyCache
from kpyramid.llm.caller import Caller, Collector
from kpyramid.llm.locks import KeyLocks
from kpyramid.llm.stores import FolderStore
from kpyramid.llm.transport import open_client, open_transport
from kpyramid.llm.types import (
    Failure,
    FailureKind,
    describe_model,
)
from kpyramid.model_settings import LLMSettings
from tests.batch_desk import (
    HASTY,
    RUN,
    make_pending,
    make_request,
    make_settings,
    open_books,
    open_desk,
    open_till,
)
from tests.loopback import Loopback, serve

DAY = 86_400.0
NOW = 1_000_000.0


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serve() as running:
        yield running


@pytest.fixture
def settings(server: Loopback) -> LLMSettings:
    return make_settings(server.base_url)


def list_records(folder: Path) -> list[Record]:
    return read_records(FolderStore(folder / "store"))


def list_replies(folder: Path) -> set[str]:
    return {key for key, _ in ReplyCache(FolderStore(folder / "store")).list_replies()}


def collect_twice(settings: LLMSettings, folder: Path) -> Collection:
    """The first look only sees the batch in progress."""
    collect(open_till(settings, folder))
    return collect(open_till(settings, folder))


def sum_outcomes(record: Record) -> int:
    assert record.counts is not None
    return sum(record.counts[outcome] for outcome in Outcome)


def read_claims(content: str) -> list[str]:
    return list(json.loads(content)["claims"])


def list_asked(server: Loopback) -> list[str]:
    """The custom_ids of all batches that were created, with repetitions."""
    used = [batch["input_file_id"] for batch in server.batches.batches.values()]
    lines = [line for file in used for line in server.batches.contents[file].splitlines()]
    return [json.loads(line)["custom_id"] for line in lines]


def count_booked(folder: Path) -> Counter[str]:
    """Settled and billed lines per name."""
    lines, torn = read_lines(folder / "runs" / RUN / "ledger.jsonl")
    assert torn == 0
    return Counter(
        str(line["name"]) for line in lines if line["event"] == "settled" and line["billed"]
    )


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
    assert collect(open_till(settings, tmp_path)).open == 3
    collection = collect(open_till(settings, tmp_path))
    assert (collection.replies, collection.open, collection.again) == (3, 0, 0)
    answers, source = build()
    assert answers == [[], [], []]
    assert source.pending == {}
    assert server.calls("/batches") == 1


def test_a_line_is_what_the_transport_would_have_sent(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    transport = open_transport(settings, lambda probe: None)
    transport.send(make_request(0))
    sent = [entry["sha256"] for entry in server.log if entry["path"] == "/chat/completions"]
    submit(
        make_pending(settings, 1),
        replace(open_desk(settings, tmp_path), shape=transport.shape_request),
    )
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


def test_a_cut_off_reply_is_asked_once_more_with_twice_the_room(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("truncated", path="item", times=1)
    cache = ReplyCache(FolderStore(tmp_path / "store"))
    rooms = []
    for _ in range(3):
        source = Collector()
        caller = Caller(describe_model(settings), source, cache, KeyLocks(None))
        answer = caller.ask(make_request(0), read_claims)
        rooms.append([request.max_tokens for request in source.pending.values()])
        submit(source.pending, open_desk(settings, tmp_path))
        collect_twice(settings, tmp_path)
    assert rooms == [[100], [200], []]
    assert answer == []
    assert server.calls("/batches") == 2


# Splitting


def test_batches_hold_no_more_requests_than_allowed(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.batches.limit = 3
    desk = open_desk(settings, tmp_path, limits=replace(HASTY, requests=3))
    assert [r.requests for r in submit(make_pending(settings, 7), desk).batches] == [3, 3, 1]
    assert collect_twice(settings, tmp_path).replies == 7


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
    failed = collect(open_till(settings, tmp_path))
    assert (failed.open, failed.again, failed.problems) == (0, 5, [])
    assert [r.requests for r in submit(pending, open_desk(settings, tmp_path)).batches] == [3, 2]
    assert [r.state for r in list_records(tmp_path)] == ["split", "submitted", "submitted"]
    assert collect_twice(settings, tmp_path).replies == 5
    assert len(list_replies(tmp_path)) == 5


def test_what_does_not_fit_the_queue_waits_until_there_is_room(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.batches.enqueued = 3
    pending = make_pending(settings, 6)
    desk = open_desk(settings, tmp_path, limits=replace(HASTY, requests=3))
    submit(pending, desk)
    collect(open_till(settings, tmp_path))
    for _ in range(5):
        waiting = submit(pending, desk)
        assert (waiting.submitted, waiting.waiting, waiting.open) == (0, 3, 3)
    assert server.calls("/batches") == 2
    collect(open_till(settings, tmp_path))
    assert [r.requests for r in submit(pending, desk).batches] == [2, 1]


def test_a_single_request_over_the_token_limit_stays_pending(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("token_limit", path="/batches", times=2)
    pending = make_pending(settings, 1)
    for _ in range(3):
        assert submit(pending, open_desk(settings, tmp_path)).submitted == 1
        collect_twice(settings, tmp_path)
    assert len(list_replies(tmp_path)) == 1


# Crashes and rivals (row 19 of the fault catalogue)


def run_child(verb: str, server: Loopback, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.batch_desk", verb, server.base_url, str(folder), *more]
    return subprocess.Popen(command, cwd=Path(__file__).parent.parent)


def wait_and_kill(child: subprocess.Popen[bytes], reached: Mapping[str, Any]) -> None:
    """SIGKILL as soon as the server has what the child sent."""
    deadline = time.monotonic() + 20
    while not reached and time.monotonic() < deadline:
        assert child.poll() is None
        time.sleep(0.02)
    assert reached
    child.kill()
    child.wait()


def test_batch_of_a_process_killed_before_it_knew_the_id_is_found_and_not_made_again(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("timeout", path="/batches", after=True, times=1)
    wait_and_kill(run_child("submit", server, tmp_path), server.batches.batches)
    assert [record.state for record in list_records(tmp_path)] == ["uploaded"]
    again = submit(make_pending(settings, 4), open_desk(settings, tmp_path))
    assert [record.batch for record in again.batches] == list(server.batches.batches)
    assert server.calls("/batches") == 1
    assert collect_twice(settings, tmp_path).replies == 4


def test_orphan_is_found_by_collect_too_behind_pages_of_other_batches(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 4), open_desk(settings, tmp_path))
    forgotten = replace(list_records(tmp_path)[0], state="uploaded", batch=None, submitted=None)
    save_record(FolderStore(tmp_path / "store"), forgotten)
    first = next(iter(server.batches.batches.values()))
    for number in range(250):
        server.batches.create({**first, "metadata": {"whose": f"another's {number}"}}, None)
    assert collect_twice(settings, tmp_path).replies == 4
    assert server.calls("/batches", method="GET") == 3
    assert server.calls("/batches") == 1


def test_file_of_a_process_killed_before_it_made_the_batch_is_used(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("timeout", path="/files", after=True, times=1)
    wait_and_kill(run_child("submit", server, tmp_path), server.batches.files)
    pending = make_pending(settings, 4)
    patient = replace(LIMITS, doubt=0.0)
    early = submit(pending, open_desk(settings, tmp_path, limits=patient))
    assert (early.submitted, early.unfinished, server.calls("/batches")) == (0, 4, 0)
    later = submit(pending, open_desk(settings, tmp_path, limits=patient, now=lambda: NOW + 601))
    assert later.submitted == 4
    assert (server.calls("/files"), server.calls("/batches")) == (1, 1)
    content = next(iter(server.batches.contents.values()))
    assert [json.loads(line)["custom_id"] for line in content.splitlines()] == list(pending)


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
    assert open_desk(settings, tmp_path).ledger.list_owed() == set()


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
    later = submit(pending, open_desk(settings, tmp_path, limits=patient, now=lambda: NOW + 601))
    assert later.submitted == 4
    assert (len(server.batches.batches), len(server.batches.files)) == (1, 1)


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
    assert submit(pending, open_desk(settings, tmp_path, limits=LIMITS)).submitted == 4
    assert (len(server.batches.batches), len(server.batches.files)) == (1, 1)


def test_submitters_at_once_ask_for_each_request_once(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    barrier = threading.Barrier(4)
    patient = replace(LIMITS, requests=5)

    def run(first: int) -> int:
        desk = open_desk(settings, tmp_path, limits=patient)
        pending = make_pending(settings, 12, first=first)
        barrier.wait()
        return submit(pending, desk).submitted

    with ThreadPoolExecutor(4) as pool:
        submitted = sum(pool.map(run, [0, 0, 4, 8]))
    asked = list_asked(server)
    assert len(asked) == len(set(asked)) == submitted == 20
    assert collect_twice(settings, tmp_path).replies == 20


def test_only_one_process_gets_a_number_and_only_one_its_turn(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 1), open_desk(settings, tmp_path))
    record = list_records(tmp_path)[0]
    blobs = FolderStore(tmp_path / "store")
    assert claim_record(blobs, replace(record, owner="another")) is None
    begun = save_record(blobs, replace(record, state="uploaded", at=NOW))
    assert claim_turn(blobs, begun, "early", NOW + 599, 600) is None
    assert claim_turn(blobs, begun, "first", NOW + 600, 600) is not None
    assert claim_turn(blobs, begun, "second", NOW + 601, 600) is None
    assert claim_turn(blobs, begun, "third", NOW + 1200, 600) is not None
    save_record(blobs, record)
    assert claim_turn(blobs, begun, "fourth", NOW + 1800, 600) is None
    assert list_records(tmp_path) == [record]


def test_submitter_that_lost_its_turn_while_it_uploaded_makes_no_batch(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    times = iter([NOW, NOW, *[NOW + 700] * 50])
    slow = open_desk(settings, tmp_path, limits=LIMITS, now=lambda: next(times))
    slow = replace(slow, client=open_client(settings))
    rival = open_desk(settings, tmp_path, limits=LIMITS, now=lambda: NOW + 650)
    pending = make_pending(settings, 2)
    create = slow.client.files.create

    def create_slowly(**options: Any) -> openai.types.FileObject:
        file = create(**options)
        assert submit(pending, rival).submitted == 2
        return file

    slow.client.files.create = create_slowly  # type: ignore[assignment,method-assign]
    assert submit(pending, slow).submitted == 0
    assert len(server.batches.batches) == 1
    assert [(r.state, r.owner) for r in list_records(tmp_path)] == [("submitted", rival.owner)]


@pytest.mark.parametrize("noted", [True, False])
def test_batch_that_another_submits_while_a_dead_one_is_resumed_is_not_made_again(
    noted: bool, server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    pending, patient = make_pending(settings, 4), replace(LIMITS, requests=2)
    submit(pending, open_desk(settings, tmp_path, limits=patient))
    dead, other = list_records(tmp_path)
    blobs, made = FolderStore(tmp_path / "store"), server.batches.batches
    made[str(dead.batch)]["metadata"] = {}
    file: Any = server.batches.files[str(dead.file)]
    file["filename"] = "another.jsonl"
    begun = replace(dead, state="intent", batch=None, file=None, submitted=None, at=0.0)
    save_record(blobs, begun)
    metadata = made[str(other.batch)].pop("metadata")
    save_record(blobs, replace(other, state="uploaded", batch=None, submitted=None))
    clock = [NOW + 100]
    desk = open_desk(settings, tmp_path, limits=patient, now=lambda: clock[0])
    desk = replace(desk, client=open_client(settings))
    create = desk.client.files.create

    def create_slowly(**options: Any) -> openai.types.FileObject:
        """Meanwhile the other makes its batch, and notes it or dies before it can."""
        clock[0] = NOW + 800
        made[str(other.batch)]["metadata"] = metadata
        if noted:
            save_record(blobs, other)
        return create(**options)

    desk.client.files.create = create_slowly  # type: ignore[assignment,method-assign]
    submit(pending, desk)
    assert [record.state for record in list_records(tmp_path)] == ["submitted", "submitted"]
    assert list_records(tmp_path)[1].batch == other.batch
    assert server.calls("/batches") == 3


def test_what_was_begun_at_another_endpoint_is_let_run_out(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("drop", path="/batches", times=1)
    pending = make_pending(settings, 2)
    with pytest.raises(EndpointError):
        submit(pending, open_desk(settings, tmp_path))
    with serve() as other:
        moved = make_settings(other.base_url)
        for later, submitted in ((0.0, 0), (1.2 * DAY, 0), (1.26 * DAY, 2)):
            desk = open_desk(moved, tmp_path, now=lambda at=later: NOW + at)  # type: ignore[misc]
            assert submit(pending, desk).submitted == submitted
    assert server.calls("/batches") == 1


# Results (row 20 of the fault catalogue)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("expired", {"success": 3, "expired": 3}),
        ("cancelled", {"success": 3, "cancelled": 3}),
        ("no_output_file", {"missing": 6}),
        ("empty_error_file_id", {"success": 6}),
        ("duplicate_id", {"success": 6, "duplicate": 1}),
        ("missing_id", {"success": 5, "missing": 1}),
        ("foreign_id", {"success": 6, "foreign": 1}),
    ],
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


def test_batch_with_an_error_file_only_leaves_all_pending(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("500", path="item", times=4)
    pending = make_pending(settings, 4)
    submit(pending, open_desk(settings, tmp_path))
    assert collect_twice(settings, tmp_path).again == 4
    record = list_records(tmp_path)[0]
    assert (record.counts or {})["error"] == 4
    assert count_booked(tmp_path) == {}
    assert submit(pending, open_desk(settings, tmp_path)).submitted == 4


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


def test_output_file_cut_in_the_middle_leaves_the_rest_pending(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    pending = make_pending(settings, 5)
    submit(pending, open_desk(settings, tmp_path))
    server.batches.finish_all()
    batch = next(iter(server.batches.batches.values()))
    whole = server.batches.contents[batch["output_file_id"]]
    server.batches.contents[batch["output_file_id"]] = whole[: len(whole) * 3 // 4]
    assert collect(open_till(settings, tmp_path)).replies == 3
    counts = list_records(tmp_path)[0].counts
    assert counts is not None
    assert (counts["missing"], counts["malformed"]) == (2, 1)


def test_reply_with_a_lone_surrogate_is_kept(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 1), open_desk(settings, tmp_path))
    server.batches.finish_all()
    batch = next(iter(server.batches.batches.values()))
    content = server.batches.contents[batch["output_file_id"]]
    server.batches.contents[batch["output_file_id"]] = content.replace(b"claims", b"\\ud800")
    assert collect(open_till(settings, tmp_path)).replies == 1
    assert len(list_replies(tmp_path)) == 1


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


def test_batch_that_failed_as_a_whole_is_named_and_stays_pending(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.batches.limit = 1
    pending = make_pending(settings, 2)
    submit(pending, open_desk(settings, tmp_path))
    collection = collect(open_till(settings, tmp_path))
    assert "too_many_tasks" in collection.problems[0]
    record = list_records(tmp_path)[0]
    assert (record.state, (record.counts or {})["error"]) == ("collected", 2)
    assert submit(pending, open_desk(settings, tmp_path)).submitted == 2


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


def test_stuck_batch_is_cancelled_given_up_and_what_it_still_gives_is_kept(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("stuck", path="/batches", times=1)
    pending = make_pending(settings, 4)
    submit(pending, open_desk(settings, tmp_path))
    for later in (0.0, 1.2 * DAY):
        assert collect(open_till(settings, tmp_path, now=lambda at=later: NOW + at)).open == 4  # type: ignore[misc]
    lost = collect(open_till(settings, tmp_path, now=lambda: NOW + 1.26 * DAY))
    assert (lost.open, lost.lost) == (0, 4)
    assert server.calls("/batches/batch_000001/cancel") == 1
    late = collect(open_till(settings, tmp_path, now=lambda: NOW + 1.27 * DAY))
    assert (late.replies, late.lost) == (2, 0)
    assert submit(pending, open_desk(settings, tmp_path)).submitted == 2


# Paid once, booked once


def test_collect_killed_midway_and_called_again_books_each_reply_once(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    pending = make_pending(settings, 6)
    submit(pending, open_desk(settings, tmp_path))
    server.batches.finish_all()
    assert run_child("collect", server, tmp_path, "3").wait() == -9
    assert len(list_replies(tmp_path)) == 3
    assert collect(open_till(settings, tmp_path)).replies == 6
    booked = count_booked(tmp_path)
    assert sorted(booked.values()) == [1] * 6
    assert collect(open_till(settings, tmp_path)).booked == 0
    assert count_booked(tmp_path) == booked


def test_collectors_at_once_book_each_reply_once(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 20), open_desk(settings, tmp_path))
    server.batches.finish_all()
    barrier = threading.Barrier(3)

    def run(_: int) -> None:
        till = open_till(settings, tmp_path)
        barrier.wait()
        collect(till)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(run, range(3)))
    assert sorted(count_booked(tmp_path).values()) == [1] * 20
    assert list_records(tmp_path)[0].state == "collected"


def test_replies_are_booked_at_the_batch_price_for_what_they_used(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    desk = open_desk(settings, tmp_path)
    submit(make_pending(settings, 3), desk)
    most = desk.ledger.spent()
    collection = collect_twice(settings, tmp_path)
    items = [entry for entry in server.log if entry["path"] == "item"]
    prompt = sum(entry["prompt_tokens"] for entry in items)
    completion = sum(entry["completion_tokens"] for entry in items)
    dollars = (prompt * 1.0 + completion * 4.0) / 1_000_000 * 0.5
    spent = open_desk(settings, tmp_path).ledger.spent()
    assert (spent.tokens, collection.tokens) == (prompt + completion, prompt + completion)
    assert spent.dollars == pytest.approx(dollars)
    assert collection.cost == pytest.approx(dollars)
    assert most.tokens > spent.tokens


def test_batch_that_another_machine_collected_is_booked_where_it_was_submitted(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 3), open_desk(settings, tmp_path))
    elsewhere = replace(open_till(settings, tmp_path), open_ledger=lambda run: None)
    server.batches.finish_all()
    assert (collect(elsewhere).replies, sum(count_booked(tmp_path).values())) == (3, 0)
    assert collect(open_till(settings, tmp_path)).booked == 3
    assert sorted(count_booked(tmp_path).values()) == [1] * 3


def test_batch_that_another_run_began_stays_in_the_books_of_that_run(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("400", path="/batches", times=1)
    pending, nightly = make_pending(settings, 3), open_desk(settings, tmp_path)
    with pytest.raises(EndpointError):
        submit(pending, nightly)
    manual = open_books(tmp_path, settings, "manual")
    find_ledger = {RUN: nightly.ledger, "manual": manual}.get
    desk = replace(nightly, ledger=manual, run="manual", open_ledger=find_ledger, owner="another")
    assert submit(pending, desk).submitted == 3
    assert [record.run for record in list_records(tmp_path)] == [RUN]
    assert collect_twice(settings, tmp_path).booked == 3
    assert (nightly.ledger.list_owed(), manual.lines()) == (set(), [])


def test_batch_that_another_warehouse_began_is_sent_anew_and_its_money_freed_there(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    server.faults.add("400", path="/batches", times=1)
    pending, nightly = make_pending(settings, 3), open_desk(settings, tmp_path)
    with pytest.raises(EndpointError):
        submit(pending, nightly)
    manual = open_books(tmp_path, settings, "manual")
    desk = replace(nightly, ledger=manual, run="manual", owner="another")
    assert submit(pending, desk).submitted == 3
    records = [(record.run, record.state) for record in list_records(tmp_path)]
    assert records == [(RUN, "dropped"), ("manual", "submitted")]
    assert sorted(list_asked(server)) == sorted(pending)
    collect(open_till(settings, tmp_path))
    assert (nightly.ledger.list_owed(), nightly.ledger.spent().tokens) == (set(), 0)
    assert len(manual.list_owed()) == 1


def test_submit_sends_what_the_budget_allows_and_the_rest_when_there_is_room(
    server: Loopback, tmp_path: Path
) -> None:
    free = make_settings(server.base_url)
    probe = open_desk(free, tmp_path / "probe")
    pending = make_pending(free, 6)
    submit(pending, probe)
    most = probe.ledger.spent().dollars
    settings = make_settings(server.base_url, budget=most * 0.7)
    first = submit(pending, open_desk(settings, tmp_path))
    assert (first.submitted, first.refused) == (4, 2)
    assert first.refusal is not None
    assert "llm.budget" in str(first.refusal)
    assert open_desk(settings, tmp_path).ledger.spent().dollars <= most * 0.7
    second = submit(pending, open_desk(settings, tmp_path))
    assert (second.submitted, second.refused) == (0, 2)
    collect_twice(settings, tmp_path)
    assert submit(pending, open_desk(settings, tmp_path)).submitted == 2


def test_submit_over_a_budget_in_tokens_sends_nothing(server: Loopback, tmp_path: Path) -> None:
    settings = make_settings(server.base_url, budget_tokens=10)
    done = submit(make_pending(settings, 2), open_desk(settings, tmp_path))
    assert (done.submitted, done.refused, server.calls("/batches")) == (0, 2, 0)
    assert list_records(tmp_path) == []


# Bad input


def test_wrong_key_is_named_without_being_shown(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-0123456789")
    server.key = "sk-another"
    settings = make_settings(server.base_url)
    with pytest.raises(EndpointError, match=r"llm\.api_key_env") as caught:
        submit(make_pending(settings, 2), open_desk(settings, tmp_path))
    assert "very-secret" not in str(caught.value)
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"very-secret" not in stored


def test_server_that_is_down_loses_nothing(settings: LLMSettings, tmp_path: Path) -> None:
    with serve() as gone:
        away = make_settings(gone.base_url)
    with pytest.raises(EndpointError, match="nothing is lost"):
        submit(make_pending(away, 2), open_desk(away, tmp_path))
    assert list_open_keys(FolderStore(tmp_path / "store")) == set(make_pending(away, 2))


def test_fault_of_one_batch_does_not_keep_the_others_from_being_collected(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    desk = open_desk(settings, tmp_path, limits=replace(HASTY, requests=2))
    submit(make_pending(settings, 4), desk)
    server.batches.finish_all()
    server.faults.add("404", path="/files/*/content", method="GET", times=1)
    server.faults.add("400", path="/batches/batch_000002", method="GET", times=1)
    collection = collect(open_till(settings, tmp_path, limits=LIMITS))
    assert (collection.open, len(collection.notes), len(collection.problems)) == (4, 1, 1)
    assert collect(open_till(settings, tmp_path, limits=LIMITS)).replies == 4


@pytest.mark.parametrize("fault", ["401", "drop"])
def test_server_that_answers_nobody_is_asked_for_one_batch_only(
    fault: str, server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    desk = open_desk(settings, tmp_path, limits=replace(HASTY, requests=1))
    submit(make_pending(settings, 4), desk)
    server.faults.add(fault, path="/batches/*", method="GET", times=3)
    collection = collect(open_till(settings, tmp_path))
    assert (collection.open, len(collection.problems)) == (4, 1)
    assert server.calls("/batches/batch_000002", method="GET") == 0


@pytest.mark.parametrize("fault", ["short", "drop", "html", "500", "not_json", "error_200"])
@pytest.mark.parametrize("path", ["/batches/*", "/files/*/content"])
def test_answer_that_is_no_answer_leaves_the_batch_open(
    fault: str, path: str, server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 2), open_desk(settings, tmp_path))
    server.batches.finish_all()
    server.faults.add(fault, path=path, method="GET", times=3)
    collect(open_till(settings, tmp_path, limits=LIMITS))
    server.faults.clear()
    done = collect(open_till(settings, tmp_path, limits=LIMITS))
    assert (done.replies, len(list_replies(tmp_path))) == (2, 2)


def test_damaged_record_is_named(server: Loopback, settings: LLMSettings, tmp_path: Path) -> None:
    submit(make_pending(settings, 2), open_desk(settings, tmp_path))
    path = next((tmp_path / "store" / "batches" / "records").iterdir())
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(IntegrityError, match=path.name):
        collect(open_till(settings, tmp_path))


def test_lost_requests_of_an_open_batch_are_named(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    submit(make_pending(settings, 2), open_desk(settings, tmp_path))
    path = next((tmp_path / "store" / "batches" / "requests").iterdir())
    path.write_bytes(path.read_bytes()[:-9])
    server.batches.finish_all()
    with pytest.raises(IntegrityError, match=path.name):
        collect(open_till(settings, tmp_path))


def test_failures_that_stand_are_not_submitted(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    pending = make_pending(settings, 2)
    cache = ReplyCache(FolderStore(tmp_path / "store"))
    key, request = next(iter(pending.items()))
    cache.keep_failure(Failure(key, FailureKind.REFUSED, "no", 1), request, None)
    done = submit(pending, open_desk(settings, tmp_path))
    assert (done.submitted, done.failed) == (1, 1)


def test_nothing_pending_is_nothing_sent(
    server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    assert submit({}, open_desk(settings, tmp_path)).submitted == 0
    assert collect(open_till(settings, tmp_path)).open == 0
    assert server.log == []
