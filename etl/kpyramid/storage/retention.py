"""What of a warehouse is kept, and removing the rest in two steps."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from pathlib import Path

from filelock import FileLock, Timeout

from kpyramid.errors import ConflictError, IntegrityError
from kpyramid.keys import ID_DIGITS
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.leases import list_held, lock_bucket
from kpyramid.storage.refs import list_entries, list_refs, list_standing
from kpyramid.storage.runs import list_runs
from kpyramid.storage.snapshots import date_snapshots
from kpyramid.storage.staging import clean_staging
from kpyramid.storage.trash import Folders, Item, Objects, Shelf

# Nothing is deleted where it lies. It is moved to `trash/` under the same path, then everything
# is looked at again, and what somebody has come to need is put back: whoever needs a snapshot
# takes a lease before he looks whether it is there, and a result is touched when it is found. The
# next gc deletes what has lain in the trash since.

_RESULTS = timedelta(days=2)
"""Results of runs that no ref is at are made again from the caches of rows; they would double what
each night keeps."""
_LATELY = timedelta(days=1)
"""A process that works on a copy of this machine's uses it again within that time."""
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


_Needed = Callable[[Item], bool]


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
    if not warehouse.root.is_dir() and not warehouse.bucket:
        return Collected((), (), {})
    with nullcontext() if dry_run else _lock(warehouse):
        shelf: Shelf = Folders(warehouse)
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
    """Removes what this machine copied and the bucket has no more; it may be needed for a day."""
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
    """Says of an item below the warehouse or its trash whether it stays or comes back."""
    runs = list_runs(warehouse)
    snapshots = {*held.values(), *_keep_snapshots(warehouse, policy, runs)}
    named = _keep_runs(warehouse, policy, runs, snapshots)
    heads = {list_entries(warehouse, ref)[-1].run for ref in list_refs(warehouse)}
    under_way = {str(run["run"]) for run in runs if run["snapshot"] is None}
    marks = read_marks(warehouse, named & (heads | under_way))
    results = replace(policy, older_than=min(policy.older_than, _RESULTS))
    rows = policy.find_rows(sorted(named))
    known = date_snapshots(warehouse)
    recorded = {str(run["run"]) for run in runs}

    def is_needed(item: Item) -> bool:
        *_, parent, name = item.path.split("/")
        if item.kind == "snapshots":  # what is no snapshot, or no run, is not touched
            return name in snapshots or (not item.in_trash and name not in known)
        if item.kind == "runs":
            return name in named or (not item.in_trash and name not in recorded)
        kept = results if item.kind == "results" else policy
        if kept.is_young(datetime.fromtimestamp(item.used, UTC)):
            return True
        if item.kind == "results":
            return f"{parent}/{name}" in marks
        return rows is None or f"{parent}/{name}" in rows

    return is_needed


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
    for name, written in date_snapshots(warehouse).items():
        if name not in used:  # nothing else says when it was made
            used[name] = datetime.fromtimestamp(written, UTC)
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


def read_marks(warehouse: Warehouse, runs: Iterable[str]) -> set[str]:
    """The stored results that some runs name, as STAGE/KEY.

    Raises:
        IntegrityError: a mark cannot be read.
    """
    found = set()
    for run in filter(None, runs):  # of a snapshot whose run no ref knows
        names = [blob.name for blob in warehouse.store.list(f"runs/{run}/stages")]
        for name, data in zip(names, warehouse.read_all(names), strict=True):
            try:
                if data is not None:  # else a build that goes on forgot it
                    found.add(f"{Path(name).stem}/{json.loads(data)['key'][:ID_DIGITS]}")
            except (OSError, ValueError, KeyError, TypeError) as e:
                raise IntegrityError(
                    f"mark {warehouse.locate(name)} cannot be read ({e!r}), so what it rests on is "
                    "unknown and nothing was removed; restore it, or remove the run's folder"
                ) from e
    return found


def _parse(time: str, policy: Policy) -> datetime:
    """A time as an entry or a record has it; what cannot be read is as of now, and kept."""
    try:
        parsed = datetime.fromisoformat(time)
    except ValueError:
        return policy.now + policy.older_than
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _restore(shelf: Shelf, needed: _Needed) -> None:
    """Puts back what is needed of what lies in the trash."""
    shelf.restore([item for item in shelf.list_items(in_trash=True) if needed(item)])
