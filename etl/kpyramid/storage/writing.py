"""Crash-safe writing: a reader sees the old file or the new one, never half of it."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replace_file(path: Path) -> Iterator[BinaryIO]:
    """A temporary file that replaces `path` when the block ends; removed if it fails.

    Its bytes are on disk; its name is after `sync_folder`.
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
    """Replaces the bytes of `path`: readers see the old or the new ones, after a crash too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as file:
        file.write(data)
    sync_folder(path.parent)


def write_and_sync(path: Path, data: bytes) -> None:
    """Writes a file and waits until it is on disk."""
    path.write_bytes(data)
    sync_folder(path)


def put_file(path: Path, content: bytes | Path) -> None:
    """Writes bytes, or links a stored file, which is never written again, to another name.

    Where links are impossible it is copied. It is on disk after `sync_tree`.
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
    """Waits until a folder's entries, or a file's bytes, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(path: Path) -> None:
    """Waits until a file, or a folder with all below it, is on disk."""
    for each in [*path.rglob("*"), path]:
        sync_folder(each)
