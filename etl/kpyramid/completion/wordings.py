"""What a wording says that makes it no property of its own: a name, or what a class says."""

import re

from kpyramid.paraphrase.lexicon import load_lexicon
from kpyramid.paraphrase.reading import read_frame

_NAMING = frozenset(
    "also_called abbreviated_as birth_name familiar_name formerly_named given_new_name goes_by "
    "got_name named_at_birth nicknamed renamed same_as stage_name".split()
)
"""Meanings of our lexicon that give a thing another name."""
_KIND = re.compile(r"(?:is|are|was|were)\s+(?:an?\s+|the\s+)?(?P<kind>.+)\s+(?:in|of)")


def is_naming(wording: str) -> bool:
    """Whether it says what a thing is called, or that both ends are one thing (`is known as`)."""
    senses = [sense for sense, _ in load_lexicon().find_senses(read_frame(wording))]
    plain = [sense for sense in senses if not sense.weak] or senses
    return bool(plain) and sum(s.meaning.name in _NAMING for s in plain) * 2 > len(plain)


def find_kind(wording: str) -> str | None:
    """The kind in `is <kind> in` and `is <kind> of`, else None."""
    found = _KIND.fullmatch(wording.strip().lower())
    return found["kind"] if found else None
