"""Many questions of one kind: cut into batches that a small change leaves alone, and asked."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from kpyramid.llm.caller import Asker, Parse
from kpyramid.llm.types import Failure, Request

T = TypeVar("T")
A = TypeVar("A")

_CUT = 8
"""One item in so many ends a batch by its hash, so that a new item changes few batches."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An answer, or a part of one, that cannot be used, as a reject says it."""

    reason: str
    key: str
    detail: str


def cut_batches(
    items: Iterable[T], *, name: Callable[[T], str], weigh: Callable[[T], int], size: int
) -> Iterator[tuple[T, ...]]:
    """The items in runs of about `size`; where a run ends depends on its items alone.

    `name` gives an item's own text, which orders the items and cuts the runs by its hash.
    """
    batch: list[T] = []
    filled = 0
    for digest, item in sorted(((_hash(name(item)), item) for item in items), key=lambda p: p[0]):
        batch.append(item)
        filled += weigh(item)
        ends = int(digest[:8], 16) % _CUT == 0
        if filled >= size or (ends and filled >= size // 2):
            yield tuple(batch)
            batch, filled = [], 0
    if batch:
        yield tuple(batch)


def ask_all(
    asker: Asker, questions: Sequence[tuple[Request, Parse[A]]], concurrency: int
) -> list[A | Failure]:
    """The answers in order, so many under way at a time.

    Raises:
        BudgetError, EndpointError: no further call can be made; the answers so far are kept.
    """
    pool = ThreadPoolExecutor(concurrency, thread_name_prefix="asking")
    try:
        return list(pool.map(lambda question: asker.ask(*question), questions))
    finally:
        # After a fatal error: what is under way ends and is kept, nothing more begins.
        pool.shutdown(cancel_futures=True)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
