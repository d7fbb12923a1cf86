"""A run that dies at any moment has lost nothing it paid for: counted at the server."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kpyramid.llm.task import describe_model, key_request
from kpyramid.settings import LLMSettings
from tests.llm_runs import answer_item, count_items, make_request, open_cache, run_items
from tests.loopback import Loopback, serve

pytestmark = pytest.mark.slow  # each starts processes
ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def server() -> Iterator[Loopback]:
    with serve(answer_item) as server:
        yield server


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


@pytest.mark.parametrize(
    ("step", "number"), [("send", 2), ("received", 1), ("received", 17), ("stored", 17)]
)
def test_death_between_two_steps_costs_at_most_the_calls_under_way(
    server: Loopback, tmp_path: Path, step: str, number: int
) -> None:
    assert start_child(server, tmp_path, 60, f"{step}:{number}").wait() == -9
    stored = find_stored(tmp_path, 60)
    if step == "stored":
        assert len(stored) >= number
    check_resumed(server, tmp_path, 60, stored)


def test_two_processes_at_once_ask_each_item_once(tmp_path: Path) -> None:
    with serve(answer_item, latency=0.02) as server:
        children = [start_child(server, tmp_path, 60) for _ in range(2)]
        assert [child.wait() for child in children] == [0, 0]
        assert count_items(server) == Counter(range(60))
        books = list(tmp_path.glob("run-*/ledger.jsonl"))
        lines = [json.loads(line) for path in books for line in path.read_text().splitlines()]
        settled = [line for line in lines if line["event"] != "reserved"]
        assert len(settled) == server.calls()
