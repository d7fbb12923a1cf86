"""The snapshots of a warehouse, and the problems of their bytes, tables and refs."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.errors import IntegrityError
from kpyramid.keys import JsonValue, hash_bytes, hash_file
from kpyramid.numerics.arrays import Integers
from kpyramid.storage.contracts import Contract, find_rows, load_contracts, read_blocks
from kpyramid.storage.items import do_at_once
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import list_entries, list_heads
from kpyramid.storage.snapshots import (
    MANIFEST,
    SNAPSHOT_DIGITS,
    SUMS,
    identify_folder,
    list_table,
    read_manifest,
    read_manifests,
    require_format,
)


def list_snapshots(warehouse: Warehouse) -> list[dict[str, JsonValue]]:
    """One row per snapshot, newest commit first: id, its refs, commit time, rows per table.

    `created` is null for a snapshot that no build moved a ref to. Other files are skipped with a
    warning.
    """
    heads: dict[str, list[str]] = {}
    committed: dict[str, str] = {}
    for ref in list_heads(warehouse):
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
    """Problems of a snapshot's bytes: its name, its list of files, each file's hash.

    A copy may have any name that is no id; see `identify_folder`.
    """
    try:
        manifest = (folder / MANIFEST).read_bytes()
        # not splitlines: it takes a line end with one bit turned, a vertical tab, for one too
        *lines, end = (folder / SUMS).read_bytes().decode("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as e:
        return [f"{folder}: {e}"]
    problems = [f"{SUMS}: its last line has no end"] if end else []
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
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
    digests = zip(both, do_at_once(hash_file, [folder / name for name in both]), strict=True)
    return problems + [
        f"{name}: its bytes changed, sha256 is not {listed[name]}"
        for name, digest in digests
        if digest != listed[name]
    ]


def require_whole(folder: Path, advice: str, place: str | Path | None = None) -> None:
    """Passes when a snapshot's bytes are undamaged; `place`: its name in messages.

    Raises:
        IntegrityError: they are not; ends with the advice.
    """
    if problems := check_bytes(folder):
        listed = "; ".join(problems[:5])
        raise IntegrityError(f"snapshot {place or folder} is damaged: {listed}{advice}")


def _walk(folder: Path) -> tuple[set[str], list[str]]:
    """The regular files below a snapshot's folder, and the problems: all other entries.

    A link may point to bytes that change later, and it breaks when the folder is copied.
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
    """Problems of a snapshot's tables: contracts, references, spans outside their text.

    Raises:
        InputError: the snapshot is of a format that this release does not read.
    """
    require_format(read_manifest(folder), folder.name)
    problems = _check_versions(folder)
    if problems:
        return problems

    def judge(check: Callable[[Path, Contract], None]) -> None:
        for contract in load_contracts().values():
            try:
                check(folder, contract)
            except IntegrityError as e:
                problems.append(str(e))

    judge(_check_table)
    if not problems:
        judge(_check_references)
    return problems or _check_spans(folder)


def _check_table(folder: Path, contract: Contract) -> None:
    """Passes when a table satisfies its contract.

    Raises:
        IntegrityError: it is not; names the file.
    """
    do_at_once(contract.check_file, list_table(folder, contract.table))
    contract.check_key(_read_columns(folder, contract.table, contract.key))


def _check_references(folder: Path, contract: Contract) -> None:
    """Passes when all references of a table have their rows.

    Raises:
        IntegrityError: it is not; names the column and the value.
    """
    references = {c.name: c.references.split(".") for c in contract.columns if c.references}
    if not references:
        return
    known = {table: _read_columns(folder, table, [key]) for table, key in references.values()}
    rows = _read_columns(folder, contract.table, sorted({*references, *contract.key}))
    contract.check_references(rows, known)


def _read_columns(folder: Path, table: str, columns: Sequence[str]) -> pa.Table:
    """Some columns of a table."""
    return pa.concat_tables(_walk_blocks(folder, table, columns))


def _walk_blocks(
    folder: Path, table: str, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    for path in list_table(folder, table):
        yield from read_blocks(path, columns)


def _check_versions(folder: Path) -> list[str]:
    """Problems: tables made under another version of their contract, which are not judged."""
    tables = read_manifest(folder).get("tables")
    made = tables if isinstance(tables, dict) else {}
    return [
        f"tables/{name}.parquet: made by contract version {made[name]['contract']}, this release "
        f"has {contract.version}; verify it with the release that made it"
        for name, contract in load_contracts().items()
        if name in made and made[name]["contract"] != contract.version
    ]


def _check_spans(folder: Path) -> list[str]:
    """Problems: spans outside their document's text, and words that differ from the text."""
    documents = _read_columns(folder, "documents", ["document_id", "text"])
    places = _Places(documents, _read_columns(folder, "chunks", ["chunk_id", "document_id"]))
    problems: list[str] = []

    def add(table: str, block: pa.Table, odd: Integers, problem: str) -> None:
        keys = block.column(0)
        problems.extend(f"{table}: {problem.format(keys[row])}" for row in np.unique(odd).tolist())

    for chunks in _walk_blocks(folder, "chunks"):
        odd = places.find_odd(chunks["chunk_id"], chunks, chunks["text"], is_exact=True)
        add("chunks", chunks, odd, "{} is not document.text[start:end]")
    for mentions in _walk_blocks(folder, "mentions"):
        odd = places.find_odd(mentions["chunk_id"], mentions, mentions["text"])
        add("mentions", mentions, odd, "{} does not stand at its span")
    for claims in _walk_blocks(folder, "claims"):
        odd = places.find_odd_lists(claims["spans"], claims["chunk_id"])
        add("claims", claims, odd, "{} has a span outside its document")
    for raw in _walk_blocks(folder, "raw_triples"):
        for part in ("head", "tail", "relation"):
            words = None if part == "relation" else raw[part]
            odd = places.find_odd(raw["chunk_id"], raw[f"{part}_span"], words)
            add("raw_triples", raw, odd, f"{part} of {{}} is not at its span")
    for instances in _walk_blocks(folder, "instances"):
        chunk_ids = instances["chunk_id"]
        columns = (instances, instances["subject_span"], instances["object_span"])
        outside = [*(places.find_odd(chunk_ids, spans) for spans in columns)]
        odd = np.concatenate([*outside, places.find_odd_lists(instances["places"])])
        add("instances", instances, odd, "{} has a span outside its document")
    return problems


class _Places:
    """The texts of documents, and the document of each chunk."""

    def __init__(self, documents: pa.Table, chunks: pa.Table) -> None:
        self._texts: list[str] = documents["text"].to_pylist()
        self._lengths = np.array([*map(len, self._texts), 0])  # the last: of no document
        self._chunks = chunks["chunk_id"].combine_chunks()
        keys = documents["document_id"].combine_chunks()
        self._documents = np.append(find_rows(chunks["document_id"], keys), -1)

    def find_odd(
        self,
        chunk_ids: pa.ChunkedArray | pa.Array,
        spans: Any,
        words: pa.ChunkedArray | None = None,
        *,
        is_exact: bool = False,
    ) -> Integers:
        """The rows whose span is outside the text or has other words; null is no span.

        `spans` has columns, or fields, `start` and `end`. White space in words is ignored unless
        `is_exact`.
        """
        if isinstance(spans, pa.Table):
            rows = np.arange(len(spans))
            starts, ends = (_list_numbers(spans[name]) for name in ("start", "end"))
        else:
            rows = np.flatnonzero(spans.is_valid())
            starts, ends = (
                _list_numbers(pc.struct_field(spans, name))[rows] for name in ("start", "end")
            )
        documents = self._documents[find_rows(chunk_ids, self._chunks)][rows]
        inside = (starts >= 0) & (starts < ends) & (ends <= self._lengths[documents])
        odd: Integers = rows[~inside]
        if words is None:
            return odd
        columns = (values[inside].tolist() for values in (rows, documents, starts, ends))
        stated = words.take(pa.array(rows[inside])).to_pylist()
        differing = [
            row
            for row, document, start, end, text in zip(*columns, stated, strict=True)
            if (actual := self._texts[document][start:end]) != text
            and (is_exact or " ".join(actual.split()) != text)
        ]
        return np.concatenate([odd, np.array(differing, np.int64)])

    def find_odd_lists(
        self, lists: pa.ChunkedArray, chunk_ids: pa.ChunkedArray | None = None
    ) -> Integers:
        """The rows without a span, and those with one outside; spans or rows name the chunk."""
        held = lists.combine_chunks()
        owners = _list_numbers(pc.list_parent_indices(held))
        spans = pc.list_flatten(held)
        if chunk_ids is None:
            chunk_ids = pc.struct_field(spans, "chunk_id")
        else:
            chunk_ids = chunk_ids.take(pa.array(owners))
        empty = np.flatnonzero(np.bincount(owners, minlength=len(held)) == 0)
        return np.concatenate([empty, owners[self.find_odd(chunk_ids, spans)]])


def _list_numbers(values: pa.ChunkedArray | pa.Array) -> Integers:
    """The values as integers, -1 for null."""
    return np.asarray(pc.fill_null(values.cast(pa.int64()), -1).to_numpy())
