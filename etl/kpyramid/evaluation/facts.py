"""Facts that questions are made of, and what they say of each other."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from kpyramid.evaluation.values import Form, is_said

Words = tuple[str, ...]

_WORD = re.compile(r"\w+")
_ARTICLES = frozenset(("a", "an", "the"))
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_QUALIFIER = re.compile(r"\s*\([^()]*\)\s*$")
_APART_BEFORE = re.compile(r"\s+([,:;.!?)\]](?=\s|$)|['’](?:s|t|m|ve|re|ll|d)\b|n['’]t\b)")
_APART_AFTER = re.compile(r"([(\[])\s+")
"""What a tokenizer parts from the word beside it."""
_NUMERALS = {
    word: str(number)
    for number, words in enumerate(
        ("i first one 1st", "ii second two 2nd", "iii third three 3rd", "iv fourth four 4th"), 1
    )
    for word in words.split()
}
_STEPS_UP = 3
"""So far up "is part of" leads from an answer to what would be right as well."""


@dataclass(frozen=True, slots=True)
class Thing:
    """One end of a fact: something with a name or, where `form` says so, a value.

    `key` tells two things of one name apart. `kinds` are its classes in words, the narrowest
    first; `names` its other spellings.
    """

    key: str
    name: str
    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    form: Form = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """Subject, a property's label and object, with where that is stated.

    `kinds` are the ends that the property declares, in words, empty where it declares none;
    `documents` the ids of the rows that state the fact, `evidence` their words.
    """

    subject: Thing
    relation: str
    object: Thing
    kinds: tuple[str, str] = ("", "")
    documents: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    confidence: float = 1.0


def split_label(label: str) -> str:
    """A label as words: "birthPlace" and "birth_place" become "birth place"."""
    parts = _CAMEL.sub(" ", label.replace("_", " ")).split()
    joined = " " not in label.strip()
    # "Member of" begins with a capital as a line does; "Olympic medal" may be a name.
    only_first = not any(w[:1].isupper() for w in parts[1:])
    return " ".join(
        w[:1].lower() + w[1:] if (joined or (only_first and not n)) and not w.isupper() else w
        for n, w in enumerate(parts)
    )


def clean_name(name: str) -> str:
    """A name of a data set as a text writes it: no underscores, quotes or qualifier in brackets."""
    plain = " ".join(name.replace("_", " ").split()).strip('"').strip()
    plain = _APART_BEFORE.sub(r"\1", _APART_AFTER.sub(r"\1", plain))
    short = _QUALIFIER.sub("", plain)
    return short or plain


@lru_cache(maxsize=100_000)
def fold_words(text: str) -> Words:
    """The words of a text without case, accents, articles and possessive endings."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    words = _WORD.findall(plain.replace("'s ", " ").replace("’s ", " ").replace("_", " "))
    return tuple(word for word in words if word not in _ARTICLES) or tuple(words)


def holds_run(words: Words, run: Words) -> bool:
    """Whether words contain a run of words."""
    size = len(run)
    if not size or size > len(words) or run[0] not in words:
        return False
    return any(words[at : at + size] == run for at in range(len(words) - size + 1))


def may_be_same(one: Thing, other: Thing) -> bool:
    """Whether two names may mean the same: one within the other, initials, or the same words.

    Doubt counts as yes: a wrong option must not be another name of the right one.
    """
    return any(
        _agree(fold_words(a), fold_words(b))
        for a in (one.name, *one.names)
        for b in (other.name, *other.names)
    )


def _agree(one: Words, other: Words) -> bool:
    if not one or not other:
        return one == other
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if holds_run(long, short) or (len(one) == len(other) and _count(one) == _count(other)):
        return True
    if len(short) == 1 and len(long) > 1 and short[0] == "".join(word[0] for word in long):
        return True
    # "G. Stanley Hall" and "Granville Stanley Hall": one last name, and a given name's initial.
    return (
        len(one) > 1
        and len(other) > 1
        and one[-1] == other[-1]
        and one[0][0] == other[0][0]
        and (len(one[0]) == 1 or len(other[0]) == 1)
    )


def _count(words: Words) -> list[str]:
    """The words in order of the alphabet, numbers as digits: "World War I", "First World War"."""
    return sorted(_NUMERALS.get(word, word) for word in words)


def names_within(thing: Thing, text: Words) -> bool:
    """Whether words name a thing by any of its spellings."""
    return any(holds_run(text, fold_words(name)) for name in (thing.name, *thing.names))


@dataclass(frozen=True)
class Knowledge:
    """What some facts say together: the values of each question, what is linked, who is called so.

    `known` are further facts by name (subject, object): true, but nothing is asked about them.
    """

    facts: tuple[Fact, ...]
    known: tuple[tuple[str, str], ...] = ()

    @cached_property
    def keys_by_name(self) -> Mapping[Words, frozenset[str]]:
        """The things of each name; a value is its own name."""
        found: dict[Words, set[str]] = defaultdict(set)
        for thing in self._list_things():
            if not thing.form:
                for name in (thing.name, *thing.names):
                    found[fold_words(name)].add(thing.key)
        return {words: frozenset(keys) for words, keys in found.items()}

    def is_ambiguous(self, thing: Thing) -> bool:
        """Whether something else has the same name."""
        return len(self.keys_by_name.get(fold_words(thing.name), ())) > 1

    @cached_property
    def _links(self) -> Mapping[Words, frozenset[Words]]:
        found: dict[Words, set[Words]] = defaultdict(set)
        for one, other in self._list_pairs():
            found[one].add(other)
            found[other].add(one)
        return {words: frozenset(others) for words, others in found.items()}

    @cached_property
    def _upward(self) -> Mapping[Words, frozenset[Words]]:
        found: dict[Words, set[Words]] = defaultdict(set)
        for one, other in self._list_pairs():
            found[one].add(other)
        return {words: frozenset(others) for words, others in found.items()}

    def list_linked(self, thing: Thing) -> set[Words]:
        """The names of what any fact links with a thing, either way, and what those lead up to."""
        start = {fold_words(name) for name in (thing.name, *thing.names)}
        found = {other for words in start for other in self._links.get(words, ())}
        edge = start
        for _ in range(_STEPS_UP):
            edge = {up for words in edge for up in self._upward.get(words, ())} - found
            found |= edge
        return found

    def _list_things(self) -> Iterable[Thing]:
        for fact in self.facts:
            yield fact.subject
            yield fact.object

    def _list_pairs(self) -> Iterable[tuple[Words, Words]]:
        for fact in self.facts:
            # A value is no place in the graph: two things of one year have nothing in common.
            if not fact.object.form:
                yield fold_words(fact.subject.name), fold_words(fact.object.name)
        for one, other in self.known:
            yield fold_words(one), fold_words(other)


def is_grounded(fact: Fact) -> bool:
    """Whether the evidence names both ends; of a number or date its digits."""
    text = fold_words(" ".join(fact.evidence))
    return _is_named(fact.subject, text) and _is_named(fact.object, text)


def _is_named(thing: Thing, text: Words) -> bool:
    if thing.form in ("number", "date"):
        return is_said(thing.name, thing.form, text)
    return any(set(fold_words(name)) <= set(text) for name in (thing.name, *thing.names))
