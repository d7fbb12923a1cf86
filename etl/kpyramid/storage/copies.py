"""Snapshots of a warehouse in a bucket: brought to this machine, and put there."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kpyramid.errors import ConflictError, IntegrityError
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.leases import GC_LOCK, claim, explain_removal
from kpyramid.storage.snapshots import MANIFEST, has_snapshot
from kpyramid.storage.staging import stage_folder
from kpyramid.storage.verification import check_bytes
from kpyramid.storage.writing import sync_folder

log = logging.getLogger(__name__)


@contextmanager
def open_stored(warehouse: Warehouse, identifier: str) -> Iterator[Path]:
    """A folder with what the warehouse holds of a snapshot now: to check its bytes.

    Of a bucket it is a fresh copy, which is removed at the end unless it was renamed away.

    Raises:
        ConflictError: gc removed it while it was copied.
    """
    bucket = warehouse.bucket
    if bucket is None:
        yield warehouse.snapshots / identifier
        return
    name = f"snapshots/{identifier}"
    with stage_folder(warehouse) as staging:
        (staging / identifier).mkdir()
        blobs = [*bucket.list(name)]
        log.info("copying %d bytes of %s", sum(b.size for b in blobs), warehouse.locate(name))
        try:
            bucket.download(blobs, name, staging / identifier)
        except FileNotFoundError as e:
            raise explain_removal(warehouse, identifier) from e
        yield staging / identifier


def locate_snapshot(warehouse: Warehouse, identifier: str) -> Path:
    """The folder of a snapshot; from a bucket it is brought here first, checked, and stays.

    Raises:
        ConflictError: it is not there, or gc removed it while it was copied.
        IntegrityError: it is damaged in the bucket.
    """
    target = warehouse.snapshots / identifier
    if warehouse.bucket is None or (target / MANIFEST).is_file():
        return target  # a copy appears whole, by rename, and never changes
    with open_stored(warehouse, identifier) as copy:
        if not (copy / MANIFEST).is_file():
            raise explain_removal(warehouse, identifier)
        if problems := check_bytes(copy):
            raise IntegrityError(
                f"snapshot {warehouse.locate(f'snapshots/{identifier}')} is damaged: "
                f"{'; '.join(problems[:5])}. Do not serve it; build again"
            )
        warehouse.snapshots.mkdir(parents=True, exist_ok=True)
        try:
            copy.rename(target)
        except OSError:
            if not (target / MANIFEST).is_file():  # else another process was first
                raise
        sync_folder(warehouse.snapshots)
    return target


def put_snapshot(warehouse: Warehouse, identifier: str) -> None:
    """Copies a whole snapshot of this machine to the bucket, the manifest last; again: no change.

    Raises:
        ConflictError: gc is at work in the bucket and may be deleting this very snapshot.
    """
    if warehouse.bucket is None:
        return
    name = f"snapshots/{identifier}"
    with claim(warehouse, identifier):
        # In this order: a gc that starts from now on sees the lease and leaves alone what comes.
        places = (f"trash/{name}", f"trash/deleted/{name}", name)
        is_left = any(any(warehouse.bucket.list(place)) for place in places)
        is_there = is_left and has_snapshot(warehouse, identifier)
        if is_left and not is_there and warehouse.bucket.read(GC_LOCK) is not None:
            raise ConflictError(
                f"something is left of snapshot {identifier}, which a gc deletes just now; run the "
                "command again when it has ended"
            )
        warehouse.bucket.upload(warehouse.snapshots / identifier, name, last=MANIFEST)
