"""Publishing: writing a snapshot's folder, and moving a ref to it by compare-and-swap."""

import errno
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from kpyramid.errors import ConflictError, InputError, IntegrityError, OvertakenError, PyramidError
from kpyramid.keys import JsonValue, canonical_json, hash_bytes, hash_file
from kpyramid.storage.copies import open_stored, put_snapshot
from kpyramid.storage.items import do_at_once
from kpyramid.storage.layout import Warehouse, stage_folder
from kpyramid.storage.leases import hold
from kpyramid.storage.refs import (
    RefEntry,
    append_entry,
    check_ref_name,
    find_entry,
    list_entries,
    list_heads,
    list_standing,
    read_head,
    read_newest,
    remove_log,
    require_movable,
)
from kpyramid.storage.snapshots import (
    MANIFEST,
    SNAPSHOT_DIGITS,
    SNAPSHOT_ID,
    SUMS,
    has_snapshot,
    list_folders,
    read_manifest,
)
from kpyramid.storage.verification import require_whole
from kpyramid.storage.writing import put_file, sync_folder, sync_tree

_MOST_COMPARED = 32
"""Snapshots whose files a new one may share: reading their manifests takes .02 s."""


def write_snapshot(
    warehouse: Warehouse, files: Mapping[str, bytes | str | Path], facts: Mapping[str, JsonValue]
) -> str:
    """Writes a snapshot with these files; returns its id. Repeated with equal content: no change.

    `files` maps paths inside the snapshot to bytes or text, or to a stored file that is linked
    there; `facts`, the manifest without the hashes, is the same in every run.

    Raises:
        IntegrityError: a snapshot of that id exists already and is damaged.
    """
    with stage_folder(warehouse) as folder:
        for name, content in files.items():
            put_file(folder / name, content.encode() if isinstance(content, str) else content)
        names = sorted(files)
        digests = do_at_once(hash_file, [folder / name for name in names])
        hashes = dict(zip(names, digests, strict=True))
        _share(warehouse, folder, hashes)
        members: dict[str, JsonValue] = {
            name: {"sha256": hashes[name], "bytes": (folder / name).stat().st_size}
            for name in names
        }
        manifest = canonical_json({**facts, "files": members})
        hashes[MANIFEST] = hash_bytes(manifest)
        sums = "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes))
        put_file(folder / SUMS, sums.encode())
        put_file(folder / MANIFEST, manifest)  # last: a folder with one has everything else
        identifier = hashes[MANIFEST][:SNAPSHOT_DIGITS]
        settle(warehouse, folder, identifier)
    return identifier


def _share(warehouse: Warehouse, folder: Path, hashes: Mapping[str, str]) -> None:
    """Replaces staged files by links to equal files of the newest snapshots."""
    held: dict[str, Path] = {}
    for snapshot in _list_newest(warehouse):
        with suppress(PyramidError):  # damaged: `verify` says so
            files: Any = read_manifest(snapshot).get("files")
            held |= {entry["sha256"]: snapshot / name for name, entry in files.items()}
    link = folder / ".link"
    for name, digest in hashes.items():
        source = held.get(digest)
        with suppress(OSError):  # gc took it, or it cannot have another name
            if source and not source.samefile(folder / name) and hash_file(source) == digest:
                link.hardlink_to(source)
                link.replace(folder / name)


def _list_newest(warehouse: Warehouse) -> list[Path]:
    written: dict[Path, float] = {}
    for folder in list_folders(warehouse):
        with suppress(OSError):  # gc took it
            written[folder] = folder.stat().st_mtime
    return sorted(written, key=lambda folder: (written[folder], folder))[-_MOST_COMPARED:]


def settle(warehouse: Warehouse, folder: Path, identifier: str) -> bool:
    """Moves a complete staged folder to the snapshots; False if the snapshot exists already.

    It is on disk before it is in place. For a bucket it is copied there too.

    Raises:
        IntegrityError: what is there is damaged.
    """
    place = warehouse.snapshots / identifier
    while is_new := not _is_whole(place):
        sync_tree(folder)
        warehouse.snapshots.mkdir(parents=True, exist_ok=True)
        try:
            folder.rename(place)
            break
        except OSError as error:  # another was first, and gc may take that one
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    sync_folder(warehouse.snapshots)
    put_snapshot(warehouse, identifier)
    return is_new


def _is_whole(folder: Path) -> bool:
    """Whether a snapshot is there and undamaged; gc may move it while it is read."""
    try:
        if folder.exists():
            advice = ". Nothing was changed. Move that folder away and run the build again"
            require_whole(folder, advice)
    except FileNotFoundError:
        return _is_whole(folder)
    except IntegrityError:
        if folder.exists():
            raise
    return folder.exists()


def commit(
    warehouse: Warehouse, ref: str, *, snapshot: str, order: str, run: str, at: str
) -> RefEntry | None:
    """Moves a ref to a built snapshot; None if HEAD is that snapshot already.

    After a lost race HEAD is read and checked again.

    Raises:
        OvertakenError: HEAD has a later order.
        InputError: the ref is a tag.
    """
    require_movable(warehouse, ref)
    while True:
        head = read_newest(warehouse, ref)
        if head and head.snapshot == snapshot and head.action != "retire":
            return None
        if head is not None and head.order > order:
            raise OvertakenError(
                f"ref {ref!r} is at order {head.order} (run {head.run}), later than this build's "
                f"{order}: HEAD never moves back. Snapshot {snapshot} is kept; publish it under "
                "a ref of its own with --ref"
            )
        entry = RefEntry(snapshot, head.snapshot if head else None, order, run, at)
        if append_entry(warehouse, ref, head, entry):
            return entry


def promote(warehouse: Warehouse, ref: str, snapshot: str, *, at: str) -> RefEntry | None:
    """Moves a ref to any whole snapshot, forward or back; None if HEAD is that snapshot already.

    The new entry has the order of the snapshot's build, or HEAD's if that is later: builds go on
    from there.

    Raises:
        ConflictError: the ref moved at the same time.
        InputError: the ref is a tag, or there is no such snapshot.
        IntegrityError: the snapshot is damaged.
    """
    require_movable(warehouse, ref)
    before = read_newest(warehouse, ref)
    if before and before.snapshot == snapshot and before.action != "retire":
        return None
    made = max(
        (
            entry
            for name in list_heads(warehouse)
            for entry in list_entries(warehouse, name)
            if entry.snapshot == snapshot and entry.action == "build"
        ),
        key=lambda entry: entry.order,
        default=RefEntry(snapshot, None, "", "", at),
    )
    with _hold_whole(warehouse, snapshot):
        return _move(warehouse, ref, before, replace(made, action="promote", at=at))


def rollback(warehouse: Warehouse, ref: str, *, at: str) -> RefEntry:
    """Moves a ref back to its previous snapshot, by a new entry.

    Earlier rollbacks are skipped, so a second rollback goes one further. The order stays HEAD's:
    the next build goes on after the undone one.

    Raises:
        ConflictError: the ref moved at the same time.
        InputError: the ref is a tag or has nothing before, or that snapshot is gone.
        IntegrityError: that snapshot is damaged.
    """
    require_movable(warehouse, ref)
    find_entry(warehouse, ref)  # says which refs there are
    entries = list_entries(warehouse, ref)
    standing = list_standing(entries)
    if len(standing) < 2:
        raise InputError(
            f"ref {ref!r} has no snapshot before the one it is at; `kpyramid log {ref}` shows its "
            f"entries, `kpyramid promote {ref} SNAPSHOT` moves it to any snapshot"
        )
    made = next(e for e in reversed(entries) if e.snapshot == standing[-2])
    with _hold_whole(warehouse, standing[-2]):
        return _move(warehouse, ref, entries[-1], replace(made, action="rollback", at=at))


def _move(warehouse: Warehouse, ref: str, before: RefEntry | None, entry: RefEntry) -> RefEntry:
    """Adds the entry, with HEAD's order if that is later, unless HEAD is no longer `before`."""
    order = max(entry.order, before.order if before else "")
    entry = replace(entry, parent=before.snapshot if before else None, order=order)
    if not append_entry(warehouse, ref, before, entry):
        raise ConflictError(
            f"ref {ref!r} was moved by somebody else at the same time, and not by this command: "
            f"look at `kpyramid log {ref}`, then run it again if it is still wanted"
        )
    return entry


def tag(warehouse: Warehouse, name: str, snapshot: str, *, at: str) -> RefEntry | None:
    """Creates a name that stays at a whole snapshot and keeps it; None if it is there already.

    Raises:
        ConflictError: somebody else made it at the same time.
        InputError: another ref or tag has that name, or there is no such snapshot.
        IntegrityError: the snapshot is damaged.
    """
    head = read_head(warehouse, check_ref_name(name))
    if head is not None and (head.action, head.snapshot) == ("tag", snapshot):
        return None
    if read_newest(warehouse, name) or SNAPSHOT_ID.fullmatch(name):
        what = "snapshot" if SNAPSHOT_ID.fullmatch(name) else "ref"
        raise InputError(f"{name!r} is the name of a {what}; take another")
    with _hold_whole(warehouse, snapshot):
        return _move(warehouse, name, None, RefEntry(snapshot, None, "", "", at, "tag"))


def remove_tag(warehouse: Warehouse, name: str) -> str:
    """Removes a tag; returns its snapshot.

    Raises:
        InputError: there is no such tag.
    """
    head = read_head(warehouse, check_ref_name(name))
    if head is None or head.action != "tag":
        place = warehouse.locate()
        raise InputError(f"{name!r} is no tag of warehouse {place}; nothing was removed")
    remove_log(warehouse, name)
    return head.snapshot


def retire(warehouse: Warehouse, refs: Collection[str], *, at: str) -> dict[str, str]:
    """Ends refs by a last entry: they are not listed any more, and keep no snapshot from `gc`.

    Their logs stay, and a later move continues them. Returns the snapshot of each ref.

    Raises:
        ConflictError: one moved at the same time.
        InputError: one is not there, is a tag, or `main`; none was retired.
    """
    heads = {ref: find_entry(warehouse, check_ref_name(ref)) for ref in refs}
    for ref, head in heads.items():
        if head.action == "tag":
            raise InputError(f"{ref!r} is a tag: `kpyramid tag --remove {ref}` removes it")
        if ref == "main":
            raise InputError("'main' stays: builds and readers take it where no ref is named")
    for ref, head in heads.items():
        _move(warehouse, ref, head, replace(head, action="retire", at=at))
    return {ref: head.snapshot for ref, head in heads.items()}


@contextmanager
def _hold_whole(warehouse: Warehouse, snapshot: str) -> Iterator[None]:
    """Checks every byte of a snapshot, and holds a lease on it while the block lasts.

    Raises:
        InputError: it is not there.
        IntegrityError: it is damaged.
    """
    place = warehouse.locate(f"snapshots/{snapshot}")
    if not has_snapshot(warehouse, snapshot):
        raise InputError(
            f"snapshot {snapshot} is not in {warehouse.locate('snapshots')} any more: `gc` removes "
            "what no ref is at. `kpyramid snapshots` lists those that are there"
        )
    with hold(warehouse, snapshot):
        with open_stored(warehouse, snapshot) as folder:
            require_whole(folder, ". No ref was moved to it", place)
        yield
