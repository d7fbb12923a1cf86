"""The report of a run: what was made, refused, proposed and merged, what the gates said."""

import json
import logging
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.decisions import load_decisions
from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import JsonValue
from kpyramid.llm.ledger import Sum, Totals, read_totals
from kpyramid.ontology.schema import parse_schema
from kpyramid.pipeline.report.account import (
    describe_completion,
    describe_condensation,
    open_tables,
)
from kpyramid.pipeline.report.figure import draw_figure, load_template, read_figure
from kpyramid.pipeline.stage import PIPELINE
from kpyramid.pipeline.stages.ingest import list_unread
from kpyramid.storage.contracts import load_contracts, read_table
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.refs import read_head
from kpyramid.storage.runs import Run, StageMark, read_mark
from kpyramid.storage.snapshots import find_manifest, has_snapshot
from kpyramid.storage.writing import write_durably

log = logging.getLogger(__name__)

PLAN = "plan.json"
"""What a build with a language model expected to pay, in the run's folder."""

_EXAMPLES = 3
_MOST_WITHDRAWN = 200
"""Withdrawn statements that a report names; the table `rejects` has all of them."""


def write_report(run: Run, marks: tuple[StageMark, ...] | None = None) -> StageMark:
    """Writes `report.json` and `report.html` into the run's folder; returns publish's mark.

    Raises:
        InputError: a stage of the run is not done.
    """
    done = marks or tuple(m for stage in PIPELINE if (m := read_mark(run, stage.name)))
    if [mark.stage for mark in done] != [stage.name for stage in PIPELINE]:
        raise InputError(f"run {run.name}: not all stages are done, there is nothing to report")
    publish = done[-1]
    _warn_of_lost_decisions(run, publish.details["committed"])
    account = describe_snapshot(locate_snapshot(run.warehouse, publish.details["snapshot"]))
    report = {
        **describe_run(run, done),
        "completion": account.completion,
        "condensation": account.condensation,
    }
    write_durably(run.folder / "report.json", json.dumps(report, indent=1).encode())
    text = load_template("report.html.jinja").render(
        report=report, figure=account.figure, figure_words=account.figure_words
    )
    write_durably(run.folder / "report.html", text.encode())
    return publish


@dataclass(frozen=True, slots=True)
class Account:
    """Completion and condensation as plain values, and the figure as SVG with its words."""

    completion: dict[str, JsonValue]
    condensation: dict[str, JsonValue]
    figure: str | None
    figure_words: str


def describe_snapshot(folder: Path) -> Account:
    """The account of the snapshot in a folder, asked of its tables.

    Raises:
        IntegrityError: a table or the schema is missing or damaged.
    """
    path = folder / "ontology" / "schema.ttl"
    try:
        turtle = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise IntegrityError(f"schema {path} cannot be read: {e}") from e
    schema = parse_schema(turtle, source=str(path))
    with open_tables(folder) as database:
        figure = read_figure(database)
        return Account(
            describe_completion(database, schema),
            describe_condensation(database, schema),
            draw_figure(figure) if figure else None,
            figure.describe() if figure else "",
        )


def describe_run(run: Run, marks: tuple[StageMark, ...]) -> dict[str, object]:
    """The report as plain values."""
    publish = marks[-1]
    snapshot = publish.details["snapshot"]
    rejects = _read_rows(run, snapshot, "rejects")
    head = read_head(run.warehouse, run.ref)
    totals = read_totals(run.folder)
    return {
        "run": run.name,
        "snapshot": snapshot,
        "ref": run.ref,
        "committed": publish.details["committed"],
        "head": head.snapshot if head else None,
        "corpus": run.corpus,
        "rows": dict(publish.rows),
        "unread": [asdict(kind) for kind in list_unread(rejects)],
        "rejects": {mark.stage: dict(mark.rejects) for mark in marks if mark.rejects},
        "examples": _pick_examples(rejects),
        "withdrawn": _list_withdrawn(rejects),
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
        "changes": publish.details.get("changes"),
        "before": _compare_rows(run, publish.details["committed"]),
        "decisions": _describe_decisions(run, snapshot),
    }


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


def _pick_examples(rejects: pa.Table) -> dict[str, list[str]]:
    """The first details of every reason, so that a number can be understood."""
    examples: dict[str, list[str]] = {}
    for row in rejects.select(["stage", "reason", "detail"]).to_pylist():
        shown = examples.setdefault(f"{row['stage']}: {row['reason']}", [])
        if len(shown) < _EXAMPLES:
            shown.append(row["detail"][:300])
    return dict(sorted(examples.items()))


def _list_withdrawn(rejects: pa.Table) -> list[dict[str, str]]:
    """The statements that contradicted others and lost: reason, and what, why and where."""
    rows = rejects.filter(pc.equal(rejects["stage"], "publish")).select(["reason", "detail"])
    return list(rows.sort_by("detail").slice(0, _MOST_WITHDRAWN).to_pylist())


def _compare_rows(run: Run, committed: str) -> dict[str, int] | None:
    """Rows of the snapshot that the ref had before this run, for the eye; None for the first."""
    before = _find_before(run, committed)
    if before is None:
        return None
    return {name: entry["rows"] for name, entry in _read_tables(run, before).items()}


def _find_before(run: Run, committed: str) -> str | None:
    """The snapshot that the ref had before this run; None for the first, or where it is gone."""
    head = read_head(run.warehouse, run.ref)
    before = head and (head.parent if committed == "yes" else head.snapshot)
    return before if before and has_snapshot(run.warehouse, before) else None


def _read_tables(run: Run, snapshot: str) -> Mapping[str, Mapping[str, int]]:
    """What the manifest of a snapshot says of its tables: rows and version of the contract."""
    tables = find_manifest(run.warehouse, snapshot)["tables"]
    return cast("Mapping[str, Mapping[str, int]]", tables)
