"""Rows in a file that is mapped into memory, not read: opening costs the same at any size."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import hash_bytes

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


class Keys(Sequence[str]):
    """A sorted column of strings, found by halving over its bytes in place."""

    def __init__(self, values: pa.Array) -> None:
        self._values = values
        wide = pa.types.is_large_string(values.type)
        _, offsets, data = values.buffers()
        self._offsets = memoryview(offsets or b"").cast("q" if wide else "i")
        self._data = memoryview(data or b"")

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, row: Any) -> Any:
        return self._values[row].as_py()

    def find(self, key: str) -> int | None:
        """The place of a key; None when there is none."""
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
