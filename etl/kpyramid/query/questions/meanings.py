"""What words of a question mean: one mention with its options, and what neighbours do to it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kpyramid.query.questions.wording import Word

PARTIAL, STEM, NEAR, BESIDE = 0.2, 0.3, 0.4, 0.18
"""Costs of a match by part of a label, by its stem, by the embedding, and of a property whose
label is a class as well; a whole label costs none."""


@dataclass(frozen=True, slots=True)
class Option:
    """One meaning: `individual`, `kind`, `value` (of property `iris[0]`), `class`, `relation`.

    `passive`: the voice of a property's wording that runs from source to target, None for a noun.
    `kind` is an individual in the place of a noun: what it stands for are the things of that kind.
    """

    sort: str
    iris: tuple[str, ...]
    literals: tuple[str, ...] = ()
    cost: float = 0.0
    passive: bool | None = None


@dataclass(frozen=True, slots=True)
class Mention:
    """Words `start` to `end` and what they can mean.

    `partial`: by part of a name that several have. `asked`: `which` or `how many` stands before.
    `joined`: `and` stands between it and a mention of the same sort.
    """

    start: int
    end: int
    options: tuple[Option, ...]
    partial: bool = False
    asked: bool = False
    joined: bool = False


def drop_echoes(mentions: Sequence[Mention]) -> list[Mention]:
    """`e-mail address`: part of another label, right beside a whole one, says nothing new."""
    whole = {
        at
        for m in mentions
        if any(o.sort == "relation" and o.cost < PARTIAL for o in m.options)
        for at in (m.start - 1, m.end)
    }
    return [
        m
        for m in mentions
        if not (
            {m.start, m.end - 1} & whole
            and all(o.sort == "relation" and o.cost >= PARTIAL for o in m.options)
        )
    ]


def join_alternatives(mentions: Sequence[Mention], words: Sequence[Word]) -> list[Mention]:
    """`french or german`: two mentions of one sort with `or` between them become one."""
    joined: list[Mention] = []
    for mention in mentions:
        before = joined[-1] if joined else None
        if before and mention.start - before.end == 1 and words[before.end].lower == "or":
            options = [
                Option(a.sort, _unite(a, b), tuple(dict.fromkeys(a.literals + b.literals)))
                for a in before.options
                for b in mention.options
                if a.sort == b.sort
                and (a.sort == "individual" or a.iris == b.iris)
                and a.sort in {"individual", "value"}
            ]
            if options:
                partial = before.partial or mention.partial
                joined[-1] = Mention(before.start, mention.end, tuple(options), partial)
                continue
        if (
            before
            and mention.start - before.end == 1
            and (
                words[before.end].lower == "and"
                and {before.options[0].sort, mention.options[0].sort} == {"individual"}
            )
        ):
            mention = replace(mention, joined=True)
        joined.append(mention)
    return joined


def _unite(one: Option, other: Option) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.iris + other.iris))
