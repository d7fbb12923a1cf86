"""Commands of who operates a warehouse: move refs, list their logs and the runs, clear up."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    WarehouseOption,
    command,
    count_things,
    name_first,
    print_found,
)
from kpyramid.errors import SettingsError

if TYPE_CHECKING:
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
def promote(
    ref: MovedArgument, snapshot: SnapshotArgument, warehouse: WarehouseOption = DEFAULT_WAREHOUSE
) -> None:
    """Move a ref to a snapshot, forward or back, because you say so; no gate is asked.

    Every byte of the snapshot is checked first. The move is a new entry of the log. Builds go on
    after the later of both orders. Two moves at once: one is done, the other ends with exit code 7.

    Examples: kpyramid promote production main; kpyramid promote main 1f3a0c9b7d2e4a56
    """
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.publication import promote as move
    from kpyramid.storage.refs import resolve_ref

    place = open_warehouse(warehouse)
    identifier = resolve_ref(place, snapshot)
    entry = move(place, ref, identifier, at=_name_now())
    found = {"ref": ref, "snapshot": identifier, "moved": entry is not None}
    before = entry.parent if entry else identifier
    moved = f"is at snapshot {identifier} now, before at {before or 'none'}"
    stays = f"is at snapshot {identifier} already"
    said = [f"Ref {ref} {moved}.", *_name_exports(place, ref)] if entry else [f"Ref {ref} {stays}."]
    print_found({**found, "before": before}, said)


@command(app)
def rollback(ref: MovedArgument, warehouse: WarehouseOption = DEFAULT_WAREHOUSE) -> None:
    """Undo the last move of a ref: back to the snapshot it had before.

    It is a new entry of the log; nothing is removed. A second rollback goes one further back. The
    next build moves the ref forward as ever, unless it makes the very snapshot that was undone:
    that one comes back by `kpyramid promote` only. Exports by Airflow follow within 15 minutes.

    Example: kpyramid rollback main
    """
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.publication import rollback as move

    place = open_warehouse(warehouse)
    entry = move(place, ref, at=_name_now())
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
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove the tag; the snapshot stays until gc.")
    ] = False,
) -> None:
    """Give a snapshot a name that never moves; gc keeps what has one.

    Example: kpyramid tag release-7 main
    """
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.publication import remove_tag
    from kpyramid.storage.publication import tag as make
    from kpyramid.storage.refs import resolve_ref

    place = open_warehouse(warehouse)
    if remove:
        was = remove_tag(place, name)
        words = f"Tag {name} is removed; it was at snapshot {was}."
        print_found({"tag": name, "snapshot": was, "removed": True}, [words])
        return
    identifier = resolve_ref(place, snapshot)
    made = make(place, name, identifier, at=_name_now())
    words = f"Tag {name} {'is' if made else 'was already'} at snapshot {identifier}, and stays."
    print_found({"tag": name, "snapshot": identifier, "removed": False}, [words])


@command(app)
def retire(
    refs: Annotated[list[str], typer.Argument(metavar="REF...", help="The names that go.")],
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
) -> None:
    """Remove refs that nobody needs any more, such as those of backfilled days.

    Their snapshots stay until `gc`, which frees what no other ref is at. Their logs stay for
    `kpyramid log`, with who was where and when; a build or `promote` brings a ref back. `main` is
    refused, and so is a tag: `kpyramid tag --remove`. Is one of the names none, nothing is removed.

    Example: kpyramid retire demo-2026-11-01 demo-2026-11-02
    """
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.publication import retire as end

    gone = end(open_warehouse(warehouse), refs, at=_name_now())
    lines = [f"Ref {ref} is retired; it was at snapshot {was}." for ref, was in gone.items()]
    print_found({"retired": gone}, lines)


@command(app)
def log(
    ref: Annotated[str, typer.Argument(help="A ref or a tag.")] = "main",
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
) -> None:
    """Show what a ref was at, newest first: when it moved, why, and to which snapshot.

    The names in the first column are understood wherever a snapshot is named.
    """
    from kpyramid.cli.console import print_rows
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.refs import find_entry, list_entries
    from kpyramid.storage.snapshots import date_snapshots

    place = open_warehouse(warehouse)
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
def runs(warehouse: WarehouseOption = DEFAULT_WAREHOUSE) -> None:
    """List the runs of a warehouse, newest first, and what each came to.

    `kpyramid build` makes a run each time; its report lies in the folder runs/RUN.
    """
    from kpyramid.cli.console import print_rows
    from kpyramid.pipeline.stage import PIPELINE
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.runs import list_runs

    rows = list_runs(open_warehouse(warehouse))
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
    warehouse: WarehouseOption = DEFAULT_WAREHOUSE,
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
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.retention import Policy, collect
    from kpyramid.storage.trash import KINDS

    place = open_warehouse(warehouse)
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
    from kpyramid.storage.trash import measure

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


def _name_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
