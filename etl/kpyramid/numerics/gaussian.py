"""Gaussians of layers, in log space throughout, and the space that the layers share."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from kpyramid.numerics.arrays import Integers
from kpyramid.numerics.moments import Array, Moments, Points, read_blocks, round_digits


@dataclass(frozen=True, slots=True, eq=False)
class Gaussian:
    """A normal density (PolyRAG Eq. 4): mean (d,), Cholesky factor (d, d) of its covariance."""

    mean: Array
    cholesky: Array

    def log_density(self, points: Points) -> Array:
        """The log of the density in nats at points (n, d), shape (n,).

        Raises ValueError on a number that is not finite, with its row.
        """
        log_determinant = 2.0 * float(np.log(np.diag(self.cholesky)).sum())
        constant = len(self.mean) * float(np.log(2.0 * np.pi)) + log_determinant
        densities = np.empty(len(points))
        for place, block in read_blocks(points):
            block -= self.mean
            whitened = solve_triangular(self.cholesky, block.T, lower=True, check_finite=False)
            densities[place] = -0.5 * ((whitened**2).sum(axis=0) + constant)
        return densities


def fit_gaussian(moments: Moments, floor: float) -> Gaussian:
    """The Gaussian of these moments, its covariance shrunk towards a ball by OAS.

    Its variance is at least `floor` along any axis (see `Space.floor`), so that a single point,
    equal points and points on a line have finite densities. Raises ValueError without points, or
    with neither variance nor floor.
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
    return Gaussian(mean, np.asarray(cholesky, dtype=np.float64))


def find_shrinkage(covariance: Array, count: int) -> float:
    """The weight of the ball by oracle approximating shrinkage, 0 to 1.

    Chen, Wiesel, Eldar and Hero (2010), Eq. 23, exactly; scikit-learn omits the 2/p. It needs only
    the covariance and the number of points. 1 for a covariance that is a ball.
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
encoder's error. MiniLM in int8 and in fp32 give the same phrase vectors of cosine .9996, which
differ by 8e-4 in squared length; closer vectors cannot be distinguished."""


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
        coordinates = np.empty((len(points), len(self.components)))
        for place, block in read_blocks(points):
            block -= self.mean
            coordinates[place] = block @ self.components.T
        return coordinates

    def project(self, moments: Moments) -> Moments:
        """The moments of the coordinates, computed from those of the points."""
        return moments.shift(self.mean).rotate(self.components)


def fit_space(moments: Moments, dimensions: int) -> Space:
    """The principal components of the points of these moments, at most `dimensions`.

    Fewer if the points span fewer; none, k = 0, if all are equal. Since the sign of eigenvectors is
    arbitrary, the largest number of each axis, in a tie to six decimals the first, is positive.
    Raises ValueError without points.
    """
    mean, covariance = moments.covariance()
    values, vectors = np.linalg.eigh(covariance)
    values, axes = values[::-1], vectors.T[::-1]
    # The rounding error of a difference of second moments whose true value is zero.
    noise = len(mean) * np.finfo(np.float64).eps * float(np.trace(moments.outer)) / moments.count
    size = min(dimensions, int((values > noise).sum()))
    axes = axes[:size]
    heads = np.argmax(np.round(np.abs(axes), 6), axis=1)
    signs = np.sign(axes[np.arange(size), heads])
    share = values[:size] / max(float(np.trace(covariance)), noise) if size else values[:0]
    return Space(mean, axes * signs[:, None], values[:size].copy(), share)


Priority: TypeAlias = Literal["cross_entropy", "kl_difference", "pointwise_kl", "log_ratio"]


@dataclass(frozen=True, slots=True, eq=False)
class Signed:
    """Numbers as sign (-1, 0, 1) and log of their absolute value in nats, 0.0 where the sign is 0.

    As plain numbers they would underflow, and become equal where their order matters.
    """

    sign: npt.NDArray[np.int8]
    log_magnitude: Array

    def __len__(self) -> int:
        return len(self.sign)

    @classmethod
    def of(cls, values: Array) -> "Signed":
        """Plain numbers, shape (n,)."""
        return _round(_times_log(values, np.zeros(len(values))))

    def order(self) -> Integers:
        """Indices from the highest number to the lowest, ties in order."""
        return np.lexsort((-self.sign * self.log_magnitude, -self.sign)).astype(np.int64)


def score_priority(kind: Priority, log_graph: Array, log_ontology: Array) -> Signed:
    """The priority at points of these log densities, shape (n,): higher is more missing from O.

    With the densities F_K of the graph and F_O of the ontology:

    - `cross_entropy`: F_K·log F_O - F_O·log F_K, PolyRAG's Eq. 7 literally, with its sign. Whether
      it is higher where more is missing depends on the unit (docs/priority.md).
    - `kl_difference`: (F_K + F_O)·(log F_K - log F_O), Eq. 7 of true KL integrands, sign turned.
    - `pointwise_kl`: F_K·(log F_K - log F_O), the integrand of KL(K‖O).
    - `log_ratio`: log F_K - log F_O.

    Rounded, so that ranks are the same on every processor. Raises ValueError on log densities that
    are not finite.
    """
    if not (np.isfinite(log_graph).all() and np.isfinite(log_ontology).all()):
        raise ValueError("a log density is not finite")
    ratio = log_graph - log_ontology
    match kind:
        case "cross_entropy":
            second = _times_log(log_graph, log_ontology)
            minus = Signed(-second.sign, second.log_magnitude)
            return _round(_add(_times_log(log_ontology, log_graph), minus))
        case "kl_difference":
            return _round(_times_log(ratio, np.logaddexp(log_graph, log_ontology)))
        case "pointwise_kl":
            return _round(_times_log(ratio, log_graph))
        case "log_ratio":
            return Signed.of(ratio)


def measure_novelty(points: Points, known: Points) -> Array:
    """1 minus the largest cosine of each unit vector (n, d) to one of `known` (m, d).

    0 for a known vector; higher is more missing. Raises ValueError if `known` is empty.
    """
    columns = known.astype(np.float64).T
    nearest = np.concatenate(
        [np.zeros(0), *((block @ columns).max(axis=1) for _, block in read_blocks(points))]
    )
    return round_digits(np.maximum(1.0 - nearest, 0.0))


def _times_log(factor: Array, log_number: Array) -> Signed:
    """The product of each factor and the number of a given log; zero has the magnitude -inf."""
    with np.errstate(divide="ignore"):
        magnitude = np.log(np.abs(factor)) + log_number
    return Signed(np.sign(factor).astype(np.int8), magnitude)


def _add(left: Signed, right: Signed) -> Signed:
    """The sums, by a signed log-sum-exp: exp(larger) · (1 ± exp(smaller - larger))."""
    first = left.log_magnitude >= right.log_magnitude
    larger = np.where(first, left.log_magnitude, right.log_magnitude)
    smaller = np.where(first, right.log_magnitude, left.log_magnitude)
    sign = np.where(first, left.sign, right.sign).astype(np.int8)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(np.isneginf(smaller), -np.inf, smaller - larger)
        same = left.sign == right.sign
        part = np.where(same, np.log1p(np.exp(gap)), np.log(-np.expm1(gap)))
    magnitude = larger + part
    sign[np.isneginf(magnitude)] = 0
    return Signed(sign, magnitude)


def _round(scores: Signed) -> Signed:
    magnitude = np.where(scores.sign == 0, 0.0, scores.log_magnitude)
    return Signed(scores.sign, round_digits(magnitude))
