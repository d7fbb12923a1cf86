"""What a warehouse holds, and what is wrong with it: bytes and tables of snapshots, and refs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from kpyramid.errors import IntegrityError
from kpyramid.keys import JsonValue, hash_bytes, hash_each
from kpyramid.storage.contracts import load_contracts, read_table
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import (
    RefEntry,
    list_entries,
    list_logs,
    list_numbers,
    list_refs,
    name_entry,
    read_entry,
)
from kpyramid.storage.snapshots import (
    MANIFEST,
    SNAPSHOT_DIGITS,
    SUMS,
    has_snapshot,
    identify_folder,
    read_manifest,
    read_manifests,
    require_format,
)


def list_snapshots(warehouse: Warehouse) -> list[dict[str, JsonValue]]:
    """One row per snapshot, newest commit first: id, refs at it, when committed, rows per table.

    `created` is null for a snapshot that no build moved a ref to. What is neither snapshot nor
    ref is left aside with a warning.
    """
    heads: dict[str, list[str]] = {}
    committed: dict[str, str] = {}
    for ref in list_refs(warehouse):
        entries = list_entries(warehouse, ref)
        heads.setdefault(entries[-1].snapshot, []).append(ref)
        for entry in entries:
            if entry.action == "build":
                committed[entry.snapshot] = max(committed.get(entry.snapshot, ""), entry.at)
    rows: list[dict[str, JsonValue]] = []
    for identifier, manifest in read_manifests(warehouse).items():
        tables = manifest.get("tables")
        counts = tables if isinstance(tables, dict) else {}
        rows.append(
            {
                "id": identifier,
                "refs": heads.get(identifier, []),
                "created": committed.get(identifier),
                "rows": {name: entry["rows"] for name, entry in counts.items()},
            }
        )
    return sorted(rows, key=lambda row: str(row["created"] or ""), reverse=True)


def check_bytes(folder: Path) -> list[str]:
    """What is wrong with a snapshot's bytes: its name, its list of files, each file's hash.

    A copy may have any name that is no id; what its id is, `identify_folder` says.
    """
    try:
        manifest = (folder / MANIFEST).read_bytes()
        # not splitlines: it takes a line end with one bit turned, a vertical tab, for one too
        *lines, end = (folder / SUMS).read_bytes().decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as e:
        return [f"{folder}: {e}"]
    problems = [f"{SUMS}: its last line has no end"] if end else []
    listed = {}
    for line in lines:
        digest, _, name = line.partition("  ")
        listed[name] = digest
    if hash_bytes(manifest)[:SNAPSHOT_DIGITS] != identify_folder(folder):
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
    both = sorted(listed.keys() & present)
    found = zip(both, hash_each([folder / name for name in both]), strict=True)
    return problems + [
        f"{name}: its bytes changed, sha256 is not {listed[name]}"
        for name, digest in found
        if digest != listed[name]
    ]


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
    """What is wrong with a snapshot's tables: contracts, references, spans outside their text.

    Raises:
        InputError: the snapshot is of a format that this release does not read.
    """
    require_format(read_manifest(folder), folder.name)
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
        # Tables of the version before lack a column that was added, which is read as empty.
        if name in made
        and contract.version - made[name]["contract"] not in {0, int(contract.is_extended)}
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


def check_refs(warehouse: Warehouse) -> list[str]:
    """What is wrong with the refs: entries that cannot be read, and logs that do not fit together.

    An entry names the snapshot before it as its parent, its order is not less than the one
    before, and no number is missing. The snapshot that a ref is at has to be there.
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
            if before and not has_snapshot(warehouse, before.snapshot):
                problems.append(f"ref {ref!r} is at snapshot {before.snapshot}: not there")
    return problems
