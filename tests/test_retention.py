"""gc removes what nothing needs, in two steps, whoever reads, publishes or dies meanwhile."""

import contextlib
import errno
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kpyramid import hold_snapshot, open_snapshot
from kpyramid.errors import ConflictError, InputError, IntegrityError, PyramidError
from kpyramid.pipeline.erasure import find_document
from kpyramid.storage import retention
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.leases import hold, list_held
from kpyramid.storage.publication import promote, remove_tag, rollback, tag
from kpyramid.storage.refs import check_refs, list_entries, list_heads, list_standing, read_head
from kpyramid.storage.retention import Collected, Policy, collect
from kpyramid.storage.verification import check_bytes
from tests import publishers
from tests.commands import fails, run, run_json, show
from tests.corpora import (
    TEXTS,
    build_corpus,
    copy_shared_build,
    count_recomputed,
    hash_tree,
    shared_corpus,
    write_corpus,
)
from tests.publishers import START, name_day
from tests.rows import read_rows


def publish(root: str, letter: str, ref: str, order: str, at: str) -> str:
    """What stage publish does with a small snapshot."""
    return publishers.publish(Warehouse(Path(root)), letter, order, ref, at)


def sweep(warehouse: Warehouse, day: int, *, keep: int = 1, days: int = 0) -> Collected:
    now = START + timedelta(days=day)
    return collect(warehouse, Policy(keep, timedelta(days=days), now, lambda runs: frozenset()))


def publish_days(warehouse: Warehouse, letters: str, ref: str = "main") -> list[str]:
    return [
        publish(str(warehouse.root), letter, ref, f"{day:03d}", name_day(day))
        for day, letter in enumerate(letters)
    ]


def list_there(warehouse: Warehouse) -> set[str]:
    return {path.name for path in warehouse.snapshots.iterdir()}


def test_the_last_of_each_ref_tags_and_what_was_needed_lately_stay(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    a, b, c, d, e, f = publish_days(warehouse, "abcdef")
    tag(warehouse, "release", a, at=name_day(6))
    promote(warehouse, "live", b, at=name_day(6))

    assert not sweep(warehouse, 9, keep=6).moved
    assert {i.path for i in sweep(warehouse, 9, keep=2).moved} == {
        f"snapshots/{c}",
        f"snapshots/{d}",
    }
    assert list_there(warehouse) == {a, b, e, f}
    assert not sweep(warehouse, 9, days=5).moved, "readers had e until f came, on day 5"
    assert [i.path for i in sweep(warehouse, 11, days=5).moved] == [f"snapshots/{e}"]
    remove_tag(warehouse, "release")
    assert [i.path for i in sweep(warehouse, 11).moved] == [f"snapshots/{a}"]
    assert check_refs(warehouse) == []


def test_refs_of_backfilled_days_retire_by_age(tmp_path: Path) -> None:
    root = str(tmp_path / "w")
    made = {
        ref: publish(root, letter, ref, "1", f"{year}-01-01T00:00:00+00:00")
        for letter, ref, year in read_rows("retention.refs_of_backfilled_days_retire_by_age")
    }
    words = ["gc", "--backfills", "30d", "--warehouse", root]
    looked = run_json(*words, "--dry-run")
    assert looked["retired"] == ["demo-2026-01-01"]
    assert {*list_heads(Warehouse(Path(root)))} == {*made}
    done = run_json(*words)
    assert done["retired"] == looked["retired"]
    assert {*list_heads(Warehouse(Path(root)))} == {*made} - {"demo-2026-01-01"}


@pytest.mark.parametrize(
    ("form", "gone"), [("folder", "README.md"), ("jsonl", "tables/triples.parquet")]
)
def test_an_export_of_what_gc_took_meanwhile_says_so(tmp_path: Path, form: str, gone: str) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    (warehouse.snapshots / snapshot / gone).unlink()
    arguments = ["export", "main", str(tmp_path / "out"), "--to", form, "--everything"]

    fails(7, "run the command again", *arguments, "--warehouse", warehouse.root)

    assert not (tmp_path / "out").exists()


def test_a_reader_keeps_what_it_holds_and_a_dead_one_does_not(tmp_path: Path) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    with pytest.raises(InputError, match="name a ref or an id"), hold_snapshot("a/b"):
        pass

    with hold_snapshot("main", warehouse.root) as reader:
        assert reader.count("documents") == len(TEXTS)
        publish(str(warehouse.root), "x", "main", "9", name_day(1))
        done = sweep(warehouse, 9)
        assert snapshot not in {Path(item.path).name for item in done.moved}
        assert [*done.held.values()] == [snapshot]
        assert reader.table("documents").num_rows == len(TEXTS)
    child = os.fork()
    if not child:
        with hold(warehouse, snapshot):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert len([*warehouse.leases.iterdir()]) == 1
    assert f"snapshots/{snapshot}" in {item.path for item in sweep(warehouse, 9).moved}
    assert list_held(warehouse) == {}
    with pytest.raises(ConflictError, match="run the command again"), hold(warehouse, snapshot):
        pass
    assert not [*warehouse.leases.iterdir()]


def test_what_is_needed_while_it_moves_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = Warehouse(tmp_path)
    a, b, c = publish_days(warehouse, "abc")
    real = retention._rename

    def rename(source: Path, target: Path) -> None:
        if source == warehouse.snapshots / a:
            promote(warehouse, "live", a, at=name_day(9))
        real(source, target)

    monkeypatch.setattr(retention, "_rename", rename)

    done = sweep(warehouse, 9)

    assert [item.path for item in done.moved] == [f"snapshots/{b}"]
    assert list_there(warehouse) == {a, c}
    assert check_bytes(warehouse.snapshots / a) == []


@pytest.mark.parametrize("damaged", ["run.json", "stages/chunk.json"])
def test_a_damaged_run_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damaged: str
) -> None:
    warehouse, _ = copy_shared_build(tmp_path / "w")
    gone = publish(str(warehouse.root), "x", "trial", "8", name_day(1))
    publish(str(warehouse.root), "y", "trial", "9", name_day(2))
    (path,) = warehouse.runs.glob(f"*/{damaged}")
    results = {*warehouse.cache.glob("results/*/*")}
    place = ["--warehouse", str(warehouse.root)]
    show("verify", *place)
    for broken in (b"{", b"[]", b"{}", b"\xff"):
        path.write_bytes(broken)
        told = run("verify", *place)
        assert told.exit_code == 6
        assert str(path) in told.stdout

        sweep(warehouse, 30, days=9)

        assert gone not in list_there(warehouse)
        assert path.is_file()
        assert {*warehouse.cache.glob("results/*/*")} == results
        assert str(path) in caplog.text
    document = open_snapshot("main", warehouse.root).table("documents")["document_id"][0].as_py()
    found = find_document(warehouse, document)
    assert path.relative_to(warehouse.runs).parts[0] in found.runs


def test_an_unreadable_ref_or_lease_stops_it_before_anything_moves(tmp_path: Path) -> None:
    warehouse, _ = copy_shared_build(tmp_path / "w")
    publish(str(warehouse.root), "x", "trial", "9", name_day(1))
    entry = warehouse.refs / "main" / "0000000001.json"
    lease = warehouse.leases / "other-host.1.x.json"
    lease.write_text(json.dumps({"snapshot": "a" * 16}))
    before = hash_tree(warehouse.root)
    for path in (entry, lease):
        whole = path.read_bytes()
        path.write_bytes(b"{")
        with pytest.raises(IntegrityError, match=path.name):
            sweep(warehouse, 0, days=9)
        path.write_bytes(whole)
    assert {**hash_tree(warehouse.root), "gc.lock": ""} == {**before, "gc.lock": ""}


@pytest.mark.slow
@pytest.mark.usefixtures("quick_models")
def test_a_build_after_gc_is_the_same_and_computes_nothing_that_was_kept(tmp_path: Path) -> None:
    warehouse, last = copy_shared_build(tmp_path / "w")
    small = write_corpus(tmp_path / "small", dict(list(TEXTS.items())[:2]))
    older = build_corpus(small, warehouse, ref="trial", order="1").snapshot
    shutil.rmtree(warehouse.refs / "trial")
    place = ["--warehouse", warehouse.root, "--older-than", "0d"]

    planned = run_json("gc", *place, "--dry-run")
    assert list_there(warehouse) == {older, last}
    done = run_json("gc", *place)

    assert done["moved"] == planned["moved"]
    assert done["moved"]["snapshots"]["count"] == 1
    assert done["moved"]["runs"]["count"] == 1
    assert done["moved"]["results"]["count"] > 0
    assert list_there(warehouse) == {last}
    assert not any(count_recomputed(build_corpus(shared_corpus(), warehouse)).values())
    freed = run_json("gc", *place)
    assert freed["bytes_deleted"] == done["bytes_moved"]
    assert build_corpus(small, warehouse, ref="trial").snapshot == older


def test_an_age_that_is_none_is_refused(tmp_path: Path) -> None:
    for age in ("30", "d", "-1d", "1w", "1.5d", "999999d", ""):
        fails(2, "such as 30d or 12h", "gc", "--warehouse", tmp_path, "--older-than", age)


def test_a_full_disk_in_gc_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = Warehouse(tmp_path)
    a, b, c = publish_days(warehouse, "abc")
    real = os.rename

    def rename(source: Path, target: Path) -> None:
        if source == warehouse.snapshots / max(a, b):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename)
        with pytest.raises(OSError, match="No space left"):
            sweep(warehouse, 9)

    assert list_there(warehouse) == {max(a, b), c}
    tag(warehouse, "t", max(a, b), at=name_day(9))
    assert [item.path for item in sweep(warehouse, 9).deleted] == [f"snapshots/{min(a, b)}"]
    assert list_there(warehouse) == {max(a, b), c}


def test_two_at_once_are_one(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    publish_days(warehouse, "ab")
    with retention._lock(warehouse), pytest.raises(ConflictError, match="another gc"):
        sweep(warehouse, 9)


# Kills: a child process dies at its n-th change of the disk, whatever it is about to do.

CHANGES = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"}


def die_at(change: int, act: Callable[[], object]) -> None:
    """Runs `act` in a process that is killed at that change; it may end before."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    left = change

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        writes = event == "open" and arguments[1] in {"w", "wb", "xb"}
        if event in CHANGES or writes:
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    try:
        act()
    except PyramidError:
        pass
    finally:
        os._exit(0)


class Operating(RuleBasedStateMachine):
    """Publishers, operators, readers and gc on one warehouse; any of them may be killed."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="kpyramid-operating-"))
        self.warehouse = Warehouse(self.root)
        self.day = 0
        self.readers: list[tuple[str, object]] = []

    def teardown(self) -> None:
        for _, lease in self.readers:
            lease.__exit__(None, None, None)  # type: ignore[attr-defined]
        shutil.rmtree(self.root)

    def act(self, kill: int | None, what: Callable[[], object]) -> None:
        self.day += 1
        if kill is not None:
            die_at(kill, what)
            return
        # Nothing to roll back, an order that is past, a name that is taken.
        with contextlib.suppress(InputError, ConflictError):
            what()

    @initialize(letters=st.permutations("abcde"))
    def start(self, letters: list[str]) -> None:
        for letter, ref in zip(letters, ["main", "main", "main", "live", "live"], strict=True):
            self.publish(None, letter, ref, False)

    kills = st.none() | st.integers(0, 14)
    refs = st.sampled_from(["main", "live"])

    @rule(kill=kills, letter=st.sampled_from("abcde"), ref=refs, late=st.booleans())
    def publish(self, kill: int | None, letter: str, ref: str, late: bool) -> None:
        order = f"{self.day // 2 if late else self.day:03d}"
        self.act(kill, lambda: publish(str(self.root), letter, ref, order, name_day(self.day)))

    @rule(kill=kills, ref=refs, number=st.integers(0, 9))
    def promote(self, kill: int | None, ref: str, number: int) -> None:
        if there := self.list_whole():
            snapshot = there[number % len(there)]
            self.act(kill, lambda: promote(self.warehouse, ref, snapshot, at=name_day(self.day)))

    @rule(kill=kills, ref=refs)
    def rollback(self, kill: int | None, ref: str) -> None:
        self.act(kill, lambda: rollback(self.warehouse, ref, at=name_day(self.day)))

    @rule(kill=kills, name=st.sampled_from(["t1", "t2"]), number=st.integers(0, 9))
    def tag(self, kill: int | None, name: str, number: int) -> None:
        if there := self.list_whole():
            snapshot = there[number % len(there)]
            self.act(kill, lambda: tag(self.warehouse, name, snapshot, at=name_day(self.day)))

    @rule(kill=kills, name=st.sampled_from(["t1", "t2"]))
    def untag(self, kill: int | None, name: str) -> None:
        self.act(kill, lambda: remove_tag(self.warehouse, name))

    @rule(number=st.integers(0, 9))
    def read(self, number: int) -> None:
        if there := self.list_whole():
            snapshot = there[number % len(there)]
            lease = hold(self.warehouse, snapshot)
            lease.__enter__()
            self.readers.append((snapshot, lease))

    @rule()
    def stop_reading(self) -> None:
        if self.readers:
            self.readers.pop()[1].__exit__(None, None, None)  # type: ignore[attr-defined]

    @rule(kill=kills, keep=st.integers(1, 3), days=st.sampled_from([0, 2, 50]))
    def gc(self, kill: int | None, keep: int, days: int) -> None:
        needed = {snapshot for snapshot, _ in self.readers}
        for ref in list_heads(self.warehouse):
            entries = list_entries(self.warehouse, ref)
            reachable = [s for s in list_standing(entries)[-keep:] if s in self.list_whole()]
            needed |= {*reachable, entries[-1].snapshot}
        self.act(kill, lambda: sweep(self.warehouse, self.day, keep=keep, days=days))
        assert needed <= {*self.list_whole()}

    def list_whole(self) -> list[str]:
        if not self.warehouse.snapshots.is_dir():
            return []
        return sorted(path.name for path in self.warehouse.snapshots.iterdir())

    @invariant()
    def logs_fit_and_every_snapshot_that_is_there_is_whole(self) -> None:
        assert check_refs(self.warehouse) == []
        for name in self.list_whole():
            assert check_bytes(self.warehouse.snapshots / name) == []
        for ref in list_heads(self.warehouse):
            head = read_head(self.warehouse, ref)
            assert head is not None
            assert head.snapshot in self.list_whole()
        for snapshot, _ in self.readers:
            assert snapshot in self.list_whole()


TestOperating = Operating.TestCase
TestOperating.settings = settings(max_examples=8, stateful_step_count=20)


@pytest.mark.parametrize("change", range(0, 40, 3))
def test_a_killed_gc_loses_nothing_and_the_next_one_finishes(tmp_path: Path, change: int) -> None:
    warehouse = Warehouse(tmp_path)
    *_, d, e = publish_days(warehouse, "abcde")
    sweep(warehouse, 4, keep=4)

    die_at(change, lambda: sweep(warehouse, 9, keep=2))

    assert {d, e} <= list_there(warehouse)
    for name in list_there(warehouse):
        assert check_bytes(warehouse.snapshots / name) == []
    sweep(warehouse, 9, keep=2)
    sweep(warehouse, 9, keep=2)
    assert list_there(warehouse) == {d, e}
    assert not [path for path in warehouse.trash.rglob("*") if path.is_file()]


def test_what_another_published_and_gc_took_meanwhile_is_published_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse, moves = Warehouse(tmp_path), []
    rename = Path.rename

    def rename_late(source: Path, target: Path) -> Path:
        moves.append(target)
        if len(moves) == 1:  # the other's is there just for this moment
            other = shutil.copytree(source, target)
            with pytest.raises(OSError, match="not empty"):
                rename(source, target)
            shutil.rmtree(other)
            raise OSError(errno.ENOTEMPTY, "not empty")
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", rename_late)
    name = publish(str(tmp_path), "a", "main", "1", "2026-01-01T00:00:00+00:00")

    assert len([one for one in moves if one == warehouse.snapshots / name]) == 2
    assert check_bytes(warehouse.snapshots / name) == []


def _publish_often(root: str, seed: int) -> int:
    """Publishes few contents again and again, so that what gc takes away is made anew."""
    chance, lost = random.Random(seed), 0
    for number in range(25):
        while True:
            try:
                at = datetime.now(UTC).isoformat()
                publish(root, chance.choice("abcd"), f"ref{seed}", f"{number:03d}", at)
                break
            except ConflictError:  # run the command again
                lost += 1
    return lost


def _read_often(root: str, times: int) -> int:
    """Holds what a ref is at and reads all of it."""
    warehouse, read = Warehouse(Path(root)), 0
    while read < times:
        for ref in list_heads(warehouse):
            head = read_head(warehouse, ref)
            assert head is not None
            try:
                with hold(warehouse, head.snapshot):
                    time.sleep(0.005)
                    assert check_bytes(warehouse.snapshots / head.snapshot) == []
                    read += 1
            except ConflictError:
                continue  # the ref has moved on
    return read


@pytest.mark.slow
def test_gc_beside_publishers_and_readers_takes_nothing_from_them(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        publishing = [pool.apply_async(_publish_often, (str(tmp_path), seed)) for seed in (1, 2)]
        while not warehouse.refs.is_dir():
            time.sleep(0.01)
        reading = pool.apply_async(_read_often, (str(tmp_path), 200))
        moved = 0
        while not all(one.ready() for one in (*publishing, reading)):
            policy = Policy(1, timedelta(0), datetime.now(UTC), lambda runs: None)
            moved += len(collect(warehouse, policy).moved)
        for one in publishing:
            one.get()
        assert reading.get() >= 200
    assert moved > 0
    assert check_refs(warehouse) == []
    for ref in list_heads(warehouse):
        head = read_head(warehouse, ref)
        assert head is not None
        assert check_bytes(warehouse.snapshots / head.snapshot) == []


def test_what_is_no_snapshot_and_no_run_is_left_where_it_is(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    publish_days(warehouse, "ab")
    strange: Iterable[Path] = (
        warehouse.snapshots / "notes",
        warehouse.snapshots / ("f" * 16),
        warehouse.runs / "mine",
    )
    for folder in strange:
        folder.mkdir(parents=True)
        (folder / "x").write_text("x")
    (warehouse.snapshots / ("e" * 16)).symlink_to(tmp_path)

    sweep(warehouse, 99)

    for folder in strange:
        assert (folder / "x").read_text() == "x"
    assert (warehouse.snapshots / ("e" * 16)).is_symlink()
