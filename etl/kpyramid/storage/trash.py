"""The trash of a warehouse: what lies there, moving things to it and back, deleting them."""

import os
import shutil
import stat
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Protocol

from kpyramid.storage.bucket import BucketStore, do_at_once
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.results import MARKER
from kpyramid.storage.snapshots import MANIFEST
from kpyramid.storage.store import Blob
from kpyramid.storage.writing import sync_folder

KINDS = ("snapshots", "runs", "results", "rows")
"""What is removed: snapshots, folders of runs, stored results of stages, and of functions."""

PLACES = ("snapshots/*", "runs/*", "cache/results/*/*", "cache/rows/*/*")
"""Where they lie, in the order of `KINDS`."""


@dataclass(frozen=True, slots=True)
class Item:
    """Something to remove: its kind, its path below the warehouse, its size.

    `used`: when a result or rows were written or found, in seconds since 1970; 0 where only
    refs and runs say it. `in_trash`: it was moved there.
    """

    kind: str
    path: str
    bytes: int
    used: float = 0.0
    in_trash: bool = False


class Shelf(Protocol):
    """Where items lie: in the warehouse or in its trash."""

    def list_items(self, *, in_trash: bool) -> list[Item]: ...

    def move(self, items: Sequence[Item]) -> None:
        """Takes items out of the warehouse, into the trash."""
        ...

    def restore(self, items: Sequence[Item]) -> None:
        """Puts items back, each unless there is one in its place."""
        ...

    def delete(self, items: Sequence[Item]) -> None:
        """Deletes from the trash; what is half deleted is never taken for whole."""
        ...

    def finish(self) -> None:
        """Deletes what a call that was killed left half deleted, or a publisher half written."""
        ...


class Folders:
    """Items as folders: each is in one place, for it is renamed."""

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
    """The bytes of all files below a folder; of one that has several names, this one's share."""
    return _measure("", folder)[0]


def _measure(kind: str, folder: Path) -> tuple[int, float]:
    """The bytes below a folder, and when it was last used."""
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


# In a bucket nothing can be renamed. An item is whole, and there for anybody, while its mark is:
# the object that is written last. So only the mark moves to `trash/` and back. Before the rest is
# deleted the mark moves on to `trash/deleted/`: what is half deleted is never put back. Who
# publishes a snapshot anew that has something in the trash does it under a lease, and not while a
# gc is at work (`copies.py`).

_MARKS = dict(zip(KINDS, (MANIFEST, "run.json", MARKER, ""), strict=True))
"""Rows have none: an empty note says that they are in the trash, and they are read till the end."""
_TRASH, _DELETED, _NOTE = "trash", "trash/deleted", "note"


class Objects:
    """Items of a bucket.

    `find_held` gives the ids of the snapshots that have a lease now. What lacks its mark and was
    written before the time `late`, in seconds since 1970, is of a process that died.
    """

    def __init__(
        self, bucket: BucketStore, find_held: Callable[[], Collection[str]], late: float
    ) -> None:
        self._bucket = bucket
        self._find_held = find_held
        self._late = late

    def list_items(self, *, in_trash: bool) -> list[Item]:
        """The items that have their mark there."""
        here, other = self._list(_TRASH if in_trash else ""), self._list("" if in_trash else _TRASH)
        items = []
        for path, (kind, blobs) in here.items():
            mark = _name_mark(kind, path, in_trash=in_trash)
            if _MARKS[kind] and mark not in {blob.name for blob in blobs}:
                continue
            if not _MARKS[kind] and not in_trash and path in other:
                continue  # its note is in the trash
            below = [*blobs, *other.get(path, (kind, []))[1]] if in_trash else blobs
            used = max((blob.modified for blob in below if _is_use(kind, blob)), default=0.0)
            items.append(Item(kind, path, sum(blob.size for blob in below), used, in_trash))
        return items

    def move(self, items: Sequence[Item]) -> None:
        """See `Shelf.move`; the mark is in the trash before it is gone from its place."""
        for item in items:
            target = _name_mark(item.kind, item.path, in_trash=True)
            self._carry(_name_mark(item.kind, item.path), target)

    def restore(self, items: Sequence[Item]) -> None:
        """See `Shelf.restore`; a mark that was written anew stays."""
        for item in items:
            target = _name_mark(item.kind, item.path)
            source = _name_mark(item.kind, item.path, in_trash=True)
            if _MARKS[item.kind] and self._bucket.read(target) is None:
                self._carry(source, target)
            else:
                self._bucket.delete(source)

    def delete(self, items: Sequence[Item]) -> None:
        """See `Shelf.delete`."""
        for item in items:
            source = _name_mark(item.kind, item.path, in_trash=True)
            note = f"{_DELETED}/{source.removeprefix(f'{_TRASH}/')}"
            self._carry(source, note)
            self._purge(item.kind, item.path, note)

    def finish(self) -> None:
        """See `Shelf.finish`."""
        for path, (kind, notes) in self._list(_DELETED).items():
            for note in notes:
                self._purge(kind, path, note.name)
        trashed, held = self._list(_TRASH), self._find_held()
        for path, (kind, blobs) in self._list("").items():
            is_whole = kind in ("runs", "rows") or path in trashed
            if is_whole or _name_mark(kind, path) in {blob.name for blob in blobs}:
                continue
            if max(x.modified for x in blobs) < self._late and path.split("/")[-1] not in held:
                do_at_once(self._bucket.delete, [blob.name for blob in blobs])

    def _purge(self, kind: str, path: str, note: str) -> None:
        """Deletes all of an item and then its note, unless it was or is being made anew."""
        if path.rpartition("/")[2] in self._find_held():
            return  # the next call looks again
        if not _MARKS[kind] or self._bucket.read(_name_mark(kind, path)) is None:
            do_at_once(self._bucket.delete, [blob.name for blob in self._bucket.list(path)])
        self._bucket.delete(note)

    def _carry(self, source: str, target: str) -> None:
        data = self._bucket.read(source)
        self._bucket.replace(target, data or b"")
        self._bucket.delete(source)

    def _list(self, place: str) -> dict[str, tuple[str, list[Blob]]]:
        """The objects of each item below a place, by the item's path, with its kind."""
        found: dict[str, tuple[str, list[Blob]]] = {}
        for kind, pattern in zip(KINDS, PLACES, strict=True):
            top, depth = pattern.partition("/*")[0], pattern.count("/") + 1
            for blob in self._bucket.list(f"{place}/{top}" if place else top):
                parts = blob.name.removeprefix(f"{place}/").split("/")
                if len(parts) > depth:
                    found.setdefault("/".join(parts[:depth]), (kind, []))[1].append(blob)
        return found


def _name_mark(kind: str, path: str, *, in_trash: bool = False) -> str:
    name = f"{path}/{_MARKS[kind] or _NOTE}"
    return f"{_TRASH}/{name}" if in_trash else name


def _is_use(kind: str, blob: Blob) -> bool:
    """Whether the time of an object says when its item was used."""
    name = PurePosixPath(blob.name)
    if kind == "rows":
        return name.name != _NOTE
    return kind == "results" and name.name == MARKER and name.parts[0] != _TRASH
