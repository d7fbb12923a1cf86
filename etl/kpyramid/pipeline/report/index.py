"""The index page of a warehouse: its runs with links to their reports."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kpyramid.errors import InputError
from kpyramid.pipeline.report.course import MOST_RUNS, draw_trend
from kpyramid.pipeline.report.words import load_template
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.runs import list_runs
from kpyramid.storage.writing import write_durably

INDEX = "index.html"
"""Default name of the page, in a warehouse that is a folder."""


def write_index(place: Warehouse, path: Path) -> dict[str, Any]:
    """Writes the page; returns its content as plain values."""
    rows = [{**row, "page": _link(place, str(row["run"]), path)} for row in list_runs(place)]
    refs = {str(row["ref"]): [r for r in rows if r["ref"] == row["ref"]] for row in rows}
    trends = {ref: draw_trend([*reversed(runs[:MOST_RUNS])]) for ref, runs in refs.items()}
    content = {"place": place.locate(), "runs": rows, "refs": trends}
    page = load_template("index.html.jinja").render(**content)
    write_durably(path.absolute(), page.encode(errors="replace"))
    return content


def find_run(place: Warehouse, rows: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """The row of a run by its name, or of the newest, `last`.

    Raises:
        InputError: there is none; names the newest three.
    """
    for row in rows:
        if name in (row["run"], "last"):
            return row
    known = ", ".join(str(row["run"]) for row in rows[:3]) or "none"
    raise InputError(f"there is no run {name!r} in {place.locate('runs')}; the last: {known}")


def _link(place: Warehouse, run: str, path: Path) -> str | None:
    """The relative link from a page to a run's report; None where a browser finds none."""
    report = place.root / "runs" / run / "report.html"
    if place.bucket or not report.is_file():
        return None
    return Path(os.path.relpath(report, path.absolute().parent)).as_posix()
