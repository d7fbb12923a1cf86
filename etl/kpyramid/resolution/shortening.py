"""How a name may be shortened, and which shortenings the language licenses."""

from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Literal

from kpyramid.resolution.names import (
    ENDINGS,
    KIND_NOUNS,
    LINKS,
    OTHER_KINDS,
    PARTICLES,
    PERSONAL,
    PLACE_MODIFIERS,
    SITES,
    TITLES,
    WIVES,
    Name,
    is_distinctive,
    spell_acronyms,
)
from kpyramid.resolution.regions import REGIONS

PLACES = frozenset({"GPE", "LOC", "FAC"})
TITLED = frozenset({"WORK_OF_ART", "EVENT", "LAW"})
"""Types of things whose names are often made of names."""

_MAX_WORDS = 8
"""Longer phrases are no names that anyone shortens."""

_NEAR = frozenset({"in", "near"})
_GENERAL = KIND_NOUNS | OTHER_KINDS | PLACE_MODIFIERS | TITLES
"""Words of which alone no name is made."""

_ACRONYM = "@"
_ORDER = "~"

How = Literal["frame", "front", "back", "middle", "initials", "acronym", "script", "order"]
"""What the short form leaves out: titles and endings, the first or last words, the words in the
middle, all but the first letters; `script`: it is the same name in
another script; `order`: its words are joined another way (`Bank of X`, `X Bank`)."""


@dataclass(frozen=True, slots=True)
class Shortening:
    """How a form follows from a fuller name, and the words that it leaves out."""

    how: How
    dropped: tuple[str, ...] = ()


def list_short_forms(name: Name) -> Iterator[tuple[str, How, tuple[str, ...]]]:
    """The forms by which a shorter wording can be recognised, and what they leave out."""
    words, count = name.bare, len(name.bare)
    if name.foreign or not words or len(name.words) > _MAX_WORDS:
        return
    yield _spell_key(name), "script", ()
    yield " ".join(words), "frame", ()
    if count > 1:
        yield _spell_sorted(words), "order", ()
    for cut in range(1, count):
        yield " ".join(words[cut:]), "front", words[:cut]
        yield " ".join(words[:cut]), "back", words[cut:]
    if count > 2:
        yield f"{words[0]} {words[-1]}", "middle", words[1:-1]
        initials = tuple(word[0] for word in words[1:-1])
        for first in (words[0], words[0][0]):
            if (first, *initials) != words[:-1]:
                yield " ".join((first, *initials, words[-1])), "initials", ()
    if count > 1 and len(words[0]) > 1:
        yield f"{words[0][0]} {words[-1]}", "initials", words[1:-1]
    for letters in sorted(spell_acronyms(words) | spell_acronyms(name.words)):
        yield _ACRONYM + letters, "acronym", ()


def list_sought_forms(name: Name) -> Iterator[str]:
    """The forms under which fuller wordings of this name are filed."""
    if name.foreign:
        yield _spell_key(name)
        return
    yield " ".join(name.bare)
    yield _spell_sorted(name.bare)
    if name.shouted and len(name.words) == 1 and 2 <= len(name.key) <= _MAX_WORDS:
        yield _ACRONYM + name.key


def is_possible(
    short: Name, short_types: Set[str], full: Name, full_types: Set[str], by: Shortening
) -> bool:
    """The shorter wording can denote what the fuller one does: by words, case and types.

    Never across a number, a small word that links two things, or a comma; for one place in
    another's name; or for the wife of the man whose surname she shares.
    """
    agree = not short_types or not full_types or bool(short_types & full_types)
    if by.how == "script":
        return True
    if by.how == "acronym":
        return full.proper and "PERSON" not in full_types
    if not (short.proper and full.proper):
        return False
    if by.how == "back" and _lies_in(short, short_types, full_types, by.dropped):
        return True
    if not agree:
        return False
    if by.how == "order":
        if _drop_links(short.bare) == _drop_links(full.bare):
            return agree and len(_drop_links(full.bare)) > 1
        return "PERSON" not in full_types and ("of" in short.bare) != ("of" in full.bare)
    if by.how == "frame":
        return short.words == short.bare or full.words == full.bare or len(short.bare) > 1
    if _is_barred(short.bare, by.dropped) or short.words[-1] in ENDINGS:
        return False
    if by.how == "middle":
        initials = all(len(word) == 1 for word in by.dropped)
        return initials or "PERSON" in short_types & full_types
    if by.how == "initials":
        return (short_types | full_types) <= {"PERSON"}
    if by.how == "back":
        return _may_drop_the_end(short, short_types, full, full_types, by.dropped)
    if full.after_comma or by.dropped[0] in PLACE_MODIFIERS or full_types & PLACES:
        return False
    return short.words[0] not in WIVES or full.words[0] in WIVES


def is_contained(short: Name, full: Name, by: Shortening) -> bool:
    """The shorter name is the fuller one's first or last words, and might denote the same."""
    if by.how not in {"front", "back"} or not (short.proper and full.proper):
        return False
    if _is_barred(short.bare, by.dropped) or short.words[-1] in ENDINGS:
        return False
    if by.how == "back":
        return not OTHER_KINDS.intersection(by.dropped) and short.bare[-1] not in KIND_NOUNS
    return not (full.after_comma or by.dropped[0] in PLACE_MODIFIERS or short.words[0] in WIVES)


def may_differ_in_type(short_types: Set[str], full_types: Set[str], by: Shortening) -> bool:
    """The types leave it open that the last or first words denote the whole.

    The recogniser often takes a lone surname for a firm or a place.
    """
    if full_types & TITLED or (by.how == "front" and full_types & PLACES):
        return False
    if by.how == "front" and "PERSON" in full_types:
        return True
    return not short_types or not full_types or bool(short_types & full_types)


def is_safe(short: Name, full: Name, by: Shortening) -> bool:
    """The wordings denote one entity wherever they stand, if nothing else fits."""
    if by.how in {"frame", "script"}:
        firm = full.words[-1] in ENDINGS - PERSONAL and full.words[0] == full.bare[0]
        return len(short.bare) > 1 or (firm and short.words == short.bare)
    if by.how == "back":
        return len(short.bare) > 1 and _tells_where(by.dropped)
    return by.how == "middle" and all(len(word) == 1 for word in by.dropped)


def is_local(by: Shortening, full_types: Set[str]) -> bool:
    """The short form is one for the space of a document only: a first name."""
    return by.how == "back" and "PERSON" in full_types


def _is_barred(kept: tuple[str, ...], dropped: tuple[str, ...]) -> bool:
    return (
        any(is_distinctive(word) or (word in LINKS and word not in PARTICLES) for word in dropped)
        or kept[0] in LINKS
        or kept[-1] in LINKS
        or kept[-1] in PARTICLES
        or (kept in REGIONS and dropped in REGIONS)
        or all(word in TITLES or is_distinctive(word) for word in kept)
    )


def _may_drop_the_end(
    short: Name, short_types: Set[str], full: Name, full_types: Set[str], dropped: tuple[str, ...]
) -> bool:
    """The region after a place's comma; surnames; nouns that only tell the kind."""
    if full.after_comma and full.after_comma == len(dropped):
        return (short_types | full_types) <= PLACES
    if "PERSON" in full_types:
        one_name = "PERSON" in short_types and len(short.words) == 1
        return one_name and not OTHER_KINDS.intersection(dropped)
    return bool(short_types & full_types) and all(word in KIND_NOUNS for word in dropped)


def _lies_in(
    short: Name, short_types: Set[str], full_types: Set[str], dropped: tuple[str, ...]
) -> bool:
    """A place or site, and the words left out say where it lies, as after a comma."""
    kept = short.bare
    if not _tells_where(dropped) or "PERSON" in full_types or kept in REGIONS:
        return False
    if _is_barred(kept, ()) or _GENERAL.issuperset(kept):
        return False
    place = bool(short_types) and short_types <= PLACES
    return place or (len(kept) > 1 and kept[-1] in SITES and dropped[0] in _NEAR)


def _tells_where(dropped: tuple[str, ...]) -> bool:
    return dropped in REGIONS or (len(dropped) > 1 and dropped[0] in _NEAR)


def _spell_sorted(words: tuple[str, ...]) -> str:
    return _ORDER + " ".join(sorted(_drop_links(words)))


def _drop_links(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in LINKS)


def _spell_key(name: Name) -> str:
    return "=" + "".join(name.words)
