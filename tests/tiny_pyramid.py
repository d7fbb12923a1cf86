"""A pyramid of a few sentences, built once for all tests of the query module that share it."""

from functools import cache

from kpyramid.query import Snapshot
from tests.corpora import open_told

TEXTS = {
    "ada.txt": "Ada Lovelace was born in London on 10 December 1815. She was a mathematician.",
    "mill.txt": "The Harlow Brewing Company was founded by John Harlow in 1871. "
    "It owns a mill for barley.",
    "hill.txt": "Brent Tor is a hill in Devon. Its elevation is 330 metres. "
    "Granite crosses mark the path that pilgrims took to the chapel on its summit.",
    "song.txt": "John Harlow was the uncle of Mary Stone. Mary Stone wrote the novel Grey Water. "
    "Grey Water did not please Peter Ash.",
}


@cache
def open_tiny() -> Snapshot:
    """The snapshot of `TEXTS`; the first call of a test run builds it."""
    return open_told("tiny", TEXTS)
