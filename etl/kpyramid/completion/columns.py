"""Columns of words as numbers, so that a million facts are grouped without a loop over them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Places: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Coded:
    """A column: its distinct words, sorted, and the place among them of each row's, shape (n,)."""

    words: list[str]
    codes: Places


def encode(column: Sequence[str]) -> Coded:
    """The column as codes."""
    texts = pa.array(column, pa.large_string())
    distinct = texts.unique()
    distinct = distinct.take(pc.sort_indices(distinct))
    codes = pc.index_in(texts, value_set=distinct).cast(pa.int64())
    return Coded(distinct.to_pylist(), np.array(codes, dtype=np.int64))


def group_rows(*columns: Places) -> tuple[list[Places], Places, Places]:
    """The distinct rows of columns of codes, sorted, the group of each row, and the groups' sizes.

    The first is a list of columns again, of equal length g; groups have shape (n,), sizes (g,).
    """
    keys = np.zeros(len(columns[0]), dtype=np.int64)
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    for column, size in zip(columns, sizes, strict=True):
        keys = keys * size + column
    distinct, groups, counts = np.unique(keys, return_inverse=True, return_counts=True)
    parts: list[Places] = []
    for size in reversed(sizes):
        parts.append(distinct % size)
        distinct = distinct // size
    return parts[::-1], groups.astype(np.int64), counts.astype(np.int64)


def sum_by(groups: Places, values: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """The sum of the values in each of `count` groups."""
    return np.bincount(groups, weights=values, minlength=count).astype(np.float64)
