"""Commands for operating a warehouse: move refs, list logs, runs and snapshots, clean up."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kpyramid.cli.console import shorten, show_progress
from kpyramid.cli.options import SNAPSHOT_HELP, Count, Natural, Snapshot
from kpyramid.cli.render import Result, describe, lay_out, name_values, phrase
from kpyramid.errors import SettingsError

if TYPE_CHECKING:
    from kpyramid.settings import Settings
    from kpyramid.snapshot.view import Scope
    from kpyramid.storage.archive import Exported
    from kpyramid.storage.layout import Warehouse

_LONGEST_AGE = 6
_LONGEST_SUMMARY = 100


def promote(
    ref: Annotated[str, typer.Argument(metavar="REF", help="The ref to move.")],
    snapshot: Snapshot,
    /,
    *,
    place: "Warehouse",
) -> Result:
    """Move a ref to any snapshot, forward or back; no gate is asked.

    Every byte of the snapshot is checked first. The move is a new entry of the log. Later builds
    have to be after the later of both orders. Of two moves at once one is done, the other ends with
    exit code 7.

    Examples: kpyramid promote production main; kpyramid promote main 1f3a0c9b7d2e4a56
    """
    from kpyramid.storage.publication import promote as move
    from kpyramid.storage.refs import name_now, resolve_ref

    identifier = resolve_ref(place, snapshot)
    entry = move(place, ref, identifier, at=name_now())
    return name_values(
        ref=ref,
        snapshot=identifier,
        moved=entry is not None,
        before=entry.parent if entry else identifier,
    )


def rollback(
    ref: Annotated[str, typer.Argument(metavar="REF", help="The ref to move.")],
    /,
    *,
    place: "Warehouse",
) -> Result:
    """Undo the last move of a ref: it returns to its previous snapshot.

    This is a new entry of the log; nothing is removed. A second rollback goes one further back. The
    next build moves the ref forward as usual, unless it makes exactly the snapshot that was undone:
    only `kpyramid promote` restores that one. Airflow's exports follow within 15 minutes.

    Example: kpyramid rollback main
    """
    from kpyramid.storage.publication import rollback as move
    from kpyramid.storage.refs import name_now

    entry = move(place, ref, at=name_now())
    return name_values(
        ref=ref,
        snapshot=entry.snapshot,
        undone=entry.parent,
        order=entry.order,
        notes=[f"To restore it: kpyramid promote {ref} {entry.parent}"],
    )


def tag(
    name: str,
    snapshot: Annotated[
        list[str] | None, typer.Argument(metavar="[SNAPSHOT]", help=SNAPSHOT_HELP)
    ] = None,
    /,
    *,
    place: "Warehouse",
    remove: bool = False,
) -> Result:
    """Give a snapshot a name that never moves, so that gc keeps it; or remove names.

    With --remove every argument is a name to remove: a tag, or a ref that is no longer needed,
    such as that of a backfilled day. Snapshots stay until `gc`, which removes those without another
    name. The log of a ref stays for `kpyramid log`, and a build or `promote` restores the ref.
    `main` cannot be removed. If one of the names does not exist, nothing is removed.

    Examples: kpyramid tag release-7 main; kpyramid tag --remove demo-2026-11-01 demo-2026-11-02

    `name`: the new name.
    `remove`: remove these names, tags or refs; their snapshots stay until gc.
    """
    from kpyramid.storage.publication import remove_tag, retire
    from kpyramid.storage.publication import tag as make
    from kpyramid.storage.refs import check_ref_name, name_now, read_head, resolve_ref

    given = snapshot or []
    if not remove:
        if len(given) > 1:
            raise SettingsError("name one snapshot for the tag; only --remove takes several names")
        identifier = resolve_ref(place, given[0] if given else "main")
        make(place, name, identifier, at=name_now())
        return name_values(removed=False, names={name: identifier})
    heads = {each: read_head(place, check_ref_name(each)) for each in (name, *given)}
    tags = [each for each, head in heads.items() if head is not None and head.action == "tag"]
    gone = retire(place, [each for each in heads if each not in tags], at=name_now())
    return name_values(removed=True, names=gone | {each: remove_tag(place, each) for each in tags})


def log(
    ref: Annotated[str, typer.Argument(help="A ref or a tag.")] = "main",
    /,
    *,
    place: "Warehouse",
) -> Result:
    """Show the moves of a ref, newest first: when, why, and to which snapshot.

    The names in the first column are accepted wherever a snapshot is named.
    """
    from kpyramid.storage.refs import find_entry, list_entries
    from kpyramid.storage.snapshots import date_snapshots

    find_entry(place, f"{ref}@0")  # says which refs there are; a retired one has its log
    there = date_snapshots(place)
    rows = [
        {
            "name": f"{ref}@{back}" if back else ref,
            "at": entry.at,
            "action": entry.action,
            "snapshot": entry.snapshot,
            "there": entry.snapshot in there,
            "order": entry.order,
            "run": entry.run,
        }
        for back, entry in enumerate(reversed(list_entries(place, ref)))
    ]
    return name_values(ref=ref, entries=rows)


def runs(
    run: Annotated[
        str | None, typer.Argument(metavar="[RUN]", help="Show one: its name, or `last`.")
    ] = None,
    /,
    *,
    place: "Warehouse",
    limit: Natural = 20,
) -> Result:
    """List the runs of a warehouse, newest first: state, figures, reason of a failure.

    With a RUN, show the output of its build, its stages, its warnings and the place of its report.
    A run is running, waiting for its next stage, done, refused by gates, failed, or killed.

    `limit`: most runs that are listed; 0 for all.
    """
    from kpyramid.storage.runs import list_runs

    rows = list_runs(place)
    if run is not None:
        return _describe_past(place, run, rows)
    shown = rows[: limit or None]
    lines = lay_out(map(_show_run, shown))
    more = [f"{len(rows) - len(shown):,} more; --limit 0 shows all"] if shown != rows else []
    nothing = ["No run yet; `kpyramid build CORPUS` makes one."]
    return name_values(runs=shown, words=[*lines, *more] or nothing)


def _show_run(row: Mapping[str, Any]) -> dict[str, Any]:
    """A run on a line: start, duration, result, problem."""
    made = row["figures"] if isinstance(row["figures"], Mapping) else {}
    seconds = made.get("seconds")
    summary = made.get("changes") or row["snapshot"]
    if row["status"] in ("refused", "failed", "killed"):
        summary = row["error"] or f"ended after {row['stages']} of its stages"
    return {
        "run": row["run"],
        "status": row["status"],
        "started": str(row["started"])[:16].replace("T", " "),
        "took": f"{seconds:.0f} s" if isinstance(seconds, int | float) else None,
        "ref": row["ref"],
        **{n: made.get(n) for n in ("documents", "facts", "unread", "contradictions", "cost")},
        "came to": shorten(str(summary or ""), _LONGEST_SUMMARY),
    }


def _describe_past(place: "Warehouse", name: str, rows: Sequence[Mapping[str, Any]]) -> Result:
    """The final output of a finished run, or the known state of another."""
    from kpyramid.pipeline.report.index import find_run
    from kpyramid.pipeline.report.words import word_run
    from kpyramid.storage.runs import read_files

    row = find_run(place, rows, name)
    report, marks, log = read_files(place, str(row["run"]))
    page = place.locate(f"runs/{row['run']}/report.html")
    words = [*word_run(row, report, marks, page), *(["Warnings:", *log] if log else [])]
    return Result(values={**row, "report": report, "marks": marks, "log": log}, words=words)


def report(
    *,
    place: "Warehouse",
    output: Path | None = None,
) -> Result:
    """Write a page of all runs with links to their reports, and their figures over time.

    The report of a single run is a page in its folder, which every build writes; `kpyramid runs
    RUN` shows its path.

    `output`: file of the page; by default index.html in the warehouse, or in the working folder if
    the warehouse is a bucket.
    """
    from kpyramid.pipeline.report.index import INDEX, write_index

    path = output or (Path(INDEX) if place.bucket else place.root / INDEX)
    made = write_index(place, path)
    notes = [f"Page: {path.absolute()}"]
    lines = lay_out(map(_show_run, made["runs"][:3]))
    return name_values(page=str(path.absolute()), **made, words=lines, notes=notes)


def snapshots(*, place: "Warehouse") -> Result:
    """List the snapshots of a warehouse and the refs that point to them."""
    from kpyramid.storage.verification import list_snapshots

    listed: Sequence[Mapping[str, Any]] = list_snapshots(place)
    lines = lay_out(
        {
            "id": row["id"],
            "refs": row["refs"],
            "committed": row["created"] or "never",
            "documents": row["rows"].get("documents"),
            "condensed facts": row["rows"].get("condensed"),
        }
        for row in listed
    )
    nothing = ["No snapshot yet; `kpyramid build CORPUS` makes one."]
    return name_values(snapshots=listed, words=lines or nothing)


def verify(
    snapshot: Annotated[
        str | None,
        typer.Argument(help=f"{SNAPSHOT_HELP} Or a folder: ./copy. By default main."),
    ] = None,
    /,
    *,
    place: "Warehouse",
    deep: bool = False,
) -> Result:
    """Check a snapshot: every byte, every contract, every reference, every span; all refs and runs.

    Of a folder, which may be anywhere, only the snapshot is checked. --deep continues after the
    first damage and names the damaged table, page, row or line; without a SNAPSHOT it checks all
    snapshots of the warehouse.

    `deep`: also inspect damaged files and parse the RDF; without a SNAPSHOT, of all snapshots.
    """
    from kpyramid.snapshot.snapshot import is_path
    from kpyramid.storage.copies import open_stored
    from kpyramid.storage.refs import check_refs, resolve_ref
    from kpyramid.storage.runs import find_damaged
    from kpyramid.storage.snapshots import date_snapshots, identify_folder

    everyone = deep and snapshot is None
    checked: dict[str, list[str]] = {}
    where: dict[str, str] = {}
    others: list[str] = []
    if is_path(snapshot or "main"):
        folder = Path(snapshot or "main").absolute()
        identifier = identify_folder(folder)
        checked[identifier], where[identifier] = _check(folder, deep=deep), str(folder)
    else:
        wanted = [*date_snapshots(place)] if everyone else [resolve_ref(place, snapshot or "main")]
        for identifier in wanted:
            with open_stored(place, identifier) as folder:
                checked[identifier] = _check(folder, deep=deep)
            where[identifier] = place.locate(f"snapshots/{identifier}")
        others = [*check_refs(place), *find_damaged(place).values()]
    problems = [problem for damage in checked.values() for problem in damage]
    whole = [identifier for identifier, damage in checked.items() if not damage]
    notes = [f"Snapshot {', '.join(whole)} is whole."] if whole else []
    if problems:
        paths = ", ".join(where[identifier] for identifier in checked if identifier not in whole)
        notes.append(f"Do not serve it. Move {paths} away and build again: caches make that fast.")
    return name_values(
        json_only=("snapshots",),
        snapshots=checked,
        ok=not (problems or others),
        problems=[*problems, *others],
        notes=notes,
        fault=6 if problems or others else None,
    )


def _check(folder: Path, *, deep: bool) -> list[str]:
    """The problems of a snapshot; `deep`: as far as each file can still be read."""
    from kpyramid.errors import PyramidError
    from kpyramid.ontology.store import check_rdf
    from kpyramid.storage.verification import check_bytes, check_tables

    problems = check_bytes(folder)
    if not deep:
        return problems or check_tables(folder)
    for check in (check_tables, check_rdf):
        try:
            problems += check(folder)
        except PyramidError as e:
            problems.append(str(e))
    return problems


def gc(
    *,
    place: "Warehouse",
    keep: Count = 7,
    older_than: str = "30d",
    backfills: str | None = None,
    dry_run: bool = False,
) -> Result:
    """Remove snapshots, runs and stored results that are no longer needed.

    It keeps the snapshots of refs and tags, the last --keep snapshots of each ref that were not
    rolled back, and those that readers hold, with their runs and row caches. Stored results are
    kept for the present snapshots of refs, and for two days after their last use. The rest is moved
    to trash/, which the next gc deletes. It prints the bytes of each kind, removed and kept.

    Replies of models are kept, so that the same request is not paid again.

    Example: kpyramid gc --keep 7 --older-than 30d --backfills 90d --dry-run

    `keep`: number of snapshots of each ref to keep, including its newest.
    `older_than`: remove only what was not needed for that long: 30d for days, 12h for hours.
    `backfills`: first remove the refs of backfilled days (demo-2026-11-01 beside demo) that did not
    move for that long.
    `dry_run`: show what would be removed; remove nothing.
    """
    from kpyramid.pipeline.fingerprints import list_row_folders
    from kpyramid.storage.publication import retire
    from kpyramid.storage.refs import list_idle_days, name_now
    from kpyramid.storage.retention import KINDS, Policy, collect

    age, now = _read_age(older_than), datetime.now(UTC)
    idle = list_idle_days(place, now - _read_age(backfills)) if backfills else []
    if not dry_run:
        retire(place, idle, at=name_now())
    policy = Policy(keep, age, now, partial(list_row_folders, place), idle)
    done = collect(place, policy, dry_run=dry_run)
    sizes = {kind: [item.bytes for item in done.moved if item.kind == kind] for kind in KINDS}
    return name_values(
        json_only=("paths", "deleted"),
        dry_run=dry_run,
        retired=idle,
        moved={kind: {"count": len(size), "bytes": sum(size)} for kind, size in sizes.items()},
        kept=_measure_kinds(place),
        bytes_moved=sum(item.bytes for item in done.moved),
        bytes_deleted=sum(item.bytes for item in done.deleted),
        paths=[item.path for item in done.moved],
        deleted=[item.path for item in done.deleted],
        held=done.held,
        notes=["Nothing was removed, because of --dry-run."] if dry_run else [],
    )


def _measure_kinds(place: "Warehouse") -> dict[str, int]:
    """Bytes in the warehouse, by kind."""
    from kpyramid.storage.retention import measure

    caches = {"results": "cache/results", "caches": "cache/rows", "replies": "cache/llm"}
    kinds = {"snapshots": "snapshots", "runs": "runs", **caches}
    if bucket := place.bucket:
        return {k: sum(blob.size for blob in bucket.list(name)) for k, name in kinds.items()}
    return {kind: measure(place.root / name) for kind, name in kinds.items()}


def _read_age(text: str) -> timedelta:
    """The duration of an age such as 30d or 12h.

    Raises:
        SettingsError: it is none.
    """
    unit = {"d": "days", "h": "hours"}.get(text[-1:])
    if unit is None or not text[:-1].isdecimal() or len(text) > _LONGEST_AGE:
        raise SettingsError(f"age {text!r}: say days or hours, such as 30d or 12h")
    return timedelta(**{unit: int(text[:-1])})


def erase(
    *,
    document: str,
    place: "Warehouse",
    loaded: "Settings",
    yes: bool = False,
    workers: int,
    quiet: bool,
) -> Result:
    """Erase a document from a warehouse: snapshots, caches, model replies, reports, rejects.

    Everything with its source or its text counts as the document. Later builds leave it out,
    whatever the corpus contains. Each ref at a snapshot with it is built again without it, as in
    its last run; these snapshots and their tags are removed. Results and replies are kept if a run
    without the document needs them; replies are searched in the caches that the records of runs
    and --settings name. Run it while no build is running; after an error, run it again.

    Example: kpyramid erase --document doc-0b1f0a3d2c4e5f60718a --yes

    `document`: its id, from column document_id of the table `documents`.
    `yes`: erase it; otherwise only show what would be removed. There is no undo.
    """
    from kpyramid.pipeline import erasure
    from kpyramid.storage.archive import list_exports
    from kpyramid.storage.snapshots import has_snapshot

    if yes:
        with show_progress(quiet=quiet) as progress:
            done = erasure.erase(place, document, loaded, workers=workers, progress=progress)
        there = done.found
        notes = ["All refs were verified. Remove the document from the corpus as well."]
    else:
        there, done = erasure.find_document(place, document), None
        notes = [
            "Nothing was done; --yes does it and builds these refs again without the document. "
            "There is no undo."
        ]
        if not there.refs:
            notes.append("No ref has it: none is built; removing the row caches costs time.")
    exports = [
        e
        for e in list_exports(place)
        if (e.is_whole or not e.fault)  # of one that was given up nothing is there
        and (e.snapshot in there.snapshots or not has_snapshot(place, e.snapshot))
    ]
    return name_values(
        json_only=("exports",),
        document=document,
        erased=yes,
        documents=[{"document_id": row[0], "source": row[1]} for row in there.documents],
        snapshots=there.snapshots,
        refs=done.successors if done else there.refs,
        tags=there.tags,
        runs=there.runs,
        bytes=there.bytes,
        replies=done.replies if done else None,
        replies_of_unknown_documents=done.unnamed if done else None,
        caches=there.caches,
        exports=exports,
        not_reached=_list_missed(there.caches, exports),
        notes=notes,
    )


_NOT_REACHED = (
    "copies of snapshots and exports elsewhere, and backups",
    "files written by `ask --trace`, `evaluate --out` and `cache --export`",
    "requests that a model's provider stores",
    "of a bucket: copies on other machines (remove the warehouse's folder in ~/.cache/kpyramid "
    "there), and earlier versions of objects, if it stores them",
)


def _list_missed(caches: Sequence[str], exports: "Sequence[Exported]") -> list[str]:
    """Places that may still have the document."""
    made = [
        f"{e.place}, an export of snapshot {e.snapshot}"
        + (f"; the next run of export_pyramid_{e.corpus} removes it" if e.corpus else "")
        for e in exports
    ]
    missing = (place for place in caches if "://" not in place and not Path(place).is_dir())
    lost = [f"replies that runs stored in {place}, which does not exist here" for place in missing]
    return [*made, *_NOT_REACHED, *lost]


def _word_changes(compared: Mapping[str, Any]) -> Iterator[str]:
    """The counts, then the rows, each with its changed fields."""
    yield from describe({n: value for n, value in compared.items() if n != "rows"})
    for row in compared["rows"] or ():
        yield f"{_SIGNS[row['change']]} {row['words']}"
        for name, (was, now) in row["fields"].items():
            words = ", now ".join(str(phrase(each) or each or "none") for each in (was, now))
            yield f"    {name}: {'edited' if name == 'text' else words}"


_SIGNS = {"added": "+", "removed": "-", "changed": "~"}


def diff(
    before: Annotated[
        str, typer.Argument(metavar="A", help=f"{SNAPSHOT_HELP} Or a folder: ./last-week.")
    ] = "main",
    after: Annotated[
        str | None, typer.Argument(metavar="[B]", help="Likewise; without it, A@1 and A.")
    ] = None,
    /,
    *,
    warehouse: str,
    table: str | None = None,
    limit: Natural = 20,
    scope: "Scope",
) -> Result:
    """Show what changed from snapshot A to snapshot B; for a ref alone, last night's changes.

    It prints the number of new, removed and changed rows per table, and the settings, models and
    stages that differ; with --table also the rows. Rows that only documents with labels support
    are counted and shown with --access or --everything.

    Copied folders can be compared too; then no warehouse is read.

    Examples: kpyramid diff; kpyramid diff demo; kpyramid diff main@2026-11-16 main --table facts;
    kpyramid diff ./last-week ./now

    `table`: also show the rows of documents, facts, entities, ontology, instances or proposals.
    `limit`: most rows that are shown; 0 for all.
    """
    from kpyramid.snapshot.diff import NAMES, compare
    from kpyramid.snapshot.snapshot import is_path, open_snapshot
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.refs import read_head

    if after is None:
        named = not is_path(before) and "@" not in before
        head = read_head(open_warehouse(warehouse), before) if named else None
        moves = head is not None and head.action != "tag"
        before, after = (f"{before}@1", before) if moves else (before, "main")
    sides = [open_snapshot(name, warehouse, scope=scope) for name in (before, after)]
    with compare(*sides) as changes:
        rows = changes.read(table, limit or None) if table else None
        counts = {name: asdict(changes.count(name)) for name in NAMES}
        left = sum(counts[table].values()) - len(rows) if table and rows is not None else 0
        compared = {
            "a": {"name": before, "snapshot": sides[0].id},
            "b": {"name": after, "snapshot": sides[1].id},
            "summary": changes.summarise(),
            "tables": counts,
            "made_with": changes.list_causes(),
            "table": table,
            "rows": None if rows is None else [asdict(row) for row in rows],
        }
    notes = [f"{left:,} more; --limit 0 shows all"] if left else []
    seen = sides[1].describe_scope()
    notes += [f"compared: {seen} of B; --access or --everything shows more"] if seen else []
    return Result(values=compared, words=_word_changes(compared), notes=notes)
