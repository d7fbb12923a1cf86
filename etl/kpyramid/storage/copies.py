"""Copies between buckets and this machine: snapshots, corpora, and exports."""

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from kpyramid.errors import ConflictError, EndpointError, InputError, SettingsError
from kpyramid.storage.bucket import BucketStore
from kpyramid.storage.items import do_at_once
from kpyramid.storage.layout import Warehouse, is_address, open_warehouse, stage_folder
from kpyramid.storage.leases import GC_LOCK, claim, explain_removal
from kpyramid.storage.snapshots import MANIFEST, has_snapshot
from kpyramid.storage.store import Blob
from kpyramid.storage.verification import require_whole
from kpyramid.storage.writing import sync_folder

_MOST_NAME = 255
"""Most bytes of a file's name."""

log = logging.getLogger(__name__)


@contextmanager
def open_stored(warehouse: Warehouse, identifier: str) -> Iterator[Path]:
    """A folder with the snapshot's files as the warehouse has them now, to check their bytes.

    For a bucket it is a fresh copy, which is removed at the end unless it was renamed.

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
    """The folder of a snapshot; from a bucket it is copied here first, checked, and stays.

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
        place = warehouse.locate(f"snapshots/{identifier}")
        require_whole(copy, ". Do not serve it; build again", place)
        warehouse.snapshots.mkdir(parents=True, exist_ok=True)
        try:
            copy.rename(target)
        except OSError:
            if not (target / MANIFEST).is_file():  # else another process was first
                raise
        sync_folder(warehouse.snapshots)
    return target


@contextmanager
def bring_corpus(warehouse: Warehouse, place: str, what: str = "corpus") -> Iterator[Path]:
    """A local copy of the files below an address, or of one file; removed at the end.

    `what`: its name in messages.

    Raises:
        InputError: as `find_corpus`, or it is part of the warehouse.
        EndpointError: the bucket cannot be read, or changed meanwhile.
    """
    area = f"{warehouse.bucket.place}/" if warehouse.bucket else ""
    bucket, blobs = find_corpus(place, area, what)
    is_file = bucket.place != place.rstrip("/")
    with stage_folder(warehouse) as folder:
        log.info("copying %d bytes of %s %s", sum(blob.size for blob in blobs), what, place)
        changed = f"{what} {place} changed while it was read; run the command again"
        try:
            bucket.download(blobs, "", folder)
        except FileNotFoundError as e:
            raise EndpointError(changed) from e
        if find_corpus(place, area)[1] != blobs:
            raise EndpointError(changed)
        yield folder / blobs[0].name if is_file else folder


def find_corpus(place: str, area: str = "", what: str = "corpus") -> tuple[BucketStore, list[Blob]]:
    """The objects below an address, or the one that it names.

    Hidden objects are left out, and those below `area`, the address of the warehouse.

    Raises:
        InputError: there is nothing, it is part of the warehouse, or a name cannot be a file's.
    """
    bucket = BucketStore(place)
    if area and f"{bucket.place}/".startswith(area):
        raise InputError(f"{what} {place} is inside the warehouse; move it to another place")
    blobs = [
        blob
        for blob in bucket.list()
        if not any(part.startswith(".") for part in blob.name.split("/"))
        and not (area and f"{bucket.place}/{blob.name}".startswith(area))
    ]
    folders = {str(above) for blob in blobs for above in PurePosixPath(blob.name).parents}
    blobs = [blob for blob in blobs if blob.size or blob.name not in folders]  # marks of folders
    for name in (blob.name for blob in blobs):
        if name in folders or any(len(part.encode()) > _MOST_NAME for part in name.split("/")):
            raise InputError(
                f"{what} {bucket.place}: {name[:200]!r} cannot be a file's name: it is too long, "
                "or a folder's too; rename the object"
            )
    if not blobs:
        above, _, name = bucket.place.rpartition("/")
        if not above.endswith("/"):  # else it is the bucket itself
            bucket = BucketStore(above)
            blob = bucket.find(name)
            blobs = [blob] if blob else []
    if not blobs:
        raise InputError(f"{what} {place} does not exist: put it there, or correct the address")
    return bucket, blobs


def put_snapshot(warehouse: Warehouse, identifier: str) -> None:
    """Copies a complete snapshot to the bucket, the manifest last; repeated: no change.

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


def is_there(place: str | Path) -> bool:
    """Whether there is something at a path, or at or below an address.

    Raises:
        EndpointError: the bucket is not there, or cannot be read.
        SettingsError: the address names nothing in a bucket.
    """
    if not is_address(place):
        return os.path.lexists(place)
    bucket, name = _find_above(str(place))
    bucket.look()
    return bucket.find(name) is not None or any(True for _ in bucket.list(name))


@contextmanager
def write_at(place: str | Path) -> Iterator[Path]:
    """The path to write a file or folder for a place: the place itself, or a local one to be sent.

    It is sent to an address when the block ends: a file as one object, the manifest of a folder
    last. If that fails, sent objects are removed, unless there were any before.

    Raises:
        EndpointError: it cannot be sent.
        SettingsError: the address names nothing in a bucket.
    """
    if not is_address(place):
        yield Path(place)
        return
    bucket, name = _find_above(str(place))
    with stage_folder(open_warehouse(bucket.place)) as folder:
        yield folder / name
        made = [path for path in folder.rglob("*") if path.is_file()]
        names = [path.relative_to(folder).as_posix() for path in made]
        last = [each for each in names if each == f"{name}/{MANIFEST}"]
        was_there = is_there(place)
        try:
            for some in ([each for each in names if each not in last], last):
                do_at_once(lambda each: bucket.send(folder / each, each), some)
        except BaseException:
            with suppress(EndpointError):
                do_at_once(bucket.delete, [] if was_there else names)
            raise


def remove(place: str | Path) -> None:
    """Removes what is at a path or an address, so that no rest is taken for complete."""
    if is_address(place):
        bucket, name = _find_above(str(place))
        bucket.delete(f"{name}/{MANIFEST}")
        do_at_once(bucket.delete, [name, *(blob.name for blob in bucket.list(name))])
    elif is_there(place):
        gone = Path(place).with_name(f".{Path(place).name}.gone")
        discard(gone)
        discard(Path(place).replace(gone))


def discard(path: Path) -> None:
    """Removes a file or a folder, if it exists."""
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _find_above(place: str) -> tuple[BucketStore, str]:
    """The store that contains an address, and the name in it."""
    above, _, name = place.rstrip("/").rpartition("/")
    if not is_address(above):
        raise SettingsError(f"{place} is all of a bucket; name something in it: {place}/pyramid")
    return BucketStore(above), name
