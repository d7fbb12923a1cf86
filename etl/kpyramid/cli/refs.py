"""Commands of who operates a warehouse: move refs, list their logs and the runs, clear up."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    WORKERS,
    QuietOption,
    WarehouseOption,
    WorkersOption,
    command,
    count_things,
    name_first,
    print_found,
    say,
)
from kpyramid.errors import SettingsError

if TYPE_CHECKING:
    from kpyramid.settings import Settings
    from kpyramid.snapshot.diff import Row
    from kpyramid.snapshot.view import Scope
    from kpyramid.storage.archive import Exported
    from kpyramid.storage.layout import Warehouse

app = typer.Typer()

_MOST_NAMED = 10
_LONGEST_AGE = 6

SNAPSHOT_HELP = (
    "An id, a ref, a tag, or an earlier entry of a ref: main@1 is the one before, "
    "main@2026-11-16 what main was at that day."
)
MovedArgument = Annotated[str, typer.Argument(metavar="REF", help="The name that moves.")]
SnapshotArgument = Annotated[str, typer.Argument(metavar="SNAPSHOT", help=SNAPSHOT_HELP)]


@command(app)
def promote(ref: MovedArgument, snapshot: SnapshotArgument, place: "Warehouse") -> None:
    """Move a ref to a snapshot, forward or back, because you say so; no gate is asked.

    Every byte of the snapshot is checked first. The move is a new entry of the log. Builds go on
    after the later of both orders. Two moves at once: one is done, the other ends with exit code 7.

    Examples: kpyramid promote production main; kpyramid promote main 1f3a0c9b7d2e4a56
    """
    from kpyramid.storage.publication import promote as move
    from kpyramid.storage.refs import name_now, resolve_ref

    identifier = resolve_ref(place, snapshot)
    entry = move(place, ref, identifier, at=name_now())
    found = {"ref": ref, "snapshot": identifier, "moved": entry is not None}
    before = entry.parent if entry else identifier
    moved = f"is at snapshot {identifier} now, before at {before or 'none'}"
    stays = f"is at snapshot {identifier} already"
    said = [f"Ref {ref} {moved}.", *_name_exports(place, ref)] if entry else [f"Ref {ref} {stays}."]
    print_found({**found, "before": before}, said)


@command(app)
def rollback(ref: MovedArgument, place: "Warehouse") -> None:
    """Undo the last move of a ref: back to the snapshot it had before.

    It is a new entry of the log; nothing is removed. A second rollback goes one further back. The
    next build moves the ref forward as ever, unless it makes the very snapshot that was undone:
    that one comes back by `kpyramid promote` only. Exports by Airflow follow within 15 minutes.

    Example: kpyramid rollback main
    """
    from kpyramid.storage.publication import rollback as move
    from kpyramid.storage.refs import name_now

    entry = move(place, ref, at=name_now())
    print_found(
        {"ref": ref, "snapshot": entry.snapshot, "undone": entry.parent, "order": entry.order},
        [
            f"Ref {ref} is at snapshot {entry.snapshot} again; {entry.parent} is undone.",
            f"To have it back: kpyramid promote {ref} {entry.parent}",
            *_name_exports(place, ref),
        ],
    )


def _name_exports(place: "Warehouse", ref: str) -> list[str]:
    """How the exports that follow a ref come to follow a move that Airflow does not see."""
    from kpyramid.storage.archive import list_exports

    followed = {
        (one.place.rpartition("/")[0], one.corpus) for one in list_exports(place) if one.ref == ref
    }
    return [
        f"{folder}/newest.json follows within 15 minutes, if Airflow runs; at once: airflow dags "
        f"trigger export_pyramid_{corpus}"
        for folder, corpus in sorted(followed)
    ]


@command(app)
def tag(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new name.")],
    snapshot: Annotated[str, typer.Argument(metavar="SNAPSHOT", help=SNAPSHOT_HELP)] = "main",
    *,
    place: "Warehouse",
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the tag; the snapshot stays until gc.")
    ] = False,
) -> None:
    """Give a snapshot a name that never moves; gc keeps what has one.

    Example: kpyramid tag release-7 main
    """
    from kpyramid.storage.publication import remove_tag
    from kpyramid.storage.publication import tag as make
    from kpyramid.storage.refs import name_now, resolve_ref

    if remove:
        was = remove_tag(place, name)
        words = f"Tag {name} is removed; it was at snapshot {was}."
        print_found({"tag": name, "snapshot": was, "removed": True}, [words])
        return
    identifier = resolve_ref(place, snapshot)
    made = make(place, name, identifier, at=name_now())
    words = f"Tag {name} {'is' if made else 'was already'} at snapshot {identifier}, and stays."
    print_found({"tag": name, "snapshot": identifier, "removed": False}, [words])


@command(app)
def retire(
    refs: Annotated[list[str], typer.Argument(metavar="REF...", help="The names that go.")],
    place: "Warehouse",
) -> None:
    """Remove refs that nobody needs any more, such as those of backfilled days.

    Their snapshots stay until `gc`, which frees what no other ref is at. Their logs stay for
    `kpyramid log`, with who was where and when; a build or `promote` brings a ref back. `main` is
    refused, and so is a tag: `kpyramid tag --remove`. Is one of the names none, nothing is removed.

    Example: kpyramid retire demo-2026-11-01 demo-2026-11-02
    """
    from kpyramid.storage.publication import retire as end
    from kpyramid.storage.refs import name_now

    gone = end(place, refs, at=name_now())
    lines = [f"Ref {ref} is retired; it was at snapshot {was}." for ref, was in gone.items()]
    print_found({"retired": gone}, lines)


@command(app)
def log(
    ref: Annotated[str, typer.Argument(help="A ref or a tag.")] = "main",
    *,
    place: "Warehouse",
) -> None:
    """Show what a ref was at, newest first: when it moved, why, and to which snapshot.

    The names in the first column are understood wherever a snapshot is named.
    """
    from kpyramid.cli.console import print_rows
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
    shown = [{**row, "there": "" if row["there"] else "removed"} for row in rows]
    print_found({"ref": ref, "entries": rows}, lambda: print_rows(shown, there=""))


@command(app)
def runs(place: "Warehouse") -> None:
    """List the runs of a warehouse, newest first, and what each came to.

    `kpyramid build` makes a run each time; its report lies in the folder runs/RUN.
    """
    from kpyramid.cli.console import print_rows
    from kpyramid.pipeline.stage import PIPELINE
    from kpyramid.storage.runs import list_runs

    rows = list_runs(place)
    ended = {"yes": "published", "no": "refused by a gate", "unchanged": "nothing changed"}
    shown = [
        {
            **{name: row[name] for name in ("run", "started", "ref", "order")},
            "snapshot": row["snapshot"] or "",
            "result": ended.get(str(row["committed"]))
            or f"{row['stages']} of {len(PIPELINE)} stages done",
        }
        for row in rows
    ]
    print_found({"runs": rows}, lambda: print_rows(shown))


@command(app)
def gc(
    place: "Warehouse",
    keep: Annotated[
        int, typer.Option(min=1, help="Snapshots of each ref that stay, its newest among them.")
    ] = 7,
    older_than: Annotated[
        str,
        typer.Option(help="Only what nothing needed for that long: 30d for days, 12h for hours."),
    ] = "30d",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")
    ] = False,
) -> None:
    """Remove what nothing needs any more: snapshots, runs, stored results.

    What a ref or tag is at, the last --keep snapshots of each ref that were not rolled back, and
    what a reader holds stay, with their runs and row caches; stored results stay where a ref is,
    and for two days after their last use. The rest is moved to trash/; the next gc deletes what
    lies there. Replies of models stay: `kpyramid cache gc` clears those.

    It says the bytes of each kind, those that stay too: replies are never removed here.

    Example: kpyramid gc --keep 7 --older-than 30d --dry-run
    """
    from kpyramid.pipeline.fingerprints import list_row_folders
    from kpyramid.storage.retention import KINDS, Policy, collect

    age, now = _read_age(older_than), datetime.now(UTC)
    policy = Policy(keep, age, now, partial(list_row_folders, place))
    done = collect(place, policy, dry_run=dry_run)
    moved = {k: [item for item in done.moved if item.kind == k] for k in KINDS}
    found: dict[str, Any] = {
        "dry_run": dry_run,
        "moved": {
            kind: {"count": len(items), "bytes": sum(item.bytes for item in items)}
            for kind, items in moved.items()
        },
        "kept": _measure_kinds(place),
        "bytes_moved": sum(item.bytes for item in done.moved),
        "bytes_deleted": sum(item.bytes for item in done.deleted),
        "paths": [item.path for item in done.moved],
        "deleted": [item.path for item in done.deleted],
        "held": dict(done.held),
    }
    verb, to = ("Would move", "would delete") if dry_run else ("Moved", "deleted")
    counted = ", ".join(
        f"{count_things(len(items), noun)} ({sum(item.bytes for item in items):,} bytes)"
        for noun, items in zip(("snapshot", "run", "result", "cache"), moved.values(), strict=True)
    )
    lines = [
        f"{verb} to {place.locate('trash')}: {counted}.",
        f"From there {to} what an earlier gc had moved: {found['bytes_deleted']:,} bytes.",
        f"{'There are' if dry_run else 'There stay'}: "
        + ", ".join(f"{name} {size:,} bytes" for name, size in found["kept"].items()),
        *(f"Held: snapshot {snapshot}, by {name}" for name, snapshot in done.held.items()),
    ]
    named = [item.path for item in done.moved if item.kind == "snapshots"] if dry_run else []
    print_found(found, [*lines, *name_first(named, _MOST_NAMED)])


def _measure_kinds(place: "Warehouse") -> dict[str, int]:
    """Bytes in the warehouse, by kind."""
    from kpyramid.storage.retention import measure

    caches = {"results": "cache/results", "caches": "cache/rows", "replies": "cache/llm"}
    kinds = {"snapshots": "snapshots", "runs": "runs", **caches}
    if bucket := place.bucket:
        return {k: sum(blob.size for blob in bucket.list(name)) for k, name in kinds.items()}
    return {kind: measure(place.root / name) for kind, name in kinds.items()}


def _read_age(text: str) -> timedelta:
    """An age such as 30d or 12h.

    Raises:
        SettingsError: it is none.
    """
    unit = {"d": "days", "h": "hours"}.get(text[-1:])
    if unit is None or not text[:-1].isdecimal() or len(text) > _LONGEST_AGE:
        raise SettingsError(f"--older-than {text!r}: say days or hours, such as 30d or 12h")
    return timedelta(**{unit: int(text[:-1])})


def erase(
    document: Annotated[
        str, typer.Option(help="Its id: column document_id of the table `documents`.")
    ],
    place: "Warehouse",
    loaded: "Settings",
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; without, say what would go. There is no undo.")
    ] = False,
    workers: WorkersOption = WORKERS,
    quiet: QuietOption = False,
) -> None:
    """Erase a document from a warehouse: snapshots, caches, model replies, reports, rejects.

    What has its source or its text counts as the document. Later builds leave it out, whatever the
    corpus holds. Each ref that is at a snapshot with it is built again without it, as its last run
    was; tags of such snapshots, and the snapshots, go. Results and replies stay as far as a run
    without the document rests on them; replies are looked for where the records of runs say, and
    where --settings says. Run it while no build is at work; after an error, run it again.

    Example: kpyramid erase --document doc-0b1f0a3d2c4e5f60718a --yes
    """
    from kpyramid.cli import console
    from kpyramid.pipeline import erasure
    from kpyramid.storage.archive import list_exports
    from kpyramid.storage.snapshots import has_snapshot

    if yes:
        with console.show_progress(quiet=quiet) as progress:
            done = erasure.erase(place, document, loaded, workers=workers, progress=progress)
        found = done.found
    else:
        found, done = erasure.find_document(place, document), None
    exports = [
        one
        for one in list_exports(place)
        if (one.is_whole or not one.fault)  # of one that was given up nothing is there
        and (one.snapshot in found.snapshots or not has_snapshot(place, one.snapshot))
    ]
    missed = _list_missed(found.caches, exports, in_bucket=place.bucket is not None)
    said = {
        "document": document,
        "erased": yes,
        "documents": [{"document_id": row[0], "source": row[1]} for row in found.documents],
        "snapshots": list(found.snapshots),
        "refs": done.successors if done else list(found.refs),
        "tags": list(found.tags),
        "runs": list(found.runs),
        "bytes": found.bytes,
        "replies": done.replies if done else None,
        "replies_of_unknown_documents": done.unnamed if done else None,
        "caches": found.caches,
        "exports": [asdict(one) for one in exports],
        "not_reached": missed,
    }
    went, is_built = ("Gone", "was built again") if yes else ("Would go", "would be built again")
    sources = [f"{row[0]}  {row[1]}" for row in found.documents]
    lines = [
        f"{count_things(len(sources), 'document')} with its source or text:",
        *name_first(sources, _MOST_NAMED),
        f"{went}: {count_things(len(found.snapshots), 'snapshot')}, "
        f"{count_things(len(found.runs), 'run')}, {found.bytes:,} bytes with stored results.",
        *name_first(found.snapshots, _MOST_NAMED),
        *(f"Tag {name} {'is gone' if yes else 'would go'}." for name in found.tags),
    ]
    if done is None:
        lines += [f"Ref {ref} {is_built} without it." for ref in found.refs]
        if not found.refs:
            lines.append("No ref has it, so none is built: the row caches go, which costs time.")
        lines.append("Nothing was done; --yes does it, and there is no undo.")
    else:
        lines += [f"Ref {ref} {is_built}: {new}." for ref, new in done.successors.items()]
        shared = "".join(f", also in {cache}" for cache in found.caches)
        lines.append(f"Replies of models gone: {done.replies}{shared}.")
        if done.unnamed:
            lines.append(f"Replies of unknown documents, kept: {done.unnamed}.")
        lines.append("What is left was verified. Remove the document from the corpus as well.")
    lines += ["Not reached, look there yourself:", *(f"  {each}" for each in missed)]
    print_found(said, lines)


def _list_missed(
    caches: Sequence[str], exports: "Sequence[Exported]", *, in_bucket: bool
) -> list[str]:
    """Where the document may still be."""
    made = [
        f"{one.place}, an export of snapshot {one.snapshot}"
        + (f"; the next run of export_pyramid_{one.corpus} removes it" if one.corpus else "")
        for one in exports
    ]
    missed = [
        *made,
        "copies of snapshots and exports that were handed out, and backups",
        "files written by `ask --trace`, `evaluate --out`, `cache export`",
        "what a model's provider keeps of requests",
    ]
    if in_bucket:
        missed += [
            "copies on other machines: remove the warehouse's folder in ~/.cache/kpyramid there",
            "earlier versions of objects, where the bucket keeps them",
        ]
    missing = (place for place in caches if "://" not in place and not Path(place).is_dir())
    return missed + [f"replies that runs kept in {place}, which is not here" for place in missing]


_SIGNS = {"added": "+", "removed": "-", "changed": "~"}
_LONGEST = 60
"""Characters of a value that are shown."""


def diff(
    before: Annotated[
        str, typer.Argument(metavar="A", help=f"{SNAPSHOT_HELP} Or a folder: ./last-week.")
    ] = "main@1",
    after: Annotated[str, typer.Argument(metavar="B", help="Likewise.")] = "main",
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    table: Annotated[
        str | None,
        typer.Option(
            help="Show the rows too, of: documents, facts, entities, ontology, instances, "
            "proposals or metrics."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Most rows that are shown; 0 for all.")] = 20,
    *,
    scope: "Scope",
) -> None:
    """Say what changed from snapshot A to snapshot B: by default, what last night changed.

    First a count per table of what is new, gone and changed, and the settings, models and stages
    that differ; with --table also the rows. What only documents with labels say is counted and
    shown with --access or --everything.

    Whoever has only copied folders compares those; then no warehouse is read.

    Examples: kpyramid diff; kpyramid diff main@2026-11-16 main --table facts --limit 50;
    kpyramid diff ./last-week ./now
    """
    from kpyramid.cli.console import print_rows
    from kpyramid.snapshot.diff import NAMES, compare
    from kpyramid.snapshot.snapshot import open_snapshot

    sides = [open_snapshot(name, warehouse, scope=scope) for name in (before, after)]
    with compare(*sides) as found:
        rows = found.read(table, limit or None) if table else None
        counts = {name: found.count(name) for name in NAMES}
        summary, causes = found.summarise(), found.list_causes()
        metrics = found.metrics
    said: dict[str, Any] = {
        "a": {"name": before, "snapshot": sides[0].id},
        "b": {"name": after, "snapshot": sides[1].id},
        "summary": summary,
        "tables": {name: asdict(count) for name, count in counts.items()},
        "metrics": metrics,
        "made_with": causes,
        **({} if rows is None else {"table": table, "rows": [asdict(row) for row in rows]}),
    }

    def tell() -> None:
        for line in _describe(before, after, said):
            say(line)
        listed = [{"table": name, **asdict(count)} for name, count in counts.items()]
        print_rows(listed, added="new", removed="gone")
        if table and rows is not None:
            number = sum(asdict(counts[table]).values())
            for line in _list_rows(rows, number):
                say(line)
        else:
            say("The rows: --table facts, and so on")

    print_found(said, tell)


def _describe(before: str, after: str, said: dict[str, Any]) -> Iterator[str]:
    yield f"From {before} ({said['a']['snapshot']}) to {after} ({said['b']['snapshot']}):"
    yield f"{said['summary']}."
    for name, (was, now) in said["made_with"].items():
        yield f"Made with another {name}: {_show(was)}, now {_show(now)}"


def _list_rows(rows: "Sequence[Row]", number: int) -> Iterator[str]:
    for row in rows:
        yield f"{_SIGNS[row.change]} {row.words}"
        for name, (was, now) in row.fields.items():
            values = "edited" if name == "text" else f"{_show(was)}, now {_show(now)}"
            yield f"    {name}: {values}"
    if number > len(rows):
        yield f"and {number - len(rows):,} more; --limit 0 shows all"


def _show(value: object) -> str:
    from kpyramid.cli.console import shorten

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return shorten(text, _LONGEST)
