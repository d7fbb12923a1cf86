"""Clusters against planted ones: their number, their members, and what sampling costs."""

import numpy as np
import pytest

from kpyramid.numerics.medoids import Clusters, find_clusters

NUMBERS = range(2, 13)
SIZE = 384


def plant_clusters(
    clusters: int, points: int, *, noise: float, even: bool = True, strays: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors around random centres, and each one's centre; -1 of a stray one.

    `noise`: length of a point's deviation from its centre. Sizes are equal, or fall as 1/rank.
    """
    draw = np.random.default_rng(1000 * clusters + points)
    centres = draw.normal(size=(clusters, SIZE))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    shares = np.ones(clusters) if even else 1.0 / np.arange(1, clusters + 1)
    truth = draw.choice(clusters, points, p=shares / shares.sum())
    truth[draw.random(points) < strays] = -1
    vectors = centres[truth] + draw.normal(size=(points, SIZE)) * noise / np.sqrt(SIZE)
    vectors[truth < 0] = draw.normal(size=((truth < 0).sum(), SIZE))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32), truth


def find(vectors: np.ndarray, weights: np.ndarray | None = None, **limits: int) -> Clusters:
    return find_clusters(vectors, weights, **{"most": 60, "sample": 500, "seed": 0} | limits)


def assert_found_exactly(found: Clusters, truth: np.ndarray) -> None:
    """Every planted cluster is one found cluster, and the reverse."""
    planted = len(set(truth.tolist()))
    pairs = set(zip(truth.tolist(), found.labels.tolist(), strict=True))
    assert len(found.medoids) == planted
    assert len(pairs) == planted


@pytest.mark.parametrize("noise", [0.6, 1.2])
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("clusters", NUMBERS)
def test_planted_clusters_are_found_among_a_thousand_points(
    clusters: int, even: bool, noise: float
) -> None:
    vectors, truth = plant_clusters(clusters, 1000, noise=noise, even=even)
    assert_found_exactly(find(vectors), truth)


@pytest.mark.parametrize("clusters", [2, 5, 12])
def test_strays_hide_no_cluster(clusters: int) -> None:
    vectors, truth = plant_clusters(clusters, 600, noise=0.8, strays=0.2)
    found = find(vectors, sample=600)
    assert set(truth[found.medoids].tolist()) - {-1} == set(range(clusters))
    members = truth >= 0
    pairs = set(zip(truth[members].tolist(), found.labels[members].tolist(), strict=True))
    assert len(pairs) == clusters


def test_clusters_within_groups_are_found_and_not_the_groups() -> None:
    draw = np.random.default_rng(4)
    groups = np.repeat(np.linalg.qr(draw.normal(size=(SIZE, 3)))[0].T, 4, axis=0)
    own = np.linalg.qr(draw.normal(size=(SIZE, 12)))[0].T
    truth = np.repeat(np.arange(12), 40)
    noise = draw.normal(size=(480, SIZE)) * 0.5 / np.sqrt(SIZE)
    vectors = (groups + 0.8 * own)[truth] + noise
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert_found_exactly(find(unit.astype(np.float32)), truth)


def test_medoid_is_where_the_weight_is_and_k_is_not() -> None:
    vectors, truth = plant_clusters(4, 200, noise=0.9)
    weights = np.ones(200)
    heavy = [int(np.flatnonzero(truth == number)[3]) for number in range(4)]
    weights[heavy] = 500.0
    found = find(vectors, weights)
    assert found.medoids.tolist() == sorted(heavy)
    assert_found_exactly(found, truth)


def test_clusters_are_the_same_for_the_same_seed() -> None:
    vectors, _ = plant_clusters(5, 900, noise=1.0)
    one, other = (find(vectors, sample=200, seed=4) for _ in range(2))
    assert one.medoids.tolist() == other.medoids.tolist()
    assert one.labels.tolist() == other.labels.tolist()


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_than_three_points_are_clusters_each(count: int) -> None:
    found = find(np.eye(4, dtype=np.float32)[:count])
    assert found.medoids.tolist() == found.labels.tolist() == list(range(count))


@pytest.mark.parametrize("count", [3, 1000])
def test_equal_points_are_one_cluster(count: int) -> None:
    vectors, _ = plant_clusters(2, 1, noise=0.0)
    found = find(np.repeat(vectors, count, axis=0))
    assert (found.medoids.tolist(), set(found.labels.tolist())) == ([0], {0})


def test_number_that_is_not_finite_is_refused_with_its_row() -> None:
    vectors, _ = plant_clusters(2, 50, noise=0.5)
    vectors[9, 3] = np.nan
    with pytest.raises(ValueError, match="point 9 of 50"):
        find(vectors)
    with pytest.raises(ValueError, match="point 9 of 50"):
        find(vectors, np.where(np.arange(50) == 9, 0.0, 1.0), sample=20)
