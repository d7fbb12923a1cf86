"""Both layers in one space, before and after, as SVG (PolyRAG, Figure 4)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.pipeline.report.tables import SnapshotTables, load_template, to_numpy

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


def read_figure(tables: SnapshotTables) -> Figure | None:
    """The figure of a snapshot; None of a graph without facts."""
    phrases = tables.read("phrases", ("phrase_id", "layer", "x", "y", "region"))
    graph = phrases.filter(pc.equal(phrases["layer"], "graph"))
    if not graph.num_rows:
        return None
    places, region = _place(graph), np.asarray(graph["region"], dtype=bool)
    linked, free = _find_condensed(tables, graph)
    layers = (
        Layer("phrases of the graph", _BLUE, places),
        Layer(
            "phrases of the ontology",
            _YELLOW,
            _place(phrases.filter(pc.equal(phrases["layer"], "ontology"))),
        ),
    )
    explained = tables.read("layers", ("explained",))["explained"].to_pylist()
    return Figure(
        (
            Panel(
                "Before: graph and ontology",
                layers,
                tuple(layer for layer in layers if len(layer.points)),
            ),
            Panel(
                "What the ontology lacks",
                (
                    Layer("phrases that it covers", _PALE, places[~region]),
                    Layer("phrases of the priority region", _RED, places[region]),
                ),
                labels=tuple(_place_proposals(tables, graph)),
            ),
            Panel(
                "After condensation",
                (
                    Layer("phrases with facts near no anchor", _BLUE, places[free]),
                    Layer("phrases with facts linked to an anchor", _GREEN, places[linked]),
                ),
            ),
        ),
        tuple(explained[0][:2]) if explained else (),
    )


def _place(phrases: pa.Table) -> Points:
    return np.stack([np.asarray(phrases["x"]), np.asarray(phrases["y"])], axis=1)


def _find_condensed(
    tables: SnapshotTables, graph: pa.Table
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which phrases condensed facts keep: those linked to an anchor, and those near none."""
    condensed = tables.read("condensed", ("anchor", "derived_from", "how"))
    derived = condensed["derived_from"].combine_chunks()
    kept = pc.equal(pc.list_flatten(condensed["how"].combine_chunks()), "kept")
    owners = pc.list_parent_indices(derived).filter(kept)
    scored = tables.read("priorities", ("triple_id", "phrase_id"))
    at = pc.index_in(pc.list_flatten(derived).filter(kept), scored["triple_id"].combine_chunks())
    used = scored["phrase_id"].combine_chunks().take(at)
    places = pc.index_in(used, graph["phrase_id"].combine_chunks())
    near = pc.is_valid(condensed["anchor"].combine_chunks()).take(owners)
    masks = []
    for chosen in (near, pc.invert(near)):
        mask = np.zeros(graph.num_rows, dtype=bool)
        mask[to_numpy(places.filter(chosen).drop_null())] = True
        masks.append(mask)
    return masks[0], masks[1]


def _place_proposals(tables: SnapshotTables, graph: pa.Table) -> Iterator[tuple[str, float, float]]:
    """Accepted proposals, then open ones, the best first, at the median of their facts' phrases."""
    columns = ("proposal_id", "label", "state", "score", "triple_ids")
    rows = [
        row
        for row in tables.read("proposals", columns).to_pylist()
        if row["state"] in ("accepted", "open") and row["triple_ids"]
    ]
    rows.sort(key=lambda row: (row["state"], -row["score"], row["proposal_id"]))
    scored = tables.read("priorities", ("triple_id", "phrase_id"))
    places = _place(graph)
    for row in rows[:_MOST_LABELS]:
        facts = scored.filter(pc.is_in(scored["triple_id"], pa.array(row["triple_ids"])))
        at = pc.index_in(facts["phrase_id"], graph["phrase_id"].combine_chunks())
        x, y = np.median(places[to_numpy(at.combine_chunks().drop_null())], axis=0).tolist()
        yield row["label"], x, y


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
