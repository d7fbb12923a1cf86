"""Columns as Arrow has them and as codes, so that millions of facts fit into memory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.numerics.arrays import Integers

BLOCK = 65_536
"""Words that are strings at a time while a column is iterated."""


class TextColumn(Sequence[str]):
    """Words in Arrow, row i holding `words[codes[i]]`; strings are made when they are read.

    Without codes row i holds `words[i]`; no row is null. As strings, ten million facts would not
    fit into memory. Words are best in one chunk: Arrow joins the chunks whenever some are taken.
    """

    def __init__(self, words: pa.Array | pa.ChunkedArray, codes: Integers | None = None) -> None:
        self.words = words
        self._codes = codes

    @property
    def codes(self) -> Integers:
        """The index of each row's word, shape (n,)."""
        return np.arange(len(self.words)) if self._codes is None else self._codes

    def __len__(self) -> int:
        return len(self.words) if self._codes is None else len(self._codes)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> "TextColumn": ...

    def __getitem__(self, index: int | slice) -> "str | TextColumn":
        if self._codes is None:
            return TextColumn(self.words[index]) if isinstance(index, slice) else self._read(index)
        codes = self._codes[index]
        return TextColumn(self.words, codes) if isinstance(index, slice) else self._read(int(codes))

    def _read(self, place: int) -> str:
        return str(self.words[place].as_py())

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), BLOCK):
            yield from self[start : start + BLOCK].read().to_pylist()

    def read(self) -> pa.Array | pa.ChunkedArray:
        """The rows as an Arrow array."""
        return self.words if self._codes is None else self.take(self._codes)

    def take(self, codes: Integers) -> pa.Array | pa.ChunkedArray:
        """The words with these codes, in their order."""
        return self.words.take(pa.array(codes))


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column: its sorted distinct words, and the index of each row's word, shape (n,)."""

    words: TextColumn
    codes: Integers


def encode(column: Sequence[str] | pa.Array) -> Coded:
    """The column as codes."""
    if isinstance(column, TextColumn):
        used = np.bincount(column.codes, minlength=len(column.words)) > 0
        coded = encode(column.take(np.flatnonzero(used)).cast(pa.large_string()))
        return Coded(coded.words, coded.codes[(np.cumsum(used) - 1)[column.codes]])
    texts = column if isinstance(column, pa.ChunkedArray) else pa.array(column, pa.large_string())
    distinct = texts.unique()
    distinct = distinct.take(pc.sort_indices(distinct))
    codes = np.asarray(pc.index_in(texts, value_set=distinct).cast(pa.int64()), dtype=np.int64)
    return Coded(TextColumn(distinct), codes)


def pick_rows(column: Sequence[str], rows: Integers) -> Sequence[str]:
    """Some rows of a column."""
    if isinstance(column, TextColumn):
        return TextColumn(column.words, column.codes[rows])
    return [column[row] for row in rows.tolist()]


def join_columns(left: Sequence[str], right: Sequence[str]) -> Sequence[str]:
    """The rows of one column, then those of the other."""
    if isinstance(left, TextColumn) and isinstance(right, TextColumn) and left.words is right.words:
        return TextColumn(left.words, np.concatenate([left.codes, right.codes]))
    return [*left, *right]


def group_rows(*columns: Integers) -> tuple[list[Integers], Integers, Integers]:
    """The distinct rows of columns of codes, sorted, the group of each row, and the groups' sizes.

    The distinct rows are a list of columns of length g; groups have shape (n,), sizes (g,).
    """
    first, *others = columns
    distinct, keys, counts = np.unique(first, return_inverse=True, return_counts=True)
    parts = [distinct]
    for column in others:  # each number is below n times a column's size: three of them pass 2^63
        size = int(column.max(initial=0)) + 1
        distinct, keys, counts = np.unique(
            keys * size + column, return_inverse=True, return_counts=True
        )
        parts = [*(part[distinct // size] for part in parts), distinct % size]
    return parts, keys.astype(np.int64), counts.astype(np.int64)
