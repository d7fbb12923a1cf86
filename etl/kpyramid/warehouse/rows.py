"""The row cache: results of expensive pure functions, by content key, written once.

Rows are kept in segments, small Parquet files named by the hash of their bytes. A segment
appears by rename, so a killed writer leaves no torn one; a damaged one is told by its name.
"""

import io
import logging
from collections.abc import Collection, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kpyramid.keys import ID_DIGITS, hash_bytes
from kpyramid.warehouse.layout import Warehouse, write_durably
from kpyramid.warehouse.tables import decode_table

log = logging.getLogger(__name__)

_SCHEMA = pa.schema(
    [pa.field("key", pa.string(), nullable=False), pa.field("payload", pa.binary(), nullable=False)]
)


class RowCache:
    """Payloads by key, for one function with one fingerprint (all ingredients but the row)."""

    def __init__(self, warehouse: Warehouse, function: str, fingerprint: str) -> None:
        self.folder: Path = warehouse.cache / "rows" / function / fingerprint[:ID_DIGITS]
        self._segments: dict[Path, pa.Array] = {}

    def load(self, keys: Collection[str]) -> dict[str, bytes]:
        """The payloads that are stored for some of these keys."""
        if not keys:
            return {}
        wanted = pa.array(sorted(set(keys)), pa.string())
        found: dict[str, bytes] = {}
        for path in sorted(self.folder.glob("*.parquet")):
            if (
                path in self._segments
                and not pc.any(pc.is_in(self._segments[path], wanted)).as_py()
            ):
                continue
            segment = self._read_segment(path)
            if segment is None:
                continue
            # Only the keys are kept: which segment to open again, not what it holds.
            self._segments[path] = segment["key"].combine_chunks()
            mine = segment.filter(pc.is_in(segment["key"], wanted))
            found.update(zip(mine["key"].to_pylist(), mine["payload"].to_pylist(), strict=True))
        return found

    def store(self, rows: Mapping[str, bytes]) -> None:
        """Keeps these rows; they are on disk when it returns."""
        if not rows:
            return
        keys = sorted(rows)
        table = pa.table({"key": keys, "payload": [rows[key] for key in keys]}, schema=_SCHEMA)
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        data = buffer.getvalue()
        path = self.folder / f"{hash_bytes(data)[:ID_DIGITS]}.parquet"
        if not path.exists():
            write_durably(path, data)

    def _read_segment(self, path: Path) -> pa.Table | None:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None  # removed by another process since it was listed
        if hash_bytes(data)[:ID_DIGITS] != path.stem:
            log.warning("cache segment %s is damaged; removed, its rows are computed again", path)
            path.unlink(missing_ok=True)
            return None
        return decode_table(data)
