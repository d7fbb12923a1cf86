"""The form in which names are kept and asked for."""

import hashlib
import re

from kpyramid.extraction.normal import normalise_name

WORD = re.compile(r"\w+(?:['’.&-]\w+)*\.?")
MOST_SHARED = 100
"""Entities beyond which a word of their names is kept for none: it tells nobody apart."""


def join_words(name: str) -> str:
    """The normal form of a name without punctuation between its words."""
    return " ".join(WORD.findall(normalise_name(name)))


def hash_name(name: str) -> int:
    """A number of 64 bits for a name in the form of `join_words`."""
    data = name.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
