"""Dates and numbers of a text, with their spans: the one parser of both.

Patterns for other texts (literals of a datatype, brackets after a name) use the same `MONTH`,
`DAY`, `YEAR` and `NUMBER`.
"""

import datetime
import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

MONTHS = tuple(
    "January February March April May June July August September October November December".split()
)
MONTH = rf"(?:{'|'.join(MONTHS)}|Sept|{'|'.join(name[:3] for name in MONTHS if len(name) > 3)})"
"""The pattern of a month's name or its abbreviation without a stop."""
WEEKDAYS = tuple("monday tuesday wednesday thursday friday saturday sunday".split())
WEEKDAY = rf"(?:{'|'.join(map(str.title, WEEKDAYS))})"
DAY = r"[0-9]{1,2}(?:st|nd|rd|th)?"
YEAR = r"(?P<year>1[0-9]{3}|20[0-9]{2}|2100)"
_NAMED_MONTH = rf"(?P<month>{MONTH})\b\.?"
_NAMED_DAY = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?"
DAY_MONTH_YEAR = rf"{_NAMED_DAY}(?: of)?[ -]{_NAMED_MONTH},?[ -]{YEAR}"
MONTH_DAY_YEAR = rf"{_NAMED_MONTH} {_NAMED_DAY},? {YEAR}"
MONTH_YEAR = rf"{_NAMED_MONTH}(?: of)?,? {YEAR}"
NUMBER = r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
CURRENCIES = "AUD|CAD|CHF|CNY|DKK|EUR|GBP|INR|JPY|NOK|PLN|SEK|USD"
"""The pattern of a currency's code."""
NUMBER_WORDS = tuple("one two three four five six seven eight nine ten eleven twelve".split())

_DATES = tuple(
    re.compile(rf"(?<![\w-]){pattern}(?![\w-])", re.IGNORECASE)
    for pattern in (
        r"(?P<year>[0-9]{4})-(?P<month>[01]?[0-9])-(?P<day>[0-3]?[0-9])",
        r"(?P<day>[0-3]?[0-9])(?P<mark>[-/.])(?P<month>[0-3]?[0-9])(?P=mark)(?P<year>[0-9]{4})",
        DAY_MONTH_YEAR,
        MONTH_DAY_YEAR,
        MONTH_YEAR,
    )
)
_YEARS = re.compile(rf"(?<![\w.,-]){YEAR}(?![\w-]|[.,][0-9])(?!\s*%)")
_NUMBERS = re.compile(
    rf"(?<![\w.,-]){NUMBER}(?:\s(?P<scale>{'|'.join(SCALES)})\b)?(?![0-9]|[.,][0-9])", re.IGNORECASE
)
_DIGIT = re.compile(r"[0-9]")
_AMOUNT = re.compile(
    rf"(?P<sign>[-\u2212]?)(?:[A-Z]{{0,3}}[$€£¥]|(?:{CURRENCIES})(?=[\s\d]))\s?"
    rf"(?!\d{{1,3}}\.\d{{3}}\b)(?P<number>{NUMBER})"  # "€1.200" is 1200 in German
    r"(?:\s?(?P<scale>(?i:k|mn?|mio|mln|bn?|tn?))\b)?"
    rf"(?=\s*(?:$|\(|/|(?i:per|each|a|{'|'.join(SCALES)})\b))"
)
_SHORT_SCALES = {"k": "thousand", "m": "million", "b": "billion", "t": "trillion"}
_UNIT = re.compile(r"\s?(?:%|°\s?[CFK]?|[^\W\d]+[²³23]?(?:/[^\W\d]+[²³23]?)?)?")
"""Units after a number: "%", "°C", "km2", "m³/s"."""


@dataclass(frozen=True, slots=True)
class Date:
    """A day, or a month or year where the text states nothing finer."""

    year: int
    month: int = 0
    day: int = 0

    def __str__(self) -> str:
        parts = (str(self.day) if self.day else "", MONTHS[self.month - 1] if self.month else "")
        return " ".join(part for part in (*parts, str(self.year)) if part)

    @property
    def days(self) -> float:
        """The ordinal number of its first day; ValueError for a day that does not exist."""
        return float(datetime.date(self.year, self.month or 1, self.day or 1).toordinal())

    def agree(self, stated: "Date") -> float:
        """How far a stated date agrees with this one: 1 if they are the same, 0 if they differ.

        A finer date agrees with a coarser one. The first of January often stands for a year
        whose day is unknown.
        """
        if self == stated:
            return 1.0
        if self.year != stated.year:
            return 0.0
        if (self.month, self.day) == (1, 1) and not stated.month:
            return 0.85
        if self.month not in (0, stated.month) or self.day not in (0, stated.day):
            return 0.0
        return 0.9


@dataclass(frozen=True, slots=True)
class Value:
    """A date or number and the characters that state it."""

    start: int
    end: int
    value: Date | Decimal


@lru_cache(maxsize=8192)
def find_values(text: str) -> tuple[Value, ...]:
    """The dates and numbers of a text in its order; a number within a date is not one."""
    if not _DIGIT.search(text):
        return ()
    values: list[Value] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            date = _read_date(match)
            if date and not _overlaps(match, values):
                values.append(Value(match.start(), match.end(), date))
    for match in _YEARS.finditer(text):
        if not _overlaps(match, values):
            values.append(Value(match.start(), match.end(), Date(int(match["year"]))))
    for match in _NUMBERS.finditer(text):
        if not _overlaps(match, values):
            values.append(Value(match.start(), match.end(), _read_number(match)))
    return tuple(sorted(values, key=lambda value: value.start))


def read_value(text: str) -> Date | Decimal | None:
    """The date or number that a text consists of, apart from a unit; None for other texts."""
    stripped = text.strip().strip("\"'")
    values = find_values(stripped)
    if len(values) != 1 or values[0].start != 0:
        return None
    rest = stripped[values[0].end :]
    return values[0].value if _UNIT.fullmatch(rest) else None


def spell_amount(text: str) -> str:
    """An amount of money without its currency, "£1.2m" as "1.2 million"; else the text itself."""
    match = _AMOUNT.match(text)
    if match is None:
        return text
    scale = _SHORT_SCALES[match["scale"][0].lower()] if match["scale"] else ""
    rest = text[match.end() :].lstrip()
    return " ".join(filter(None, (f"{match['sign']}{match['number']}", scale, rest)))


def find_month(name: str) -> int:
    """The number of a month: of its name, its abbreviation, or its digits."""
    if name.isdigit():
        return int(name)
    start = name[:3].title()
    return next(number for number, month in enumerate(MONTHS, 1) if month.startswith(start))


def agree(wanted: Date | Decimal, stated: Date | Decimal) -> float:
    """How far a stated value agrees with the wanted one, 0 to 1."""
    if isinstance(wanted, Date) and isinstance(stated, Date):
        return wanted.agree(stated)
    if isinstance(wanted, Decimal) and isinstance(stated, Decimal):
        return 1.0 if wanted == stated else 0.0
    year, number = (wanted, stated) if isinstance(wanted, Date) else (stated, wanted)
    # "1,815" members and the year 1815 are written alike, but rarely mean the same.
    return 0.3 if isinstance(year, Date) and not year.month and year.year == number else 0.0


def _read_date(match: re.Match[str]) -> Date | None:
    parts = match.groupdict()
    month = parts["month"]
    number = find_month(month)
    day = int(parts.get("day") or 0)
    if number > 12 >= day > 0:  # the month first: 11/30/1977
        number, day = day, number
    return Date(int(parts["year"]), number, day) if 1 <= number <= 12 and day <= 31 else None


def _read_number(match: re.Match[str]) -> Decimal:
    digits, scale = match.group(), match["scale"]
    if scale:
        digits = digits[: -len(scale)].strip()
    return Decimal(digits.replace(",", "")) * SCALES.get((scale or "").casefold(), 1)


def _overlaps(match: re.Match[str], values: list[Value]) -> bool:
    return any(value.start < match.end() and match.start() < value.end for value in values)
