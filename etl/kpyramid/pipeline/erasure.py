"""Erasing a document: successors without it, then everything that holds it goes."""

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from kpyramid.errors import ConflictError, InputError, IntegrityError, SettingsError
from kpyramid.keys import ID_DIGITS
from kpyramid.llm.cache import ReplyCache
from kpyramid.pipeline.build import build
from kpyramid.pipeline.cache import Progress, Silence
from kpyramid.pipeline.models import open_replies
from kpyramid.settings import Settings
from kpyramid.storage.erasure import has_tombstone, keep_tombstone, load_erased
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.leases import list_held
from kpyramid.storage.publication import promote, remove_tag
from kpyramid.storage.refs import RefEntry, list_refs, read_head
from kpyramid.storage.results import FORMER, MARKER, REQUESTS
from kpyramid.storage.runs import list_runs, open_run
from kpyramid.storage.staging import name_process
from kpyramid.storage.trash import measure
from kpyramid.storage.verification import check_bytes, check_refs, check_tables
from kpyramid.storage.writing import sync_folder

# Facts of a document are spread over tables, caches and replies, and no id leads to all of them.
# So nothing is searched for words: what is kept is what comes of a corpus without the document.
# A stored result stays if a run without it names it, a row of the cache if a successor's build
# used it, a reply if one of these results rests on it. What cannot be told goes, and costs time.


@dataclass(frozen=True, slots=True)
class Found:
    """Where a document is: its rows, the snapshots, refs and tags that have it, and what goes.

    `documents`: rows of the table with its source or its text, as (id, source, sha256). `goes`:
    folders below the warehouse.
    """

    documents: tuple[tuple[str, str, str], ...]
    snapshots: tuple[str, ...]
    refs: tuple[str, ...]
    tags: tuple[str, ...]
    runs: tuple[str, ...]
    goes: tuple[Path, ...]
    bytes: int


@dataclass(frozen=True, slots=True)
class Done:
    """What an erasure came to: the new snapshot of each ref, how many replies of models went.

    `unnamed`: replies of a shared cache whose documents are not known, which stay.
    """

    found: Found
    successors: dict[str, str]
    replies: int
    unnamed: int


def find_document(warehouse: Warehouse, document_id: str) -> Found:
    """Where a document is, and what would go with it.

    Raises:
        InputError: no table of the warehouse has it, and it was not erased; or it is in a bucket.
        IntegrityError: a table cannot be read.
    """
    if warehouse.bucket:
        raise InputError(
            f"{warehouse.locate()}: only a warehouse in a folder can be erased from. Copy it to a "
            "folder, erase there, and copy it to an empty place of the bucket"
        )
    tables = {path: _read_documents(path) for path in _list_tables(warehouse)}
    seeds = [row for rows in tables.values() for row in rows if row[0] == document_id]
    if not seeds and not has_tombstone(warehouse, document_id):
        raise InputError(
            f"no snapshot and no result in {warehouse.root} has a document {document_id!r}; "
            "`kpyramid rejects list`, the table `documents` and the evidence of an answer name ids"
        )
    sources, texts = {row[1] for row in seeds}, {row[2] for row in seeds}
    known = load_erased(warehouse)

    def is_it(row: tuple[str, str, str]) -> bool:
        return row[1] in sources or row[2] in texts or known.holds(row[1], row[2])

    holding = {path for path, rows in tables.items() if any(map(is_it, rows))}
    rows = {row for found in tables.values() for row in found if is_it(row)}
    in_trash = warehouse.trash / "snapshots"
    snapshots = {path.parents[1] for path in holding if path.parent.name == "tables"}
    names = tuple(sorted(path.name for path in snapshots if path.parent != in_trash))
    heads = _list_heads(warehouse)
    runs = _list_unclean(warehouse, holding, set(names))
    goes = [warehouse.snapshots / name for name in names]
    goes += [warehouse.runs / name for name in runs]
    goes += _list_results(warehouse, runs)
    goes += [path for path in (warehouse.trash,) if path.is_dir()]
    return Found(
        tuple(sorted(rows)),
        names,
        tuple(r for r, head in heads.items() if head.snapshot in names and head.action != "tag"),
        tuple(r for r, head in heads.items() if head.snapshot in names and head.action == "tag"),
        runs,
        tuple(goes),
        sum(measure(path) for path in goes),
    )


def erase(
    warehouse: Warehouse,
    document_id: str,
    settings: Settings,
    *,
    workers: int = 1,
    progress: Progress | None = None,
) -> Done:
    """Erases a document; after a crash, or an error that was mended, the same call goes on.

    `settings` say where a model's replies are kept, and the engine, endpoint and budget; else each
    ref is built with those of its own run.

    Raises:
        ConflictError: a reader holds a snapshot that has it, or a batch is open.
        GateError: a successor was refused; the document is left out of every later build.
        InputError: there is no such document, or how a ref was built is not known.
        IntegrityError: what is left is damaged, or still has it.
    """
    found = find_document(warehouse, document_id)
    for row in found.documents or ():
        keep_tombstone(warehouse, *row)
    _require_free(warehouse, settings, found)
    former = warehouse.cache / FORMER
    if (warehouse.cache / "rows").is_dir() and found.refs:
        _set_aside(warehouse.cache / "rows", former)
    successors = _build_successors(warehouse, settings, found, workers, progress or Silence())
    found = replace(find_document(warehouse, document_id), refs=found.refs)
    for name in found.tags:
        remove_tag(warehouse, name)
    named, live = _list_requests(warehouse, found)
    # Before the results that name them: a call that died in between still knows whose they are.
    replies, unnamed = _drop_replies(warehouse, settings, named, live)
    for path in found.goes:
        _remove(warehouse, path)
    for path in (former, *(() if successors else (warehouse.cache / "rows",))):
        _remove(warehouse, path)
    _check(warehouse, document_id)
    return Done(found, successors, replies, unnamed)


def _list_tables(warehouse: Warehouse) -> Iterator[Path]:
    """Every stored table of documents."""
    for root in (warehouse.root, warehouse.trash):
        yield from sorted(root.glob("snapshots/*/tables/documents.parquet"))
        yield from sorted(root.glob("cache/results/ingest/*/documents.parquet"))


def _read_documents(path: Path) -> list[tuple[str, str, str]]:
    try:
        table = pq.read_table(path, columns=["document_id", "source", "sha256"], use_threads=False)
    except (OSError, ValueError) as e:
        raise IntegrityError(
            f"{path} cannot be read ({e}), so whether the document is in it is unknown and nothing "
            "was erased; restore it, or remove the folder it lies in"
        ) from e
    columns = (table[name].to_pylist() for name in table.column_names)
    return list(zip(*columns, strict=True))


def _list_heads(warehouse: Warehouse) -> dict[str, RefEntry]:
    heads = ((ref, read_head(warehouse, ref)) for ref in list_refs(warehouse))
    return {ref: head for ref, head in heads if head is not None}


def _list_unclean(warehouse: Warehouse, holding: Iterable[Path], gone: set[str]) -> tuple[str, ...]:
    """The runs that read the document, and those of which that cannot be told any more."""
    dirty = {path.parent.name for path in holding if path.parents[1].name == "ingest"}
    results = warehouse.cache / "results" / "ingest"
    unclean = []
    for run in list_runs(warehouse):
        name = str(run["run"])
        keys = dict(_read_marks(warehouse, name))
        if "ingest" not in keys:
            continue  # it has read nothing yet
        made = str(run["snapshot"] or "")
        is_there = (warehouse.snapshots / made).is_dir() and made not in gone and bool(made)
        result = keys["ingest"]
        if made in gone or result in dirty or not (is_there or (results / result).is_dir()):
            unclean.append(name)
    return tuple(sorted(unclean))


def _read_marks(warehouse: Warehouse, run: str) -> Iterator[tuple[str, str]]:
    """The stages of a run that are done, with the folder of each one's result."""
    for path in sorted((warehouse.runs / run / "stages").glob("*.json")):
        try:
            yield path.stem, json.loads(path.read_bytes())["key"][:ID_DIGITS]
        except (OSError, ValueError, KeyError, TypeError) as e:
            raise IntegrityError(
                f"mark {path} cannot be read ({e!r}), so what it rests on is unknown and nothing "
                "was erased; restore it, or remove the run's folder"
            ) from e


def _list_results(warehouse: Warehouse, unclean: Sequence[str]) -> list[Path]:
    """The stored results that no other run names."""
    clean = {str(run["run"]) for run in list_runs(warehouse)} - set(unclean)
    kept = {f"{stage}/{key}" for name in clean for stage, key in _read_marks(warehouse, name)}
    results = warehouse.cache / "results"
    found = (path for path in sorted(results.glob("*/*")) if path.is_dir())
    return [path for path in found if path.relative_to(results).as_posix() not in kept]


def _require_free(warehouse: Warehouse, settings: Settings, found: Found) -> None:
    """Passes when nobody reads what has to go, and no batch may bring it back."""
    going = set(found.snapshots)
    holders = [name for name, snapshot in list_held(warehouse).items() if snapshot in going]
    if holders:
        raise ConflictError(
            f"{', '.join(holders)} hold a snapshot that has the document. Later builds leave it "
            "out, nothing else is done: have the readers go on to another snapshot, then erase it "
            "again"
        )
    if settings.asks_model:
        from kpyramid.llm.batch.jobs import OPEN, drop_asked, read_records

        blobs = open_replies(warehouse, settings)
        records = read_records(blobs)
        if any(record.state in OPEN for record in records):
            raise ConflictError(
                "a batch is open that may carry the document. Later builds leave it out, nothing "
                "else is done: `kpyramid batch collect` or `cancel`, then erase it again"
            )
        for record in records:
            drop_asked(blobs, record)


def _set_aside(rows: Path, former: Path) -> None:
    """Puts the row cache aside, beside what an erasure that died put there."""
    for folder in sorted(rows.glob("*/*")):
        target = former / folder.relative_to(rows)
        target.mkdir(parents=True, exist_ok=True)
        for path in folder.iterdir():
            path.replace(target / path.name)
    shutil.rmtree(rows)


def _build_successors(
    warehouse: Warehouse, settings: Settings, found: Found, workers: int, progress: Progress
) -> dict[str, str]:
    """The new snapshot of each ref that has the document: built as its last one was."""
    made: dict[str, str] = {}
    successors: dict[str, str] = {}
    heads = _list_heads(warehouse)
    # a ref that a build moved first: those that people moved to the same snapshot follow it
    for ref in sorted(found.refs, key=lambda name: (heads[name].action != "build", name)):
        head = heads[ref]
        if head.snapshot in made:
            promote(warehouse, ref, made[head.snapshot], at=head.at)
        else:
            made[head.snapshot] = _build_again(warehouse, settings, ref, head, workers, progress)
        successors[ref] = made[head.snapshot]
    return successors


def _build_again(
    warehouse: Warehouse,
    settings: Settings,
    ref: str,
    head: RefEntry,
    workers: int,
    progress: Progress,
) -> str:
    try:
        run = open_run(warehouse, head.run)
    except (InputError, SettingsError) as e:
        raise InputError(
            f"how ref {ref!r} was built is not known any more ({e}). Move it to a snapshot without "
            f"the document, `kpyramid build CORPUS --ref {ref}`, then erase it again"
        ) from e
    outcome = build(
        run.corpus,
        warehouse,
        run.settings.with_operations(settings),
        ref=ref,
        order=head.order,
        allow_shrink=True,
        workers=workers,
        progress=progress,
    )
    return outcome.snapshot


def _list_requests(warehouse: Warehouse, found: Found) -> tuple[set[str], set[str]]:
    """The replies that results rest on which go, and which stay."""
    named: set[str] = set()
    live: set[str] = set()
    going = set(found.goes)
    results = [*(warehouse.cache / "results").glob(f"*/*/{REQUESTS}")]
    results += (warehouse.trash / "cache" / "results").glob(f"*/*/{REQUESTS}")
    for path in results:
        is_going = path.parent in going or warehouse.trash in path.parents
        (named if is_going else live).update(json.loads(path.read_bytes()))
    return named, live


def _drop_replies(
    warehouse: Warehouse, settings: Settings, named: set[str], live: set[str]
) -> tuple[int, int]:
    """How many replies went, and how many of a shared cache stay that no result here names.

    Those of the warehouse's own cache that nothing names go too: whose they are is not known.
    """
    cache = ReplyCache(open_replies(warehouse, settings))
    is_own = settings.llm.cache is None
    keys = [key for key, _ in cache.list_replies()]
    gone = [key for key in keys if key not in live and (is_own or key in named)]
    for key in gone:
        cache.drop_reply(key)
    for entry in [*cache.list_failures()]:
        if entry.failure.key not in live:
            cache.drop_failure(entry.failure.key)
    unnamed = 0 if is_own else len(set(keys) - live - named)
    return len(gone), unnamed


def _remove(warehouse: Warehouse, path: Path) -> None:
    """Removes a folder so that a crash leaves it where nobody takes it for whole."""
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
    """Passes when nothing has it and every ref's snapshot is whole."""
    left = find_document(warehouse, document_id)
    problems = [f"still there: {path}" for path in left.goes if path.parent == warehouse.snapshots]
    problems += [f"the document is in {len(left.documents)} rows"] if left.documents else []
    problems += check_refs(warehouse)
    for head in _list_heads(warehouse).values():
        folder = warehouse.snapshots / head.snapshot
        problems += check_bytes(folder) or check_tables(folder)
    if problems:
        raise IntegrityError("; ".join(problems[:5]))
