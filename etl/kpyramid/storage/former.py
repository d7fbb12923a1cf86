"""The ref's snapshot at the begin of a run, whose names of entities and relations are reused."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from kpyramid.errors import ConflictError, InputError, IntegrityError, SettingsError
from kpyramid.keys import hash_file
from kpyramid.storage.contracts import open_table
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.erasure import load_erased
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import RefEntry
from kpyramid.storage.runs import Run, open_run
from kpyramid.storage.snapshots import read_manifest, require_format

_TABLES = ("condensed", "relations", "triples")
_SCHEMA = "ontology/schema.ttl"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Former:
    """A snapshot's id and folder, and the run that made it, if known."""

    snapshot: str
    folder: Path
    run: Run | None

    def read(self, table: str, columns: Sequence[str]) -> pa.Table:
        """Some columns of a table."""
        file = open_table(self.folder / "tables" / f"{table}.parquet")
        return file.read(columns=[*columns], use_threads=False)

    def read_schema(self) -> str:
        """The ontology's schema as Turtle."""
        return (self.folder / _SCHEMA).read_text("utf-8")


def find_former(warehouse: Warehouse, head: RefEntry | None) -> Former | None:
    """The snapshot of an entry if its names may be reused: whole, and nothing erased since.

    A name may disclose erased text, and stem from an earlier snapshot: all are new then.
    """
    if head is None:
        return None
    try:
        folder = locate_snapshot(warehouse, head.snapshot)
        manifest: Any = read_manifest(folder)
        require_format(manifest, head.snapshot)
        for name in (*(f"tables/{table}.parquet" for table in _TABLES), _SCHEMA):
            if hash_file(folder / name) != manifest["files"][name]["sha256"]:
                raise IntegrityError(f"{folder / name} is damaged")
    except (ConflictError, InputError, IntegrityError, OSError) as e:
        log.warning("names of entities and relations are given anew: %s", e)
        return None
    run = None
    with suppress(InputError, IntegrityError, SettingsError):  # gc took it, or of another release
        run = open_run(warehouse, head.run)
    if manifest.get("erased") != load_erased(warehouse).digest:
        return None
    return Former(head.snapshot, folder, run)
