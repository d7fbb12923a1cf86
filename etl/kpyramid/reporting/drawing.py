"""The figure of both layers as SVG: three panels in one space (PolyRAG Figure 4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import numpy as np

from kpyramid.reporting.clouds import Cloud, Ellipse, Figure, Mark, Points

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
