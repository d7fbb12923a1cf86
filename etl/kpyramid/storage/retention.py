"""What of a warehouse is kept, and removing the rest in two steps."""

import json
import os
import shutil
import stat
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path

from filelock import FileLock, Timeout

from kpyramid.errors import ConflictError, IntegrityError
from kpyramid.keys import ID_DIGITS
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.leases import list_held
from kpyramid.storage.refs import list_entries, list_refs, list_standing
from kpyramid.storage.results import MARKER
from kpyramid.storage.runs import list_runs
from kpyramid.storage.snapshots import list_folders
from kpyramid.storage.writing import clean_staging, sync_folder

# Nothing is deleted where it lies. It is moved to `trash/` under the same path, then everything
# is looked at again, and what somebody has come to need is put back: whoever needs a snapshot
# takes a lease before he looks whether it is there, and a result is touched when it is found. The
# next gc deletes what has lain in the trash since.

KINDS = ("snapshots", "runs", "results", "rows")
"""What is removed: snapshots, folders of runs, stored results of stages, and of functions."""

_RESULTS = timedelta(days=2)
"""Results of runs that no ref is at are made again from the caches of rows; they would double what
each night keeps."""
_AT_ONCE = 8
"""Folders deleted side by side: a disk that is busy keeps each waiting."""
_UNFINISHED = timedelta(days=7)
"""A run that has not ended may still go on; that takes no longer, whatever age is asked for."""

FindRows = Callable[[Sequence[str]], frozenset[str] | None]
"""The folders of the row cache that runs use, as FUNCTION/FINGERPRINT; None: not known."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What is kept, besides what refs are at, tags and leases.

    `keep`: so many snapshots of each ref that were not rolled back, HEAD among them.
    `older_than`: what was needed within that time before `now`. `find_rows` is asked for the
    runs that are kept.
    """

    keep: int
    older_than: timedelta
    now: datetime
    find_rows: FindRows

    def is_young(self, time: datetime) -> bool:
        """Whether it is too recent to be removed."""
        return time > self.now - self.older_than


@dataclass(frozen=True, slots=True)
class Item:
    """Something to remove: its kind, its path below the warehouse, and its size."""

    kind: str
    path: str
    bytes: int


_Needed = Callable[[Path, Item], bool]


@dataclass(frozen=True, slots=True)
class Collected:
    """What was moved to the trash now, what was deleted from it, and what leases held."""

    moved: tuple[Item, ...]
    deleted: tuple[Item, ...]
    held: Mapping[str, str]


def collect(warehouse: Warehouse, policy: Policy, *, dry_run: bool = False) -> Collected:
    """Deletes what the last call put into the trash, and puts there what nothing needs any more.

    With `dry_run` both are only listed.

    Raises:
        ConflictError: another call is at work.
        IntegrityError: a ref, a lease or a run's mark cannot be read; nothing was removed.
    """
    if not warehouse.root.is_dir():
        return Collected((), (), {})
    with nullcontext() if dry_run else _lock(warehouse):
        root, trash = warehouse.root, warehouse.trash
        held = list_held(warehouse)
        needed = _find_needed(warehouse, policy, held)
        chosen = [item for item in _list_items(root) if not needed(root, item)]
        old = [item for item in _list_items(trash) if not needed(trash, item)]
        if dry_run:
            return Collected(tuple(chosen), tuple(old), held)
        clean_staging(warehouse)
        _restore(warehouse, needed)  # what a call that was killed left there
        _delete(trash, old)
        _move({root / item.path: trash / item.path for item in chosen})
        _restore(warehouse, _find_needed(warehouse, policy, list_held(warehouse)))
        gone = tuple(item for item in chosen if not (root / item.path).exists())
        return Collected(gone, tuple(old), held)


@contextmanager
def _lock(warehouse: Warehouse) -> Iterator[None]:
    try:
        with FileLock(warehouse.root / "gc.lock", timeout=0):
            yield
    except Timeout as e:
        raise ConflictError(f"another gc is at work in {warehouse.root}; wait for its end") from e


def _list_items(root: Path) -> Iterator[Item]:
    """What lies below a warehouse, or its trash, that could be removed."""
    places = ("snapshots/*", "runs/*", "cache/results/*/*", "cache/rows/*/*")
    for kind, pattern in zip(KINDS, places, strict=True):
        for path in sorted(root.glob(pattern)):
            if path.is_dir() and not path.is_symlink():
                yield Item(kind, path.relative_to(root).as_posix(), measure(path))


def measure(folder: Path) -> int:
    """The bytes of all files below a folder; of one that has several names, this one's share."""
    total = 0
    for path in folder.rglob("*"):
        try:
            status = path.lstat()
            total += status.st_size // (1 if stat.S_ISDIR(status.st_mode) else status.st_nlink)
        except FileNotFoundError:  # a file of a build that goes on
            continue
    return total


def _find_needed(warehouse: Warehouse, policy: Policy, held: Mapping[str, str]) -> _Needed:
    """Says of an item below the warehouse or its trash whether it stays or comes back."""
    runs = list_runs(warehouse)
    snapshots = {*held.values(), *_keep_snapshots(warehouse, policy, runs)}
    named = _keep_runs(warehouse, policy, runs, snapshots)
    heads = {list_entries(warehouse, ref)[-1].run for ref in list_refs(warehouse)}
    under_way = {str(run["run"]) for run in runs if run["snapshot"] is None}
    marks = _read_marks(warehouse, named & (heads | under_way))
    results = replace(policy, older_than=min(policy.older_than, _RESULTS))
    rows = policy.find_rows(sorted(named))
    known = {folder.name for folder in list_folders(warehouse)}
    recorded = {str(run["run"]) for run in runs}

    def is_needed(root: Path, item: Item) -> bool:
        *_, parent, name = item.path.split("/")
        place, is_there = root / item.path, root != warehouse.trash
        if item.kind == "snapshots":  # what is no snapshot, or no run, is not touched
            return name in snapshots or (is_there and name not in known)
        if item.kind == "runs":
            return name in named or (is_there and name not in recorded)
        if item.kind == "results":
            return f"{parent}/{name}" in marks or _is_fresh(place / MARKER, results)
        live = rows is None or f"{parent}/{name}" in rows
        return live or any(_is_fresh(path, policy) for path in (place, *place.glob("*")))

    return is_needed


def _is_fresh(path: Path, policy: Policy) -> bool:
    try:
        changed = path.stat().st_mtime
    except OSError:
        return False
    return policy.is_young(datetime.fromtimestamp(changed, UTC))


def _keep_snapshots(
    warehouse: Warehouse, policy: Policy, runs: Iterable[Mapping[str, object]]
) -> set[str]:
    """What refs and tags are at, the last of each ref, and what was used lately."""
    kept: set[str] = set()
    used: dict[str, datetime] = {}

    def use(snapshot: str, time: str) -> None:
        used[snapshot] = max(used.get(snapshot, _parse(time, policy)), _parse(time, policy))

    for ref in list_refs(warehouse):
        entries = list_entries(warehouse, ref)
        kept |= {entries[-1].snapshot, *list_standing(entries)[-policy.keep :]}
        for entry, after in zip_longest(entries, entries[1:]):
            use(entry.snapshot, (after or entry).at)  # readers had it until the next came
    for run in runs:
        if run["snapshot"]:
            use(str(run["snapshot"]), str(run["started"]))
    for folder in list_folders(warehouse):
        if folder.name not in used:  # nothing says when it was made
            used[folder.name] = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    return kept | {snapshot for snapshot, time in used.items() if policy.is_young(time)}


def _keep_runs(
    warehouse: Warehouse,
    policy: Policy,
    runs: Sequence[Mapping[str, object]],
    snapshots: set[str],
) -> set[str]:
    """The runs that made what is kept, those of late, and those that may go on."""
    logs = {ref: list_entries(warehouse, ref) for ref in list_refs(warehouse)}
    kept = {e.run for entries in logs.values() for e in entries if e.snapshot in snapshots}
    newest = {str(run["snapshot"]): str(run["run"]) for run in reversed(runs) if run["snapshot"]}
    kept |= {name for snapshot, name in newest.items() if snapshot in snapshots}
    for run in runs:
        started = _parse(str(run["started"]), policy)
        is_open = run["snapshot"] is None and started > policy.now - _UNFINISHED
        # What an unfinished run spent counts against the budget until its ref moves on.
        head = logs.get(str(run["ref"]))
        counts = run["snapshot"] is None and (not head or _parse(head[-1].at, policy) < started)
        if policy.is_young(started) or is_open or counts:
            kept.add(str(run["run"]))
    return kept


def _read_marks(warehouse: Warehouse, runs: Iterable[str]) -> set[str]:
    """The stored results that some runs name, as STAGE/KEY."""
    found = set()
    for run in runs:
        for path in (warehouse.runs / run / "stages").glob("*.json"):
            try:
                found.add(f"{path.stem}/{json.loads(path.read_bytes())['key'][:ID_DIGITS]}")
            except FileNotFoundError:
                continue  # a build that goes on forgot it
            except (OSError, ValueError, KeyError, TypeError) as e:
                raise IntegrityError(
                    f"mark {path} cannot be read ({e!r}), so what it rests on is unknown and "
                    "nothing was removed; restore it, or remove the run's folder"
                ) from e
    return found


def _parse(time: str, policy: Policy) -> datetime:
    """A time as an entry or a record has it; what cannot be read is as of now, and kept."""
    try:
        parsed = datetime.fromisoformat(time)
    except ValueError:
        return policy.now + policy.older_than
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _move(targets: Mapping[Path, Path]) -> None:
    """Moves folders, and has the disk know when all are: a crash leaves each here or there."""
    for source, target in targets.items():
        _rename(source, target)
    for folder in {path.parent for pair in targets.items() for path in pair}:
        if folder.is_dir():
            sync_folder(folder)


def _rename(source: Path, target: Path) -> None:
    """Moves a folder; where there is one already, or none to move, nothing happens."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(source, target)  # noqa: PTH104 - fails where a folder with files is
    except FileNotFoundError:
        return
    except OSError:
        if not target.exists():
            raise


def _restore(warehouse: Warehouse, needed: _Needed) -> None:
    """Puts back what is needed of what lies in the trash."""
    trash = warehouse.trash
    back = [item.path for item in _list_items(trash) if needed(trash, item)]
    _move({trash / path: warehouse.root / path for path in back})


def _delete(trash: Path, items: Sequence[Item]) -> None:
    """Deletes from the trash; what is half deleted lies where nobody takes it for whole."""
    gone = trash / "deleted"
    gone.mkdir(parents=True, exist_ok=True)
    _move({trash / item.path: gone / uuid.uuid4().hex for item in items})
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda folder: shutil.rmtree(folder, ignore_errors=True), gone.iterdir()))
