"""When a fact holds: the first and last date of its qualifiers, in ISO 8601.

Dates are as fine as the text has them: year, month or day.
"""

import datetime
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache

from kpyramid.documents.qualifiers import Qualifiers, list_values
from kpyramid.documents.values import MONTH, NUMBER_WORDS, WEEKDAYS, Date, find_month, find_values
from kpyramid.documents.words import HAVE, MODALS, lemmatise

Validity = tuple[str | None, str | None]
"""First and last date; None for an unknown end. They are the same for an event."""

Time = Validity | str
"""A time as read, its words where they are no dates."""

ENDING = ("to", "until", "till", "through")
"""Prepositions before the end of a time or range: "from 1995 to 1998"."""
_ROLES = ("from", "since", *ENDING, "between", "in", "on", "during")
"""Prepositions of dates as qualifiers."""
_LEAD = (
    rf"(?:(?:the|year|month|of|in|on|early|late|mid|beginning|start|end|spring|summer|autumn|fall"
    rf"|winter|{'|'.join(WEEKDAYS)}),?[ -])*@"
)
"""Words around a date that do not change it."""
_TO = f"(?:{'|'.join(ENDING)})"
_BETWEEN = re.compile(rf"(?:(?:from )?{_LEAD} {_TO} {_LEAD}|between {_LEAD} and {_LEAD})")
_SINCE = re.compile(rf"(?:ever )?(?:since|from) {_LEAD}(?: on| onwards?)?|{_LEAD} onwards?")
_UNTIL = re.compile(rf"(?:up )?{_TO} {_LEAD}")
_THEN = re.compile(rf"(?:(?:as|at|during|throughout) )?{_LEAD}")
_ASIDE = HAVE | MODALS | frozenset("also first later once since then".split())
"""Words before a verb that leave it what it is."""
_FISCAL = re.compile(r"\b(?:fiscal|financial|tax|FY)\b", re.IGNORECASE)
_YEARS = re.compile(r"\b([12]\d)(\d\d)\s*[-\u2013\u2014]\s*([12]\d)?(\d\d)\b(?!-)")
_SLASHED = re.compile(r"\b(?:0?[1-9]|1[0-2])/(?:0?[1-9]|1[0-2])/([12]\d{3})\b")
"""A day and a month in ambiguous order, of which only the year is used."""
_DASH = re.compile(r"\s*[\u2013\u2014]\s*")
_BEGINNING = re.compile(
    r"(?:become|join(?! (?:force|date))|(?:begin|start) (?:to|as|work|serve|play|teach|live|study)"
    r"|enlist|enroll?|marry|wed|assume"
    r"|take (?:over|up|office|charge)"
    r"|(?:move|relocate|transfer|emigrate|immigrate|migrate) (?:in)?to|settle (?:down )?in"
    r"|come in?to (?:force|effect|office|power)"
    r"|be (?:be )?(?:appoint|elect|re-elect|hire|recruit|promote (?:to|as)|instal"
    r"|crown(?! champion)|ordain|marry|wed|swear in|name (?:\w+ ){0,2}"
    r"(?:head|chief|director|president|chair\w*|manager|captain|minister|editor|ceo)))\b"
)
"""Lemmas of a wording by which a state begins: "became head of", "was appointed".

Not of a single deed or honour: "started | 30 games", "was named | player of the year".
"""


def date_fact(qualifiers: Qualifiers, wording: str) -> Validity:
    """The validity of a fact with these qualifiers; neither end where its times disagree.

    A state holds from the time at which it began: "joined" in 2009. `wording`: as stated, with its
    negation.
    """
    times = (time for time in list_times(qualifiers) if not isinstance(time, str))
    if _begins(wording):
        times = ((first, None if first == last else last) for first, last in times)
    return _unite(times)


@lru_cache(maxsize=100_000)
def _begins(wording: str) -> bool:
    """Whether a wording is of the beginning of a state."""
    words = (word for word in wording.casefold().split() if word not in _ASIDE)
    lemmas = " ".join(lemmatise(word) for word in words if not word.endswith("ly"))
    return _BEGINNING.match(lemmas) is not None


def list_times(qualifiers: Qualifiers) -> list[Time]:
    """Each time among the qualifiers of a fact."""
    pairs = [*qualifiers]
    stated = dict(pairs)
    roles = [role for role in _ROLES if role in stated]
    worded = [(f"{role} {value}", False) for role in roles for value in list_values(pairs, role)]
    worded += [(value, True) for value in list_values(pairs, "time")]
    read = ((read_time(words), words, is_time) for words, is_time in worded)
    return [time or words.casefold() for time, words, is_time in read if time or is_time]


def read_time(words: str) -> Validity | None:
    """The ends of "from 1990 to 1998", "since May 2001", "until 2003", "1998"; None for others.

    A fiscal year is no calendar year, and "about 1990" or "the 1990s" is no definite year.
    """
    if _FISCAL.search(words):
        return None
    words = _DASH.sub(" to ", _YEARS.sub(_write_years, _SLASHED.sub(r"\1", words)))
    dates: list[str] = []
    position, frame = 0, ""
    for stated in find_values(words):
        if not isinstance(stated.value, Date):
            return None
        dates.append(write_date(stated.value))
        frame += words[position : stated.start] + "@"
        position = stated.end
    frame = (frame + words[position:]).casefold().strip(" ,.")
    if len(dates) == 2 and _BETWEEN.fullmatch(frame):
        return (dates[0], dates[1]) if not _precedes(dates[1], dates[0]) else None
    if len(dates) != 1:
        return None
    if _SINCE.fullmatch(frame):
        return dates[0], None
    if _UNTIL.fullmatch(frame):
        return None, dates[0]
    return (dates[0], dates[0]) if _THEN.fullmatch(frame) else None


def _write_years(match: re.Match[str]) -> str:
    """Replaces "1990-98" by "1990 to 1998"; "2003-04" may be a month and is unchanged."""
    century, first, later_century, last = match.groups()
    later = later_century or (last > first and (last > "12" or "-" not in match[0]))
    return f"{century}{first} to {later_century or century}{last}" if later else match[0]


def write_date(date: Date) -> str:
    """A date in ISO 8601, with the parts that are known."""
    parts = [f"{date.year:04}", *(f"{part:02}" for part in (date.month, date.day) if part)]
    return "-".join(parts)


def _precedes(first: str, second: str) -> bool:
    """Whether a date ends before another begins."""
    size = min(len(first), len(second))
    return first[:size] < second[:size]


def _unite(times: Iterable[Validity]) -> Validity:
    """The ends on which all times of a fact agree; a date is ignored beside a period."""
    periods = [*times]
    bounds = [time for time in periods if time[0] != time[1]] or periods
    first, last = (_agree({end for time in bounds if (end := time[index])}) for index in (0, 1))
    return (None, None) if first and last and _precedes(last, first) else (first, last)


def _agree(dates: set[str]) -> str | None:
    """The finest of dates that agree; None where they do not."""
    finest = max(dates, key=lambda date: (len(date), date), default=None)
    return finest if finest and all(map(finest.startswith, dates)) else None


def differ_in_time(first: Iterable[Time], second: Iterable[Time]) -> bool:
    """Whether both facts have times, and none of one fact overlaps a time of the other."""
    times, against = [*first], [*second]
    return bool(times and against) and all(_are_apart(a, b) for a in times for b in against)


def _are_apart(left: Time, right: Time) -> bool:
    """Whether two times do not overlap.

    A period that begins in the year, month or day in which another ends does not overlap it.
    """
    if isinstance(left, str) or isinstance(right, str):
        return left != right
    periods = left[0] != left[1] and right[0] != right[1]
    return any(
        not _precedes(first, last) if periods else _precedes(last, first)
        for last, first in ((left[1], right[0]), (right[1], left[0]))
        if last is not None and first is not None
    )


def covers(validity: Validity, date: str) -> bool:
    """Whether a date is within the known ends of a fact's validity."""
    first, last = validity
    return not ((first and _precedes(date, first)) or (last and _precedes(last, date)))


# Times relative to the date of their text: "last year", "in March".

_DATED = frozenset(
    "date datetime timestamp at on of day time published publication publish pub posted issued "
    "issue filed filing created creation written released release meeting sent".split()
)
"""Words in the names of fields with a document's date: `date`, `published_at`."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|[\W_]+")
_COUNTS = ("a", *NUMBER_WORDS)
_POINTED = re.compile(
    r"(?:(?:earlier|later|in|on|during|the) )*"
    r"(?P<lead>(?:(?:ever|since|from|up|to|until|till|through|by|before|after|early|late|mid"
    r"|beginning|start|end|spring|summer|autumn|fall|winter|of|the)[ -])*)(?:"
    r"(?P<day>today|tonight|yesterday|tomorrow|this (?:morning|afternoon|evening))"
    r"|(?P<side>last|this|next|previous|current) (?P<unit>year|month|week)"
    rf"|(?:(?P<which>next|last|this) )?(?:(?P<month>{MONTH})|(?P<weekday>{'|'.join(WEEKDAYS)}))"
    rf"|(?P<count>\d{{1,2}}|{'|'.join(_COUNTS)}) (?P<past>year|month|week|day)s? ago"
    r"|(?P<vague>(?:last|this|next|past|previous|current|coming)(?: [\w-]+)?"
    r" (?:(?:year|month|week|day|decade|quarter|season|weekend|night)s?|century|spring|summer"
    r"|autumn|fall|winter)|[\w -]+ ago))",
    re.IGNORECASE,
)
_AHEAD = re.compile(r"(?:by|before|until|till|through|up|to)\b", re.IGNORECASE)
"""Words before a bare month or weekday, which may be past or future: "by Monday"."""
_SHIFTS = {"yesterday": -1, "last": -1, "previous": -1, "next": 1, "tomorrow": 1}


def is_pointed(words: str) -> bool:
    """Whether a time is relative to the date of its text: "last year", "yesterday"."""
    match = _POINTED.fullmatch(words)
    return match is not None and not match["vague"]


def find_date(metadata: Mapping[str, str], title: str | None) -> datetime.date | None:
    """The day of a document, from a field with a date, else from its title.

    The first and the last year of the calendar mean no date, as in many databases; a slashed date
    with an ambiguous day and month is ignored.
    """
    fields = (
        metadata[field]
        for field in sorted(metadata)
        if _DATED.issuperset(_CAMEL.sub(" ", field).casefold().split())
    )
    for text in (*fields, title or ""):
        for stated in find_values(_SLASHED.sub(r"\1", re.sub(r"(?<=\d)T(?=\d)", " ", text))):
            value = stated.value
            if isinstance(value, Date) and value.day and 1 < value.year < datetime.MAXYEAR:
                try:
                    return datetime.date(value.year, value.month, value.day)
                except ValueError:
                    continue
    return None


def place_times(
    qualifiers: Mapping[str, str], day: datetime.date | None, *, is_planned: bool = False
) -> dict[str, str]:
    """The qualifiers with a time relative to the text's `day` replaced by its date.

    A bare month or weekday is the next one if the fact is planned, else the last one. A time
    without a date is left out, except for a bare month or weekday of a text without a day, which
    is unchanged.
    """
    match = _POINTED.fullmatch(qualifiers.get("time", ""))
    bare = match and (match["month"] or match["weekday"]) and not match["which"]
    if match is None or (day is None and bare):
        return {**qualifiers}
    placed = {role: value for role, value in qualifiers.items() if role != "time"}
    date = None
    if day is not None and not (match["vague"] or (bare and _AHEAD.match(match["lead"]))):
        with suppress(OverflowError, ValueError):  # outside the calendar
            which = "next" if bare and is_planned else match["which"]
            date = _resolve(match, day, which or "")
    return placed if date is None else {**placed, "time": f"{match['lead']}{date}"}


def _resolve(match: re.Match[str], day: datetime.date, which: str) -> Date | None:
    """The date of a relative time, counted from a day; a bare month or weekday is the last one.

    `which`: `last`, `this` or `next` before a month or weekday.

    A week becomes its month or year; None where it is in two years.

    Raises:
        OverflowError, ValueError: the date is outside the calendar.
    """
    which, unit = which.lower(), (match["unit"] or match["past"] or "day").lower()
    if match["month"]:
        unit, month = "month", find_month(match["month"])
        back = int(month > day.month or (which == "last" and month == day.month))
        years = int(month <= day.month) if which == "next" else -back
        shift = 12 * years + month - day.month
    elif match["weekday"]:
        back = (day.weekday() - WEEKDAYS.index(match["weekday"].lower())) % 7
        shift = 7 - back if which == "next" else -(back or 7 * (which == "last"))
    elif match["past"]:
        count = match["count"].lower()
        shift = -(max(1, _COUNTS.index(count)) if count in _COUNTS else int(count))
    else:
        shift = _SHIFTS.get((match["side"] or match["day"]).lower(), 0)
    if unit == "day":
        placed = day + datetime.timedelta(shift)
        return Date(placed.year, placed.month, placed.day)
    if unit == "week":
        first = day + datetime.timedelta(7 * shift - day.weekday())
        last = first + datetime.timedelta(6)
        same = first.month == last.month
        return Date(first.year, same * first.month) if first.year == last.year else None
    months = 12 * day.year + day.month - 1 + shift
    year, month = (day.year + shift, 0) if unit == "year" else divmod(months, 12)
    return Date(day.replace(year, day=1).year, month + (unit == "month"))
