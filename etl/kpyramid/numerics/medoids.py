"""k-medoids with k chosen by the data."""

from collections.abc import Sequence
from dataclasses import dataclass

import kmedoids
import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Clusters:
    """Indexes of the medoids among the points, and for each point the number of its medoid."""

    medoids: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]


def find_clusters(
    vectors: npt.NDArray[np.float32],
    weights: Sequence[float],
    *,
    most: int,
    sample: int,
    seed: int,
) -> Clusters:
    """Clusters of unit vectors, shape (n, d), by cosine distance; at most `most` of them.

    k is where the average medoid silhouette is highest (DynMSC, Lenssen and Schubert 2024).
    Above `sample` points only the heaviest are clustered, ties by order, for the distances need
    n² numbers and the search more; the other points go to their nearest medoid.
    """
    count = len(vectors)
    if count < 3:
        return Clusters(np.arange(min(count, 1)), np.zeros(count, dtype=np.int64))
    heaviest = np.argsort(-np.asarray(weights, dtype=np.float64), kind="stable")
    chosen = np.sort(heaviest[:sample])
    points = vectors[chosen].astype(np.float64)
    # Rounded, so that ties are ties on every processor.
    distances = np.clip(np.round(1.0 - points @ points.T, 9), 0.0, 2.0)
    np.fill_diagonal(distances, 0.0)
    most = max(2, min(most, len(points) - 1))
    result = kmedoids.dynmsc(distances, most, minimum_k=2, random_state=seed)
    medoids = np.sort(chosen[np.asarray(result.medoids, dtype=np.int64)])
    labels = np.argmax(vectors.astype(np.float64) @ vectors[medoids].astype(np.float64).T, axis=1)
    return Clusters(medoids, labels.astype(np.int64))
