"""Asking a model: what is stored is not asked again, what comes is stored before it is read."""

import threading
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from kpyramid.keys import JsonValue
from kpyramid.llm.cache import ReplyCache
from kpyramid.llm.locks import KeyLocks
from kpyramid.llm.responses import read_response, read_usage
from kpyramid.llm.types import Asker as Asker
from kpyramid.llm.types import Failure, FailureKind, Read, ReplyError, Request, key_request
from kpyramid.llm.types import Parse as Parse

T = TypeVar("T")

MAX_ATTEMPTS = 3
"""Runs that ask again for an item whose replies are bad; then only `rejects retry` does."""

_NEVER_DUE = frozenset({FailureKind.REFUSED})
_ALWAYS_DUE = frozenset({FailureKind.UNREACHED, FailureKind.DEFERRED, FailureKind.UNRECORDED})


class Source(Protocol):
    """Where replies come from that are not stored."""

    def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
        """The raw reply.

        Raises:
            ReplyError: there is none for this request.
            BudgetError, EndpointError: there is none for any.
        """
        ...


@dataclass(slots=True)
class Counts:
    """What happened to the requests of one process."""

    asked: int = 0
    hits: int = 0
    tokens: int = 0
    """Of the replies that were not stored before."""
    failures: Counter[str] = field(default_factory=Counter)


class ThreadCounts(threading.local):
    """Requests of one thread that got a reply or were to get one, and the tokens of replies."""

    calls: int = 0
    tokens: int = 0


def is_due(failure: Failure) -> bool:
    """Whether a run asks again for what failed before."""
    if failure.kind in _ALWAYS_DUE:
        return True
    return failure.kind not in _NEVER_DUE and failure.attempts < MAX_ATTEMPTS


class Caller:
    """An `Asker` that keeps replies; threads may share it, processes the cache and the locks."""

    def __init__(
        self, model: Mapping[str, JsonValue], source: Source, cache: ReplyCache, locks: KeyLocks
    ) -> None:
        self._model = model
        self._source = source
        self._cache = cache
        self._locks = locks
        self._guard = threading.Lock()
        self._failed_now: dict[str, Failure] = {}
        self.counts = Counts()
        self.spent = ThreadCounts()
        """What was not stored, so paid, by this thread: what others ask meanwhile is not in it."""
        self.taken = ThreadCounts()
        """The same with what was stored: what an answer takes, however often it was asked for."""
        self.keys: set[str] = set()
        """Keys of all that was asked: what `cache gc` must keep for the result made of it."""

    @property
    def failed(self) -> dict[str, Failure]:
        """The requests that had no usable reply, by key."""
        return dict(self._failed_now)

    def ask(self, request: Request, parse: Parse[T]) -> T | Failure:
        """See `Asker.ask`."""
        return self.ask_reply(request, lambda reply: parse(reply.content))

    def ask_reply(self, request: Request, read: Read[T]) -> T | Failure:
        """As `ask`, for what looks at more of a reply than its text."""
        key = key_request(request, self._model)
        with self._locks.hold(key):
            with self._guard:
                self.counts.asked += 1
                self.keys.add(key)
                if key in self._failed_now:
                    return self._failed_now[key]
            outcome = self._settle(key, request, read)
            if isinstance(outcome, Failure):
                with self._guard:
                    self._failed_now[key] = outcome
                    self.counts.failures[outcome.kind] += 1
            return outcome

    def _settle(self, key: str, request: Request, read: Read[T]) -> T | Failure:
        before = self._cache.read_failure(key)
        # A reply that stands beside a failure came after it: from a batch, or by an import.
        came = before is not None and self._cache.read_reply(key) is not None
        if before is not None and not came and not is_due(before):
            return before
        attempts = before.attempts if before else 0
        if before is None or came or before.kind is not FailureKind.TRUNCATED:
            outcome = self._answer(key, request, read, attempts)
            if not isinstance(outcome, Failure):
                if before is not None:
                    self._cache.drop_failure(key)
                return outcome
            if outcome.kind is not FailureKind.TRUNCATED:
                return outcome
        # Cut off once: asked once more with twice the room. The answer then stands for both.
        raised = replace(request, max_tokens=2 * request.max_tokens)
        raised_key = key_request(raised, self._model)
        outcome = self._answer(raised_key, raised, read, attempts)
        if isinstance(outcome, Failure):
            if outcome.kind in _ALWAYS_DUE:
                # No reply: what is known stays that the first was cut off, so only the second
                # question is asked again.
                self._cache.drop_failure(raised_key)
            elif outcome.kind is not FailureKind.PENDING:
                self._cache.move_failure(raised_key, key)
            return replace(outcome, key=key)
        self._cache.copy_reply(raised_key, key)
        self._cache.drop_failure(key)
        return outcome

    def _answer(self, key: str, request: Request, read: Read[T], attempts: int) -> T | Failure:
        raw = self._cache.read_reply(key)
        self.taken.calls += 1
        if raw is not None:
            usage = read_usage(raw, request)
            self.taken.tokens += usage.prompt + usage.completion
            with self._guard:
                self.counts.hits += 1
        try:
            if raw is None:
                self.spent.calls += 1
                raw = self._cache.keep_reply(key, request, self._source.obtain(key, request))
                usage = read_usage(raw, request)
                self.taken.tokens += usage.prompt + usage.completion
                self.spent.tokens += usage.prompt + usage.completion
                with self._guard:
                    self.counts.tokens += usage.prompt + usage.completion
            return read(read_response(raw))
        except ReplyError as e:
            tried = e.kind not in _ALWAYS_DUE  # an endpoint that is down uses no attempt up
            failure = Failure(key, e.kind, e.detail, attempts + tried)
            if e.kind is not FailureKind.PENDING:
                self._cache.keep_failure(failure, request, raw)
                if raw is not None:  # else what is there now was stored by another meanwhile
                    self._cache.drop_reply(key)
            return failure


class Collector:
    """A `Source` that asks nobody and notes what would be asked: for plans and batches."""

    def __init__(self) -> None:
        self.pending: dict[str, Request] = {}

    def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
        """See `Source.obtain`; every request is pending."""
        self.pending[key] = request
        raise ReplyError(FailureKind.PENDING, "not asked yet")


class AfterBatches:
    """A `Source` that does not ask for what an open batch will answer: it would be paid twice."""

    def __init__(self, source: Source, open_keys: Collection[str]) -> None:
        self._source = source
        self._open = frozenset(open_keys)

    def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
        """See `Source.obtain`; what is in an open batch is left for the next run."""
        if key in self._open:
            detail = "it is in an open batch: `kpyramid batch collect` fetches it, then build again"
            raise ReplyError(FailureKind.DEFERRED, detail)
        return self._source.obtain(key, request)
