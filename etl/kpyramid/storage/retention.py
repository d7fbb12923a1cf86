"""Garbage collection of a warehouse: what is needed, and removing the rest in two steps."""

import json
import logging
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path, PurePosixPath

from filelock import FileLock, Timeout

from kpyramid.errors import ConflictError
from kpyramid.keys import ID_DIGITS
from kpyramid.storage.bucket import BucketStore
from kpyramid.storage.items import do_at_once
from kpyramid.storage.layout import Warehouse, clean_staging, explain_damage
from kpyramid.storage.leases import list_held, lock_bucket
from kpyramid.storage.refs import RefEntry, list_entries, list_heads, list_standing
from kpyramid.storage.results import MARKER
from kpyramid.storage.runs import find_damaged, list_runs
from kpyramid.storage.snapshots import MANIFEST, date_snapshots
from kpyramid.storage.store import Blob
from kpyramid.storage.writing import sync_folder

log = logging.getLogger(__name__)

# The trash of a warehouse: listing its items, moving items to it and back, deleting them.

KINDS = ("snapshots", "runs", "results", "rows")
"""Kinds of items: snapshots, folders of runs, stored results of stages, and of functions."""

PLACES = ("snapshots/*", "runs/*", "cache/results/*/*", "cache/rows/*/*")
"""Patterns of their paths, in the order of `KINDS`."""


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a warehouse: its kind, its path below the warehouse, its size.

    `used`: when a result or rows were written or last read, in seconds since 1970; 0 for snapshots
    and runs. `in_trash`: whether it was moved there.
    """

    kind: str
    path: str
    bytes: int
    used: float = 0.0
    in_trash: bool = False


class Folders:
    """Items in folders: each is in one place, for it is renamed.

    Both this and `Objects` list items, in the warehouse or in its trash; move them to the trash;
    restore them, each unless there is one in its place; delete them from the trash, so that what is
    half deleted is never taken for whole; and finish: delete what a call that was killed left half
    deleted, or a publisher half written.
    """

    def __init__(self, warehouse: Warehouse) -> None:
        self._root = warehouse.root
        self._trash = warehouse.trash

    def list_items(self, *, in_trash: bool) -> list[Item]:
        root = self._trash if in_trash else self._root
        return [
            Item(kind, path.relative_to(root).as_posix(), *_measure(kind, path), in_trash)
            for kind, pattern in zip(KINDS, PLACES, strict=True)
            for path in sorted(root.glob(pattern))
            if path.is_dir() and not path.is_symlink()
        ]

    def move(self, items: Sequence[Item]) -> None:
        _move({self._root / item.path: self._trash / item.path for item in items})

    def restore(self, items: Sequence[Item]) -> None:
        _move({self._trash / item.path: self._root / item.path for item in items})

    def delete(self, items: Sequence[Item]) -> None:
        gone = self._trash / "deleted"
        gone.mkdir(parents=True, exist_ok=True)
        _move({self._trash / item.path: gone / uuid.uuid4().hex for item in items})
        self.finish()

    def finish(self) -> None:
        left = (self._trash / "deleted").glob("*")
        do_at_once(lambda folder: shutil.rmtree(folder, ignore_errors=True), left)


def measure(folder: Path) -> int:
    """The bytes of all files below a folder; a share of files with several names."""
    return _measure("", folder)[0]


def _measure(kind: str, folder: Path) -> tuple[int, float]:
    """The bytes below a folder, and the time of its last use."""
    total, times = 0, [0.0]
    for path in (folder, *folder.rglob("*")):
        try:
            status = path.lstat()
        except FileNotFoundError:  # a file of a build that goes on
            continue
        names = 1 if stat.S_ISDIR(status.st_mode) else status.st_nlink
        total += status.st_size // names if path != folder else 0
        if kind == "rows" or (kind == "results" and path.name == MARKER):
            times.append(status.st_mtime)
    return total, max(times)


def _move(targets: Mapping[Path, Path]) -> None:
    """Moves folders and syncs their parents: after a crash each is here or there."""
    for source, target in targets.items():
        _rename(source, target)
    for folder in {path.parent for pair in targets.items() for path in pair}:
        if folder.is_dir():
            sync_folder(folder)


def _rename(source: Path, target: Path) -> None:
    """Moves a folder; does nothing if the target exists or the source does not."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(source, target)  # noqa: PTH104 - fails where a folder with files is
    except FileNotFoundError:
        return
    except OSError:
        if not target.exists():
            raise


# In a bucket nothing can be renamed. An item is whole, and there for anybody, while its mark is:
# the object that is written last. So only the mark moves to `trash/` and back. Before the rest is
# deleted the mark moves on to `trash/deleted/`: what is half deleted is never put back. Who
# publishes a snapshot anew that has something in the trash does it under a lease, and not while a
# gc is at work (`copies.py`).

_MARKS = dict(zip(KINDS, (MANIFEST, "run.json", MARKER, ""), strict=True))
"""The object that completes an item, by kind. Rows have none: an empty note says that they are in
the trash, and they are read until they are deleted."""
_TRASH, _DELETED, _NOTE = "trash", "trash/deleted", "note"


@dataclass(frozen=True)
class Objects:
    """Items of a bucket.

    `find_held` gives the ids of the snapshots with a lease. Items without a mark that were written
    before the time `late`, in seconds since 1970, are of a process that died.
    """

    bucket: BucketStore
    find_held: Callable[[], Collection[str]]
    late: float

    def list_items(self, *, in_trash: bool) -> list[Item]:
        """The items whose mark is there."""
        here, there = self._list(_TRASH if in_trash else ""), self._list("" if in_trash else _TRASH)
        items = []
        for path, (kind, blobs) in here.items():
            mark = f"{_TRASH}/{_name_mark(kind, path)}" if in_trash else _name_mark(kind, path)
            if _MARKS[kind] and mark not in {blob.name for blob in blobs}:
                continue
            if not _MARKS[kind] and not in_trash and path in there:
                continue  # its note is in the trash
            below = [*blobs, *there.get(path, (kind, []))[1]] if in_trash else blobs
            used = max((blob.modified for blob in below if _is_use(kind, blob)), default=0.0)
            items.append(Item(kind, path, sum(blob.size for blob in below), used, in_trash))
        return items

    def move(self, items: Sequence[Item]) -> None:
        """See `Folders`; the mark is in the trash before it is gone from its place."""
        for item in items:
            mark = _name_mark(item.kind, item.path)
            self._carry(mark, f"{_TRASH}/{mark}")

    def restore(self, items: Sequence[Item]) -> None:
        """See `Folders`; a mark that was written anew stays."""
        for item in items:
            mark = _name_mark(item.kind, item.path)
            if _MARKS[item.kind] and self.bucket.read(mark) is None:
                self._carry(f"{_TRASH}/{mark}", mark)
            else:
                self.bucket.delete(f"{_TRASH}/{mark}")

    def delete(self, items: Sequence[Item]) -> None:
        for item in items:
            mark = _name_mark(item.kind, item.path)
            self._carry(f"{_TRASH}/{mark}", f"{_DELETED}/{mark}")
            self._purge(item.kind, item.path, f"{_DELETED}/{mark}")

    def finish(self) -> None:
        for path, (kind, notes) in self._list(_DELETED).items():
            for note in notes:
                self._purge(kind, path, note.name)
        trashed, held = self._list(_TRASH), self.find_held()
        for path, (kind, blobs) in self._list("").items():
            is_whole = kind in ("runs", "rows") or path in trashed
            if is_whole or _name_mark(kind, path) in {blob.name for blob in blobs}:
                continue
            if max(x.modified for x in blobs) < self.late and path.split("/")[-1] not in held:
                do_at_once(self.bucket.delete, [blob.name for blob in blobs])

    def _purge(self, kind: str, path: str, note: str) -> None:
        """Deletes an item and then its note, unless it was or is being made anew."""
        if path.rpartition("/")[2] in self.find_held():
            return  # the next call looks again
        if not _MARKS[kind] or self.bucket.read(_name_mark(kind, path)) is None:
            do_at_once(self.bucket.delete, [blob.name for blob in self.bucket.list(path)])
        self.bucket.delete(note)

    def _carry(self, source: str, target: str) -> None:
        data = self.bucket.read(source)
        self.bucket.replace(target, data or b"")
        self.bucket.delete(source)

    def _list(self, place: str) -> dict[str, tuple[str, list[Blob]]]:
        """The objects of each item below a place, by the item's path, with its kind."""
        items: dict[str, tuple[str, list[Blob]]] = {}
        for kind, pattern in zip(KINDS, PLACES, strict=True):
            top, depth = pattern.partition("/*")[0], pattern.count("/") + 1
            for blob in self.bucket.list(f"{place}/{top}" if place else top):
                parts = blob.name.removeprefix(f"{place}/").split("/")
                if len(parts) > depth:
                    items.setdefault("/".join(parts[:depth]), (kind, []))[1].append(blob)
        return items


def _name_mark(kind: str, path: str) -> str:
    return f"{path}/{_MARKS[kind] or _NOTE}"


def _is_use(kind: str, blob: Blob) -> bool:
    """Whether the modification time of an object is a use of its item."""
    name = PurePosixPath(blob.name)
    if kind == "rows":
        return name.name != _NOTE
    return kind == "results" and name.name == MARKER and name.parts[0] != _TRASH


# Nothing is deleted where it lies. It is moved to `trash/` under the same path, then everything
# is looked at again, and what somebody has come to need is put back: whoever needs a snapshot
# takes a lease before he looks whether it is there, and a result is touched when it is found. The
# next gc deletes what has lain in the trash since.

_RESULTS = timedelta(days=2)
"""Results of runs other than refs' are rebuilt from the caches of rows; they would double the
storage of each night."""
_LATELY = timedelta(days=1)
"""A process that works on a local copy uses it again within that time."""
_UNFINISHED = timedelta(days=7)
"""Longest time in which an unfinished run may go on, whatever age is asked for."""

FindRows = Callable[[Sequence[str]], frozenset[str] | None]
"""The folders of the row cache that runs use, as FUNCTION/FINGERPRINT; None if unknown."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What stays, besides snapshots of refs, tags and leases.

    `keep`: number of snapshots of each ref, HEAD among them, without rolled-back ones.
    `older_than`: items needed within that time before `now` stay. `find_rows` is called with the
    runs that stay. `ended`: refs that keep nothing any more.
    """

    keep: int
    older_than: timedelta
    now: datetime
    find_rows: FindRows
    ended: Collection[str] = ()

    def is_young(self, time: datetime) -> bool:
        """Whether a time is too recent for removal."""
        return time > self.now - self.older_than


_Needed = Callable[[Item], bool]


@dataclass(frozen=True, slots=True)
class Collected:
    """The items moved to the trash, those deleted from it, and the held snapshots."""

    moved: tuple[Item, ...]
    deleted: tuple[Item, ...]
    held: Mapping[str, str]


def collect(warehouse: Warehouse, policy: Policy, *, dry_run: bool = False) -> Collected:
    """Deletes the unneeded items in the trash, and moves all others that are unneeded there.

    With `dry_run` both are only listed. A run that cannot be read stays, and so do all results and
    rows: which of them it needs is unknown.

    Raises:
        ConflictError: another call is at work.
        IntegrityError: a ref or a lease cannot be read; nothing was removed.
    """
    if not warehouse.root.is_dir() and not warehouse.bucket:
        return Collected((), (), {})
    with nullcontext() if dry_run else _lock(warehouse):
        shelf: Folders | Objects = Folders(warehouse)
        if warehouse.bucket:
            late = (policy.now - _UNFINISHED).timestamp()
            shelf = Objects(warehouse.bucket, lambda: {*list_held(warehouse).values()}, late)
        held = list_held(warehouse)
        needed = _find_needed(warehouse, policy, held)
        chosen = [item for item in shelf.list_items(in_trash=False) if not needed(item)]
        old = [item for item in shelf.list_items(in_trash=True) if not needed(item)]
        if dry_run:
            return Collected(tuple(chosen), tuple(old), held)
        clean_staging(warehouse)
        _restore(shelf, needed)  # what a call that was killed left there
        shelf.finish()
        shelf.delete(old)
        shelf.move(chosen)
        _restore(shelf, _find_needed(warehouse, policy, list_held(warehouse)))
        if warehouse.bucket:
            there = {item.path for item in shelf.list_items(in_trash=False)}
            _drop_copies(Warehouse(warehouse.root), there, policy)
        else:
            there = {item.path for item in chosen if (warehouse.root / item.path).exists()}
        return Collected(tuple(i for i in chosen if i.path not in there), tuple(old), held)


@contextmanager
def _lock(warehouse: Warehouse) -> Iterator[None]:
    warehouse.root.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(warehouse.root / "gc.lock", timeout=0), lock_bucket(warehouse):
            yield
    except Timeout as e:
        place = warehouse.locate()
        raise ConflictError(f"another gc is at work in {place}; wait for its end") from e


def _drop_copies(area: Warehouse, there: Collection[str], policy: Policy) -> None:
    """Removes local copies that the bucket has no more and nobody used for a day."""
    held = {*list_held(area).values()}
    shelf, late = Folders(area), (policy.now - _LATELY).timestamp()
    gone = []
    for item in shelf.list_items(in_trash=False):
        changed = (area.root / item.path).stat().st_mtime
        if item.path in there or max(changed, item.used) > late:
            continue
        if item.path.rpartition("/")[2] not in held:
            gone.append(item)
    shelf.move(gone)
    shelf.delete(gone)


def _find_needed(warehouse: Warehouse, policy: Policy, held: Mapping[str, str]) -> _Needed:
    """A function that tells whether an item of the warehouse or its trash is needed."""
    runs, known = list_runs(warehouse), date_snapshots(warehouse)
    refs = [ref for ref in list_heads(warehouse) if ref not in policy.ended]
    logs = {ref: list_entries(warehouse, ref) for ref in refs}
    snapshots = {*held.values(), *_keep_snapshots(logs, policy, runs, known)}
    named = _keep_runs(logs, policy, runs, snapshots)
    heads = {entries[-1].run for entries in logs.values()}
    under_way = {str(run["run"]) for run in runs if run["snapshot"] is None}
    damaged = find_damaged(warehouse, named | heads)
    for problem in damaged.values():
        log.warning("%s. Until then no results and no caches are removed", problem)
    marks = read_marks(warehouse, (named & (heads | under_way)) - damaged.keys())
    results = replace(policy, older_than=min(policy.older_than, _RESULTS))
    rows = None if damaged else policy.find_rows(sorted(named))
    recorded = {str(run["run"]) for run in runs}

    def is_needed(item: Item) -> bool:
        *_, parent, name = item.path.split("/")
        if item.kind == "snapshots":  # what is no snapshot, or no run, is not touched
            return name in snapshots or (not item.in_trash and name not in known)
        if item.kind == "runs":
            is_known = name in recorded and name not in damaged
            return name in named or (not item.in_trash and not is_known)
        rule = results if item.kind == "results" else policy
        if rule.is_young(datetime.fromtimestamp(item.used, UTC)):
            return True
        if item.kind == "results":
            return bool(damaged) or f"{parent}/{name}" in marks
        return rows is None or f"{parent}/{name}" in rows

    return is_needed


_Logs = Mapping[str, Sequence[RefEntry]]
"""The entries of each ref."""


def _keep_snapshots(
    logs: _Logs, policy: Policy, runs: Iterable[Mapping[str, object]], known: Mapping[str, float]
) -> set[str]:
    """The snapshots of refs and tags, the last ones of each ref, and recently used ones."""
    retained: set[str] = set()
    used: dict[str, datetime] = {}

    def use(snapshot: str, time: str) -> None:
        used[snapshot] = max(used.get(snapshot, _parse(time, policy)), _parse(time, policy))

    for entries in logs.values():
        retained |= {entries[-1].snapshot, *list_standing(entries)[-policy.keep :]}
        for entry, after in zip_longest(entries, entries[1:]):
            use(entry.snapshot, (after or entry).at)  # readers had it until the next came
    for run in runs:
        if run["snapshot"]:
            use(str(run["snapshot"]), str(run["started"]))
    for name, written in known.items():
        if name not in used:  # nothing else says when it was made
            used[name] = datetime.fromtimestamp(written, UTC)
    return retained | {snapshot for snapshot, time in used.items() if policy.is_young(time)}


def _keep_runs(
    logs: _Logs, policy: Policy, runs: Sequence[Mapping[str, object]], snapshots: set[str]
) -> set[str]:
    """The runs that made these snapshots, recent ones, and those that may go on."""
    retained = {e.run for entries in logs.values() for e in entries if e.snapshot in snapshots}
    newest = {str(run["snapshot"]): str(run["run"]) for run in reversed(runs) if run["snapshot"]}
    retained |= {name for snapshot, name in newest.items() if snapshot in snapshots}
    for run in runs:
        started = _parse(str(run["started"]), policy)
        is_open = run["snapshot"] is None and started > policy.now - _UNFINISHED
        # What an unfinished run spent counts against the budget until its ref moves on.
        head = logs.get(str(run["ref"]))
        counts = run["snapshot"] is None and (not head or _parse(head[-1].at, policy) < started)
        if policy.is_young(started) or is_open or counts:
            retained.add(str(run["run"]))
    return retained


def read_marks(warehouse: Warehouse, runs: Iterable[str]) -> set[str]:
    """The stored results that runs name, as STAGE/KEY.

    Raises:
        IntegrityError: a mark cannot be read.
    """
    marks = set()
    for run in filter(None, runs):  # of a snapshot whose run no ref knows
        names = [blob.name for blob in warehouse.store.list(f"runs/{run}/stages")]
        for name, data in zip(names, warehouse.read_all(names), strict=True):
            with explain_damage(
                f"mark {warehouse.locate(name)}",
                ", so what it rests on is unknown and nothing was removed; restore it, or remove "
                "the run's folder",
            ):
                if data is not None:  # else a build that goes on forgot it
                    marks.add(f"{Path(name).stem}/{json.loads(data)['key'][:ID_DIGITS]}")
    return marks


def _parse(time: str, policy: Policy) -> datetime:
    """The time of an entry or a record; an unreadable one counts as now, so that it stays."""
    try:
        parsed = datetime.fromisoformat(time)
    except ValueError:
        return policy.now + policy.older_than
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _restore(shelf: Folders | Objects, needed: _Needed) -> None:
    """Restores the needed items of the trash."""
    shelf.restore([item for item in shelf.list_items(in_trash=True) if needed(item)])
