"""k-medoids of unit vectors, with k chosen by the data."""

from dataclasses import dataclass

import kmedoids
import numpy as np
import numpy.typing as npt

from kpyramid.numerics.moments import Array, Points, read_blocks

Indexes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """k clusters of n points.

    `medoids`: indexes of the medoids among the points (k,), rising.
    `labels`: for each point the number of the nearest medoid (n,).
    `loss`: mean distance of a point to its medoid, by weight; `sample_loss`: the same over those
    that chose the medoids. Together they say what sampling cost.
    `silhouette`: mean of 1 - a/b over the points, by weight, a and b the distances to the nearest
    and the second nearest medoid; 0.0 for one cluster.
    """

    medoids: Indexes
    labels: Indexes
    loss: float
    sample_loss: float
    silhouette: float


def find_clusters(
    vectors: Points,
    weights: npt.NDArray[np.float64] | None = None,
    *,
    most: int,
    sample: int,
    seed: int,
) -> Clusters:
    """Clusters of unit vectors (n, d) by cosine distance, 2 to `most`; one if all are equal.

    k is where the average medoid silhouette is highest (Lenssen and Schubert 2024). Above `sample`
    points that many are drawn, by weight, for the distances need n² numbers and the search more;
    the other points go to their nearest medoid. Raises ValueError on a number that is not finite.
    """
    count = len(vectors)
    mass = np.ones(count) if weights is None else np.asarray(weights, dtype=np.float64)
    chosen = _draw_sample(mass, sample, seed)
    distances = _measure(vectors[chosen], vectors[chosen])
    np.fill_diagonal(distances, 0.0)
    if count == 0 or not distances.any():
        medoids = np.arange(min(count, 1))
    else:
        most = max(2, min(most, len(chosen) - 1))
        result = kmedoids.dynmsc(distances, most, minimum_k=2, random_state=seed)
        medoids = np.sort(chosen[np.asarray(result.medoids, dtype=np.int64)])
    return _assign(vectors, mass, medoids, chosen)


def _draw_sample(weights: Array, sample: int, seed: int) -> Indexes:
    """Indexes of at most `sample` points, rising; a heavier one is drawn with more likelihood."""
    if len(weights) <= sample:
        return np.arange(len(weights))
    draw = np.random.default_rng(seed)
    # Efraimidis and Spirakis (2006): the largest u^(1/w) are a draw without replacement.
    keys = np.log(draw.random(len(weights))) / np.maximum(weights, np.finfo(np.float64).tiny)
    return np.sort(np.argsort(-keys, kind="stable")[:sample])


def _measure(points: Points, others: Points) -> Array:
    """Cosine distances between unit vectors (n, d) and (m, d), shape (n, m)."""
    found = np.empty((len(points), len(others)))
    turned = others.astype(np.float64).T
    for place, block in read_blocks(points):
        # Rounded, so that ties are ties on every processor.
        found[place] = np.clip(np.round(1.0 - block @ turned, 9), 0.0, 2.0)
    return found


def _assign(vectors: Points, weights: Array, medoids: Indexes, chosen: Indexes) -> Clusters:
    count = len(vectors)
    if not len(medoids):
        return Clusters(medoids, np.zeros(0, dtype=np.int64), 0.0, 0.0, 0.0)
    distances = _measure(vectors, vectors[medoids])
    labels = np.argmin(distances, axis=1)
    nearest = distances[np.arange(count), labels]
    distances[np.arange(count), labels] = np.inf
    second = distances.min(axis=1)
    apart = np.where(second > 0.0, 1.0 - nearest / np.where(second > 0.0, second, 1.0), 0.0)
    return Clusters(
        medoids,
        labels.astype(np.int64),
        float(np.average(nearest, weights=weights)),
        float(np.average(nearest[chosen], weights=weights[chosen])),
        float(np.average(apart, weights=weights)) if len(medoids) > 1 else 0.0,
    )
