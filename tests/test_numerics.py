"""Gaussians against closed forms and other implementations, clusters against planted ones."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.covariance import oas

from kpyramid.numerics.gaussian import Moments, fit_gaussian, score_priority
from kpyramid.numerics.medoids import find_clusters


def _points(count: int, size: int, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return draw.normal(size=(count, size)) @ draw.normal(size=(size, size)) + draw.normal(size=size)


@pytest.mark.parametrize(("count", "size"), [(50, 3), (400, 16), (10, 40)])
def test_log_density_equals_scipy_with_the_oas_covariance_of_sklearn(count: int, size: int) -> None:
    points = _points(count, size)
    covariance, _ = oas(points)
    expected = multivariate_normal(points.mean(axis=0), covariance).logpdf(points)
    found = fit_gaussian(Moments.of(points), floor=0.0).log_density(points)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def test_moments_of_shards_add_up_to_those_of_the_whole() -> None:
    points = _points(90, 5)
    whole = fit_gaussian(Moments.of(points))
    merged = fit_gaussian(
        Moments.of(points[:20]) + Moments.of(points[20:21]) + Moments.of(points[21:])
    )
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-9)
    np.testing.assert_allclose(merged.cholesky, whole.cholesky, rtol=1e-7)


@pytest.mark.parametrize("size", [2, 384, 768])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_or_equal_points_in_many_dimensions_give_finite_densities(
    count: int, size: int
) -> None:
    equal = np.ones((count, size))
    different = np.random.default_rng(1).normal(size=(count, size))
    for points in (equal, different):
        density = fit_gaussian(Moments.of(points)).log_density(points)
        assert np.isfinite(density).all()


def test_priority_is_highest_where_the_graph_is_dense_and_the_ontology_is_not() -> None:
    draw = np.random.default_rng(2)
    shared, missing = draw.normal(size=(300, 4)), draw.normal(size=(200, 4)) + 6.0
    graph = np.concatenate([shared, missing])
    ontology = draw.normal(size=(300, 4))
    log_graph = fit_gaussian(Moments.of(graph)).log_density(graph)
    log_ontology = fit_gaussian(Moments.of(ontology)).log_density(graph)
    priority = score_priority(log_graph, log_ontology)
    assert priority[300:].min() > np.median(priority[:300])
    assert (priority[300:] > 0).all()


def test_priority_does_not_depend_on_the_unit_of_the_space() -> None:
    draw = np.random.default_rng(3)
    log_graph, log_ontology = draw.normal(size=50), draw.normal(size=50)
    same = score_priority(log_graph + 700.0, log_ontology + 700.0)
    np.testing.assert_allclose(same, score_priority(log_graph, log_ontology), rtol=1e-9)


def _planted(clusters: int, each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    centres = np.linalg.qr(draw.normal(size=(32, clusters)))[0].T
    truth = np.repeat(np.arange(clusters), each)
    points = centres[truth] + draw.normal(size=(clusters * each, 32)) * 0.05
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    return unit.astype(np.float32), truth


def _equal(points: np.ndarray) -> list[float]:
    return [1.0] * len(points)


@pytest.mark.parametrize("clusters", [2, 3, 7, 12])
@pytest.mark.parametrize("sample", [150, 10_000])
def test_planted_clusters_are_found_with_their_number(clusters: int, sample: int) -> None:
    points, truth = _planted(clusters, 20, clusters)
    order = np.random.default_rng(clusters).permutation(len(points))
    points, truth = points[order], truth[order]
    found = find_clusters(points, _equal(points), most=20, sample=sample, seed=0)
    pairs = set(zip(truth.tolist(), found.labels.tolist(), strict=True))
    assert len(found.medoids) == clusters
    assert len(pairs) == clusters
    assert (found.labels[found.medoids] == np.arange(clusters)).all()


def test_medoids_are_chosen_among_the_heaviest_points() -> None:
    points, _ = _planted(4, 30, 5)
    weights = [float(number % 3 == 0) for number in range(len(points))]
    found = find_clusters(points, weights, most=10, sample=40, seed=0)
    assert len(found.medoids) == 4
    assert {weights[medoid] for medoid in found.medoids} == {1.0}


@pytest.mark.parametrize("count", [0, 1, 2])
def test_too_few_points_are_at_most_one_cluster(count: int) -> None:
    found = find_clusters(
        np.eye(4, dtype=np.float32)[:count], [1.0] * count, most=5, sample=10, seed=0
    )
    assert len(found.medoids) == min(count, 1)
    assert found.labels.tolist() == [0] * count


def test_clusters_are_the_same_for_the_same_seed() -> None:
    points, _ = _planted(5, 30, 9)
    one, other = (
        find_clusters(points, _equal(points), most=30, sample=100, seed=4) for _ in range(2)
    )
    assert one.medoids.tolist() == other.medoids.tolist()
    assert one.labels.tolist() == other.labels.tolist()
