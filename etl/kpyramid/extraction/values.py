"""Dates and numbers in a text, with their places; two spellings of one value are equal."""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_MONTH = (
    r"(?P<month>january|february|march|april|may|june|july|august|september|october|november"
    r"|december|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)\b\.?"
)
_YEAR = r"(?P<year>[12][0-9]{3})"
_DAY = r"(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)?"
_DATES = tuple(
    re.compile(rf"(?<![\w-]){pattern}(?![\w-])", re.IGNORECASE)
    for pattern in (
        r"(?P<year>[0-9]{4})-(?P<month>[01]?[0-9])-(?P<day>[0-3]?[0-9])",
        r"(?P<day>[0-3]?[0-9])(?P<mark>[-/.])(?P<month>[0-3]?[0-9])(?P=mark)(?P<year>[0-9]{4})",
        rf"{_DAY}(?: of)?[ -]{_MONTH},?[ -]{_YEAR}",
        rf"{_MONTH} {_DAY},? {_YEAR}",
        rf"{_MONTH}(?: of)?,? {_YEAR}",
    )
)
_YEARS = re.compile(rf"(?<![\w.,-]){_YEAR}(?![\w-]|[.,][0-9])(?!\s*%)")
_NUMBERS = re.compile(
    r"(?<![\w.,-])[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?"
    r"(?:\s(?P<scale>thousand|million|billion|trillion)\b)?(?![0-9]|[.,][0-9])",
    re.IGNORECASE,
)
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_DIGIT = re.compile(r"[0-9]")
_UNIT = re.compile(r"\s?(?:%|[^\W\d]+[²³]?)?")


@dataclass(frozen=True, slots=True)
class Date:
    """A day, or a month or year when nothing finer is said."""

    year: int
    month: int = 0
    day: int = 0

    def agree(self, stated: "Date") -> float:
        """How far a stated date says this one: 1 when it does, 0 when it says another.

        A finer date says a coarser one. The first of January often stands for a year of which no
        day is known.
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
    found: list[Value] = []
    for pattern in _DATES:
        for match in pattern.finditer(text):
            date = _read_date(match)
            if date and not _overlaps(match, found):
                found.append(Value(match.start(), match.end(), date))
    for match in _YEARS.finditer(text):
        if not _overlaps(match, found):
            found.append(Value(match.start(), match.end(), Date(int(match["year"]))))
    for match in _NUMBERS.finditer(text):
        if not _overlaps(match, found):
            found.append(Value(match.start(), match.end(), _read_number(match)))
    return tuple(sorted(found, key=lambda value: value.start))


def read_value(text: str) -> Date | Decimal | None:
    """The one date or number that a text consists of, with a unit at most."""
    stripped = text.strip().strip("\"'")
    found = find_values(stripped)
    if len(found) != 1 or found[0].start != 0:
        return None
    rest = stripped[found[0].end :]
    return found[0].value if _UNIT.fullmatch(rest) else None


def agree(wanted: Date | Decimal, stated: Date | Decimal) -> float:
    """How far a stated value says the wanted one, 0 to 1."""
    if isinstance(wanted, Date) and isinstance(stated, Date):
        return wanted.agree(stated)
    if isinstance(wanted, Decimal) and isinstance(stated, Decimal):
        return 1.0 if wanted == stated else 0.0
    year, other = (wanted, stated) if isinstance(wanted, Date) else (stated, wanted)
    # "1,815" members and the year 1815 are written alike, and rarely mean each other.
    return 0.3 if isinstance(year, Date) and not year.month and year.year == other else 0.0


def _read_date(match: re.Match[str]) -> Date | None:
    parts = match.groupdict()
    month = parts["month"]
    number = int(month) if month.isdigit() else _find_month(month)
    day = int(parts.get("day") or 0)
    if number > 12 >= day > 0:  # the month first: 11/30/1977
        number, day = day, number
    return Date(int(parts["year"]), number, day) if 1 <= number <= 12 and day <= 31 else None


def _find_month(name: str) -> int:
    start = name[:3].casefold()
    return next(i for i, month in enumerate(_MONTHS, 1) if month.startswith(start))


def _read_number(match: re.Match[str]) -> Decimal:
    digits, scale = match.group(), match["scale"]
    if scale:
        digits = digits[: -len(scale)].strip()
    return Decimal(digits.replace(",", "")) * _SCALES.get((scale or "").casefold(), 1)


def _overlaps(match: re.Match[str], found: list[Value]) -> bool:
    return any(value.start < match.end() and match.start() < value.end for value in found)
