"""The index of a run's tables: a published snapshot's, when it is of the same, else made anew."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kpyramid.contracts import load_contracts
from kpyramid.errors import PyramidError
from kpyramid.indexing.building import READS, build_index, key_index
from kpyramid.keys import JsonValue, hash_file
from kpyramid.settings import IndexSettings
from kpyramid.warehouse.layout import Warehouse, stage_folder
from kpyramid.warehouse.results import TableFile, read_result
from kpyramid.warehouse.snapshots import list_folders, read_manifest

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PreparedIndex:
    """The files of an index by their names in the snapshot, and the key of all that shapes it."""

    key: str
    files: Mapping[str, Path]
    is_new: bool


@contextmanager
def prepare_index(
    warehouse: Warehouse,
    tables: Mapping[str, TableFile],
    instances_nt: str,
    settings: IndexSettings,
) -> Iterator[PreparedIndex]:
    """The index of some tables; its files are there as long as the `with` lasts.

    Snapshots are their own cache: an index is copied from one whose tables were the same, so that
    nothing is stored twice, and made when there is none.

    Raises:
        IntegrityError: a table is damaged, or tables and vectors do not fit together.
    """
    key = key_index({name: file.sha256 for name, file in tables.items()}, instances_nt, settings)
    made = _find_made(warehouse, key)
    if made is not None:
        yield PreparedIndex(key, made, is_new=False)
        return
    contracts = load_contracts()
    read = {name: read_result(tables[name], contracts[name]) for name in READS}
    with stage_folder(warehouse) as folder:
        files = build_index(folder, read, tables["vectors"].path, instances_nt, settings)
        del read
        yield PreparedIndex(key, files, is_new=True)


def _find_made(warehouse: Warehouse, key: str) -> dict[str, Path] | None:
    """The index files of a snapshot with this key, if they are whole."""
    for folder in list_folders(warehouse):
        try:
            manifest = read_manifest(folder)
        except PyramidError:  # damaged: `verify` says so
            continue
        index, files = manifest.get("index"), manifest.get("files")
        if not isinstance(index, dict) or index.get("key") != key or not isinstance(files, dict):
            continue
        listed: dict[str, Any] = {n: e for n, e in files.items() if n.startswith("index/")}
        damaged = [name for name in listed if not _is_whole(folder / name, listed[name])]
        if not damaged:
            return {name: folder / name for name in listed}
        log.warning("%s is damaged: %s; the index is made anew", folder, ", ".join(damaged))
    return None


def _is_whole(path: Path, entry: Mapping[str, JsonValue]) -> bool:
    try:
        return hash_file(path) == entry["sha256"]
    except OSError:
        return False
