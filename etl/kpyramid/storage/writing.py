"""Writing so that a crash leaves the old file or the new one, never half of it."""

import os
import shutil
import uuid
from pathlib import Path

_COPY_BYTES = 2**22


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
    """Writes a file, of some bytes or as another file has them, and waits until the disk has it."""
    with path.open("wb") as file:
        if isinstance(data, Path):
            with data.open("rb") as source:
                shutil.copyfileobj(source, file, _COPY_BYTES)
        else:
            file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Waits until the disk has the folder's entries."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
