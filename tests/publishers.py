"""Small snapshots and who publishes them: light to load, for many processes at once."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.layout import Warehouse, open_warehouse
from kpyramid.storage.leases import hold
from kpyramid.storage.publication import commit, write_snapshot
from kpyramid.storage.results import RowCache, store_result

START = datetime(2030, 1, 1, tzinfo=UTC)
"""Later than every file's time, so that only entries and records say how old something is."""
KEY = "0" * 64


def name_day(day: int) -> str:
    return (START + timedelta(days=day)).isoformat(timespec="seconds")


def publish(warehouse: Warehouse, letter: str, order: str, ref: str = "main", at: str = "") -> str:
    """What stage publish does with a small snapshot."""
    files: dict[str, bytes | Path] = {f"tables/{n}": letter.encode() * 5000 for n in range(3)}
    snapshot = write_snapshot(warehouse, files, {"letter": letter})
    with hold(warehouse, snapshot):
        commit(warehouse, ref, snapshot=snapshot, order=order, run="r", at=at or name_day(0))
    return snapshot


def work_at(location: str, area: str, letter: str) -> str:
    """What a process of another machine does: a row, a result, a snapshot."""
    os.environ["XDG_CACHE_HOME"] = area
    warehouse = open_warehouse(location)
    RowCache(warehouse, "extractor", KEY).store({"same": b"row" * 9999})
    store_result(warehouse, "chunk", KEY, {"rejects": load_contracts()["rejects"].build([])})
    return publish(warehouse, letter, "1")
