"""One at a time per key, over threads and processes; what a killed holder held is free."""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_OFFSET_DIGITS = 15
"""Hex digits of a key that make its byte's offset: 60 bits, as offsets are below 2^63."""
_FIRST_WAIT, _LONGEST_WAIT = 0.002, 0.05
"""Seconds between two looks at a key that another process holds."""


@dataclass(slots=True)
class _Turn:
    """A key that threads of this process hold or wait for; `users` counts them."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0


class _Table:
    """The turns of one process at one lock file.

    The kernel's byte locks belong to the process, not to a thread or a descriptor, and all are
    lost when any descriptor of the file is closed: so there is one table per file and process,
    and its descriptor stays open.
    """

    def __init__(self, path: Path | None) -> None:
        self._guard = threading.Lock()
        self._turns: dict[str, _Turn] = {}
        self._descriptor: int | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def is_stale(self) -> bool:
        """Whether the lock file was removed, so that others lock another one."""
        return self._descriptor is not None and os.fstat(self._descriptor).st_nlink == 0

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:
        with self._guard:
            turn = self._turns.setdefault(key, _Turn())
            turn.users += 1
        try:
            with turn.lock:
                self._lock(key)
                try:
                    yield
                finally:
                    self._unlock(key)
        finally:
            with self._guard:
                turn.users -= 1
                if not turn.users:
                    del self._turns[key]

    def _lock(self, key: str) -> None:
        # The kernel could wait itself, but it sees deadlocks where threads of two processes wait
        # for different keys, because it knows processes only.
        if self._descriptor is None:
            return
        wait = _FIRST_WAIT
        while True:
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _find_byte(key))
                return
            except (BlockingIOError, PermissionError):  # EAGAIN or EACCES: another holds it
                time.sleep(wait)
                wait = min(_LONGEST_WAIT, 2 * wait)

    def _unlock(self, key: str) -> None:
        if self._descriptor is not None:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, _find_byte(key))


class KeyLocks:
    """Locks by key (hex digits); without a path they hold within this process only."""

    def __init__(self, path: Path | None) -> None:
        self._path = path.absolute() if path is not None else None
        self._own = _Table(None)

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Waits until nobody else holds the key; not for a thread that holds it already."""
        table = self._own if self._path is None else _find_table(self._path)
        with table.hold(key):
            yield


@contextlib.contextmanager
def hold_file(path: Path, *, alone: bool) -> Iterator[None]:
    """Holds a file together with others, waiting for whoever holds it alone; or `alone`.

    Raises:
        BlockingIOError: it is to be held alone and others hold it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
        yield


_TABLES: dict[str, _Table] = {}
_GUARD = threading.Lock()


def _find_table(path: Path) -> _Table:
    with _GUARD:
        name = os.path.realpath(path)
        table = _TABLES.get(name)
        if table is None or table.is_stale():
            table = _TABLES[name] = _Table(path)
        return table


def _forget_tables() -> None:
    """A forked process has none of its parent's byte locks, but copies of its thread locks."""
    global _GUARD
    _GUARD = threading.Lock()
    _TABLES.clear()


os.register_at_fork(after_in_child=_forget_tables)


def _find_byte(key: str) -> int:
    return int(key[:_OFFSET_DIGITS], 16)
