"""Leases: `gc` does not move a snapshot with a lease."""

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kpyramid.errors import ConflictError
from kpyramid.storage.layout import Warehouse, explain_damage, is_dead, name_process
from kpyramid.storage.snapshots import MANIFEST, has_snapshot, read_manifest

_LEASES = "leases"
GC_LOCK = "gc.lock"
"""Lock in a bucket, present while a gc is at work."""


@contextmanager
def hold(warehouse: Warehouse, snapshot: str) -> Iterator[None]:
    """Holds a lease on a snapshot until the block or the process ends.

    Raises:
        ConflictError: it is not there, or was removed just now.
    """
    with claim(warehouse, snapshot):
        # In this order: gc looks for leases again after it moved a snapshot away.
        if not has_snapshot(warehouse, snapshot):
            raise explain_removal(warehouse, snapshot)
        yield


def explain_removal(warehouse: Warehouse, snapshot: str) -> ConflictError:
    """The error for a snapshot that was removed."""
    return ConflictError(
        f"snapshot {snapshot} is not in {warehouse.locate('snapshots')}: it was removed, by `gc` "
        "if no ref was at it; run the command again"
    )


@contextmanager
def explain_loss(warehouse: Warehouse, snapshot: str) -> Iterator[None]:
    """Turns failures of the block into an error on removal, if the snapshot's files are gone.

    Raises:
        ConflictError: the block failed, and one of the files is gone.
    """
    folder = warehouse.snapshots / snapshot
    files: Any = read_manifest(folder)["files"]
    try:
        yield
    except Exception as e:
        if all((folder / name).is_file() for name in (MANIFEST, *files)):
            raise
        raise explain_removal(warehouse, snapshot) from e


@contextmanager
def claim(warehouse: Warehouse, snapshot: str) -> Iterator[None]:
    """A lease on a snapshot, whether or not it is there."""
    name = f"{_LEASES}/{name_process()}.{uuid.uuid4().hex}.json"
    warehouse.store.replace(name, json.dumps({"snapshot": snapshot}).encode())
    try:
        yield
    finally:
        warehouse.store.delete(name)


def list_held(warehouse: Warehouse) -> dict[str, str]:
    """The held snapshots by the names of their leases; those of dead processes are removed.

    Raises:
        IntegrityError: a lease cannot be read.
    """
    held = {}
    store = warehouse.store
    for blob in store.list(_LEASES):
        name = blob.name.rpartition("/")[2]
        if is_dead(name):
            store.delete(blob.name)
            continue
        with explain_damage(
            f"lease {warehouse.locate(blob.name)}", ". Remove it if nobody reads any more"
        ):
            data = store.read(blob.name)
            if data is not None:  # else it ended since it was listed
                held[name] = str(json.loads(data)["snapshot"])
    return held


@contextmanager
def lock_bucket(warehouse: Warehouse) -> Iterator[None]:
    """Locks a bucket against the garbage collection of other machines; no-op for a folder.

    The lock of a dead process of this machine is taken over.

    Raises:
        ConflictError: another gc is at work.
    """
    bucket = warehouse.bucket
    if bucket is None:
        yield
        return
    mine = f"{name_process()}.{uuid.uuid4().hex}".encode()
    owner = bucket.put_once(GC_LOCK, mine)
    if owner != mine and is_dead(owner.decode()):
        bucket.delete(GC_LOCK)
        owner = bucket.put_once(GC_LOCK, mine)
    if owner != mine:
        raise ConflictError(
            f"another gc is at work in {warehouse.locate()}, started by {owner.decode()}; wait for "
            f"its end. If that machine is gone, remove {warehouse.locate(GC_LOCK)}"
        )
    try:
        yield
    finally:
        bucket.delete(GC_LOCK)
