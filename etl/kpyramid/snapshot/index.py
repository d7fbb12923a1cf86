"""The index of a snapshot, opened without reading it: rows by key, nearness, reading order."""

import json
import logging
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import InputError, IntegrityError
from kpyramid.numerics.neighbours import load_faiss
from kpyramid.snapshot.mapped import ADVICE, META, SEARCHED, Keys, MappedRows, check_file
from kpyramid.snapshot.nearest import rank_exactly, rank_nearly
from kpyramid.snapshot.words import Mask, rank_words

log = logging.getLogger(__name__)

# Chunks in the order in which they are read, so that one is seen with what stands around it.

Rows = npt.NDArray[Any]

REACH = 2
"""Chunks on either side that count as a chunk's surroundings."""
OWN, AROUND, FIRST = 0.4, 0.4, 0.2
"""What a chunk, its surroundings, and the beginning of its document count for in its vector."""


class ReadingOrder:
    """The rows of the table of chunks by document and place."""

    def __init__(self, chunks: MappedRows) -> None:
        starts = chunks.numbers("start")
        self._lengths = (chunks.numbers("end") - starts).astype(np.float32)
        self.documents: Rows = chunks.numbers("document")
        self._matrix: Matrix = chunks.numbers("vector")
        self._rows = np.lexsort((starts, self.documents))
        self._places = np.empty(len(self._rows), np.int64)
        self._places[self._rows] = np.arange(len(self._rows))
        self._sorted = self.documents[self._rows]

    def place_vectors(self, rows: Rows, seen: Mask | None = None) -> Matrix:
        """The vectors of some chunks in their places, shape (rows, d): not of unit length.

        The sum of the chunk's own, of the mean over the chunks within `REACH`, and of that of its
        document's first, each of unit length and with its share, so that the product with a
        question is a mean of cosines. A chunk that is not `seen` has no part in the others'.
        """
        matrix = self._matrix
        own = np.asarray(matrix[rows])
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
        around = (shares[:, None, :] @ matrix[near])[:, 0]
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        placed = OWN * own + AROUND * around + FIRST * matrix[firsts]
        return np.asarray(placed, dtype=np.float32)


# The snapshot's folder `index/`, opened without reading it: rows by key, and by nearness.


class Index:
    """The files of one snapshot's index; each is mapped when it is first asked for."""

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self._folder = folder
        self._files: Mapping[str, Any] = manifest.get("files", {})
        self._rows: dict[str, MappedRows] = {}
        self._parts: dict[str, Part] = {}

    @cached_property
    def meta(self) -> Mapping[str, Any]:
        """What the build says of the index: how each table is searched, with which recall.

        Raises:
            IntegrityError: the file is damaged.
        """
        path = self.locate(META)
        try:
            found: dict[str, Any] = json.loads(path.read_bytes())
        except (OSError, ValueError) as e:
            raise IntegrityError(f"index file {path} is damaged: {e}. {ADVICE}") from e
        return found

    def locate(self, name: str) -> Path:
        """The path of a file of the snapshot, when it is as the manifest says.

        Raises:
            InputError: the snapshot was removed.
            IntegrityError: the file is missing or damaged; names it.
        """
        return check_file(self._folder, name, self._files)

    def rows(self, name: str) -> MappedRows:
        """The rows of `index/<name>.arrow`.

        Raises:
            InputError: the snapshot was removed.
            IntegrityError: the file is missing or damaged; names it.
        """
        if name not in self._rows:
            self._rows[name] = MappedRows(self.locate(f"index/{name}.arrow"))
        return self._rows[name]

    def require_whole(self) -> None:
        """Passes unless a file that is open was cut short; asked before each search, 30 us.

        Raises:
            IntegrityError: one was; names it.
        """
        for rows in list(self._rows.values()):
            rows.require_whole()

    def part(self, table: str) -> "Part":
        """A table to search in: `chunks` or `condensed`.

        Raises:
            InputError: the table is not searched.
            IntegrityError: a file is damaged.
        """
        if table not in SEARCHED:
            raise InputError(f"table {table!r} has no index; there are {', '.join(SEARCHED)}")
        if table not in self._parts:
            self._parts[table] = Part(self, table)
        return self._parts[table]

    @cached_property
    def reading_order(self) -> ReadingOrder:
        """The chunks in the order in which they are read."""
        return ReadingOrder(self.rows("chunks"))

    def mask_documents(self, allowed: Mask, table: str) -> Mask:
        """The rows of a table that at least one allowed document supports."""
        if table == "chunks":
            return np.asarray(allowed[self.rows("chunks").numbers("document")], dtype=np.bool_)
        starts, documents = self.rows(table).lists("documents")
        before = np.concatenate([[0], np.cumsum(allowed[documents])])
        return np.asarray(before[starts[1:]] > before[starts[:-1]], dtype=np.bool_)


_MOST_STEMS = 1_000
"""Stems whose place is kept: a question's walk asks a hundred times for a dozen."""


class Part:
    """One searched table. Rows have numbers, in the order of their keys."""

    def __init__(self, index: Index, table: str) -> None:
        self._index = index
        self._table = table
        self.rows = index.rows(table)
        self._stems: dict[str, int | None] = {}
        try:
            self._plan: Mapping[str, Any] = index.meta["tables"][table]
        except (KeyError, TypeError) as e:
            raise IntegrityError(f"{META} says nothing of table {table!r}") from e

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def keys(self) -> Keys:
        """The keys of the rows."""
        return self.rows.keys

    def text_of(self, row: int) -> str:
        """The words that a row was embedded by."""
        return str(self.rows.value("text", row))

    def locate(self, key: str) -> int:
        """The row of a key.

        Raises:
            KeyError: it is unknown.
        """
        row = self.rows.find(key)
        if row is None:
            raise KeyError(key)
        return row

    @property
    def matrix(self) -> Matrix:
        """All vectors, a row each, of unit length."""
        return self.rows.numbers("vector")

    def nearest(self, vector: Matrix, k: int, mask: Mask | None = None) -> list[tuple[int, float]]:
        """The k rows with the largest cosine, of those in the mask: row, cosine; best first.

        Exact up to the size that the settings of the build say, then nearly so: `Index.meta`
        has the recall that was measured.
        """
        if k < 1 or not len(self):
            return []
        if self._plan["search"] == "exact" or self._faiss is None:
            return rank_exactly(self.matrix, vector, k, mask)
        return rank_nearly(self._faiss, self._plan["probes"], self.matrix, vector, k, mask)

    @cached_property
    def _faiss(self) -> Any:
        """The clusters of the vectors; None without faiss, which the base install lacks."""
        try:
            faiss = load_faiss()
        except ModuleNotFoundError:
            log.warning(
                "all %d vectors of %s are compared at every question; to search their clusters: "
                "pip install 'kpyramid[large]'",
                len(self),
                self._table,
            )
            return None
        path = self._index.locate(f"index/{self._table}.faiss")
        try:
            found = faiss.read_index(str(path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        except RuntimeError as e:
            raise IntegrityError(f"index file {path} is damaged: {e}. {ADVICE}") from e
        if found.ntotal != len(self) or found.d != self.matrix.shape[1]:
            raise IntegrityError(f"index file {path} is not of the rows of {self._table}")
        # At each search 32 threads would read the lists ahead, which are mapped: 6 ms of 16.
        faiss.downcast_InvertedLists(found.invlists).prefetch_nthread = 0
        return found

    def words(self, text: str, k: int, mask: Mask | None = None) -> list[tuple[int, float]]:
        """The k rows, of those in the mask, with the best BM25 score: row, score; best first."""
        return rank_words(text, self, len(self), k, mask)

    def find(self, stem: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]] | None:
        """See `Postings.find`."""
        words = self._index.rows(f"{self._table}.words")
        at = self._stems.get(stem, -1)
        if at == -1:
            at = words.find(stem)
            if len(self._stems) >= _MOST_STEMS:
                self._stems.clear()
            self._stems[stem] = at
        return None if at is None else (words.list_of("rows", at), words.list_of("parts", at))
