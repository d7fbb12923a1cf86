"""`kpyramid diff`: what changed between two snapshots."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kpyramid.cli.options import (
    DEFAULT_WAREHOUSE,
    AccessOption,
    EverythingOption,
    WarehouseOption,
    print_found,
    read_scope,
    say,
)
from kpyramid.cli.refs import SNAPSHOT_HELP

if TYPE_CHECKING:
    from kpyramid.snapshot.diff import Row

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
    access: AccessOption = None,
    everything: EverythingOption = False,
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

    scope = read_scope(access, everything)
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
