"""From scores to a figure with its interval."""

from collections.abc import Sequence
from math import isnan

from kpyramid.evaluation.metrics.types import Metric, Pair
from kpyramid.evaluation.statistics import SAMPLES, Interval, bootstrap


def aggregate(
    metric: Metric, values: Sequence[float | None], seed: int = 0, samples: int = SAMPLES
) -> Interval | None:
    """The mean of the scores that apply, with its interval; None when none applies.

    None is left out and never counted as 0; an unanswered question was scored 0 by the metric.

    Raises:
        ValueError: a score is not a number.
    """
    known = [value for value in values if value is not None]
    if any(isnan(value) for value in known):
        raise ValueError(f"{metric.name}: a score is not a number; a metric gives None instead")
    return bootstrap(known, seed, samples) if known else None


def measure_all(
    metric: Metric, pairs: Sequence[Pair], seed: int = 0, samples: int = SAMPLES
) -> Interval | None:
    """The metric's figure over questions and responses; None when it applies to none.

    Raises:
        ValueError: a score is not a number.
    """
    return aggregate(metric, [metric.measure(q, r) for q, r in pairs], seed, samples)
