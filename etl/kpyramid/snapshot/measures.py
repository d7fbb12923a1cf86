"""Numbers with units and dates, read from a value's text and compared on one scale."""

import re
import tomllib
from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path

from kpyramid.documents.values import Date, find_values

_UNITS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SIZES: Mapping[str, tuple[str, float]] = {
    unit.replace("_", " "): (scale, size)
    for scale, sizes in _UNITS.items()
    for units, size in sizes.items()
    for unit in units.split()
}
"""What a unit measures, and its size in metres, kilograms, square kilometres, seconds, percent."""
_NAMES = "|".join(sorted(map(re.escape, SIZES), key=len, reverse=True))
_UNIT = re.compile(rf"[ -]?({_NAMES})s?(?!\w)")
_WORD = re.compile(r"[ -]?([^\W\d_]+)")

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number as it is written and its unit, or a date as its first and last day.

    A bare year such as 1950 is both, as nobody can tell it from the number. A word that is no unit
    known here is one of its own: "13 weddings" are compared with weddings alone.
    """

    number: float | None
    unit: str = ""
    days: Span | None = None

    @property
    def key(self) -> tuple[str, float]:
        """The scale and the place on it."""
        if self.days is not None:
            return "date", self.days[0]
        scale, size = SIZES.get(self.unit, (self.unit, 1.0))
        return scale, round((self.number or 0.0) * size, 9)

    def compare(self, other: "Measure") -> tuple[Span, Span] | None:
        """Where the two lie on one scale, from and to; None where they have none in common.

        A number without a unit is taken to have that of the other.
        """
        if self.days is not None and other.days is not None:
            return self.days, other.days
        if self.number is None or other.number is None:
            return None
        place, against = self.number, other.number
        if self.unit and other.unit:
            (scale, place), (beside, against) = self.key, other.key
            if scale != beside:
                return None
        return (place, place), (against, against)


def list_measures(text: str) -> Iterator[Measure]:
    """The dates and numbers of a text, with their units, in its order."""
    for found in find_values(text):
        value, unit = found.value, _UNIT.match(text, found.end)
        if not isinstance(value, Date):
            word = unit or _WORD.match(text, found.end)
            yield Measure(float(value), word[1] if word else "")
        elif unit and not value.month:  # 1480 m
            yield Measure(float(value.year), unit[1])
        elif (days := _span_days(value)) is not None:
            yield Measure(None if value.month else float(value.year), "", days)


@lru_cache(maxsize=65_536)
def read_measure(text: str) -> Measure | None:
    """The one date or number of a text, with its unit; None where there are none or several."""
    found = [*list_measures(text)]
    return found[0] if len(found) == 1 else None


def _span_days(value: Date) -> Span | None:
    month, last = value.month or 1, value.month or 12
    try:
        first = date(value.year, month, value.day or 1)
        end = date(value.year, last, value.day or monthrange(value.year, last)[1])
    except ValueError:
        return None
    return float(first.toordinal()), float(end.toordinal())
