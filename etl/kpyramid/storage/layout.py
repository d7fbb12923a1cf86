"""The folders of a warehouse, which is kept in a folder or in a bucket."""

import contextlib
import os
import shutil
import socket
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kpyramid.errors import InputError, IntegrityError

if TYPE_CHECKING:  # a reader of a folder does not load what talks to buckets
    from kpyramid.storage.bucket import BucketStore
    from kpyramid.storage.store import BlobStore


class _Folder:
    """A folder of a warehouse that is named as the attribute."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, warehouse: "Warehouse", owner: type) -> Path:
        return warehouse.root / self._name


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A folder with everything that builds make; `README.md` of `warehouse/` draws it.

    With a `bucket` that holds the truth under the same names, and the folder is where this machine
    works: unfinished writes, locks, and copies of what never changes.
    """

    root: Path
    bucket: "BucketStore | None" = field(default=None, compare=False)

    cache = _Folder()
    snapshots = _Folder()
    refs = _Folder()
    runs = _Folder()
    staging = _Folder()
    leases = _Folder()
    trash = _Folder()

    @property
    def folders(self) -> tuple[Path, ...]:
        """All folders that hold the warehouse's own files."""
        places = (self.cache, self.snapshots, self.refs, self.runs)
        return (*places, self.staging, self.leases, self.trash)

    @property
    def store(self) -> "BlobStore":
        """Where refs, leases, records of runs and their marks are: what has one truth only."""
        from kpyramid.storage.store import FolderStore

        return self.bucket or FolderStore(self.root)

    def read_all(self, names: Sequence[str]) -> "list[bytes | None]":
        """What stands under each of many names; from a bucket several are read at a time."""
        if self.bucket is None:
            return [self.store.read(name) for name in names]
        from kpyramid.storage.items import do_at_once

        return do_at_once(self.bucket.read, names)

    def locate(self, name: str = "") -> str:
        """Where something lies that has a name in the store, for messages."""
        place = self.bucket.place if self.bucket else str(self.root)
        return f"{place}/{name}" if name else place


@contextlib.contextmanager
def explain_damage(what: str, advice: str) -> Iterator[None]:
    """Has whatever is no JSON of the form that the block reads say what it is and what to do.

    Raises:
        IntegrityError: the block met such a thing.
    """
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise IntegrityError(f"{what} cannot be read ({e!r}){advice}") from e


def is_address(location: str | Path) -> bool:
    """Whether it is in a bucket, say `s3://bucket/prefix`, and not on this machine."""
    return "://" in str(location)


def name_place(location: str | Path) -> str:
    """The same place for every process: an absolute path, or an address as it is."""
    return str(location if is_address(location) else Path(location).absolute())


def open_warehouse(location: str | Path) -> Warehouse:
    """The warehouse in a local folder, which need not exist yet, or at `s3://bucket/prefix`.

    The local part of one in a bucket is a folder of `$XDG_CACHE_HOME/kpyramid`, by default
    `~/.cache/kpyramid`. It may be removed when nothing runs.

    Raises:
        InputError: the location is a file.
        SettingsError: it is no address of a bucket, or the extra for buckets is not installed.
    """
    if is_address(location):
        from kpyramid.storage.bucket import BucketStore, name_area

        bucket = BucketStore(str(location))
        caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return Warehouse(caches.absolute() / "kpyramid" / name_area(bucket.place), bucket)
    root = Path(location).absolute()
    if root.exists() and not root.is_dir():
        raise InputError(f"warehouse {root} is a file; give a folder")
    return Warehouse(root)


# Unfinished writes: folders that a killed process leaves are told by its name.


@contextlib.contextmanager
def stage_folder(warehouse: Warehouse) -> Iterator[Path]:
    """A fresh folder under `staging/`, gone at the end unless it was renamed away.

    Its name carries host and process, so that what a killed process left can be recognised.
    """
    folder = warehouse.staging / f"{name_process()}.{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def clean_staging(warehouse: Warehouse) -> list[str]:
    """Removes what killed processes of this host left in `staging/`; returns the folders' names."""
    removed = []
    for folder in sorted(warehouse.staging.glob("*")):
        if is_dead(folder.name):
            shutil.rmtree(folder, ignore_errors=True)
            removed.append(folder.name)
    return removed


def name_process() -> str:
    """Host and number of this process, for names that `is_dead` reads."""
    return f"{_name_host()}.{os.getpid()}"


def is_dead(name: str) -> bool:
    """Whether a name that begins with `name_process` is of a process of this host that ended."""
    host, _, rest = name.removesuffix(".json").rpartition(".")[0].rpartition(".")
    return host == _name_host() and rest.isdigit() and not _is_alive(int(rest))


def _name_host() -> str:
    """Where process numbers mean what they mean here: containers may share a host name."""
    try:
        space = Path("/proc/self/ns/pid").stat().st_ino
    except OSError:
        space = 0
    return f"{socket.gethostname()}-{space}"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
