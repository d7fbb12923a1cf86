"""Snapshots: immutable folders named by the hash of their manifest."""

import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path

from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import JsonValue, hash_file
from kpyramid.storage.layout import Warehouse

MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
SNAPSHOT_DIGITS = 16
SNAPSHOT_ID = re.compile(f"[0-9a-f]{{{SNAPSHOT_DIGITS}}}")

FORMAT = 11
"""Version of a snapshot's layout: 2 the index, 3 what qualifies facts, 4 entities searched,
5 standard relations, 6 their ends, 7 statements, 8 a folder that describes itself, facts in more
detail, 9 vectors in parts, 10 denials, 11 modality and validity."""
READ_FORMATS = (FORMAT - 1, FORMAT)
"""Formats that this release reads: its own and the one before, whose facts have no modality and
whose values name no facts. It is read as it lies; the next build publishes it in the new one."""

log = logging.getLogger(__name__)


def has_snapshot(warehouse: Warehouse, identifier: str) -> bool:
    """Whether a warehouse has a snapshot; in a bucket its manifest decides."""
    if warehouse.bucket:
        return warehouse.bucket.read(f"snapshots/{identifier}/{MANIFEST}") is not None
    return (warehouse.snapshots / identifier).is_dir()


def date_snapshots(warehouse: Warehouse) -> dict[str, float]:
    """The ids of all snapshots, sorted, with their time of writing in seconds since 1970.

    Other folders are skipped with a warning.
    """
    if not warehouse.bucket:
        return {folder.name: folder.stat().st_mtime for folder in list_folders(warehouse)}
    places = ((blob.name.split("/")[1:], blob) for blob in warehouse.bucket.list("snapshots"))
    return {place[0]: blob.modified for place, blob in places if place[1:] == [MANIFEST]}


def read_manifest(folder: Path) -> dict[str, JsonValue]:
    """The manifest of a snapshot's folder.

    Raises:
        InputError: the folder is no snapshot.
        IntegrityError: the manifest is not JSON.
    """
    try:
        data = (folder / MANIFEST).read_bytes()
    except OSError as e:
        gone = "is not there; `gc` or `erase` may have removed it"
        problem = f"has no readable manifest: {e.strerror}" if folder.exists() else gone
        raise InputError(f"snapshot {folder.name} in {folder.parent} {problem}") from e
    return _parse_manifest(data, str(folder / MANIFEST))


def find_manifest(warehouse: Warehouse, identifier: str) -> dict[str, JsonValue]:
    """The manifest of a snapshot; from a bucket only this file is read.

    Raises:
        InputError: there is no such snapshot.
        IntegrityError: the manifest is not JSON.
    """
    name = f"snapshots/{identifier}/{MANIFEST}"
    data = warehouse.store.read(name)
    if data is None:
        raise InputError(f"snapshot {identifier} is not there: no {warehouse.locate(name)}")
    return _parse_manifest(data, warehouse.locate(name))


def read_manifests(warehouse: Warehouse) -> dict[str, dict[str, JsonValue]]:
    """The manifests of all snapshots by their ids; other folders are skipped with a warning.

    Raises:
        IntegrityError: one is not JSON.
    """
    names = {i: f"snapshots/{i}/{MANIFEST}" for i in date_snapshots(warehouse)}
    texts = warehouse.read_all([*names.values()])
    pairs = zip(names.items(), texts, strict=True)
    return {i: _parse_manifest(text, warehouse.locate(n)) for (i, n), text in pairs if text}


def _parse_manifest(data: bytes, place: str) -> dict[str, JsonValue]:
    try:
        manifest = json.loads(data)
    except ValueError as e:
        raise IntegrityError(f"{place} is damaged: {e}") from e
    if not isinstance(manifest, dict):
        raise IntegrityError(f"{place} is damaged: it holds no object")
    return manifest


def require_format(manifest: Mapping[str, JsonValue], name: str) -> None:
    """Passes when this release reads the format of a snapshot.

    Raises:
        InputError: it does not; says what to install, or to build again.
    """
    made, software = manifest.get("format"), manifest.get("software")
    if made in READ_FORMATS:
        return
    known = f"this release reads {' and '.join(map(str, READ_FORMATS))}"
    if isinstance(made, int) and made > FORMAT:
        asked = f"'kpyramid>={software}'" if isinstance(software, str) else "--upgrade kpyramid"
        raise InputError(
            f"snapshot {name} is of format {made}, made by a newer release ({software or 'unknown'}"
            f"), and {known}: pip install {asked}"
        )
    raise InputError(
        f"snapshot {name} was built by another version (its format is {made}, and {known}); "
        "`kpyramid build CORPUS` makes it anew: what is in the warehouse's caches costs nothing"
    )


def identify_folder(folder: Path) -> str:
    """The id of the snapshot in a folder: its name, or for a renamed copy its manifest's hash.

    Raises:
        InputError: the folder is no snapshot.
    """
    if SNAPSHOT_ID.fullmatch(folder.name):
        return folder.name
    try:
        return hash_file(folder / MANIFEST)[:SNAPSHOT_DIGITS]
    except OSError as e:
        raise InputError(
            f"{folder} is no snapshot: it has no readable {MANIFEST}. Give a folder of a "
            "warehouse's `snapshots/`, a copy of one, or the name of a ref"
        ) from e


def list_table(folder: Path, name: str) -> list[Path]:
    """The files of a snapshot's table: one, or several parts with disjoint rows."""
    whole = folder / "tables" / f"{name}.parquet"
    return [whole] if whole.exists() else sorted((folder / "tables" / name).glob("*")) or [whole]


def list_folders(warehouse: Warehouse) -> list[Path]:
    """The snapshots' folders, by id; other folders are skipped with a warning."""
    folders = []
    for path in sorted(warehouse.snapshots.glob("*")):
        if SNAPSHOT_ID.fullmatch(path.name) and (path / MANIFEST).is_file():
            folders.append(path)
        else:
            log.warning("%s is no snapshot and is ignored; move it out of there", path)
    return folders
