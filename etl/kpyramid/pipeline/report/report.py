"""The report of a run: how it went, what changed and is in it, what was refused and why."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.decisions import load_decisions
from kpyramid.errors import InputError, IntegrityError, PyramidError
from kpyramid.keys import JsonValue
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.pipeline.report.account import (
    describe_checked,
    describe_completion,
    describe_condensation,
    describe_content,
    describe_rejects,
    open_tables,
    read_facts,
)
from kpyramid.pipeline.report.course import add_trend, describe_course, write_pages
from kpyramid.pipeline.report.figure import Figure, read_figure
from kpyramid.pipeline.report.words import load_template
from kpyramid.pipeline.stage import PIPELINE
from kpyramid.pipeline.stages.ingest import list_unread
from kpyramid.snapshot.diff import Change, Row, compare
from kpyramid.snapshot.individuals import summarise_snapshot
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import EVERYTHING
from kpyramid.storage.contracts import load_contracts, read_table
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.refs import read_head
from kpyramid.storage.runs import Run, StageMark, read_mark
from kpyramid.storage.snapshots import find_manifest, has_snapshot

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database

log = logging.getLogger(__name__)

_MOST_WITHDRAWN = 200
"""Withdrawn statements that a report names; the table `rejects` has all of them."""
_MOST_CHANGES = 12
"""Rows of a kind of change that a report names; `kpyramid diff` has all of them."""
_MOST_THINGS = 10


def write_report(run: Run, marks: tuple[StageMark, ...] | None = None) -> dict[str, Any]:
    """Writes `report.json` and `report.html` into the run's folder; the report as plain values.

    Raises:
        InputError: a stage of the run is not done.
    """
    done = marks or tuple(m for stage in PIPELINE if (m := read_mark(run, stage.name)))
    if [mark.stage for mark in done] != [stage.name for stage in PIPELINE]:
        raise InputError(f"run {run.name}: not all stages are done, there is nothing to report")
    publish = done[-1]
    _warn_of_lost_decisions(run, publish.details["committed"])
    account = describe_snapshot(locate_snapshot(run.warehouse, publish.details["snapshot"]))
    report: dict[str, Any] = {
        **describe_run(run, done),
        "completion": account.completion,
        "condensation": account.condensation,
    }
    drawn = account.figure and load_template("figure.svg.jinja").render(figure=account.figure)
    write_pages(run, report, drawn or "")
    return report


@dataclass(frozen=True, slots=True)
class Account:
    """Completion and condensation as plain values, and what is drawn of them."""

    completion: dict[str, JsonValue]
    condensation: dict[str, JsonValue]
    figure: Figure | None


def describe_snapshot(folder: Path) -> Account:
    """The account of the snapshot in a folder, asked of its tables.

    Raises:
        IntegrityError: a table or the schema is missing or damaged.
    """
    schema = _read_schema(folder)
    with open_tables(folder) as database:
        completion = describe_completion(database, schema)
        return Account(completion, describe_condensation(database, schema), read_figure(database))


def _read_schema(folder: Path) -> Schema:
    path = folder / "ontology" / "schema.ttl"
    try:
        turtle = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise IntegrityError(f"schema {path} cannot be read: {e}") from e
    return parse_schema(turtle, source=str(path))


def describe_run(run: Run, marks: tuple[StageMark, ...]) -> dict[str, Any]:
    """The report as plain values, without what is said of completion and condensation."""
    publish = marks[-1]
    snapshot, committed = publish.details["snapshot"], publish.details["committed"]
    folder = locate_snapshot(run.warehouse, snapshot)
    rejects = _read_rows(run, snapshot, "rejects")
    before = _find_before(run, committed)
    with open_tables(folder) as database:
        opened = Snapshot(folder, scope=EVERYTHING)
        overview = summarise_snapshot(opened, _MOST_THINGS)
        content = describe_content(database, overview, opened.schema)
        refused = describe_rejects(database)
        checked = describe_checked(database)
        changes, changed = _describe_changes(run, before, opened, database)
    report: dict[str, Any] = {
        **describe_course(run, marks),
        "content": content,
        "unread": [asdict(kind) for kind in list_unread(rejects)],
        "refused": refused,
        "checked": checked,
        "withdrawn": _list_withdrawn(rejects),
        "withdrawals": pc.sum(pc.equal(rejects["stage"], "publish")).as_py() or 0,
        "contradictions": publish.rows.get("contradictions", 0),
        "contradicting": _name_contradiction(run, snapshot),
        "checks": json.loads(publish.details.get("checks", "[]")),
        "unmatched": [
            row["detail"] for row in rejects.to_pylist() if row["reason"] == "unmatched_correction"
        ],
        "changes": changes,
        "changed": changed,
        "before": before and {n: e["rows"] for n, e in _read_tables(run, before).items()},
        "decisions": _describe_decisions(run, snapshot),
    }
    add_trend(run, report)
    return report


def _describe_changes(
    run: Run, before: str | None, after: Snapshot, database: "Database"
) -> tuple[str | None, dict[str, Any]]:
    """What differs from the snapshot that the ref had: a line, counts, rows with their sentences.

    What is gone is only counted, and of what changed the present values are named: a report says
    nothing that its snapshot does not, so that a document can be erased with its snapshots.
    """
    if before is None:
        return None, {}
    if before == after.id:
        return "nothing changed", {}
    kinds: tuple[Change, ...] = ("added", "changed")
    try:
        former = Snapshot(locate_snapshot(run.warehouse, before), scope=EVERYTHING)
        with compare(former, after) as found:
            counts = {name: asdict(found.count(name)) for name in ("documents", "facts")}
            documents = {
                kind: [row.words for row in found.read("documents", _MOST_CHANGES, kind)]
                for kind in kinds
            }
            facts = {
                kind: _quote_rows(database, found.read("facts", _MOST_CHANGES, kind))
                for kind in kinds
            }
            changed = {"counts": counts, "documents": documents, "facts": facts}
            return found.summarise(), changed
    except PyramidError as e:  # by another version, damaged, or gone
        return f"not compared: {e}", {}


def _quote_rows(database: "Database", rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Facts that differ, each with its sentence and source."""
    facts = read_facts(database, [row.key for row in rows])
    quoted = {key: fact["parts"][0] for key, fact in facts.items()}
    return [
        {"fact": row.words, "fields": {name: now for name, (_, now) in row.fields.items()}}
        | {name: quoted.get(row.key, {}).get(name) for name in ("sentence", "source")}
        for row in rows
    ]


def _describe_decisions(run: Run, snapshot: str) -> dict[str, JsonValue] | None:
    """How many entries the decisions file has, and to how many proposals they apply."""
    if run.settings.complete.decisions is None:
        return None
    entries = [entry.decision for entry in load_decisions(run.settings.complete).entries]
    states = _list_decided(run, snapshot)
    return {
        "file": run.settings.complete.decisions,
        "accept": entries.count("accept"),
        "reject": entries.count("reject"),
        "accepted": states.count("accepted"),
        "rejected": states.count("rejected"),
    }


def _list_decided(run: Run, snapshot: str) -> list[str]:
    """The states that a decisions file gave to proposals of a snapshot."""
    rows = _read_rows(run, snapshot, "proposals").select(["state", "decided_by"])
    return [row["state"] for row in rows.to_pylist() if row["decided_by"] == "file"]


def _read_rows(run: Run, snapshot: str, table: str) -> pa.Table:
    path = locate_snapshot(run.warehouse, snapshot) / "tables" / f"{table}.parquet"
    return read_table(path, load_contracts()[table])


def _warn_of_lost_decisions(run: Run, committed: str) -> None:
    """Warns where a person's decisions were in the ref's last snapshot and are in no file now."""
    before = _find_before(run, committed)
    if run.settings.complete.decisions is not None or before is None:
        return
    version = _read_tables(run, before)["proposals"]["contract"]
    if version != load_contracts()["proposals"].version:
        return  # what an older version wrote
    if count := len(_list_decided(run, before)):
        log.warning(
            "ref %s was built with a decisions file, which decided on %d proposals; this build "
            "has none, and they are undecided again: name the file in complete.decisions",
            run.ref,
            count,
        )


def _list_withdrawn(rejects: pa.Table) -> list[dict[str, str]]:
    """The statements that contradicted others and lost: reason, and what, why and where."""
    rows = rejects.filter(pc.equal(rejects["stage"], "publish")).select(["reason", "detail"])
    return list(rows.sort_by("detail").slice(0, _MOST_WITHDRAWN).to_pylist())


def _name_contradiction(run: Run, snapshot: str) -> str | None:
    """What the first contradiction says."""
    rows = _read_rows(run, snapshot, "contradictions").select(["detail"]).slice(0, 1).to_pylist()
    return rows[0]["detail"] if rows else None


def _find_before(run: Run, committed: str) -> str | None:
    """The snapshot that the ref had before this run; None for the first, or where it is gone."""
    head = read_head(run.warehouse, run.ref)
    before = head and (head.parent if committed == "yes" else head.snapshot)
    return before if before and has_snapshot(run.warehouse, before) else None


def _read_tables(run: Run, snapshot: str) -> Mapping[str, Mapping[str, int]]:
    """What the manifest of a snapshot says of its tables: rows and version of the contract."""
    tables = find_manifest(run.warehouse, snapshot)["tables"]
    return cast("Mapping[str, Mapping[str, int]]", tables)
