"""Numbers and dates as questions and options write them: read, compared, and varied."""

import datetime
import re
from dataclasses import dataclass
from random import Random
from typing import Literal

from kpyramid.extraction.normal import MONTHS

Form = Literal["", "number", "date", "text"]

_ISO = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?:T[\d:.Z+-]*)?", re.ASCII)
_SAID = re.compile(rf"(?:(\d{{1,2}}) )?({'|'.join(MONTHS)}) (\d{{4}})", re.ASCII)
_NO_MONTH = re.compile(r"00? (\d{4})", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?", re.ASCII)
_FIRST_YEAR, _LAST_YEAR = 1000, 2100
"""Four digits outside of these count something rather than name a year."""


@dataclass(frozen=True, slots=True)
class Date:
    """A year, with month and day where they are known (else 0)."""

    year: int
    month: int = 0
    day: int = 0

    def __str__(self) -> str:
        parts = (str(self.day) if self.day else "", MONTHS[self.month - 1] if self.month else "")
        return " ".join(part for part in (*parts, str(self.year)) if part)

    @property
    def days(self) -> float:
        """Where it lies on the calendar."""
        return float(datetime.date(self.year, self.month or 1, self.day or 1).toordinal())


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


def fit_date(text: str, words: tuple[str, ...]) -> str:
    """A date as precise as words say it: "1 January 1986" is "1986" where no month is named."""
    date = read_date(text)
    if date is None or not date.month or is_said(text, "date", words):
        return text
    return str(date.year)
