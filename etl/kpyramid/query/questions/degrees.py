"""Counts, superlatives and comparisons of a question: what is measured, and against what."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kpyramid.query.questions.lexicon import Lexicon
from kpyramid.query.questions.wording import (
    ADJECTIVES,
    AGGREGATES,
    LOWER,
    UNITS,
    UPPER,
    Word,
    read_number,
    read_top,
    share_stem,
)

Measure = tuple[str, ...]
"""The properties from a thing to a number."""

_OVER = frozenset("over above exceed exceeding".split())
_UNDER = frozenset("under below".split())
_SIGNS = {"more": ">", "great": ">", "high": ">", "less": "<", "few": "<", "low": "<"}


@dataclass(frozen=True, slots=True)
class Degree:
    """`sort`: `order` with `sign` 1 or -1 and `top` rows, or `limit` with a `sign` and a `number`.

    `measures` are what may be measured; none: the next or the nearest mention says it. `counts`:
    how many of the next mention there are.
    """

    sort: str
    start: int
    end: int
    sign: str
    measures: tuple[Measure, ...] = ()
    number: float = 0.0
    top: int = 1
    superlative_of_noun: bool = False
    unit: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """How a question asks: `ask`, `count` or `select`; its degrees; the words that say all that.

    `wants`: `who`, `where`, `when` or nothing; `grain`: `year` where that is asked for.
    """

    act: str
    wants: str
    grain: str
    passive: bool
    degrees: tuple[Degree, ...]
    aggregate: str
    taken: frozenset[int]


def read_form(words: Sequence[Word], lexicon: Lexicon) -> Form:
    """The form of a question."""
    lowers = [word.lower for word in words]
    taken: set[int] = set()
    act, wants, grain = "select", "", ""
    if lowers and lowers[0] in {"is", "are", "was", "were", "do", "does", "did", "has", "have"}:
        act = "ask"
    for at, lower in enumerate(lowers):
        pair = tuple(lowers[at : at + 2])
        plain = pair == ("how", "many") or (
            pair in {("number", "of"), ("count", "of")} and (at == 0 or words[at - 1].is_function)
        )
        if (at <= 4 and plain) or (at == 0 and lower == "count"):
            act = "count"
            taken.update(
                range(at, at + len(pair) if lower != "count" or pair[1:] == ("of",) else at + 1)
            )
        if lower in {"which", "what"} and pair[1:] in {("year",), ("date",), ("day",)}:
            wants, grain = "when", "year" if pair[1] == "year" else ""
            taken.update((at, at + 1))
        wants = wants or {"who": "who", "whom": "who", "where": "where", "when": "when"}.get(
            lower, ""
        )
    degrees: list[Degree] = []
    at = 0
    while at < len(words):
        found = None if at in taken else _read_degree(words, at, lexicon)
        if found and found.sort == "limit" and found.end < len(words):
            unit = UNITS.get(words[found.end].lemma, words[found.end].lower)
            if unit in UNITS.values():
                found = replace(found, unit=unit, end=found.end + 1)
        if found and found.sort == "order" and at and (top := read_top(lowers[at - 1])):
            found = replace(found, top=top, start=at - 1)
        if found:
            degrees.append(found)
            taken.update(range(found.start, found.end))
            at = found.end
        else:
            at += 1
    aggregate = ""
    for at, lower in enumerate(lowers):
        if at not in taken and lower in AGGREGATES:
            aggregate = AGGREGATES[lower]
            taken.add(at)
    return Form(act, wants, grain, "by" in lowers, tuple(degrees), aggregate, frozenset(taken))


def _read_degree(words: Sequence[Word], at: int, lexicon: Lexicon) -> Degree | None:
    word = words[at]
    after = words[at + 1] if at + 1 < len(words) else None
    lowers = [w.lower for w in words]
    if after and word.lower in {"at"} and after.lower in {"least", "most"}:
        number = read_number(lowers[at + 2]) if at + 2 < len(words) else None
        if number is None:
            return Degree("limit", at, at + 2, ">=", number=1.0)
        sign = ">=" if after.lower == "least" else "<="
        return Degree("limit", at, at + 3, sign, number=number)
    if after and word.lower in _OVER | _UNDER:
        number = read_number(after.lower)
        if number is not None:
            sign = ">" if word.lower in _OVER else "<"
            return Degree("limit", at, at + 2, sign, number=number)
    if "than" in lowers[at + 1 : at + 3]:
        return _read_comparison(words, at, lowers.index("than", at), lexicon)
    top = 1
    start = at
    if word.lower == "top" and after and (rows := read_top(after.lower)):
        return Degree("order", at, at + 2, "1", top=rows, superlative_of_noun=True)
    if after and word.lower in {"most", "least"}:
        sign = "1" if word.lower == "most" else "-1"
        measures = _measure_adjective(after.lemma, lexicon)
        if measures:
            flipped = ADJECTIVES.get(after.lemma, ((), 1))[1] < 0
            return Degree(
                "order", start, at + 2, _flip(sign) if flipped else sign, measures, top=top
            )
        return Degree("order", at, at + 1, sign, superlative_of_noun=True)
    if word.lower.endswith("est") or word.lower in {"fewest", "best", "worst"}:
        if word.lemma in ADJECTIVES:
            names, end = ADJECTIVES[word.lemma]
            measures = find_measures(names, lexicon)
            degree = Degree("order", at, at + 1, str(end), measures)
            if word.lemma in UPPER | LOWER:
                sign = "1" if word.lemma in UPPER else "-1"
                return replace(degree, sign=sign, superlative_of_noun=True)
            return degree
        if word.lemma in UPPER | LOWER:
            sign = "1" if word.lemma in UPPER else "-1"
            return Degree("order", at, at + 1, sign, superlative_of_noun=True)
    return None


def _read_comparison(words: Sequence[Word], at: int, than: int, lexicon: Lexicon) -> Degree | None:
    number = read_number(words[than + 1].lower) if than + 1 < len(words) else None
    if number is None:
        return None
    word = words[at]
    measures: tuple[Measure, ...] = ()
    if word.lemma in ADJECTIVES and word.lower.endswith("er") and than == at + 1:
        names, end = ADJECTIVES[word.lemma]
        measures = find_measures(names, lexicon)
        sign = ">" if end > 0 else "<"
        if not measures and word.lemma not in _SIGNS:
            return None
    elif word.lemma in _SIGNS or word.lower in _SIGNS:
        sign = _SIGNS.get(word.lower) or _SIGNS[word.lemma]
        if than == at + 2:
            measures = _measure_adjective(words[at + 1].lemma, lexicon)
            if not measures:
                return None
            end = ADJECTIVES.get(words[at + 1].lemma, ((), 1))[1]
            sign = sign if end > 0 else {">": "<", "<": ">"}[sign]
    else:
        return None
    return Degree("limit", at, than + 2, sign, measures, number=number)


def _measure_adjective(lemma: str, lexicon: Lexicon) -> tuple[Measure, ...]:
    """What an adjective measures: by the list of adjectives, or a label of the same stem."""
    if lemma in ADJECTIVES:
        return find_measures(ADJECTIVES[lemma][0], lexicon)
    return tuple(
        measure
        for relation in lexicon.relations.values()
        if (measure := lexicon.extend_measure(relation))
        and any(share_stem(lemma, word) for phrase in relation.phrases for word in phrase)
    )


def find_measures(names: Sequence[str], lexicon: Lexicon) -> tuple[Measure, ...]:
    """The measures that are called by one of some nouns."""
    return tuple(
        measure
        for relation in lexicon.relations.values()
        if (measure := lexicon.extend_measure(relation))
        and any(name in phrase for phrase in relation.phrases for name in names)
    )


def _flip(sign: str) -> str:
    return "-1" if sign == "1" else "1"
