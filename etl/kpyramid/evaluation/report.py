"""Tables II and III, Figure 6 (PolyRAG V) over a user's questions, on one HTML page."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from jinja2 import Environment, PackageLoader

from kpyramid.evaluation.harness import Arm, Row
from kpyramid.evaluation.metrics import METRICS
from kpyramid.evaluation.results import SHARE, SURE, Results, name_layer
from kpyramid.query.polyrag import Mode
from kpyramid.query.types import RULES, Backends
from kpyramid.snapshot.evidence import Evidence

# The paper's comparisons over a user's questions: Tables II and III, Figure 6 (PolyRAG §V).

CHOICE = ("precision", "recall", "f1")
"""The paper's metrics of questions with options."""
OPEN = ("bleu_2", "bleu_4", "similarity", "hit_rate")
"""The paper's metrics of questions that are answered in words."""
_ABSENT = "–"


@dataclass(frozen=True, slots=True)
class Reader:
    """Who takes the decisions: the name, and the backends of every arm."""

    name: str = "rules"
    backends: Backends = RULES


@dataclass(frozen=True, slots=True)
class Sheet:
    """A printed table: `rows` have a label for each of `labels`, then a cell per column."""

    title: str
    labels: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class _Way:
    """A row of the paper's tables: name, strategy, and changed options."""

    name: str
    strategy: str = "polyrag"
    options: Mapping[str, object] = field(default_factory=dict)

    def list_arms(self, reader: Reader) -> Mapping[str, Arm]:
        """The arms of a row: for polyrag one for each of its modes."""
        arms = {}
        for mode in get_args(Mode) if self.strategy == "polyrag" else ("",):
            options = {**self.options, "mode": mode} if mode else self.options
            given = tuple(options.items())
            arms[mode or _ABSENT] = Arm(self.strategy, given, reader.name, reader.backends)
        return arms


def _switch_off(name: str, *layers: str) -> _Way:
    return _Way(name, options=dict.fromkeys(layers, False))


_TABLES: Mapping[str, tuple[_Way, ...]] = {
    "Table II: methods": (
        _Way("Direct querying", "direct"),
        _Way("Naive RAG", "naive"),
        _Way("KAPING", "kaping"),
        _Way("PolyRAG"),
    ),
    "Table III, right: layers of knowledge": (
        _switch_off("Ont.", "graph", "text"),
        _switch_off("KG", "ontology", "text"),
        _switch_off("Raw.", "ontology", "graph"),
        _switch_off("Ont.+Raw.", "graph"),
        _switch_off("KG+Raw.", "ontology"),
        _switch_off("Ont.+KG", "text"),
        _Way("PolyRAG"),
    ),
    "Figure 6: share of questions that each layer answers": (
        _Way("top 5", options={"triples": 5}),
        _Way("top 10"),
    ),
}
_USE = ("above_text", "context_words")
"""Metrics of a pyramid's use, besides its right answers."""


def plan_grid(readers: Sequence[Reader]) -> tuple[Arm, ...]:
    """The distinct arms of all tables: polyrag in each of its modes."""
    ways = [way for table in _TABLES.values() for way in table]
    arms = (arm for reader in readers for way in ways for arm in way.list_arms(reader).values())
    return tuple(dict.fromkeys(arms))


def lay_out(results: Results, readers: Sequence[Reader]) -> tuple[Sheet, ...]:
    """The tables of the results; metrics that apply to no question have no column."""
    known = [name for name in (*CHOICE, *OPEN) if name in results.metrics]
    shares = [name for name in results.metrics if name.startswith(SHARE)]
    used = ("right", *shares, *_USE)
    more = [name for name in used if name in results.metrics and name not in known]
    sheets = []
    for title, ways in _TABLES.items():
        shown = shares if title.startswith("Figure") else [*known, *more]
        rows = tuple(
            (way.name, mode, reader.name, *(_show(results, arm, metric) for metric in shown))
            for way in ways
            for reader in readers
            for mode, arm in way.list_arms(reader).items()
        )
        columns = tuple(name.removeprefix(SHARE) for name in shown)
        sheets.append(Sheet(title, ("pyramid", "mode", "reader"), columns, rows))
    return tuple(sheets)


def _show(results: Results, arm: Arm, metric: str) -> str:
    figure = results.find(arm.name, metric)
    if figure is None:
        return _ABSENT
    return f"{figure.mean:.0f}" if metric == "context_words" else f"{figure.mean:.3f}"


# The page of an evaluation: one HTML file with everything in it.

WORST = 20
"""Questions shown in full on the page."""
_PLACES = 3
"""Linked places of an answer."""


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
        bands=results.bands,
        expenses=results.expenses,
        worst=worst,
        notes=notes,
        kinds=dict(sorted(kinds.items())),
    )


def _list_metrics(results: Results) -> list[dict[str, Any]]:
    """Each metric with the figures of all arms."""
    listed = []
    for metric in results.metrics:
        cells = (results.find(arm, metric) for arm in results.rows_by_arm)
        figures = [figure for figure in cells if figure is not None]
        about = METRICS[metric].about if metric in METRICS else ""
        listed.append({"name": metric, "about": about, "figures": figures})
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
