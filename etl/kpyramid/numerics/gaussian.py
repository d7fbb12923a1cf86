"""Gaussians of embedding clouds from mergeable statistics, in log space throughout."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

DIGITS = 6
"""Significant digits of a priority."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Count, sum and sum of outer products of n points in d dimensions; shards add up."""

    count: int
    total: Array
    outer: Array

    @classmethod
    def of(cls, points: Array) -> "Moments":
        """The moments of points, shape (n, d)."""
        return cls(len(points), points.sum(axis=0), points.T @ points)

    def __add__(self, other: "Moments") -> "Moments":
        """The moments of both sets of points together."""
        return Moments(self.count + other.count, self.total + other.total, self.outer + other.outer)


@dataclass(frozen=True, slots=True)
class Gaussian:
    """A normal density (PolyRAG Eq. 4): its mean, the Cholesky factor of its covariance."""

    mean: Array
    cholesky: Array

    def log_density(self, points: Array) -> Array:
        """The log of the density at points of shape (n, d), shape (n,)."""
        whitened = np.linalg.solve(self.cholesky, (points - self.mean).T)
        log_determinant = 2.0 * np.log(np.diag(self.cholesky)).sum()
        constant = len(self.mean) * np.log(2.0 * np.pi) + log_determinant
        return np.asarray(-0.5 * ((whitened**2).sum(axis=0) + constant))


def fit_gaussian(moments: Moments, floor: float = 1e-6) -> Gaussian:
    """The Gaussian of these moments, its covariance shrunk towards a ball by OAS.

    Shrinkage after Chen, Wiesel, Eldar and Hero (2010), Eq. 23: it needs nothing but count and
    covariance, keeps n < d and duplicates invertible, and merges across shards. A single point
    or equal points have no variance; `floor` then stands for it, so that densities stay finite.
    """
    n, size = moments.count, len(moments.total)
    mean = moments.total / n
    covariance = moments.outer / n - np.outer(mean, mean)
    covariance = (covariance + covariance.T) / 2.0
    alpha = float((covariance**2).mean())
    mu = float(np.trace(covariance)) / size
    denominator = (n + 1.0) * (alpha - mu**2 / size)
    shrinkage = 1.0 if denominator <= 0.0 else min((alpha + mu**2) / denominator, 1.0)
    shrunk = (1.0 - shrinkage) * covariance + (shrinkage * mu + floor) * np.eye(size)
    return Gaussian(mean, np.asarray(np.linalg.cholesky(shrunk), dtype=np.float64))


def score_priority(log_graph: Array, log_ontology: Array) -> Array:
    """How much each point is dense in the graph and thin in the ontology, shape (n,).

    The integrand of KL(K‖O), `F_K · (log F_K − log F_O)`, divided by the largest F_K: in that
    form it is finite, and its order does not depend on the unit of the space, as that of
    PolyRAG's Eq. 7 does. Rounded to six digits: processors of different make differ in the
    last ones, and ranks and bytes should not.
    """
    if log_graph.size == 0:
        return log_graph
    priority = np.exp(log_graph - log_graph.max()) * (log_graph - log_ontology)
    return np.array([float(f"{value:.{DIGITS - 1}e}") for value in priority.tolist()])
