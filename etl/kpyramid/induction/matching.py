"""Which candidates of a text are what an example's triples name."""

import re
from collections.abc import Iterator, Sequence, Set
from decimal import Decimal, InvalidOperation

from kpyramid.induction.candidates import DATES, Candidate, normalise_name
from kpyramid.induction.examples import Example
from kpyramid.induction.wording import split_words
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import XSD
from kpyramid.ontology.schema import Schema

_BRACKET = re.compile(r"\s*\([^()]*\)\s*$")
_NUMBER = re.compile(r"[-+−]?[$€£¥]?([0-9][0-9,]*(?:\.[0-9]+)?)")

Alignment = tuple[int, list[int], list[int]]
"""A property's place in the schema, its value's candidates, its subject's (perhaps none)."""


class Matcher:
    """Finds examples' triples among candidates, and counts those it does not find."""

    def __init__(self, schema: Schema) -> None:
        self._places: dict[str, int] = {}
        for at, p in enumerate(schema.properties):
            for name in (p.iri, p.iri.rpartition("#")[2], p.label, *p.alt_labels):
                self._places.setdefault(_fold(name), at)
        self.unaligned = 0
        self.unknown = 0

    def find_place(self, relation: str) -> int | None:
        """The place in the schema of the property that goes by this name."""
        return self._places.get(_fold(relation))

    def align(self, example: Example, candidates: Sequence[Candidate]) -> list[Alignment]:
        """The triples whose value is found."""
        known: dict[str, list[int]] = {}
        for at, c in enumerate(candidates):
            for key in list_keys(c):
                known.setdefault(key, []).append(at)
        found = []
        for subject, relation, value in example.triples:
            place = self.find_place(relation)
            objects = _find(value, known)
            if place is None:
                self.unknown += 1
            elif objects:
                found.append((place, objects, _find(subject, known)))
            else:
                self.unaligned += 1
        return found


class KnownValues:
    """The values that examples give for each property, each with the subjects that have it.

    In many fields a property has few values and they recur: genres, languages, parties.
    """

    def __init__(self) -> None:
        self._subjects: dict[str, dict[int, set[str]]] = {}

    def add(self, place: int, subject: str, value: str) -> None:
        """Notes a value of a property."""
        properties = self._subjects.setdefault(normalise_name(value), {})
        properties.setdefault(place, set()).add(normalise_name(subject))

    def __contains__(self, name: object) -> bool:
        """Whether a normalised name is a value of some property."""
        return name in self._subjects

    def list_features(self, c: Candidate, but_of: Set[str] = frozenset()) -> Iterator[str]:
        """Whose value a candidate is elsewhere; `but_of`: normalised subjects that do not count."""
        for place, subjects in self._subjects.get(normalise_name(c.text), {}).items():
            if others := len(subjects - but_of):
                yield f"listed={place}"
                if others > 2:
                    yield f"often={place}"


def _find(text: str, known: dict[str, list[int]]) -> list[int]:
    return next((known[form] for form in list_forms(text) if form in known), [])


def _fold(name: str) -> str:
    return " ".join(split_words(name)) or name


def list_keys(c: Candidate) -> list[str]:
    """The keys under which an example's value may name a candidate."""
    keys = [normalise_name(c.text)]
    if c.kind in DATES:
        if date := parse_literal(c.text, XSD + "date"):
            keys.append("date:" + date)
        elif year := parse_literal(c.text, XSD + "gYear"):
            keys.append("year:" + year)
    if number := read_number(c.text):
        keys.append("number:" + number)
    return keys


def list_forms(text: str) -> list[str]:
    """The keys under which a value is looked for in a text, the surest first."""
    plain = text.strip().strip('"').replace("_", " ")
    short = _BRACKET.sub("", plain)
    forms = [normalise_name(plain), normalise_name(short)]
    if date := parse_literal(plain, XSD + "date"):
        forms.append("date:" + date)
        if date.endswith("-01-01"):  # how many sources write a year
            forms.append("year:" + date[:4])
    elif year := parse_literal(plain, XSD + "gYear"):
        forms.append("year:" + year)
    if number := read_number(short):
        forms.append("number:" + number)
    forms.append(normalise_name(short.partition(",")[0]))  # "King of Prussia, Pennsylvania"
    return list(dict.fromkeys(form for form in forms if form))


def read_number(text: str) -> str:
    """The number that a text is, but for a unit, in plain form; empty when it is none."""
    match = _NUMBER.match(text)
    if match is None or sum(c.isdigit() for c in text) > sum(c.isdigit() for c in match[0]):
        return ""
    try:
        return f"{Decimal(match[1].replace(',', '')).normalize():f}"
    except InvalidOperation:
        return ""
