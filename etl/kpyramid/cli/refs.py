"""Commands that move refs, and that list their logs, the snapshots and the runs."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    WarehouseOption,
    command,
    print_found,
)

app = typer.Typer()

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
    print_found({**found, "before": before}, [f"Ref {ref} {moved if entry else stays}."])


@command(app)
def rollback(ref: MovedArgument, warehouse: WarehouseOption = DEFAULT_WAREHOUSE) -> None:
    """Undo the last move of a ref: back to the snapshot it had before.

    It is a new entry of the log; nothing is removed. A second rollback goes one further back. The
    next build moves the ref forward as ever, unless it makes the very snapshot that was undone:
    that one comes back by `kpyramid promote` only.

    Example: kpyramid rollback main
    """
    from kpyramid.storage.layout import open_warehouse
    from kpyramid.storage.publication import rollback as move

    entry = move(open_warehouse(warehouse), ref, at=_name_now())
    print_found(
        {"ref": ref, "snapshot": entry.snapshot, "undone": entry.parent, "order": entry.order},
        [
            f"Ref {ref} is at snapshot {entry.snapshot} again; {entry.parent} is undone.",
            f"To have it back: kpyramid promote {ref} {entry.parent}",
        ],
    )


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
    make(place, name, identifier, at=_name_now())
    words = f"Tag {name} is at snapshot {identifier} and stays there."
    print_found({"tag": name, "snapshot": identifier, "removed": False}, [words])


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

    place = open_warehouse(warehouse)
    find_entry(place, ref)  # says which refs there are
    rows = [
        {
            "name": f"{ref}@{back}" if back else ref,
            "at": entry.at,
            "action": entry.action,
            "snapshot": entry.snapshot,
            "there": (place.snapshots / entry.snapshot).is_dir(),
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


def _name_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
