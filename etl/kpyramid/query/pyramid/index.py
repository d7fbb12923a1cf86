"""The snapshot's folder `index/`, opened without reading it: rows by key, and by nearness."""

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import InputError, IntegrityError
from kpyramid.indexing.mapped import ADVICE, META, SEARCHED, Keys, MappedRows, check_file
from kpyramid.indexing.nearest import rank_exactly, rank_nearly
from kpyramid.indexing.words import Mask, rank_words
from kpyramid.numerics.neighbours import load_faiss
from kpyramid.query.pyramid.order import ReadingOrder


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
        if self._plan["search"] == "exact":
            return rank_exactly(self.matrix, vector, k, mask)
        return rank_nearly(self._faiss, self._plan["probes"], self.matrix, vector, k, mask)

    @cached_property
    def _faiss(self) -> Any:
        faiss = load_faiss()
        path = self._index.locate(f"index/{self._table}.faiss")
        try:
            found = faiss.read_index(str(path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        except RuntimeError as e:
            raise IntegrityError(f"index file {path} is damaged: {e}. {ADVICE}") from e
        if found.ntotal != len(self) or found.d != self.matrix.shape[1]:
            raise IntegrityError(f"index file {path} is not of the rows of {self._table}")
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
