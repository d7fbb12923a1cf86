"""What the tasks of a night do; each logs the command that does the same by hand."""

import json
import logging
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

from kpyramid.errors import (
    FINAL,
    ConflictError,
    EndpointError,
    GateError,
    OvertakenError,
    PyramidError,
    RefusedError,
)
from kpyramid.keys import JsonValue
from kpyramid.pipeline.airflow.corpora import (
    MOST_SHARDS,
    Corpus,
    DagRun,
    plan_night,
    require_source,
)
from kpyramid.pipeline.build import call_stage
from kpyramid.pipeline.cache import CachedEmbedder, Context
from kpyramid.pipeline.fingerprints import walk_stored
from kpyramid.pipeline.models import Looker
from kpyramid.pipeline.report.course import describe_mark
from kpyramid.pipeline.runner import read_parts
from kpyramid.pipeline.stage import find_stage
from kpyramid.pipeline.stages.extract import list_passages
from kpyramid.pipeline.stages.ingest import list_unread
from kpyramid.pipeline.stages.tables import title_chunks
from kpyramid.pipeline.wiring import open_extractor
from kpyramid.settings import load_settings
from kpyramid.snapshot import export as exporting
from kpyramid.snapshot.snapshot import hold_snapshot
from kpyramid.snapshot.view import EVERYTHING, PUBLIC
from kpyramid.storage.archive import Exported, keep_note, list_exports, remove_export
from kpyramid.storage.copies import is_there, remove, write_at
from kpyramid.storage.former import find_former
from kpyramid.storage.layout import Warehouse, is_address, name_place, open_warehouse
from kpyramid.storage.leases import hold
from kpyramid.storage.publication import commit
from kpyramid.storage.publication import promote as promote_ref
from kpyramid.storage.refs import find_entry, list_entries, list_undone, name_now, read_head
from kpyramid.storage.runs import Run, StageMark, open_run, read_mark
from kpyramid.storage.snapshots import has_snapshot
from kpyramid.storage.writing import write_durably

log = logging.getLogger(__name__)

_FEW = 24
"""New passages below which starting a shard costs more than it saves."""
NEWEST = "newest.json"
"""File in an export's folder that names the snapshot to take."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A night's run, the stages whose results are stored already, and the shards of the rest.

    `counts`: of each stage that is done.
    """

    run: str
    ref: str
    stored: tuple[str, ...]
    shards: tuple[str, ...]
    counts: Mapping[str, Mapping[str, JsonValue]]


def plan(
    corpus: Corpus,
    dag_run: DagRun,
    params: Mapping[str, object],
    warehouse: str,
) -> Plan:
    """Starts a night's run, reads the corpus, and finds what there is to compute.

    Stages whose results are stored are done here, all at once. What of the corpus cannot be read is
    named in a warning.

    Raises:
        InputError: there is no corpus of that day.
        SettingsError: the settings cannot be used; all that is wrong is said.
    """
    file = corpus.settings
    settings = load_settings(file)
    night = plan_night(corpus, dag_run, params, settings=repr(settings))
    place = ["--run", night.run, "--warehouse", warehouse]
    given = ["--corpus", night.source, "--ref", night.ref, "--order", night.order]
    given += ["--settings", file] if file else []
    given += ["--allow-shrink"] if night.allow_shrink else []
    log.info("the day is %s, the corpus %s, the ref %s", night.day, night.source, night.ref)
    with telling_how_to_go_on("stage", "ingest", *place, *given):
        if night.ref == corpus.candidate != corpus.ref:
            _start_candidate(corpus, open_warehouse(warehouse))
        read = call_stage(
            "ingest",
            run=night.run,
            warehouse=warehouse,
            corpus=night.source,
            settings_file=file,
            ref=night.ref,
            order=night.order,
            allow_shrink=night.allow_shrink,
            workers=corpus.declared.workers,
            check=lambda: require_source(corpus, night.source, night.day),
        )
        run = open_run(open_warehouse(warehouse), night.run)
        _name_unread(run, warehouse)
        marks = [read, call_stage("chunk", run=night.run, warehouse=warehouse)]
        former = find_former(run.warehouse, run.former)
        walked = [*walk_stored(run.warehouse, run.settings, read.details["corpus"], former)]
        stored = [stage.name for stage, _ in walked[len(marks) :]]
        marks += [call_stage(name, run=night.run, warehouse=warehouse) for name in stored]
        most = _count_new(run, {"resolve", "embed"} - {*stored}) // _FEW
    count = min(corpus.declared.shards, most, MOST_SHARDS)
    shards = tuple(f"{index}/{count}" for index in range(count)) if count > 1 else ()
    log.info("stored: %s; shards: %d", ", ".join(stored) or "nothing", len(shards))
    counts = {mark.stage: describe_mark(mark) for mark in marks}
    return Plan(night.run, night.ref, tuple(stored), shards, counts)


def _start_candidate(corpus: Corpus, place: Warehouse) -> None:
    """Starts the candidate at the ref's snapshot, so that gates compare a night with that."""
    head = read_head(place, corpus.ref)
    if head is not None:
        promote_ref(place, corpus.candidate, head.snapshot, at=name_now())


def _name_unread(run: Run, warehouse: str) -> None:
    unread = list_unread(read_parts(run, find_stage("chunk"), "rejects"))
    for kind in unread:
        log.warning("not read: %s", kind)
    if unread:
        count = sum(len(kind.refused) for kind in unread)
        place = shlex.join(["--ref", run.ref, "--warehouse", warehouse])
        all_of_it = f"kpyramid rejects --stage ingest --limit 0 {place}"
        log.warning("%d files or records were not read; when published: %s", count, all_of_it)


def _count_new(run: Run, embedding: set[str]) -> int:
    """Number of passages in no cache, which shards would read or embed."""
    stage = find_stage("embed")
    documents, chunks = (read_parts(run, stage, name) for name in ("documents", "chunks"))
    if not embedding:
        return 0
    if run.settings.cascade.reads_chunks:  # by a model: what it has answered is not looked up
        return int(chunks.num_rows)
    passages = sorted({passage for *_, passage in list_passages(documents)})
    context = Context(run.warehouse, run.settings, read_only=True)
    extractor, embedder = open_extractor(context), CachedEmbedder(context, Looker.connect)
    texts = title_chunks(documents, chunks)
    return max(len(extractor.list_missing(passages)), len(embedder.function.list_missing(texts)))


def run_stages(
    corpus: Corpus, stages: Sequence[str], run: str, warehouse: str, shard: str | None = None
) -> dict[str, JsonValue]:
    """Runs stages of a night one after another, or one shard of them; returns counts by stage."""
    return {name: describe_mark(_call(corpus, name, run, warehouse, shard)) for name in stages}


def ask_in_batches(corpus: Corpus, run: str, warehouse: str) -> bool:
    """Collects answers of batches and submits the next requests; True when all are answered.

    The state of batches lies in the warehouse, so that any later call goes on from there. When the
    endpoint is out of reach, or another process asks, the next call does the work.

    Raises:
        BudgetError: the next request might pass it.
        RefusedError: the endpoint has no Batch API, or takes no key of ours.
    """
    begun = open_run(open_warehouse(warehouse), run)
    place = "--warehouse", warehouse, "--settings", str(corpus.settings)
    what = [str(begun.corpus), "--ref", begun.ref, "--quiet"]
    what += ["--workers", str(corpus.declared.workers)]
    try:
        run_command("batch", "collect", *place)
        submitted = run_command("batch", "submit", *what, *place)
    except (OvertakenError, RefusedError):
        raise
    except (ConflictError, EndpointError) as e:
        log.warning("%s; the next look goes on from here", e)
        return False
    log.info("%s requests open, %s answered", submitted["open"], submitted["answered"])
    return submitted["next"] == "build"


def publish(corpus: Corpus, run: str, ref: str, warehouse: str) -> dict[str, JsonValue]:
    """Runs the gates on a night's snapshot and moves its ref; returns a summary of the outcome.

    `moved` is true, too, for the try after one that was killed when it had moved the ref. `waits`:
    for approval, as the corpus's own ref is at another snapshot.

    Raises:
        GateError: a gate refused it, or the corpus's own ref was rolled back from it.
    """
    mark = _call(corpus, "publish", run, warehouse)
    place = open_warehouse(warehouse)
    read = read_mark(open_run(place, run), "ingest")
    unread = sum(read.rejects.values()) if read else 0
    head = read_head(place, ref)
    snapshot = mark.details["snapshot"]
    moved = head is not None and (head.run, head.snapshot) == (run, snapshot)
    changes = mark.details.get("changes", "the first snapshot of its ref")
    headline = f"{ref} {'is now' if moved else 'stays'} at {snapshot}: {changes}"
    headline += f"; {unread} of the corpus not read" if unread else ""
    log.info("%s; report %s", headline, place.locate(f"runs/{run}/report.html"))
    is_candidate = ref == corpus.candidate != corpus.ref
    corpus_head = read_head(place, corpus.ref) if is_candidate else None
    if is_candidate and snapshot in list_undone(list_entries(place, corpus.ref)):
        raise GateError(
            f"ref {corpus.ref!r} was rolled back from snapshot {snapshot}. To have it back: "
            f"`kpyramid promote {corpus.ref} {snapshot}`"
        )
    return {
        "headline": headline,
        "snapshot": snapshot,
        "ref": ref,
        "run": run,
        "moved": moved,
        "waits": is_candidate and (corpus_head is None or corpus_head.snapshot != snapshot),
        **describe_mark(mark),
    }


def promote(corpus: Corpus, run: str, snapshot: str, warehouse: str) -> dict[str, JsonValue]:
    """Moves the corpus's own ref to an approved snapshot; forward only, as a build does.

    Raises:
        OvertakenError: the ref is at a later order by now.
    """
    place = open_warehouse(warehouse)
    with telling_how_to_go_on("promote", corpus.ref, snapshot, "--warehouse", warehouse):
        order = open_run(place, run).order
        with hold(place, snapshot):
            commit(place, corpus.ref, snapshot=snapshot, order=order, run=run, at=name_now())
    headline = f"{corpus.ref} is now at {snapshot}, which was approved"
    log.info("%s", headline)
    return {"ref": corpus.ref, "headline": headline}


def _call(
    corpus: Corpus, name: str, run: str, warehouse: str, shard: str | None = None
) -> StageMark:
    command = ["stage", name, "--run", run, "--warehouse", warehouse]
    command += ["--shard", shard] if shard else []
    command += ["--settings", corpus.settings] if corpus.settings else []
    with telling_how_to_go_on(*command):
        return call_stage(
            name,
            run=run,
            warehouse=warehouse,
            settings_file=corpus.settings,
            workers=corpus.declared.workers,
            shard=shard,
        )


def is_published(ref: str, warehouse: str) -> bool:
    """Whether a ref is at a snapshot."""
    return read_head(open_warehouse(warehouse), ref) is not None


def evaluate(corpus: Corpus, warehouse: str, *, looks: bool = False) -> dict[str, JsonValue]:
    """Asks the snapshot of the corpus's ref the declared questions; returns where the page is.

    With `looks` nothing is asked if there is a page of that snapshot.
    """
    wanted = corpus.declared.evaluate
    assert wanted is not None
    snapshot = find_entry(open_warehouse(warehouse), corpus.ref).snapshot
    out = f"{corpus.place(wanted.to).rstrip('/')}/{snapshot}"
    page = f"{out}/evaluation.html"
    known = looks and is_there(page)
    if not known:
        place = "--ref", snapshot, "--warehouse", warehouse, "--out", out, "--quiet"
        arms = [word for name in wanted.strategies for word in ("--strategy", name)]
        run_command("evaluate", corpus.place(wanted.questions), *place, *arms)
    return {"snapshot": snapshot, "page": page, "asked": not known}


_ENDINGS = {"folder": "", "tar": ".tar.zst", "turtle": ".ttl", "nquads": ".nq"}
"""Suffixes of exports' names that are not the name of the form."""


def export(
    corpus: Corpus, number: int, warehouse: str, *, looks: bool = False
) -> dict[str, JsonValue]:
    """Exports the snapshot of the corpus's ref, and names it the newest.

    The snapshot is read from the ref, not from the event that started the task: events arrive in
    any order. Nothing is written where all is in place. `number`: index of the declared export. An
    error that a retry would repeat is noted; with `looks` such an export is skipped and `fault`
    says why.

    Raises:
        InputError: documents have labels, the form is a copy of the whole snapshot, and the
            declaration does not say `everything`.
        IntegrityError: the snapshot is damaged; nothing is named.
    """
    wanted, home = corpus.declared.exports[number], open_warehouse(warehouse)
    entry = find_entry(home, corpus.ref)
    to = corpus.place(wanted.to).rstrip("/")
    name = entry.snapshot + _ENDINGS.get(wanted.form, f".{wanted.form}")
    target = f"{to}/{name}"
    command = ["export", entry.snapshot, target, "--to", wanted.form, "--warehouse", warehouse]
    command += ["--everything"] if wanted.everything else []
    mine = Exported(entry.snapshot, wanted.form, name_place(target), corpus.name, corpus.ref)
    noted = _find_noted(home, mine)
    if noted.fault and looks:
        return {"snapshot": entry.snapshot, "path": target, "fault": noted.fault}
    with telling_how_to_go_on(*command), _noting_fault(home, mine):
        known = is_there(target) and (not is_address(target) or noted.is_whole)
        if not known:
            if is_address(target):
                remove(target)  # what a killed worker sent
            scope = EVERYTHING if wanted.everything else PUBLIC
            with hold_snapshot(entry.snapshot, warehouse, scope=scope) as snapshot:
                whose = home, corpus.name, corpus.ref
                exporting.export(snapshot, wanted.form, target, *whose)
        newest = json.dumps({"ref": corpus.ref, "path": name, **asdict(entry)}, indent=1).encode()
        named = open_warehouse(to).store.read(NEWEST) != newest
        if named:
            with write_at(f"{to}/{NEWEST}") as path:
                write_durably(path, newest)
        if noted.fault:
            keep_note(home, replace(mine, is_whole=True))
        removed = _clear_exports(corpus, home, to, wanted.keep)
    log.info("%s %s %s", corpus.ref, "was already in" if known else "is now in", target)
    return {
        "snapshot": entry.snapshot,
        "path": target,
        "copied": not known,
        "named": named,
        "removed": removed,
    }


def _find_noted(home: Warehouse, exported: Exported) -> Exported:
    """The noted state of an export, or the export as given."""
    return next((noted for noted in list_exports(home) if noted.note == exported.note), exported)


@contextmanager
def _noting_fault(home: Warehouse, exported: Exported) -> Iterator[None]:
    """Notes an error that a retry would repeat; an export that was made stays whole."""
    try:
        yield
    except FINAL as e:
        keep_note(home, replace(_find_noted(home, exported), fault=" ".join(str(e).split())))
        raise


def _clear_exports(corpus: Corpus, home: Warehouse, to: str, keep: int) -> list[str]:
    """Removes exports beyond the newest `keep` or of deleted snapshots; returns their places.

    The order is that of the ref's log, so that its present snapshot stays. Failed exports do not
    count; the fault of the present snapshot's export stays noted.
    """
    mine = corpus.name, to
    exports = [e for e in list_exports(home) if (e.corpus, e.place.rpartition("/")[0]) == mine]
    made = {e.snapshot for e in exports if e.is_whole or not e.fault}
    there = {snapshot for snapshot in made if has_snapshot(home, snapshot)}
    newest = [*dict.fromkeys(entry.snapshot for entry in list_entries(home, corpus.ref)[::-1])]
    if len(there) > keep:
        there = {*[snapshot for snapshot in newest if snapshot in there][:keep]}
    there.update(newest[:1])
    gone = [e for e in exports if e.snapshot not in there]
    for e in gone:
        log.info("removing %s", e.place)
        remove_export(home, e)
    return [e.place for e in gone]


_ERRORS = {error.exit_code: error for error in PyramidError.__subclasses__()}


def run_command(*command: str) -> dict[str, JsonValue]:
    """The JSON that a command of kpyramid prints with `--json`.

    Raises:
        PyramidError: the command's own error, by its exit code.
    """
    with telling_how_to_go_on(*command):
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "kpyramid", *command, "--json"],
            stdout=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            check=False,
        )
        try:
            printed: dict[str, JsonValue] = json.loads(done.stdout)
        except ValueError as e:
            raise PyramidError(f"kpyramid {command[0]} ended with {done.returncode}") from e
        if done.returncode:
            error = _ERRORS.get(done.returncode, PyramidError)
            error = RefusedError if printed.get("refused") else error
            problem = printed.get("error") or printed.get("problems")
            raise error(
                str(problem or f"kpyramid {command[0]} ended with {done.returncode}, see above")
            )
        return printed


@contextmanager
def telling_how_to_go_on(*command: str) -> Iterator[None]:
    """Logs the command that a task stands for; an error carries it to the log's last line."""
    shown = f"by hand: {shlex.join(('kpyramid', *command))}"
    log.info("%s", shown)
    try:
        yield
    except BaseException as e:
        e.add_note(shown)
        raise
