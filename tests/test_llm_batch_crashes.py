"""Crashes and rivals at a batch (row 19 of the fault catalogue): each request is sent once."""

import subprocess
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

from kpyramid.errors import EndpointError, RefusedError
from kpyramid.llm.batch.jobs import LIMITS, save_record
from kpyramid.llm.batch.submit import submit
from kpyramid.llm.endpoint import open_connection
from kpyramid.settings import LLMSettings
from kpyramid.storage.store import FolderStore
from tests.batch_desk import (
    DAY,
    NOW,
    collect_twice,
    list_asked,
    list_records,
    make_pending,
    make_settings,
    open_desk,
    run_child,
)
from tests.loopback import Loopback, serve


@pytest.fixture
def settings(server: Loopback) -> LLMSettings:
    return make_settings(server.base_url)


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


@pytest.mark.parametrize("seconds", [1000, 1900])
def test_submitter_that_was_too_slow_makes_no_batch(
    seconds: int, server: Loopback, settings: LLMSettings, tmp_path: Path
) -> None:
    """Another may take it for dead by then, or has."""
    times = iter([NOW, NOW, *[NOW + seconds] * 50])
    slow = open_desk(settings, tmp_path, limits=LIMITS, now=lambda: next(times))
    slow = replace(slow, client=open_connection(settings).client)
    rival = open_desk(settings, tmp_path, limits=LIMITS, now=lambda: NOW + 1850)
    pending = make_pending(settings, 2)
    create = slow.client.files.create

    def create_slowly(**options: Any) -> openai.types.FileObject:
        file = create(**options)
        if seconds > LIMITS.stale:
            assert submit(pending, rival).submitted == 2
        return file

    slow.client.files.create = create_slowly  # type: ignore[assignment,method-assign]
    assert submit(pending, slow).submitted == 0
    if seconds < LIMITS.stale:
        assert submit(pending, rival).submitted == 2
    assert len(server.batches.batches) == 1
    assert [record.state for record in list_records(tmp_path)] == ["dropped", "submitted"]


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
