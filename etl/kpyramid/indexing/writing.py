"""Arrow files whose bytes are a function of their columns, to be mapped."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa


def write_rows(path: Path, columns: Mapping[str, Any]) -> None:
    """Writes columns as one uncompressed batch, so that each is one run of bytes."""
    arrays = [pa.array(v) if not isinstance(v, pa.Array) else v for v in columns.values()]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(columns))
    path.parent.mkdir(parents=True, exist_ok=True)
    options = pa.ipc.IpcWriteOptions(compression=None, use_threads=False)
    with (
        pa.OSFile(str(path), "wb") as sink,
        pa.ipc.new_file(sink, batch.schema, options=options) as writer,
    ):
        writer.write_batch(batch)
