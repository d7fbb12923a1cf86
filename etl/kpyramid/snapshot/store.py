"""The files of one snapshot, whole: manifest, tables, texts and index, mapped into memory.

Scopes are not applied here. `View` is the only reader of a store, except for the ablations, which
make another snapshot of it and show nothing to anybody.
"""

import json
import logging
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import JsonValue, hash_file
from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.snapshot import search
from kpyramid.snapshot.mapped import ADVICE, MappedRows, find_damage
from kpyramid.storage.snapshots import identify_folder, list_table, read_manifest, require_format

log = logging.getLogger(__name__)

SCHEMA = "ontology/schema.ttl"
INSTANCES = "ontology/instances.nt"
SEED = "ontology/seed.ttl"
"""The schema with which a snapshot's ontology started."""
GRAPH = "graph.ttl"
META = "index/meta.json"
VECTORS = "vectors"
"""The table that a snapshot stores in parts."""
SEARCHED = ("chunks", "condensed", "entities")
"""Tables that are searched by vectors and by words."""
MOST_HASHED = 2**24
"""Most bytes of a file whose sha256 is checked when it is opened: 20 ms. For longer files only
length and form are checked; `kpyramid verify` hashes all."""


def name_part(part: int) -> str:
    """The file of a part of the index's vectors."""
    return f"index/vectors/{part:02}.arrow"


# Chunks in reading order, so that each can be placed in its surroundings.

Rows = npt.NDArray[Any]

REACH = 2
"""Chunks on either side that are a chunk's surroundings."""
SELF, AROUND, FIRST = 0.4, 0.4, 0.2
"""Weights of a chunk, its surroundings, and its document's first chunk in its placed vector."""


class ReadingOrder:
    """The rows of the table of chunks by document and position."""

    def __init__(self, chunks: MappedRows, matrix: search.Vectors) -> None:
        starts = chunks.numbers("start")
        self._lengths = (chunks.numbers("end") - starts).astype(np.float32)
        self.documents: Rows = chunks.numbers("document")
        self._matrix = matrix
        self._rows = np.lexsort((starts, self.documents))
        self._places = np.empty(len(self._rows), np.int64)
        self._places[self._rows] = np.arange(len(self._rows))
        self._sorted = self.documents[self._rows]

    def list_chunks(self, document: int) -> Rows:
        """The rows of a document's chunks, in order."""
        first, last = np.searchsorted(self._sorted, [document, document + 1])
        return self._rows[first:last]

    def place_vectors(self, rows: Rows, seen: Mask | None = None) -> Matrix:
        """The vectors of some chunks with their surroundings, shape (rows, d): not of unit length.

        The weighted sum of the chunk's vector, of the mean over the chunks within `REACH`, and of
        its document's first chunk, each of unit length, so that the product with a question is a
        mean of cosines. A chunk that is not `seen` does not enter the vectors of others.
        """
        places = self._places[rows, None] + np.arange(-REACH, REACH + 1)
        inside = (places >= 0) & (places < len(self._rows))
        near = self._rows[np.where(inside, places, 0)]
        inside &= self.documents[near] == self.documents[rows, None]
        firsts = self._rows[np.searchsorted(self._sorted, self.documents[rows])]
        if seen is not None:
            inside &= seen[near]
            firsts = np.where(seen[firsts], firsts, rows)
        shares = np.where(inside, self._lengths[near], 0)
        shares[:, REACH] = np.maximum(shares[:, REACH], 1)
        wanted = np.column_stack([rows, firsts, np.where(inside, near, rows[:, None])])
        read, inverse = np.unique(wanted, return_inverse=True)  # each once: a page each
        vectors = np.asarray(self._matrix[read])[inverse.reshape(wanted.shape)]
        around = (shares[:, None, :] @ vectors[:, 2:])[:, 0]
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        placed = SELF * vectors[:, 0] + AROUND * around + FIRST * vectors[:, 1]
        return np.asarray(placed, dtype=np.float32)


# The folder of a snapshot.


class Store:
    """Manifest, tables, index and texts of a snapshot's folder; each is read when needed.

    Files of the index are mapped, not read.

    Raises:
        InputError: the folder is no snapshot, or of a format that this release does not read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.id = identify_folder(folder)
        self.manifest: dict[str, JsonValue] = read_manifest(folder)
        require_format(self.manifest, self.id)
        files: Any = self.manifest.get("files", {})
        self._files: Mapping[str, Any] = files
        self._tables: dict[str, pa.Table] = {}
        self._rows: dict[str, MappedRows] = {}
        self._parts: WeakValueDictionary[str, Part] = WeakValueDictionary()  # views hold them

    def table(self, name: str) -> pa.Table:
        """One table, read whole.

        Raises:
            InputError: there is no table of that name, or the snapshot is gone.
            IntegrityError: the file is damaged.
        """
        # Loaded here: questions are answered from the index, without reading whole tables.
        from kpyramid.storage.contracts import load_contracts, read_table

        if name not in load_contracts():
            raise InputError(f"no table {name!r}; there are {', '.join(load_contracts())}")
        if name not in self._tables:
            self._require_folder()
            contract = load_contracts()[name]
            parts = [read_table(path, contract) for path in list_table(self.folder, name)]
            self._tables[name] = parts[0] if len(parts) == 1 else contract.unite(parts)
        return self._tables[name]

    def read_text(self, name: str) -> str:
        """A text file of the snapshot.

        Raises:
            InputError: the snapshot is gone.
            IntegrityError: the file cannot be read.
        """
        self._require_folder()
        try:
            return (self.folder / name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as e:
            raise IntegrityError(f"snapshot {self.id}: {name} cannot be read: {e}") from e

    def _require_folder(self) -> None:
        if not self.folder.is_dir():
            gone = f"snapshot {self.id} is no longer in {self.folder.parent}"
            raise InputError(f"{gone}; it was removed while it was open. Open the ref again")

    def locate(self, name: str, *, most_hashed: int | None = MOST_HASHED) -> Path:
        """The path of a file, checked against the manifest; a long file is not hashed.

        Raises:
            InputError: the snapshot was removed.
            IntegrityError: the file is missing, has another length, or other bytes.
        """
        path, entry = self.folder / name, self._files.get(name)
        try:
            size = path.stat().st_size
            is_hashed = entry is not None and (most_hashed is None or size <= most_hashed)
            sha256 = hash_file(path) if is_hashed else None
        except OSError as e:
            self._require_folder()
            raise IntegrityError(f"file {path} cannot be read: {e.strerror}. {ADVICE}") from e
        if entry is None:
            raise IntegrityError(f"file {path} is not listed in its manifest")
        if size != entry["bytes"]:
            fault = f"it has {size} bytes, its manifest says {entry['bytes']}"
            raise find_damage(path, fault)
        if sha256 is not None and sha256 != entry["sha256"]:
            raise find_damage(path, f"its sha256 is not {entry['sha256']}")
        return path

    def warm(self) -> int:
        """Reads all files of the index into memory; returns their number of bytes.

        Raises:
            InputError: the snapshot was removed.
            IntegrityError: a file is missing or has another length.
        """
        size = 0
        for name in sorted(name for name in self._files if name.startswith("index/")):
            with self.locate(name, most_hashed=0).open("rb", buffering=0) as file:
                while part := file.read(MOST_HASHED):
                    size += len(part)
        return size

    @cached_property
    def meta(self) -> Mapping[str, Any]:
        """The build's metadata of the index: how each table is searched, with which recall.

        Raises:
            IntegrityError: the file is damaged.
        """
        path = self.locate(META)
        try:
            return dict(json.loads(path.read_bytes()))
        except (OSError, ValueError) as e:
            raise find_damage(path, e) from e

    def rows(self, name: str) -> MappedRows:
        """The rows of `index/<name>.arrow`.

        Raises:
            InputError: the snapshot was removed.
            IntegrityError: the file is missing or damaged; names it.
        """
        if name not in self._rows:
            self._rows[name] = MappedRows(self.locate(f"index/{name}.arrow"))
        return self._rows[name]

    @cached_property
    def vectors(self) -> list[MappedRows]:
        """The parts of the searched tables' vectors; within a part, table after table.

        Raises:
            IntegrityError: a part is missing or damaged; names it.
        """
        names = [name_part(part) for part in range(self._sizes.shape[1])]
        whole = sum(self._files[name]["bytes"] for name in names if name in self._files)
        most = MOST_HASHED if whole <= MOST_HASHED else 0
        parts = [MappedRows(self.locate(name, most_hashed=most)) for name in names]
        for rows, size in zip(parts, self._sizes.sum(axis=0).tolist(), strict=True):
            if len(rows) != size:
                raise IntegrityError(f"index file {rows.path} has not the rows that {META} says")
        return parts

    @cached_property
    def _sizes(self) -> Integers:
        """The number of rows of each searched table in each part, shape (tables, parts)."""
        try:
            return np.array([self.meta["parts"][name] for name in SEARCHED], np.int64)
        except (KeyError, TypeError, ValueError) as e:
            raise IntegrityError(f"{META} does not say which vectors are in which part") from e

    def map_vectors(self, table: str) -> list[Matrix]:
        """The vectors of a searched table, part by part."""
        number = SEARCHED.index(table)
        ends = np.cumsum(self._sizes, axis=0)[number].tolist()
        pairs = zip(self.vectors, ends, self._sizes[number].tolist(), strict=True)
        return [rows.numbers("vector")[end - size : end] for rows, end, size in pairs]

    def require_whole(self) -> None:
        """Checks that no open file was truncated, once per question.

        Raises:
            IntegrityError: a file was truncated; names it.
        """
        if search.one_thread.is_new(self):
            for rows in [*self._rows.values(), *self.__dict__.get("vectors", ())]:
                rows.require_whole()

    def part(self, table: str) -> "Part":
        """A table to search in: `chunks`, `condensed` or `entities`.

        Raises:
            InputError: the table is not searched.
            IntegrityError: a file is damaged.
        """
        if table not in SEARCHED:
            raise InputError(f"table {table!r} has no index; there are {', '.join(SEARCHED)}")
        self.require_whole()
        return self._parts.get(table) or self._parts.setdefault(table, Part(self, table))

    @cached_property
    def reading_order(self) -> ReadingOrder:
        """The chunks in reading order."""
        return ReadingOrder(self.rows("chunks"), self.part("chunks").matrix)


class Part:
    """A searched table; its rows are numbered in the order of their keys."""

    def __init__(self, store: Store, table: str) -> None:
        self._store = store
        self._table = table
        self.rows = store.rows(table)
        try:
            self._plan: Mapping[str, Any] = store.meta["tables"][table]
        except (KeyError, TypeError) as e:
            raise IntegrityError(f"{META} says nothing of table {table!r}") from e

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def _words(self) -> MappedRows:
        return self._store.rows(f"{self._table}.words")

    @cached_property
    def _locate(self) -> Callable[[str], int | None]:
        return lru_cache(1_000)(self._words.find)  # a walk asks a hundred times for a dozen stems

    @property
    def matrix(self) -> search.Vectors:
        """All vectors, a row each, of unit length.

        Raises:
            IntegrityError: an open file was truncated; names it.
        """
        self._store.require_whole()
        return self._placed

    @cached_property
    def _placed(self) -> search.PlacedVectors:
        return search.PlacedVectors(
            self._store.map_vectors(self._table), self.rows.numbers("place")
        )

    def nearest(self, vector: Matrix, k: int, mask: Mask | None = None) -> list[tuple[int, float]]:
        """The k rows with the largest cosine, of those in the mask: row, cosine; best first.

        Exact up to a size in the settings of the build, beyond it approximate: `Store.meta` has the
        measured recall.
        """
        if k < 1 or not len(self):
            return []
        if self._plan["search"] == "exact" or self._faiss is None:
            return search.rank_exactly(self.matrix, vector, k, mask)
        from kpyramid.snapshot.clusters import rank_nearly  # only large tables have any

        return rank_nearly(self._faiss, self._plan["probes"], self.matrix, vector, k, mask)

    @cached_property
    def _faiss(self) -> Any:
        """The clusters of the vectors; None without faiss, which the base install lacks."""
        try:
            faiss = search.load_faiss()
        except ModuleNotFoundError:
            log.warning(
                "all %d vectors of %s are compared at every question; to search their clusters: "
                "pip install 'kpyramid[large]'",
                len(self),
                self._table,
            )
            return None
        path = self._store.locate(f"index/{self._table}.faiss")
        try:
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        except RuntimeError as e:
            raise find_damage(path, e) from e
        if index.ntotal != len(self) or index.d != self.matrix.shape[1]:
            raise IntegrityError(f"index file {path} is not of the rows of {self._table}")
        # In each search 32 threads would prefetch the mapped lists: 6 ms of 16.
        faiss.downcast_InvertedLists(index.invlists).prefetch_nthread = 0
        return index

    def find(self, stem: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]] | None:
        """See `Postings.find`."""
        words, row = self._words, self._locate(stem)
        return None if row is None else (words.list_of("rows", row), words.list_of("parts", row))
