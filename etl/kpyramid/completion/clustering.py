"""Units of the priority region that say the same of the same, by k-medoids."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from kpyramid.completion.columns import Places
from kpyramid.completion.types import GraphLayer
from kpyramid.completion.units import Units, profile_pairs, profile_types, scale_rows
from kpyramid.embeddings.checked import embed_finite
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.numerics.medoids import find_clusters
from kpyramid.settings import CompleteSettings

_PAIRS = 1.0
_TYPES = 0.5
"""Weights of the pairs that two units join and of the types of their ends, of their words 1."""


def place_units(
    graph: GraphLayer,
    units: Units,
    chosen: Places,
    *,
    settings: CompleteSettings,
    embedder: Embedder,
) -> Matrix:
    """Unit vectors of words, of the types of both ends, and of the pairs that are joined."""
    words = embed_finite(embedder, [units.texts[at] for at in chosen.tolist()])
    parts = [
        words,
        profile_types(graph, units, chosen) * np.float32(np.sqrt(_TYPES)),
        profile_pairs(graph, units, chosen, settings.seed) * np.float32(np.sqrt(_PAIRS)),
    ]
    return scale_rows(np.concatenate(parts, axis=1))


def cluster_units(
    points: Matrix, meanings: Sequence[str | None], weights: Places, *, settings: CompleteSettings
) -> list[Places]:
    """The places of each cluster's points, its medoid first.

    What is too far from its medoid is a cluster of its own if it is heavy enough alone. Wordings
    of different meanings never share one; clusters whose medoids are as near as another name for
    what exists would be do.
    """
    clusters = [
        part
        for cluster in _find_clusters(points, weights, settings)
        for part in _part_meanings(cluster, meanings, weights)
    ]
    clusters.sort(key=lambda cluster: -int(weights[cluster].sum()))
    medoids = np.array([cluster[0] for cluster in clusters], dtype=np.int64)
    near = points[medoids] @ points[medoids].T >= settings.alias_similarity
    merged: dict[int, list[Places]] = {}
    for number, cluster in enumerate(clusters):
        said = meanings[cluster[0]]
        first = next(
            (
                at
                for at in merged
                if near[number, at] and (not said or meanings[medoids[at]] in (said, None))
            ),
            number,
        )
        merged.setdefault(first, []).append(cluster)
    return [np.concatenate(parts) for parts in merged.values()]


def _part_meanings(
    cluster: Places, meanings: Sequence[str | None], weights: Places
) -> Iterator[Places]:
    """A cluster's parts of one meaning each, the heaviest member first; of unknown ones the main.

    The main part is that of the medoid, or the heaviest where the medoid's meaning is unknown.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for at in cluster.tolist():
        groups[meanings[at] or ""].append(at)
    unknown = groups.pop("", [])
    if not groups:
        yield cluster
        return
    main = meanings[cluster[0]] or max(groups, key=lambda name: int(weights[groups[name]].sum()))
    groups[main] += unknown
    for members in groups.values():
        members.sort(key=lambda at: (-int(weights[at]), at))
        yield np.array(members, dtype=np.int64)


def _find_clusters(points: Matrix, weights: Places, settings: CompleteSettings) -> Iterator[Places]:
    found = find_clusters(
        points,
        weights.astype(np.float64),
        most=max(2, min(len(points), settings.max_points) // 2),
        sample=settings.max_points,
        seed=settings.seed,
    )
    near = np.zeros(len(points), dtype=bool)
    for number, medoid in enumerate(found.medoids.tolist()):
        members = np.flatnonzero(found.labels == number)
        members = members[points[members] @ points[medoid] >= settings.member_similarity]
        near[members] = True
        near[medoid] = True
        yield np.concatenate([[medoid], members[members != medoid]])
    alone = np.flatnonzero(~near & (weights >= settings.min_support))
    heaviest = alone[np.argsort(-weights[alone], kind="stable")][: settings.max_points]
    yield from heaviest[:, None]
