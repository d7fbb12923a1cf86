"""Births, deaths and other names in a bracket after a name: "(born 4 May 1902 in Oslo)"."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kpyramid.extraction.normal import MONTH
from kpyramid.extraction.syntax.phrases import Phrase
from kpyramid.extraction.syntax.tree import Node, Tree
from kpyramid.extraction.text.sentences import Span

_MONTH = rf"{MONTH}\.?"
_YEAR = r"\d{3,4}(?:\s*(?:BCE?|CE|AD)\b)?"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"(?:(?:c\.|ca\.|circa)\s*)?"
    rf"(?:{_DAY}\s+{_MONTH},?\s+{_YEAR}|{_MONTH}\s+{_DAY},?\s+{_YEAR}|{_MONTH}\s+{_YEAR}"
    rf"|(?<![\d,.]){_YEAR}(?![\d%]))"
)
_WORD = r"[^\W\d_][\w.'\u2019-]*"
_PLACE = re.compile(
    rf"(?:(?:in|at|near)\s+|,\s*(?:in\s+)?)?"
    rf"((?:[Tt]he\s+)?(?=[^\W\d_a-z]){_WORD}"
    rf"(?:\s+(?:of|de|la|le|upon|am|der|del|el|al|the|(?=[^\W\d_a-z]){_WORD}))*)"
)
_BORN = re.compile(r"\b(?:born|b\.)(?=\W)", re.IGNORECASE)
_DIED = re.compile(r"\b(?:died|d\.)(?=\W)", re.IGNORECASE)
_DASH = re.compile(r"\s+-{1,2}\s+|\s*[\u2013\u2014]\s*|(?<=\d)-(?=\d)")
_MAX_TOKENS = 60

_TITLE = r"[\"\u201c\u2018]?((?:the\s+)?(?=[^\W\d_a-z])[^,;:()\"\u201d]{2,60}?)[\"\u201d\u2019]?"
_ALIAS = re.compile(
    rf"(?:(?P<known>\b(?:known|called|spelled|nicknamed|titled|named|aka|a\.k\.a\.)(?:\s+as)?)"
    rf"|(?P<born>\bn[ée]e)|(?P<language>(?:^|[;,])\s*[A-Z][a-z]+(?:an|ish|ese|ch|ic|se|h|k|i):))"
    rf"\s*{_TITLE}\s*(?=[,;:()]|$)",
)

Event = tuple[str, Phrase]


def list_life_events(name: Node, is_person: bool) -> Iterator[Event]:
    """(relation, date, place or other name) from the bracket that follows a name.

    Without the word "born" its dates count only after a person's name.
    """
    tree, opening = name.tree, name.i + 1
    # "(;" is one token, since it may be a smiling face.
    if opening >= len(tree) or not tree[opening].text.startswith("("):
        return
    limit = min(opening + _MAX_TOKENS, len(tree))
    closing = next((i for i in range(opening + 1, limit) if tree[i].text.endswith(")")), None)
    if closing is None:
        return
    start = tree[opening].idx + 1
    inside = tree.text[start : tree[closing].idx]
    for alias in _ALIAS.finditer(inside):
        relation = "was born as" if alias["born"] else "is also known as"
        first, last = alias.span(4)
        yield relation, _cut(tree, opening, start + first, start + last, "MISC")
    if not any(c.isdigit() for c in inside):
        return
    at = 0
    for part in inside.split(";"):
        yield from _read_part(part, start + at, tree, opening, is_person)
        at += len(part) + 1


def _read_part(part: str, start: int, tree: Tree, opening: int, is_person: bool) -> Iterator[Event]:
    born, died = _BORN.search(part), _DIED.search(part)
    dates = list(_DATE.finditer(part))
    if not dates or (born is None and not is_person):
        return
    dash = next((d for d in _DASH.finditer(part) if d.start() >= dates[0].end()), None)
    if died is not None and (born is None or died.start() > born.start()):
        middle, after = died.start(), died.end()
    elif dash is not None and len(dates) > 1 and dates[-1].start() >= dash.end():
        middle, after = dash.start(), dash.end()
    elif born is not None:
        middle = after = len(part)
    else:
        return  # a single date says neither
    begin = born.end() if born is not None and born.start() < middle else 0
    if born is None and died is None and dates[0].start() > 12 and len(dates[0].group()) < 6:
        return  # more than a date stands first: a reign, a career
    yield from _read_side(part, begin, middle, "was born", start, tree, opening, born is not None)
    yield from _read_side(part, after, len(part), "died", start, tree, opening, True)


def _read_side(
    part: str, begin: int, end: int, verb: str, start: int, tree: Tree, opening: int, named: bool
) -> Iterator[Event]:
    """Yield date and places of one side; a name right after "born" is no place."""
    date = _DATE.search(part, begin, end)
    at = begin
    if date is not None:
        words = len(date.group().split())
        phrase = _cut(tree, opening, start + date.start(), start + date.end(), "DATE")
        yield f"{verb} {'on' if words > 2 else 'in'}", phrase
        # "1838 or 1839 in Dresden": the place follows the last of them.
        at = [d.end() for d in _DATE.finditer(part, begin, end)][-1]
    before = part[begin : date.start()] if date is not None else part[begin:end]
    if named and (verb == "died" or re.match(r"\s+(?:in|at|near)\b", before)):
        yield from _list_places(part, begin, begin + len(before), verb, start, tree, opening)
    if date is not None:
        yield from _list_places(part, at, end, verb, start, tree, opening)


def _list_places(
    part: str, begin: int, end: int, verb: str, start: int, tree: Tree, opening: int
) -> Iterator[Event]:
    while begin < end and part[begin] == " ":
        begin += 1
    while found := _PLACE.match(part, begin, end):
        yield (
            f"{verb} in",
            _cut(tree, opening, start + found.start(1), start + found.end(1), "GPE"),
        )
        begin = found.end()


def _cut(tree: Tree, opening: int, start: int, end: int, label: str) -> Phrase:
    """Return the characters `start`..`end`, which stand inside the bracket, as a phrase."""
    first = opening
    while first + 1 < len(tree) and tree[first].end <= start:
        first += 1
    last = first
    while last + 1 < len(tree) and tree[last + 1].idx < end:
        last += 1
    text = " ".join(tree.text[start:end].split())
    return Phrase(text, Span(start, end), last, first, last, label)
