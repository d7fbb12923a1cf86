"""Both layers in one space, before and after, as SVG (PolyRAG, Figure 4)."""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from jinja2 import Environment, PackageLoader, Template

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database

MOST_POINTS = 1500
"""Phrases of a layer that are drawn: of more, those whose keys, which are hashes, come first."""
_MOST_LABELS = 8
_SIZE = 300
"""Side of a panel in pixels."""
# Colours of Paul Tol's bright scheme, which differ for every kind of colour vision.
_BLUE, _PALE, _GREEN, _YELLOW, _RED = "#4477aa", "#bbccdd", "#228833", "#b08000", "#bb1133"

Points = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """Phrases of one kind on the first two axes, shape (n, 2)."""

    words: str
    colour: str
    points: Points


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """Layers from the bottom up; `gaussians`: those drawn as ellipses; labels with their places."""

    title: str
    layers: tuple[Layer, ...]
    gaussians: tuple[Layer, ...] = ()
    labels: tuple[tuple[str, float, float], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """Three panels in one space, and the share of the variance that each axis explains."""

    panels: tuple[Panel, ...]
    explained: tuple[float, ...]

    def describe(self) -> str:
        """The figure in words, for those who do not see it."""
        panels = "; ".join(
            f"{panel.title}: "
            + ", ".join(f"{len(layer.points):,} {layer.words}" for layer in panel.layers)
            for panel in self.panels
        )
        return f"The first two axes of the space that both layers share. {panels}."


def read_figure(database: "Database") -> Figure | None:
    """The figure of a snapshot, whose tables these are; None of a graph without facts."""
    rows = database.sql(_PHRASES).to_arrow_table()
    phrases = {name: np.asarray(rows[name]) for name in rows.column_names}
    graph = phrases["layer"] == "graph"
    if not graph.any():
        return None
    places = np.stack([phrases["x"], phrases["y"]], axis=1)

    def pick(words: str, colour: str, mask: npt.NDArray[np.bool_]) -> Layer:
        return Layer(words, colour, places[np.asarray(mask, dtype=bool)])

    layers = (
        pick("phrases of the graph", _BLUE, graph),
        pick("phrases of the ontology", _YELLOW, ~graph),
    )
    region = graph & phrases["region"]
    lacking = (
        pick("phrases that it covers", _PALE, graph & ~region),
        pick("phrases of the priority region", _RED, region),
    )
    condensed = (
        pick("phrases with facts near no anchor", _BLUE, graph & phrases["free"]),
        pick("phrases with facts linked to an anchor", _GREEN, graph & phrases["linked"]),
    )
    labels = tuple(database.sql(_LABELS, params=[_MOST_LABELS]).fetchall())
    explained = database.sql("SELECT explained FROM layers ORDER BY layer LIMIT 1").fetchall()
    return Figure(
        (
            Panel("Before: graph and ontology", layers, tuple(x for x in layers if len(x.points))),
            Panel("What the ontology lacks", lacking, labels=labels),
            Panel("After condensation", condensed),
        ),
        tuple(explained[0][0][:2]) if explained else (),
    )


_PHRASES = """
WITH used AS (
    SELECT phrase_id, bool_or(anchor IS NOT NULL) AS linked, bool_or(anchor IS NULL) AS free
    FROM derivations JOIN condensed USING (condensed_id) JOIN priorities USING (triple_id)
    WHERE derivations.how = 'kept' GROUP BY phrase_id
)
SELECT layer, x, y, region, coalesce(linked, false) AS linked, coalesce(free, false) AS free
FROM phrases LEFT JOIN used USING (phrase_id) ORDER BY phrase_id
"""
"""The phrases, and whether facts that were kept of them are linked to an anchor, or near none."""
_LABELS = """
SELECT label, median(x) AS x, median(y) AS y
FROM (
    SELECT proposal_id, label, state, score, unnest(triple_ids) AS triple_id
    FROM proposals WHERE state IN ('accepted', 'open')
) JOIN priorities USING (triple_id) JOIN phrases USING (phrase_id)
GROUP BY proposal_id, label, state, score ORDER BY state, score DESC, proposal_id LIMIT ?
"""
"""Accepted proposals, then open ones, the best first, at the median of their facts' phrases."""


def draw_figure(figure: Figure) -> str:
    """The figure as one `svg` element, the same bytes for the same figure."""
    everything = np.concatenate([layer.points for layer in figure.panels[0].layers])
    low, high = everything.min(axis=0), everything.max(axis=0)
    unit = (_SIZE - 16) / max(float((high - low).max()), 1e-9)
    corner = (low + high) / 2.0 + np.array([-_SIZE, _SIZE]) / 2.0 / unit

    def scale(points: Points) -> Points:
        """Pixels to a tenth; the second axis points upwards."""
        placed: Points = np.clip((points - corner) * np.array([unit, -unit]), 0.0, _SIZE)
        return placed.round(1)

    def draw(layer: Layer) -> str:
        """Each point is a stroke of no length with round ends."""
        places = np.unique(scale(layer.points[:MOST_POINTS]), axis=0)
        return "".join(f"M{x:g} {y:g}h0" for x, y in places.tolist())

    def turn(layer: Layer) -> dict[str, float | str]:
        """The Gaussian of a layer at two standard deviations."""
        covariance = np.cov(layer.points.T, bias=True)
        values, vectors = np.linalg.eigh(covariance)
        short, long = (2.0 * np.sqrt(np.maximum(values, 0.0)) * unit).tolist()
        direction = vectors[:, 1] * (1.0 if vectors[0, 1] >= 0.0 else -1.0)
        ((x, y),) = scale(layer.points.mean(axis=0, keepdims=True)).tolist()
        angle = float(-np.degrees(np.arctan2(direction[1], direction[0])))
        shape = {"x": x, "y": y, "long": long, "short": short, "angle": angle}
        return {"colour": layer.colour, **shape}

    panels = [
        {
            "title": panel.title,
            "layers": [(layer, draw(layer)) for layer in panel.layers],
            "ellipses": [turn(layer) for layer in panel.gaussians],
            "labels": [
                (label, *scale(np.array([[x, y]]))[0].tolist()) for label, x, y in panel.labels
            ],
        }
        for panel in figure.panels
    ]
    return load_template("figure.svg.jinja").render(
        panels=panels,
        size=_SIZE,
        most=MOST_POINTS,
        explained=figure.explained,
        about=figure.describe(),
    )


def load_template(name: str) -> Template:
    """A page, or a part of one, of the report."""
    return _open_templates().get_template(name)


@cache
def _open_templates() -> Environment:
    loader = PackageLoader("kpyramid.pipeline.report")
    return Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
