"""Batches at a real HTTP server: sent once, split where they must be, bad input named."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from kpyramid.errors import IntegrityError
from kpyramid.llm.batch.collect import collect
from kpyramid.llm.batch.jobs import LIMITS
from kpyramid.llm.batch.submit import submit
from kpyramid.llm.cache import ReplyCache
from kpyramid.llm.caller import Caller, Collector, KeyLocks
from kpyramid.llm.endpoint import open_transport
from kpyramid.llm.task import describe_model
from kpyramid.settings import LLMSettings
from kpyramid.storage.store import FolderStore
from tests.batch_desk import (
    HASTY,
    collect_twice,
    list_asked,
    list_replies,
    make_pending,
    make_request,
    make_settings,
    open_desk,
    open_till,
)
from tests.loopback import Loopback


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
    failed = collect(open_till(settings, tmp_path))
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
    collect(open_till(settings, tmp_path))
    for _ in range(5):
        waiting = submit(pending, desk)
        assert (waiting.submitted, waiting.waiting, waiting.open) == (0, 3, 3)
    assert server.calls("/batches") == 2
    collect(open_till(settings, tmp_path))
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
