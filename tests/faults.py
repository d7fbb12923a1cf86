"""The command line with a planned death: `python -m tests.faults FAULT build CORPUS ...`.

A fault is `inside:STAGE` (its tables made, none stored), `after:STAGE` (stored, no mark),
`rows:FUNCTION:N` (when N rows are on disk), the name of a step of publishing, or `none`.
"""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kpyramid.cli.app import app
from kpyramid.pipeline import cache, runner
from kpyramid.storage import publication, store
from kpyramid.storage.results import RowCache
from tests.corpora import use_quick_models

PUBLISH_STEPS = (
    "writing tables",
    "before the manifest",
    "before the rename",
    "after the rename",
    "before the link",
    "after the link",
    "before the mark",
)


def die() -> None:
    """Ends this process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def kill_in_stage(moment: str, stage: str) -> None:
    """Dies inside a stage or after it."""
    if moment == "inside":
        wrap(runner, "store_result", lambda warehouse, name, *_: name == stage)
    else:
        wrap(runner, "write_mark", lambda run, mark: mark.stage == stage)


def wrap(place: Any, name: str, fatal: Callable[..., bool], *, after: bool = False) -> None:
    """Dies when the function of that name is called with fatal arguments, or has returned."""
    real = getattr(place, name)

    def function(*args: Any, **options: Any) -> Any:
        if not after and fatal(*args):
            die()
        result = real(*args, **options)
        if after and fatal(*args):
            die()
        return result

    setattr(place, name, function)


def kill_after_rows(function: str, count: int) -> None:
    """Dies when that many rows of a function are on disk, one by one."""
    cache._FLUSH_SECONDS = -1.0
    stored: list[str] = []
    real = RowCache.store

    def store(self: RowCache, rows: Mapping[str, bytes]) -> None:
        real(self, rows)
        if self.folder.parent.name == function:
            stored.extend(rows)
            if len(stored) >= count:
                die()

    RowCache.store = store  # type: ignore[method-assign]


def kill_in_publishing(step: str) -> None:
    """Dies at one step of the protocol in `snapshots.md`."""
    if step == "writing tables":
        wrap(publication, "put_file", lambda path, content: path.name == "triples.parquet")
    elif step == "before the manifest":
        wrap(publication, "put_file", lambda path, content: path.name == "manifest.json")
    elif step in {"before the rename", "after the rename"}:
        wrap(
            Path,
            "rename",
            lambda path, target: target.parent.name == "snapshots",
            after=step.startswith("after"),
        )
    elif step in {"before the link", "after the link"}:
        wrap(
            os,
            "link",
            lambda source, target: "refs" in Path(target).parts,
            after=step.startswith("after"),
        )
    elif step == "before the mark":
        wrap(runner, "write_mark", lambda run, mark: mark.stage == "publish")
    else:
        raise ValueError(step)


def run(fault: str, *arguments: str) -> None:
    """Runs a command line with its death."""
    use_quick_models(pytest.MonkeyPatch())
    moment, _, rest = fault.partition(":")
    if moment in {"inside", "after"}:
        kill_in_stage(moment, rest)
    elif moment == "rows":
        name, _, number = rest.partition(":")
        kill_after_rows(name, int(number))
    elif fault != "none":
        kill_in_publishing(fault)
    assert store.os is os
    app(list(arguments))


if __name__ == "__main__":
    run(*sys.argv[1:])
