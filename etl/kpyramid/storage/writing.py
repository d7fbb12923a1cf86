"""Writing so that a crash leaves the old file or the new one, never half of it."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """A file that is at `path` at once when the block ends; without a trace if it fails.

    Its bytes are on the disk, its name after `sync_folder`.
    """
    temporary = path.parent / f".{path.name}.{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp"
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_durably(path: Path, data: bytes) -> None:
    """Puts bytes at `path` at once: readers see the old file or the new one, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as file:
        file.write(data)
    sync_folder(path.parent)


def write_and_sync(path: Path, data: bytes) -> None:
    """Writes a file and waits until the disk has it."""
    path.write_bytes(data)
    sync_folder(path)


def put_file(path: Path, content: bytes | Path) -> None:
    """Writes some bytes, or gives a stored file, which nobody writes to again, another name.

    Where it can have none it is copied. The disk has it after `sync_tree`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
        return
    try:
        path.hardlink_to(content)
    except OSError:  # another file system, or one without links
        shutil.copyfile(content, path)


def sync_folder(path: Path) -> None:
    """Waits until the disk has the folder's entries, or a file's bytes."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(path: Path) -> None:
    """Waits until the disk has a file, or a folder with all that is below it."""
    for each in [*path.rglob("*"), path]:
        sync_folder(each)
