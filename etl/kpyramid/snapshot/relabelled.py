"""Texts that are hidden in earlier snapshots by labels that documents got later."""

import logging
from collections.abc import Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kpyramid.errors import IntegrityError
from kpyramid.snapshot.view import Scope
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import list_entries, list_logs
from kpyramid.storage.snapshots import has_snapshot, list_table

log = logging.getLogger(__name__)


def list_later(warehouse: Warehouse, snapshot: str) -> list[tuple[str, ...]]:
    """The later snapshots of each ref that was at a snapshot, the newest first.

    Removed snapshots are left out. A ref that was moved back counts with its whole log.
    """
    chains = set[tuple[str, ...]]()
    for ref in list_logs(warehouse):
        try:
            ids = [*dict.fromkeys(entry.snapshot for entry in list_entries(warehouse, ref))]
        except IntegrityError as e:  # a damaged ref does not stop readers of another
            log.warning("labels of ref %s are not looked at: %s", ref, e)
            continue
        later = ids[ids.index(snapshot) + 1 :] if snapshot in ids else []
        chains.add(tuple(each for each in reversed(later) if has_snapshot(warehouse, each)))
    return sorted(chain for chain in chains if chain)


def list_guarded_since(
    warehouse: Warehouse, snapshot: str, scopes: Sequence[Scope]
) -> frozenset[str]:
    """Sources, and hashes of texts, that labels of later snapshots hide from scopes.

    The newest snapshot with a source or a text decides.

    Raises:
        IntegrityError: a snapshot cannot be read, so that its labels are unknown.
    """
    hidden = set[str]()
    for chain in list_later(warehouse, snapshot):
        decided = set[str]()
        for later in chain:
            try:
                guarded, seen = _part(later, _list_files(warehouse, later), scopes)
            except IntegrityError:
                if has_snapshot(warehouse, later):
                    raise
                continue  # gc took it meanwhile
            hidden |= guarded - decided
            decided |= guarded | seen
    return frozenset(hidden)


def _list_files(warehouse: Warehouse, snapshot: str) -> Sequence[Path | BytesIO]:
    """The files of a snapshot's table of documents; from a folder, columns can be read alone."""
    if warehouse.bucket is None:
        return list_table(warehouse.snapshots / snapshot, "documents")
    place = f"snapshots/{snapshot}/tables/documents"
    whole = warehouse.store.read(f"{place}.parquet")
    parts = (
        [whole] if whole else [warehouse.store.read(b.name) for b in warehouse.store.list(place)]
    )
    return [BytesIO(part or b"") for part in parts]


def list_guarded(folder: Path, scopes: Sequence[Scope]) -> set[str]:
    """Sources, and hashes of texts, that the labels of a snapshot's documents hide from scopes.

    Raises:
        IntegrityError: its documents cannot be read, so that their labels are unknown.
    """
    return _part(folder.name, list_table(folder, "documents"), scopes)[0]


def _part(
    snapshot: str, files: Sequence[Path | BytesIO], scopes: Sequence[Scope]
) -> tuple[set[str], set[str]]:
    """Sources and hashes of a snapshot's texts: those hidden from scopes, and the others."""
    readers = [scope.access for scope in scopes if scope.access is not None]
    try:
        rows = _read(files if readers else (), "source", "sha256", "access")
    except (pa.ArrowException, OSError) as e:
        raise IntegrityError(
            f"the labels of snapshot {snapshot} cannot be read, and they hold for earlier ones "
            f"too: {e}. `kpyramid verify` says what is damaged"
        ) from e
    guarded, seen = set[str](), set[str]()
    for row in rows:
        is_guarded = row["access"] and any(map(frozenset(row["access"]).isdisjoint, readers))
        (guarded if is_guarded else seen).update((row["source"], row["sha256"]))
    return guarded - seen, seen


def hide(folder: Path, guarded: Iterable[str]) -> Scope | None:
    """The scope without a snapshot's documents of such sources or texts; None if it has none."""
    values = frozenset(guarded)
    files = list_table(folder, "documents") if values else ()
    rows = _read(files, "document_id", "source", "sha256")
    hidden = frozenset(r["document_id"] for r in rows if values & {r["source"], r["sha256"]})
    return Scope(None, hidden=hidden) if hidden else None


def _read(files: Iterable[Path | BytesIO], *columns: str) -> list[dict[str, Any]]:
    return [row for f in files for row in pq.read_table(f, columns=[*columns]).to_pylist()]
