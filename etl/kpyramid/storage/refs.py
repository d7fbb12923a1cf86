"""Refs: names that move from snapshot to snapshot by compare-and-swap; the list of snapshots."""

import json
import logging
import os
import re
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from kpyramid.errors import ConflictError, InputError, IntegrityError
from kpyramid.keys import JsonValue, hash_value
from kpyramid.storage.layout import Warehouse, sync_folder, write_and_sync
from kpyramid.storage.snapshots import list_folders, read_manifest

# Refs: append-only logs of numbered entries; the highest number is HEAD.
#
# An entry is created by hard link, which fails when the number is taken: compare-and-swap. It
# ends
# with a checksum of its other fields; entries of earlier releases have none and are still read.

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SNAPSHOT = re.compile(r"[0-9a-f]{16}")
_ENTRY = re.compile(r"[0-9]{10}\.json")
_BEING_WRITTEN = re.compile(r"\..*\.tmp")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RefEntry:
    """One commit of a ref: `order` is the logical key that only moves forward."""

    snapshot: str
    parent: str | None
    order: str
    run: str
    at: str


def check_ref_name(name: str) -> str:
    """The name, when it can be a ref's.

    Raises:
        InputError: it has other characters than letters, digits, dot, dash, underscore.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"ref {name!r}: use letters, digits, '.', '-' and '_', at most 100")
    return name


def list_refs(warehouse: Warehouse) -> list[str]:
    """The names of all refs, sorted; what is no ref is left aside with a warning.

    Raises:
        IntegrityError: the newest entry of a ref cannot be read.
    """
    return [folder.name for folder in _list_logs(warehouse) if read_head(warehouse, folder.name)]


def read_head(warehouse: Warehouse, ref: str) -> RefEntry | None:
    """The newest entry of a ref, or None when the ref does not exist.

    Raises:
        IntegrityError: the entry cannot be read.
    """
    numbers = _list_numbers(warehouse.refs / ref)
    return None if not numbers else _read_entry(warehouse.refs / ref, numbers[-1])


def list_entries(warehouse: Warehouse, ref: str) -> list[RefEntry]:
    """All entries of a ref, oldest first.

    Raises:
        IntegrityError: one cannot be read.
    """
    folder = warehouse.refs / ref
    return [_read_entry(folder, number) for number in _list_numbers(folder)]


def check_refs(warehouse: Warehouse) -> list[str]:
    """What is wrong with the refs: entries that cannot be read, and logs that do not fit together.

    An entry names the snapshot before it as its parent, its order is not less than the one
    before, and no number is missing. The snapshot that a ref is at has to be there.
    """
    problems = []
    for folder in _list_logs(warehouse):
        before: RefEntry | None = None
        for place, number in enumerate(_list_numbers(folder), 1):
            path = folder / f"{number:010d}.json"
            try:
                entry = _read_entry(folder, number)
            except IntegrityError as e:
                problems.append(str(e))
                break
            if number != place:
                problems.append(f"ref entry {folder / f'{place:010d}.json'} is missing")
                break
            if entry.parent != (before.snapshot if before else None):
                problems.append(f"ref entry {path}: its parent is not the entry before it")
            if before and entry.order < before.order:
                problems.append(f"ref entry {path}: its order is less than that of the one before")
            before = entry
        else:
            if before and not (warehouse.snapshots / before.snapshot).is_dir():
                problems.append(f"ref {folder.name!r} is at snapshot {before.snapshot}: not there")
    return problems


def resolve_ref(warehouse: Warehouse, name: str) -> str:
    """The snapshot id that a ref or an id names.

    Raises:
        InputError: no such ref or snapshot; lists the refs there are.
    """
    if _SNAPSHOT.fullmatch(name) and (warehouse.snapshots / name).is_dir():
        return name
    head = read_head(warehouse, check_ref_name(name))
    if head is None:
        refs = ", ".join(list_refs(warehouse)) or "none"
        raise InputError(
            f"unknown ref {name!r} in warehouse {warehouse.root}; refs there: {refs}. "
            "`kpyramid snapshots` lists them, `kpyramid build CORPUS` makes one"
        )
    return head.snapshot


def commit(
    warehouse: Warehouse, ref: str, *, snapshot: str, order: str, run: str, at: str
) -> RefEntry | None:
    """Moves a ref to a snapshot; None when HEAD is that snapshot already.

    A lost race reads HEAD again and checks the rule again.

    Raises:
        ConflictError: HEAD has a later order.
    """
    folder = warehouse.refs / check_ref_name(ref)
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        numbers = _list_numbers(folder)
        head = _read_entry(folder, numbers[-1]) if numbers else None
        if head is not None and head.snapshot == snapshot:
            return None
        if head is not None and head.order > order:
            raise ConflictError(
                f"ref {ref!r} is at order {head.order} (run {head.run}), later than this build's "
                f"{order}: HEAD never moves back. Snapshot {snapshot} is kept; publish it under "
                "a ref of its own with --ref"
            )
        entry = RefEntry(snapshot, head.snapshot if head else None, order, run, at)
        if _create_entry(folder, (numbers[-1] if numbers else 0) + 1, entry):
            return entry


def _create_entry(folder: Path, number: int, entry: RefEntry) -> bool:
    temporary = folder / f".{os.getpid()}.{uuid.uuid4().hex[:8]}.tmp"
    try:
        write_and_sync(temporary, _encode_entry(entry))
        os.link(temporary, folder / f"{number:010d}.json")
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(folder)
    return True


def _list_logs(warehouse: Warehouse) -> list[Path]:
    """The folders of the refs; what is no ref is left aside with a warning."""
    folders = []
    for path in sorted(warehouse.refs.glob("*")):
        if path.is_dir() and _NAME.fullmatch(path.name):
            folders.append(path)
        else:
            log.warning("%s is no ref and is ignored; move it out of there", path)
    return folders


def _list_numbers(folder: Path) -> list[int]:
    """The numbers of a ref's entries; what is no entry is left aside with a warning."""
    names = sorted(path.name for path in folder.glob("*"))
    for name in names:
        if not _ENTRY.fullmatch(name) and not _BEING_WRITTEN.fullmatch(name):
            log.warning("%s is no entry of the ref and is ignored", folder / name)
    return [int(name[:10]) for name in names if _ENTRY.fullmatch(name)]


def _encode_entry(entry: RefEntry) -> bytes:
    fields = asdict(entry)
    return json.dumps({**fields, "sha256": hash_value(fields)}, indent=1).encode()


def _read_entry(folder: Path, number: int) -> RefEntry:
    path = folder / f"{number:010d}.json"
    advice = (
        "Put it back from a copy, or move it and those after it away: the ref is then at the "
        "entry before it"
    )
    try:
        data = path.read_bytes()
        fields = json.loads(data)
        checksum = fields.pop("sha256", None)
        entry = RefEntry(**fields)
    except (OSError, ValueError, TypeError, AttributeError) as e:
        raise IntegrityError(f"ref entry {path} cannot be read: {e}. {advice}") from e
    if checksum is not None and data != _encode_entry(entry):
        raise IntegrityError(f"ref entry {path} is damaged: its checksum differs. {advice}")
    return entry


# What a warehouse holds: its snapshots, and the refs that point to them.


def list_snapshots(warehouse: Warehouse) -> list[dict[str, JsonValue]]:
    """One row per snapshot, newest commit first: id, refs at it, when committed, rows per table.

    `created` is null for a snapshot that no ref was ever moved to. What is neither snapshot nor
    ref is left aside with a warning.
    """
    heads: dict[str, list[str]] = {}
    committed: dict[str, str] = {}
    for ref in list_refs(warehouse):
        entries = list_entries(warehouse, ref)
        heads.setdefault(entries[-1].snapshot, []).append(ref)
        for entry in entries:
            committed[entry.snapshot] = max(committed.get(entry.snapshot, ""), entry.at)
    rows: list[dict[str, JsonValue]] = []
    for folder in sorted(
        list_folders(warehouse), key=lambda f: committed.get(f.name, ""), reverse=True
    ):
        tables = read_manifest(folder).get("tables")
        counts = tables if isinstance(tables, dict) else {}
        rows.append(
            {
                "id": folder.name,
                "refs": heads.get(folder.name, []),
                "created": committed.get(folder.name),
                "rows": {name: entry["rows"] for name, entry in counts.items()},
            }
        )
    return rows
