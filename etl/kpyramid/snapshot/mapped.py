"""Rows in Arrow files that are mapped into memory: writing them, and reading in place."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.errors import IntegrityError
from kpyramid.numerics.arrays import Mask

ADVICE = (
    "`kpyramid verify` says what else is; move the snapshot's folder away and build again, which "
    "costs little: the caches are whole"
)


def find_damage(path: Path, why: object) -> IntegrityError:
    """The error for a damaged file."""
    return IntegrityError(f"file {path} is damaged: {why}. {ADVICE}")


class MappedRows:
    """An Arrow file of a single batch, sorted by its first column.

    Columns are read in place; numbers are numpy arrays over the mapped file.
    """

    def __init__(self, path: Path) -> None:
        """Maps the file.

        Raises:
            IntegrityError: it is no such file; names it.
        """
        self.path = path
        try:
            file = pa.ipc.open_file(pa.memory_map(str(path)))
            if file.num_record_batches != 1:
                raise pa.ArrowInvalid(f"{file.num_record_batches} batches")
            self._batch: pa.RecordBatch = file.get_batch(0)
            self._batch.validate()
        except (pa.ArrowException, OSError) as e:
            raise find_damage(path, e) from e
        self._stood = path.stat()
        # None refers to these rows: a cycle would keep the file mapped until the next collection.
        self.column = column = cache(partial(_read_column, path, self._batch))
        self.numbers = cache(lambda name: _read_numbers(column(name)))
        self.lists = cache(lambda name: _read_lists(column(name)))
        self._strings = cache(lambda name: _read_strings(column(name)))

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def require_whole(self) -> None:
        """Checks that the mapped file was not truncated in place.

        Reading beyond its end would end the process. A file that was removed or replaced by a
        rename remains readable.

        Raises:
            IntegrityError: the file was truncated.
        """
        try:
            now = self.path.stat()
        except OSError:
            return
        if now.st_ino == self._stood.st_ino and now.st_size < self._stood.st_size:
            raise IntegrityError(
                f"index file {self.path} was written over while it was open: a published snapshot "
                f"is replaced by removal or rename only. {ADVICE}"
            )

    def has(self, name: str) -> bool:
        """Whether a column exists; columns added since are missing in files of the last format."""
        return name in self._batch.schema.names

    @cached_property
    def keys(self) -> "Keys":
        """The first column, by which rows are looked up."""
        return Keys(self.column(self._batch.schema.names[0]))

    def find(self, key: str) -> int | None:
        """The row of a key; None if it is absent."""
        return self.keys.find(key)

    def value(self, name: str, row: int) -> Any:
        """One value as a Python object."""
        strings = self._strings(name)
        return self.column(name)[row].as_py() if strings is None else strings[row]

    def read(self, row: int) -> dict[str, Any]:
        """All values of a row."""
        return {name: self.value(name, row) for name in self._batch.schema.names}

    def list_of(self, name: str, row: int) -> npt.NDArray[Any]:
        """The numbers of one row's list, in place."""
        starts, values = self.lists(name)
        return np.asarray(values[int(starts[row]) : int(starts[row + 1])])


def _read_column(path: Path, batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column.

    Raises:
        IntegrityError: the column is missing, or its offsets are damaged.
    """
    try:
        values = batch.column(name)
    except KeyError as e:
        raise IntegrityError(f"index file {path} has no column {name!r}") from e
    _check_offsets(path, values)
    return values


def _check_offsets(path: Path, values: pa.Array) -> None:
    """Checks offsets: a damaged one would let Arrow read beyond the file and end the process."""
    kind = values.type
    wide = pa.types.is_large_string(kind) or pa.types.is_large_list(kind)
    if not (wide or pa.types.is_string(kind) or pa.types.is_list(kind)):
        return
    raw = values.buffers()[1]
    if raw is None or not len(values):
        return
    offsets = np.frombuffer(raw, np.int64 if wide else np.int32, len(values) + 1)
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    data = None if listed else values.buffers()[2]
    held = len(values.values) if listed else 0 if data is None else data.size
    if offsets[0] < 0 or offsets[-1] > held or (np.diff(offsets) < 0).any():
        raise find_damage(path, "its offsets run backwards")
    if listed:
        _check_offsets(path, values.values)


def _read_numbers(values: pa.Array) -> npt.NDArray[Any]:
    """A column of numbers, or the numbers of a column of vectors as a matrix, in place."""
    width = values.type.list_size if pa.types.is_fixed_size_list(values.type) else None
    flat = _view_numbers(values.values if width else values)
    return flat.reshape(-1, width) if width else flat


def _read_lists(values: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """A column of lists of numbers: their offsets (one more than rows), and all values."""
    return _view_numbers(values.offsets), _view_numbers(values.values)


def _read_strings(values: pa.Array) -> "Strings | None":
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    return Strings(values) if is_text else None


def _view_numbers(values: pa.Array) -> npt.NDArray[Any]:
    """Numbers in place; `to_numpy` does the same and loads pandas where it is installed: .2 s."""
    return np.from_dlpack(values)


def to_mask(values: pa.Array) -> Mask:
    """Truth values, null is false."""
    return _view_numbers(pc.fill_null(values, False).cast(pa.uint8())).astype(np.bool_)


class Strings(Sequence[str]):
    """A column of strings, read in place: a tenth of the time that Arrow takes for a value."""

    def __init__(self, values: pa.Array) -> None:
        self._count = len(values)
        wide = pa.types.is_large_string(values.type)
        valid, offsets, data = values.buffers()
        self._valid = memoryview(valid) if valid and values.null_count else None
        self._offsets = memoryview(offsets or b"").cast("q" if wide else "i")
        self._data = memoryview(data or b"")

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, row: Any) -> Any:
        """The string of a row; None for null."""
        if not 0 <= row < self._count:
            raise IndexError(f"row {row} of {self._count}")
        if self._valid and not self._valid[row >> 3] >> (row & 7) & 1:
            return None
        return str(self.read(row), "utf-8")

    def read(self, row: int) -> bytes:
        """The bytes of a row."""
        return bytes(self._data[self._offsets[row] : self._offsets[row + 1]])


_MOST_CACHED = 10_000


class Keys(Strings):
    """A sorted column of strings with binary search in place; the last keys read are cached."""

    def __init__(self, values: pa.Array) -> None:
        super().__init__(values)
        self._places: dict[str, int] = {}

    def __getitem__(self, row: Any) -> Any:
        key = super().__getitem__(row)
        if len(self._places) >= _MOST_CACHED:
            self._places.clear()
        self._places[key] = int(row)
        return key

    def find(self, key: str) -> int | None:
        """The row of a key; None if it is absent."""
        if (known := self._places.get(key)) is not None:
            return known
        wanted = key.encode("utf-8", "surrogatepass")  # keys are in the order of their bytes
        row = bisect_left(range(len(self)), wanted, key=self.read)
        return row if row < len(self) and self[row] == key else None


# Writing of columns: the same bytes for the same values, on any machine.


def write_rows(path: Path, columns: Mapping[str, Any]) -> None:
    """Writes columns as one uncompressed batch, so that each is contiguous."""
    arrays = [settle(v if isinstance(v, pa.Array) else pa.array(v)) for v in columns.values()]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(columns))
    path.parent.mkdir(parents=True, exist_ok=True)
    options = pa.ipc.IpcWriteOptions(compression=None, use_threads=False)
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, batch.schema, options=options) as writer,
    ):
        writer.write_batch(batch)


def settle(values: pa.Array) -> pa.Array:
    """The same values in a canonical form of bytes.

    Arrow leaves the bytes behind a null, and the rest of a bitmap's last byte, undefined.
    """
    kind = values.type
    valid = to_mask(values.is_valid()) if values.null_count else None
    bitmap = None if valid is None else _pack(valid)
    if pa.types.is_struct(kind):
        held = (values.field(number) for number in range(kind.num_fields))
        if valid is not None:  # null where the struct is
            indices = pa.array(np.ma.masked_array(np.arange(len(values)), mask=~valid))
            held = (field.take(indices) for field in held)
        fields = [settle(field) for field in held]
        return pa.Array.from_buffers(kind, len(values), [bitmap], children=fields)
    if pa.types.is_fixed_size_list(kind):
        held = values.values.slice(values.offset * kind.list_size, len(values) * kind.list_size)
        return pa.Array.from_buffers(kind, len(values), [bitmap], children=[settle(held)])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        starts, first, last = _settle_offsets(values, wide=pa.types.is_large_list(kind))
        children = [settle(values.values.slice(first, last - first))]
        return pa.Array.from_buffers(kind, len(values), [bitmap, starts], children=children)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        values = values if bitmap is None else values.fill_null("")
        starts, first, last = _settle_offsets(values, wide=pa.types.is_large_string(kind))
        data = values.buffers()[2]
        data = pa.py_buffer(b"") if data is None else data.slice(first, last - first)
        return pa.Array.from_buffers(kind, len(values), [bitmap, starts, data])
    if pa.types.is_boolean(kind):
        flags = values.fill_null(False).to_numpy(zero_copy_only=False)
        return pa.Array.from_buffers(kind, len(values), [bitmap, _pack(flags)])
    flat = values if bitmap is None else values.fill_null(0)
    return pa.Array.from_buffers(kind, len(values), [bitmap, _copy(flat.to_numpy())])


def _settle_offsets(values: pa.Array, *, wide: bool) -> tuple[pa.Buffer, int, int]:
    """Offsets that begin at 0, and the first and last value that they cover."""
    size = np.dtype(np.int64 if wide else np.int32)
    raw = values.buffers()[1]
    if raw is None or not len(values):
        return _copy(np.zeros(len(values) + 1, size)), 0, 0
    offsets = np.frombuffer(raw, size, len(values) + 1, values.offset * size.itemsize)
    return _copy(offsets - offsets[0]), int(offsets[0]), int(offsets[-1])


def _pack(flags: Mask) -> pa.Buffer:
    return pa.py_buffer(np.packbits(flags, bitorder="little").tobytes())


def _copy(numbers: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(numbers))
