"""Texts and files shared out to worker processes, each of which loads its model once."""

import json
import multiprocessing
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from queue import SimpleQueue
from typing import TypeVar

from pydantic import TypeAdapter

from kpyramid.documents.conversion import CONVERTER, Convert, Converted
from kpyramid.documents.corpus import SourceFile
from kpyramid.documents.formats import name_ending
from kpyramid.errors import PyramidError
from kpyramid.extraction.syntax.parser import Parser
from kpyramid.extraction.syntax.tree import pack_tree
from kpyramid.extraction.types import Extraction, Extractor, Titled
from kpyramid.keys import hash_bytes
from kpyramid.ontology.sandbox import end_process, list_environment, list_python, read_line
from kpyramid.pipeline.cache import Progress
from kpyramid.pipeline.fingerprints import fingerprint_function, key_row
from kpyramid.pipeline.stage import FUNCTIONS
from kpyramid.settings import Settings
from kpyramid.storage.identity import is_installed
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.results import RowCache

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


# Files are converted by a process of their own, which has limits: a file may be made to harm.

_MOST_SECONDS = 120.0
"""For one file; a book of a thousand pages takes some seconds."""
_MOST_MEMORY = 4 * 2**30
_PASSING = frozenset({"too_slow", "killed"})
"""Reasons that another try may not find."""


class Converter:
    """Child processes that convert files, as many as `workers`; one that dies is replaced."""

    def __init__(self, workers: int, seconds: float = _MOST_SECONDS) -> None:
        self._workers, self._seconds = workers, seconds

    def convert_all(self, files: Sequence[tuple[str, bytes]]) -> Iterator[Converted]:
        """Each file, given as its ending and its bytes, in their order."""
        free: SimpleQueue[_Child] = SimpleQueue()
        children = [_Child(self._seconds) for _ in range(min(self._workers, len(files)))]
        for child in children:
            free.put(child)

        def convert(file: tuple[str, bytes]) -> Converted:
            child = free.get()
            try:
                return child.convert(*file)
            finally:
                free.put(child)

        pool = ThreadPoolExecutor(max(len(children), 1))
        try:
            yield from pool.map(convert, files)
        finally:
            for child in children:
                child.close()
            pool.shutdown(cancel_futures=True)


class _Child:
    """One process, started by the first file."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None

    def convert(self, ending: str, data: bytes) -> Converted:
        if self._process is None:
            self._process = subprocess.Popen(  # noqa: S603  our own interpreter and our own code
                list_python("kpyramid.documents.conversion:serve", _MOST_MEMORY),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=list_environment(),
            )
        pipe, replies = self._process.stdin, self._process.stdout
        assert pipe is not None and replies is not None
        deadline = time.monotonic() + self._seconds
        try:
            head = json.dumps({"ending": ending, "size": len(data)})
            pipe.write(head.encode() + b"\n" + data)
            pipe.flush()
            return Converted(**json.loads(read_line(replies.fileno(), deadline)))
        except TimeoutError:
            self.close()
            detail = f"not converted in {self._seconds:g} seconds; the process was stopped"
            return Converted(reason="too_slow", detail=detail)
        except (EOFError, BrokenPipeError):
            self.close()
            detail = "the process that converted it died, most likely at its limit of "
            return Converted(reason="killed", detail=f"{detail}{_MOST_MEMORY >> 30} GiB")
        except BaseException:  # interrupted: the next reply would be of this file
            self.close()
            raise

    def close(self) -> None:
        if self._process is not None:
            end_process(self._process)
        self._process = None


def open_converter(
    warehouse: Warehouse,
    settings: Settings,
    workers: int,
    progress: Progress,
    *,
    read_only: bool = False,
) -> Convert | None:
    """Converts files, each once as long as the library is the same; None where it is missing."""
    if not is_installed(CONVERTER):
        return None
    (function,) = (f for f in FUNCTIONS if f.name == "converter")
    fingerprint = fingerprint_function(function, settings)
    cache = RowCache(warehouse, function.name, fingerprint)

    def convert(files: Sequence[SourceFile], most_bytes: int) -> dict[str, Converted]:
        keys = {
            file.path: key_row(fingerprint, [name_ending(file.path), hash_bytes(file.data)])
            for file in files
            if file.problem is None and len(file.data) <= most_bytes
        }
        known = {
            key: _CONVERTED.validate_json(row) for key, row in cache.load(keys.values()).items()
        }
        wanted = {
            key: (name_ending(file.path), file.data)
            for file in files
            if (key := keys.get(file.path)) is not None and key not in known
        }
        progress.expect(len(wanted))
        made: dict[str, Converted] = {}
        results = Converter(workers).convert_all(list(wanted.values())) if wanted else ()
        try:
            for key, one in zip(wanted, results, strict=True):
                made[key] = one
                progress.advance(1)
        finally:  # what is done is kept
            if not read_only:
                lasting = {k: one for k, one in made.items() if one.reason not in _PASSING}
                cache.store({key: _CONVERTED.dump_json(one) for key, one in lasting.items()})
        done = {**known, **made}
        return {file.path: done.get(keys.get(file.path, ""), Converted()) for file in files}

    return convert


_CONVERTED = TypeAdapter(Converted)
