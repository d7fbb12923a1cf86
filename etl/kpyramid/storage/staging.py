"""Unfinished writes: folders that a killed process leaves are told by its name."""

import contextlib
import os
import shutil
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

from kpyramid.storage.layout import Warehouse


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
