"""Requests and tokens per minute, shared by all processes of a machine through one small file."""

import fcntl
import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

_MINUTE = 60.0
_BURST = 0.1
"""Share of a minute's tokens that may go at once; the rest flows in over the minute, so that no
window of a minute ever holds more than the limit."""
_LONGEST_PAUSE = 86_400.0
_FAR = 2 * _LONGEST_PAUSE
"""Seconds ahead that no state of this boot can lie."""
_SETTLED = 1.0
"""Seconds after which a file's time tells a later writing from this one; clocks of files tick."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(slots=True)
class _State:
    """Times of the machine's monotonic clock, which starts anew with each boot.

    `last`: when the latest call may start. `full`: when the bucket of tokens is full again.
    `since`: when it was full last. `paused`: nobody calls before.
    """

    boot: str
    last: float = -math.inf
    full: float = -math.inf
    since: float = -math.inf
    paused: float = -math.inf


class Limiter:
    """Lets calls go at a rate; threads and processes may share the file. A limit of 0 is none.

    A call that asks for more tokens than may go at once waits for a full bucket and then goes:
    late, never for ever.
    """

    def __init__(
        self,
        path: Path,
        requests_per_minute: int,
        tokens_per_minute: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._path = path
        self._gap = _MINUTE / requests_per_minute if requests_per_minute else 0.0
        self._bucket = tokens_per_minute * _BURST
        self._flow = (tokens_per_minute - self._bucket) / _MINUTE
        self._clock = clock
        self._sleep = sleep
        self._boot = _read_boot()
        # One thread of a process at a time waits for its turn: what a killed process had
        # reserved is then one turn and not one for each of its threads.
        self._turn = threading.Lock()
        self._seen: tuple[int, int] | None = None

    def acquire(self, tokens: int) -> float:
        """Waits until a call of so many tokens may start; returns the time that was given it."""
        if not self._gap and not self._flow:
            return self._wait_for_pause()
        with self._turn:
            while True:
                with self._hold_state() as state:
                    start = self._take(state, tokens)
                self._sleep_until(start)
                if start >= self._read_state().paused:
                    return start
                # Paused while it waited: its turn is lost, and the next one comes after.

    def give_back(self, taken: float, tokens: int) -> None:
        """Tokens that the call which started at `taken` asked for and did not use.

        Negative when it used more than it asked for.
        """
        if not self._flow or not tokens:
            return
        with self._hold_state() as state:
            # A bucket that was full since holds no more than that.
            if tokens < 0 or taken >= state.since:
                state.full -= tokens / self._flow

    def pause(self, seconds: float) -> None:
        """Lets no process start a call for so many seconds, a day at most."""
        with self._hold_state() as state:
            until = self._clock() + min(max(0.0, seconds), _LONGEST_PAUSE)
            state.paused = max(state.paused, until)

    def _take(self, state: _State, tokens: int) -> float:
        """When the call may start; turns are given in order, and each is given once."""
        start = max(self._clock(), state.paused, state.last + self._gap)
        if self._flow:
            room = max(0.0, self._bucket - tokens)
            start = max(start, state.full - room / self._flow)
            if state.full <= start:
                state.since = state.full = start
            state.full += tokens / self._flow
        state.last = start
        return start

    def _wait_for_pause(self) -> float:
        """Without limits the file is read only when another pause was noted in it."""
        while True:
            try:
                status = self._path.stat()
            except FileNotFoundError:
                return self._clock()
            mark = (status.st_mtime_ns, status.st_ino)
            if mark == self._seen:
                return self._clock()
            paused = self._read_state().paused
            now = self._clock()
            if paused > now:
                self._sleep_until(paused)
                continue
            if paused < now - _SETTLED:
                self._seen = mark
            return now

    def _sleep_until(self, moment: float) -> None:
        while (left := moment - self._clock()) > 0:
            self._sleep(left)

    def _read_state(self) -> _State:
        with self._hold_state(write=False) as state:
            return state

    @contextmanager
    def _hold_state(self, *, write: bool = True) -> Iterator[_State]:
        """The state, for nobody else meanwhile; the kernel lets go of it when the process dies."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            state = self._parse(os.pread(handle, 4096, 0))
            yield state
            if write:
                data = json.dumps(asdict(state)).encode()
                os.pwrite(handle, data, 0)
                os.ftruncate(handle, len(data))
        finally:
            os.close(handle)

    def _parse(self, data: bytes) -> _State:
        """The state as written, or a new one for a torn file, another boot or a foreign clock."""
        fresh = _State(self._boot)
        try:
            values = json.loads(data)
            if not isinstance(values, dict) or values.pop("boot", None) != self._boot:
                return fresh
            times = {name: float(time) for name, time in values.items()}
            state = _State(self._boot, **times)
        except (ValueError, TypeError, RecursionError):
            return fresh
        horizon = self._clock() + _FAR
        return state if all(time <= horizon for time in times.values()) else fresh


def _read_boot() -> str:
    """What tells this boot from others; where there is nothing, only the far future does."""
    try:
        return _BOOT.read_text("ascii").strip()
    except OSError:
        return ""
