"""Many items: split into parts of bounded size, or processed in parallel."""

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 8
"""Threads that copy objects or hash files."""


def split_by_size(
    items: Iterable[T], weigh: Callable[[T], int], *, weight: int, count: int = sys.maxsize
) -> Iterator[list[T]]:
    """The items in order, in lists of at most `count` items and `weight` in total.

    An item that exceeds the weight is a list by itself.
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
    """The results of an act on items, in their order, by several threads.

    After an error the running acts finish, and no further one begins.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        futures = [pool.submit(act, item) for item in items]
        wait(futures, return_when=FIRST_EXCEPTION)
    finally:
        pool.shutdown(cancel_futures=True)
    failed = next((f for f in futures if not f.cancelled() and f.exception()), None)
    return [future.result() for future in ([failed] if failed else futures)]
