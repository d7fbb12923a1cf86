"""Tables II and III, Figure 6 (PolyRAG V) over a user's questions, on one HTML page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from jinja2 import Environment, PackageLoader
from markupsafe import Markup

from kpyramid.evaluation.harness import Arm, Row
from kpyramid.evaluation.metrics import METRICS, SET_METRICS
from kpyramid.evaluation.results import SHARE, SURE, Figure, Results, name_layer
from kpyramid.query.polyrag import Mode
from kpyramid.query.types import RULES, Backends
from kpyramid.snapshot.evidence import Evidence

# The paper's comparisons over a user's questions: Tables II and III, Figure 6 (PolyRAG §V).

CHOICE = ("precision", "recall", "f1")
"""The paper's metrics of questions with options."""
OPEN = ("bleu_2", "bleu_4", "similarity", "hit_rate")
"""Its metrics of questions that are answered in words."""
OTHERS = ("accuracy", "right", "recall_at_5", "ndcg_at_10")
"""What stands in their place when there is no question of either kind."""
_FEW, _MANY = 5, 10
"""Triples of the context in Figure 6; the second is the default of every strategy."""
_ABSENT = "–"
_NOTE = "paper, GPT-4, other data"


@dataclass(frozen=True, slots=True)
class Reader:
    """Who takes the decisions: its name, and the backends of every arm."""

    name: str = "rules"
    backends: Backends = RULES


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table as it is printed: `rows` have a label for each of `labels`, then a cell a column."""

    title: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Way:
    """A column or row of the paper: its name, strategy, what is switched, the paper's figures.

    `paper` are GPT-4's, in the order of CHOICE, then of OPEN where Table II has them.
    """

    name: str
    strategy: str
    paper: tuple[float, ...] = ()
    options: Mapping[str, object] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    def make_arm(self, reader: Reader, mode: str) -> Arm:
        options = dict(self.options)
        if self.strategy == "polyrag":
            options.setdefault("mode", mode)
        return Arm(
            self.strategy, tuple(options.items()), reader.name, reader.backends, self.without
        )


MODES = get_args(Mode)
_DIRECT = (0.1986, 0.1453, 0.1636, 0.4109, 0.2457, 0.5415, 0.0769)
_NAIVE = (0.5032, 0.5094, 0.4651, 0.3982, 0.2404, 0.5381, 0.0599)
_KAPING = (0.6327, 0.7065, 0.6238, 0.3554, 0.2319, 0.5187, 0.0614)
_POLYRAG = (0.8711, 0.7992, 0.8109, 0.4002, 0.2609, 0.6012, 0.0777)
_METHODS = (
    _Way("Direct querying", "direct", _DIRECT),
    _Way("Naive RAG", "naive", _NAIVE),
    _Way("KAPING", "kaping", _KAPING),
    _Way("PolyRAG, Algorithm 1", "polyrag", _POLYRAG, {"mode": "paper"}),
    _Way("PolyRAG, the authors' code", "polyrag", options={"mode": "authors"}),
    _Way("PolyRAG", "polyrag", options={"mode": "best"}),
)


def _take_parts(name: str, paper: tuple[float, ...], *without: str) -> _Way:
    return _Way(name, "polyrag", paper, without=without)


_GROWTH = (
    _Way("Naive RAG", "naive", _NAIVE),
    _take_parts("Baseline", (0.7661, 0.8206, 0.7639), "completion", "condensation"),
    _take_parts("+CPL", (0.8063, 0.7909, 0.7763), "condensation"),
    _take_parts("+CND", (0.8435, 0.7853, 0.7873), "completion"),
    _take_parts("+CPL +CND", _POLYRAG),
)


def _switch(name: str, layers: str, paper: tuple[float, ...]) -> _Way:
    off = {layer: False for layer in ("ontology", "graph", "text") if layer not in layers.split()}
    return _Way(name, "polyrag", paper, off)


_LAYERS = (
    _switch("Ont.", "ontology", (0.3500, 0.4369, 0.3677)),
    _switch("KG", "graph", _KAPING),
    _switch("Raw.", "text", _NAIVE),
    _switch("Ont.+Raw.", "ontology text", (0.6464, 0.6779, 0.6303)),
    _switch("KG+Raw.", "graph text", (0.8187, 0.7729, 0.7636)),
    _switch("Ont.+KG", "ontology graph", (0.6083, 0.9032, 0.6871)),
    _switch("PolyRAG", "ontology graph text", _POLYRAG),
)
_SHARES = tuple(
    _Way(f"top {k}", "polyrag", options={} if k == _MANY else {"triples": k}) for k in (_FEW, _MANY)
)
_ADDED = (
    ("completion", _GROWTH[1], _GROWTH[2]),
    ("completion", _GROWTH[3], _GROWTH[4]),
    ("condensation", _GROWTH[1], _GROWTH[3]),
    ("condensation", _GROWTH[2], _GROWTH[4]),
    ("ontology", _LAYERS[4], _LAYERS[6]),
    ("graph", _LAYERS[3], _LAYERS[6]),
    ("text", _LAYERS[5], _LAYERS[6]),
)
"""What is added, to what, and what comes of it."""
_USE = ("above_text", "context_words")
"""What is shown of a pyramid besides how right it answers."""


def plan_grid(readers: Sequence[Reader]) -> tuple[Arm, ...]:
    """The arms of all tables, each once: polyrag in each of its modes."""
    ways = (*_METHODS, *_GROWTH, *_LAYERS, *_SHARES)
    return tuple(
        dict.fromkeys(
            way.make_arm(reader, mode) for reader in readers for mode in MODES for way in ways
        )
    )


def lay_out(results: Results, readers: Sequence[Reader]) -> tuple[Sheet, ...]:
    """The tables of the results; a metric that applies to no question has no column."""
    shown = [name for name in (*CHOICE, *OPEN) if name in results.metrics]
    shown = shown or [name for name in OTHERS if name in results.metrics]
    left = "Table III, left: completion (CPL) and condensation (CND)"
    right = "Table III, right: layers of knowledge"
    return (
        _compare_methods(results, readers, shown),
        _switch_parts(results, readers, shown, _GROWTH, left),
        _switch_parts(results, readers, shown, _LAYERS, right),
        _list_added(results, readers, shown),
        _count_layers(results, readers),
    )


def _compare_methods(results: Results, readers: Sequence[Reader], shown: Sequence[str]) -> Sheet:
    rows = [
        (way.name, reader.name, *(_show(results, way.make_arm(reader, ""), m) for m in shown))
        for way in _METHODS
        for reader in readers
    ]
    known = (*CHOICE, *OPEN)
    rows += [
        (way.name, _NOTE, *(f"{way.paper[known.index(m)]:.3f}" for m in shown))
        for way in _METHODS
        if way.paper and set(shown) <= set(known)
    ]
    return Sheet("Table II: methods", ("method", "reader"), tuple(shown), tuple(rows))


def _switch_parts(
    results: Results,
    readers: Sequence[Reader],
    shown: Sequence[str],
    ways: Sequence[_Way],
    title: str,
) -> Sheet:
    layers = [SHARE + layer for layer in ("ontology", "graph", "text")]
    told = ("right", *layers, *_USE)
    measured = [*shown, *(name for name in told if name in results.metrics and name not in shown)]
    rows = [
        (way.name, mode, reader.name, *(_show(results, way.make_arm(reader, mode), m)
        for m in measured))
        for way in ways
        for mode in (MODES if way.strategy == "polyrag" else (_ABSENT,))
        for reader in readers
    ]  # fmt: skip
    rows += [
        (way.name, _ABSENT, _NOTE, *(_quote(way, m) for m in measured))
        for way in ways
        if any(m in CHOICE for m in shown)
    ]
    columns = tuple(name.removeprefix(SHARE) for name in measured)
    return Sheet(title, ("pyramid", "mode", "reader"), columns, tuple(rows))


def _quote(way: _Way, metric: str) -> str:
    """A figure of the paper's."""
    return f"{way.paper[CHOICE.index(metric)]:.3f}" if metric in CHOICE else _ABSENT


def _list_added(results: Results, readers: Sequence[Reader], shown: Sequence[str]) -> Sheet:
    """What a part adds, question by question, with the 95 % interval of the difference."""
    told = ("right", "wrong_confident", *_USE)
    best = [name for name in shown if name not in told][-1:]
    measured = [*best, *(name for name in told if name in results.metrics)]
    rows = []
    for part, before, after in _ADDED:
        for mode in MODES:
            for reader in readers:
                names = [way.make_arm(reader, mode).name for way in (before, after)]
                cells = (_show_gain(results, names[1], names[0], metric) for metric in measured)
                rows.append((part, before.name, mode, reader.name, *cells))
    labels = ("adding", "to", "mode", "reader")
    return Sheet("What each part adds", labels, tuple(measured), tuple(rows))


def _count_layers(results: Results, readers: Sequence[Reader]) -> Sheet:
    layers = [name for name in results.metrics if name.startswith(SHARE)]
    rows = [
        (mode, reader.name, way.name, *(_show(results, way.make_arm(reader, mode), m)
        for m in layers))
        for mode in MODES
        for reader in readers
        for way in _SHARES
    ]  # fmt: skip
    columns = tuple(name.removeprefix(SHARE) for name in layers)
    title = "Figure 6: share of questions that each layer answers"
    return Sheet(title, ("mode", "reader", "triples"), columns, tuple(rows))


def _show(results: Results, arm: Arm, metric: str) -> str:
    found = results.find(arm.name, metric)
    if found is None:
        return _ABSENT
    return f"{found.mean:.0f}" if metric == "context_words" else f"{found.mean:.3f}"


def _show_gain(results: Results, arm: str, other: str, metric: str) -> str:
    found = results.compare(arm, other, metric)
    if found is None:
        return _ABSENT
    if found.low == found.high == 0:
        return "0"
    form = "+.0f" if metric == "context_words" else "+.3f"
    gain, low, high = (format(x, form) for x in (found.difference, found.low, found.high))
    return f"{gain} [{low}, {high}]"


# The page of an evaluation: one HTML file with everything in it.

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
    loader = PackageLoader("kpyramid.evaluation")
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True)
    notes: dict[Evidence, int] = {}  # the places that answers rest on, numbered as they are named
    kinds = Counter(row.question.kind for row in results.rows_by_arm[results.baseline])
    worst = [_describe_question(rows, results, notes) for rows in _list_worst(results)]
    return environment.get_template("evaluation.html.jinja").render(
        results=results.to_dict(),
        sheets=sheets,
        metrics=_list_metrics(results),
        comparisons=[c for c in results.comparisons if not c.metric.startswith(SHARE)],
        sure=SURE,
        shares=_list_shares(results),
        colours=_COLOURS,
        bands=results.bands,
        expenses=results.expenses,
        worst=worst,
        notes=[{"number": n, "place": p, "text": _shorten(p.text)} for p, n in notes.items()],
        kinds=dict(sorted(kinds.items())),
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


def _list_worst(results: Results) -> list[list[Row]]:
    """The questions with the lowest scores, all arms' rows of each; ties by id."""
    by_question: dict[str, list[Row]] = {}
    for row in results.answers.rows:
        by_question.setdefault(row.question.id, []).append(row)

    def rank(rows: Sequence[Row]) -> tuple[float, str]:
        means = [sum(r.scores.values()) / len(r.scores) for r in rows if r.scores]
        return (sum(means) / len(means) if means else 0.0, rows[0].question.id)

    return sorted(by_question.values(), key=rank)[:WORST]


def _describe_question(
    rows: Sequence[Row], results: Results, notes: dict[Evidence, int]
) -> dict[str, Any]:
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
                "notes": [
                    notes.setdefault(place, len(notes) + 1)
                    for place in row.answer.evidence[:_PLACES]
                ],
            }
            for row in rows
        ],
    }


def _shorten(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST else words[:_LONGEST].rpartition(" ")[0] + " …"
