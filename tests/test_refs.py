"""Refs move forward only, one commit at a time, whoever writes and whatever the clock says."""

import datetime
import errno
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kpyramid.errors import ConflictError, GateError, InputError, IntegrityError, OvertakenError
from kpyramid.settings import Settings
from kpyramid.storage import publication, runs, store
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.publication import commit, promote, remove_tag, rollback, tag, write_snapshot
from kpyramid.storage.refs import (
    RefEntry,
    check_ref_name,
    check_refs,
    encode_entry,
    list_entries,
    list_heads,
    list_standing,
    read_head,
    resolve_ref,
)
from kpyramid.storage.verification import check_bytes, list_snapshots
from tests.corpora import (
    TEXTS,
    build_corpus,
    copy_shared_build,
    hash_tree,
    shared_corpus,
    use_quick_models,
    write_corpus,
)


def move(
    warehouse: Warehouse, snapshot: str, order: str = "2026-01-01", ref: str = "main"
) -> RefEntry | None:
    return commit(warehouse, ref, snapshot=snapshot * 16, order=order, run="r", at="t")


def publish(warehouse: Warehouse, letter: str, order: str, ref: str = "main") -> str:
    """A small whole snapshot, committed at 02:00 of the day that is its order."""
    files: dict[str, bytes | Path] = {f"{n}.txt": letter.encode() for n in range(3)}
    snapshot = write_snapshot(warehouse, files, {"letter": letter})
    at = f"{order}T02:00:00+00:00"
    commit(warehouse, ref, snapshot=snapshot, order=order, run=letter, at=at)
    return snapshot


def test_sixteen_committers_at_once_make_one_chain(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    letters = "0123456789abcdef"

    with ThreadPoolExecutor(16) as pool:
        done = list(pool.map(lambda letter: move(warehouse, letter), letters))

    assert all(done)
    entries = list_entries(warehouse, "main")
    assert sorted(e.snapshot[0] for e in entries) == sorted(letters)
    assert [e.parent for e in entries] == [None, *(e.snapshot for e in entries[:-1])]


@pytest.mark.parametrize("name", ["../x", "", "a/b", "/a", ".", "..", ".a", "-a", "a\n", "a" * 101])
def test_a_bad_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="use letters, digits"):
        check_ref_name(name)
    with pytest.raises(InputError):
        move(Warehouse(tmp_path), "a", ref=name)
    with pytest.raises(InputError):
        resolve_ref(Warehouse(tmp_path), name)
    assert list(tmp_path.iterdir()) == []


def test_every_flipped_bit_of_entry_is_noticed_and_damaged_one_is_named(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    move(warehouse, "a")
    move(warehouse, "b")
    path = tmp_path / "refs" / "main" / "0000000002.json"
    whole = path.read_bytes()
    (warehouse.snapshots / ("b" * 16)).mkdir(parents=True)
    assert check_refs(warehouse) == []
    flipped = (1 << bit for bit in range(8 * len(whole)))
    number = int.from_bytes(whole, "little")
    for data in (whole[:20], *((number ^ bit).to_bytes(len(whole), "little") for bit in flipped)):
        path.write_bytes(data)
        with pytest.raises(IntegrityError, match=r"0000000002\.json"):
            read_head(warehouse, "main")


def test_an_entry_of_an_earlier_release_is_still_read(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    move(warehouse, "a")
    path = tmp_path / "refs" / "main" / "0000000001.json"
    fields = json.loads(path.read_bytes())
    del fields["sha256"]
    path.write_text(json.dumps(fields, indent=1))
    head, moved = read_head(warehouse, "main"), move(warehouse, "b")
    assert head is not None and moved is not None
    assert head.snapshot == moved.parent == "a" * 16
    (warehouse.snapshots / ("b" * 16)).mkdir(parents=True)
    assert check_refs(warehouse) == []


def rewrite(entry: Path, **changed: str) -> None:
    """Changes an entry with its checksum, as a clumsy hand might."""
    fields = json.loads(entry.read_bytes())
    del fields["sha256"]
    entry.write_bytes(encode_entry(RefEntry(**{**fields, **changed})))


LOGS: dict[str, Callable[[Path], object]] = {
    "0000000002.json cannot be": lambda f: os.truncate(f / "0000000002.json", 9),
    "0000000002.json is missing": lambda f: (f / "0000000002.json").unlink(),
    "2.json: its parent is not": lambda f: rewrite(f / "0000000002.json", parent="f" * 16),
    "3.json: its order is less": lambda f: rewrite(f / "0000000003.json", order="2025-01-01"),
    f"ref 'main' is at snapshot {'c' * 16}: not there": (
        lambda f: (f.parent.parent / "snapshots" / ("c" * 16)).rmdir()
    ),
}


@pytest.mark.parametrize("expected", LOGS)
def test_a_log_that_does_not_fit_together_is_found(tmp_path: Path, expected: str) -> None:
    warehouse = Warehouse(tmp_path)
    for letter in "abc":
        move(warehouse, letter)
        (warehouse.snapshots / (letter * 16)).mkdir(parents=True)
    assert check_refs(warehouse) == []
    LOGS[expected](warehouse.refs / "main")
    (problem,) = check_refs(warehouse)
    assert expected in problem


def test_what_is_no_ref_and_no_snapshot_is_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    strange = [
        warehouse.snapshots / "notes",
        warehouse.snapshots / ("f" * 16),
        warehouse.refs / "a name with spaces",
        warehouse.refs / "main" / "1abc.json",
        warehouse.refs / "main" / "9.json",
        warehouse.refs / "main" / "9999999999.json.bak",
        warehouse.refs / "main" / "more",
    ]
    for folder in strange:
        folder.mkdir()
        (folder / "x").write_text("x")
    files = [warehouse.snapshots / ".DS_Store", warehouse.refs / "README"]
    for file in files:
        file.write_text("x")

    rows = list_snapshots(warehouse)

    assert [row["id"] for row in rows] == [snapshot]
    assert rows[0]["refs"] == ["main"]
    assert check_refs(warehouse) == []
    for path in (*strange, *files):
        assert str(path) in caplog.text
    assert move(warehouse, "a", "9999") is not None


@pytest.mark.slow
@pytest.mark.usefixtures("quick_models")
def test_an_overtaken_backfill_leaves_head_and_both_snapshots(tmp_path: Path) -> None:
    warehouse, nightly = copy_shared_build(tmp_path / "w")
    older = write_corpus(tmp_path / "older", dict(list(TEXTS.items())[:4]))

    with pytest.raises(ConflictError, match="2025-12-31"):
        build_corpus(older, warehouse, order="2025-12-31")

    assert resolve_ref(warehouse, "main") == nightly
    listed = {str(row["id"]): row["refs"] for row in list_snapshots(warehouse)}
    assert len(listed) == 2
    assert listed.pop(nightly) == ["main"]
    ((backfill, named),) = listed.items()
    assert named == []
    assert check_bytes(warehouse.snapshots / backfill) == []
    outcome = build_corpus(older, warehouse, ref="backfill", order="2025-12-31")
    assert outcome.snapshot == backfill == resolve_ref(warehouse, "backfill")
    assert resolve_ref(warehouse, "main") == nightly


NOW = "2026-02-01T09:00:00+00:00"


def publish_nights(warehouse: Warehouse, count: int = 3) -> list[str]:
    return [publish(warehouse, f"night {n}", f"2026-01-0{n}") for n in range(1, count + 1)]


def test_a_rollback_is_an_entry_of_its_own_and_a_second_one_goes_further(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    first, second, third = publish_nights(warehouse)
    once = rollback(warehouse, "main", at=NOW)
    assert (once.snapshot, once.parent, once.run) == (second, third, "night 2")
    assert once.order == "2026-01-03"
    with pytest.raises(OvertakenError, match="HEAD never moves back"):
        publish(warehouse, "backfill", "2026-01-02")
    assert rollback(warehouse, "main", at=NOW).snapshot == first
    with pytest.raises(InputError, match=r"no snapshot before.*kpyramid log main"):
        rollback(warehouse, "main", at=NOW)
    entries = list_entries(warehouse, "main")
    assert [e.action for e in entries] == ["build"] * 3 + ["rollback"] * 2
    assert list_standing(entries) == [first]
    fourth = publish(warehouse, "night 4", "2026-01-04")
    assert list_standing(list_entries(warehouse, "main")) == [first, fourth]
    assert rollback(warehouse, "main", at=NOW).snapshot == first
    assert check_refs(warehouse) == []


def test_promote_moves_forward_and_back_and_between_refs(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    first, _, third = publish_nights(warehouse)

    moved = promote(warehouse, "production", resolve_ref(warehouse, "main"), at=NOW)
    assert moved is not None
    assert (moved.snapshot, moved.parent, moved.order) == (third, None, "2026-01-03")
    assert promote(warehouse, "production", third, at=NOW) is None
    back = promote(warehouse, "production", first, at=NOW)
    assert back is not None
    assert (back.order, back.run, back.action) == ("2026-01-03", "night 1", "promote")
    assert rollback(warehouse, "production", at=NOW).snapshot == third
    assert check_refs(warehouse) == []


def test_earlier_entries_are_named_by_number_or_day(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    first, second, third = publish_nights(warehouse)
    rollback(warehouse, "main", at=NOW)

    for name, expected in {
        "main": second,
        "main@0": second,
        "main@1": third,
        "main@3": first,
        "main@2026-01-02": second,
        "main@2026-01-31": third,
        "main@2026-01-03T01:59": second,
        "main@2026-02-01": second,
    }.items():
        assert resolve_ref(warehouse, name) == expected, name
    for name in ("main@4", "main@2025-12-31"):
        with pytest.raises(InputError, match=r"first entry of 4.*kpyramid log main"):
            resolve_ref(warehouse, name)
    for name in ("main@", "main@last", "main@-1", "main@{1}", "main@2026"):
        with pytest.raises(InputError, match="main@"):
            resolve_ref(warehouse, name)
    with pytest.raises(InputError, match="unknown ref 'other'"):
        resolve_ref(warehouse, "other@1")
    with pytest.raises(InputError, match="use letters"):
        resolve_ref(warehouse, "../x@1")


def test_a_tag_stays_where_it_is(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    first, second, _ = publish_nights(warehouse)

    assert tag(warehouse, "release-1", first, at=NOW)
    assert tag(warehouse, "release-1", first, at=NOW) is None
    for act in (
        lambda: tag(warehouse, "release-1", second, at=NOW),
        lambda: tag(warehouse, "main", second, at=NOW),
        lambda: tag(warehouse, "0" * 16, second, at=NOW),
        lambda: tag(warehouse, "..", second, at=NOW),
        lambda: tag(warehouse, "release-2", "0" * 16, at=NOW),
        lambda: promote(warehouse, "release-1", second, at=NOW),
        lambda: promote(warehouse, "0" * 16, second, at=NOW),
        lambda: promote(warehouse, "../x", second, at=NOW),
        lambda: promote(warehouse, "main", "0" * 16, at=NOW),
        lambda: rollback(warehouse, "release-1", at=NOW),
        lambda: rollback(warehouse, "nothing", at=NOW),
        lambda: publish(warehouse, "night 4", "2026-01-04", ref="release-1"),
        lambda: runs.start_run(warehouse, tmp_path, Settings(), ref="release-1"),
        lambda: remove_tag(warehouse, "main"),
        lambda: remove_tag(warehouse, "nothing"),
    ):
        with pytest.raises(InputError):
            act()
    assert resolve_ref(warehouse, "release-1") == first
    assert [*list_heads(warehouse)] == ["main", "release-1"]
    assert check_refs(warehouse) == []
    assert remove_tag(warehouse, "release-1") == first
    assert [*list_heads(warehouse)] == ["main"]


def test_no_ref_moves_to_a_damaged_snapshot(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    first, second, third = publish_nights(warehouse)
    (warehouse.snapshots / second / "1.txt").write_text("x")
    for act in list_acts(warehouse, second).values():
        with pytest.raises(IntegrityError, match=r"1\.txt"):
            act()
    assert resolve_ref(warehouse, "main") == third
    assert promote(warehouse, "main", first, at=NOW)


@pytest.mark.parametrize("action", ["promote", "rollback"])
def test_of_two_who_move_a_ref_by_hand_at_once_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    warehouse = Warehouse(tmp_path)
    first, second, third = publish_nights(warehouse)
    real = publication.append_entry

    def create(*given: Any) -> bool:
        monkeypatch.setattr(publication, "append_entry", real)
        rollback(warehouse, "main", at=NOW)
        return real(*given)

    monkeypatch.setattr(publication, "append_entry", create)
    with pytest.raises(ConflictError, match=r"moved by somebody else.*kpyramid log main"):
        list_acts(warehouse, first)[action]()

    assert resolve_ref(warehouse, "main") == second, "undone once, not twice"
    assert [e.snapshot for e in list_entries(warehouse, "main")] == [first, second, third, second]


def list_acts(warehouse: Warehouse, snapshot: str) -> dict[str, Callable[[], object]]:
    """What a person does with refs and a snapshot."""
    return {
        "promote": lambda: promote(warehouse, "main", snapshot, at=NOW),
        "tag": lambda: tag(warehouse, "t", snapshot, at=NOW),
        "rollback": lambda: rollback(warehouse, "main", at=NOW),
    }


@pytest.mark.parametrize("action", ["promote", "rollback", "tag"])
def test_on_a_full_disk_no_ref_moves_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    warehouse = Warehouse(tmp_path)
    first, second, _ = publish_nights(warehouse)
    before = hash_tree(tmp_path)

    def write(path: Path, data: bytes) -> None:
        path.write_bytes(data[:9])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def sync(file: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    act = list_acts(warehouse, first)[action]
    for module, name, fail in ((store, "write_and_sync", write), (os, "fsync", sync)):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            with pytest.raises(OSError, match="No space left"):
                act()
        assert hash_tree(tmp_path) == before
    assert act()
    assert check_refs(warehouse) == []
    assert second in {entry.snapshot for entry in list_entries(warehouse, "main")}


@pytest.mark.slow
@pytest.mark.usefixtures("quick_models")
def test_undone_comes_back_by_promote(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w")
    small = write_corpus(tmp_path / "small", dict(list(TEXTS.items())[:4]))
    good = build_corpus(small, warehouse, order="2026-01-01").snapshot
    bad = build_corpus(shared_corpus(), warehouse, order="2026-01-02").snapshot
    rollback(warehouse, "main", at=NOW)

    with pytest.raises(GateError, match=rf"standing: .*kpyramid promote main {bad}"):
        build_corpus(shared_corpus(), warehouse, order="2026-01-03")
    assert resolve_ref(warehouse, "main") == good
    assert promote(warehouse, "main", bad, at=NOW)
    assert build_corpus(shared_corpus(), warehouse, order="2026-01-03").snapshot == bad
    rollback(warehouse, "main", at=NOW)
    (small / "new.txt").write_text("Clara Voss founded Brunel Mills in 1902 in Leeds.")
    mended = build_corpus(small, warehouse, order="2026-01-04").snapshot
    assert resolve_ref(warehouse, "main") == mended
    assert check_refs(warehouse) == []


class SlowClock(datetime.datetime):
    """A clock that is a day behind."""

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "SlowClock":
        real = datetime.datetime.now(tz) - datetime.timedelta(days=1)
        return cls.fromtimestamp(real.timestamp(), tz)


@pytest.mark.slow
def test_a_clock_set_back_neither_stops_a_build_nor_changes_an_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_quick_models(monkeypatch)
    warehouse = Warehouse(tmp_path / "w")
    small = write_corpus(tmp_path / "small", dict(list(TEXTS.items())[:4]))
    build_corpus(small, warehouse)

    monkeypatch.setattr(runs, "datetime", SlowClock)
    outcome = build_corpus(shared_corpus(), warehouse)

    orders = [entry.order for entry in list_entries(warehouse, "main")]
    assert len(orders) == 2
    assert orders == sorted(orders)
    assert outcome.snapshot == copy_shared_build(tmp_path / "other")[1]
