"""Pacing calls: no window holds more than the limit, and no state of the file stops the calls."""

import fcntl
import json
import multiprocessing
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from kpyramid.llm.endpoint import Limiter


class Clock:
    """A time that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def open_limiter(path: Path, clock: Clock, requests: int = 0, tokens: int = 0) -> Limiter:
    return Limiter(path / "limits.json", requests, tokens, clock=clock, sleep=clock.sleep)


def count_most(starts: Sequence[float], window: float, sizes: Sequence[int] | None = None) -> int:
    """The most that any half-open window holds."""
    sizes = sizes or [1] * len(starts)
    taken = sorted(zip(starts, sizes, strict=True))
    return max(
        sum(size for start, size in taken if first <= start < first + window) for first, _ in taken
    )


def test_no_minute_holds_more_requests_than_the_limit(tmp_path: Path, clock: Clock) -> None:
    limiter = open_limiter(tmp_path, clock, requests=30)
    starts = [limiter.acquire(1) for _ in range(90)]
    assert count_most(starts, 60.0 - 1e-6) == 30
    assert starts[-1] - starts[0] == pytest.approx(89 * 2.0)


def test_no_minute_holds_more_tokens_than_the_limit(tmp_path: Path, clock: Clock) -> None:
    limiter = open_limiter(tmp_path, clock, tokens=6000)
    sizes = [100, 600, 10, 350, 599, 1] * 20
    starts = [limiter.acquire(size) for size in sizes]
    assert 0.9 * 6000 <= count_most(starts, 60.0, sizes) <= 6000
    assert starts == sorted(starts)


def test_idle_time_is_not_saved_up(tmp_path: Path, clock: Clock) -> None:
    limiter = open_limiter(tmp_path, clock, requests=30, tokens=6000)
    limiter.acquire(10)
    clock.sleep(3600.0)
    sizes = [300] * 40
    starts = [limiter.acquire(size) for size in sizes]
    assert count_most(starts, 60.0 - 1e-6) <= 30
    assert count_most(starts, 60.0, sizes) <= 6000


def test_request_larger_than_a_minute_goes_alone(tmp_path: Path, clock: Clock) -> None:
    limiter = open_limiter(tmp_path, clock, tokens=6000)
    starts = [limiter.acquire(size) for size in (10, 18_000, 10)]
    assert starts[1] - starts[0] < 1.0  # it waits until the bucket is full again
    assert starts[2] - starts[1] >= 0.9 * 180.0  # and the next one until it is paid off


def test_unused_tokens_are_given_back_and_the_limit_still_holds(
    tmp_path: Path, clock: Clock
) -> None:
    def fill(give_back: bool) -> tuple[list[float], Limiter]:
        clock.sleep(1000.0)
        limiter = open_limiter(tmp_path, clock, tokens=6000)
        starts = []
        for _ in range(100):
            starts.append(limiter.acquire(500))
            if give_back:
                limiter.give_back(starts[-1], 400)
        return starts, limiter

    kept, _ = fill(False)
    returned, limiter = fill(True)
    assert (kept[-1] - kept[0]) / (returned[-1] - returned[0]) > 4
    assert count_most(returned, 60.0, [100] * 100) <= 6000
    clock.sleep(1000.0)
    later = [limiter.acquire(500)]
    for start in returned:  # of no use: the bucket was full since, and holds no more than that
        limiter.give_back(start, 400)
    later += [limiter.acquire(500) for _ in range(20)]
    assert count_most(later, 60.0, [500] * 21) <= 6000


def test_use_beyond_what_was_asked_is_charged(tmp_path: Path, clock: Clock) -> None:
    limiter = open_limiter(tmp_path, clock, tokens=6000)
    limiter.give_back(limiter.acquire(100), -1700)
    assert limiter.acquire(600) - 1000.0 == pytest.approx(1800 / 90)


def test_pause_holds_everybody_and_does_not_shorten_an_earlier_one(
    tmp_path: Path, clock: Clock
) -> None:
    one, other = (open_limiter(tmp_path, clock, requests=60_000) for _ in range(2))
    free = open_limiter(tmp_path, clock)
    one.pause(30.0)
    other.pause(5.0)
    assert other.acquire(1) >= 1030.0
    one.pause(10.0)
    assert free.acquire(1) >= 1040.0
    clock.sleep(5.0)
    assert free.acquire(1) == clock.now


def test_pause_noted_while_waiting_holds_the_waiting_too(tmp_path: Path, clock: Clock) -> None:
    noted = False

    def sleep(seconds: float) -> None:
        nonlocal noted
        if not noted:
            noted = True
            limiter.pause(100.0)
        clock.sleep(seconds)

    limiter = Limiter(tmp_path / "limits", 6, 0, clock=clock, sleep=sleep)
    first, second, third = (limiter.acquire(1) for _ in range(3))
    assert (first, noted) == (1000.0, True)
    assert second >= 1100.0
    assert third - second == pytest.approx(10.0)


def test_without_limits_no_file_is_written_until_a_pause(tmp_path: Path, clock: Clock) -> None:
    limiter = open_limiter(tmp_path / "new", clock)
    assert limiter.acquire(10**9) == 1000.0
    limiter.give_back(1000.0, 5)
    assert not (tmp_path / "new").exists()
    limiter.pause(2.0)
    limiter.acquire(1)
    limiter.pause(3.0)
    limiter.acquire(1)
    assert clock.now == 1005.0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "\0" * 200,
        lambda text: "[]",
        lambda text: "[" * 4000,
        lambda text: text + "x",
        lambda text: json.dumps({**json.loads(text), "boot": "another"}),
        lambda text: json.dumps({**json.loads(text), "last": 1e12}),
        lambda text: json.dumps({**json.loads(text), "full": float("nan")}),
        lambda text: json.dumps({**json.loads(text), "paused": None}),
        lambda text: json.dumps({**json.loads(text), "unknown": 1.0}),
        lambda text: json.dumps({"boot": 1}),
    ],
)
def test_state_that_cannot_be_of_this_boot_is_discarded(
    tmp_path: Path, clock: Clock, spoil: Callable[[str], str]
) -> None:
    limiter = open_limiter(tmp_path, clock, requests=1, tokens=10)
    limiter.acquire(1)
    limiter.pause(5000.0)
    file = tmp_path / "limits.json"
    file.write_text(spoil(file.read_text()))
    assert limiter.acquire(1) == 1000.0
    assert limiter.acquire(1) == 1060.0


def test_state_of_another_process_is_kept(tmp_path: Path, clock: Clock) -> None:
    open_limiter(tmp_path, clock, requests=6).acquire(1)
    assert open_limiter(tmp_path, clock, requests=6).acquire(1) == 1010.0


def take_turns(
    path: Path, ready: Barrier, starts: "multiprocessing.Queue[tuple[float, float]]"
) -> None:
    limiter = Limiter(path, 3000, 0)
    ready.wait(30.0)

    def work() -> None:
        for _ in range(2):
            start = limiter.acquire(1)
            starts.put((start, time.monotonic()))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_threads_of_two_processes_share_one_rate(tmp_path: Path) -> None:
    path = tmp_path / "limits"
    context = multiprocessing.get_context("fork")
    starts: multiprocessing.Queue[tuple[float, float]] = context.Queue()
    ready = context.Barrier(2)
    workers = [context.Process(target=take_turns, args=(path, ready, starts)) for _ in range(2)]
    for worker in workers:
        worker.start()
    seen = [starts.get(timeout=30.0) for _ in range(2 * 8 * 2)]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert all(start <= now for start, now in seen)
    given = [start for start, _ in seen]
    assert len(set(given)) == len(given)
    assert count_most(given, 0.2 - 1e-6) <= 10  # 50 a second


def read_last(path: Path) -> float:
    """When the latest turn is that was given; nobody is writing meanwhile."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        file.seek(0)
        return float(json.loads(file.read() or "{}").get("last", 0.0))


def take_and_hang(path: Path) -> None:
    limiter = Limiter(path, 60, 0)
    threads = [threading.Thread(target=limiter.acquire, args=(1,)) for _ in range(8)]
    for thread in threads:
        thread.start()


def test_killed_process_leaves_one_lost_turn_at_most(tmp_path: Path) -> None:
    path = tmp_path / "limits"
    worker = multiprocessing.get_context("fork").Process(target=take_and_hang, args=(path,))
    worker.start()
    deadline = time.monotonic() + 30.0
    while read_last(path) <= time.monotonic():  # until a thread waits for its turn
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.1)  # the other threads have begun as well
    worker.kill()
    worker.join()
    clock = Clock()
    clock.now = killed = time.monotonic()
    last = read_last(path)
    start = Limiter(path, 60, 0, clock=clock, sleep=clock.sleep).acquire(1)
    assert last <= killed + 1.0
    assert start == max(killed, last + 1.0)
