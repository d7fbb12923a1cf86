"""Refs: append-only logs of numbered entries; the highest number is HEAD.

An entry is created by hard link, which fails when the number is taken: compare-and-swap.
"""

import json
import os
import re
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path

from kpyramid.errors import ConflictError, InputError, IntegrityError
from kpyramid.warehouse.layout import Warehouse, sync_folder, write_and_sync

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SNAPSHOT = re.compile(r"[0-9a-f]{16}")


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
    """The names of all refs, sorted."""
    if not warehouse.refs.is_dir():
        return []
    return sorted(p.name for p in warehouse.refs.iterdir() if read_head(warehouse, p.name))


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
        write_and_sync(temporary, json.dumps(asdict(entry), indent=1).encode())
        os.link(temporary, folder / f"{number:010d}.json")
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(folder)
    return True


def _list_numbers(folder: Path) -> list[int]:
    return sorted(int(p.stem) for p in folder.glob("[0-9]*.json"))


def _read_entry(folder: Path, number: int) -> RefEntry:
    path = folder / f"{number:010d}.json"
    try:
        return RefEntry(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as e:
        raise IntegrityError(f"ref entry {path} cannot be read: {e}") from e
