"""Refs: names that move from snapshot to snapshot."""

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Literal

from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import hash_value
from kpyramid.storage.layout import Warehouse, explain_damage
from kpyramid.storage.snapshots import SNAPSHOT_ID, has_snapshot

# Refs: append-only logs of numbered entries; the highest number is HEAD.
#
# An entry is created once, which fails when the number is taken: compare-and-swap. It ends
# with a checksum of its other fields; entries of earlier releases have none and are still read.

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_ENTRY = re.compile(r"[0-9]{10}\.json")
_OF_DAY = re.compile(r"-\d{4}-\d\d-\d\d$")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RefEntry:
    """One move of a ref: `order` is the logical key that only moves forward.

    `run` made the snapshot; empty if no ref knows it. `at` is the time in UTC. A ref whose entry is
    a tag does not move; one whose newest entry is `retire` is gone until it moves again.
    """

    snapshot: str
    parent: str | None
    order: str
    run: str
    at: str
    action: Literal["build", "promote", "rollback", "tag", "retire"] = "build"


def name_now() -> str:
    """The present time in the form of an entry."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def check_ref_name(name: str) -> str:
    """The name, if it is valid for a ref.

    Raises:
        InputError: it has other characters than letters, digits, dot, dash, underscore.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"ref {name!r}: use letters, digits, '.', '-' and '_', at most 100")
    return name


def require_movable(warehouse: Warehouse, ref: str) -> None:
    """Passes when a ref can be moved or made.

    Raises:
        InputError: the name is a tag's or a snapshot's, or can be no ref's.
    """
    head = read_head(warehouse, check_ref_name(ref))
    if head is not None and head.action == "tag":
        raise InputError(
            f"{ref!r} is a tag and stays at snapshot {head.snapshot}; name a ref, such as main"
        )
    if head is None and SNAPSHOT_ID.fullmatch(ref):
        raise InputError(f"ref {ref!r} could be taken for a snapshot's id; give it another name")


def list_heads(warehouse: Warehouse) -> dict[str, RefEntry]:
    """The newest entry of each ref, by its name, sorted; other files are skipped with a warning.

    Raises:
        IntegrityError: the newest entry of a ref cannot be read.
    """
    heads = ((name, read_head(warehouse, name)) for name in list_logs(warehouse))
    return {name: head for name, head in heads if head is not None}


def name_ref_of_day(ref: str, day: date) -> str:
    """The ref of a backfilled day."""
    return f"{ref}-{day.isoformat()}"


def list_idle_days(warehouse: Warehouse, before: datetime) -> list[str]:
    """Refs of backfilled days, beside their own, last moved before a moment."""
    heads = list_heads(warehouse)
    return [
        ref
        for ref, head in heads.items()
        if _OF_DAY.search(ref) and _OF_DAY.sub("", ref) in heads
        if head.action != "tag" and datetime.fromisoformat(head.at) < before
    ]


def read_head(warehouse: Warehouse, ref: str) -> RefEntry | None:
    """The newest entry of a ref, or None if it does not exist or was retired.

    Raises:
        IntegrityError: the entry cannot be read.
    """
    head = read_newest(warehouse, ref)
    return None if head and head.action == "retire" else head


def read_newest(warehouse: Warehouse, ref: str) -> RefEntry | None:
    """The newest entry of a ref, that of its retirement too, or None."""
    numbers = list_numbers(warehouse, ref)
    return read_entry(warehouse, ref, numbers[-1]) if numbers else None


def append_entry(warehouse: Warehouse, ref: str, before: RefEntry | None, entry: RefEntry) -> bool:
    """Appends an entry after `before`; returns False if another writer was first."""
    numbers = list_numbers(warehouse, ref)
    newest = read_entry(warehouse, ref, numbers[-1]) if numbers else None
    name = name_entry(ref, (numbers[-1] if numbers else 0) + 1)
    return newest == before and warehouse.store.create(name, encode_entry(entry))


def remove_log(warehouse: Warehouse, ref: str) -> None:
    """Removes all entries of a ref."""
    for number in list_numbers(warehouse, ref):
        warehouse.store.delete(name_entry(ref, number))


def list_entries(warehouse: Warehouse, ref: str) -> list[RefEntry]:
    """All entries of a ref, oldest first.

    Raises:
        IntegrityError: one cannot be read.
    """
    return [read_entry(warehouse, ref, number) for number in list_numbers(warehouse, ref)]


def resolve_ref(warehouse: Warehouse, name: str) -> str:
    """The snapshot id for a ref, an earlier entry of a ref (`find_entry`) or an id.

    Raises:
        InputError: no such ref, entry or snapshot; says what there is.
    """
    if SNAPSHOT_ID.fullmatch(name) and has_snapshot(warehouse, name):
        return name
    return find_entry(warehouse, name).snapshot


def find_entry(warehouse: Warehouse, name: str) -> RefEntry:
    """The entry of a ref that a name denotes.

    `main` is the newest, `main@1` the one before it, `main@2026-11-16` the newest at the end of
    that day (in UTC) or time.

    Raises:
        InputError: no such ref, or its log does not reach that far back.
    """
    ref, is_earlier, place = name.partition("@")
    entries = list_entries(warehouse, check_ref_name(ref))
    if not entries:
        refs = ", ".join(list_heads(warehouse)) or "none"
        raise InputError(
            f"unknown ref {ref!r} in warehouse {warehouse.locate()}; refs there: {refs}. "
            "`kpyramid snapshots` lists them, `kpyramid build CORPUS` makes one"
        )
    if not is_earlier and entries[-1].action == "retire":
        raise InputError(
            f"ref {ref!r} was retired at {entries[-1].at}; `kpyramid log {ref}` shows what it was "
            f"at, `kpyramid promote {ref} SNAPSHOT` brings it back"
        )
    if not is_earlier:
        return entries[-1]
    if place.isdecimal():
        matches = entries[-1 - int(place) :][:1] if int(place) < len(entries) else []
    elif end := _read_end(place):
        matches = [entry for entry in entries if datetime.fromisoformat(entry.at) < end][-1:]
    else:
        raise InputError(
            f"{name!r}: after @ comes a number, such as {ref}@1 for the entry before, or a date, "
            f"such as {ref}@2026-11-16 for what the ref was at that day"
        )
    if not matches:
        raise InputError(
            f"{name!r}: the log of {ref!r} does not reach that far back, its first entry of "
            f"{len(entries)} is of {entries[0].at}; `kpyramid log {ref}` shows them"
        )
    return matches[0]


def _read_end(place: str) -> datetime | None:
    """The end of a day or a second, in UTC unless it has a zone; None for no such time."""
    try:
        start = datetime.fromisoformat(place)
    except ValueError:
        return None
    start = start if start.tzinfo else start.replace(tzinfo=UTC)
    return start + (timedelta(seconds=1) if "T" in place else timedelta(days=1))


def list_standing(entries: Sequence[RefEntry]) -> list[str]:
    """The snapshots of a ref that were not rolled back, oldest first.

    The last is the ref's, the one before it the target of a rollback.
    """
    standing: list[str] = []
    for entry in entries:
        if entry.action == "retire":
            standing.clear()
            continue
        if entry.action == "rollback":
            while standing and standing[-1] != entry.snapshot:
                standing.pop()
        if entry.action != "rollback" or not standing:
            standing.append(entry.snapshot)
    return standing


def list_undone(entries: Sequence[RefEntry]) -> set[str]:
    """The snapshots that a ref was rolled back from and not promoted to since."""
    undone: set[str] = set()
    for entry in entries:
        if entry.action == "retire":
            undone.clear()
        elif entry.action == "rollback" and entry.parent:
            undone.add(entry.parent)
        elif entry.action == "promote":
            undone.discard(entry.snapshot)
    return undone


def list_logs(warehouse: Warehouse) -> list[str]:
    """The names of the refs that have entries; other files are skipped with a warning."""
    names: dict[str, None] = {}
    for blob in warehouse.store.list("refs"):
        _, name, *rest = blob.name.split("/")
        if rest and _NAME.fullmatch(name):
            names[name] = None
        else:
            place = warehouse.locate(f"refs/{name}")
            log.warning("%s is no ref and is ignored; move it out of there", place)
    return [*names]


def list_numbers(warehouse: Warehouse, ref: str) -> list[int]:
    """The numbers of a ref's entries; other files are skipped with a warning."""
    folder = f"refs/{ref}/"
    names = [blob.name.removeprefix(folder) for blob in warehouse.store.list(folder.rstrip("/"))]
    for name in names:
        if not _ENTRY.fullmatch(name):
            place = warehouse.locate(folder + name)
            log.warning("%s is no entry of the ref and is ignored", place)
    return [int(name[:10]) for name in names if _ENTRY.fullmatch(name)]


def name_entry(ref: str, number: int) -> str:
    """The name of a ref's entry in the store."""
    return f"refs/{ref}/{number:010d}.json"


def encode_entry(entry: RefEntry) -> bytes:
    fields = asdict(entry)
    if entry.action == "build":  # as releases wrote it that knew of nothing else
        del fields["action"]
    return json.dumps({**fields, "sha256": hash_value(fields)}, indent=1).encode()


def read_entry(warehouse: Warehouse, ref: str, number: int) -> RefEntry:
    """The entry of that number.

    Raises:
        IntegrityError: it cannot be read, or is not what was written.
    """
    path = warehouse.locate(name_entry(ref, number))
    advice = (
        "Put it back from a copy, or move it and those after it away: the ref is then at the "
        "entry before it"
    )
    with explain_damage(f"ref entry {path}", f". {advice}"):
        data = warehouse.store.read(name_entry(ref, number))
        if data is None:
            raise ValueError("it is gone")
        fields = json.loads(data)
        checksum = fields.pop("sha256", None)
        entry = RefEntry(**fields)
    if checksum is not None and data != encode_entry(entry):
        raise IntegrityError(f"ref entry {path} is damaged: its checksum differs. {advice}")
    return entry


def check_refs(warehouse: Warehouse) -> list[str]:
    """Problems of the refs: unreadable entries, and inconsistent logs.

    An entry names the snapshot before it as its parent, its order is not less than the previous
    one's, and no number is missing. The snapshot of a ref has to exist.
    """
    problems = []
    for ref in list_logs(warehouse):
        before: RefEntry | None = None
        for place, number in enumerate(list_numbers(warehouse, ref), 1):
            path = warehouse.locate(name_entry(ref, number))
            try:
                entry = read_entry(warehouse, ref, number)
            except IntegrityError as e:
                problems.append(str(e))
                break
            if number != place:
                missing = warehouse.locate(name_entry(ref, place))
                problems.append(f"ref entry {missing} is missing")
                break
            if entry.parent != (before.snapshot if before else None):
                problems.append(f"ref entry {path}: its parent is not the entry before it")
            if before and entry.order < before.order:
                problems.append(f"ref entry {path}: its order is less than that of the one before")
            before = entry
        else:
            head = before if before and before.action != "retire" else None
            if head and not has_snapshot(warehouse, head.snapshot):
                problems.append(f"ref {ref!r} is at snapshot {head.snapshot}: not there")
    return problems
