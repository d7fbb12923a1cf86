"""The page of an evaluation: one HTML file with everything in it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from kpyramid.evaluation.grid import Sheet
from kpyramid.evaluation.harness import Row
from kpyramid.evaluation.metrics import METRICS, SET_METRICS
from kpyramid.evaluation.results import SHARE, SURE, Figure, Results, name_layer
from kpyramid.query.pyramid.evidence import Evidence

WORST = 20
"""Questions that the page shows in full."""
_PLACES = 3
"""Places of an answer that are linked."""
_LONGEST = 600
_WIDTH = 160
_TINY = 1e-9
_COLOURS = {
    "ontology": "#228833",
    "graph": "#4477aa",
    "text": "#ccbb44",
    "model": "#aa3377",
    "none": "#bbbbbb",
}
"""Of Paul Tol's bright scheme, which differ for every kind of colour vision."""


def render_page(results: Results, sheets: Sequence[Sheet] = ()) -> str:
    """The page as HTML; nothing in it is loaded from elsewhere."""
    environment = Environment(loader=PackageLoader("kpyramid"), autoescape=True, trim_blocks=True)
    notes = _Notes()
    worst = [_describe_question(rows, results, notes) for rows in _list_worst(results)]
    return environment.get_template("evaluation.html.jinja").render(
        results=results.to_dict(),
        sheets=sheets,
        metrics=_list_metrics(results),
        comparisons=_list_comparisons(results),
        shares=_list_shares(results),
        colours=_COLOURS,
        expenses=results.expenses,
        worst=worst,
        notes=notes.places,
        kinds=_count(row.question.kind for row in results.rows_by_arm[results.baseline]),
    )


def _list_metrics(results: Results) -> list[dict[str, Any]]:
    """Each metric with every arm's figure and its bar."""
    listed = []
    for metric in results.all_metrics:
        found = [results.find(arm, metric) for arm in results.rows_by_arm]
        figures = [figure for figure in found if figure is not None]
        if metric.startswith(SHARE) or not figures:
            continue
        most = max(1.0, *(figure.high for figure in figures))
        known = METRICS.get(metric) or SET_METRICS.get(metric)
        bars = [{"figure": figure, "bar": draw_bar(figure, most)} for figure in figures]
        listed.append({"name": metric, "about": known.about if known else "", "bars": bars})
    return listed


def draw_bar(figure: Figure, most: float) -> Markup:
    """The mean as a bar from 0 to `most`, the interval as a line across its end."""
    mean, low, high = (
        round(_WIDTH * max(x, 0.0) / most, 1) for x in (figure.mean, figure.low, figure.high)
    )
    said = f"{figure.mean:.3f}, 95 % interval {figure.low:.3f} to {figure.high:.3f}"
    return Markup(  # noqa: S704 - numbers only
        f'<svg width="{_WIDTH + 4}" height="14" role="img" aria-label="{said}">'
        f'<rect y="2" width="{mean}" height="10" fill="#4477aa" opacity=".55"/>'
        f'<path d="M{low} 7H{high}M{low} 3V11M{high} 3V11" stroke="#222" fill="none"/></svg>'
    )


def _list_shares(results: Results) -> list[dict[str, Any]]:
    """Each arm's shares of the layers, and where in the bar they begin."""
    listed = []
    for arm in results.rows_by_arm:
        at, parts = 0.0, []
        found = {layer: results.find(arm, SHARE + layer) for layer in _COLOURS}
        shares = {layer: figure.mean for layer, figure in found.items() if figure}
        if not shares:
            continue
        for layer, share in {**shares, "none": 1.0 - sum(shares.values())}.items():
            if share > _TINY:
                parts.append({"layer": layer, "at": at, "share": share})
                at += share
        listed.append({"arm": arm, "parts": parts})
    return listed


def _list_comparisons(results: Results) -> list[dict[str, Any]]:
    """The comparisons by metric, those that luck does not explain marked."""
    by_metric: dict[str, list[dict[str, Any]]] = {}
    for c in results.comparisons:
        differs = c.p_holm < SURE
        by_metric.setdefault(c.metric, []).append({"row": c, "differs": differs})
    return [
        {"metric": metric, "rows": rows}
        for metric, rows in by_metric.items()
        if not metric.startswith(SHARE)
    ]


class _Notes:
    """The places that answers rest on, numbered from 1 in the order they are named."""

    def __init__(self) -> None:
        self._numbers: dict[Evidence, int] = {}

    def number(self, place: Evidence) -> int:
        return self._numbers.setdefault(place, len(self._numbers) + 1)

    @property
    def places(self) -> list[dict[str, Any]]:
        return [
            {"number": number, "place": place, "text": _shorten(place.text)}
            for place, number in self._numbers.items()
        ]


def _list_worst(results: Results) -> list[list[Row]]:
    """The questions with the lowest scores, all arms' rows of each; ties by id."""
    by_question: dict[str, list[Row]] = {}
    for row in results.answers.rows:
        by_question.setdefault(row.question.id, []).append(row)

    def rank(rows: Sequence[Row]) -> tuple[float, str]:
        means = [sum(r.scores.values()) / len(r.scores) for r in rows if r.scores]
        return (sum(means) / len(means) if means else 0.0, rows[0].question.id)

    return sorted(by_question.values(), key=rank)[:WORST]


def _describe_question(rows: Sequence[Row], results: Results, notes: _Notes) -> dict[str, Any]:
    question = rows[0].question
    return {
        "question": question,
        "gold": "; ".join(question.values) or ", ".join(question.gold_documents),
        "answers": [
            {
                "arm": row.arm.name,
                "text": row.failure or row.answer.text,
                "failed": row.failure is not None,
                "layer": name_layer(row),
                "confidence": row.answer.confidence,
                "scores": {
                    name: row.scores[name] for name in results.metrics if name in row.scores
                },
                "trace": [str(step) for step in row.answer.trace],
                "notes": [notes.number(place) for place in row.answer.evidence[:_PLACES]],
            }
            for row in rows
        ],
    }


def _count(kinds: Iterable[str]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for kind in kinds:
        found[kind] = found.get(kind, 0) + 1
    return dict(sorted(found.items()))


def _shorten(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else words[:_LONGEST].rpartition(" ")[0] + " …"
