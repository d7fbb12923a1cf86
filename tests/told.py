"""A small pyramid of invented facts, built once, for those who read and answer from it."""

from collections.abc import Mapping
from functools import cache

from kpyramid.query import Snapshot
from tests import corpora
from tests.rows import read_bodies

TOLD: Mapping[str, str] = read_bodies("told.told")


@cache
def open_told() -> Snapshot:
    """The pyramid of `TOLD`, for reading only."""
    return corpora.open_told("told", TOLD)
