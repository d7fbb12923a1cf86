"""Sums of points that give means and covariances; sums of shards add up."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.float64]
Points: TypeAlias = npt.NDArray[np.float32] | npt.NDArray[np.float64]
"""Points by row, shape (n, d)."""

LARGEST = 1e100
"""Numbers beyond it are refused: sums of their squares approach the limit of float64."""
GRID = 2.0**16
"""Grid steps per unit: sums over 2 million points of unit length on it are exact in float64."""
_BLOCK = 1_000_000
"""Numbers of a block: 8 MB in float64, however many dimensions."""


def read_blocks(points: Points) -> Iterator[tuple[slice, Array]]:
    """Blocks of rows in float64 with their slices, so that no whole copy is made.

    Raises ValueError on a number that is not finite or beyond `LARGEST`, with its row.
    """
    rows = max(1, _BLOCK // max(1, points.shape[1]))
    for start in range(0, len(points), rows):
        block = points[start : start + rows].astype(np.float64)
        if block.size and not (block.max() <= LARGEST and block.min() >= -LARGEST):
            row = start + int(np.argmin((np.abs(block) <= LARGEST).all(axis=1)))
            raise ValueError(f"point {row} of {len(points)} holds nan or a number over {LARGEST:g}")
        yield slice(start, start + len(block)), block


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Count, sum (d,) and sum of outer products (d, d) of n points; those of shards add up."""

    count: int
    total: Array
    outer: Array

    @classmethod
    def of(cls, points: Points, *, on_grid: bool = False) -> "Moments":
        """The moments of points, shape (n, d).

        `on_grid` rounds them to multiples of 1 / `GRID`: the sums are then exact, and equal in any
        order, with any shards and on any processor. Raises ValueError as `read_blocks` does.
        """
        size = points.shape[1]
        total, outer = np.zeros(size), np.zeros((size, size))
        for _, block in read_blocks(points):
            if on_grid:
                np.rint(block * GRID, out=block)
                block /= GRID
            outer += block.T @ block
            total += block.sum(axis=0)
        return cls(len(points), total, outer)

    def __add__(self, more: "Moments") -> "Moments":
        """The moments of both sets of points together."""
        return Moments(self.count + more.count, self.total + more.total, self.outer + more.outer)

    def shift(self, origin: Array) -> "Moments":
        """The moments of the same points with `origin` (d,) subtracted from each."""
        cross = np.outer(self.total, origin)
        outer = self.outer - cross - cross.T + self.count * np.outer(origin, origin)
        return Moments(self.count, self.total - self.count * origin, outer)

    def rotate(self, axes: Array) -> "Moments":
        """The moments of the same points multiplied by `axes` (k, d), in k dimensions."""
        return Moments(self.count, axes @ self.total, axes @ self.outer @ axes.T)

    def covariance(self) -> tuple[Array, Array]:
        """Mean (d,) and covariance (d, d) with divisor n; raises ValueError without points."""
        if self.count < 1:
            raise ValueError("no points: they have neither mean nor covariance")
        mean = self.total / self.count
        covariance = self.shift(mean).outer / self.count
        return mean, (covariance + covariance.T) / 2.0


DIGITS = 6
"""Most significant digits, and most decimals, after rounding."""


def round_digits(values: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """The values to six significant digits and six decimals, whichever is coarser; never -0."""
    wide = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log10(np.abs(wide)))
    decimals = np.clip(DIGITS - 1 - exponent, None, DIGITS)
    # Powers of ten to 22 are exact; dividing by one rounds correctly, multiplying by 1e-6 does not.
    power = 10.0 ** np.abs(decimals)
    fine = np.rint(wide * power) / power
    coarse = np.rint(wide / power) * power
    rounded: npt.NDArray[np.float64] = np.where(decimals >= 0, fine, coarse) + 0.0
    return rounded
