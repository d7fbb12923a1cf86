"""Erasing a document: builds successors without it, then deletes all that holds it."""

import json
import logging
import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kpyramid.errors import ConflictError, InputError, IntegrityError, SettingsError
from kpyramid.llm.cache import ReplyCache
from kpyramid.pipeline.build import build
from kpyramid.pipeline.models import open_replies
from kpyramid.pipeline.report.index import INDEX
from kpyramid.pipeline.stage import Progress
from kpyramid.settings import Settings
from kpyramid.storage.copies import open_stored
from kpyramid.storage.erasure import has_tombstone, keep_tombstone, load_erased
from kpyramid.storage.items import do_at_once
from kpyramid.storage.layout import Warehouse, clean_staging, name_process
from kpyramid.storage.leases import list_held
from kpyramid.storage.publication import promote, remove_tag
from kpyramid.storage.refs import RefEntry, check_refs, list_heads
from kpyramid.storage.results import FORMER, MARKER, REQUESTS
from kpyramid.storage.retention import read_marks
from kpyramid.storage.runs import Run, find_damaged, list_runs, open_run
from kpyramid.storage.snapshots import MANIFEST, has_snapshot
from kpyramid.storage.store import Blob, BlobStore, FolderStore
from kpyramid.storage.verification import check_bytes, check_tables
from kpyramid.storage.writing import sync_folder

log = logging.getLogger(__name__)

# Facts of a document are spread over tables, caches and replies, and no id leads to all of them.
# So nothing is searched for words: all that a corpus without the document yields is kept.
# A stored result stays if a run without it names it, a row of the cache if a successor's build
# used it, a reply if one of these results rests on it. What cannot be told goes, and costs time.


@dataclass(frozen=True, slots=True)
class Traces:
    """Where a document is: rows, snapshots, refs, tags and caches; and what is deleted.

    `documents`: rows of the table with its source or its text, as (id, source, sha256). `goes`:
    names in the warehouse below which all is deleted. `caches`: shared places with replies of
    models, as the settings and the records of runs name them.
    """

    documents: tuple[tuple[str, str, str], ...]
    snapshots: tuple[str, ...]
    refs: tuple[str, ...]
    tags: tuple[str, ...]
    runs: tuple[str, ...]
    goes: tuple[str, ...]
    bytes: int
    caches: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Done:
    """The outcome of an erasure: the new snapshot of each ref, the number of replies deleted.

    `unnamed`: number of replies in a shared cache whose documents are unknown; they stay.
    """

    found: Traces
    successors: dict[str, str]
    replies: int
    unnamed: int


def find_document(warehouse: Warehouse, document_id: str) -> Traces:
    """Where a document is, and what would be deleted with it.

    Raises:
        InputError: no table of the warehouse has it, and it was not erased.
        IntegrityError: a table cannot be read.
    """
    stored = _list_stored(warehouse)
    tables = {name: _read_documents(warehouse, name) for name in stored if _TABLE.fullmatch(name)}
    seeds = [row for rows in tables.values() for row in rows if row[0] == document_id]
    if not seeds and not has_tombstone(warehouse, document_id):
        raise InputError(
            f"no snapshot and no result in {warehouse.locate()} has a document {document_id!r}; "
            "`kpyramid rejects`, the table `documents` and the evidence of an answer name ids"
        )
    sources, texts = {row[1] for row in seeds}, {row[2] for row in seeds}
    known = load_erased(warehouse)

    def is_it(row: tuple[str, str, str]) -> bool:
        return row[1] in sources or row[2] in texts or known.holds(row[1], row[2])

    holding = [name.split("/") for name, rows in tables.items() if any(map(is_it, rows))]
    rows = {row for table in tables.values() for row in table if is_it(row)}
    names = tuple(sorted({parts[1] for parts in holding if parts[0] == "snapshots"}))
    dirty = {parts[-2] for parts in holding if "ingest" in parts}
    heads = list_heads(warehouse)
    results = {_name_folder(name) for name in stored if _RESULT.match(name)}
    damaged = find_damaged(warehouse)
    for problem in damaged.values():
        log.warning("%s. Whether the document is in that run is unknown, so it goes", problem)
    unclean = _list_unclean(warehouse, results, dirty, set(names), damaged)
    runs = tuple(sorted({*unclean, *damaged}))
    clean = {str(run["run"]) for run in list_runs(warehouse)} - set(runs)
    goes = {*(f"snapshots/{name}" for name in names), *(f"runs/{name}" for name in runs)}
    goes |= results - {f"cache/results/{key}" for key in read_marks(warehouse, clean)}
    goes |= {"trash"} if any(name.startswith("trash/") for name in stored) else set()
    if warehouse.bucket:  # there the trash holds marks: what lacks its own lies in it, or is half
        there = {blob.name for blob in _list_blobs(warehouse.store)}
        marked = {name.rpartition("/")[0] for name in there if name.endswith(_MARKS)}
        goes |= {_name_folder(name) for name in there} - marked
    return Traces(
        tuple(sorted(rows)),
        names,
        tuple(r for r, head in heads.items() if head.snapshot in names and head.action != "tag"),
        tuple(r for r, head in heads.items() if head.snapshot in names and head.action == "tag"),
        runs,
        tuple(sorted(goes)),
        sum(size for name, size in stored.items() if _name_folder(name) in goes),
        _list_caches(warehouse),
    )


def erase(
    warehouse: Warehouse,
    document_id: str,
    settings: Settings,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> Done:
    """Erases a document; after a crash, or a corrected error, the same call continues.

    `settings` name the cache of the model's replies, engine, endpoint and budget; all else of each
    ref's build is taken from the settings of its own run.

    Raises:
        ConflictError: a reader holds a snapshot that has it, or a batch is open.
        GateError: a successor was refused; the document is left out of every later build.
        InputError: there is no such document, or how a ref was built is not known.
        IntegrityError: what is left is damaged, or still has it.
    """
    traces = find_document(warehouse, document_id)
    for row in traces.documents or ():
        keep_tombstone(warehouse, *row)
    clean_staging(warehouse)
    caches = [
        replace(settings, llm=replace(settings.llm, cache=place))
        for place in sorted({settings.llm.cache, *traces.caches, None}, key=str)
    ]
    _require_free(warehouse, caches, traces)
    if traces.refs:
        _set_aside(warehouse)
    successors = _build_successors(warehouse, settings, traces, workers, progress or Progress())
    traces = replace(find_document(warehouse, document_id), refs=traces.refs)
    for name in traces.tags:
        remove_tag(warehouse, name)
    named, live = _list_requests(warehouse, traces)
    # Before the results that name them: a call that died in between still knows whose they are.
    dropped = [_drop_replies(warehouse, each, named, live) for each in caches]
    for name in (*traces.goes, f"cache/{FORMER}", *(() if successors else ("cache/rows",))):
        _remove(warehouse, name)
    (warehouse.root / INDEX).unlink(missing_ok=True)  # `kpyramid report` writes it again
    _check(warehouse, document_id)
    replies, unnamed = map(sum, zip(*dropped, strict=True))
    return Done(traces, successors, replies, unnamed)


_TABLE = re.compile(
    r"(trash/)?(snapshots/[^/]+/tables|cache/results/ingest/[^/]+)/documents\.parquet"
)
_RESULT = re.compile(r"cache/results/[^/]+/[^/]+/")
_MARKS = (f"/{MANIFEST}", "/run.json", f"/{MARKER}")
"""Files that make a folder of a bucket complete."""


def _list_stores(warehouse: Warehouse) -> list[BlobStore]:
    """The store of the warehouse, and for a bucket the local copies of it."""
    return [warehouse.store, *([FolderStore(warehouse.root)] if warehouse.bucket else [])]


def _list_blobs(store: BlobStore) -> Iterator[Blob]:
    for place in ("snapshots", "runs", "cache/results", "trash"):
        yield from store.list(place)


def _list_stored(warehouse: Warehouse) -> dict[str, int]:
    """Sizes in bytes, by name, of what may hold a document, besides rows and replies."""
    stores = reversed(_list_stores(warehouse))
    return {blob.name: blob.size for store in stores for blob in _list_blobs(store)}


def _name_folder(name: str) -> str:
    """The folder that a stored name belongs to: a snapshot, a run, a result, or the trash."""
    parts = name.split("/")
    return "/".join(parts[: {"cache": 4, "trash": 1}.get(parts[0], 2)])


def _list_caches(warehouse: Warehouse) -> tuple[str, ...]:
    """The shared places of replies that the records of runs name."""
    names = [f"runs/{run['run']}/run.json" for run in list_runs(warehouse)]
    records = [json.loads(data) for data in warehouse.read_all(names) if data]
    places = {record["settings"].get("llm", {}).get("cache") for record in records}
    return tuple(sorted(place for place in places if place))


def _read_documents(warehouse: Warehouse, name: str) -> list[tuple[str, str, str]]:
    path: Path | pa.BufferReader = warehouse.root / name
    try:
        if warehouse.bucket and (data := warehouse.bucket.read(name)) is not None:
            path = pa.BufferReader(data)
        table = pq.read_table(path, columns=["document_id", "source", "sha256"], use_threads=False)
    except (OSError, ValueError) as e:
        raise IntegrityError(
            f"{warehouse.locate(name)} cannot be read ({e}), so whether the document is in it is "
            "unknown and nothing was erased; restore it, or remove the folder it lies in"
        ) from e
    columns = (table[name].to_pylist() for name in table.column_names)
    return list(zip(*columns, strict=True))


def _list_unclean(
    warehouse: Warehouse,
    results: Collection[str],
    dirty: Collection[str],
    gone: Collection[str],
    damaged: Collection[str],
) -> list[str]:
    """The runs that read the document, and those of which this is unknown."""
    unclean = []
    for run in list_runs(warehouse):
        name, made = str(run["run"]), str(run["snapshot"] or "")
        if name in damaged:
            continue
        read = [m for m in read_marks(warehouse, [name]) if m.startswith("ingest/")]
        if not read:  # it has read nothing yet; its log may name a document
            unclean += [name] if run["status"] != "running" else []
            continue
        is_known = f"cache/results/{read[0]}" in results or (
            made and made not in gone and has_snapshot(warehouse, made)
        )
        if made in gone or read[0].partition("/")[2] in dirty or not is_known:
            unclean.append(name)
    return unclean


def _require_free(warehouse: Warehouse, caches: Sequence[Settings], traces: Traces) -> None:
    """Passes when no reader holds what is to be deleted, and no open batch may restore it."""
    going = set(traces.snapshots)
    holders = [name for name, snapshot in list_held(warehouse).items() if snapshot in going]
    if holders:
        raise ConflictError(
            f"{', '.join(holders)} hold a snapshot that has the document. Later builds leave it "
            "out; nothing else was done. Let the readers open another snapshot, then erase it "
            "again"
        )
    from kpyramid.llm.batch.jobs import OPEN, drop_asked, read_records  # loads openai

    for settings in caches:
        blobs = open_replies(warehouse, settings)
        records = read_records(blobs)
        if any(record.state in OPEN for record in records):
            raise ConflictError(
                "a batch is open that may carry the document. Later builds leave it out, nothing "
                "else is done: `kpyramid batch collect` or `cancel`, then erase it again"
            )
        for record in records:
            drop_asked(blobs, record)


def _set_aside(warehouse: Warehouse) -> None:
    """Moves the row cache aside, to what a crashed erasure put there; a bucket's is copied too.

    Builds take from there what they use: see `RowCache`.
    """
    rows, bucket = warehouse.cache / "rows", warehouse.bucket
    if bucket:
        bucket.download([*bucket.list("cache/rows")], "cache/rows", rows)
    for folder in sorted(rows.glob("*/*")):
        target = warehouse.cache / FORMER / folder.relative_to(rows)
        target.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            path.replace(target / path.name)
    _remove(warehouse, "cache/rows")


def _build_successors(
    warehouse: Warehouse, settings: Settings, traces: Traces, workers: int, progress: Progress
) -> dict[str, str]:
    """Builds the new snapshot of each ref that has the document, with its last settings."""
    made: dict[str, str] = {}
    successors: dict[str, str] = {}
    heads = list_heads(warehouse)
    # a ref that a build moved first: those that people moved to the same snapshot follow it
    for ref in sorted(traces.refs, key=lambda name: (heads[name].action != "build", name)):
        head = heads[ref]
        if head.snapshot in made:
            promote(warehouse, ref, made[head.snapshot], at=head.at)
        else:
            run = _open_last(warehouse, ref, head)
            made[head.snapshot] = build(
                run.corpus,
                warehouse,
                run.settings.with_operations(settings),
                ref=ref,
                order=head.order,
                allow_shrink=True,
                workers=workers,
                progress=progress,
            ).snapshot
        successors[ref] = made[head.snapshot]
    return successors


def _open_last(warehouse: Warehouse, ref: str, head: RefEntry) -> Run:
    try:
        return open_run(warehouse, head.run)
    except (InputError, IntegrityError, SettingsError) as e:
        raise InputError(
            f"how ref {ref!r} was built is not known any more ({e}). Move it to a snapshot without "
            f"the document, `kpyramid build CORPUS --ref {ref}`, then erase it again"
        ) from e


def _list_requests(warehouse: Warehouse, traces: Traces) -> tuple[set[str], set[str]]:
    """The keys of replies that deleted results rest on, and of those that remaining ones do."""
    named: set[str] = set()
    live: set[str] = set()
    for store in _list_stores(warehouse):
        for blob in _list_blobs(store):
            if blob.name.endswith(f"/{REQUESTS}"):
                keys = json.loads(store.read(blob.name) or b"[]")
                (named if _name_folder(blob.name) in traces.goes else live).update(keys)
    return named, live


def _drop_replies(
    warehouse: Warehouse, settings: Settings, named: set[str], live: set[str]
) -> tuple[int, int]:
    """Deletes replies; returns how many, and how many unnamed ones of a shared cache stay.

    In the warehouse's own cache unnamed replies are deleted too: their documents are unknown.
    """
    cache = ReplyCache(open_replies(warehouse, settings))
    is_private = settings.llm.cache is None
    keys = [key for key, _ in cache.list_replies()]
    gone = [key for key in keys if key not in live and (is_private or key in named)]
    for key in gone:
        cache.drop_reply(key)
    for entry in [*cache.list_failures()]:
        if entry.failure.key not in live:
            cache.drop_failure(entry.failure.key)
    unnamed = 0 if is_private else len(set(keys) - live - named)
    return len(gone), unnamed


def _remove(warehouse: Warehouse, name: str) -> None:
    """Deletes what is below a name, so that after a crash nothing is taken for complete."""
    bucket, path = warehouse.bucket, warehouse.root / name
    if bucket:
        names = [blob.name for blob in bucket.list(name)]
        for mark in filter(lambda each: each.endswith(_MARKS), names):
            bucket.delete(mark)
        do_at_once(bucket.delete, names)
        bucket.complete.discard(name)
    if not path.exists():
        return
    if (marker := path / MARKER).is_file():
        marker.unlink()
    if path.parent == warehouse.snapshots:
        # A name that the next build clears away when this process died.
        target = warehouse.staging / f"{name_process()}.{path.name}"
        target.parent.mkdir(parents=True, exist_ok=True)
        path = path.replace(target)
    shutil.rmtree(path)
    sync_folder(path.parent)


def _check(warehouse: Warehouse, document_id: str) -> None:
    """Passes when nothing holds the document and every ref's snapshot is whole."""
    left = find_document(warehouse, document_id)
    problems = [f"snapshot {name} is still there" for name in left.snapshots]
    problems += [f"the document is in {len(left.documents)} rows"] if left.documents else []
    problems += check_refs(warehouse)
    for snapshot in sorted({head.snapshot for head in list_heads(warehouse).values()}):
        with open_stored(warehouse, snapshot) as folder:
            problems += check_bytes(folder) or check_tables(folder)
    if problems:
        raise IntegrityError("; ".join(problems[:5]))
