"""One at a time per key: among threads, among processes, after a kill, after a fork."""

import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from multiprocessing.context import SpawnProcess
from pathlib import Path

from kpyramid.llm.caller import KeyLocks

CONTEXT = multiprocessing.get_context("spawn")
KEYS = [sha256(str(number).encode()).hexdigest() for number in range(8)]
PATIENCE = 30.0
"""Seconds until a test says that what it waits for does not come."""


def wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.005)


@contextmanager
def start(act: Callable[..., None], *arguments: object) -> Iterator[SpawnProcess]:
    process = CONTEXT.Process(target=act, args=arguments, daemon=True)
    process.start()
    try:
        yield process
    finally:
        process.kill()
        process.join()


def hold_for_ever(path: Path, key: str, ready: Path) -> None:
    with KeyLocks(path).hold(key):
        ready.touch()
        time.sleep(PATIENCE)


def is_free(path: Path | None, key: str, locks: KeyLocks | None = None) -> bool:
    """Whether another thread gets the key within a moment; it lets go of it at once."""
    got = threading.Event()

    def take() -> None:
        with (locks or KeyLocks(path)).hold(key):
            got.set()

    threading.Thread(target=take, daemon=True).start()
    return got.wait(0.2)


def test_killed_holder_frees_its_key(tmp_path: Path) -> None:
    path, ready = tmp_path / "locks", tmp_path / "ready"
    with start(hold_for_ever, path, KEYS[0], ready) as holder:
        wait_until(ready.exists)
        assert holder.pid is not None
        os.kill(holder.pid, signal.SIGKILL)
        with KeyLocks(path).hold(KEYS[0]):
            pass


def test_removed_lock_folder_is_made_again_and_holds(tmp_path: Path) -> None:
    path, ready = tmp_path / "locks", tmp_path / "ready"
    with KeyLocks(path).hold(KEYS[1]):
        pass
    shutil.rmtree(path)
    with start(hold_for_ever, path, KEYS[0], ready):
        wait_until(ready.exists)
        assert not is_free(path, KEYS[0])


def test_keys_share_a_bounded_number_of_lock_files(tmp_path: Path) -> None:
    locks = KeyLocks(tmp_path / "locks")
    for number in range(300):
        with locks.hold(f"abc{number:061x}"):
            pass
    assert len(list((tmp_path / "locks").iterdir())) == 1
