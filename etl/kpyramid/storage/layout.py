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
    """A folder of a warehouse, named as the attribute."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, warehouse: "Warehouse", owner: type) -> Path:
        return warehouse.root / self._name


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A folder with everything that builds make; `README.md` of `warehouse/` draws it.

    With a `bucket`, the bucket is authoritative under the same names, and the folder is this
    machine's workspace: unfinished writes, locks, and copies of immutable files.
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
        """All folders with the warehouse's own files."""
        places = (self.cache, self.snapshots, self.refs, self.runs)
        return (*places, self.staging, self.leases, self.trash)

    @property
    def store(self) -> "BlobStore":
        """The store of refs, leases, records of runs and their marks."""
        from kpyramid.storage.store import FolderStore

        return self.bucket or FolderStore(self.root)

    def read_all(self, names: Sequence[str]) -> "list[bytes | None]":
        """The contents of many names; from a bucket several are read in parallel."""
        if self.bucket is None:
            return [self.store.read(name) for name in names]
        from kpyramid.storage.items import do_at_once

        return do_at_once(self.bucket.read, names)

    def locate(self, name: str = "") -> str:
        """The path or address of a name in the store, for messages."""
        place = self.bucket.place if self.bucket else str(self.root)
        return f"{place}/{name}" if name else place


@contextlib.contextmanager
def explain_damage(what: str, advice: str) -> Iterator[None]:
    """Turns errors of JSON or its form in the block into one that names the file and advice.

    Raises:
        IntegrityError: the block met such a thing.
    """
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        raise IntegrityError(f"{what} cannot be read ({e!r}){advice}") from e


def is_address(location: str | Path) -> bool:
    """Whether a place is in a bucket, as `s3://bucket/prefix`, and not on this machine."""
    return "://" in str(location)


def name_place(location: str | Path) -> str:
    """The place in a form valid for every process: an absolute path, or an address unchanged."""
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


# Unfinished writes: folders left by a killed process are recognised by its name.


@contextlib.contextmanager
def stage_folder(warehouse: Warehouse) -> Iterator[Path]:
    """A fresh folder under `staging/`, removed at the end unless it was renamed.

    Its name contains host and process, by which folders of killed processes are recognised.
    """
    folder = warehouse.staging / f"{name_process()}.{uuid.uuid4().hex}"
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def clean_staging(warehouse: Warehouse) -> list[str]:
    """Removes folders of this host's killed processes in `staging/`; returns their names."""
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
    """Whether a name that begins with `name_process` is of an ended process of this host."""
    host, _, rest = name.removesuffix(".json").rpartition(".")[0].rpartition(".")
    return host == _name_host() and rest.isdigit() and not _is_alive(int(rest))


def _name_host() -> str:
    """A name for the scope of process numbers: containers may share a host name."""
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
