"""Whether a literal's words are of its datatype (XML Schema Part 2, the lexical spaces)."""

import re
from collections.abc import Callable
from datetime import date

from kpyramid.ontology.names import RDF, RDFS, XSD

_ZONE = r"(?:Z|[+-][0-9]{2}:[0-9]{2})?"
_DATE = r"-?(?P<year>[0-9]{4,})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?"
_PATTERNS = {
    "integer": r"[-+]?[0-9]+",
    "nonNegativeInteger": r"\+?[0-9]+|-0+",
    "positiveInteger": r"\+?0*[1-9][0-9]*",
    "decimal": r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)",
    "double": r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?INF|NaN",
    "boolean": r"true|false|0|1",
    "date": _DATE + _ZONE,
    "dateTime": rf"{_DATE}T{_TIME}{_ZONE}",
    "time": _TIME + _ZONE,
    "gYear": r"-?[0-9]{4,}" + _ZONE,
    "gYearMonth": r"-?[0-9]{4,}-(?:0[1-9]|1[0-2])" + _ZONE,
    "anyURI": r"[^\s<>\"{}|\\^`]*",
    "string": r"[^\x00]*",
}
_BOUNDS = {"int": 2**31, "long": 2**63, "short": 2**15, "byte": 2**7}


def is_well_formed(text: str, datatype: str) -> bool:
    """Whether a text is a value of a datatype; of a datatype not known here every text is one."""
    judge = _JUDGES.get(datatype)
    return judge is None or judge(text)


def _match(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern)

    def judge(text: str) -> bool:
        found = compiled.fullmatch(text)
        if found is None:
            return False
        parts = found.groupdict()
        if "day" not in parts:
            return True
        try:  # the calendar repeats every 400 years
            year = int(parts["year"][-4:]) % 400 + 400
            return bool(date(year, int(parts["month"]), int(parts["day"])))
        except ValueError:
            return False

    return judge


def _bound(most: int) -> Callable[[str], bool]:
    is_integer = _match(_PATTERNS["integer"])
    return lambda text: len(text) < 30 and is_integer(text) and -most <= int(text) < most


_JUDGES: dict[str, Callable[[str], bool]] = {
    **{XSD + name: _match(pattern) for name, pattern in _PATTERNS.items()},
    **{XSD + name: _bound(most) for name, most in _BOUNDS.items()},
    XSD + "float": _match(_PATTERNS["double"]),
    RDFS + "Literal": _match(_PATTERNS["string"]),
    RDF + "langString": _match(_PATTERNS["string"]),
}
