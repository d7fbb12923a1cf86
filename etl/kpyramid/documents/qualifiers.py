"""Qualifiers of a fact: its time, place and other circumstances by role, united and in words."""

from collections import defaultdict
from collections.abc import Iterable

from kpyramid.documents.words import WORD

Qualifiers = Iterable[tuple[str, str]]
"""Role and value: `time`, `place`, or the preposition that the value stands after."""

_FIRST = ("time", "place")
"""Roles that are named before the others."""
_BETWEEN = " / "
_MOST = 5
"""Values of one role that are kept: a fact that is stated at more times is told at any time."""
_MORE = "…"


def unite_qualifiers(qualifiers: Qualifiers) -> list[tuple[str, str]]:
    """The qualifiers of several statements of one fact, each role once, roles sorted.

    Different values of a role are all kept, sorted, with ` / ` between; of more than five the
    first five and an ellipsis. One whose words another value has in a row is left out: `May 2019`
    says `2019`. United qualifiers can be united further.
    """
    values: dict[str, set[str]] = defaultdict(set)
    for role, text in qualifiers:
        values[role].update(text.split(_BETWEEN))
    return [(role, _join_values(found)) for role, found in sorted(values.items())]


def list_values(qualifiers: Qualifiers, role: str) -> list[str]:
    """The values of one role."""
    found = (text.split(_BETWEEN) for name, text in qualifiers if name == role)
    return [value for values in found for value in values if value != _MORE]


def write_qualifiers(qualifiers: Qualifiers) -> list[str]:
    """Each qualifier in words, as `time: 2019`; time and place first."""
    return [f"{role}: {value}" for role, value in sorted(qualifiers, key=_rank)]


def read_qualifiers(written: Iterable[str]) -> list[tuple[str, str]]:
    """The qualifiers that `write_qualifiers` wrote."""
    parts = (text.partition(": ") for text in written)
    return [(role, value) for role, _, value in parts]


def _rank(qualifier: tuple[str, str]) -> tuple[int, str, str]:
    role, value = qualifier
    return (_FIRST.index(role) if role in _FIRST else len(_FIRST)), role, value


def _join_values(values: set[str]) -> str:
    kept, said = [], " "
    for value in sorted(values - {_MORE}, key=lambda value: (-len(value), value)):
        words = f" {' '.join(WORD.findall(value.casefold()))} "
        if words not in said or not words.strip():
            kept.append(value)
            said += f"{_BETWEEN}{words}"
    more = [_MORE] if len(kept) > _MOST or _MORE in values else []
    return _BETWEEN.join([*sorted(kept)[:_MOST], *more])
