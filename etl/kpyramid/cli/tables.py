"""`kpyramid conflicts` and `kpyramid sql`: what a snapshot's tables say."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kpyramid.cli.options import Natural
from kpyramid.cli.render import Result, count_things, lay_out, name_values

if TYPE_CHECKING:
    from kpyramid.snapshot.conflicts import Conflict
    from kpyramid.snapshot.snapshot import Snapshot


def conflicts(*, opened: "Snapshot") -> Result:
    """List facts of which at most one holds, each side with its sentence, the newest first.

    They are found by every build: several values of a property or relation that has one, a
    statement and its denial, relations that are contrary. Nothing is dropped for it. To say which
    value holds, write it into the corrections file (`publish.corrections`, see docs/build.md).

    Example: kpyramid conflicts --json
    """
    found = [*opened.conflicts.list_all()]
    return name_values(snapshot=opened.id, conflicts=found, words=_word_conflicts(opened.id, found))


def _word_conflicts(snapshot: str, found: "Sequence[Conflict]") -> Iterator[str]:
    for conflict in found:
        yield conflict.detail
        yield from (f"  {side}" for side in conflict.sides)
    yield f"Snapshot {snapshot}: {count_things(len(found), 'conflict')}."


def sql(query: str, /, *, opened: "Snapshot", limit: Natural = 20) -> Result:
    """Ask a snapshot's tables and views in SQL: one SELECT, run by DuckDB, which reads no file.

    `show all tables` names them; docs/tables.md says what they mean. --json
    has all rows.

    Example: kpyramid sql "select head, relation, tail from facts where confidence > 0.9 limit 5"

    `query`: the SELECT.
    `limit`: most rows that are printed as a table; 0 for all.
    """
    from kpyramid.snapshot.export import run_sql

    rows = run_sql(opened, query)
    shown = rows[: limit or None]
    notes = [f"{len(rows) - len(shown):,} more; --limit 0 shows all"] if shown != rows else []
    words = lay_out(map(_write_maps, shown), **{n: n for n in rows[0]}) if rows else ["No rows."]
    return name_values(snapshot=opened.id, rows=rows, words=words, notes=notes)


def _write_maps(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the pairs of its maps as a map has them."""
    return {
        name: dict(value)
        if isinstance(value, list) and value and type(value[0]) is tuple
        else value
        for name, value in row.items()
    }
