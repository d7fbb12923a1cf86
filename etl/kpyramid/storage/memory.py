"""Memory of large tables and vectors: they are mapped from files, and freed memory is returned."""

import ctypes
import gc
import mmap
import os
import platform
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
"""Parameters of `mallopt`: sizes from which memory is mapped by itself, and returned."""
_PIECE = 1 << 20
_OBJECTS = 100_000
"""New objects after which garbage is looked for; by default 700."""


@cache
def return_freed_memory() -> None:
    """Makes this process return freed memory to the system, where its C library is glibc.

    Arrow's own allocator keeps freed memory, and so does glibc with pieces of up to 32 MB, into
    which nothing else fits: with a million facts a third of what condensation holds. Cycles of
    references are looked for rarely: rows that stay were walked over for a fifth of the time.
    """
    gc.set_threshold(_OBJECTS)
    pa.set_memory_pool(pa.system_memory_pool())
    if platform.libc_ver()[0] == "glibc":
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _PIECE)
        library.mallopt(_TRIM_THRESHOLD, _PIECE)


_LARGE = 16 << 20
"""Bytes from which tables and vectors are mapped from files: memory then holds the used part."""


def map_table(table: pa.Table, scratch: Path) -> pa.Table:
    """The same rows; those of a large table in an unnamed file of a folder, paged on demand.

    Raises:
        OSError: the disk is full.
    """
    if table.nbytes < _LARGE:
        return table
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=scratch) as file:
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        file.flush()
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    del table
    pa.default_memory_pool().release_unused()
    return pa.ipc.open_file(pa.BufferReader(pa.py_buffer(pages))).read_all()


def allocate_matrix(rows: int, size: int, scratch: Path | None) -> npt.NDArray[np.float32]:
    """A matrix for vectors, shape (rows, size); a large one in an unnamed file in `scratch`.

    Raises:
        OSError: the disk is full.
    """
    if scratch is None or rows * size * 4 < _LARGE:
        return np.empty((rows, size), dtype=np.float32)
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=scratch) as file:
        file.truncate(rows * size * 4)
        if sys.platform == "linux":  # else a full disk kills the process that writes
            os.posix_fallocate(file.fileno(), 0, rows * size * 4)
        return np.memmap(file, dtype=np.float32, mode="r+", shape=(rows, size)).view(np.ndarray)
