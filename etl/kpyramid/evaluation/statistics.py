"""How sure a mean is, and whether one arm is better than another on the same questions.

Everything depends on the values, the seed and the number of samples alone, not on the order of
the questions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
T = TypeVar("T")

SAMPLES = 10_000
LEVEL = 0.95
_EXACT = 14
"""With so many differences or fewer all 2 ** 14 signs are tried: no more than are drawn else."""
_CELLS = 2_000_000
"""Values drawn at a time, 16 MB: the peak does not grow with the number of questions."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean of `count` values and the bounds between which the true one is to be expected."""

    mean: float
    low: float
    high: float
    count: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """The mean difference of `count` pairs, its interval, the chance of one so large by luck."""

    difference: float
    low: float
    high: float
    p: float
    count: int


def bootstrap(
    values: Sequence[float] | Floats, seed: int, samples: int = SAMPLES, level: float = LEVEL
) -> Interval:
    """The mean and its percentile bootstrap interval, widened for few values.

    The percentiles of the means of `samples` draws with replacement (Efron, "Bootstrap Methods:
    Another Look at the Jackknife", Annals of Statistics 1979) are too narrow by
    sqrt((n - 1) / n) and take the normal for Student's distribution; they are moved outwards by
    both, the expanded percentile interval of Hesterberg, "What Teachers Should Know About the
    Bootstrap" (The American Statistician 2015, §3.3). When all values are equal the interval is
    that one value, which is no proof that others cannot occur.

    Raises:
        ValueError: there is no value, or one is not a number.
    """
    if not len(values):
        raise ValueError("no interval of nothing: give at least one value")
    row = np.sort(np.asarray(values, dtype=np.float64))
    if np.isnan(row).any():
        raise ValueError("a value is not a number; leave out what does not apply")
    means = row[:1]
    if row[0] != row[-1]:
        generator, batch = np.random.default_rng(seed), max(1, _CELLS // len(row))
        sizes = [min(batch, samples - start) for start in range(0, samples, batch)]
        draws = (generator.integers(len(row), size=(size, len(row))) for size in sizes)
        means = np.concatenate([row[draw].mean(axis=1) for draw in draws])
    low, high = _cut_tails(means, len(row), level)
    # Rounding may leave the values.
    return Interval(float(np.clip(fsum(row) / len(row), row[0], row[-1])), low, high, len(row))


def bootstrap_statistic(
    items: Sequence[T],
    measure: Callable[[Sequence[T]], float | None],
    seed: int,
    samples: int = 1000,
    level: float = LEVEL,
) -> Interval | None:
    """As `bootstrap`, for a measure that is no mean; `mean` is its value for all items.

    None where the measure does not apply to the items; draws to which it does not apply are left
    out.

    Raises:
        ValueError: there is no item.
    """
    if not items:
        raise ValueError("no interval of nothing: give at least one item")
    whole = measure(items)
    if whole is None:
        return None
    draws = np.random.default_rng(seed).integers(len(items), size=(samples, len(items)))
    drawn = [measure([items[at] for at in draw]) for draw in draws]
    known = [value for value in drawn if value is not None] or [whole]
    return Interval(whole, *_cut_tails(known, len(items), level), len(items))


def compare_paired(
    a: Sequence[float], b: Sequence[float], seed: int, samples: int = SAMPLES
) -> Comparison:
    """How much better `a` is than `b` on the same questions, in the same order.

    The interval is the bootstrap's of the differences. `p` is the two-sided sign-flip permutation
    test (Fisher; Good, "Permutation, Parametric and Bootstrap Tests of Hypotheses", 2005): were
    the arms alike, each difference might as well have the other sign. Exact over all signs for 14
    differences or fewer, else over `samples` random ones, the observed signs counted among them,
    so that p is never 0; by scipy. Questions without a difference say nothing and change nothing.

    Raises:
        ValueError: there is no pair, the lengths differ, or a value is not a finite number.
    """
    differences = np.sort([x - y for x, y in zip(a, b, strict=True)])
    found = bootstrap(differences, seed, samples)
    p, moved = 1.0, differences[differences != 0]
    if len(moved) > 1:
        from scipy import stats

        drawn = 2**_EXACT if len(moved) <= _EXACT else samples
        batch = max(1, _CELLS // len(moved))
        p = stats.permutation_test((moved,), np.sum, permutation_type="samples", vectorized=True,
                                   n_resamples=drawn, batch=batch, rng=seed).pvalue  # fmt: skip
    return Comparison(found.mean, found.low, found.high, float(p), found.count)


def correct_holm(chances: Sequence[float]) -> list[float]:
    """The chances corrected for being several, in the order given.

    Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of
    Statistics 1979: the smallest times their number, the next times one fewer, never falling.
    """
    order = np.argsort(chances, kind="stable")
    times = np.asarray(chances, dtype=np.float64)[order] * np.arange(len(chances), 0, -1)
    corrected = np.empty(len(chances))
    corrected[order] = np.maximum.accumulate(np.minimum(times, 1.0))
    return [float(p) for p in corrected]


def _cut_tails(drawn: Sequence[float] | Floats, count: int, level: float) -> tuple[float, float]:
    """The bounds between which `level` of the draws of `count` values lie, widened for few."""
    tail = (1 - level) / 2
    if count > 1:
        from scipy.special import ndtr, stdtrit

        tail = float(ndtr(sqrt(count / (count - 1)) * stdtrit(count - 1, tail)))
    low, high = np.percentile(drawn, [100 * tail, 100 * (1 - tail)], method="inverted_cdf")
    return float(low), float(high)
