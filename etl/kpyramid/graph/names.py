"""Names: their parts, their possible short forms, and the regions that distinguish places."""

import re
import unicodedata
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import lru_cache
from itertools import dropwhile
from typing import Literal

from anyascii import anyascii

from kpyramid.documents.values import MONTHS, NUMBER_WORDS, WEEKDAYS
from kpyramid.documents.words import ARTICLES, lemmatise, read_words

_WORDS = read_words(__file__, "names.toml")
"""Lists of words; `names.toml` describes each."""

_WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
_POSSESSIVE = re.compile(r"\s?['’][sS]?$")
_INNER_POSSESSIVE = re.compile(r"\s?['’][sS](?=\s)|(?<=[sS])['’](?=\s)")
_WEBSITE = re.compile(r"\s?\.(?=(?:com|org|net)\b)", re.IGNORECASE)
_IN_BRACKETS = re.compile(r"\s*\(([^()]{2,10})\)$")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_BETWEEN_NUMBERS = re.compile(r"(?<=\d) (?=\d)")
_AMERICA = re.compile(r"(?<=United States) of America\b", re.IGNORECASE)
_NATION = re.compile(r"U\.?S(?:\.?A)?|U\.?K|U\.?N|E\.?U")
_INITIALS = re.compile(r"[^\W\d_](?:\.[^\W\d_])+")
_NOT_LETTERS = re.compile(r"[^a-z0-9]+")
_OWNED = "s"
"""Stands for the possessive ending within a name; a link, as `of` is."""

_TENS = ("", "x", "xx", "xxx")
_ONES = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix")
_ROMAN = {number: _TENS[number // 10] + _ONES[number % 10] for number in range(1, 40)}
_ROMANS = frozenset(_ROMAN.values())
_NUMERALS = {
    **{roman: str(n) for n, roman in _ROMAN.items() if len(roman) > 1},
    **{word: str(n) for n, word in enumerate(NUMBER_WORDS, 1)},
}

TITLES = _WORDS["titles"]
WIVES = _WORDS["wives"]
PERSONAL = _WORDS["personal_endings"]
ENDINGS = _WORDS["endings"] | PERSONAL
"""Legal forms of firms, the younger generation, degrees: short forms leave them out."""
PLURALS = _WORDS["plurals"]
ABBREVIATIONS = dict(pair.split(":") for pair in sorted(_WORDS["abbreviations"]))
"""Words of names with different forms: full and abbreviated."""

_NATIONS = {k: v.split("_") for k, v in (pair.split(":") for pair in _WORDS["nations"])}
"""Capitals that mean the same in every text, alone and before the name of an institution."""

PARTICLES = _WORDS["particles"]
LINKS = _WORDS["links"]
PLACE_MODIFIERS = _WORDS["place_modifiers"]
KIND_NOUNS = _WORDS["kind_nouns"]
SITES = _WORDS["sites"]
OTHER_KINDS = SITES | _WORDS["other_kinds"]
"""Words after which a name denotes another thing, named after the first."""
_SMALL = PARTICLES | LINKS | ENDINGS
"""Words that may be in lower case within a proper name."""


@dataclass(frozen=True, slots=True)
class Name:
    """A wording of a name.

    `key`: common key of wordings that differ only in case, marks, spaces and articles.
    `words`: its words in lower-case ASCII letters, without leading articles.
    `bare`: its words without leading titles and final `ENDINGS`.
    `proper`: each word that may not be in lower case begins with a capital or a digit.
    `shouted`: all its letters are capitals.
    `foreign`: its first letter is not Latin, so that `words` are a transliteration.
    `after_comma`: the number of words after its last comma, 0 without a comma.
    """

    key: str
    words: tuple[str, ...]
    bare: tuple[str, ...]
    proper: bool
    shouted: bool
    foreign: bool
    after_comma: int


@lru_cache(maxsize=1 << 16)
def parse_name(surface: str) -> Name:
    """The parts of a name; a text without a letter or digit is its own key."""
    text = surface.strip() if surface.isascii() else _normalise_unicode(surface)
    text = _WEBSITE.sub(" ", _POSSESSIVE.sub("", text.replace("&", " and ")))
    text = _THOUSANDS.sub("", text)
    raw = _split_words(_drop_acronym(text))
    together = "".join(raw)
    foreign = not together.isascii() and _is_foreign(together)
    if raw and raw[-1].islower() and raw[-1] not in PLURALS and not foreign:
        raw[-1] = lemmatise(raw[-1])
    words = tuple(word for word in map(fold_word, raw) if word)
    if len(raw) == 1 and raw[0].islower():  # "co" of "co-founder" is no company
        words = (raw[0],) if raw[0] in ABBREVIATIONS else words
    native = together.casefold() if foreign else _join_words(words)
    return Name(
        key=native or " ".join(text.casefold().split()) or surface,
        words=words,
        bare=strip_words(words),
        proper=bool(words) and all(map(_is_capital, dropwhile(_is_title, raw))),
        shouted=len(together) > 1 and together.isupper(),
        foreign=foreign,
        after_comma=len(_WORD.findall(text.rpartition(",")[2])) if "," in text else 0,
    )


def _normalise_unicode(text: str) -> str:
    """Compatibility forms composed; marks of direction and joining gone."""
    text = unicodedata.normalize("NFKC", text)
    return "".join(c for c in text if unicodedata.category(c) != "Cf").strip()


def _is_foreign(text: str) -> bool:
    """Whether the first letter is not Latin."""
    first = next((c for c in text if c.isalpha()), "a")
    return not unicodedata.name(first, "").startswith("LATIN")


def _split_words(text: str) -> list[str]:
    """The words as written, without leading articles; the possessive ending is a word."""
    raw = _WORD.findall(_INNER_POSSESSIVE.sub(f" {_OWNED}", _AMERICA.sub("", text)))
    while len(raw) > 1 and raw[0].casefold() in ARTICLES:
        raw = raw[1:]
    if len(raw) > 1 and text.isupper():
        raw[:1] = _spell_nation(raw[0])
    else:
        raw = [part for word in raw for part in _spell_nation(word)]
    if len(raw) > 1 and _INITIALS.fullmatch(raw[0]):
        raw[:1] = raw[0].split(".")
    raw[1:] = [_NUMERALS.get(word.lower(), word) for word in raw[1:]]
    if len(raw) > 1 and raw[-1] == "I" and len(raw[-2]) > 1:
        raw[-1] = "1"
    return raw


def _spell_nation(word: str) -> list[str]:
    return _NATIONS[word.replace(".", "")] if _NATION.fullmatch(word) else [word]


def _join_words(words: tuple[str, ...]) -> str:
    """The words in one string without spaces; two numbers are separated."""
    joined = _BETWEEN_NUMBERS.sub("|", " ".join(words))
    return joined.replace(" ", "")


def _drop_acronym(text: str) -> str:
    """`United Nations (UN)` without the brackets that only repeat its first letters."""
    match = _IN_BRACKETS.search(text)
    if not match:
        return text
    before = text[: match.start()]
    same = fold_word(match[1]) in spell_acronyms(tuple(map(fold_word, _split_words(before))))
    return before if same else text


def fold_word(word: str) -> str:
    """A word in lower-case ASCII letters and digits, transliterated, with `ABBREVIATIONS` applied.

    A script that writes no vowels gives consonants only, which match no Latin name.
    """
    folded = word.lower() if word.isascii() else anyascii(word).casefold()
    if not folded.isalnum() and not any(c.isdigit() for c in folded):
        folded = _NOT_LETTERS.sub("", folded)
    return ABBREVIATIONS.get(folded, folded)


def spell_acronyms(words: tuple[str, ...]) -> set[str]:
    """First letters of at least two words, with and without links and particles.

    Numbers stay whole, in digits or Roman numerals: `WW2`, `WWII`.
    """
    content = tuple(w for w in words if w and w not in LINKS and w not in PARTICLES)
    if len(content) < 2:
        return set()
    spelt = {content, words}
    if any(word.isdecimal() for word in content):
        spelt |= {tuple(map(_spell_roman, part)) for part in (content, words)}
        return {"".join(map(_shorten_word, part)) for part in spelt}
    return {"".join([word[:1] for word in part]) for part in spelt}


def _spell_roman(word: str) -> str:
    """A small number in Roman numerals; any other word unchanged."""
    return _ROMAN.get(int(word), word) if word.isdecimal() else word


def _shorten_word(word: str) -> str:
    return word if word.isdecimal() or word in _ROMANS else word[:1]


def strip_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words without leading titles and final `ENDINGS`; never empty."""
    first, last = 0, len(words)
    while first + 1 < last and words[first] in TITLES and words[first + 1] not in LINKS:
        first += 1
    while first + 1 < last and (words[last - 1] in ENDINGS or words[last - 1] == _OWNED):
        last -= 1
    return words[first:last]


def is_distinctive(word: str) -> bool:
    """Whether a word distinguishes bearers of the same name: a number, or `elder` and the like."""
    return word in _WORDS["elder"] or any(c.isdigit() for c in word)


def _is_title(word: str) -> bool:
    return word.casefold() in TITLES


def _is_capital(word: str) -> bool:
    small = word.casefold()
    return not word[0].islower() or small in _SMALL


# How a name may be shortened, and which shortenings the language licenses.

_REGIONS = read_words(__file__, "regions.toml")
STATES = frozenset(tuple(name.split("_")) for name in _REGIONS["states"])
"""States and provinces; a place lies in only one of them."""
REGIONS = STATES | {tuple(name.split("_")) for name in _REGIONS["countries"]}
"""States, provinces and countries that distinguish places (`Portland, Maine`), as words."""

PLACES = frozenset({"GPE", "LOC", "FAC"})
TITLED = frozenset({"WORK_OF_ART", "EVENT", "LAW"})
"""Types of things whose names are often made of names."""

_OF_A_PERSON = 2
"""Words of a person's name whose order may be reversed."""
_MAX_WORDS = 8
"""Most words of a name that has short forms."""

_NEAR = frozenset({"in", "near"})
_INSTITUTIONS = KIND_NOUNS | OTHER_KINDS | TITLES
_GENERAL = KIND_NOUNS | OTHER_KINDS | PLACE_MODIFIERS | TITLES
"""Words that alone do not make a name."""

_ACRONYM = "@"
_ORDER = "~"

How = Literal[
    "frame", "front", "back", "middle", "initials", "acronym", "script", "order", "number"
]
"""Parts that the short form omits: titles and endings, the first or last words, the words in the
middle, all but the first letters. `script`: the same name in another script; `order`: the words in
another order (`Bank of X`, `X Bank`); `number`: a common noun's singular."""


@dataclass(frozen=True, slots=True)
class Shortening:
    """How a form is derived from a fuller name, and the words that it omits."""

    how: How
    dropped: tuple[str, ...] = ()


_TIMES = {*WEEKDAYS, *map(str.lower, MONTHS)}
_DAYS = frozenset({"and", "or", "to"}) | _TIMES | {time[:3] for time in _TIMES}
"""Words of lists of days and months, which have no short form: `Mon-Wed and Fri`."""


def list_short_forms(name: Name) -> Iterator[tuple[str, How, tuple[str, ...]]]:
    """The forms by which a shorter wording can be recognised, each with how and what it omits."""
    words, count = name.bare, len(name.bare)
    if name.foreign or not words or len(name.words) > _MAX_WORDS or _DAYS.issuperset(words):
        return
    yield _spell_key(name), "script", ()
    yield " ".join(words), "frame", ()
    if (single := lemmatise(words[-1])) != words[-1] and words[-1] not in PLURALS:
        yield " ".join((*words[:-1], single)), "number", ()
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
    """The forms under which fuller wordings of this name are indexed."""
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
    """Whether the shorter wording can denote the same as the fuller one, by words, case and types.

    Omitted words must not include a number, a link between two things, or a comma; nor may they
    turn one place into another, or a wife into the man whose surname she shares.
    """
    agree = not short_types or not full_types or bool(short_types & full_types)
    if by.how == "script":
        return True
    if by.how == "number":
        return not short_types and not full_types
    if by.how == "acronym":
        return full.proper and "PERSON" not in full_types
    if not (short.proper and full.proper):
        return False
    if by.how == "back" and _lies_in(short, short_types, full_types, by.dropped):
        return True
    if not agree:
        return False
    if by.how == "order" and "PERSON" in full_types:  # a family's name may come first
        return short.bare == full.bare[::-1] and len(short.bare) == _OF_A_PERSON
    if by.how == "order":
        if _drop_links(short.bare) == _drop_links(full.bare):
            return len(_drop_links(full.bare)) > 1
        return ("of" in short.bare) != ("of" in full.bare)
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
    if full.after_comma or by.dropped[0] in PLACE_MODIFIERS:
        return False
    if full_types & PLACES:  # "the National Stadium" of Beijing
        return full_types & PLACES == {"FAC"} and len(short.bare) > 1 and short.bare[-1] in SITES
    return short.words[0] not in WIVES or full.words[0] in WIVES


def is_contained(short: Name, full: Name, by: Shortening) -> bool:
    """Whether the shorter name is the fuller one's first or last words, and may denote the same."""
    if by.how not in {"front", "back"} or not (short.proper and full.proper):
        return False
    if _is_barred(short.bare, by.dropped) or short.words[-1] in ENDINGS:
        return False
    if by.how == "back":
        return not OTHER_KINDS.intersection(by.dropped) and short.bare[-1] not in KIND_NOUNS
    return not (full.after_comma or by.dropped[0] in PLACE_MODIFIERS or short.words[0] in WIVES)


def may_differ_in_type(short_types: Set[str], full_types: Set[str], by: Shortening) -> bool:
    """Whether the types permit that the last or first words denote the whole.

    The recogniser often tags a lone surname as a firm; a place of that name is another thing.
    """
    if full_types & TITLED or (by.how == "front" and full_types & PLACES):
        return False
    if "PERSON" in full_types:
        return short_types <= {"PERSON", "ORG", "NORP", "PRODUCT"}
    return not short_types or not full_types or bool(short_types & full_types)


def is_safe(short: Name, full: Name, by: Shortening) -> bool:
    """Whether the wordings denote the same entity in any document, if no other name fits."""
    if by.how in {"frame", "script"}:
        firm = full.words[-1] in ENDINGS - PERSONAL and full.words[0] == full.bare[0]
        return len(short.bare) > 1 or (firm and short.words == short.bare)
    if by.how == "back":
        return len(short.bare) > 1 and _tells_where(by.dropped)
    return by.how == "middle" and all(len(word) == 1 for word in by.dropped)


def is_local(by: Shortening, full_types: Set[str]) -> bool:
    """Whether the short form holds within a document only: a first name, a site's kind."""
    if by.how in {"back", "order"}:
        return "PERSON" in full_types
    return by.how == "front" and "FAC" in full_types


def is_lone(name: Name, types: Set[str]) -> bool:
    """Whether the name alone does not identify its bearer: "Miller", "Anna", "the President"."""
    person = "PERSON" in types and not types & PLACES
    return len(name.bare) == 1 and (person or name.bare[0] in _INSTITUTIONS)


def may_stand_alone(short: Name, kind: str, title: Name) -> bool:
    """Whether the last word of a title may denote the same: "Cubs", "Schwarzenegger"."""
    if not short.proper or kind in PLACES or LINKS.intersection(title.words):
        return False
    modified = title.words[0] in PLACE_MODIFIERS or short.bare[-1] in _GENERAL
    return short.bare == title.bare[-len(short.bare) :] and not modified


def _is_barred(rest: tuple[str, ...], dropped: tuple[str, ...]) -> bool:
    return (
        any(is_distinctive(word) or (word in LINKS and word not in PARTICLES) for word in dropped)
        or rest[0] in LINKS
        or rest[-1] in LINKS
        or rest[-1] in PARTICLES
        or (rest in REGIONS and dropped in REGIONS)
        or all(word in TITLES or is_distinctive(word) for word in rest)
    )


def _may_drop_the_end(
    short: Name, short_types: Set[str], full: Name, full_types: Set[str], dropped: tuple[str, ...]
) -> bool:
    """Whether the last words may be dropped: a region after a comma, a surname, a kind's noun."""
    if full.after_comma and full.after_comma == len(dropped):
        return (short_types | full_types) <= PLACES
    if "PERSON" in full_types:
        is_surname = "PERSON" in short_types and len(short.words) == 1
        return is_surname and not OTHER_KINDS.intersection(dropped)
    return bool(short_types & full_types) and all(word in KIND_NOUNS for word in dropped)


def _lies_in(
    short: Name, short_types: Set[str], full_types: Set[str], dropped: tuple[str, ...]
) -> bool:
    """Whether it is a place or site, and the dropped words state where it lies."""
    rest = short.bare
    if not _tells_where(dropped) or "PERSON" in full_types or rest in REGIONS:
        return False
    if _is_barred(rest, ()) or _GENERAL.issuperset(rest):
        return False
    place = bool(short_types) and short_types <= PLACES
    return place or (len(rest) > 1 and rest[-1] in SITES and dropped[0] in _NEAR)


def _tells_where(dropped: tuple[str, ...]) -> bool:
    return dropped in REGIONS or (len(dropped) > 1 and dropped[0] in _NEAR)


def _spell_sorted(words: tuple[str, ...]) -> str:
    return _ORDER + " ".join(sorted(_drop_links(words)))


def _drop_links(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word for word in words if word not in LINKS)


def _spell_key(name: Name) -> str:
    return "=" + "".join(name.words)
