"""The result cache: the tables that a stage made of given inputs, under the key of all of it.

A result is a folder that appears by rename and carries its marker, `result.json`, from the
start: a folder without a readable marker, or with bytes that differ from it, is no result.
"""

import json
import logging
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from kpyramid.contracts import Contract
from kpyramid.errors import IntegrityError
from kpyramid.keys import ID_DIGITS, hash_bytes
from kpyramid.warehouse.layout import (
    Warehouse,
    stage_folder,
    sync_folder,
    write_and_sync,
)
from kpyramid.warehouse.tables import encode_table, read_table

log = logging.getLogger(__name__)

_MARKER = "result.json"
REQUESTS = "requests.json"
"""The keys of the model's replies that a result was made of, if any; for collecting garbage."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """One stored table: where it is, the sha256 of its bytes, its number of rows."""

    path: Path
    sha256: str
    rows: int


@dataclass(frozen=True, slots=True)
class Result:
    """The stored tables of one stage, by name."""

    key: str
    tables: Mapping[str, TableFile]


def store_result(
    warehouse: Warehouse,
    stage: str,
    key: str,
    tables: Mapping[str, pa.Table],
    requests: Sequence[str] = (),
) -> Result:
    """Keeps a stage's tables under their key, and the keys of the replies they were made of.

    They are on disk when it returns.
    """
    target = _locate(warehouse, stage, key)
    with stage_folder(warehouse) as folder:
        marker = {}
        for name in sorted(tables):
            data = encode_table(tables[name])
            write_and_sync(folder / f"{name}.parquet", data)
            marker[name] = {"sha256": hash_bytes(data), "rows": tables[name].num_rows}
        text = json.dumps({"stage": stage, "key": key, "tables": marker}, indent=1)
        if requests:
            write_and_sync(folder / REQUESTS, json.dumps(list(requests)).encode())
        write_and_sync(folder / _MARKER, text.encode())
        sync_folder(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            folder.rename(target)
        except OSError:
            if find_result(warehouse, stage, key) is None:
                raise
        sync_folder(target.parent)
    result = find_result(warehouse, stage, key)
    if result is None:
        raise IntegrityError(f"result {target} vanished while it was written; run the build again")
    return result


def find_result(warehouse: Warehouse, stage: str, key: str) -> Result | None:
    """The stored result, or None; one that is damaged is removed and named in a warning."""
    folder = _locate(warehouse, stage, key)
    if not folder.exists():
        return None
    try:
        marker = json.loads((folder / _MARKER).read_bytes())
        tables = {
            name: TableFile(folder / f"{name}.parquet", entry["sha256"], entry["rows"])
            for name, entry in marker["tables"].items()
        }
        damaged = [
            str(file.path)
            for file in tables.values()
            if hash_bytes(file.path.read_bytes()) != file.sha256
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        damaged = [str(folder / _MARKER)]
        tables = {}
    if damaged:
        log.warning("stored result is damaged: %s; removed and computed again", ", ".join(damaged))
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return Result(key, tables)


def read_result(file: TableFile, contract: Contract) -> pa.Table:
    """One table of a result.

    Raises:
        IntegrityError: its bytes changed since it was found.
    """
    return read_table(file.path, contract, file.sha256)


def _locate(warehouse: Warehouse, stage: str, key: str) -> Path:
    return warehouse.cache / "results" / stage / key[:ID_DIGITS]
