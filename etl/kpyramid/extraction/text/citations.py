"""Telling a reference to a work (author, year, volume, number) from a sentence of prose."""

from __future__ import annotations

import re

_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_NUMBERED = r"(?:\[\d{1,4}\]\s | \d{1,4}\.\s)? \s*"
_FAMILY_NAME_FIRST = re.compile(
    _NUMBERED
    + r"""[^\W\d_a-z][\w'’-]{0,40}, \s (?:[^\W\d_a-z]\.\s?-?){1,4}+
        (?=\s?[(,&"“;:]|\s?(?:and\s|[^\Wa-z])|$)""",
    re.VERBOSE,
)
_INITIALS_FIRST = re.compile(
    _NUMBERED + r"(?:[^\W\d_a-z]\.\s?-?){1,4} [^\W\d_a-z][\w'’-]{0,40} "
    r"(?:,\s(?:[^\W\d_a-z]\.|and\s|[\"“])|\sand\s)",
    re.VERBOSE,
)
_PAGES = re.compile(r"\b(?:pp?|vol|no)\.\s?\d|[\"“][^\"”]{5,200},?[\"”],?\s[^\Wa-z]|\(\d{4}\)[.,:]")
_VOLUME = re.compile(
    r"(?<!\d)\d{1,4}\s?(?:\(\d{1,4}\)\s?[:,]|:)\s?(?:pp?\.?\s?)?[A-Za-z]?\d{1,6}\s?[–-]\s?\d{1,6}"
)
_IDENTIFIED = re.compile(r"\b(?:doi:|DOI:?\s10|ISBN|ISSN|arXiv:|PMID)|doi\.org/")
_NUMBERED_LIST = re.compile(r"\[\d{1,4}\]\s")
_FETCHED = re.compile(r"(?:Retrieved|Archived|Accessed)\s(?:on\s|from\s)?[\w,]")


def is_citation(line: str, share: float) -> bool:
    """Whether a line or sentence only refers to a work; `share` is that of its function words."""
    if _INITIALS_FIRST.match(line):
        return bool(_PAGES.search(line) or _VOLUME.search(line))
    if _FAMILY_NAME_FIRST.match(line):
        return bool(_YEAR.search(line[:200]) or _VOLUME.search(line[:400]))
    if _NUMBERED_LIST.match(line) and _YEAR.search(line):
        return share < 0.25
    if share < 0.15 and (_VOLUME.search(line) or _IDENTIFIED.search(line)):
        return True
    return bool(_FETCHED.match(line)) and len(line) < 60
