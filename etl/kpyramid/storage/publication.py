"""Publishing: writing a snapshot's folder, and moving a ref to it by compare-and-swap."""

import os
import uuid
from collections.abc import Mapping
from pathlib import Path

from kpyramid.errors import ConflictError, IntegrityError
from kpyramid.keys import JsonValue, canonical_json, hash_bytes, hash_file
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import RefEntry, check_ref_name, encode_entry, list_numbers, read_entry
from kpyramid.storage.snapshots import MANIFEST, SNAPSHOT_DIGITS, SUMS
from kpyramid.storage.verification import check_bytes
from kpyramid.storage.writing import stage_folder, sync_folder, write_and_sync


def write_snapshot(
    warehouse: Warehouse, files: Mapping[str, bytes | Path], facts: Mapping[str, JsonValue]
) -> str:
    """The id of the snapshot that holds these files; a retry of the same content is a no-op.

    `files` maps paths inside the snapshot to bytes or to a file to copy; `facts` are what the
    manifest says besides the files' hashes, and must not differ from run to run.

    Raises:
        IntegrityError: a snapshot of that id exists already and is damaged.
    """
    contents = dict(sorted(files.items()))
    hashes = {name: _hash_content(content) for name, content in contents.items()}
    members: dict[str, JsonValue] = {
        name: {"sha256": hashes[name], "bytes": _count_bytes(content)}
        for name, content in contents.items()
    }
    manifest = canonical_json({**facts, "files": members})
    identifier = hash_bytes(manifest)[:SNAPSHOT_DIGITS]
    target = warehouse.snapshots / identifier
    if target.exists():
        _require_intact(target)
        return identifier
    hashes[MANIFEST] = hash_bytes(manifest)
    contents[SUMS] = "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes)).encode()
    contents[MANIFEST] = manifest  # last: a folder with a manifest has everything else
    with stage_folder(warehouse) as folder:
        for name, data in contents.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            write_and_sync(folder / name, data)
            if isinstance(data, Path) and hash_file(folder / name) != hashes[name]:
                raise IntegrityError(f"{data} changed while it was published; run the build again")
        for path in [*folder.rglob("*"), folder]:
            if path.is_dir():
                sync_folder(path)
        warehouse.snapshots.mkdir(parents=True, exist_ok=True)
        try:
            folder.rename(target)
        except OSError:
            if not target.exists():
                raise
            _require_intact(target)
        sync_folder(warehouse.snapshots)
    return identifier


def _hash_content(content: bytes | Path) -> str:
    return hash_file(content) if isinstance(content, Path) else hash_bytes(content)


def _count_bytes(content: bytes | Path) -> int:
    return content.stat().st_size if isinstance(content, Path) else len(content)


def _require_intact(folder: Path) -> None:
    problems = check_bytes(folder)
    if problems:
        raise IntegrityError(
            f"snapshot {folder} exists and is damaged: {'; '.join(problems[:5])}. Nothing was "
            "changed. Move that folder away and run the build again"
        )


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
        numbers = list_numbers(folder)
        head = read_entry(folder, numbers[-1]) if numbers else None
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
        write_and_sync(temporary, encode_entry(entry))
        os.link(temporary, folder / f"{number:010d}.json")
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(folder)
    return True
