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

import pytest

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


def hold_until(path: Path, key: str, ready: Path, end: Path) -> None:
    with KeyLocks(path).hold(key):
        ready.touch()
        wait_until(end.exists)


def work_in_turns(path: Path, folder: Path, gate: Path, number: int) -> None:
    """Two threads that take all keys again and again and fail if another is inside."""
    locks = KeyLocks(path)
    (folder / f"ready-{number}").touch()
    wait_until(gate.exists)

    def work(keys: list[str]) -> None:
        for _ in range(10):
            for key in keys:
                with locks.hold(key):
                    inside = folder / f"inside-{key}"
                    inside.touch(exist_ok=False)
                    time.sleep(0.0005)
                    inside.unlink()
                    with (folder / "turns").open("a") as file:
                        file.write("x")

    threads = [threading.Thread(target=work, args=(keys,)) for keys in (KEYS, KEYS[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def is_free(path: Path | None, key: str, locks: KeyLocks | None = None) -> bool:
    """Whether another thread gets the key within a moment; it lets go of it at once."""
    got = threading.Event()

    def take() -> None:
        with (locks or KeyLocks(path)).hold(key):
            got.set()

    threading.Thread(target=take, daemon=True).start()
    return got.wait(0.2)


@pytest.mark.parametrize("place", [None, "locks"])
def test_threads_hold_a_key_one_at_a_time(tmp_path: Path, place: str | None) -> None:
    locks = KeyLocks(tmp_path / place if place else None)
    inside, most = [0], [0]

    def work() -> None:
        for _ in range(50):
            with locks.hold(KEYS[0]):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0.0001)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


@pytest.mark.parametrize("place", [None, "locks"])
def test_other_keys_do_not_wait(tmp_path: Path, place: str | None) -> None:
    path = tmp_path / place if place else None
    locks = KeyLocks(path)
    with locks.hold(KEYS[0]), locks.hold(KEYS[1]):
        assert is_free(path, KEYS[2], locks)
        assert not is_free(path, KEYS[0], locks)


def test_two_locks_on_one_file_are_one(tmp_path: Path) -> None:
    with KeyLocks(tmp_path / "locks").hold(KEYS[0]):
        assert not is_free(tmp_path / "locks", KEYS[0])
        with KeyLocks(tmp_path / "locks").hold(KEYS[1]):
            pass
        assert not is_free(tmp_path / "locks", KEYS[0])


def test_error_inside_frees_the_key(tmp_path: Path) -> None:
    locks = KeyLocks(tmp_path / "locks")
    with pytest.raises(ValueError, match="inside"), locks.hold(KEYS[0]):
        raise ValueError("inside")
    assert is_free(tmp_path / "locks", KEYS[0])


def test_processes_hold_a_key_one_at_a_time(tmp_path: Path) -> None:
    path, ready, end = tmp_path / "locks", tmp_path / "ready", tmp_path / "end"
    with start(hold_until, path, KEYS[0], ready, end) as holder:
        wait_until(ready.exists)
        assert is_free(path, KEYS[1])
        assert not is_free(path, KEYS[0])
        end.touch()
        holder.join()
        assert holder.exitcode == 0
    with KeyLocks(path).hold(KEYS[0]):
        pass


def test_killed_holder_frees_its_key(tmp_path: Path) -> None:
    path, ready = tmp_path / "locks", tmp_path / "ready"
    with start(hold_for_ever, path, KEYS[0], ready) as holder:
        wait_until(ready.exists)
        assert holder.pid is not None
        os.kill(holder.pid, signal.SIGKILL)
        with KeyLocks(path).hold(KEYS[0]):
            pass


def test_threads_of_processes_that_want_keys_crosswise_all_get_their_turn(tmp_path: Path) -> None:
    """The kernel would see a deadlock there, as it knows processes only."""
    path, gate = tmp_path / "locks", tmp_path / "gate"
    with (
        start(work_in_turns, path, tmp_path, gate, 0) as one,
        start(work_in_turns, path, tmp_path, gate, 1) as other,
    ):
        wait_until(lambda: all((tmp_path / f"ready-{n}").exists() for n in (0, 1)))
        gate.touch()
        one.join(PATIENCE)
        other.join(PATIENCE)
        assert [one.exitcode, other.exitcode] == [0, 0]
    assert len((tmp_path / "turns").read_text()) == 2 * 2 * 10 * len(KEYS)


def fork_while_holding(path: Path, folder: Path) -> None:
    """The child takes another key at once, and its parent's when that one lets it go."""
    locks = KeyLocks(path)
    with locks.hold(KEYS[0]):
        child = os.fork()
        if child == 0:
            try:
                found = [is_free(path, key, locks) for key in KEYS[:2]]
                (folder / "found").write_text(repr(found))
                with locks.hold(KEYS[0]):
                    (folder / "got").touch()
            finally:
                os._exit(0)
        wait_until((folder / "found").exists)
        assert not (folder / "got").exists()
    os.waitpid(child, 0)


def test_forked_child_waits_for_its_parent_and_for_nothing_else(tmp_path: Path) -> None:
    with start(fork_while_holding, tmp_path / "locks", tmp_path) as parent:
        wait_until((tmp_path / "got").exists)
        parent.join(PATIENCE)
        assert parent.exitcode == 0
    assert (tmp_path / "found").read_text() == "[False, True]"


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


def test_a_lock_costs_less_than_a_millisecond(tmp_path: Path) -> None:
    locks = KeyLocks(tmp_path / "locks")
    took = []
    for _ in range(3):  # the best of three goes: a busy machine slows some of them
        begun = time.process_time()
        for _ in range(200):
            with locks.hold(KEYS[0]):
                pass
        took.append(time.process_time() - begun)
    assert min(took) / 200 < 0.001
