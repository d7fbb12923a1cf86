"""The course of a run, as plain values and as a page: the report without the snapshot."""

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from kpyramid.keys import JsonValue
from kpyramid.llm.ledger import Sum, Totals, read_totals
from kpyramid.pipeline.report.words import load_template
from kpyramid.pipeline.stage import PIPELINE
from kpyramid.settings import Settings
from kpyramid.storage.identity import library_version
from kpyramid.storage.refs import name_now, read_head
from kpyramid.storage.runs import Run, StageMark, list_runs
from kpyramid.storage.writing import write_durably

log = logging.getLogger(__name__)

PLAN = "plan.json"
"""File in the run's folder with the expected cost of a build with a language model."""

FIGURE = "figure.svg"
"""File of the report's figure in the run's folder; empty for a graph without facts."""
MOST_RUNS = 30
"""Runs of a ref in a trend."""
_MEASURES = (
    *("facts", "documents", "rejects", "unread", "contradictions", "failing"),
    *("seconds", "cost"),
)


def write_pages(run: Run, report: Mapping[str, Any], figure: str) -> None:
    """Writes `report.json`, `report.html` and its figure, drawn as SVG, into the run's folder."""
    drawn = {"trend": draw_trend(report["trend"]), "figure": figure}
    text = load_template("report.html.jinja").render(report=report, **drawn)
    write_durably(run.folder / "report.json", json.dumps(report, indent=1).encode())
    write_durably(run.folder / FIGURE, figure.encode(errors="replace"))
    write_durably(run.folder / "report.html", text.encode(errors="replace"))


def describe_course(run: Run, marks: Sequence[StageMark]) -> dict[str, Any]:
    """The course of a run stage by stage, with the requests to its models."""
    publish, totals = marks[-1], read_totals(run.folder)
    record = json.loads(run.warehouse.store.read(f"runs/{run.name}/run.json") or b"{}")
    head = read_head(run.warehouse, run.ref)
    return {
        "run": run.name,
        "snapshot": publish.details["snapshot"],
        "ref": run.ref,
        "committed": publish.details["committed"],
        "head": head.snapshot if head else None,
        "corpus": run.corpus,
        "started": record.get("started"),
        "ended": name_now(),
        "took": round(sum(mark.seconds for mark in marks), 1),
        "host": record.get("host"),
        "software": library_version("kpyramid"),
        "git_sha": record.get("git_sha"),
        "settings": list_differences(Settings(), run.settings),
        "rows": dict(publish.rows),
        "rejects": {mark.stage: dict(mark.rejects) for mark in marks if mark.rejects},
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
        "refused_by": [n for n, verdict in publish.gates.items() if verdict.startswith("fail")],
    }


def add_trend(run: Run, report: dict[str, Any]) -> None:
    """Adds the figures of the ref's last runs to a report, this run last, and those a week ago."""
    runs = list_runs(run.warehouse)
    record = next((row for row in runs if row["run"] == run.name), {})
    this = {**record, "ended": report["ended"], "figures": measure_report(report)}
    this["status"] = "refused" if report["refused_by"] else "done"
    others = [row for row in runs if row["ref"] == run.ref and row["run"] != run.name]
    report["trend"] = [
        {name: row.get(name) for name in ("run", "started", "status", "figures")}
        for row in [*reversed(others[: MOST_RUNS - 1]), this]
    ]
    report["week"] = _find_week(report["trend"])


def draw_trend(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A line per measure that differs over the runs, the latest last; empty for a single run.

    `points`: of a polyline, x in [0, 100] and y in [2, 28]; `failed`: x of runs without figures.
    """
    step = 100 / max(len(runs) - 1, 1)
    figures = [row["figures"] if isinstance(row["figures"], Mapping) else {} for row in runs]
    failed = [round(i * step, 1) for i, row in enumerate(figures) if not row]
    lines = []
    for name in _MEASURES:
        known = [(i, row.get(name)) for i, row in enumerate(figures)]
        values = [(i, value) for i, value in known if isinstance(value, int | float)]
        low, high = (f((value for _, value in values), default=0) for f in (min, max))
        if len(values) > 1 and low < high:
            unit = 26 / (high - low)
            placed = [f"{i * step:.1f},{28 - (value - low) * unit:.1f}" for i, value in values]
            shown = {"low": low, "high": high, "last": values[-1][1], "failed": failed}
            lines.append({"name": name, "points": " ".join(placed), **shown})
    return lines


def measure_report(report: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The figures of a run, for its record and for trends."""
    rows = report["rows"]
    return {
        "documents": rows.get("documents", 0),
        "facts": rows.get("condensed", 0),
        "things": rows.get("entities", 0),
        "values": rows.get("instances", 0),
        "unread": sum(len(kind["refused"]) for kind in report["unread"]),
        "rejects": sum(row["count"] for row in report["refused"]),
        "contradictions": report["contradictions"] + report["withdrawals"],
        "failing": sum(not check["holds"] for check in report.get("checks", [])),
        "checks": {check["check"]: check["value"] for check in report.get("checks", [])},
        "seconds": report["took"],
        "cost": report["cost"],
        "changes": report["changes"],
    }


def _find_week(trend: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The figures of the newest finished run a week before the last one; None without any."""
    with suppress(ValueError):  # of a damaged record
        day = datetime.fromisoformat(str(trend[-1]["started"])) - timedelta(days=6.5)
        rows = (row for row in reversed(trend) if str(row["started"]) <= day.isoformat())
        done = (row["figures"] for row in rows if row["status"] == "done")
        return next(filter(None, done), None)
    return None


def list_differences(before: Settings, after: Settings) -> dict[str, list[JsonValue]]:
    """The two values of each setting that differs, by key such as `chunk.max_tokens`."""
    old, new = asdict(before), asdict(after)
    return {
        f"{part}.{key}": [old[part][key], new[part][key]]
        for part in old
        for key in old[part]
        if old[part][key] != new[part][key]
    }


def describe_mark(mark: StageMark) -> dict[str, JsonValue]:
    """The counts of a stage, as commands, reports and DAGs show them."""
    names = ("rows", "rejects", "recomputed", "seconds")
    return {name: getattr(mark, name) for name in names}


def _describe_model(
    run: Run, marks: Sequence[StageMark], totals: Totals
) -> dict[str, JsonValue] | None:
    """The requests to models and their cost, with the planned ones; None without any.

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
                "answered_by": counts.get("answered_by", {}),
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
    """The plan of each stage from the build's start; empty without one."""
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
