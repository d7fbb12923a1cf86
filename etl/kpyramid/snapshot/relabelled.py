"""Labels of today on snapshots of yesterday: what newer labels hide of earlier snapshots."""

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kpyramid.errors import IntegrityError
from kpyramid.snapshot.view import Scope
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import list_entries, list_logs
from kpyramid.storage.snapshots import has_snapshot, list_table

log = logging.getLogger(__name__)


def list_heads(warehouse: Warehouse, snapshot: str) -> list[str]:
    """The ids of the snapshots, as far as they are here, of the refs that once were at this one."""
    heads = set[str]()
    for ref in list_logs(warehouse):
        try:
            ids = [entry.snapshot for entry in list_entries(warehouse, ref)]
        except IntegrityError as e:  # one damaged ref does not stop who reads another
            log.warning("labels of ref %s are not looked at: %s", ref, e)
            continue
        if snapshot in ids[:-1] and has_snapshot(warehouse, ids[-1]):
            heads.add(ids[-1])
    return sorted(heads - {snapshot})


def list_guarded(folder: Path, scopes: Sequence[Scope]) -> set[str]:
    """Sources, and hashes of texts, that the labels of a snapshot's documents hide from scopes.

    Raises:
        IntegrityError: its documents cannot be read, so nobody knows what they hide.
    """
    readers = [scope.access for scope in scopes if scope.access is not None]
    files = list_table(folder, "documents") if readers else []
    try:
        parts = [pq.read_table(file, columns=["source", "sha256", "access"]) for file in files]
    except (pa.ArrowException, OSError) as e:
        raise IntegrityError(
            f"the labels of snapshot {folder.name} cannot be read, and they hold for earlier ones "
            f"too: {e}. `kpyramid verify` says what is damaged"
        ) from e
    if not any(len(part["access"].combine_chunks().flatten()) for part in parts):
        return set()
    guarded, seen = set[str](), set[str]()
    for row in (row for part in parts for row in part.to_pylist()):
        is_guarded = row["access"] and any(map(frozenset(row["access"]).isdisjoint, readers))
        (guarded if is_guarded else seen).update((row["source"], row["sha256"]))
    return guarded - seen


def hide(folder: Path, guarded: Iterable[str]) -> Scope | None:
    """The scope without a snapshot's documents of such sources or texts; None if it has none."""
    values, hidden = frozenset(guarded), set[str]()
    for file in list_table(folder, "documents") if values else ():
        rows = pq.read_table(file, columns=["document_id", "source", "sha256"]).to_pylist()
        hidden.update(row["document_id"] for row in rows if values & {row["source"], row["sha256"]})
    return Scope(None, hidden=frozenset(hidden)) if hidden else None
