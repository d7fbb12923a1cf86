"""Anchors find the nearest wordings, and always the same ones."""

import numpy as np

from kpyramid.condensation.merging import find_nearest
from kpyramid.embeddings.port import Matrix


def draw_vectors(count: int, seed: int) -> Matrix:
    """Unit vectors around 200 centres, as wordings lie around meanings."""
    chance = np.random.default_rng(seed)
    centres = np.random.default_rng(7).standard_normal((200, 64))
    points = centres[chance.integers(0, 200, count)] + 0.8 * chance.standard_normal((count, 64))
    return (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)


def search(queries: Matrix, points: Matrix, k: int, least: float) -> list[list[int]]:
    found = find_nearest(queries, points, k, least)
    return [places.tolist() for places, _ in found]


def test_all_compared_are_the_nearest_in_order() -> None:
    queries, points = draw_vectors(20, 1), draw_vectors(500, 2)
    cosines = np.round((queries @ points.T).astype(np.float64), 6)
    expected = [
        [at for at in np.argsort(-row, kind="stable")[:10].tolist() if row[at] >= 0.5]
        for row in cosines
    ]
    assert search(queries, points, 10, 0.5) == expected


def test_equal_points_come_in_the_order_of_their_rows() -> None:
    points = np.repeat(draw_vectors(1, 3), 100, axis=0)
    assert search(points[:1], points, 5, 0.9) == [[0, 1, 2, 3, 4]]


def test_fewer_points_than_asked_for() -> None:
    queries = draw_vectors(3, 1)
    assert all(len(found) == 2 for found in search(queries, queries[:2], 5, -1.0))
