"""Which facts of one pair of ends say the same, and which say more than others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from kpyramid.condensation.values import Value
from kpyramid.paraphrase.comparing import Comparer
from kpyramid.paraphrase.types import Verdict

Ends = tuple[str, str]
Compare = Callable[[str, str, Ends], Verdict]
"""What a wording says of another; `Ends` are the types of the first one's head and tail."""
How: TypeAlias = Literal["kept", "equivalent", "turned", "broader", "llm"]

LITERAL = "LITERAL"
"""The type of a literal tail."""
_MOST = 64
"""Condensed facts of one pair of ends that a further fact is compared with."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A triple of a pair of ends.

    `place`: its row in the table. `flipped`: it reads from the pair's second end to its first.
    `value`: of a literal tail. `anchors`: the anchors it is near to, each as a property and
    whether it reads the other way round, written alike for a property and its inverse.
    """

    place: int
    wording: str
    flipped: bool
    ends: Ends
    value: Value | None
    anchors: frozenset[tuple[str, bool]]


@dataclass(frozen=True, slots=True)
class Merger:
    """A fact and what was merged into it, each with the reason; the first is itself, `kept`."""

    fact: Fact
    merged: list[tuple[Fact, How]]


@dataclass(frozen=True, slots=True)
class Contrary:
    """Two facts of the same ends that cannot both hold."""

    one: Fact
    other: Fact
    reason: str


def guard_comparer(comparer: Comparer) -> Compare:
    """Compares as the comparer does, but what may be is different from what is.

    `was born in` says all that `may have been born in` says, yet the doubt is worth keeping.
    """

    def compare(one: str, other: str, ends: Ends) -> Verdict:
        if comparer.read(one).modal != comparer.read(other).modal:
            return Verdict("different", False, "one states a fact, the other a possibility")
        return comparer.compare(one, other, ends)

    return compare


def merge_facts(facts: Sequence[Fact], compare: Compare) -> list[Merger]:
    """The facts of one pair of ends, merged; `facts` in order of preference, the best first.

    A fact joins the first that says the same, wherever both lie: it is one fact, told twice. A
    broader fact is absorbed only around an anchor, by one that says all it and its equals say.
    Each is compared with the fact that will stand for it, never along a chain.
    """
    mergers: list[Merger] = []
    for fact in facts:
        for merger in mergers[:_MOST]:
            if _says(merger.fact, fact, compare) == "equivalent" and not any(
                _is_contrary(member, fact, compare) for member, _ in merger.merged[1:]
            ):
                how: How = "turned" if fact.flipped != merger.fact.flipped else "equivalent"
                merger.merged.append((fact, how))
                break
        else:
            mergers.append(Merger(fact, [(fact, "kept")]))
    return _absorb(mergers, compare)


def list_contraries(mergers: Sequence[Merger], compare: Compare) -> list[Contrary]:
    """The facts that cannot hold with each other."""
    facts = [merger.fact for merger in mergers[:_MOST]]
    return [
        Contrary(one, other, _judge(one, other, compare).reason)
        for at, one in enumerate(facts)
        for other in facts[at + 1 :]
        if _is_contrary(one, other, compare)
    ]


def says_all(narrow: Fact, broad: Fact, compare: Compare) -> bool:
    """Whether a fact says what the other says, or more."""
    return _says(narrow, broad, compare) is not None


def _absorb(mergers: Sequence[Merger], compare: Compare) -> list[Merger]:
    """The mergers whose facts no other says, with those that they say."""
    few = mergers[:_MOST]
    sayers = {
        at: [
            other
            for other, by in enumerate(few)
            if other != at
            and by.fact.anchors & merger.fact.anchors
            and all(_says(by.fact, member, compare) for member, _ in merger.merged)
            and not _says(merger.fact, by.fact, compare)
        ]
        for at, merger in enumerate(few)
    }
    left = []
    for at, merger in enumerate(mergers):
        stays = [other for other in sayers.get(at, ()) if not sayers[other]]
        if not stays:
            left.append(merger)
        for other in stays[:1]:
            mergers[other].merged.extend((member, "broader") for member, _ in merger.merged)
    return left


def _says(one: Fact, other: Fact, compare: Compare) -> Literal["equivalent", "narrower"] | None:
    """Whether the first fact says the second: the same, or more."""
    same = True
    if one.value is not None and other.value is not None:
        if not one.value.says(other.value):
            return None
        same = other.value.says(one.value)
    if one.wording == other.wording and one.flipped == other.flipped:
        return "equivalent" if same else "narrower"
    verdict = _judge(one, other, compare)
    if not _fits(verdict, one, other) or verdict.likeness not in ("equivalent", "narrower"):
        return None
    return "equivalent" if same and verdict.likeness == "equivalent" else "narrower"


def _is_contrary(one: Fact, other: Fact, compare: Compare) -> bool:
    verdict = _judge(one, other, compare)
    return verdict.likeness == "contrary" and _fits(verdict, one, other)


def _fits(verdict: Verdict, one: Fact, other: Fact) -> bool:
    """Whether the verdict is on these facts, which read one way, or one of them the other way."""
    return verdict.symmetric or verdict.turned == (one.flipped != other.flipped)


def _judge(one: Fact, other: Fact, compare: Compare) -> Verdict:
    return compare(one.wording, other.wording, one.ends)
