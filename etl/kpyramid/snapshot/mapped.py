"""Arrow files with the same bytes for the same values, mapped into memory."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import hash_bytes

# Rows in a file that is mapped into memory, not read: opening costs the same at any size.

FORMAT = 2
"""Version of a snapshot's layout; with 2 came the index."""
META = "index/meta.json"
STATEMENTS = "index/statements.nt"
"""The ontology layer without its provenance."""
SEARCHED = ("chunks", "condensed")
"""Tables that are searched by vectors and by words."""
ADVICE = (
    "`kpyramid verify` says what else is; move the snapshot's folder away and build again, which "
    "costs little: the caches are whole"
)
MOST_HASHED = 2**24
"""Bytes up to which a file's sha256 is checked when it is opened: 20 ms. Of longer files the
length and the form are; `kpyramid verify` hashes them all."""


class MappedRows:
    """One Arrow file of one batch, sorted by its first column.

    Columns are read in place; numbers come as numpy arrays that look into the file.
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
            raise IntegrityError(f"index file {path} is damaged: {e}. {ADVICE}") from e
        self._stood = path.stat()
        self._columns: dict[str, pa.Array] = {}
        self._numbers: dict[str, npt.NDArray[Any]] = {}
        self._lists: dict[str, tuple[npt.NDArray[Any], npt.NDArray[Any]]] = {}

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def require_whole(self) -> None:
        """Passes unless the mapped file was cut short where it stands.

        Reading beyond its end would end the process. A file that was removed or replaced by a
        rename is read on as it was.

        Raises:
            IntegrityError: it was.
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

    def column(self, name: str) -> pa.Array:
        """One column.

        Raises:
            IntegrityError: there is none, or where its values begin and end is damaged.
        """
        if name not in self._columns:
            try:
                values = self._batch.column(name)
            except KeyError as e:
                raise IntegrityError(f"index file {self.path} has no column {name!r}") from e
            self._check_offsets(values)
            self._columns[name] = values
        return self._columns[name]

    def _check_offsets(self, values: pa.Array) -> None:
        """A damaged offset would let Arrow read beyond the file, which ends the process."""
        kind = values.type
        wide = pa.types.is_large_string(kind) or pa.types.is_large_list(kind)
        if not (wide or pa.types.is_string(kind) or pa.types.is_list(kind)):
            return
        raw = values.buffers()[1]
        if raw is None or not len(values):
            return
        offsets = np.frombuffer(raw, np.int64 if wide else np.int32, len(values) + 1)
        listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)
        held = len(values.values) if listed else _count_bytes(values.buffers()[2])
        if offsets[0] < 0 or offsets[-1] > held or (np.diff(offsets) < 0).any():
            raise IntegrityError(
                f"index file {self.path} is damaged: its offsets run backwards. {ADVICE}"
            )
        if listed:
            self._check_offsets(values.values)

    @cached_property
    def keys(self) -> "Keys":
        """The first column, by which rows are found."""
        return Keys(self.column(self._batch.schema.names[0]))

    def find(self, key: str) -> int | None:
        """The row of a key; None when there is none."""
        return self.keys.find(key)

    def value(self, name: str, row: int) -> Any:
        """One value as a Python object."""
        return self.column(name)[row].as_py()

    def read(self, row: int) -> dict[str, Any]:
        """All values of a row."""
        return {name: self.value(name, row) for name in self._batch.schema.names}

    def numbers(self, name: str) -> npt.NDArray[Any]:
        """A column of numbers, or the numbers of a column of vectors as a matrix, in place."""
        if name not in self._numbers:
            values = self.column(name)
            width = values.type.list_size if pa.types.is_fixed_size_list(values.type) else None
            flat = (values.values if width else values).to_numpy()
            self._numbers[name] = flat.reshape(-1, width) if width else flat
        return self._numbers[name]

    def lists(self, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """A column of lists of numbers: where each begins (one more than rows), and all values."""
        if name not in self._lists:
            values = self.column(name)
            self._lists[name] = values.offsets.to_numpy(), values.values.to_numpy()
        return self._lists[name]

    def list_of(self, name: str, row: int) -> npt.NDArray[Any]:
        """The numbers of one row's list, in place."""
        starts, values = self.lists(name)
        return np.asarray(values[int(starts[row]) : int(starts[row + 1])])


_MOST_KEPT = 10_000


class Keys(Sequence[str]):
    """A sorted column of strings, found by halving over its bytes in place.

    The last that were read are kept: a search gives keys, whose rows are then asked for.
    """

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        wide = pa.types.is_large_string(values.type)
        _, offsets, data = values.buffers()
        self._offsets = memoryview(offsets or b"").cast("q" if wide else "i")
        self._data = memoryview(data or b"")
        self._places: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, row: Any) -> Any:
        key = self._values[row].as_py()
        if len(self._places) >= _MOST_KEPT:
            self._places.clear()
        self._places[key] = row
        return key

    def find(self, key: str) -> int | None:
        """The place of a key; None when there is none."""
        if (known := self._places.get(key)) is not None:
            return known
        at = self.locate(key)
        return at if at < len(self) and self[at] == key else None

    def locate(self, key: str) -> int:
        """Where a key stands or would stand; keys are in the order of their bytes."""
        return self._locate(key.encode("utf-8", "surrogatepass"))

    def starting(self, start: str) -> range:
        """The places of all keys that begin so."""
        first = start.encode("utf-8", "surrogatepass")
        after = first[:-1] + bytes([first[-1] + 1]) if first else b"\xff"
        return range(self._locate(first), self._locate(after))

    def _locate(self, key: bytes) -> int:
        offsets, data = self._offsets, self._data
        low, high = 0, len(self._values)
        while low < high:
            middle = (low + high) // 2
            if bytes(data[offsets[middle] : offsets[middle + 1]]) < key:
                low = middle + 1
            else:
                high = middle
        return low


def check_file(folder: Path, name: str, listed: Mapping[str, Any]) -> Path:
    """The path of a snapshot's file, when it is as its manifest says.

    Raises:
        InputError: the snapshot was removed.
        IntegrityError: the file is missing, has another length, or other bytes.
    """
    path = folder / name
    entry = listed.get(name)
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= MOST_HASHED else None
    except OSError as e:
        if not folder.is_dir():
            raise InputError(
                f"snapshot {folder.name} is no longer in {folder.parent}; it was removed while "
                "it was open. Open the ref again"
            ) from e
        raise IntegrityError(f"index file {path} cannot be read: {e.strerror}. {ADVICE}") from e
    if entry is None:
        raise IntegrityError(f"index file {path} is not listed in its manifest")
    if size != entry["bytes"]:
        raise IntegrityError(
            f"index file {path} is damaged: it has {size} bytes, its manifest says "
            f"{entry['bytes']}. {ADVICE}"
        )
    if data is not None and hash_bytes(data) != entry["sha256"]:
        raise IntegrityError(
            f"index file {path} is damaged: its sha256 is not {entry['sha256']}. {ADVICE}"
        )
    return path


def _count_bytes(buffer: pa.Buffer | None) -> int:
    return 0 if buffer is None else int(buffer.size)


# Arrow files whose bytes are a function of their values, to be mapped.


def write_rows(path: Path, columns: Mapping[str, Any]) -> None:
    """Writes columns as one uncompressed batch, so that each is one run of bytes."""
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
    """The same values in the one form of their bytes.

    Arrow leaves what stands in memory behind a null, and in a bitmap's last byte, to chance.
    """
    kind = values.type
    valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    bitmap = None if valid.all() else _pack(valid)
    if pa.types.is_struct(kind):
        fields = [_settle_field(values.field(at), valid) for at in range(kind.num_fields)]
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
        told = values.fill_null(False).to_numpy(zero_copy_only=False)
        return pa.Array.from_buffers(kind, len(values), [bitmap, _pack(told)])
    flat = values if bitmap is None else values.fill_null(0)
    return pa.Array.from_buffers(kind, len(values), [bitmap, _copy(flat.to_numpy())])


def _settle_field(values: pa.Array, valid: npt.NDArray[np.bool_]) -> pa.Array:
    """A struct's field, null where the struct is."""
    return settle(values if valid.all() else values.take(pa.array(_choose(valid))))


def _choose(valid: npt.NDArray[np.bool_]) -> Any:
    """Places to take: each its own, none behind a null."""
    return np.ma.masked_array(np.arange(len(valid)), mask=~valid)


def _settle_offsets(values: pa.Array, *, wide: bool) -> tuple[pa.Buffer, int, int]:
    """Offsets that begin at 0, and the part of the values that they are of."""
    size = np.dtype(np.int64 if wide else np.int32)
    raw = values.buffers()[1]
    if raw is None or not len(values):
        return _copy(np.zeros(len(values) + 1, size)), 0, 0
    offsets = np.frombuffer(raw, size, len(values) + 1, values.offset * size.itemsize)
    return _copy(offsets - offsets[0]), int(offsets[0]), int(offsets[-1])


def _pack(told: npt.NDArray[np.bool_]) -> pa.Buffer:
    return pa.py_buffer(np.packbits(told, bitorder="little").tobytes())


def _copy(numbers: npt.NDArray[Any]) -> pa.Buffer:
    return pa.py_buffer(np.ascontiguousarray(numbers))
