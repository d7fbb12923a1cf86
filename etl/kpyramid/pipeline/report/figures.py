"""Both layers as a figure (PolyRAG Figure 4): point clouds drawn as SVG."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.pipeline.report.tables import Numbers, SnapshotTables, to_numpy

# Points of Figure 4 from a snapshot: both layers, the priority region, the condensed graph.

MOST_POINTS = 1500
"""Points of a layer that are drawn; of more, those whose hashes come first."""

_MOST_MARKS = 12

Points = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Cloud:
    """Points of one kind, shape (n, 3): x, y, and how many facts lie there.

    `total`: how many there are, drawn or not.
    """

    name: str
    points: Points
    total: int


@dataclass(frozen=True, slots=True, eq=False)
class Ellipse:
    """Where a layer's Gaussian has two standard deviations, on the first two axes."""

    name: str
    mean: Points
    covariance: Points


@dataclass(frozen=True, slots=True)
class Mark:
    """The label of a proposal at the median place of the facts that support it."""

    label: str
    x: float
    y: float


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """What the three panels show, in one space.

    `highest`, `high`: the phrases of highest priority that say a quarter of the facts, and those
    of the next quarter, as far as they are in the priority region.
    """

    graph: Cloud
    ontology: Cloud
    highest: Cloud
    high: Cloud
    linked: Cloud
    free: Cloud
    ellipses: tuple[Ellipse, ...]
    marks: tuple[Mark, ...]
    explained: tuple[float, ...]


def read_figure(tables: SnapshotTables) -> Figure | None:
    """The points of the figure; None of a graph without facts."""
    columns = ("phrase_id", "layer", "facts", "x", "y", "region")
    phrases = tables.read("phrases", columns)
    graph = phrases.filter(pc.equal(phrases["layer"], "graph"))
    if not graph.num_rows:
        return None
    other = phrases.filter(pc.equal(phrases["layer"], "ontology"))
    explained = tables.read("layers", ("explained",))["explained"].to_pylist()
    linked, free = _count_condensed(tables, graph)
    quarters = _rank_phrases(tables, graph)
    return Figure(
        graph=_sample("graph", graph, graph["facts"]),
        ontology=_sample("ontology", other, other["facts"]),
        highest=_sample("highest", graph, np.where(quarters == 1, graph["facts"], 0)),
        high=_sample("high", graph, np.where(quarters == 2, graph["facts"], 0)),
        linked=_sample("linked", graph, linked),
        free=_sample("free", graph, free),
        ellipses=tuple(
            _fit(name, part)
            for name, part in (("graph", graph), ("ontology", other))
            if part.num_rows
        ),
        marks=tuple(_place_proposals(tables, graph)),
        explained=tuple(explained[0][:2]) if explained else (),
    )


def _sample(name: str, phrases: pa.Table, facts: pa.ChunkedArray | Points) -> Cloud:
    """The phrases that some facts say, the first by key of too many: keys are hashes."""
    counts = np.asarray(facts, dtype=np.float64)
    said = np.flatnonzero(counts > 0)
    points = np.stack([np.asarray(phrases["x"]), np.asarray(phrases["y"]), counts], axis=1)[said]
    return Cloud(name, points[:MOST_POINTS], len(said))


def _rank_phrases(tables: SnapshotTables, graph: pa.Table) -> Numbers:
    """The quarter of the facts that each phrase falls in by its priority, 1 for the highest.

    Phrases outside the priority region have 5.
    """
    scored = tables.read("priorities", ("phrase_id", "sign", "log_magnitude"))
    at = pc.index_in(graph["phrase_id"].combine_chunks(), scored["phrase_id"].combine_chunks())
    sign = to_numpy(scored["sign"].combine_chunks().take(at))
    magnitude = np.asarray(scored["log_magnitude"].combine_chunks().take(at))
    order = np.lexsort((-sign * magnitude, -sign))
    facts = to_numpy(graph["facts"].combine_chunks())[order]
    quarters = np.empty(len(order), dtype=np.int64)
    quarters[order] = 1 + (4 * (np.cumsum(facts) - facts)) // facts.sum()
    return np.where(np.asarray(graph["region"], dtype=bool), quarters, 5)


def _count_condensed(tables: SnapshotTables, graph: pa.Table) -> tuple[Points, Points]:
    """Per phrase of the graph the condensed facts that keep its words: near an anchor, and not."""
    condensed = tables.read("condensed", ("anchor", "derived_from", "how"))
    derived = condensed["derived_from"].combine_chunks()
    if not len(derived):
        return np.zeros(graph.num_rows), np.zeros(graph.num_rows)
    owners = to_numpy(pc.list_parent_indices(derived))
    kept = pc.equal(pc.list_flatten(condensed["how"].combine_chunks()), "kept")
    # The first of each row, those that kept their words before the others.
    order = np.lexsort((~np.asarray(kept, dtype=bool), owners))
    first = order[np.unique(owners[order], return_index=True)[1]]
    triples = pc.list_flatten(derived).take(pa.array(first))
    scored = tables.read("priorities", ("triple_id", "phrase_id"))
    at = pc.index_in(triples, scored["triple_id"].combine_chunks())
    phrase = pc.index_in(
        scored["phrase_id"].combine_chunks().take(at), graph["phrase_id"].combine_chunks()
    )
    places = to_numpy(pc.fill_null(phrase, -1))
    near = np.asarray(pc.is_valid(condensed["anchor"]), dtype=bool)
    linked, free = (
        np.bincount(places[(places >= 0) & mask], minlength=graph.num_rows).astype(np.float64)
        for mask in (near, ~near)
    )
    return linked, free


def _place_proposals(tables: SnapshotTables, graph: pa.Table) -> Iterator[Mark]:
    """The proposals that are accepted, then the open ones, the best first."""
    columns = ("proposal_id", "label", "state", "score", "triple_ids")
    rows = [
        row
        for row in tables.read("proposals", columns).to_pylist()
        if row["state"] in ("accepted", "open") and row["triple_ids"]
    ]
    rows.sort(key=lambda r: (r["state"], -r["score"], r["proposal_id"]))
    chosen = rows[:_MOST_MARKS]
    wanted = {key for row in chosen for key in row["triple_ids"]}
    phrase_of = {
        row["triple_id"]: row["phrase_id"]
        for row in tables.pick("priorities", "triple_id", wanted, ["phrase_id"])
    }
    used = pa.array(sorted(set(phrase_of.values())), pa.string())
    near = graph.filter(pc.is_in(graph["phrase_id"], used)).to_pylist()
    place = {row["phrase_id"]: (row["x"], row["y"]) for row in near}
    for row in chosen:
        points = np.array([place[phrase_of[key]] for key in row["triple_ids"]])
        x, y = np.median(points, axis=0).tolist()
        yield Mark(row["label"], x, y)


def _fit(name: str, phrases: pa.Table) -> Ellipse:
    """The Gaussian of a layer on the first two axes, of all its phrases."""
    points = np.stack([np.asarray(phrases["x"]), np.asarray(phrases["y"])])
    return Ellipse(name, points.mean(axis=1), np.cov(points, bias=True))


# The figure of both layers as SVG: three panels in one space (PolyRAG Figure 4).

# Colours of Paul Tol's bright scheme, which differ for every kind of colour vision.
_BLUE, _PALE, _GREEN, _YELLOW = "#4477aa", "#bbccdd", "#228833", "#b08000"
_RED, _ROSE = "#bb1133", "#ee8899"
_PANEL, _MARGIN, _TOP, _FOOT = 300, 26, 28, 84
_WIDTH = 3 * (_MARGIN + _PANEL) + 8
_HEIGHT = _TOP + _PANEL + _FOOT
_DIAMETERS = ((1, 3.0), (2, 4.4), (5, 6.2), (20, 8.6))
"""Facts from which on a point has a diameter, in pixels."""

_MOST_LABELS = 8

_TITLE = "Both layers in one space, before and after"


@dataclass(frozen=True, slots=True)
class _Scale:
    """From the space to pixels of a panel, one unit being as long on both axes."""

    left: float
    top: float
    unit: float

    @classmethod
    def fit(cls, points: Points) -> "_Scale":
        low, high = points.min(axis=0), points.max(axis=0)
        unit = (_PANEL - 16) / max(float((high - low).max()), 1e-9)
        middle = (low + high) / 2.0
        return cls(float(middle[0]) - _PANEL / 2 / unit, float(middle[1]) + _PANEL / 2 / unit, unit)

    def place(self, points: Points) -> Points:
        """Pixels to a tenth, within the panel."""
        x = (points[:, 0] - self.left) * self.unit
        y = (self.top - points[:, 1]) * self.unit
        placed: Points = np.clip(np.stack([x, y], axis=1), 0.0, _PANEL)
        return placed.round(1)


def draw_figure(figure: Figure) -> str:
    """The figure as one `svg` element, the same bytes for the same figure."""
    clouds = (figure.graph, figure.ontology)
    scale = _Scale.fit(np.concatenate([cloud.points[:, :2] for cloud in clouds]))
    ellipses = "".join(_draw_ellipse(e, scale) for e in figure.ellipses)
    own = "".join(_draw_ellipse(e, scale) for e in figure.ellipses if e.name == "ontology")
    panels = (
        (
            "Before: graph and ontology",
            [
                _draw_cloud(figure.graph, scale, _BLUE, 0.55),
                _draw_cloud(figure.ontology, scale, _YELLOW, 0.9, square=True),
                ellipses,
            ],
            [
                _key(figure.graph, _BLUE, "phrases of the graph"),
                _key(figure.ontology, _YELLOW, "phrases of the ontology", square=True),
            ],
        ),
        (
            "What the ontology lacks",
            [
                _draw_cloud(figure.graph, scale, _PALE, 0.8),
                _draw_cloud(figure.high, scale, _ROSE, 0.8),
                _draw_cloud(figure.highest, scale, _RED, 0.8),
                own,
                _draw_marks(figure.marks, scale),
            ],
            [
                _key(figure.highest, _RED, "phrases of highest priority: ¼ of the facts"),
                _key(figure.high, _ROSE, "phrases of the next ¼"),
            ],
        ),
        (
            "After condensation",
            [
                _draw_cloud(figure.free, scale, _BLUE, 0.55),
                _draw_cloud(figure.linked, scale, _GREEN, 0.8),
            ],
            [
                _key(figure.linked, _GREEN, "with facts linked to an anchor"),
                _key(figure.free, _BLUE, "with facts near no anchor"),
            ],
        ),
    )
    drawn = "".join(
        _draw_panel(number, title, parts, keys, figure.explained)
        for number, (title, parts, keys) in enumerate(panels)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="100%" '
        f'role="img" aria-labelledby="space-title space-about" font-size="12" '
        f'font-family="system-ui, sans-serif">'
        f'<title id="space-title">{_TITLE}</title>'
        f'<desc id="space-about">{escape(describe_figure(figure))}</desc>{drawn}</svg>'
    )


def describe_figure(figure: Figure) -> str:
    """The figure in a few sentences, for those who do not see it."""
    return (
        f"Three panels show the same plane, the first two axes of the space that both layers share"
        f"{_say_explained(figure.explained)}. Left: {figure.graph.total} phrases of the graph and "
        f"{figure.ontology.total} of the ontology, each layer's Gaussian as an ellipse at two "
        f"standard deviations. Middle: {figure.highest.total} phrases of the highest priority, "
        f"which say a quarter of the facts, {figure.high.total} of the next quarter, and the "
        f"labels of proposals where their facts lie. Right: the phrases "
        f"that condensed facts keep, {figure.linked.total} with facts linked to an anchor of the "
        f"ontology and {figure.free.total} with facts near none. A larger point stands for "
        f"more facts."
    )


def _say_explained(explained: Sequence[float]) -> str:
    if not explained:
        return ""
    return f" ({' and '.join(f'{share:.0%}' for share in explained)} of the variance)"


def _draw_panel(
    number: int,
    title: str,
    parts: Sequence[str],
    keys: Sequence[str],
    explained: Sequence[float],
) -> str:
    left = _MARGIN + number * (_MARGIN + _PANEL)
    axes = [f"axis {at + 1}: {share:.1%} of variance" for at, share in enumerate(explained)]
    across = axes[0] if axes else "axis 1"
    up = axes[1] if len(axes) > 1 else "axis 2"
    legend = "".join(
        f'<g transform="translate(4 {_PANEL + 36 + 18 * row})">{key}</g>'
        for row, key in enumerate(keys)
    )
    return (
        f'<g transform="translate({left} {_TOP})">'
        f'<text y="-10" font-size="14" font-weight="600">{escape(title)}</text>'
        f'<clipPath id="panel-{number}"><rect width="{_PANEL}" height="{_PANEL}"/></clipPath>'
        f'<rect width="{_PANEL}" height="{_PANEL}" fill="#fcfcfc" stroke="#ccc"/>'
        f'<g clip-path="url(#panel-{number})">{"".join(parts)}</g>'
        f'<text x="{_PANEL / 2}" y="{_PANEL + 15}" text-anchor="middle" fill="#555" '
        f'font-size="11">{across}</text>'
        f'<text transform="translate(-8 {_PANEL / 2}) rotate(-90)" text-anchor="middle" '
        f'fill="#555" font-size="11">{up}</text>{legend}</g>'
    )


def _draw_cloud(
    cloud: Cloud, scale: _Scale, colour: str, opacity: float, *, square: bool = False
) -> str:
    """A path per size; each point is a stroke of no length with a round or square end."""
    if not len(cloud.points):
        return ""
    places, facts = scale.place(cloud.points[:, :2]), cloud.points[:, 2]
    bounds = [least for least, _ in _DIAMETERS[1:]] + [np.inf]
    drawn = []
    for (least, diameter), most in zip(_DIAMETERS, bounds, strict=True):
        chosen = places[(facts >= least) & (facts < most)]
        if len(chosen):
            dots = "".join(f"M{x:g} {y:g}h0" for x, y in np.unique(chosen, axis=0).tolist())
            drawn.append(
                f'<path d="{dots}" stroke="{colour}" stroke-opacity="{opacity}" fill="none" '
                f'stroke-width="{diameter}" stroke-linecap="{"square" if square else "round"}"/>'
            )
    return "".join(drawn)


def _draw_ellipse(ellipse: Ellipse, scale: _Scale) -> str:
    values, vectors = np.linalg.eigh(ellipse.covariance)
    long, short = (2.0 * np.sqrt(np.maximum(values[::-1], 0.0)) * scale.unit).tolist()
    direction = vectors[:, 1] * (1.0 if vectors[0, 1] >= 0.0 else -1.0)
    angle = -np.degrees(np.arctan2(direction[1], direction[0]))
    x = (ellipse.mean[0] - scale.left) * scale.unit
    y = (scale.top - ellipse.mean[1]) * scale.unit
    colour = _YELLOW if ellipse.name == "ontology" else _BLUE
    return (
        f'<ellipse rx="{long:.1f}" ry="{short:.1f}" fill="none" stroke="{colour}" '
        f'stroke-width="1.6" transform="translate({x:.1f} {y:.1f}) rotate({angle:.1f})"/>'
    )


def _draw_marks(marks: Sequence[Mark], scale: _Scale) -> str:
    """The labels that fit beside those before them, with a halo that keeps them readable."""
    taken: list[tuple[float, float, float]] = []
    drawn = []
    for mark in marks:
        ((x, y),) = scale.place(np.array([[mark.x, mark.y]])).tolist()
        half = 3.1 * len(mark.label)
        x, y = min(max(x, half + 2), _PANEL - half - 2), min(max(y, 12.0), _PANEL - 6.0)
        if any(abs(x - a) < half + b + 4 and abs(y - c) < 14 for a, b, c in taken):
            continue
        taken.append((x, half, y))
        drawn.append(f'<text x="{x:.1f}" y="{y:.1f}">{escape(mark.label)}</text>')
    return (
        '<g font-size="11" font-weight="600" text-anchor="middle" fill="#222" stroke="#fff" '
        f'stroke-width="3" paint-order="stroke">{"".join(drawn[:_MOST_LABELS])}</g>'
    )


def _key(cloud: Cloud, colour: str, words: str, *, square: bool = False) -> str:
    shown = len(cloud.points)
    some = f", {shown:,} drawn" if shown < cloud.total else ""
    return (
        f'<path d="M6 -4h0" stroke="{colour}" stroke-width="8" '
        f'stroke-linecap="{"square" if square else "round"}"/>'
        f'<text x="18">{cloud.total:,} {escape(words)}{some}</text>'
    )
