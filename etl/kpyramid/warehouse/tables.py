"""Tables as Parquet files whose bytes are a function of their rows."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kpyramid.contracts import Contract
from kpyramid.errors import IntegrityError
from kpyramid.keys import hash_bytes


def encode_table(table: pa.Table) -> bytes:
    """The Parquet file of a table: zstd, a checksum per page, nothing that depends on the run."""
    buffer = io.BytesIO()
    pq.write_table(
        table,
        buffer,
        compression="zstd",
        write_page_checksum=True,
        row_group_size=131_072,
        data_page_version="2.0",
    )
    return buffer.getvalue()


def decode_table(data: bytes) -> pa.Table:
    """The table of a Parquet file, read on the calling thread.

    Arrow's parallel reader lets go of `data` on a thread of its own, possibly after it returned;
    when the interpreter ends in that moment, the process aborts with its work done.

    Raises:
        ArrowException, OSError: not a Parquet file, or a page differs from its checksum.
    """
    file = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    return file.read(use_threads=False)


def read_table(path: Path, contract: Contract, sha256: str | None = None) -> pa.Table:
    """The table in a file, checked against its hash (when known) and its contract.

    Raises:
        IntegrityError: the file is missing, damaged, or breaks the contract; names the file.
    """
    try:
        data = path.read_bytes()
    except OSError as e:
        raise IntegrityError(f"table file {path} cannot be read: {e.strerror}") from e
    if sha256 is not None and hash_bytes(data) != sha256:
        raise IntegrityError(f"table file {path} is damaged: its sha256 is not {sha256}")
    try:
        table = decode_table(data)
    except (pa.ArrowException, OSError) as e:
        raise IntegrityError(f"table file {path} is damaged: {e}") from e
    try:
        contract.check(table)
    except IntegrityError as e:
        raise IntegrityError(f"{path}: {e}") from e
    return table
