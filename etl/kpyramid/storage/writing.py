"""Writing so that a crash leaves the old file or the new one, never half of it."""

import os
import shutil
import uuid
from pathlib import Path


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
    """Writes a file, of some bytes or as another file is, and waits until the disk has it."""
    if isinstance(data, Path):
        shutil.copyfile(data, path)
    else:
        path.write_bytes(data)
    with path.open("rb") as file:
        os.fsync(file.fileno())


def link_and_sync(path: Path, source: Path) -> None:
    """Gives a stored file, which nobody writes to again, another name; else copies it."""
    try:
        os.link(source, path)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, path)
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
