"""Gaussians of layers, in log space throughout, and the space that the layers share."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from kpyramid.numerics.moments import Array, Moments, Points, read_blocks


@dataclass(frozen=True, slots=True, eq=False)
class Gaussian:
    """A normal density (PolyRAG Eq. 4): mean (d,), Cholesky factor (d, d) of its covariance.

    `shrinkage`: the weight that OAS gave to the ball, 0 to 1.
    """

    mean: Array
    cholesky: Array
    shrinkage: float

    def log_density(self, points: Points) -> Array:
        """The log of the density in nats at points (n, d), shape (n,).

        Raises ValueError on a number that is not finite, with its row.
        """
        log_determinant = 2.0 * float(np.log(np.diag(self.cholesky)).sum())
        constant = len(self.mean) * float(np.log(2.0 * np.pi)) + log_determinant
        found = np.empty(len(points))
        for place, block in read_blocks(points):
            block -= self.mean
            whitened = solve_triangular(self.cholesky, block.T, lower=True, check_finite=False)
            found[place] = -0.5 * ((whitened**2).sum(axis=0) + constant)
        return found


def fit_gaussian(moments: Moments, floor: float) -> Gaussian:
    """The Gaussian of these moments, its covariance shrunk towards a ball by OAS.

    Along no axis is its variance below `floor` (see `Space.floor`), so that a single point, equal
    points and points on a line have finite densities. Raises ValueError without points, or when
    there is neither variance nor floor.
    """
    mean, covariance = moments.covariance()
    size = len(mean)
    shrinkage = find_shrinkage(covariance, moments.count)
    ball = float(np.trace(covariance)) / max(size, 1) * np.eye(size)
    shrunk = (1.0 - shrinkage) * covariance + shrinkage * ball
    lift = floor - float(np.min(np.linalg.eigvalsh(shrunk), initial=floor))
    try:
        cholesky = np.linalg.cholesky(shrunk + lift * np.eye(size))
    except np.linalg.LinAlgError as e:
        raise ValueError(
            f"{moments.count} points without variance, and a floor of {floor:g}"
        ) from e
    return Gaussian(mean, np.asarray(cholesky, dtype=np.float64), shrinkage)


def find_shrinkage(covariance: Array, count: int) -> float:
    """The weight of the ball by oracle approximating shrinkage, 0 to 1.

    Chen, Wiesel, Eldar and Hero (2010), Eq. 23, to the letter; scikit-learn leaves out the 2/p. It
    needs nothing but the covariance and the number of points. 1 for a covariance that is a ball.
    """
    size = len(covariance)
    square, trace = float((covariance**2).sum()), float(np.trace(covariance))
    if size < 2:
        return 1.0
    above = (1.0 - 2.0 / size) * square + trace**2
    below = (count + 1.0 - 2.0 / size) * (square - trace**2 / size)
    return 1.0 if below <= above else above / below


# The shared space: principal components, from moments alone.

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
    # What is left of a difference of second moments when its true value is zero.
    noise = len(mean) * np.finfo(np.float64).eps * float(np.trace(moments.outer)) / moments.count
    size = min(dimensions, int((values > noise).sum()))
    axes = axes[:size]
    heads = np.argmax(np.round(np.abs(axes), 6), axis=1)
    signs = np.sign(axes[np.arange(size), heads])
    share = values[:size] / max(float(np.trace(covariance)), noise) if size else values[:0]
    return Space(mean, axes * signs[:, None], values[:size].copy(), share)
