"""Worker processes that share texts; each loads its model once."""

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
from functools import lru_cache
from types import ModuleType
from typing import Any, TypeVar

from pydantic import TypeAdapter

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import PyramidError
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.syntax.tree import pack_tree
from kpyramid.extraction.types import Extraction, Titled
from kpyramid.storage.items import split_by_size

R = TypeVar("R", str, Titled)

_FEW = 24
"""Texts below which starting worker processes costs more than it saves."""

_BATCH_CHARACTERS = 20_000
"""Characters per batch of a worker process: a few seconds of work."""

_EXTRACTION = TypeAdapter(Extraction)

Compute = Callable[[Sequence[R]], Iterator[bytes]]
"""Computes the results of texts, in their order."""
Load = Callable[..., Compute[R]]
"""Loads the model that computes; called with `chosen`."""


def share_out(
    texts: Sequence[R], workers: int, load: Load[R], chosen: tuple[object, ...]
) -> Iterator[bytes]:
    """The results in order, computed by this process or by several.

    Worker processes end when this process ends, however it ends, and when the caller stops
    reading the results.

    Raises:
        PyramidError: a worker process died.
    """
    if not texts:
        return
    if workers == 1 or len(texts) < _FEW:
        yield from load(*chosen)(texts)
        return
    context = multiprocessing.get_context("spawn")
    others = {*multiprocessing.active_children()}
    pool = ProcessPoolExecutor(workers, context, _start_worker)
    try:
        # Not `pool.map`: interrupted, it cancels what it waits for, and Python 3.11's pool, whose
        # processes then end, complains of work that is cancelled already.
        with _hide_program():
            # Of about equal length, so that no process waits long for another.
            batches = split_by_size(texts, _count_characters, weight=_BATCH_CHARACTERS)
            waiting = deque(pool.submit(_work, batch, load, chosen) for batch in batches)
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


def _count_characters(text: str | Titled) -> int:
    return len(text if isinstance(text, str) else text.text)


@contextmanager
def _hide_program() -> Iterator[None]:
    """Context in which child processes start without importing the main program.

    They need none of it, and Airflow's cannot be imported below a task. Celery describes this
    process by a class of its own, which forbids children and cannot be pickled.
    """
    place, stand_in = vars(multiprocessing.process), multiprocessing.Process()
    stand_in.daemon, stand_in.authkey = False, os.urandom(32)
    program, process = sys.modules["__main__"], place["_current_process"]
    sys.modules["__main__"], place["_current_process"] = ModuleType("__main__"), stand_in
    try:
        yield
    finally:
        sys.modules["__main__"], place["_current_process"] = program, process


def _start_worker() -> None:
    # Ctrl-C reaches every process of a terminal; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends this worker process when its parent has ended, also by SIGKILL.

    The parent holds one end of a pipe for as long as it lives, on every system.
    """
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


_loaded: list[tuple[object, object, Compute[Any]]] = []
"""The load function of this worker process, its arguments, and the function that it loaded."""


def _work(batch: Sequence[R], load: Load[R], chosen: tuple[object, ...]) -> list[bytes]:
    """The results of a batch, in a worker process."""
    if [each[:2] for each in _loaded] != [(load, chosen)]:
        _loaded[:] = [(load, chosen, load(*chosen))]
    return list(_loaded[0][2](batch))


def load_extractor(parser: str, language: str, author: str) -> Compute[Titled]:
    """The extraction of each text as JSON."""
    from kpyramid.extraction.openie import DependencyExtractor

    extractor = DependencyExtractor(parser, language, author)
    return lambda texts: map(_EXTRACTION.dump_json, extractor.extract_all(texts))


@lru_cache(maxsize=1)
def load_parser(package: str) -> Compute[str]:
    """The parse of each text, packed."""
    parser = Parser(package)
    return lambda texts: (pack_tree(tree).encode() for tree in parser.parse_all(texts))


def pack_vector(vector: Matrix) -> bytes:
    """A vector as little-endian 32-bit floats."""
    return vector.astype("<f4").tobytes()
