"""kill -9 at every step: nothing stored is computed again, nothing is half visible."""

import errno
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kpyramid.pipeline.stage import PIPELINE
from kpyramid.query import open_snapshot
from kpyramid.storage import publication, results, store
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import list_entries, resolve_ref
from kpyramid.storage.runs import open_run, read_mark
from kpyramid.storage.verification import check_bytes, check_tables
from tests import faults
from tests.commands import show
from tests.corpora import (
    ROOT,
    SETTINGS,
    TEXTS,
    build_corpus,
    copy_shared_build,
    count_recomputed,
    shared_corpus,
    use_quick_models,
    write_corpus,
)

pytestmark = pytest.mark.slow  # each starts processes

FORKING = multiprocessing.get_context("forkserver")
"""What is killed is forked from a process that has loaded what a build needs."""
FORKING.set_forkserver_preload(["tests.conftest", "tests.faults", "spacy"])
STAGES = [stage.name for stage in PIPELINE if stage.name != "publish"]


@pytest.fixture(autouse=True)
def _quick_models(monkeypatch: pytest.MonkeyPatch) -> None:
    use_quick_models(monkeypatch)
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'etl'}:{ROOT}")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A warehouse with a smaller corpus at HEAD: what readers see before the build that dies."""
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_quick_models(monkeypatch)
        corpus = write_corpus(folder / "corpus", dict(list(TEXTS.items())[:2]))
        snapshot = build_corpus(corpus, Warehouse(folder / "w"), order="2025-01-01").snapshot
    return folder / "w", snapshot


@pytest.fixture
def expected(tmp_path: Path) -> str:
    """The snapshot of an undisturbed build."""
    return copy_shared_build(tmp_path / "undisturbed")[1]


def build_and_die(warehouse: Path, fault: str) -> tuple[int | None, str]:
    """The exit code of a build in a process of its own, and what it wrote to stderr."""
    settings = warehouse.parent / "settings.toml"
    settings.write_text(
        f"[chunk]\nmax_tokens = {SETTINGS.chunk.max_tokens}\n"
        f"overlap_tokens = {SETTINGS.chunk.overlap_tokens}\n"
    )
    errors = warehouse.parent / "errors.txt"
    command = ["build", str(shared_corpus()), "--warehouse", str(warehouse), "--workers", "1"]
    command += ["--settings", str(settings), "-q"]
    process = FORKING.Process(target=_run, args=[errors, fault, *command])
    process.start()
    process.join()
    return process.exitcode, errors.read_text("utf-8")


def _run(errors: Path, fault: str, *command: str) -> None:
    with errors.open("wb") as file:
        os.dup2(file.fileno(), 2)
    faults.run(fault, *command)


def count_rows(warehouse: Path, function: str) -> int:
    """How many results of a function are on disk."""
    keys = [
        key
        for path in (warehouse / "cache" / "rows" / function).rglob("*.parquet")
        for key in pq.read_table(path)["key"].to_pylist()
    ]
    assert len(keys) == len(set(keys))
    return len(keys)


def check_whole(warehouse: Path, heads: set[str]) -> None:
    """What any reader may see at any time: HEAD is one of these, and whole."""
    place = Warehouse(warehouse)
    head = resolve_ref(place, "main")
    assert head in heads
    for folder in place.snapshots.iterdir():
        assert check_bytes(folder) == []
        assert check_tables(folder) == []


def finish(warehouse: Path, old: str, expected: str) -> dict[str, int]:
    """Builds again after the crash; what it computed."""
    outcome = build_corpus(shared_corpus(), Warehouse(warehouse))
    assert outcome.snapshot == expected
    entries = list_entries(Warehouse(warehouse), "main")
    assert [entry.snapshot for entry in entries] == [old, expected]
    assert list((warehouse / "staging").iterdir()) == []
    check_whole(warehouse, {expected})
    return count_recomputed(outcome)


def count_newest(warehouse: Path) -> dict[str, int]:
    """What each stage that the newest run finished computed; two may begin in one second."""
    newest = max((warehouse / "runs").iterdir(), key=lambda folder: folder.stat().st_mtime_ns)
    run = open_run(Warehouse(warehouse), newest.name)
    return {mark.stage: mark.recomputed for name in STAGES if (mark := read_mark(run, name))}


@pytest.mark.parametrize("moment", ["inside", "after"])
def test_killed_in_each_stage_the_next_build_goes_on_there(
    tmp_path: Path, small: tuple[Path, str], expected: str, moment: str
) -> None:
    """Build after build on one warehouse, each killed in the stage behind, the last in none."""
    source, old = small
    shutil.copytree(source, tmp_path / "w")
    before = ""
    for stage in STAGES:
        code, errors = build_and_die(tmp_path / "w", f"{moment}:{stage}")
        assert code == -signal.SIGKILL, errors
        check_whole(tmp_path / "w", {old})
        check_computed(count_newest(tmp_path / "w"), before, moment)
        before = stage
    counts = finish(tmp_path / "w", old, expected)
    assert counts.pop("publish")
    check_computed(counts, before, moment)


def check_computed(counts: dict[str, int], killed: str, moment: str) -> None:
    """What a build computed after the last one was killed in that stage."""
    own = counts.pop(killed, 0)
    assert not any(counts.values()), (killed, counts)
    if moment == "after" or killed in {"", "chunk", "extract", "embed"}:
        assert own == 0, f"all rows of {killed} were stored"
    else:
        assert own > 0, killed


@pytest.mark.parametrize(
    ("function", "stored"), [("extractor", 2), ("embedder", 5), ("splitter", 1)]
)
def test_killed_between_rows_no_stored_row_is_computed_again(
    tmp_path: Path, small: tuple[Path, str], expected: str, function: str, stored: int
) -> None:
    source, old = small
    shutil.copytree(source, tmp_path / "w")
    before = count_rows(tmp_path / "w", function)

    code, errors = build_and_die(tmp_path / "w", f"rows:{function}:{stored}")
    assert code == -signal.SIGKILL, errors

    kept = count_rows(tmp_path / "w", function)
    assert kept - before == stored
    counts = finish(tmp_path / "w", old, expected)
    total = count_rows(tmp_path / "w", function)
    stage = {"extractor": "extract", "splitter": "chunk", "embedder": "embed"}[function]
    if function == "embedder":  # later stages embed too
        assert 0 < counts[stage] <= total - kept
    else:
        assert counts[stage] == total - kept > 0


@pytest.mark.parametrize("step", faults.PUBLISH_STEPS)
def test_killed_while_publishing_head_is_old_or_new_and_a_retry_commits_once(
    tmp_path: Path, small: tuple[Path, str], expected: str, step: str
) -> None:
    source, old = small
    shutil.copytree(source, tmp_path / "w")

    code, errors = build_and_die(tmp_path / "w", step)
    assert code == -signal.SIGKILL, errors

    is_new = step in {"after the link", "before the mark"}
    check_whole(tmp_path / "w", {expected} if is_new else {old})
    is_there = (tmp_path / "w" / "snapshots" / expected).exists()
    assert is_there == (faults.PUBLISH_STEPS.index(step) >= 3)
    counts = finish(tmp_path / "w", old, expected)
    assert sum(counts.values()) == (0 if is_new else 1)


WRITES = (
    (results, "write_table", "triples.parquet"),
    (results, "write_and_sync", "result.json"),
    (publication, "put_file", "README.md"),
    (publication, "put_file", "SHA256SUMS"),
    (publication, "put_file", "manifest.json"),
    (store, "write_and_sync", ".tmp"),
    (os, "fsync", "publish.json"),
)
"""What a build writes, in its order: the last when the ref has moved."""


def test_a_full_disk_commits_nothing_half_and_leaves_staging_empty(
    tmp_path: Path, small: tuple[Path, str], expected: str
) -> None:
    source, old = small
    warehouse = tmp_path / "w"
    shutil.copytree(source, warehouse)
    for module, function, name in WRITES:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, function, fill_disk_at(name, getattr(module, function)))
            with pytest.raises(OSError, match=f"No space left .*{re.escape(name)}"):
                build_corpus(shared_corpus(), Warehouse(warehouse))
        check_whole(warehouse, {expected} if name == "publish.json" else {old})
        assert list((warehouse / "staging").iterdir()) == []
        assert not list((warehouse / "refs").rglob("*.tmp"))
    finish(warehouse, old, expected)


def fill_disk_at(name: str, real: Callable[..., object]) -> Callable[..., object]:
    """A function that writes, but of what has that name half."""

    def write(*given: Any) -> object:
        if isinstance(given[0], int):  # an open file, written but not yet on the disk
            path = data = Path(f"/proc/self/fd/{given[0]}").readlink()
        else:
            path, data = given if isinstance(given[0], Path) else given[::-1]
        if name in path.name:
            whole = data.read_bytes() if isinstance(data, Path) else data
            whole = whole if isinstance(whole, bytes) else b"PAR1"
            path.write_bytes(whole[: len(whole) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return real(*given)

    return write


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        stop = pytest.fail if os.environ.get("CI") else pytest.skip
        stop(f"mounting a tmpfs is not permitted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_read_only_disk_is_read_and_a_build_on_it_refused_in_a_line(
    tiny_disk: Path, tmp_path: Path, small: tuple[Path, str]
) -> None:
    made, snapshot = small
    subprocess.run(["mount", "-o", "remount,size=64m", str(tiny_disk)], check=True)
    shutil.copytree(made, tiny_disk, dirs_exist_ok=True)
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    warehouse = str(tiny_disk)

    assert open_snapshot("main", warehouse).table("documents").num_rows == 2
    for words in (
        ["verify"],
        ["log", "main"],
        ["export", "main", str(tmp_path / "copy"), "--to", "folder"],
    ):
        show(*words, "--warehouse", warehouse)
    assert (tmp_path / "copy" / "manifest.json").is_file()

    code, errors = build_and_die(tiny_disk, "none")
    assert code == 8, errors
    assert errors.count("Error: ") == 1
    assert "Read-only file system" in errors
    assert "Traceback" not in errors
    assert resolve_ref(Warehouse(tiny_disk), "main") == snapshot
