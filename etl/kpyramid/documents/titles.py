"""Titles of documents: what tells one from its namesakes, and how one stands for its document."""

import re
from textwrap import shorten

BRACKET = re.compile(r"\s*\(((?:[^\s()]+\s+)?[^\s()]+|[^()]*\b[a-z]+|[a-z][^()]*)\)")
"""What tells titles apart, "(1975 film)"; "(If You Think It's Over)" is a part of the name."""
_WORD = re.compile(r"(?<!\S)\W*[^\W\d_]{2,}(?:['’-][^\W\d_]+)*\W*(?!\S)")
"""A word of letters by itself, as file names (`Report_2.pdf`) and ids have none."""
_LONGEST = 80
"""Characters of a title that stands behind a fact; half of 500 titles of medical papers fit."""
OPENING = 10 * _LONGEST
"""Characters of a title or a text that are looked at."""


def cite_document(title: str | None, text: str) -> str | None:
    """What tells a document from others, on one line: its title, else how its text begins.

    Cut at a word where it is long. A file name or an id is no title; none without words at all.
    """
    for whole in (title or "", text):
        cited = whole[:OPENING].strip().partition("\n")[0]
        if _WORD.search(cited):
            plain = cited.replace(" / ", "/")  # which stands between the values of a qualifier
            return shorten(plain, _LONGEST, placeholder=" …", break_on_hyphens=False)
    return None
