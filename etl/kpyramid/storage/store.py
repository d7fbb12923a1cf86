"""Stores: bytes under names, in a folder or in a bucket, written once or replaced."""

import contextlib
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kpyramid.storage.writing import sync_folder, write_and_sync, write_durably


@dataclass(frozen=True, slots=True)
class Blob:
    """One stored blob; `modified` in seconds since 1970."""

    name: str
    size: int
    modified: float


class BlobStore(Protocol):
    """Bytes under names such as `replies/0f/0f12.json`; a reader never sees half of a blob.

    Raises (all methods): EndpointError or OSError: the store cannot be used.
    """

    def read(self, name: str) -> bytes | None:
        """A blob's bytes, or None."""

    def create(self, name: str, data: bytes) -> bool:
        """Creates a blob; True for exactly one of all callers that try."""

    def put_once(self, name: str, data: bytes) -> bytes:
        """Creates a blob unless it exists; returns the bytes of the first writer."""
        while not self.create(name, data):
            won = self.read(name)
            if won is not None:  # else it was removed meanwhile
                return won
        return data

    def replace(self, name: str, data: bytes) -> None:
        """Writes a blob, whether or not it exists."""

    def delete(self, name: str) -> None:
        """Removes a blob, if it exists."""

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """The blobs of a folder and the folders in it, sorted by name."""


class FolderStore(BlobStore):
    """A `BlobStore` in a local folder; a written blob survives a power cut."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._prefix = f"{root}{os.sep}"

    def read(self, name: str) -> bytes | None:
        try:
            with open(self._prefix + name, "rb", buffering=0) as file:  # noqa: PTH123 every hit
                return file.read()
        except FileNotFoundError:
            return None

    def create(self, name: str, data: bytes) -> bool:
        """See `BlobStore.create`; a hard link fails when the name is taken."""
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".{os.getpid()}.{uuid.uuid4().hex}.tmp"
        try:
            write_and_sync(temporary, data)
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
        return True

    def replace(self, name: str, data: bytes) -> None:
        write_durably(self._root / name, data)

    def delete(self, name: str) -> None:
        (self._root / name).unlink(missing_ok=True)

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """See `BlobStore.list`; hidden files are left out."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self._root / prefix) as entries:
            # A folder sorts as its blobs do: with the slash that follows its name in theirs.
            ordered = sorted(
                ((f"{e.name}/" if e.is_dir() else e.name, e) for e in entries),
                key=lambda pair: pair[0],
            )
            for name, entry in ordered:
                path = f"{prefix}/{name}" if prefix else name
                if name.startswith("."):
                    continue
                if name.endswith("/"):
                    yield from self.list(path.rstrip("/"))
                    continue
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                    status = entry.stat()
                    yield Blob(path, status.st_size, status.st_mtime)
