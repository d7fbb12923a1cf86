"""From the words of a text to a checked literal: what does not fit its datatype is no value."""

import re
import unicodedata
from collections.abc import Callable, Iterable
from datetime import date
from decimal import Decimal
from functools import partial
from math import inf

from kpyramid.documents.values import (
    DAY_MONTH_YEAR,
    MONTH,
    MONTH_DAY_YEAR,
    MONTH_YEAR,
    NUMBER,
    SCALES,
    YEAR,
    find_month,
    spell_amount,
)
from kpyramid.ontology.names import RDFS, XSD

_LONGEST_VALUE = 120
"""Characters of a number or date with the words around it; longer is a sentence, not a value."""

_FLAGS = re.IGNORECASE | re.ASCII
_DATES = (
    re.compile(r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})(?:t[0-9:.]+[z0-9:+-]*)?"),
    re.compile(DAY_MONTH_YEAR, _FLAGS),
    re.compile(MONTH_DAY_YEAR, _FLAGS),
)
_YEAR_MONTHS = (
    re.compile(r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})"),
    re.compile(MONTH_YEAR, _FLAGS),
)
# Fewer than four digits are a year only where the era says so: "in 300" may count anything.
_YEARS = (
    re.compile(YEAR),
    re.compile(r"(?:ad|ce) (?P<year>[0-9]{1,4})"),
    re.compile(r"(?P<year>[0-9]{1,4}) (?:ad|ce)"),
)
# "by", "before", "around" are left out: they do not state the date that follows.
_DATE_LEAD = re.compile(
    r"(?:(?:on|in|from|since|during|the|year|of|early|mid|late"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day,?)[ -])+"
)

_UNIT = (
    r"(?:%|km|k?m[23²³]|m|cm|mm|mi|ft|in|ha|kg|g|lb|kilomet(?:er|re)s?|met(?:er|re)s?|miles?"
    r"|feet|foot|inch(?:es)?|acres?|hectares?)"
)
_NUMBER = re.compile(rf"(?P<number>{NUMBER})(?:-?{_UNIT})?")
_MOST_DIGITS = 24
"""Decimal multiplication is exact up to 28 digits; no stated quantity is longer than this."""
_INTEGER_BOUNDS: dict[str, tuple[float, float]] = {
    "integer": (-inf, inf),
    "nonNegativeInteger": (0, inf),
    "positiveInteger": (1, inf),
    "int": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
}
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_DEEPEST = 2
"""Brackets of one kind within each other; the gate's pattern of a string counts no further."""


def parse_literal(text: str, datatype: str) -> str | None:
    """The canonical lexical form of a text for a datatype; None if it is no such value.

    Units are not converted ("3,189 feet" is 3189); a text with two numbers, a range, a decade
    or a vague date has no value. `datatype` is an IRI of `DATATYPES`, else None.
    """
    parse = _PARSERS.get(datatype)
    return parse(" ".join(text.split())) if parse else None


def _parse_string(text: str) -> str | None:
    # Values such as ")", "A", "Ph" or "Taiwan)" are what careless splitting leaves behind.
    if not any(c.isalnum() for c in text) or not _is_balanced(text):
        return None
    # Control characters and lone surrogates; joiners and soft hyphens are honest text.
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in text):
        return None
    is_code = len(text) == 2 and text.isalnum() and not any(c.islower() for c in text)
    return text if len(text) >= 3 or is_code else None


def _is_balanced(text: str) -> bool:
    opened: list[str] = []
    for c in text:
        if c in _BRACKETS.values():
            opened.append(c)
            if opened.count(c) > _DEEPEST:
                return False
        elif c in _BRACKETS and (not opened or opened.pop() != _BRACKETS[c]):
            return False
    return not opened


_IN_MONTH = re.compile(rf"\b{MONTH}\b")


def _parse_number(text: str) -> Decimal | None:
    if len(text) > _LONGEST_VALUE or _IN_MONTH.search(text):
        return None  # "9 April" is no 9
    # A bracket repeats the number in another unit: "3,189 feet (972 m)".
    plain = re.sub(r"\([^)]*\)", " ", spell_amount(text).lower().replace("\N{MINUS SIGN}", "-"))
    words = [word.strip(";:.,").lstrip("$€£¥~") for word in plain.split()]
    numbers = [
        (index, word)
        for index, word in enumerate(words)
        if re.search("[0-9]", word) and not re.fullmatch(_UNIT, word)
    ]
    if len(numbers) != 1:
        return None
    index, word = numbers[0]
    match = _NUMBER.fullmatch(word)
    if match is None or len(word) > _MOST_DIGITS:
        return None
    following = words[index + 1] if index + 1 < len(words) else ""
    return Decimal(match["number"].replace(",", "")) * SCALES.get(following, 1)


def _parse_integer(low: float, high: float, text: str) -> str | None:
    number = _parse_number(text)
    if number is None or number != number.to_integral_value():
        return None
    return str(int(number)) if low <= number <= high else None


def _parse_decimal(text: str) -> str | None:
    number = _parse_number(text)
    if number is None:
        return None
    plain = f"{number:f}"
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return "0" if number == 0 else plain


def _parse_double(text: str) -> str | None:
    number = _parse_number(text)
    if number is None:
        return None
    mantissa, _, exponent = f"{float(number):.16e}".partition("e")
    mantissa = mantissa.rstrip("0")
    return f"{mantissa}{'0' if mantissa.endswith('.') else ''}E{int(exponent)}"


def _parse_date(length: int, patterns: Iterable[re.Pattern[str]], text: str) -> str | None:
    """The first characters of the date that a text states; an unstated month or day is 1."""
    if len(text) > _LONGEST_VALUE:
        return None
    plain = text.lower().rstrip(".,; ")
    plain = plain[lead.end() :] if (lead := _DATE_LEAD.match(plain)) else plain
    for pattern in patterns:
        if match := pattern.fullmatch(plain):
            parts = {"month": "1", "day": "1", **match.groupdict()}
            try:
                day = date(int(parts["year"]), find_month(parts["month"]), int(parts["day"]))
            except ValueError:  # 31 February, or the year 0
                return None
            return day.isoformat()[:length]
    return None


def _parse_boolean(text: str) -> str | None:
    return {"true": "true", "yes": "true", "false": "false", "no": "false"}.get(text.lower())


def _parse_uri(text: str) -> str | None:
    return text if re.fullmatch(r"https?://[^\s<>\"{}|\\^`]+", text) else None


_PARSERS: dict[str, Callable[[str], str | None]] = {
    XSD + "string": _parse_string,
    RDFS + "Literal": _parse_string,
    XSD + "decimal": _parse_decimal,
    XSD + "double": _parse_double,
    XSD + "float": _parse_double,
    XSD + "date": partial(_parse_date, 10, _DATES),
    XSD + "gYearMonth": partial(_parse_date, 7, (*_DATES, *_YEAR_MONTHS)),
    XSD + "gYear": partial(_parse_date, 4, (*_DATES, *_YEAR_MONTHS, *_YEARS)),
    XSD + "boolean": _parse_boolean,
    XSD + "anyURI": _parse_uri,
    **{XSD + name: partial(_parse_integer, *bounds) for name, bounds in _INTEGER_BOUNDS.items()},
}

DATATYPES = frozenset(_PARSERS)
"""The datatypes whose values can be checked; a schema with another range is refused."""
