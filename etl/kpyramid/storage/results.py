"""Stored results: the output of a stage, or of a function of one row, under its key."""

import contextlib
import io
import json
import logging
import os
import shutil
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from kpyramid.errors import IntegrityError
from kpyramid.keys import ID_DIGITS, hash_bytes, hash_file
from kpyramid.storage.contracts import (
    Contract,
    decode_table,
    hash_columns,
    load_contracts,
    read_table,
    write_table,
)
from kpyramid.storage.erasure import TOMBSTONES
from kpyramid.storage.layout import Warehouse, stage_folder
from kpyramid.storage.memory import map_table
from kpyramid.storage.writing import sync_folder, write_and_sync, write_durably

if TYPE_CHECKING:
    from kpyramid.storage.bucket import BucketStore

# The row cache: results of expensive pure functions, by content key, written once.
#
# Rows are kept in segments, small Parquet files named by the hash of their bytes. A segment
# appears by rename, so a killed writer leaves no torn one; a damaged one is told by its name.

log = logging.getLogger(__name__)

_SCHEMA = pa.schema(
    [pa.field("key", pa.string(), nullable=False), pa.field("payload", pa.binary(), nullable=False)]
)


_MOST_RECENT = 256 << 20
"""Bytes of segments that stay in memory: a night's stages read the same ones many times."""


class _Recent:
    """Segments in order of their last use, each with its file's modification time."""

    def __init__(self) -> None:
        self.segments: OrderedDict[Path, tuple[int, int, pa.Table]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def find(self, path: Path, written: int) -> pa.Table | None:
        """The segment in memory, unless its file changed since."""
        with self._lock:
            time, _, segment = self.segments.get(path, (None, 0, None))
            if time != written:
                return None
            self.segments.move_to_end(path)
            return segment

    def hold(self, path: Path, written: int, segment: pa.Table) -> None:
        """Adds a segment, and drops the least recent ones beyond the limit."""
        size = segment.nbytes
        with self._lock:
            self._bytes += size - self.segments.pop(path, (0, 0, None))[1]
            self.segments[path] = written, size, segment
            while self._bytes > _MOST_RECENT:
                self._bytes -= self.segments.popitem(last=False)[1][1]


_recent = _Recent()

FORMER = "rows.former"
"""Folder of the row cache while a document is erased."""


class RowCache:
    """Payloads by key, for one function with one fingerprint (all ingredients but the row)."""

    def __init__(self, warehouse: Warehouse, function: str, fingerprint: str) -> None:
        place = Path(function, fingerprint[:ID_DIGITS])
        self.folder: Path = warehouse.cache / "rows" / place
        self._former = warehouse.cache / FORMER / place
        self._name = self.folder.relative_to(warehouse.root).as_posix()
        self._bucket = warehouse.bucket
        self._is_shared = False
        self._segments: dict[Path, pa.Array] = {}

    def load(self, keys: Collection[str]) -> dict[str, bytes]:
        """The stored payloads of these keys."""
        return {key: payload for segment in self.walk(keys) for key, payload in segment.items()}

    def walk(self, keys: Collection[str]) -> Iterator[dict[str, bytes]]:
        """The stored payloads of these keys, each once, a segment at a time."""
        left = set(keys)
        yield from self._search(self.folder, left)
        if self._former.is_dir():  # a document is being erased: what is used is kept
            for former in self._search(self._former, left):
                self.store(former)
                yield former

    def _search(self, folder: Path, left: set[str]) -> Iterator[dict[str, bytes]]:
        """The payloads in a folder's segments of the keys in `left`; they are removed there."""
        if not left:
            return
        if self._bucket and not self._is_shared:
            self._share(self._bucket)
            self._is_shared = True
        for path in sorted(folder.glob("*.parquet")):
            keys = self._segments.get(path)
            if keys is not None and left.isdisjoint(_list_keys(keys)):
                continue
            segment = self._read_segment(path)
            if segment is None:
                continue
            # Its keys stay, however recent it is: they say whether to open it again.
            keys = self._segments[path] = segment["key"].combine_chunks()
            rows = {key: row for row, key in enumerate(_list_keys(keys)) if key in left}
            payloads = segment["payload"].take(pa.array(rows.values(), pa.int64())).to_pylist()
            left.difference_update(rows)
            yield dict(zip(rows, payloads, strict=True))

    def store(self, rows: Mapping[str, bytes]) -> None:
        """Stores these rows; they are on disk, and in the bucket, when it returns."""
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
            if self._bucket:
                self._bucket.replace(f"{self._name}/{path.name}", data)

    def _share(self, bucket: "BucketStore") -> None:
        """Downloads the segments of other machines, and uploads those of this one.

        After an erasure the latter are deleted instead: they may hold the document.
        """
        there = {blob.name.rpartition("/")[2]: blob for blob in bucket.list(self._name)}
        here = {path.name: path for path in self.folder.glob("*.parquet")}
        self.folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # gc took it: it is computed again
            missing = [blob for name, blob in there.items() if name not in here]
            bucket.download(missing, self._name, self.folder)
        is_clean = not any(bucket.list(TOMBSTONES))
        for name in sorted(here.keys() - there.keys()):
            if is_clean:
                bucket.replace(f"{self._name}/{name}", here[name].read_bytes())
            else:
                here[name].unlink(missing_ok=True)

    def _read_segment(self, path: Path) -> pa.Table | None:
        try:
            written = path.stat().st_mtime_ns
            if (known := _recent.find(path, written)) is not None:
                return known
            data = path.read_bytes()
        except FileNotFoundError:
            return None  # removed by another process since it was listed
        if hash_bytes(data)[:ID_DIGITS] != path.stem:
            log.warning("cache segment %s is damaged; removed, its rows are computed again", path)
            path.unlink(missing_ok=True)
            if self._bucket:  # the next process gets it again, unless it is damaged there
                data = self._bucket.read(f"{self._name}/{path.name}") or b""
                if hash_bytes(data)[:ID_DIGITS] != path.stem:
                    self._bucket.delete(f"{self._name}/{path.name}")
            return None
        segment = decode_table(data)
        _recent.hold(path, written, segment)
        return segment


def _list_keys(keys: pa.Array) -> list[str]:
    """The keys of a segment; a set of Python looks them up faster than Arrow a long array."""
    listed: list[str] = keys.to_numpy(zero_copy_only=False).tolist()
    return listed


# The result cache: the tables that a stage made of given inputs, under the key of all of it.
#
# A result is a folder that appears by rename and carries its marker, `result.json`, from the
# start: a folder without a readable marker, or with bytes that differ from it, is no result.

MARKER = "result.json"
"""Written with the result, and touched at each use: its time is that of the last use."""
REQUESTS = "requests.json"
"""The keys of the model's replies that a result rests on, if any; for erasure."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """One stored table: its path, the sha256 of its bytes, its number of rows.

    `content`: the hash of all columns that stages read, so without labels.
    """

    path: Path
    sha256: str
    rows: int
    content: str


@dataclass(frozen=True, slots=True)
class Result:
    """The stored tables of one stage, by name."""

    key: str
    tables: Mapping[str, TableFile]


def store_result(
    warehouse: Warehouse,
    stage: str,
    key: str,
    tables: Mapping[str, pa.Table | Iterable[pa.Table]],
    requests: Sequence[str] = (),
) -> Result:
    """Stores a stage's tables under their key, with the keys of the replies they rest on.

    A table may come in sorted blocks, which are written one by one. All are on disk when it
    returns.
    """
    target = _locate(warehouse, stage, key)
    with stage_folder(warehouse) as folder:
        marker = {}
        for name in sorted(tables):
            path = folder / f"{name}.parquet"
            rows = write_table(tables[name], path)
            sync_folder(path)
            marker[name] = {"sha256": hash_file(path), "rows": rows}
            if labels := load_contracts()[name].labels if name in load_contracts() else []:
                marker[name]["content"] = hash_columns(path, labels)
        text = json.dumps({"stage": stage, "key": key, "tables": marker}, indent=1)
        if requests:
            write_and_sync(folder / REQUESTS, json.dumps(list(requests)).encode())
        write_and_sync(folder / MARKER, text.encode())
        sync_folder(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.rename(target)
        except OSError:
            if find_result(warehouse, stage, key) is None:
                raise
        sync_folder(target.parent)
    result = find_result(warehouse, stage, key)  # which puts it into a bucket, too
    if result is None:
        raise IntegrityError(f"result {target} vanished while it was written; run the build again")
    return result


def find_result(warehouse: Warehouse, stage: str, key: str) -> Result | None:
    """The stored result, or None; a damaged one is removed, with a warning.

    For a bucket it is this machine's copy, downloaded if there is none; and a result that the
    bucket lacks is uploaded, so that other machines find it.
    """
    folder = _locate(warehouse, stage, key)
    result = _read_folder(folder, key)
    if warehouse.bucket is None:
        return result
    name = folder.relative_to(warehouse.root).as_posix()
    if result is None:
        warehouse.bucket.complete.discard(name)
        if not _fetch(warehouse, warehouse.bucket, name):
            return None
        result = _read_folder(folder, key)
        if result is None:  # it is damaged there
            warehouse.bucket.delete(f"{name}/{MARKER}")
            return None
    if name not in warehouse.bucket.complete:
        warehouse.bucket.upload(folder, name, last=MARKER)
        warehouse.bucket.complete.add(name)
    return result


def _fetch(warehouse: Warehouse, bucket: "BucketStore", name: str) -> bool:
    """Downloads a result from a bucket; returns whether there is one."""
    blobs = [*bucket.list(name)]
    if not any(blob.name == f"{name}/{MARKER}" for blob in blobs):
        return False
    with stage_folder(warehouse) as folder, contextlib.suppress(FileNotFoundError):
        bucket.download(blobs, name, folder)
        (warehouse.root / name).parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):  # another process was first
            folder.rename(warehouse.root / name)
    return True


def _read_folder(folder: Path, key: str) -> Result | None:
    if not folder.exists():
        return None
    with contextlib.suppress(OSError):  # before it is read: gc puts back what was touched
        os.utime(folder / MARKER)
    try:
        marker = json.loads((folder / MARKER).read_bytes())
        tables = {
            name: TableFile(
                *(folder / f"{name}.parquet", entry["sha256"], entry["rows"]),
                entry.get("content", entry["sha256"]),
            )
            for name, entry in marker["tables"].items()
        }
        damaged = [str(file.path) for file in tables.values() if _hash(file.path) != file.sha256]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        damaged = [str(folder / MARKER)]
        tables = {}
    if damaged:
        log.warning("stored result is damaged: %s; removed and computed again", ", ".join(damaged))
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return Result(key, tables)


def _hash(path: Path) -> str:
    """The sha256 of a file as it was last written, read once: stages look for a result again."""
    state = path.stat()
    return _hash_once(path, state.st_mtime_ns, state.st_ino)


@lru_cache(maxsize=512)
def _hash_once(path: Path, _written: int, _file: int) -> str:
    return hash_file(path)


def read_result(file: TableFile, contract: Contract, scratch: Path | None = None) -> pa.Table:
    """One table of a result; a large one is mapped from a file in `scratch`, see `map_table`.

    Raises:
        IntegrityError: its bytes changed since it was found.
    """
    if scratch is None:
        return read_table(file.path, contract, file.sha256)
    return map_table(read_table(file.path, contract, file.sha256), scratch)  # held by no name


def _locate(warehouse: Warehouse, stage: str, key: str) -> Path:
    return warehouse.cache / "results" / stage / key[:ID_DIGITS]
