"""The report of a run: how it went, what changed and is in it, what was refused and why."""

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.decisions import load_decisions
from kpyramid.errors import InputError, IntegrityError, PyramidError
from kpyramid.keys import JsonValue
from kpyramid.llm.ledger import Sum, Totals, read_totals
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.pipeline.report.account import (
    describe_completion,
    describe_condensation,
    describe_content,
    describe_rejects,
    open_tables,
    read_facts,
)
from kpyramid.pipeline.report.figure import Figure, draw_trend, read_figure
from kpyramid.pipeline.report.words import load_template
from kpyramid.pipeline.stage import PIPELINE
from kpyramid.pipeline.stages.ingest import list_unread
from kpyramid.settings import Settings
from kpyramid.snapshot.diff import Change, Row, compare
from kpyramid.snapshot.overview import summarise_snapshot
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import EVERYTHING
from kpyramid.storage.contracts import load_contracts, read_table
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.identity import library_version
from kpyramid.storage.refs import read_head
from kpyramid.storage.runs import Run, StageMark, list_runs, read_mark
from kpyramid.storage.snapshots import find_manifest, has_snapshot
from kpyramid.storage.writing import write_durably

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database

log = logging.getLogger(__name__)

PLAN = "plan.json"
"""What a build with a language model expected to pay, in the run's folder."""

_MOST_WITHDRAWN = 200
"""Withdrawn statements that a report names; the table `rejects` has all of them."""
_MOST_CHANGES = 12
"""Rows of a kind of change that a report names; `kpyramid diff` has all of them."""
_MOST_THINGS, _MOST_RUNS = 10, 30


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
    write_durably(run.folder / "report.json", json.dumps(report, indent=1).encode())
    drawn = {"trend": draw_trend(report["trend"]), "figure": account.figure}
    text = load_template("report.html.jinja").render(report=report, **drawn)
    write_durably(run.folder / "report.html", text.encode(errors="replace"))
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
    head, before = read_head(run.warehouse, run.ref), _find_before(run, committed)
    totals, runs = read_totals(run.folder), list_runs(run.warehouse)
    record = next((row for row in runs if row["run"] == run.name), {})
    with open_tables(folder) as database:
        opened = Snapshot(folder, scope=EVERYTHING)
        overview = summarise_snapshot(opened, _MOST_THINGS)
        content = describe_content(database, overview, opened.schema)
        refused = describe_rejects(database)
        changes, changed = _describe_changes(run, before, opened, database)
    report: dict[str, Any] = {
        "run": run.name,
        "snapshot": snapshot,
        "ref": run.ref,
        "committed": committed,
        "head": head.snapshot if head else None,
        "corpus": run.corpus,
        "started": record.get("started"),
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "took": round(sum(mark.seconds for mark in marks), 1),
        "host": record.get("host"),
        "software": library_version("kpyramid"),
        "git_sha": record.get("git_sha"),
        "settings": list_differences(Settings(), run.settings),
        "rows": dict(publish.rows),
        "content": content,
        "unread": [asdict(kind) for kind in list_unread(rejects)],
        "rejects": {mark.stage: dict(mark.rejects) for mark in marks if mark.rejects},
        "refused": refused,
        "withdrawn": _list_withdrawn(rejects),
        "contradictions": publish.rows.get("contradictions", 0),
        "contradicting": _name_contradiction(run, snapshot),
        "recomputed": {mark.stage: mark.recomputed for mark in marks},
        "seconds": {mark.stage: mark.seconds for mark in marks},
        "stages": [
            {"stage": m.stage, **describe_mark(m), "rejects": sum(m.rejects.values())}
            for m in marks
        ],
        "calls": totals.run.calls,
        "tokens": totals.run.tokens,
        "cost": totals.run.cost,
        "model": _describe_model(run, marks, totals),
        "gates": dict(publish.gates),
        "refused_by": [n for n, said in publish.gates.items() if said.startswith("fail")],
        "checks": json.loads(publish.details.get("checks", "[]")),
        "unmatched": [
            row["detail"] for row in rejects.to_pylist() if row["reason"] == "unmatched_correction"
        ],
        "changes": changes,
        "changed": changed,
        "before": before and {n: e["rows"] for n, e in _read_tables(run, before).items()},
        "decisions": _describe_decisions(run, snapshot),
    }
    this = {**record, "ended": report["ended"], "figures": measure_report(report)}
    this["status"] = "refused" if report["refused_by"] else "done"
    others = [row for row in runs if row["ref"] == run.ref and row["run"] != run.name]
    report["trend"] = [
        {name: row.get(name) for name in ("run", "started", "status", "figures")}
        for row in [*reversed(others[: _MOST_RUNS - 1]), this]
    ]
    report["week"] = _find_week(report["trend"])
    return report


def measure_report(report: Mapping[str, Any]) -> dict[str, JsonValue]:
    """What a run came to in numbers, for its record: what a trend is drawn of."""
    rows = report["rows"]
    return {
        "documents": rows.get("documents", 0),
        "facts": rows.get("condensed", 0),
        "things": rows.get("entities", 0),
        "values": rows.get("instances", 0),
        "unread": sum(len(kind["refused"]) for kind in report["unread"]),
        "rejects": sum(row["count"] for row in report["refused"]),
        "contradictions": report["contradictions"] + len(report["withdrawn"]),
        "failing": sum(not check["holds"] for check in report["checks"]),
        "checks": {check["check"]: check["value"] for check in report["checks"]},
        "seconds": report["took"],
        "cost": report["cost"],
        "changes": report["changes"],
    }


def _find_week(trend: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The figures of the newest run that was done a week before the last one; None without any."""
    with suppress(ValueError):  # of a damaged record
        day = datetime.fromisoformat(str(trend[-1]["started"])) - timedelta(days=6.5)
        rows = (row for row in reversed(trend) if str(row["started"]) <= day.isoformat())
        return next((row["figures"] for row in rows if row["figures"]), None)
    return None


def list_differences(one: Settings, other: Settings) -> dict[str, list[JsonValue]]:
    """The values of both by key, such as `chunk.max_tokens`, where they differ."""
    old, new = asdict(one), asdict(other)
    return {
        f"{part}.{key}": [old[part][key], new[part][key]]
        for part in old
        for key in old[part]
        if old[part][key] != new[part][key]
    }


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


def describe_mark(mark: StageMark) -> dict[str, JsonValue]:
    """The counts of a stage, as commands, reports and DAGs show them."""
    names = ("rows", "rejects", "recomputed", "seconds")
    return {name: getattr(mark, name) for name in names}


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


def _describe_model(
    run: Run, marks: tuple[StageMark, ...], totals: Totals
) -> dict[str, JsonValue] | None:
    """What models were asked and what it took, beside what was planned; None without any.

    A stage that asked for nothing new has no calls; one that is not part of a build, like a
    batch that was sent before, has no hits.
    """
    planned = _read_plan(run)
    asked = {mark.stage: mark.model for mark in marks if mark.model}
    names = [s.name for s in PIPELINE if s.name in asked or s.name in totals.stages]
    names += sorted(set(totals.stages) - set(names))
    if not names:
        return None
    stages: list[JsonValue] = []
    for name in names:
        counts = asked.get(name, {})
        requests, hits = _count(counts, "asked"), _count(counts, "hits")
        stages.append(
            {
                "stage": name,
                "asked": requests,
                "hits": hits,
                "hit_rate": round(hits / requests, 4) if requests else None,
                "failures": counts.get("failures", {}),
                **totals.stages.get(name, Sum()).describe(),
                "planned": planned.get(name),
            }
        )
    return {
        "stages": stages,
        "tasks": {name: total.describe() for name, total in sorted(totals.tasks.items())},
        "documents": [
            {"document": name, "calls": total.calls, "tokens": total.tokens, "cost": total.cost}
            for name, total in totals.list_dearest()
        ],
        "torn": totals.torn,
        **totals.run.describe(),
    }


def _count(counts: Mapping[str, JsonValue], name: str) -> int:
    value = counts.get(name)
    return value if isinstance(value, int) else 0


def _read_plan(run: Run) -> dict[str, JsonValue]:
    """What the plan at the build's start said of each stage; empty when none was made."""
    try:
        rows = json.loads((run.folder / PLAN).read_bytes())
        return {
            row["stage"]: {"calls": row["calls"], "tokens": row["tokens"], "cost": row["cost"]}
            | (row.get("model") or {})
            for row in rows
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError) as e:
        log.warning("plan %s cannot be read, the report leaves it out: %s", run.folder / PLAN, e)
        return {}


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
