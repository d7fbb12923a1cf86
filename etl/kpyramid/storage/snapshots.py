"""Snapshots: immutable folders named by the hash of their manifest."""

import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import JsonValue, canonical_json, hash_bytes, hash_file
from kpyramid.storage.contracts import load_contracts, read_table
from kpyramid.storage.layout import Warehouse, stage_folder, sync_folder, write_and_sync

MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
_ID_DIGITS = 16
_ID = re.compile(f"[0-9a-f]{{{_ID_DIGITS}}}")

log = logging.getLogger(__name__)


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
    identifier = hash_bytes(manifest)[:_ID_DIGITS]
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


def read_manifest(folder: Path) -> dict[str, JsonValue]:
    """The manifest of a snapshot's folder.

    Raises:
        InputError: the folder is no snapshot.
        IntegrityError: the manifest is not JSON.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except OSError as e:
        raise InputError(
            f"snapshot {folder.name} has no readable manifest in {folder.parent}: {e.strerror}"
        ) from e
    except ValueError as e:
        raise IntegrityError(f"{folder / MANIFEST} is damaged: {e}") from e
    if not isinstance(manifest, dict):
        raise IntegrityError(f"{folder / MANIFEST} is damaged: it holds no object")
    return manifest


def identify_folder(folder: Path) -> str:
    """The id of the snapshot in a folder: its name, or of a renamed copy its manifest's hash.

    Raises:
        InputError: the folder is no snapshot.
    """
    if _ID.fullmatch(folder.name):
        return folder.name
    try:
        return hash_file(folder / MANIFEST)[:_ID_DIGITS]
    except OSError as e:
        raise InputError(
            f"{folder} is no snapshot: it has no readable {MANIFEST}. Give a folder of a "
            "warehouse's `snapshots/`, a copy of one, or the name of a ref"
        ) from e


def list_folders(warehouse: Warehouse) -> list[Path]:
    """The snapshots' folders, by id; what is no snapshot is left aside with a warning."""
    folders = []
    for path in sorted(warehouse.snapshots.glob("*")):
        if _ID.fullmatch(path.name) and (path / MANIFEST).is_file():
            folders.append(path)
        else:
            log.warning("%s is no snapshot and is ignored; move it out of there", path)
    return folders


def check_bytes(folder: Path) -> list[str]:
    """What is wrong with a snapshot's bytes: its name, its list of files, each file's hash."""
    try:
        manifest = (folder / MANIFEST).read_bytes()
        lines = (folder / SUMS).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as e:
        return [f"{folder}: {e}"]
    problems = []
    listed = {}
    for line in lines:
        digest, _, name = line.partition("  ")
        listed[name] = digest
    if hash_bytes(manifest)[:_ID_DIGITS] != folder.name:
        problems.append(f"{MANIFEST}: its hash is not the snapshot's id {folder.name}")
    else:  # the manifest is what the id vouches for; the sums have to repeat it
        files = {name: entry["sha256"] for name, entry in json.loads(manifest)["files"].items()}
        differing = {*files.items()} ^ {item for item in listed.items() if item[0] != MANIFEST}
        problems += [
            f"{name}: {SUMS} does not say of it what {MANIFEST} says"
            for name in sorted({name for name, _ in differing})
        ]
    present, odd = _walk(folder)
    problems += odd
    problems += [f"{name}: is missing" for name in sorted(listed.keys() - present)]
    problems += [f"{name}: is not listed in {SUMS}" for name in sorted(present - listed.keys())]
    problems += [
        f"{name}: its bytes changed, sha256 is not {listed[name]}"
        for name in sorted(listed.keys() & present)
        if hash_file(folder / name) != listed[name]
    ]
    return problems


def _walk(folder: Path) -> tuple[set[str], list[str]]:
    """The regular files below a snapshot's folder, and what else is there, which has no place.

    A link may lead to bytes that somebody changes later, and it breaks when the folder is copied.
    """
    present: set[str] = set()
    problems = []
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            problems.append(f"{name}: is a link, not a file")
        elif path.is_dir():
            if not any(path.iterdir()):
                problems.append(f"{name}: is an empty folder, not listed in {SUMS}")
        elif path.is_file():
            present.add(name)
        else:
            problems.append(f"{name}: is no regular file")
    return present - {SUMS}, problems


def check_tables(folder: Path) -> list[str]:
    """What is wrong with a snapshot's tables: contracts, references, spans outside their text."""
    problems = _check_versions(folder)
    if problems:
        return problems
    tables: dict[str, pa.Table] = {}
    for name, contract in load_contracts().items():
        try:
            tables[name] = read_table(folder / "tables" / f"{name}.parquet", contract)
        except IntegrityError as e:
            problems.append(str(e))
    for name, table in tables.items():
        try:
            load_contracts()[name].check_references(table, tables)
        except IntegrityError as e:
            problems.append(str(e))
    return problems if problems else _check_spans(tables)


def _check_versions(folder: Path) -> list[str]:
    """Tables that another release made under another contract: whole, but not ours to judge."""
    tables = read_manifest(folder).get("tables")
    made = tables if isinstance(tables, dict) else {}
    return [
        f"tables/{name}.parquet: made by contract version {made[name]['contract']}, this release "
        f"has {contract.version}; verify it with the release that made it"
        for name, contract in load_contracts().items()
        if name in made and made[name]["contract"] != contract.version
    ]


def _check_spans(tables: Mapping[str, pa.Table]) -> list[str]:
    """Every span lies in its document's text, and what claims to be literal is literal."""
    texts = dict(zip(*_columns(tables["documents"], "document_id", "text"), strict=True))
    chunk_rows = tables["chunks"].select(["chunk_id", "document_id", "start", "end", "text"])
    document_of = {}
    problems = []
    for row in chunk_rows.to_pylist():
        document_of[row["chunk_id"]] = row["document_id"]
        if texts[row["document_id"]][row["start"] : row["end"]] != row["text"]:
            problems.append(f"chunks: {row['chunk_id']} is not document.text[start:end]")

    def stands(chunk_id: str, start: int, end: int, words: str | None) -> bool:
        text = texts[document_of[chunk_id]]
        if not 0 <= start < end <= len(text):
            return False
        return words is None or " ".join(text[start:end].split()) == words

    for row in tables["mentions"].to_pylist():
        if not stands(row["chunk_id"], row["start"], row["end"], row["text"]):
            problems.append(f"mentions: {row['mention_id']} does not stand at its span")
    for row in tables["claims"].to_pylist():
        if not row["spans"] or not all(
            stands(row["chunk_id"], s["start"], s["end"], None) for s in row["spans"]
        ):
            problems.append(f"claims: {row['claim_id']} has a span outside its document")
    for row in tables["raw_triples"].to_pylist():
        for part in ("head", "tail", "relation"):
            span = row[f"{part}_span"]
            words = None if part == "relation" else row[part]
            if span and not stands(row["chunk_id"], span["start"], span["end"], words):
                problems.append(f"raw_triples: {part} of {row['raw_triple_id']} is not at its span")
    for row in tables["instances"].to_pylist():
        named = [{"chunk_id": row["chunk_id"], **s} for s in _spans_of(row) if s]
        if not row["places"] or not all(
            p["chunk_id"] in document_of and stands(p["chunk_id"], p["start"], p["end"], None)
            for p in (row, *row["places"], *named)
        ):
            problems.append(f"instances: {row['instance_id']} has a span outside its document")
    return problems


def _spans_of(instance: Mapping[str, Any]) -> tuple[dict[str, int] | None, ...]:
    return instance["subject_span"], instance["object_span"]


def _columns(table: pa.Table, *names: str) -> list[list[str]]:
    return [table[name].to_pylist() for name in names]


def _require_intact(folder: Path) -> None:
    problems = check_bytes(folder)
    if problems:
        raise IntegrityError(
            f"snapshot {folder} exists and is damaged: {'; '.join(problems[:5])}. Nothing was "
            "changed. Move that folder away and run the build again"
        )
