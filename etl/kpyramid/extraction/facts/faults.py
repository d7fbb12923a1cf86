"""What is wrong with a candidate fact: the reasons for which one is given up."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kpyramid.extraction.facts.candidates import Candidate
from kpyramid.extraction.syntax.phrases import LITERALS, PLACES

_MAX_RELATION_WORDS = 8
# A relation of these words alone says nothing about how its arguments are joined.
_EMPTY_WORDS = frozenset(
    (
        "is was are were be been being has have had having do does did a an the of in on at to "
        "from by with for as to not"
    ).split()
)
_SYMBOL = re.compile(r"[=<>|{}\\_~^*+@#]")
"""What no verb or preposition is written with; the parser takes formulas for clauses."""
_DIRECTIONS = frozenset(
    "north south east west northeast northwest southeast southwest left right".split()
)
_WHERE = frozenset(
    "in at on within near off above under beside behind along inside outside opposite".split()
)
_DEICTIC = frozenset(
    (
        "today now nowadays currently presently later once recently lately then here there soon "
        "afterwards afterward thereafter tomorrow yesterday tonight earlier before ago"
    ).split()
)
"""Adverbs that point from the text to a time or a place, and name neither."""
_OCCASION = re.compile(r"((the )?(first|second|third|last|same|one|long|short|next) )?time")
"""What "for the first time" and "at the time" hold: a circumstance without a date."""
_PHRASAL = frozenset(
    "addition recognition order case fact turn return response accordance honor honour".split()
)
"""Nouns that are half of a preposition when they stand bare: "in recognition of"."""
_KIND_RELATIONS = frozenset({"is a", "was a", "is one of", "was one of"})


def find_fault(candidate: Candidate) -> str | None:
    """Why a candidate is given up, None when it stands."""
    words = candidate.relation.split()
    if _SYMBOL.search(candidate.relation):
        return "no_words"
    empty = all(w in _EMPTY_WORDS for w in words) and candidate.relation not in _KIND_RELATIONS
    if is_location(words):
        empty = not _names_place(candidate)
    if empty:
        return "empty_relation"
    if len(words) > _MAX_RELATION_WORDS:
        return "relation_too_long"
    head, tail = candidate.head, candidate.tail
    # "40 percent of the workers" are workers; a number alone is nothing to state facts about.
    if head.label in LITERALS and head.label != "ORDINAL" and " of " not in head.text:
        return "head_is_literal"
    told = tail.text.lower()
    if told in _DEICTIC or head.text.lower() in _DEICTIC:
        return "deictic"
    if tail.label == "ORDINAL" or _OCCASION.fullmatch(told):
        return "bare_circumstance"
    if told in _PHRASAL and words[-1] == "in":
        return "bare_circumstance"
    if "et al" in head.text or "et al" in tail.text:
        return "citation"
    if told in _DIRECTIONS:
        return "bare_direction"
    if head.text.lower() == told:
        return "self_reference"
    if (
        not head.resolved
        and not tail.resolved
        and (
            head.first <= tail.first <= tail.last <= head.last
            or tail.first <= head.first <= head.last <= tail.last
        )
    ):
        return "nested_arguments"
    return None


def is_location(words: Sequence[str]) -> bool:
    """Whether the relation is "is in": it says where, if what follows is a place."""
    return len(words) == 2 and words[0] in {"is", "was", "are", "were"} and words[1] in _WHERE


def _names_place(candidate: Candidate) -> bool:
    """Whether the tail is a place, or a name that can hardly be anything else: X is in Kent."""
    if candidate.tail.label in PLACES:
        return True
    named = candidate.tail.is_named and candidate.tail.label != "PERSON"
    return named and candidate.head.label != "PERSON"
