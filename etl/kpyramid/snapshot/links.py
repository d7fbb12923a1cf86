"""References over whole columns: rows of one table to rows of another."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.errors import IntegrityError
from kpyramid.numerics.arrays import Integers
from kpyramid.storage.contracts import combine_column, find_rows


class Links:
    """Pairs of a row and a row of another table, in the order of the first, then as they came."""

    def __init__(self, owners: Integers, targets: Integers) -> None:
        self.owners = owners
        self.targets = targets

    @classmethod
    def from_column(cls, values: pa.ChunkedArray, keys: pa.ChunkedArray | pa.Array) -> "Links":
        """What a column of keys, or of lists of keys or places, refers to; nulls to nothing.

        Raises:
            IntegrityError: a value is no key.
        """
        flat, owners = unfold(values)
        if pa.types.is_struct(flat.type):
            flat = pc.struct_field(flat, "chunk_id")
        places = find_places(flat, keys)
        return cls(owners[places >= 0], places[places >= 0])

    def follow(self, others: "Links", rows: int) -> "Links":
        """From these owners to the targets of their targets; `rows` is how many there are."""
        starts = np.concatenate([[0], np.cumsum(np.bincount(others.owners, minlength=rows))])
        sizes = starts[self.targets + 1] - starts[self.targets]
        owners = np.repeat(self.owners, sizes)
        first = np.repeat(starts[self.targets] - (np.cumsum(sizes) - sizes), sizes)
        return Links(owners, others.targets[first + np.arange(len(owners))])

    def take(self, of_target: Integers) -> "Links":
        """The same with each target replaced by its value in a column."""
        return Links(self.owners, of_target[self.targets])

    def unite(self, other: "Links") -> "Links":
        """The pairs of both."""
        owners = np.concatenate([self.owners, other.owners])
        order = np.argsort(owners, kind="stable")
        return Links(owners[order], np.concatenate([self.targets, other.targets])[order])

    def distinct(self) -> "Links":
        """Each pair once, targets ascending."""
        span = int(self.targets.max(initial=0)) + 1
        owners, targets = np.divmod(np.unique(self.owners * span + self.targets), span)
        return Links(owners, targets)

    def turn(self) -> "Links":
        """From the targets to the owners, each ascending."""
        order = np.lexsort((self.owners, self.targets))
        return Links(self.targets[order], self.owners[order])

    def count(self, rows: int) -> Integers:
        """How many targets each row has."""
        return np.bincount(self.owners, minlength=rows)

    def to_lists(self, rows: int) -> pa.Array:
        """A column of lists of row numbers."""
        return list_numbers(self.targets, self.count(rows), pa.int32())


def list_numbers(values: npt.NDArray[np.generic], sizes: Integers, kind: pa.DataType) -> pa.Array:
    """A column of lists of so many numbers each."""
    starts = np.concatenate([[0], np.cumsum(sizes)])
    flat = pa.array(values, kind)
    if starts[-1] < 2**31:
        return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), flat)
    return pa.LargeListArray.from_arrays(pa.array(starts, pa.int64()), flat)


def unfold(values: pa.ChunkedArray) -> tuple[pa.Array, Integers]:
    """The values of a column, those of lists one by one, and the row that each stands in."""
    column = combine_column(values)
    if not pa.types.is_list(column.type):
        return column, np.arange(len(column))
    owners = pc.list_parent_indices(column).to_numpy(zero_copy_only=False)
    return pc.list_flatten(column), owners.astype(np.int64)


def find_places(values: pa.ChunkedArray | pa.Array, keys: pa.ChunkedArray | pa.Array) -> Integers:
    """For each value the row that has it as its key; -1 for null.

    Raises:
        IntegrityError: a value is no key.
    """
    places = find_rows(values, keys)
    lost = values.filter(pa.array(places < 0)).drop_null()
    if len(lost):
        raise IntegrityError(f"a row refers to {lost[0].as_py()!r}, which does not exist")
    return places
