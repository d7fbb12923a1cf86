"""Refs: names that move from snapshot to snapshot."""

import json
import logging
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import hash_value
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.snapshots import SNAPSHOT_ID

# Refs: append-only logs of numbered entries; the highest number is HEAD.
#
# An entry is created by hard link, which fails when the number is taken: compare-and-swap. It ends
# with a checksum of its other fields; entries of earlier releases have none and are still read.

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
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
    return [folder.name for folder in list_logs(warehouse) if read_head(warehouse, folder.name)]


def read_head(warehouse: Warehouse, ref: str) -> RefEntry | None:
    """The newest entry of a ref, or None when the ref does not exist.

    Raises:
        IntegrityError: the entry cannot be read.
    """
    numbers = list_numbers(warehouse.refs / ref)
    return None if not numbers else read_entry(warehouse.refs / ref, numbers[-1])


def list_entries(warehouse: Warehouse, ref: str) -> list[RefEntry]:
    """All entries of a ref, oldest first.

    Raises:
        IntegrityError: one cannot be read.
    """
    folder = warehouse.refs / ref
    return [read_entry(folder, number) for number in list_numbers(folder)]


def resolve_ref(warehouse: Warehouse, name: str) -> str:
    """The snapshot id that a ref or an id names.

    Raises:
        InputError: no such ref or snapshot; lists the refs there are.
    """
    if SNAPSHOT_ID.fullmatch(name) and (warehouse.snapshots / name).is_dir():
        return name
    head = read_head(warehouse, check_ref_name(name))
    if head is None:
        refs = ", ".join(list_refs(warehouse)) or "none"
        raise InputError(
            f"unknown ref {name!r} in warehouse {warehouse.root}; refs there: {refs}. "
            "`kpyramid snapshots` lists them, `kpyramid build CORPUS` makes one"
        )
    return head.snapshot


def list_logs(warehouse: Warehouse) -> list[Path]:
    """The folders of the refs; what is no ref is left aside with a warning."""
    folders = []
    for path in sorted(warehouse.refs.glob("*")):
        if path.is_dir() and _NAME.fullmatch(path.name):
            folders.append(path)
        else:
            log.warning("%s is no ref and is ignored; move it out of there", path)
    return folders


def list_numbers(folder: Path) -> list[int]:
    """The numbers of a ref's entries; what is no entry is left aside with a warning."""
    names = sorted(path.name for path in folder.glob("*"))
    for name in names:
        if not _ENTRY.fullmatch(name) and not _BEING_WRITTEN.fullmatch(name):
            log.warning("%s is no entry of the ref and is ignored", folder / name)
    return [int(name[:10]) for name in names if _ENTRY.fullmatch(name)]


def encode_entry(entry: RefEntry) -> bytes:
    fields = asdict(entry)
    return json.dumps({**fields, "sha256": hash_value(fields)}, indent=1).encode()


def read_entry(folder: Path, number: int) -> RefEntry:
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
    if checksum is not None and data != encode_entry(entry):
        raise IntegrityError(f"ref entry {path} is damaged: its checksum differs. {advice}")
    return entry
