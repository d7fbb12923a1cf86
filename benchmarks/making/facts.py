"""Facts of a snapshot that questions are made of; numbers and dates as questions write them."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from random import Random
from typing import Any, Literal

from kpyramid.documents.values import MONTHS, NUMBER, Date
from kpyramid.documents.words import ARTICLES, WORD, split_label
from kpyramid.ontology import names as n
from kpyramid.ontology.schema import Schema
from kpyramid.snapshot.snapshot import Snapshot

# Numbers and dates as questions and options write them: read, compared, and varied.

Form = Literal["", "number", "date", "text"]

_ISO = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?:T[\d:.Z+-]*)?", re.ASCII)
_SAID = re.compile(rf"(?:(\d{{1,2}}) )?({'|'.join(MONTHS)}) (\d{{4}})", re.ASCII)
_NO_MONTH = re.compile(r"00? (\d{4})", re.ASCII)
_NUMBER = re.compile(NUMBER)
_FIRST_YEAR, _LAST_YEAR = 1000, 2100
"""Four digits outside of these count something rather than name a year."""


def read_date(text: str) -> Date | None:
    """The date that a text is: "1962-06-03", "3 June 1962", "00 June 1962", "1962"; else None."""
    plain = " ".join(text.split())
    if match := _ISO.fullmatch(plain):
        year, month, day = (int(part or 0) for part in match.groups())
    elif match := _SAID.fullmatch(plain):
        day, month, year = int(match[1] or 0), MONTHS.index(match[2]) + 1, int(match[3])
    elif match := _NO_MONTH.fullmatch(plain):
        year, month, day = int(match[1]), 0, 0
    else:
        return None
    date = Date(year, month, day)
    try:
        date.days  # noqa: B018
    except ValueError:
        return None
    return date if _FIRST_YEAR <= year <= _LAST_YEAR else None


def read_number(text: str) -> float | None:
    """The number that a text is, else None."""
    return float(text.replace(",", "")) if _NUMBER.fullmatch(text) else None


def say_value(text: str, *, counts: bool = False) -> tuple[str, Form]:
    """A value as a text would say it, and its form: dates in words, numbers without ".0".

    `counts`: four digits are a number, not a year.
    """
    number = read_number(text)
    date = read_date(text)
    if date is not None and not (counts and number is not None):
        return str(date), "date"
    if number is not None:
        return re.sub(r"\.0+$", "", text.lstrip("+")), "number"
    return text, ""


def measure(text: str, form: Form) -> float | None:
    """A number, or a date as days, to compare values by."""
    if form == "date":
        date = read_date(text)
        return None if date is None else date.days
    return read_number(text)


def find_precision(text: str, form: Form) -> int:
    """What values written alike have in common: parts of a date, decimal places of a number."""
    if form == "date":
        date = read_date(text)
        return 0 if date is None else 1 + bool(date.month) + bool(date.day)
    return len(text.partition(".")[2])


def vary_value(text: str, form: Form, rng: Random) -> str:
    """Another value near one, written as it is."""
    date = read_date(text) if form == "date" else None
    if date is not None:
        return str(_vary_date(date, rng))
    plain = text.replace(",", "")
    digits, value = len(plain.partition(".")[2]), float(plain)
    spread = max(abs(value) * 0.5, 10 * 10.0**-digits)
    low = max(value - spread, 0.0) if value >= 0 else value - spread
    varied = f"{rng.uniform(low, value + spread):.{digits}f}"
    return f"{int(varied):,}" if "," in text and not digits else varied


def _vary_date(date: Date, rng: Random) -> Date:
    year = min(max(date.year + rng.randint(-12, 12), _FIRST_YEAR), _LAST_YEAR)
    month = rng.randint(1, 12) if date.month else 0
    # Every month has 28 days.
    return Date(year, month, rng.randint(1, 28) if date.day else 0)


def is_said(text: str, form: Form, words: tuple[str, ...]) -> bool:
    """Whether words, in small letters, hold a number's digits or a date's year and month."""
    if form == "date":
        date = read_date(text)
        if date is None or str(date.year) not in words:
            return False
        if not date.month:
            return True
        name = MONTHS[date.month - 1].lower()
        numbers = {word.lstrip("0") for word in words if word.isdigit()}
        return name in words or name[:3] in words or str(date.month) in numbers
    digits = re.findall(r"\d+", text.replace(",", ""))
    joined = "".join(digits[:1])
    return any(
        "".join(words[at : at + size]).lstrip("0") == joined.lstrip("0")
        for size in (1, 2, 3, 4)
        for at in range(len(words) - size + 1)
    )


# Facts that questions are made of, and what they say of each other.

Words = tuple[str, ...]

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


@lru_cache(maxsize=100_000)
def fold_words(text: str) -> Words:
    """The words of a text without case, accents, articles and possessive endings."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = "".join(c for c in plain if not unicodedata.combining(c))
    words = WORD.findall(plain.replace("'s ", " ").replace("’s ", " ").replace("_", " "))
    return tuple(word for word in words if word not in ARTICLES) or tuple(words)


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


# What a snapshot knows, as facts that questions are made of.

_COUNTS = frozenset(
    n.XSD + name
    for name in "integer decimal double float int long nonNegativeInteger positiveInteger".split()
)


def list_instance_facts(snapshot: Snapshot) -> Iterator[Fact]:
    """The values of properties in the ontology layer."""
    schema = snapshot.schema
    rows = snapshot.table("instances").to_pylist()
    classes = _list_classes(rows, schema)
    names, spellings = snapshot.names, _list_spellings(snapshot)
    places = _Places(snapshot)

    def name_thing(entity_id: str) -> Thing:
        kinds = tuple(_name_class(iri, schema) for iri in classes.get(entity_id, ()))
        return Thing(entity_id, names[entity_id], kinds, spellings.get(entity_id, ()))

    for row in rows:
        found = schema.property_by_iri.get(row["property_iri"] or "")
        if found is None:
            continue
        if row["object_id"]:
            value = name_thing(row["object_id"])
        else:
            said, form = say_value(row["literal"], counts=row["datatype"] in _COUNTS)
            value = Thing(said, said, (), form=form or _read_text(row["datatype"]))
        documents, evidence = places.read(row["places"])
        ends = (_name_class(found.domain, schema), _name_class(found.range, schema))
        subject = name_thing(row["subject_id"])
        yield Fact(subject, found.label, value, ends, documents, evidence, row["confidence"])


def _read_text(datatype: str | None) -> Form:
    return "text" if datatype else ""


def _name_class(iri: str, schema: Schema) -> str:
    """A class in words; nothing for the most general, and for datatypes."""
    found = schema.class_by_iri.get(iri)
    return split_label(found.label) if found and iri != n.THING else ""


def _list_classes(rows: Iterable[Mapping[str, Any]], schema: Schema) -> dict[str, list[str]]:
    """The classes of each individual with those above them, the narrowest first."""
    own: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        own[row["subject_id"]].add(row["class_iri"])
        found = schema.property_by_iri.get(row["property_iri"] or "")
        if row["object_id"] and found and found.range in schema.class_by_iri:
            own[row["object_id"]].add(found.range)
    ordered = {}
    for entity, iris in own.items():
        every = {up for iri in iris for up in schema.find_ancestors(iri)} - {n.THING}
        known = every & set(schema.class_by_iri)
        ordered[entity] = sorted(known, key=lambda c: (-len(schema.find_ancestors(c)), c))
    return ordered


def _list_spellings(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    rows = snapshot.table("entities").select(["entity_id", "surface_forms"]).to_pylist()
    return {row["entity_id"]: tuple(row["surface_forms"]) for row in rows}


class _Places:
    """The rows of the corpus and the sentences behind places, all tables read once."""

    def __init__(self, snapshot: Snapshot) -> None:
        documents = snapshot.table("documents").select(["document_id", "source", "text"])
        self._documents = {row["document_id"]: row for row in documents.to_pylist()}
        chunks = snapshot.table("chunks").select(["chunk_id", "document_id"]).to_pylist()
        self._document_of = {row["chunk_id"]: row["document_id"] for row in chunks}

    def read(self, places: Iterable[Mapping[str, Any]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The ids of the rows (what stands after "#" in the source), and the sentences."""
        ids: dict[str, None] = {}
        texts: dict[str, None] = {}
        for place in places:
            document = self._documents[self._document_of[place["chunk_id"]]]
            source = str(document["source"])
            ids[source.rpartition("#")[2]] = None
            texts[document["text"][place["start"] : place["end"]]] = None
        return tuple(ids), tuple(texts)
