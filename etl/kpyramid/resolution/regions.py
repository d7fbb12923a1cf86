"""Regions that are said after a place to tell which one it is: `Portland, Maine`."""

from kpyramid.extraction.normal import read_words

_WORDS = read_words(__file__, "regions.toml")
REGIONS = frozenset(tuple(name.split("_")) for words in _WORDS.values() for name in words)
"""States, provinces and countries, as the words of their names."""
