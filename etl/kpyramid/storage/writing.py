"""Writing so that a crash leaves the old file or the new one, never half of it."""

import contextlib
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

from kpyramid.storage.layout import Warehouse


def write_durably(path: Path, data: bytes) -> None:
    """Puts bytes at `path` at once: readers see the old file or the new one, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp"
    try:
        write_and_sync(temporary, data)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_and_sync(path: Path, data: bytes | Path) -> None:
    """Writes a file, of some bytes or as another file is, and waits until the disk has it.

    Another file is linked where the file system can: what is stored is never written to again.
    """
    if isinstance(data, Path):
        try:
            os.link(data, path)
        except OSError:  # another file system, or one without links
            shutil.copyfile(data, path)
    else:
        path.write_bytes(data)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Waits until the disk has the folder's entries."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(path: Path) -> None:
    """Waits until the disk has a file, or a folder with all that is below it."""
    for each in [*path.rglob("*"), path]:
        sync_folder(each)


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
