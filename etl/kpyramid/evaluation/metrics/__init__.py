"""The measures of answers, by name; nothing heavy is loaded before a measure needs it."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TypeVar

from kpyramid.embeddings.port import Embedder
from kpyramid.evaluation.metrics.answers import (
    ANSWER_METRICS,
    ANSWER_TOTALS,
    CHOICE_METRICS,
    EXPENSE_METRICS,
    EXPENSE_TOTALS,
    LAYER_METRICS,
    RUNNING_METRICS,
)
from kpyramid.evaluation.metrics.overlap import (
    OVERLAP_METRICS,
    OnnxTokenEncoder,
    TokenEncoder,
    build_bert_score,
    build_similarity,
)
from kpyramid.evaluation.metrics.retrieval import RETRIEVAL_METRICS
from kpyramid.evaluation.metrics.types import (
    Metric,
    Pair,
    Response,
    SetMetric,
    aggregate,
    measure_all,
)

M = TypeVar("M", Metric, SetMetric)


def _name(metrics: Iterable[M]) -> Mapping[str, M]:
    return MappingProxyType({metric.name: metric for metric in metrics})


METRICS: Mapping[str, Metric] = _name(
    (
        *CHOICE_METRICS,
        *ANSWER_METRICS,
        *OVERLAP_METRICS,
        *RETRIEVAL_METRICS,
        *RUNNING_METRICS,
        *LAYER_METRICS,
    )
)
"""The measures of a response that need no model; the same for the same answers."""
EXPENSES: Mapping[str, Metric] = _name(EXPENSE_METRICS)
"""Calls, tokens, cost and seconds of a response, which differ from run to run."""
SET_METRICS: Mapping[str, SetMetric] = _name(ANSWER_TOTALS)
"""The measures of all responses together; the same for the same answers."""
SET_EXPENSES: Mapping[str, SetMetric] = _name(EXPENSE_TOTALS)
"""Calls, tokens and cost in all, and percentiles of the seconds."""


def open_metrics(embedder: Embedder, encoder: TokenEncoder | None = None) -> Mapping[str, Metric]:
    """`METRICS` with the embedder's similarity, and BERTScore where an encoder is given."""
    scores = build_bert_score(encoder) if encoder else ()
    return _name((*METRICS.values(), build_similarity(embedder), *scores))


__all__ = [
    "EXPENSES",
    "METRICS",
    "SET_EXPENSES",
    "SET_METRICS",
    "Metric",
    "OnnxTokenEncoder",
    "Pair",
    "Response",
    "SetMetric",
    "TokenEncoder",
    "aggregate",
    "measure_all",
    "open_metrics",
]
