"""Qualifiers of a fact: its time, place and other circumstances by role, united and in words.

The title of a document is one where it tells what a common noun of the fact means.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from textwrap import shorten

from kpyramid.documents.words import WORD

Qualifiers = Iterable[tuple[str, str]]
"""Role and value; the role is `time`, `place`, `table`, `section`, `document` or the value's
preposition."""

DOCUMENT = "document"
"""Role of the title of the only document in which a common noun of the fact has its meaning."""
SECTION = "section"
"""Role of the heading above a fact with a common noun that names nothing by itself: "the pump"."""
TABLE = "table"
"""Role of the caption, heading or title above the table whose row a fact is."""
WHEREABOUTS = frozenset({DOCUMENT, SECTION})
"""Roles of where a fact stands, which part no facts that say the same."""
CONDITION = "condition"
"""Role of the condition under which the fact holds."""
CORRECTED = "corrected"
"""Role of a person's correction of a fact."""
_ORDER = {"time": 0, "place": 1, SECTION: 3, DOCUMENT: 4}
"""Roles that are named before or after the others."""
_BETWEEN = " / "
_MOST = 5
"""The most values of a role: a fact with more times holds at any time."""
MORE = "…"
"""Replaces values that are left out."""


def unite_qualifiers(qualifiers: Qualifiers, whole: Qualifiers = ()) -> list[tuple[str, str]]:
    """The qualifiers of several statements of one fact, each role once, roles sorted.

    Different values of a role are joined by ` / `, sorted; of more than five the first five and
    an ellipsis. A value whose words are consecutive in another is left out: `May 2019` includes
    `2019`. United qualifiers can be united again. `whole`: further qualifiers, of which only the
    documents and the corrected values are used.
    """
    values: dict[str, set[str]] = defaultdict(set)
    for role, text in (*qualifiers, *(pair for pair in whole if pair[0] in (DOCUMENT, CORRECTED))):
        values[role].update(text.split(_BETWEEN))
    return [(role, _join_values(v) if len(v) > 1 else min(v)) for role, v in sorted(values.items())]


def list_values(qualifiers: Qualifiers, role: str) -> list[str]:
    """The values of one role."""
    parts = (text.split(_BETWEEN) for name, text in qualifiers if name == role)
    return [value for values in parts for value in values if value != MORE]


def write_qualifiers(qualifiers: Qualifiers) -> list[str]:
    """Each qualifier in words, as `time: 2019`; time and place first, the document last."""
    order = sorted(qualifiers, key=lambda pair: (_ORDER.get(pair[0], 2), pair))
    return [f"{role}: {value}" for role, value in order]


def read_qualifiers(written: Iterable[str]) -> list[tuple[str, str]]:
    """The qualifiers that `write_qualifiers` wrote."""
    return [(role, value) for role, _, value in (text.partition(": ") for text in written)]


def _join_values(values: set[str]) -> str:
    retained, seen = [], " "
    for value in sorted(values - {MORE}, key=lambda value: (-len(value), value)):
        words = f" {' '.join(WORD.findall(value.casefold()))} "
        if words not in seen or not words.strip():
            retained.append(value)
            seen += f"{_BETWEEN}{words}"
    more = [MORE] if len(retained) > _MOST or MORE in values else []
    return _BETWEEN.join([*sorted(retained)[:_MOST], *more])


# Titles of documents: what distinguishes a title from its namesakes, and how it cites its document.

BRACKET = re.compile(r"\s*\(((?:[^\s()]+\s+)?[^\s()]+|[^()]*\b[a-z]+|[a-z][^()]*)\)")
"""A bracket that distinguishes titles, "(1975 film)"; "(If You Think It's Over)" is no such one."""
_LETTERS = re.compile(r"(?<!\S)\W*[^\W\d_]{2,}(?:['’-][^\W\d_]+)*\W*(?!\S)")
"""A word of letters alone; file names (`Report_2.pdf`) and ids have none."""
_LONGEST = 80
"""The most characters of a title after a fact; half of 500 titles of medical papers are shorter."""
OPENING = 10 * _LONGEST
"""The characters of a title or a text that are examined."""
_TOPIC = re.compile(
    r"(?:\b(?:aims?|purpose|objectives?|goal|intent) (?:of|was|is|were)\b[^.]{0,80}?\bto"
    r"|(?:\A|:\s+)To|\b[Ww]e(?: \w+){0,2}|\b(?:study|trial|review|paper)(?: \w+){0,3}) "
    r"(?:analy[sz]|assess|characteri[sz]|clarif|compar|describ|determin|document|estimat|evaluat"
    r"|examin|explor|identif|investigat|quantif|report|review|stud|test)(?:y|ied|ies|e?[ds]?)"
    r"(?: and \w+)? (?:(?:the|an?) )?(?!(?:by|in|it|that|them|this|to|with)\b)"
    r"(\w[^\n]+?)(?:\.\s|\.?$|\n)",
    re.MULTILINE,
)
"""The stated topic of a text: "To assess the yield of rye", "the aim of this study was to …"."""


def cite_document(title: str | None, text: str) -> str | None:
    """A short citation of a document on one line: its title, else the topic that its text states.

    Without a topic it is the beginning of the text. A long one is cut after a word. A file name or
    an id is no title; None where there are no words.
    """
    if cited := _cite(title or ""):
        return cited
    topic = _TOPIC.search(text[:OPENING])
    return (_cite(topic[1]) if topic else None) or _cite(text)


def _cite(text: str) -> str | None:
    """The first line of a text, cut; None where it has no words."""
    line = text[:OPENING].strip().partition("\n")[0]
    if not _LETTERS.search(line):
        return None
    plain = line.replace(" / ", "/")  # which stands between the values of a qualifier
    return shorten(plain, _LONGEST, placeholder=" …", break_on_hyphens=False)
