"""The paper's comparisons over a user's questions: Tables II and III, Figure 6 (PolyRAG §V)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kpyramid.evaluation.harness import Arm
from kpyramid.evaluation.results import SHARE, Results
from kpyramid.query.types import RULES, Backends

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
    options: Mapping[str, object]
    without: tuple[str, ...] = ()
    paper: tuple[float, ...] = ()

    def make_arm(self, reader: Reader, mode: str) -> Arm:
        options = dict(self.options)
        if self.strategy == "polyrag":
            options.setdefault("mode", mode)
        return Arm(
            self.strategy, tuple(options.items()), reader.name, reader.backends, self.without
        )


_NONE: Mapping[str, object] = {}
_METHODS = (
    _Way(
        "Direct querying",
        "direct",
        _NONE,
        (),
        (0.1986, 0.1453, 0.1636, 0.4109, 0.2457, 0.5415, 0.0769),
    ),
    _Way("Naive RAG", "naive", _NONE, (), (0.5032, 0.5094, 0.4651, 0.3982, 0.2404, 0.5381, 0.0599)),
    _Way("KAPING", "kaping", _NONE, (), (0.6327, 0.7065, 0.6238, 0.3554, 0.2319, 0.5187, 0.0614)),
    _Way(
        "PolyRAG, as in the paper",
        "polyrag",
        {"mode": "paper"},
        (),
        (0.8711, 0.7992, 0.8109, 0.4002, 0.2609, 0.6012, 0.0777),
    ),
    _Way("PolyRAG", "polyrag", {"mode": "best"}),
)
_BOTH = ("completion", "condensation")
_GROWTH = (
    _Way("Naive RAG", "naive", _NONE, (), (0.5032, 0.5094, 0.4651)),
    _Way("Baseline", "polyrag", _NONE, _BOTH, (0.7661, 0.8206, 0.7639)),
    _Way("+CPL", "polyrag", _NONE, ("condensation",), (0.8063, 0.7909, 0.7763)),
    _Way("+CND", "polyrag", _NONE, ("completion",), (0.8435, 0.7853, 0.7873)),
    _Way("+CPL +CND", "polyrag", _NONE, (), (0.8711, 0.7992, 0.8109)),
)


def _switch(name: str, layers: str, paper: tuple[float, ...]) -> _Way:
    off = {layer: False for layer in ("ontology", "graph", "text") if layer not in layers.split()}
    return _Way(name, "polyrag", off, (), paper)


_LAYERS = (
    _switch("Ont.", "ontology", (0.3500, 0.4369, 0.3677)),
    _switch("KG", "graph", (0.6327, 0.7065, 0.6238)),
    _switch("Raw.", "text", (0.5032, 0.5094, 0.4651)),
    _switch("Ont.+Raw.", "ontology text", (0.6464, 0.6779, 0.6303)),
    _switch("KG+Raw.", "graph text", (0.8187, 0.7729, 0.7636)),
    _switch("Ont.+KG", "ontology graph", (0.6083, 0.9032, 0.6871)),
    _switch("PolyRAG", "ontology graph text", (0.8711, 0.7992, 0.8109)),
)
_SHARES = tuple(
    _Way(f"top {k}", "polyrag", {} if k == _MANY else {"triples": k}) for k in (_FEW, _MANY)
)


def plan_grid(readers: Sequence[Reader], mode: str) -> tuple[Arm, ...]:
    """The arms of all tables, each once; `mode` is polyrag's in Table III and Figure 6."""
    ways = (*_METHODS, *_GROWTH, *_LAYERS, *_SHARES)
    return tuple(dict.fromkeys(way.make_arm(reader, mode) for reader in readers for way in ways))


def lay_out(results: Results, readers: Sequence[Reader], mode: str) -> tuple[Sheet, ...]:
    """The tables of the results; a metric that applies to no question has no column or row."""
    shown = [name for name in (*CHOICE, *OPEN) if name in results.metrics]
    shown = shown or [name for name in OTHERS if name in results.metrics]
    left = "Table III, left: completion (CPL) and condensation (CND)"
    right = "Table III, right: layers of knowledge"
    return (
        _compare_methods(results, readers, mode, shown),
        _switch_parts(results, readers, mode, shown, _GROWTH, left),
        _switch_parts(results, readers, mode, shown, _LAYERS, right),
        _count_layers(results, readers, mode),
    )


def _compare_methods(
    results: Results, readers: Sequence[Reader], mode: str, shown: Sequence[str]
) -> Sheet:
    rows = [
        (way.name, reader.name, *(_show(results, way.make_arm(reader, mode), m) for m in shown))
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
    mode: str,
    shown: Sequence[str],
    ways: Sequence[_Way],
    title: str,
) -> Sheet:
    rows = [
        (reader.name, m, *(_show(results, way.make_arm(reader, mode), m) for way in ways))
        for reader in readers
        for m in shown
    ]
    rows += [
        (_NOTE, m, *(f"{way.paper[CHOICE.index(m)]:.3f}" for way in ways))
        for m in shown
        if m in CHOICE
    ]
    return Sheet(title, ("reader", "metric"), tuple(way.name for way in ways), tuple(rows))


def _count_layers(results: Results, readers: Sequence[Reader], mode: str) -> Sheet:
    layers = [name for name in results.metrics if name.startswith(SHARE)]
    rows = [
        (reader.name, way.name, *(_show(results, way.make_arm(reader, mode), m) for m in layers))
        for reader in readers
        for way in _SHARES
    ]
    columns = tuple(name.removeprefix(SHARE) for name in layers)
    title = "Figure 6: share of questions that each layer answers"
    return Sheet(title, ("reader", "triples"), columns, tuple(rows))


def _show(results: Results, arm: Arm, metric: str) -> str:
    found = results.find(arm.name, metric)
    return f"{found.mean:.3f}" if found else _ABSENT
