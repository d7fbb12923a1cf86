"""Types of names by their form: what is a date, a number or a quantity in any text."""

import re

from kpyramid.extraction.normal import MONTH

_NUMBER = r"\d+(?:[.,]\d+)*"
_FORMS = (
    ("DATE", r"(?:(?:early|late|mid)[- ])?(?:c\. ?)?(?:1[0-9]|20)\d\d(?:s|[-–](?:\d\d){1,2})?"),
    (
        "DATE",
        rf"(?:\d{{1,2}}(?:st|nd|rd|th)? )?{MONTH.lower()}\.?(?: \d{{1,2}}(?:st|nd|rd|th)?)?"
        r"(?:,? \d{4})?",
    ),
    ("DATE", r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}(?:st|nd|rd|th) century"),
    ("PERCENT", rf"{_NUMBER} ?(?:%|percent|per cent)"),
    ("MONEY", rf"(?:us)?[$€£¥] ?{_NUMBER}(?: ?(?:thousand|million|billion|trillion|[mbk]n?))?"),
    ("CARDINAL", rf"{_NUMBER}(?: (?:hundred|thousand|million|billion|trillion))?"),
    (
        "QUANTITY",
        rf"{_NUMBER} ?(?:mm|cm|m|km|metres?|meters?|kilomet(?:re|er)s?|miles?|feet|ft|"
        r"inch(?:es)?|kg|g|mg|tons?|tonnes?|pounds?|acres?|hectares?|km²|sq(?:uare)? \w+)",
    ),
)
_PATTERNS = tuple((label, re.compile(form, re.IGNORECASE)) for label, form in _FORMS)

LITERALS = frozenset("DATE TIME CARDINAL ORDINAL QUANTITY MONEY PERCENT".split())
"""Entity types whose mentions are values; as tails they become literals."""


def guess_literal(name: str) -> str | None:
    """The type of a name that is a date, a number or a quantity; None for all others.

    "May" alone is no date: it is a name as often.
    """
    text = name.strip()
    if text.casefold() in {"may", "march", "august", "mar", "dec", "jan"}:
        return None
    return next((label for label, form in _PATTERNS if form.fullmatch(text)), None)
