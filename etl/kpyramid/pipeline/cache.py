"""Expensive functions behind a cache: a stored result is neither computed nor bought again.

A result is a pure function of one text, so neither the number of workers nor the order nor an
earlier crash can change it.
"""

import json
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, TypeVar

import numpy as np
from pydantic import TypeAdapter

from kpyramid.documents.conversion import CONVERTER, Convert, Converted
from kpyramid.documents.corpus import SourceFile
from kpyramid.documents.formats import name_ending
from kpyramid.embeddings.opening import open_embedder
from kpyramid.embeddings.port import Matrix
from kpyramid.embeddings.served import Connect, cut_batches, open_served
from kpyramid.errors import IntegrityError
from kpyramid.extraction.types import Titled
from kpyramid.keys import hash_bytes
from kpyramid.llm.caller import KeyLocks
from kpyramid.ontology.sandbox import Child
from kpyramid.pipeline.fingerprints import fingerprint_function, identify_resource, key_row
from kpyramid.pipeline.stage import Progress, UnknownError, find_function
from kpyramid.pipeline.workers import pack_vector
from kpyramid.settings import Settings
from kpyramid.storage.former import Former
from kpyramid.storage.identity import is_installed
from kpyramid.storage.items import do_at_once
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.memory import allocate_matrix
from kpyramid.storage.results import RowCache

_FLUSH_SECONDS = 2.0
"""Most seconds of work that a crash loses; shorter intervals would make many small segments."""

_BLOCK = 1 << 19
"""Texts whose keys are in memory at a time: 100 MB."""

_TOGETHER = 64
"""Texts that a thread embeds at a time: enough of one length to go through the model together."""

_HELD = 1 << 15
"""Vectors that stay in memory, 50 MB of 384 numbers: a stage asks for the same ones again."""

_SIZE = "\x00size"
"""Key of an entry that holds as many zeros as the vectors of a served model have numbers."""

FileKey = tuple[str, str]
"""The suffix of a file's name, and the sha256 of its bytes."""
Row = TypeVar("Row", str, Titled, FileKey)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Context:
    """Where functions keep their caches, and the resources that compute missing results.

    `read_only`: computed results stay in memory, for plans. `former`: the snapshot whose names are
    taken over.
    """

    warehouse: Warehouse
    settings: Settings
    workers: int = 1
    progress: Progress = field(default_factory=Progress)
    read_only: bool = False
    former: Former | None = None


@dataclass(eq=False)
class CachedFunction(Generic[Row, T]):
    """A function on texts, texts with titles or files, whose results are stored each by itself.

    `computed` counts the misses. A result that is not `lasting` is not stored: a retry may differ.
    """

    name: str
    context: Context
    compute: Callable[[Sequence[Row]], Iterator[bytes]]
    decode: Callable[[bytes], T]
    lasting: Callable[[T], bool] = lambda _: True
    computed: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.fingerprint = fingerprint_function(find_function(self.name), self.context.settings)
        self._cache = RowCache(self.context.warehouse, self.name, self.fingerprint)
        self._guard = threading.Lock()
        self._held: dict[str, bytes] | None = {} if self.context.read_only else None

    def __call__(self, texts: Sequence[Row]) -> list[T]:
        """The results, in the order of the texts."""
        results = dict(self.stream(texts))
        return [results[text] for text in texts]

    def stream(self, texts: Iterable[Row]) -> Iterator[tuple[Row, T]]:
        """Pairs of distinct text and result: stored ones first, then computed ones.

        Memory holds one segment of the cache at a time, not all results.
        """
        left = {key_row(self.fingerprint, text): text for text in texts}
        for batch in self._walk(left.keys()):
            for key, payload in batch.items():
                yield left.pop(key), self.decode(payload)
        keys = {text: key for key, text in left.items()}
        missing = sorted(keys, key=lambda row: (len(row), row))  # of one length: embedded at once
        self.context.progress.expect(len(missing))
        fresh: dict[str, bytes] = {}
        flushed = time.monotonic()
        results = self.compute(missing)
        try:
            for text, payload in zip(missing, results, strict=True):
                result = self.decode(payload)
                if self.lasting(result):
                    fresh[keys[text]] = payload
                self.computed += 1
                self.context.progress.advance(1)
                if self._held is None and time.monotonic() - flushed > _FLUSH_SECONDS:
                    self._cache.store(fresh)
                    fresh.clear()
                    flushed = time.monotonic()
                yield text, result
        finally:  # what is done is kept, whatever ended the loop
            if self._held is None:
                self._cache.store(fresh)
            else:
                self._held.update(fresh)
            if isinstance(results, Generator):
                results.close()  # and its worker processes, when the loop was interrupted

    def list_missing(self, texts: Iterable[Row]) -> list[Row]:
        """The distinct texts without a stored result."""
        keys = {text: key_row(self.fingerprint, text) for text in texts}
        known = {key for batch in self._walk(keys.values()) for key in batch}
        return sorted(text for text, key in keys.items() if key not in known)

    def _walk(self, keys: Collection[str]) -> Iterator[dict[str, bytes]]:
        """The stored results by key, in batches, each once."""
        held = self._held or {}
        known = {key: held[key] for key in keys if key in held}
        yield known
        yield from self._cache.walk(set(keys) - known.keys())

    def store(self, results: Mapping[Row, bytes], *, is_computed: bool = True) -> None:
        """Stores results by text that were computed elsewhere; safe for several threads."""
        self._cache.store({key_row(self.fingerprint, text): r for text, r in results.items()})
        with self._guard:
            self.computed += len(results) if is_computed else 0

    @property
    def folder(self) -> Path:
        """The folder of the results."""
        return self._cache.folder


@dataclass(eq=False)
class CachedEmbedder:
    """The embedding model behind its cache; it is opened at the first new text.

    Vectors of a served model are stored reply by reply, so that a crash loses only what is in
    flight, and one process of a machine at a time asks for them, so that none is bought twice.
    """

    context: Context
    connect: Connect
    stage: str = "embed"
    _: KW_ONLY
    stored_only: bool = False

    def __post_init__(self) -> None:
        self._settings = self.context.settings
        identity = identify_resource("embedding", self._settings)
        self.name, self._files = identity.name, identity.files
        self._size: int | None = None
        self._held: dict[str, Matrix] = {}
        self._locks = KeyLocks(self.context.warehouse.cache / "llm" / "held")
        self.function = CachedFunction("embedder", self.context, self._compute, _decode_vector)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`.

        Raises:
            EndpointError, BudgetError: a served model cannot be asked; what came is kept.
            UnknownError: a vector is not stored, and none may be made.
        """
        if self.stored_only and self.function.list_missing(texts):
            raise UnknownError
        if self._settings.embed.is_served and self.function.list_missing(texts):
            with self._locks.hold(self.function.fingerprint):
                self._buy(self.function.list_missing(texts))
        matrix = np.zeros((0, 0), dtype=np.float32)
        scratch = None if self.context.read_only else self.context.warehouse.staging
        for start in range(0, len(texts), _BLOCK):
            places: dict[str, list[int]] = {}
            for place, text in enumerate(texts[start : start + _BLOCK], start):
                places.setdefault(text, []).append(place)
            for text, vector in self._stream(places):
                self._size = self._size or len(vector)
                if len(vector) != self._size:
                    sizes = sorted([len(vector), self._size])
                    raise IntegrityError(
                        f"vectors of {self.name!r} have {' and '.join(map(str, sizes))} numbers: "
                        "the endpoint served another model under that name before. Remove "
                        f"{self.function.folder} and build again"
                    )
                if not len(matrix):
                    matrix = allocate_matrix(len(texts), self._size, scratch)
                for place in places[text]:
                    matrix[place] = vector
        return matrix

    def _stream(self, texts: Collection[str]) -> Iterator[tuple[str, Matrix]]:
        """Pairs of text and vector, as of the function; some stay in memory."""
        yield from ((text, self._held[text]) for text in texts if text in self._held)
        for text, vector in self.function.stream([t for t in texts if t not in self._held]):
            yield text, vector
            if len(self._held) < _HELD:
                self._held[text] = vector

    def _compute(self, texts: Sequence[str]) -> Iterator[bytes]:
        if not texts:
            return
        if self._settings.embed.is_served:
            raise IntegrityError(
                f"vectors of {self.name!r} that were stored in {self.function.folder} are gone: "
                "another program removes them. Run the same command again without it"
            )
        embed = self._settings.embed
        model = open_embedder(self.name, self._files, embed.provider, embed.instruction)
        with ThreadPoolExecutor(self.context.workers) as pool:
            parts = [texts[start : start + _TOGETHER] for start in range(0, len(texts), _TOGETHER)]
            for start in range(0, len(parts), self.context.workers):
                for vectors in pool.map(model.embed, parts[start : start + self.context.workers]):
                    yield from map(pack_vector, vectors)

    def _read_size(self) -> int | None:
        """The length of the endpoint's vectors as an earlier run stored it; None without any."""
        if self.function.list_missing([_SIZE]):
            return None
        ((_, zeros),) = self.function.stream([_SIZE])
        return len(zeros)

    def _buy(self, texts: Sequence[str]) -> None:
        """Asks the endpoint for all missing vectors, and stores them."""
        self._size = self._size or self._read_size()
        model = open_served(
            self._settings.embed, self._settings.llm, self.connect, self.stage, self._size
        )

        def keep(vectors: Mapping[str, Matrix]) -> None:
            if vectors and not self._size:
                self._size = len(next(iter(vectors.values())))
                zeros = np.zeros(self._size, np.float32)
                self.function.store({_SIZE: pack_vector(zeros)}, is_computed=False)
            self.function.store({text: pack_vector(v) for text, v in vectors.items()})
            self.context.progress.advance(len(vectors))

        self.context.progress.expect(len(texts))
        # What is in flight is paid for: it is waited for and stored, whatever becomes of others.
        do_at_once(
            lambda batch: model.embed_batch(batch, keep),
            cut_batches(texts),
            self._settings.llm.concurrency,
        )


def _decode_vector(payload: bytes) -> Matrix:
    return np.frombuffer(payload, dtype="<f4")


# Files converted by processes of their own, which have limits: a file may be made to harm.

_CONVERTED = TypeAdapter(Converted)
_MOST_SECONDS = 120.0
"""Limit for one file; a book of a thousand pages takes some seconds."""
_MOST_MEMORY = 4 * 2**30


def convert_all(
    files: Sequence[tuple[str, bytes]], workers: int, seconds: float = _MOST_SECONDS
) -> Iterator[Converted]:
    """The conversions of files, given as suffix and bytes, in their order.

    As many child processes convert as there are `workers`; one that dies is replaced.
    """
    free: SimpleQueue[Child] = SimpleQueue()
    serve = "kpyramid.documents.conversion:serve", _MOST_MEMORY
    children = [Child(*serve) for _ in range(min(workers, len(files)))]
    for child in children:
        free.put(child)

    def convert(file: tuple[str, bytes]) -> Converted:
        child = free.get()
        try:
            return _convert(child, seconds, *file)
        finally:
            free.put(child)

    pool = ThreadPoolExecutor(max(len(children), 1))
    try:
        yield from pool.map(convert, files)
    finally:
        for child in children:
            child.stop()
        pool.shutdown(cancel_futures=True)


def _convert(child: Child, seconds: float, ending: str, data: bytes) -> Converted:
    head = json.dumps({"ending": ending, "size": len(data)}).encode()
    try:
        return _CONVERTED.validate_json(child.ask(head + b"\n" + data, seconds))
    except TimeoutError:
        detail = f"not converted in {seconds:g} seconds; the process was stopped"
        return Converted(reason="too_slow", detail=detail)
    except EOFError:
        detail = "the process that converted it died, most likely at its limit of "
        return Converted(reason="killed", detail=f"{detail}{_MOST_MEMORY >> 30} GiB")


def open_converter(context: Context) -> Convert | None:
    """A cached converter of files; None where the library is missing."""
    if not is_installed(CONVERTER):
        return None

    def convert(files: Sequence[SourceFile], most_bytes: int) -> dict[str, Converted]:
        keys = {
            file.path: (name_ending(file.path), hash_bytes(file.data))
            for file in files
            if file.problem is None and len(file.data) <= most_bytes
        }
        data = {keys[file.path]: file.data for file in files if file.path in keys}

        def compute(missing: Sequence[FileKey]) -> Iterator[bytes]:
            wanted = [(ending, data[ending, digest]) for ending, digest in missing]
            for converted in convert_all(wanted, context.workers) if wanted else ():
                yield _CONVERTED.dump_json(converted)

        decode = _CONVERTED.validate_json
        function = CachedFunction("converter", context, compute, decode, _is_lasting)
        done = dict(function.stream(data))
        return {f.path: done[keys[f.path]] if f.path in keys else Converted() for f in files}

    return convert


def _is_lasting(converted: Converted) -> bool:
    """Whether a retry would give the same result."""
    return converted.reason not in ("too_slow", "killed")
