"""Replies from an endpoint: budget, rate limits, retries, and knowing when it is down."""

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
from typing import TypeVar

from kpyramid.errors import EndpointError
from kpyramid.keys import hash_bytes
from kpyramid.llm.ledger import Call, Ledger
from kpyramid.llm.responses import read_usage
from kpyramid.llm.transport import Pay, Raw
from kpyramid.llm.types import FailureKind, ReplyError, Request, TransientError, Transport

# Requests and tokens per minute, shared by all processes of a machine through one small file.

_MINUTE = 60.0
_BURST = 0.1
"""Share of a minute's tokens that may go at once; the rest flows in over the minute, so that no
window of a minute ever holds more than the limit."""
_LONGEST_PAUSE = 86_400.0
_FAR = 2 * _LONGEST_PAUSE
"""Seconds ahead that no state of this boot can lie."""
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
        """Without limits there is a file only when a pause was noted in it."""
        while self._path.exists() and (paused := self._read_state().paused) > self._clock():
            self._sleep_until(paused)
        return self._clock()

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


# Getting replies from an endpoint: budget, limits, retries, and knowing when it is down.

T = TypeVar("T")

_TRIES = 5
"""HTTP calls for one item in one run when the endpoint fails; one that is only busy is asked
again until llm.max_wait is over."""
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
"""Seconds before the second try, doubled from try to try up to the longest."""
_GIVE_UP_AFTER = 8
"""Items in a row that the endpoint failed: then it is down, and the rest would only wait too."""
_DOWN = frozenset({FailureKind.UNREACHED, FailureKind.DEFERRED})


class Endpoint:
    """A `Source` over a transport; threads may share it. `calls` counts HTTP calls.

    `open_transport` is called before the first call, so that a run without calls opens nothing;
    it is given what pays for the calls that it makes itself. `describe` says what the books say
    of a request, by default what they say of a chat completion. `patience` is for who waits at
    a screen: seconds from a first call on after which a failed one is not made again.
    """

    def __init__(
        self,
        open_transport: Callable[[Pay], Transport],
        ledger: Ledger,
        limiter: Limiter,
        *,
        max_wait: float,
        patience: float | None = None,
        describe: Callable[[Request, str], Call] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._open_transport = open_transport
        self._ledger = ledger
        self._limiter = limiter
        self._max_wait = max_wait
        self._patience = patience
        self._describe = describe or ledger.describe
        self._sleep = sleep
        self._opening = threading.Lock()
        self._guard = threading.Lock()
        self._transport: Transport | None = None
        self._down_in_a_row = 0
        self._broken: EndpointError | None = None
        self.calls = 0

    def obtain(self, key: str, request: Request) -> Raw:
        """See `Source.obtain`: one reply, over as many calls as it takes, each counted."""
        self._check()
        try:
            transport = self._open(key, request)
            raw = self._persist(
                key, lambda: self._pay(key, request, lambda: transport.send(request))
            )
        except EndpointError as e:
            self._broken = e
            raise
        except ReplyError as e:
            if e.kind in _DOWN:
                self._note_down(e.detail)
            raise
        with self._guard:
            self._down_in_a_row = 0
        return raw

    def _check(self) -> None:
        """Spares the other items what one has found out for all.

        Raises:
            EndpointError: no request can be answered.
        """
        if self._broken:
            raise type(self._broken)(str(self._broken))

    def _open(self, key: str, request: Request) -> Transport:
        """The transport; the first thread opens it while the others wait.

        Raises:
            BudgetError: it would be opened for a request that may not be sent.
            EndpointError: it cannot be opened.
        """
        with self._opening:
            self._check()
            if self._transport is None:
                self._ledger.check(self._describe(request, key))

                def pay(probe: Request, call: Callable[[], Raw]) -> Raw:
                    return self._pay(probe.task, probe, call)

                try:
                    self._transport = self._persist("open", lambda: self._open_transport(pay))
                except ReplyError as e:
                    self._broken = EndpointError(
                        f"{e.detail}. Nothing was asked: run the same command later"
                    )
                    raise self._broken from e
                except EndpointError as e:
                    self._broken = e
                    raise
            return self._transport

    def _persist(self, key: str, call: Callable[[], T]) -> T:
        """What a call gives, made again while that may help.

        Raises:
            ReplyError: it was made often enough, or would have to wait too long.
        """
        waited, number, failed = 0.0, 0, 0
        started = time.monotonic()
        while True:
            try:
                return call()
            except TransientError as e:
                busy = e.retry_after is not None
                wait = max(e.retry_after or 0.0, _choose_wait(key, number))
                number, failed = number + 1, failed + (not busy)
                if failed == _TRIES:
                    detail = f"{number} calls failed, the last: {e}"
                    raise ReplyError(FailureKind.UNREACHED, detail) from e
                passed = time.monotonic() - started
                if self._patience is not None and passed + wait > self._patience:
                    detail = (
                        f"{number} calls failed within {passed:.0f} s, and nobody waits longer for "
                        f"an answer than {self._patience:g} s; the last: {e}"
                    )
                    raise ReplyError(FailureKind.UNREACHED, detail) from e
                if waited + wait > self._max_wait:
                    detail = f"{e}; waiting {waited + wait:.0f} s is more than llm.max_wait"
                    raise ReplyError(FailureKind.DEFERRED, detail) from e
                waited += wait
                if busy:
                    self._limiter.pause(wait)  # a limit is the endpoint's, so it holds for all
                else:
                    self._sleep(wait)

    def _pay(self, key: str, request: Request, call: Callable[[], Raw]) -> Raw:
        """Makes one call that is within the limits and the budget, and books it."""
        # As OpenAI's own limiter counts before it knows better.
        expected = request.prompt_characters // 4 + request.max_tokens
        taken = self._limiter.acquire(expected)

        def count_call() -> Raw:
            with self._guard:
                self.calls += 1
            return call()

        try:
            raw = self._ledger.pay(self._describe(request, key), request, count_call)
        except TransientError as e:
            if not e.sent:
                self._limiter.give_back(taken, expected)
            raise
        self._limiter.give_back(taken, expected - read_usage(raw, request).total)
        return raw

    def _note_down(self, detail: str) -> None:
        with self._guard:
            self._down_in_a_row += 1
            down = self._down_in_a_row
        if down >= _GIVE_UP_AFTER:
            self._broken = EndpointError(
                f"the model's endpoint failed for {down} items in a row, the last: {detail}. What "
                "was answered is kept. When it is well again, run the same command: it asks only "
                "for the rest"
            )
            self._check()


def _choose_wait(key: str, number: int) -> float:
    """Doubling; a share that depends on the key parts callers."""
    share = int(hash_bytes(f"{key} {number}".encode())[:4], 16) / 0xFFFF
    return float(min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(number, 16)) * (0.5 + share / 2))
