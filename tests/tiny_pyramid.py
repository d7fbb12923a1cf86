"""A pyramid of a few sentences, built once for all tests of the query module that share it."""

from functools import cache

from kpyramid.query import Snapshot
from tests.corpora import open_told
from tests.rows import read_bodies

TEXTS = read_bodies("tiny_pyramid.texts")


@cache
def open_tiny() -> Snapshot:
    """The snapshot of `TEXTS`; the first call of a test run builds it."""
    return open_told("tiny", TEXTS)
