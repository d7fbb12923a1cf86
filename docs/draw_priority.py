"""The figure of `priority.md`: where Eq. 7 ranks the wrong way round, drawn from its formula."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import exp, log, pi

Point = tuple[float, float]

WIDE, HIGH = 300.0, 230.0
"""Inner size of a panel."""
LEFT, TOP, GAP = 50.0, 58.0, 70.0
RIGHT_WAY, WRONG_WAY, INK, FAINT = "#4477aa", "#cc3344", "#222222", "#777777"
UNITS = 1.0, 100.0
"""By how much the densities of the third panel are multiplied."""


def draw_priority() -> str:
    """Three panels: g, the sign of Eq. 7 over both log densities, Eq. 7 in two units."""
    width, height = LEFT * 2 + 3 * WIDE + 2 * GAP, TOP + HIGH + 72.0
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        'font-family="sans-serif" font-size="12">',
        "<title>PolyRAG Eq. 7: its sign and its unit</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
    ]
    for number, panel in enumerate((_draw_terms, _draw_signs, _draw_units)):
        lines.append(f'<g transform="translate({LEFT + number * (WIDE + GAP):.0f},{TOP:.0f})">')
        lines += panel()
        lines.append("</g>")
    return "\n".join([*lines, "</svg>"]) + "\n"


def divide_log(log_density: float) -> float:
    """g(x) = ln x / x of a density given by its log."""
    return log_density * exp(-log_density)


def find_border(ratio: float) -> Point:
    """The log densities at which Eq. 7 is nought though the second is `ratio` times the first.

    From ln x / x = ln(rx) / (rx) follows ln x = ln r / (r - 1).
    """
    low = log(ratio) / (ratio - 1.0)
    return low, low + log(ratio)


def score_line(place: float, factor: float) -> float:
    """Eq. 7 at a place of a line for graph N(2, 1), ontology N(0, 1), densities times `factor`."""
    graph, ontology = (
        factor * exp(-0.5 * (place - mean) ** 2) / (2.0 * pi) ** 0.5 for mean in (2.0, 0.0)
    )
    return graph * log(ontology) - ontology * log(graph)


def _draw_terms() -> Iterator[str]:
    to = _scale(-1.0, 6.0, -1.0, 0.6)
    yield from _frame(to, "log density u", range(-1, 7), "g = u·exp(-u)")
    yield from _title("g(F) = ln F / F rises below u = 1, falls above")
    curve = [(step / 50.0, divide_log(step / 50.0)) for step in range(-28, 301)]
    rising = [to(*point) for point in curve if point[0] <= 1.0]
    falling = [to(*point) for point in curve if point[0] >= 1.0]
    yield _draw_line(rising, WRONG_WAY, 2.5)
    yield _draw_line(falling, RIGHT_WAY, 2.5)
    yield _draw_line([to(1.0, -1.0), to(1.0, 0.6)], FAINT, 1, dashed=True)
    yield _write(to(1.1, -0.92), "F = e", FAINT)


def _draw_signs() -> Iterator[str]:
    to = _scale(-3.0, 5.0, -3.0, 5.0)
    border = [find_border(1.0 + 1e-9)] + [find_border(exp(0.02 * step)) for step in range(1, 400)]
    above = [point for point in border if point[1] <= 5.0]
    below = [(second, first) for first, second in above]
    edge = [*reversed(below), *above, (above[-1][0], 5.0), (5.0, 5.0)]
    edge += [(5.0, below[-1][1])]
    yield f'<rect width="{WIDE:.0f}" height="{HIGH:.0f}" fill="{WRONG_WAY}" fill-opacity="0.22"/>'
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (to(*point) for point in edge))
    yield f'<polygon points="{path}" fill="#ffffff"/>'
    yield f'<polygon points="{path}" fill="{RIGHT_WAY}" fill-opacity="0.25"/>'
    yield from _frame(to, "log density of the ontology", range(-3, 6), "log density of the graph")
    yield from _title("Sign of Eq. 7: above the diagonal the graph is denser")
    yield _draw_line([to(-3.0, -3.0), to(5.0, 5.0)], INK, 1)
    yield _draw_line([to(0.0, -3.0), to(0.0, 5.0)], FAINT, 1, dashed=True)
    yield _write(to(1.25, 4.3), "positive: right", RIGHT_WAY)
    yield _write(to(-2.8, 1.2), "negative: wrong", WRONG_WAY)
    yield _write(to(2.6, 0.75), "negative: right", RIGHT_WAY)
    yield _write(to(-0.4, -2.6), "positive: wrong", WRONG_WAY)
    yield _draw_line([to(-1.6, -0.2), to(1.5, 2.9)], INK, 1.5)
    for place in ((-1.6, -0.2), (1.5, 2.9)):
        x, y = to(*place)
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{INK}"/>'
    yield _write(to(-2.8, -0.75), "one point,", INK)
    yield _write(to(-2.8, -1.2), "two units", INK)


def _draw_units() -> Iterator[str]:
    to = _scale(-3.0, 5.0, -1.15, 1.6)
    yield from _frame(to, "place: ontology around 0, graph around 2", range(-3, 6), "Eq. 7, scaled")
    yield from _title("The same two layers in two units")
    places = [-3.0 + 0.05 * step for step in range(161)]
    for factor, colour in zip(UNITS, (WRONG_WAY, RIGHT_WAY), strict=True):
        values = [score_line(place, factor) for place in places]
        top = max(map(abs, values))
        line = [to(place, value / top) for place, value in zip(places, values, strict=True)]
        yield _draw_line(line, colour, 2.5)
        best = places[values.index(max(values))]
        yield _draw_line([to(best, -1.15), to(best, 1.2)], colour, 1, dashed=True)
    yield _write(to(-2.8, 1.33), "densities × 1: highest", WRONG_WAY)
    yield _write(to(1.2, 1.33), "× 100: highest", RIGHT_WAY)


def _scale(left: float, right: float, low: float, high: float) -> Callable[[float, float], Point]:
    def to(x: float, y: float) -> Point:
        return (x - left) / (right - left) * WIDE, (high - y) / (high - low) * HIGH

    return to


def _frame(
    to: Callable[[float, float], Point], below: str, ticks: Sequence[int], beside: str
) -> Iterator[str]:
    yield (
        f'<rect width="{WIDE:.0f}" height="{HIGH:.0f}" fill="none" '
        f'stroke="{FAINT}" stroke-width="1"/>'
    )
    for tick in ticks:
        x = to(float(tick), 0.0)[0]
        yield _write((x, HIGH + 16.0), str(tick), FAINT, anchor="middle")
    level = to(0.0, 0.0)[1]
    yield _draw_line([(0.0, level), (WIDE, level)], FAINT, 1, dashed=True)
    yield _write((WIDE / 2.0, HIGH + 36.0), below, INK, anchor="middle")
    yield (
        f'<text transform="translate(-10,{HIGH / 2.0:.0f}) rotate(-90)" fill="{INK}" '
        f'text-anchor="middle">{beside}</text>'
    )


def _title(words: str) -> Iterator[str]:
    yield f'<text x="0" y="-14" font-weight="bold" fill="{INK}">{words}</text>'


def _write(place: Point, words: str, colour: str, anchor: str = "start") -> str:
    x, y = place
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{words}</text>'


def _draw_line(points: Iterable[Point], colour: str, width: float, *, dashed: bool = False) -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}" '
        f'stroke-width="{width:g}"{dashes}/>'
    )
