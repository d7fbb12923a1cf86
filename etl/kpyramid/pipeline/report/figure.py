"""What is drawn: both layers in one space, before and after (PolyRAG, Figure 4), and a trend."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kpyramid.pipeline.report.account import Row, read_query, select_rows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database

MOST_POINTS = 1500
"""Phrases of a layer that are drawn: of more, those whose keys, which are hashes, come first."""
_MOST_LABELS = 8
_SIZE = 300
"""Side of a panel in pixels."""
_MEASURES = (
    *("facts", "documents", "rejects", "unread", "contradictions", "failing"),
    *("seconds", "cost"),
)


@dataclass(frozen=True, slots=True)
class Figure:
    """Layers of phrases in three panels, proposals at their places, in pixels of a panel.

    `explained`: the share of the variance that each axis holds.
    """

    layers: list[Row]
    labels: list[Row]
    explained: list[float]
    size: int = _SIZE
    most: int = MOST_POINTS


def read_figure(database: "Database") -> Figure | None:
    """The figure of a snapshot, whose tables these are; None of a graph without facts."""
    layers = select_rows(database, read_query("figure"), size=_SIZE, most=MOST_POINTS)
    if not any(row["layer"] == 0 for row in layers):
        return None
    labels = select_rows(database, read_query("labels"), size=_SIZE, most=_MOST_LABELS)
    explained = select_rows(database, "SELECT explained FROM layers ORDER BY layer LIMIT 1")
    return Figure(layers, labels, explained[0]["explained"][:2] if explained else [])


def draw_trend(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A line per measure that differs over the runs, the latest last; empty of a single one.

    `points`: of a polyline, x in [0, 100] and y in [2, 28]; `failed`: x of runs without figures.
    """
    step = 100 / max(len(runs) - 1, 1)
    figures = [row["figures"] if isinstance(row["figures"], Mapping) else {} for row in runs]
    failed = [round(at * step, 1) for at, row in enumerate(figures) if not row]
    lines = []
    for name in _MEASURES:
        known = [(at, row.get(name)) for at, row in enumerate(figures)]
        values = [(at, value) for at, value in known if isinstance(value, int | float)]
        low, high = (f((value for _, value in values), default=0) for f in (min, max))
        if len(values) > 1 and low < high:
            unit = 26 / (high - low)
            placed = [f"{at * step:.1f},{28 - (value - low) * unit:.1f}" for at, value in values]
            shown = {"low": low, "high": high, "last": values[-1][1], "failed": failed}
            lines.append({"name": name, "points": " ".join(placed), **shown})
    return lines
