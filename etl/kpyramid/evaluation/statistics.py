"""How sure a mean is, and whether one arm is better than another on the same questions.

Everything depends on the values, the seed and the number of samples alone, not on the order of
the questions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum, isnan, sqrt
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
    values: Sequence[float], seed: int, samples: int = SAMPLES, level: float = LEVEL
) -> Interval:
    """The mean and its percentile bootstrap interval, widened for few values.

    The percentiles of the means of `samples` draws with replacement (Efron, "Bootstrap Methods:
    Another Look at the Jackknife", Annals of Statistics 1979) are too narrow by sqrt((n - 1) / n)
    and take the normal for Student's distribution; they are moved outwards by both, the expanded
    percentile interval of Hesterberg, "What Teachers Should Know About the Bootstrap" (The
    American Statistician 2015, §3.3). When all values are equal the interval is that one value,
    which is no proof that others cannot occur.

    Raises:
        ValueError: there is no value, or one is not a number.
    """
    row = _sort(values)
    tail = _widen_tail((1 - level) / 2, len(row))
    means = _draw_means(row, seed, samples)
    low, high = np.percentile(means, [100 * tail, 100 * (1 - tail)], method="inverted_cdf")
    return Interval(_average(row), float(low), float(high), len(row))


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
    tail = _widen_tail((1 - level) / 2, len(items))
    low, high = np.percentile(known, [100 * tail, 100 * (1 - tail)], method="inverted_cdf")
    return Interval(whole, float(low), float(high), len(items))


def compare_paired(
    a: Sequence[float], b: Sequence[float], seed: int, samples: int = SAMPLES
) -> Comparison:
    """How much better `a` is than `b` on the same questions, in the same order.

    The interval is the bootstrap's of the differences. `p` is the two-sided sign-flip permutation
    test (Fisher; Good, "Permutation, Parametric and Bootstrap Tests of Hypotheses", 2005): were
    the arms alike, each difference might as well have the other sign. Exact over all signs for 14
    differences or fewer, else over `samples` random ones, the observed signs counted among them,
    so that p is never 0. Questions without a difference say nothing and change nothing.

    Raises:
        ValueError: there is no pair, the lengths differ, or a value is not a finite number.
    """
    differences = [x - y for x, y in zip(a, b, strict=True)]
    found = bootstrap(differences, seed, samples)
    p = _flip_signs(_sort(differences), seed, samples)
    return Comparison(found.mean, found.low, found.high, p, found.count)


def correct_holm(chances: Sequence[float]) -> list[float]:
    """The chances corrected for being several, in the order given.

    Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of
    Statistics 1979: the smallest times their number, the next times one fewer, never falling.
    """
    corrected = [0.0] * len(chances)
    least = 0.0
    for rank, at in enumerate(sorted(range(len(chances)), key=lambda at: (chances[at], at))):
        least = max(least, min(1.0, chances[at] * (len(chances) - rank)))
        corrected[at] = least
    return corrected


def _flip_signs(differences: Floats, seed: int, samples: int) -> float:
    moved = differences[differences != 0]
    if not len(moved):
        return 1.0
    # Sums that are equal on paper may differ by rounding; they count as equal.
    seen = abs(moved.sum()) - 1e-9 * np.abs(moved).sum()
    if len(moved) <= _EXACT:
        signs = np.array(list(product((-1.0, 1.0), repeat=len(moved))))
        return float((np.abs(signs @ moved) >= seen).mean())
    generator = np.random.default_rng(seed)
    large = 0
    for size in _cut(samples, len(moved)):
        flipped = generator.integers(2, size=(size, len(moved)), dtype=np.int8)
        large += int((np.abs((2.0 * flipped - 1.0) @ moved) >= seen).sum())
    return (large + 1) / (samples + 1)


def _draw_means(row: Floats, seed: int, samples: int) -> Floats:
    if row[0] == row[-1]:
        return np.full(1, row[0])
    generator = np.random.default_rng(seed)
    return np.concatenate(
        [
            row[generator.integers(len(row), size=(size, len(row)))].mean(axis=1)
            for size in _cut(samples, len(row))
        ]
    )


def _cut(samples: int, width: int) -> list[int]:
    """The samples in batches of `_CELLS` values; batches do not change what is drawn."""
    size = max(1, _CELLS // width)
    return [min(size, samples - start) for start in range(0, samples, size)]


def _widen_tail(tail: float, count: int) -> float:
    """What to leave out at each end so that of `count` values `tail` is left out in truth."""
    if count < 2:
        return tail
    from scipy.special import ndtr, stdtrit

    return float(ndtr(sqrt(count / (count - 1)) * stdtrit(count - 1, tail)))


def _sort(values: Sequence[float]) -> Floats:
    if not len(values):
        raise ValueError("no interval of nothing: give at least one value")
    if any(isnan(value) for value in values):
        raise ValueError("a value is not a number; leave out what does not apply")
    return np.sort(np.asarray(values, dtype=np.float64))


def _average(row: Floats) -> float:
    """The mean; bounded by the values even where rounding would leave them."""
    return float(min(max(fsum(row) / len(row), row[0]), row[-1]))
