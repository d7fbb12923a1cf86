"""What literals mean: which are equal by value, and which say more of the same."""

import re
from dataclasses import dataclass

from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import XSD

_LEAD = re.compile(
    r"^(?:(?:on|in|the|year|of|(?:mon|tues|wednes|thurs|fri|satur|sun)day,?)\s+)+", re.IGNORECASE
)
_VAGUE = re.compile(r"\b(?:from|since|during|early|mid|late)\b|\bmid-", re.IGNORECASE)
"""Words that `parse_literal` passes over, and that say when, not which date."""
_GROUPED = re.compile(r"(?<![\d,.])\d{1,3}(?:,\d{3})+(?![\d,])")
_DECIMAL = re.compile(r"(?P<before>[-+~$€£¥]?\d+)\.(?P<after>\d*?)0*(?P<unit>(?:[^\d.].*)?)")
"""A number that stands first: `5.0 km` is 5 km, `Python 3.10` is not `Python 3.1`."""
_DATES = ("date", "gYearMonth", "gYear")


@dataclass(frozen=True, slots=True)
class Value:
    """A literal's value: values can be of one thing only where `stem` is equal.

    `rest`: month and day of a date whose stem is its year, as far as they are stated.
    """

    stem: str
    rest: tuple[str, ...] = ()

    def says(self, other: "Value") -> bool:
        """Whether this value is the other or a more precise one: `5 May 1950` says `1950`."""
        return self.stem == other.stem and self.rest[: len(other.rest)] == other.rest


def read_value(literal: str) -> Value:
    """The value of a literal: dates by year, month and day; numbers without marks of thousands.

    Units are not converted: "5 km" and "5,000 m" differ.
    """
    text = _GROUPED.sub(lambda match: match[0].replace(",", ""), " ".join(literal.split()))
    date = _LEAD.sub("", text)
    if not _VAGUE.search(date):
        for name in _DATES:
            found = parse_literal(date, XSD + name)
            if found is not None:
                year, *rest = found.split("-")
                return Value(f"year {year}", tuple(rest))
    number = _DECIMAL.fullmatch(text)
    if number:
        after = f".{number['after']}" if number["after"] else ""
        text = f"{number['before']}{after}{number['unit']}"
    return Value(f"text {text.casefold()}")
