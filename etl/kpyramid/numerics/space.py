"""The space that both layers share: principal components, from moments alone."""

from dataclasses import dataclass

import numpy as np

from kpyramid.numerics.moments import Array, Moments, Points, read_blocks

FLOOR = 1e-3
"""Least variance of a layer on any axis, as a share of both layers' mean variance on an axis: the
encoder's own error. MiniLM in int8 and in fp32 give one phrase vectors of cosine .9996, so that
they differ by 8e-4 in squared length; what is closer cannot be told apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """Axes of most variance: mean (d,), components (k, d) orthonormal, in falling order.

    `variances`: along each axis (k,); `explained`: their shares of the variance of all d (k,).
    """

    mean: Array
    components: Array
    variances: Array
    explained: Array

    @property
    def floor(self) -> float:
        """The least variance that `fit_gaussian` gives a layer along any axis."""
        return FLOOR * float(self.variances.mean()) if len(self.variances) else 0.0

    def transform(self, points: Points) -> Array:
        """Coordinates of points (n, d) on the axes, shape (n, k).

        Raises ValueError on a number that is not finite, with its row.
        """
        found = np.empty((len(points), len(self.components)))
        for place, block in read_blocks(points):
            block -= self.mean
            found[place] = block @ self.components.T
        return found

    def project(self, moments: Moments) -> Moments:
        """The moments of the coordinates, from those of the points: no second look at them."""
        return moments.shift(self.mean).rotate(self.components)


def fit_space(moments: Moments, dimensions: int) -> Space:
    """The principal components of the points of these moments, at most `dimensions`.

    Fewer where the points span fewer; none, k = 0, where all are equal. The largest number of
    each axis is positive, the first of those equal to six decimals: eigenvectors have no sign of
    their own. Raises ValueError without points.
    """
    mean, covariance = moments.covariance()
    values, vectors = np.linalg.eigh(covariance)
    values, axes = values[::-1], vectors.T[::-1]
    # What is left of a difference of second moments when its true value is nought.
    noise = len(mean) * np.finfo(np.float64).eps * float(np.trace(moments.outer)) / moments.count
    size = min(dimensions, int((values > noise).sum()))
    axes = axes[:size]
    heads = np.argmax(np.round(np.abs(axes), 6), axis=1)
    signs = np.sign(axes[np.arange(size), heads])
    share = values[:size] / max(float(np.trace(covariance)), noise) if size else values[:0]
    return Space(mean, axes * signs[:, None], values[:size].copy(), share)
