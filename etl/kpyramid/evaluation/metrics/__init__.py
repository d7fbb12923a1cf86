"""The measures of answers, by name; nothing heavy is loaded before a measure needs it."""

from collections.abc import Mapping
from types import MappingProxyType

from kpyramid.evaluation.metrics.answers import ANSWER_METRICS
from kpyramid.evaluation.metrics.choice import CHOICE_METRICS
from kpyramid.evaluation.metrics.retrieval import RETRIEVAL_METRICS
from kpyramid.evaluation.metrics.running import RUNNING_METRICS
from kpyramid.evaluation.metrics.types import Metric, Pair, Response, SetMetric

METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (*CHOICE_METRICS, *ANSWER_METRICS, *RETRIEVAL_METRICS, *RUNNING_METRICS)
    }
)
"""All measures that need no model."""

__all__ = ["METRICS", "Metric", "Pair", "Response", "SetMetric"]
