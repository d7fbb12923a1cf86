"""Numbers with units and dates, read from a value's text and compared on one scale."""

import re
import tomllib
from calendar import monthrange
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from pathlib import Path

from kpyramid.documents.values import NUMBER_WORDS, YEAR, Date, find_values

_UNITS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
SIZES: Mapping[str, tuple[str, float]] = {
    unit.replace("_", " "): (scale, size)
    for scale, sizes in _UNITS.items()
    for units, size in sizes.items()
    for unit in units.split()
}
"""The scale of a unit, and its size in metres, kilograms, square kilometres, seconds, percent."""
_NAMES = "|".join(sorted(map(re.escape, SIZES), key=len, reverse=True))
_UNIT = re.compile(rf"[ -]?({_NAMES})s?(?!\w)")
_WORD = re.compile(r"[ -]?([^\W\d_]+)")
_ISO_MONTH = re.compile(rf"{YEAR}-(?P<month>0[1-9]|1[0-2])")

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number as written with its unit, or a date as its first and last day.

    A bare year such as 1950 is both, because the text does not distinguish it from a number. An
    unknown word is a unit of its own: "13 weddings" are only compared with weddings.
    """

    number: float | None
    unit: str = ""
    days: Span | None = None

    @property
    def key(self) -> tuple[str, float]:
        """The scale and the position on it."""
        if self.days is not None:
            return "date", self.days[0]
        scale, size = SIZES.get(self.unit, (self.unit, 1.0))
        return scale, round((self.number or 0.0) * size, 9)

    def compare(self, other: "Measure") -> tuple[Span, Span] | None:
        """The ranges of both measures on their common scale; None where they have none.

        A number without a unit is assumed to have the unit of the other.
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
    for stated in find_values(text):
        value, unit = stated.value, _UNIT.match(text, stated.end)
        if not isinstance(value, Date):
            word = unit or _WORD.match(text, stated.end)
            yield Measure(float(value), word[1] if word else "")
        elif unit and not value.month:  # 1480 m
            yield Measure(float(value.year), unit[1])
        elif (days := _span_days(value)) is not None:
            yield Measure(None if value.month else float(value.year), "", days)


@lru_cache(maxsize=65_536)
def read_measure(text: str) -> Measure | None:
    """The only date or number of a text, with its unit; None where there is none or several.

    "2025-06" alone is a month, "2010-11" a season.
    """
    alone = _ISO_MONTH.fullmatch(text.strip())
    if alone and int(alone["month"]) != int(alone["year"]) % 100 + 1:
        return Measure(None, "", _span_days(Date(int(alone["year"]), int(alone["month"]))))
    measures = [*list_measures(text)]
    return measures[0] if len(measures) == 1 else None


_SIGN = re.compile(r"[$€£¥]? ?")
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SPELT = {word: n for n, word in enumerate(NUMBER_WORDS, 1)}
_SPELT |= {word: 10 * n for n, word in enumerate(_TENS, 2)}


@dataclass(frozen=True, slots=True)
class Quantity:
    """The quantity of a value: a range on a scale, for dates their first and last day.

    `kind`: the scale with the words that follow the unit, such as `per year`; `date` for dates.
    """

    kind: str
    extent: Span

    def agrees(self, other: "Quantity") -> bool:
        """Whether both can be true: the numbers are the same, or one date is within the other."""
        (first, last), (start, end) = self.extent, other.extent
        if self.kind == "date":
            return (start <= first and last <= end) or (first <= start and end <= last)
        return abs(first - start) <= 1e-9 * max(abs(first), abs(start))


@lru_cache(maxsize=65_536)
def read_quantity(text: str) -> Quantity | None:
    """The quantity that a whole text states, with its unit and the words that follow it.

    None for other words, several numbers, and estimates and bounds (`about 5`, `at least 5`).
    A bare year is a date.
    """
    words = text.strip(" .")
    sign = _SIGN.match(words)
    assert sign is not None  # it may be empty
    body = words[sign.end() :]
    first, _, rest = body.partition(" ")
    body = f"{_SPELT[first.lower()]} {rest}" if first.lower() in _SPELT and rest else body
    measure = read_measure(body)
    if measure is None:
        return None
    (stated,) = find_values(body)
    if stated.start:
        return None
    if measure.days is not None:
        is_whole = not sign[0] and stated.end == len(body)
        return Quantity("date", measure.days) if is_whole else None
    scale, place = measure.key
    unit = "" if scale == measure.unit else scale
    of = body[stated.end :].strip().casefold()
    if unit:
        of = of.removeprefix(measure.unit.casefold()).removeprefix("s").strip()
    return Quantity(" ".join(filter(None, (sign[0].strip(), unit, of))), (place, place))


def _span_days(value: Date) -> Span | None:
    month, last = value.month or 1, value.month or 12
    try:
        first = date(value.year, month, value.day or 1)
        end = date(value.year, last, value.day or monthrange(value.year, last)[1])
    except ValueError:
        return None
    return float(first.toordinal()), float(end.toordinal())
