"""What is drawn: both layers in one space, before and after (PolyRAG, Figure 4), and a trend."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kpyramid.pipeline.report.account import Row, read_query, select_rows

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database

MOST_POINTS = 1500
"""Phrases of a layer that are drawn: of more, those whose keys, which are hashes, come first."""
_MOST_LABELS = 8
_SIZE = 300
"""Side of a panel in pixels."""


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
