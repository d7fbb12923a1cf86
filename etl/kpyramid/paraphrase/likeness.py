"""How far two wordings outside the lexicon say the same: by their frames and by WordNet."""

from dataclasses import dataclass

from kpyramid.paraphrase.modifiers import keep_noun
from kpyramid.paraphrase.reading import Frame
from kpyramid.paraphrase.types import Likeness
from kpyramid.paraphrase.wordnet import load_wordnet
from kpyramid.paraphrase.words import PLACED_DEEDS, PREPOSITIONS

_NEAR = 1
"""The sum of two words' places of a shared sense up to which they are taken for synonyms."""
_FAR = 4
"""The same with a likeness of vectors of at least `_ALIKE`."""
_FLOOR = 0.6
"""Cosine that even near synonyms must have; `bought` and `sold` have 0.77, unlike words 0.2."""
_ALIKE = 0.75
_MARKS = ("be", "have")


@dataclass(frozen=True, slots=True)
class Kinship:
    """What the words say; `least` is the cosine that must witness it, 0 for none."""

    likeness: Likeness
    turned: bool
    reason: str
    least: float = 0.0


def compare_frames(one: Frame, other: Frame) -> Kinship | None:
    """What two frames have in common, or None."""
    firsts = ((one.key, one.turned), *one.alternates)
    seconds = ((other.key, other.turned), *other.alternates)
    for key, turned in firsts:
        for other_key, other_turned in seconds:
            if key == other_key and key:
                return Kinship("equivalent", turned != other_turned, f"the same words: {key}")
    for key, turned in firsts[:3]:
        for other_key, other_turned in seconds[:3]:
            found = _compare_keys(key, other_key)
            if found is not None:
                likeness, reason, least = found
                return Kinship(likeness, turned != other_turned, reason, least)
    return None


def _compare_keys(one: str, other: str) -> tuple[Likeness, str, float] | None:
    if not one or not other:
        return None
    first, second = one.split(), other.split()
    if len(first) != len(second):
        return _compare_lengths(first, second)
    unlike = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    if len(unlike) != 1:
        return None
    a, b = unlike[0]
    if a in PREPOSITIONS or b in PREPOSITIONS:
        placed = first[0].removeprefix("~") in PLACED_DEEDS and {a, b} == {"in", "at"}
        return ("equivalent", "in and at", 0.0) if placed else None
    passive = a.startswith("~") and b.startswith("~")
    a, b = a.removeprefix("~"), b.removeprefix("~")
    if first[0] == one.split()[0] and (first[0] in _MARKS) != (second[0] in _MARKS):
        return None
    part = "v" if first[0] != second[0] else "na"
    if one.startswith("~") != other.startswith("~") and not passive:
        return None
    return _compare_words(a, b, part)


def _compare_words(one: str, other: str, parts: str) -> tuple[Likeness, str, float] | None:
    net = load_wordnet()
    if other in net.opposites.get(one, ()):
        return ("contrary", f"{one} is the opposite of {other}", 0.0) if "a" in parts else None
    for part in parts:
        rank = net.find_rank(one, other, part)
        if rank is not None and rank <= _FAR:
            least = _FLOOR if rank <= _NEAR else _ALIKE
            return "equivalent", f"{one} and {other} are synonyms", least
    if parts == "v":
        if net.is_kind_of(one, other):
            return "narrower", f"{one} is a way to {other}", _FLOOR
        if net.is_kind_of(other, one):
            return "broader", f"{other} is a way to {one}", _FLOOR
    return None


def _compare_lengths(first: list[str], second: list[str]) -> tuple[Likeness, str, float] | None:
    """Whether one names a special case of the noun: `be largest city in`, `be city in`."""
    if first[0] != second[0] or first[0] not in _MARKS or min(len(first), len(second)) < 3:
        return None
    longer, shorter = (first, second) if len(first) > len(second) else (second, first)
    size = len(shorter) - 1
    extra = longer[1:-size]
    if longer[-size:] != shorter[1:] or shorter[1] in PREPOSITIONS:
        return None
    if not keep_noun(extra, shorter[1:]):
        return None
    likeness: Likeness = "narrower" if longer is first else "broader"
    return likeness, f"{' '.join(extra)} makes it more special", 0.0
