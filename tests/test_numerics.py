"""Moments, shared space and Gaussians against closed forms and other implementations."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA

from kpyramid.numerics.gaussian import find_shrinkage, fit_gaussian, fit_space
from kpyramid.numerics.moments import Moments, round_digits
from tests.rows import each_row

CLOSE = {"rtol": 1e-6, "atol": 1e-6}


def draw_points(count: int, size: int, seed: int = 0) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return draw.normal(size=(count, size)) @ draw.normal(size=(size, size)) + draw.normal(size=size)


def assert_equal_moments(one: Moments, other: Moments) -> None:
    assert one.count == other.count
    np.testing.assert_allclose(one.total, other.total, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one.outer, other.outer, rtol=1e-9, atol=1e-9)


# Moments


@given(cuts=st.lists(st.integers(0, 90), max_size=4))
def test_moments_of_shards_add_up_to_those_of_the_whole(cuts: list[int]) -> None:
    points = draw_points(90, 5)
    shards = [Moments.of(shard) for shard in np.split(points, sorted(cuts))]
    assert_equal_moments(sum(shards[1:], shards[0]), Moments.of(points))


@given(cuts=st.lists(st.integers(0, 90), max_size=4))
def test_moments_on_the_grid_are_the_same_bits_in_any_shards(cuts: list[int]) -> None:
    points = draw_points(90, 5)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    whole = Moments.of(points, on_grid=True)
    parts = [Moments.of(p, on_grid=True) for p in reversed(np.split(points, sorted(cuts)))]
    added = sum(parts[1:], parts[0])
    assert added.total.tobytes() == whole.total.tobytes()
    assert added.outer.tobytes() == whole.outer.tobytes()
    np.testing.assert_allclose(whole.outer, points.T @ points, atol=90 * 2.0**-16)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 1e200])
def test_number_that_is_not_finite_is_refused_with_its_row(wrong: float) -> None:
    points = draw_points(90, 5)
    space = fit_space(Moments.of(points), 3)
    gaussian = fit_gaussian(Moments.of(points), 0.0)
    points[7, 2] = wrong
    for use in (Moments.of, space.transform, gaussian.log_density):
        with pytest.raises(ValueError, match="point 7 of 90 "):
            use(points)


def test_no_points_have_no_mean_and_say_so() -> None:
    empty = Moments.of(np.zeros((0, 4)))
    for use in (lambda: fit_space(empty, 2), lambda: fit_gaussian(empty, 1.0)):
        with pytest.raises(ValueError, match="no points"):
            use()


# Space


@pytest.mark.parametrize(("count", "size", "dimensions"), [(300, 12, 5), (40, 60, 16), (9, 768, 8)])
def test_space_is_that_of_sklearns_pca(count: int, size: int, dimensions: int) -> None:
    points = draw_points(count, size)
    space = fit_space(Moments.of(points), dimensions)
    pca = PCA(dimensions, svd_solver="full").fit(points)
    np.testing.assert_allclose(space.explained, pca.explained_variance_ratio_, **CLOSE)
    turned = np.sign((space.components * pca.components_).sum(axis=1))
    np.testing.assert_allclose(space.components, pca.components_ * turned[:, None], **CLOSE)
    np.testing.assert_allclose(space.transform(points), pca.transform(points) * turned, **CLOSE)


@pytest.mark.parametrize("points", [np.ones((5, 384)), np.full((1, 3), 0.1), np.zeros((4, 3))])
def test_equal_points_span_no_axis_and_have_log_density_nought(points: np.ndarray) -> None:
    moments = Moments.of(points)
    space = fit_space(moments, 16)
    assert space.transform(points).shape == (len(points), 0)
    assert space.explained.shape == (0,)
    density = fit_gaussian(space.project(moments), space.floor).log_density(space.transform(points))
    assert density.tolist() == [0.0] * len(points)


# Gaussian


@pytest.mark.parametrize(("count", "size"), [(50, 3), (400, 16), (10, 40), (2, 5)])
def test_log_density_is_scipys_with_the_shrunk_covariance(count: int, size: int) -> None:
    points = draw_points(count, size)
    found = fit_gaussian(Moments.of(points), 0.0)
    covariance = np.cov(points.T, bias=True)
    ball = np.trace(covariance) / size * np.eye(size)
    weight = find_shrinkage(covariance, count)
    shrunk = (1 - weight) * covariance + weight * ball
    expected = multivariate_normal(points.mean(axis=0), shrunk).logpdf(points)
    np.testing.assert_allclose(found.log_density(points), expected, **CLOSE)


@pytest.mark.parametrize(("count", "size"), [(12, 3), (30, 16), (10, 40), (500, 8)])
def test_shrinkage_is_where_the_oracle_iteration_ends(count: int, size: int) -> None:
    # Chen, Wiesel, Eldar and Hero (2010), Eqs. 18-19: the estimate in place of the truth, repeated.
    covariance = np.cov(draw_points(count, size).T, bias=True)
    ball = np.trace(covariance) / size * np.eye(size)
    weight = 0.5
    for _ in range(20_000):
        estimate = (1 - weight) * covariance + weight * ball
        product, square = np.trace(estimate @ covariance), np.trace(estimate) ** 2
        above = (1 - 2 / size) * product + square
        weight = min(above / ((count + 1 - 2 / size) * product + (1 - count / size) * square), 1.0)
    assert find_shrinkage(covariance, count) == pytest.approx(weight, rel=1e-6)


@pytest.mark.parametrize("size", [1, 16, 384, pytest.param(768, marks=pytest.mark.slow)])
@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("kind", ["different", "equal", "duplicates", "line"])
def test_few_or_equal_points_give_finite_densities(kind: str, count: int, size: int) -> None:
    different = np.random.default_rng(1).normal(size=(count, size))
    points = {
        "different": different,
        "equal": np.ones((count, size)),
        "duplicates": different[np.arange(count) // 2],
        "line": np.outer(np.arange(count), np.ones(size)),
    }[kind]
    gaussian = fit_gaussian(Moments.of(points), 1e-3)
    far = points + 1e3
    assert np.isfinite(gaussian.log_density(points)).all()
    assert (gaussian.log_density(far) < gaussian.log_density(points)).all()


def test_no_axis_is_narrower_than_the_floor_and_wide_ones_are_left_alone() -> None:
    wide = Moments.of(draw_points(500, 4))
    np.testing.assert_array_equal(
        fit_gaussian(wide, 1e-9).cholesky, fit_gaussian(wide, 0.0).cholesky
    )
    line = np.outer(np.linspace(-1, 1, 5001), [1.0, 0.0])
    cholesky = fit_gaussian(Moments.of(line), 0.25).cholesky
    assert np.linalg.eigvalsh(cholesky @ cholesky.T)[0] == pytest.approx(0.25)


def test_equal_points_without_a_floor_are_refused() -> None:
    with pytest.raises(ValueError, match="3 points without variance"):
        fit_gaussian(Moments.of(np.ones((3, 2))), 0.0)


# Rounding


@each_row("value, kept")
def test_six_digits_and_six_decimals_are_kept(value: float, kept: float) -> None:
    assert round_digits(np.array([value])).tolist() == [kept]


def test_large_input_is_never_copied_whole(tmp_path: Path) -> None:
    points = np.lib.format.open_memmap(
        tmp_path / "points.npy", mode="w+", dtype=np.float32, shape=(30_000, 256)
    )
    points[:] = np.linspace(0, 1, 256, dtype=np.float32)
    tracemalloc.start()
    fit_space(Moments.of(points), 2).transform(points)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < points.nbytes
