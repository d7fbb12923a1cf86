"""Asking a model: stored replies are not requested again, new ones are stored before reading."""

import contextlib
import fcntl
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeVar

from filelock import FileLock

from kpyramid.keys import JsonValue, hash_bytes
from kpyramid.llm.cache import ReplyCache
from kpyramid.llm.task import Asker as Asker
from kpyramid.llm.task import (
    Failure,
    FailureKind,
    ReplyError,
    Request,
    Task,
    ThreadCounts,
    key_request,
    read_response,
    read_usage,
)
from kpyramid.llm.task import Parse as Parse
from kpyramid.storage.items import do_at_once

# One holder per key, over threads and processes; a killed holder's key is free.

_DIGITS = 3
"""Hex digits of a key that select its lock file. Lock files stay, so there are 4,096 and not one
per question; of 64 held keys one in 64 waits for another with the same digits."""
_POLL = 0.01
"""Seconds between two tries to lock a key that another process holds."""


class KeyLocks:
    """Locks by key (hex digits) in a folder; without one they hold within this process only.

    A thread may hold one key at a time, since two keys may share a lock.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._guard = threading.Lock()
        self._thread_locks: dict[str, threading.Lock] = {}

    @contextlib.contextmanager
    def hold(self, key: str) -> Iterator[None]:
        """Waits until nobody else holds the key."""
        name = key[:_DIGITS]
        if self._folder is None:
            with self._guard:
                lock = self._thread_locks.setdefault(name, threading.Lock())
            with lock:
                yield
        else:
            self._folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self._folder / f"{name}.lock", poll_interval=_POLL):
                yield


@contextlib.contextmanager
def hold_file(path: Path, *, alone: bool) -> Iterator[None]:
    """Locks a file, shared or `alone`; a shared lock waits for an exclusive one.

    `filelock` has no shared lock.

    Raises:
        BlockingIOError: it is to be held alone and others hold it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
        yield


# Asking: stored replies, requests that are due again, and the outcomes.

T = TypeVar("T")

MAX_ATTEMPTS = 3
"""Runs that repeat a request with bad replies; then only `rejects --retry` does."""

_NEVER_DUE = frozenset({FailureKind.REFUSED})
_ALWAYS_DUE = frozenset({FailureKind.UNREACHED, FailureKind.DEFERRED, FailureKind.UNRECORDED})


class Source(Protocol):
    """The source of replies that are not stored."""

    def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
        """The raw reply.

        Raises:
            ReplyError: there is none for this request.
            BudgetError, EndpointError: there is none for any.
        """
        ...


@dataclass(slots=True)
class Counts:
    """The outcomes of one process's requests."""

    asked: int = 0
    hits: int = 0
    failures: Counter[str] = field(default_factory=Counter)


def is_due(failure: Failure) -> bool:
    """Whether a run repeats a failed request."""
    if failure.kind in _ALWAYS_DUE:
        return True
    return failure.kind not in _NEVER_DUE and failure.attempts < MAX_ATTEMPTS


@dataclass(eq=False)
class Caller:
    """An `Asker` that stores replies; threads may share it, processes the cache and the locks.

    `spent`: what was not stored, so paid, by this thread: what others ask meanwhile is not in it.
    Its tokens and dollars are those of the ledger that it came from. `taken`: the same with what
    was stored. `keys`: of all requests, on whose replies a result rests.
    """

    model: Mapping[str, JsonValue]
    source: Source
    cache: ReplyCache
    locks: KeyLocks
    spent: ThreadCounts = field(default_factory=ThreadCounts)

    def __post_init__(self) -> None:
        self._guard = threading.Lock()
        self._failed_now: dict[str, Failure] = {}
        self.counts = Counts()
        self.taken = ThreadCounts()
        self.keys: set[str] = set()

    @property
    def failed(self) -> dict[str, Failure]:
        """The requests without a usable reply, by key."""
        return dict(self._failed_now)

    def ask(self, request: Request, parse: Parse[T]) -> T | Failure:
        """See `Asker.ask`."""
        key = key_request(request, self.model)
        with self.locks.hold(key):
            with self._guard:
                self.counts.asked += 1
                self.keys.add(key)
                if key in self._failed_now:
                    return self._failed_now[key]
            outcome = self._settle(key, request, parse)
            if isinstance(outcome, Failure):
                with self._guard:
                    self._failed_now[key] = outcome
                    self.counts.failures[outcome.kind] += 1
            return outcome

    def _settle(self, key: str, request: Request, parse: Parse[T]) -> T | Failure:
        before = self.cache.read_failure(key)
        # A reply that stands beside a failure came after it: from a batch, or by an import.
        came = before is not None and self.cache.read_reply(key) is not None
        if before is not None and not came and not is_due(before):
            return before
        attempts = before.attempts if before else 0
        if request.once or before is None or came or before.kind is not FailureKind.TRUNCATED:
            outcome = self._answer(key, request, parse, attempts)
            if not isinstance(outcome, Failure):
                if before is not None:
                    self.cache.drop_failure(key)
                return outcome
            if outcome.kind is not FailureKind.TRUNCATED or request.once:
                return outcome
        # Cut off once: asked once more with twice the room. The answer then stands for both.
        raised = replace(request, max_tokens=2 * request.max_tokens)
        raised_key = key_request(raised, self.model)
        outcome = self._answer(raised_key, raised, parse, attempts)
        if isinstance(outcome, Failure):
            if outcome.kind in _ALWAYS_DUE:
                # No reply: what is known stays that the first was cut off, so only the second
                # question is asked again.
                self.cache.drop_failure(raised_key)
            elif outcome.kind is not FailureKind.PENDING:
                self.cache.move_failure(raised_key, key)
            return replace(outcome, key=key)
        self.cache.copy_reply(raised_key, key)
        self.cache.drop_failure(key)
        return outcome

    def _answer(self, key: str, request: Request, parse: Parse[T], attempts: int) -> T | Failure:
        raw = self.cache.read_reply(key)
        is_hit = raw is not None
        self.taken.calls += 1
        self.spent.calls += not is_hit
        with self._guard:
            self.counts.hits += is_hit
        try:
            if raw is None:
                raw = self.cache.keep_reply(key, request, self.source.obtain(key, request))
            self.taken.tokens += read_usage(raw, request).total
            return parse(read_response(raw))
        except ReplyError as e:
            tried = e.kind not in _ALWAYS_DUE  # an endpoint that is down uses no attempt up
            failure = Failure(key, e.kind, e.detail, attempts + tried)
            if e.kind is not FailureKind.PENDING:
                self.cache.keep_failure(failure, request, raw)
                if raw is not None:  # else what is there now was stored by another meanwhile
                    self.cache.drop_reply(key)
            return failure


class Collector:
    """A `Source` that calls nobody and notes the requests: for plans and batches."""

    def __init__(self) -> None:
        self.pending: dict[str, Request] = {}

    def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
        """See `Source.obtain`; every request is pending."""
        self.pending[key] = request
        raise ReplyError(FailureKind.PENDING, "not asked yet")


class AfterBatches:
    """A `Source` that leaves out requests in open batches: they would be paid twice."""

    def __init__(self, source: Source, open_keys: Collection[str]) -> None:
        self._source = source
        self._open = frozenset(open_keys)

    def obtain(self, key: str, request: Request) -> Mapping[str, JsonValue]:
        """See `Source.obtain`; requests in open batches are left for the next run."""
        if key in self._open:
            detail = "it is in an open batch: `kpyramid batch collect` fetches it, then build again"
            raise ReplyError(FailureKind.DEFERRED, detail)
        return self._source.obtain(key, request)


# Many questions of one kind: cut into batches that a small change leaves alone, and asked.

A = TypeVar("A")

_CUT = 8
"""One item in so many ends a batch by its hash, so that a new item changes few batches."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An unusable answer, or a part of one, in the form of a reject."""

    reason: str
    key: str
    detail: str

    @classmethod
    def of(cls, failure: Failure, result: str) -> "Loss":
        """The loss of a batch without an answer, and its result in words."""
        return cls(f"llm_{failure.kind}", failure.key, f"{failure.detail}; {result}")


def cut_batches(
    items: Iterable[T], *, name: Callable[[T], str], weigh: Callable[[T], int], size: int
) -> Iterator[tuple[T, ...]]:
    """The items in runs of about `size`; the end of a run depends on its items alone.

    `name` gives an item's text, which orders the items and cuts the runs by its hash.
    """
    batch: list[T] = []
    filled = 0
    named = ((hash_bytes(name(item).encode("utf-8", "surrogatepass")), item) for item in items)
    for digest, item in sorted(named, key=lambda pair: pair[0]):
        batch.append(item)
        filled += weigh(item)
        ends = int(digest[:8], 16) % _CUT == 0
        if filled >= size or (ends and filled >= size // 2):
            yield tuple(batch)
            batch, filled = [], 0
    if batch:
        yield tuple(batch)


@dataclass(slots=True, eq=False)
class BatchAsker:
    """Asks about batches of items; `concurrency` requests at a time.

    `domain`, `language`: of the texts, for the prompts.
    """

    asker: Asker
    domain: str
    language: str
    max_tokens: int
    concurrency: int

    def ask_batches(
        self,
        batches: Iterable[T],
        task: Task,
        system: str,
        show: Callable[[T], str],
        parse: Callable[[str, T], A],
    ) -> list[tuple[T, A | Failure]]:
        """Each batch with its answer, in order; `show` writes it out, `parse` reads its reply.

        Raises:
            BudgetError, EndpointError: no further call can be made; the answers so far are kept.
        """

        def ask(batch: T) -> A | Failure:
            request = task.request(system, show(batch), max_tokens=self.max_tokens)
            return self.asker.ask(request, lambda content: parse(content, batch))

        asked = list(batches)
        return list(zip(asked, do_at_once(ask, asked, self.concurrency), strict=True))
