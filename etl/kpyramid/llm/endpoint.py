"""Getting replies from an endpoint: budget, limits, retries, and knowing when it is down."""

import hashlib
import threading
import time
from collections.abc import Callable, Mapping

from kpyramid.errors import EndpointError
from kpyramid.keys import JsonValue
from kpyramid.llm.ledger import Ledger
from kpyramid.llm.limiter import Limiter
from kpyramid.llm.responses import read_usage
from kpyramid.llm.types import FailureKind, ReplyError, Request, TransientError, Transport

_TRIES = 5
"""HTTP calls for one item in one run when the endpoint fails."""
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 30.0
"""Seconds before the second try, doubled from try to try up to the longest."""
_GIVE_UP_AFTER = 8
"""Items in a row that the endpoint failed: then it is down, and the rest would only wait too."""


class Endpoint:
    """A `Source` over a transport; threads may share it. `calls` counts HTTP calls.

    `open_transport` is called before the first call, so that a run without calls opens nothing.
    """

    def __init__(
        self,
        open_transport: Callable[[], Transport],
        ledger: Ledger,
        limiter: Limiter,
        *,
        max_wait: float,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._open_transport = open_transport
        self._ledger = ledger
        self._limiter = limiter
        self._max_wait = max_wait
        self._sleep = sleep
        self._guard = threading.Lock()
        self._transport: Transport | None = None
        self._down_in_a_row = 0
        self.calls = 0

    def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
        """See `Source.obtain`: one reply, over as many calls as it takes, each counted."""
        transport = self._open()
        detail, waited = "", 0.0
        for number in range(_TRIES):
            try:
                return self._call(transport, key, request)
            except TransientError as e:
                detail = str(e)
                wait = _choose_wait(key, number, e.retry_after)
                waited += wait
                if waited > self._max_wait:
                    self._note_down()
                    asked = f"{detail}; it asked to wait {wait:.0f} s, more than llm.max_wait"
                    raise ReplyError(FailureKind.DEFERRED, asked) from e
                if e.retry_after is not None:
                    self._limiter.pause(wait)  # a limit is the endpoint's, so it holds for all
                elif number + 1 < _TRIES:
                    self._sleep(wait)
        self._note_down()
        raise ReplyError(FailureKind.UNREACHED, f"{_TRIES} calls failed, the last: {detail}")

    def _call(
        self, transport: Transport, key: str, request: Request
    ) -> Mapping[str, JsonValue]:
        self._limiter.acquire(self._ledger.bound_tokens(request))
        ticket = self._ledger.reserve(request, key)
        try:
            with self._guard:
                self.calls += 1
            raw = transport.send(request)
        except TransientError as e:
            # What the server may have done it may have billed: it counts at its highest.
            self._ledger.settle(ticket, None, "transient", billed=e.sent)
            raise
        except BaseException:
            self._ledger.settle(ticket, None, "refused", billed=False)
            raise
        self._ledger.settle(ticket, read_usage(raw, request), "answered", billed=True)
        with self._guard:
            self._down_in_a_row = 0
        return raw

    def _open(self) -> Transport:
        with self._guard:
            if self._transport is None:
                self._transport = self._open_transport()
            return self._transport

    def _note_down(self) -> None:
        with self._guard:
            self._down_in_a_row += 1
            down = self._down_in_a_row
        if down >= _GIVE_UP_AFTER:
            raise EndpointError(
                f"the model's endpoint failed for {down} items in a row; what was answered is "
                "kept. When it is well again, run the same command: it asks only for the rest"
            )


def _choose_wait(key: str, number: int, retry_after: float | None) -> float:
    """What the server asked for, else doubling; a share that depends on the key parts callers."""
    if retry_after is not None:
        return retry_after
    share = int(hashlib.sha256(f"{key} {number}".encode()).hexdigest()[:4], 16) / 0xFFFF
    return min(_LONGEST_WAIT, _FIRST_WAIT * 2.0**number) * (0.5 + share / 2)
