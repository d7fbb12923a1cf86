"""Many items: cut into parts of bounded size, or worked on side by side."""

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 8
"""Requests in flight while many objects are copied, files that are hashed side by side."""


def split_by_size(
    items: Iterable[T], weigh: Callable[[T], int], *, weight: int, count: int = sys.maxsize
) -> Iterator[list[T]]:
    """The items in order, in lists of at most so many and of at most so much weight together.

    What alone weighs more is a list of its own.
    """
    part: list[T] = []
    filled = 0
    for item in items:
        size = weigh(item)
        if part and (len(part) >= count or filled + size > weight):
            yield part
            part, filled = [], 0
        part.append(item)
        filled += size
    if part:
        yield part


def do_at_once(act: Callable[[T], R], items: Iterable[T], threads: int = _AT_ONCE) -> list[R]:
    """What an act on some items gives, in their order; several are on their way at a time.

    After an error what is under way ends, and nothing more begins.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        futures = [pool.submit(act, item) for item in items]
        wait(futures, return_when=FIRST_EXCEPTION)
    finally:
        pool.shutdown(cancel_futures=True)
    failed = next((f for f in futures if not f.cancelled() and f.exception()), None)
    return [future.result() for future in ([failed] if failed else futures)]
