"""Texts shared out to worker processes, each of which loads its model once."""

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from types import ModuleType
from typing import TypeVar

from pydantic import TypeAdapter

from kpyramid.errors import PyramidError
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.syntax.tree import pack_tree
from kpyramid.extraction.types import Extraction, Extractor, Titled

R = TypeVar("R", str, Titled)

_FEW = 24
"""Texts below which starting worker processes costs more than it saves."""

_BATCH_CHARACTERS = 20_000
"""Characters that a worker process extracts at a time: a few seconds of work."""

_EXTRACTION = TypeAdapter(Extraction)


def share_out(
    texts: Sequence[R],
    workers: int,
    load: Callable[..., None],
    chosen: tuple[str, ...],
    work: Callable[[Sequence[R]], Iterator[bytes]],
) -> Iterator[bytes]:
    """The results in order, of this process or of several, each of which loads its model once.

    Worker processes end when this process ends, however it ends, and when the caller stops
    reading the results.

    Raises:
        PyramidError: a worker process died.
    """
    if not texts:
        return
    if workers == 1 or len(texts) < _FEW:
        load(*chosen)
        yield from work(texts)
        return
    context = multiprocessing.get_context("spawn")
    others = {*multiprocessing.active_children()}
    pool = ProcessPoolExecutor(workers, context, _start_worker, (load, chosen))
    try:
        # Not `pool.map`: interrupted, it cancels what it waits for, and Python 3.11's pool, whose
        # processes then end, complains of work that is cancelled already.
        with _hide_program():
            waiting = deque(pool.submit(_collect, work, batch) for batch in _make_batches(texts))
        while waiting:
            yield from waiting.popleft().result()
    except BrokenProcessPool as e:
        raise PyramidError(
            "a worker process died while extracting, killed or out of memory. What was "
            "finished is kept: run the command again, with fewer --workers if memory is short"
        ) from e
    except BaseException:  # also when it is interrupted: nobody waits for the work under way
        for process in {*multiprocessing.active_children()} - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _hide_program() -> Iterator[None]:
    """While it lasts, processes that are started do not import the program that runs.

    They need nothing of it, and Airflow's own cannot be imported below a task.
    """
    program = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = program


def _start_worker(load: Callable[..., None], chosen: tuple[str, ...]) -> None:
    # Ctrl-C reaches every process of a terminal; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    load(*chosen)


def _end_with_parent() -> None:
    """Ends this worker process when its parent has ended, also by SIGKILL.

    The parent holds one end of a pipe for as long as it lives, on every system.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


_extractors: list[Extractor] = []


def load_extractor(parser: str, language: str) -> None:
    """Makes this process ready for `extract_all`."""
    from kpyramid.extraction.openie import DependencyExtractor

    _extractors[:] = [DependencyExtractor(parser, language)]


def _collect(work: Callable[[Sequence[R]], Iterator[bytes]], texts: Sequence[R]) -> list[bytes]:
    return list(work(texts))


def extract_all(texts: Sequence[Titled]) -> Iterator[bytes]:
    """The extraction of each text as JSON."""
    return map(_EXTRACTION.dump_json, _extractors[0].extract_all(texts))


_parsers: list[Parser] = []


def load_parser(package: str) -> None:
    """Makes this process ready for `parse_all`."""
    if not _parsers or _parsers[0].package != package:
        _parsers[:] = [Parser(package)]


def parse_all(texts: Sequence[str]) -> Iterator[bytes]:
    """The parse of each text, packed."""
    return (pack_tree(tree).encode() for tree in _parsers[0].parse_all(texts))


def _make_batches(texts: Sequence[R]) -> Iterator[list[R]]:
    """Lists of texts of about equal length, so that no worker waits long for another."""
    batch: list[R] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len("".join(text))
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
