"""k-medoids of unit vectors, with k chosen by the data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kpyramid.errors import without
from kpyramid.numerics.arrays import Integers
from kpyramid.numerics.moments import Array, Points, read_blocks

APART = 0.15
"""Least mean medoid silhouette of a separated cluster.

Halves of a ball reach .05 to .08 in 384 dimensions and .12 to .19 in 48, clusters of equivalent
wordings mostly .2 to .65; with any threshold from .10 to .25 planted clusters are recovered.
"""
STRAY = 0.05
"""Largest share of points in clusters that are not separated."""
_RUNG = 16
"""One medoid in this many is removed at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """k clusters of n points.

    `medoids`: indices of the medoids among the points (k,), ascending.
    `labels`: for each point the number of the nearest medoid (n,).
    """

    medoids: Integers
    labels: Integers


def find_clusters(
    vectors: Points,
    weights: Array | None = None,
    *,
    most: int,
    sample: int,
    seed: int,
) -> Clusters:
    """Clusters of unit vectors (n, d) by cosine distance: 2 to `most`, one if all are equal.

    FasterPAM (Schubert and Rousseeuw 2021) at falling k. The result has the largest k at which all
    but `STRAY` of the points lie in separated clusters: members other than the medoid have a mean
    medoid silhouette (Lenssen and Schubert 2024) of `APART`. Without such a k, the k of the highest
    mean is taken. Of more than `sample` points that many are drawn, heavier ones with a higher
    probability, since the search needs n² distances; the others join the nearest medoid. Otherwise
    weights and equal points move the medoid within its cluster, but do not change k: clusters are
    of wordings, whatever their frequency. Two different points are two clusters. Raises ValueError
    on a number that is not finite, with its row.
    """
    if not len(vectors):
        none = np.zeros(0, dtype=np.int64)
        return Clusters(none, none)
    mass = np.ones(len(vectors)) if weights is None else np.asarray(weights, dtype=np.float64)
    chosen = _draw_sample(mass, sample, seed)
    distances = _measure(vectors[chosen])
    apart = np.flatnonzero(np.argmax(distances == 0.0, axis=1) == np.arange(len(chosen)))
    if len(apart) > 2:
        limit = max(2, min(most, len(apart) - 1))
        apart = apart[_choose_medoids(distances[np.ix_(apart, apart)], limit, seed)]
    medoids = np.sort(chosen[_weigh_medoids(distances, apart, mass[chosen])])
    labels = np.zeros(len(vectors), dtype=np.int64)
    for place, block in read_blocks(vectors):
        labels[place] = np.argmin(_subtract_cosines(block, vectors[medoids]), axis=1)
    return Clusters(medoids, labels)


def _draw_sample(weights: Array, sample: int, seed: int) -> Integers:
    """Indices of at most `sample` points, ascending."""
    if len(weights) <= sample:
        return np.arange(len(weights))
    draw = np.random.default_rng(seed)
    # Efraimidis and Spirakis (2006): the largest u^(1/w) are a draw without replacement.
    keys = np.log(draw.random(len(weights))) / np.maximum(weights, np.finfo(np.float64).tiny)
    return np.sort(np.argsort(-keys, kind="stable")[:sample])


def _measure(points: Points) -> Array:
    """Cosine distances between all unit vectors (n, d), shape (n, n)."""
    distances = np.empty((len(points), len(points)))
    for place, block in read_blocks(points):
        distances[place] = _subtract_cosines(block, points)
    np.fill_diagonal(distances, 0.0)
    return distances


def _subtract_cosines(points: Array, others: Points) -> Array:
    # Rounded, so that ties are equal on every processor; float32 unit vectors have length 1 ± 1e-7.
    cosines = np.round(points @ others.astype(np.float64).T, 6)
    return np.clip(1.0 - cosines, 0.0, 2.0)


def _choose_medoids(distances: Array, most: int, seed: int) -> Integers:
    """The most medoids with separated clusters, else those of the highest mean silhouette."""
    above: _Placed | None = None
    best, highest = np.zeros(0, dtype=np.int64), -1.0
    for placed in _descend(distances, most, seed):
        stray, mean = _judge(placed)
        if stray <= STRAY:
            return placed.medoids if above is None else _refine(distances, above, placed.medoids)
        if mean > highest:
            best, highest = placed.medoids, mean
        above = placed
    return best


class _Placed(NamedTuple):
    """Medoids (k,); the nearest of each point, its least and second least distance, (n,)."""

    medoids: Integers
    nearest: Integers
    first: Array
    second: Array


def _load_kmedoids() -> Any:
    """The library, without its wrapper for scikit-learn, which takes a second to load."""
    with without("sklearn"):
        import kmedoids

    return kmedoids


def _descend(distances: Array, most: int, seed: int) -> Iterator[_Placed]:
    """Medoids at k from `most` down to 2, each from the previous: about 16·ln(most) times."""
    result = _load_kmedoids().fasterpam(distances, most, random_state=seed, n_cpu=1)
    placed = _place(distances, np.asarray(result.medoids, dtype=np.int64))
    yield placed
    while (count := len(placed.medoids)) > 2:
        placed = _drop(distances, placed, max(2, count - max(1, count // _RUNG)))
        yield placed


def _refine(distances: Array, above: _Placed, below: Integers) -> Integers:
    """The most medoids with separated clusters, between too many (`above`) and enough (`below`)."""
    while len(above.medoids) > len(below) + 1:
        above = _drop(distances, above, len(above.medoids) - 1)
        if _judge(above)[0] <= STRAY:
            return above.medoids
    return below


def _drop(distances: Array, placed: _Placed, count: int) -> _Placed:
    """Medoids of FasterPAM from the `count` medoids whose removal would cost most."""
    medoids, nearest, first, second = placed
    missed = np.bincount(nearest, weights=second - first, minlength=len(medoids))
    missed_most = np.sort(np.argsort(-np.round(missed, 6), kind="stable")[:count])
    result = _load_kmedoids().fasterpam(distances, medoids[missed_most], n_cpu=1)
    return _place(distances, np.asarray(result.medoids, dtype=np.int64))


def _judge(placed: _Placed) -> tuple[float, float]:
    """Share of points in clusters that are not separated, and the mean silhouette of all.

    A point's silhouette is 1 - a/b, with its distances a and b to the nearest and the second
    nearest medoid.
    """
    medoids, nearest, first, second = placed
    apart = np.where(second > 0.0, 1.0 - first / np.where(second > 0.0, second, 1.0), 0.0)
    apart[medoids] = 0.0
    size = np.bincount(nearest, minlength=len(medoids))
    mean = np.bincount(nearest, weights=apart, minlength=len(medoids)) / np.maximum(size - 1, 1)
    return float(size[mean < APART].sum() / len(apart)), float(apart.mean())


def _place(distances: Array, medoids: Integers) -> _Placed:
    rest = distances[:, medoids]  # a copy
    rows, nearest = np.arange(len(rest)), np.argmin(rest, axis=1)
    first = rest[rows, nearest]
    rest[rows, nearest] = np.inf
    return _Placed(medoids, nearest.astype(np.int64), first, rest.min(axis=1))


def _weigh_medoids(distances: Array, medoids: Integers, weights: Array) -> Integers:
    """The member of each cluster with the least weighted distance to the others, shape (k,)."""
    nearest = np.argmin(distances[:, medoids], axis=1)
    heaviest = []
    for number in range(len(medoids)):
        members = np.flatnonzero(nearest == number)
        costs = distances[np.ix_(members, members)] @ weights[members]
        heaviest.append(int(members[np.argmin(np.round(costs, 6))]))
    return np.array(heaviest, dtype=np.int64)
