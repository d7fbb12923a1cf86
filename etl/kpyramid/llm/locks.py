"""One at a time per key, over threads and processes; what a killed holder held is free."""

import contextlib
import fcntl
import threading
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

_DIGITS = 3
"""Hex digits of a key that choose its lock. Lock files stay, so there are 4,096 and not one per
question; of 64 keys held at a time one in 64 waits for another with the same digits."""
_POLL = 0.01
"""Seconds between two looks at a key that another process holds."""


class KeyLocks:
    """Locks by key (hex digits) in a folder; without one they hold within this process only.

    A thread may hold one key at a time, since two keys may share a lock.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._own: dict[str, threading.Lock] = {}

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Waits until nobody else holds the key."""
        name = key[:_DIGITS]
        if self._folder is None:
            with self._guard:
                lock = self._own.setdefault(name, threading.Lock())
            with lock:
                yield
        else:
            self._folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self._folder / f"{name}.lock", poll_interval=_POLL):
                yield


@contextlib.contextmanager
def hold_file(path: Path, *, alone: bool) -> Iterator[None]:
    """Holds a file together with others, waiting for whoever holds it alone; or `alone`.

    `filelock` has no lock on a file that several may hold.

    Raises:
        BlockingIOError: it is to be held alone and others hold it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
        yield
