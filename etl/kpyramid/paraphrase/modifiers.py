"""Words before a noun with which it is still what it is alone: `French city in`, `city in`.

Only known ones count. Any other may take the noun back (`fictional`, `proposed`, `rival`, `second`)
or name another office (`deputy`, `art director of`). In base form, as frames spell them.
"""

from collections.abc import Sequence

from kpyramid.extraction.normal import read_words
from kpyramid.paraphrase.words import PREPOSITIONS

_WORDS = read_words(__file__, "modifiers.toml")

_ORDINALS = frozenset("second third fourth fifth sixth seventh eighth ninth tenth".split())
_SUPERLATIVES = _WORDS["superlatives"]
_NATIONS = _WORDS["nations"]
_QUALITIES = _WORDS["qualities"]
"""Whoever is a young member is a member."""
_KINDS = _WORDS["kinds"]
"""Fields, materials and kinds of places: only before a noun whose tail is its place or maker, for
`the cultural capital of` is no capital and `the art director of` did not direct."""
_PLACED = frozenset("in at on near by from along".split())


def keep_noun(modifiers: Sequence[str], noun: Sequence[str]) -> bool:
    """Whether what the words and the noun say together is a case of what the noun says.

    `noun` is the rest of the key, with its preposition: `city in`.
    """
    if not _SUPERLATIVES.isdisjoint(noun[:-1]):
        return False
    known = _SUPERLATIVES | _NATIONS | _QUALITIES
    if noun[-1] in _PLACED:
        known |= _KINDS
    following = [*modifiers, noun[0]][1:]
    return PREPOSITIONS.isdisjoint(modifiers) and all(
        word.casefold() in known or (word in _ORDINALS and after in _SUPERLATIVES)
        for word, after in zip(modifiers, following, strict=True)
    )
