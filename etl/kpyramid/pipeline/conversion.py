"""Files converted by processes of their own, which have limits: a file may be made to harm."""

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from pydantic import TypeAdapter

from kpyramid.documents.conversion import CONVERTER, Convert, Converted
from kpyramid.documents.corpus import SourceFile
from kpyramid.documents.formats import name_ending
from kpyramid.keys import hash_bytes
from kpyramid.ontology.sandbox import end_process, list_environment, list_python, read_line
from kpyramid.pipeline.cache import Progress
from kpyramid.pipeline.fingerprints import fingerprint_function, key_row
from kpyramid.pipeline.stage import find_function
from kpyramid.settings import Settings
from kpyramid.storage.identity import is_installed
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.results import RowCache

_CONVERTED = TypeAdapter(Converted)
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
    function = find_function("converter")
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
