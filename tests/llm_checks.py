"""What tests of faults hold of every run: the books are right, and the next run heals."""

from pathlib import Path
from typing import Any

from kpyramid.llm.cache import FailureEntry
from tests.llm_runs import TASK, Run, Time, open_cache, run_items
from tests.loopback import Loopback

ITEMS = 6
SICK = 3
"""The item that faults of one item strike."""


def run(server: Loopback, folder: Path, name: str = "run", **options: Any) -> Run:
    """A run in which nobody really waits."""
    return run_items(server.base_url, folder, ITEMS, name=name, clock=Time(), **options)


def check_books(server: Loopback, *runs: Run) -> None:
    """Every call at the server stands in the books of a run, and none that was not made."""
    assert sum(r.totals.run.calls for r in runs) == sum(r.calls for r in runs) == server.calls()
    assert all(r.totals.run.open == 0 for r in runs)


def check_healed(server: Loopback, folder: Path, *before: Run, asked: int) -> Run:
    """The next run asks only for what is missing, and the one after it for nothing."""
    server.faults.clear()
    calls = server.calls(schema=TASK)
    healed = run(server, folder, "healed")
    assert healed.error is None
    assert healed.answered == set(range(ITEMS))
    assert server.calls(schema=TASK) - calls == asked
    check_books(server, *before, healed)
    calls = server.calls()
    assert run(server, folder, "again").answered == set(range(ITEMS))
    assert server.calls() == calls, "an unchanged run asks nothing, not even whether it could"
    return healed


def read_failed(folder: Path) -> list[FailureEntry]:
    """The failures in the cache."""
    return list(open_cache(folder).list_failures())
