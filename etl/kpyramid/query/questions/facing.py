"""Which way a property runs that could run either way: who mentors whom, what is part of what."""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from itertools import pairwise

from kpyramid.query.questions.lexicon import Lexicon
from kpyramid.query.questions.meanings import Mention
from kpyramid.query.questions.trees import Link, Tree
from kpyramid.query.questions.wording import Word

_ASIDE = frozenset("of to for".split())
"""Prepositions after which a noun's owner stands: the mentor of X, an adviser to X."""
_OPEN = frozenset("what which who whom whose".split())
_HAVING = frozenset("have has had".split())


class Facing(Enum):
    """What the word order says of a link."""

    RIGHT = 0
    WRONG = 1
    UNCLEAR = 2


def face(
    tree: Tree,
    link: Link,
    mentions: Sequence[Mention],
    words: Sequence[Word],
    lexicon: Lexicon,
    *,
    passive: bool,
) -> Facing:
    """Whether a link runs as the question says; `RIGHT` too where types leave it one way only."""
    relation = lexicon.relations[link.iri]
    if relation.is_literal or lexicon.meet(relation.sources, relation.targets) is None:
        return Facing.RIGHT
    ends = {
        spot: mentions[at]
        for at, spot in tree.spots
        if spot in (link.source, link.target) and tree.nodes[spot].iris
    }
    said = [
        (m, o)
        for m in mentions
        for o in m.options
        if o.sort == "relation" and o.iris[0] == link.iri
    ]
    if not said:
        return Facing.UNCLEAR
    if len(said) > 1 and ends:
        near = next(iter(ends.values())).start
        said.sort(key=lambda pair: abs(pair[0].start - near))
    mention, option = said[0]
    first = min(ends, key=lambda spot: ends[spot].start, default=None)
    if option.passive is not None:
        if first is None:
            return Facing.UNCLEAR
        is_subject = ends[first].start < mention.start
        if len(ends) == 2 and (not is_subject or max(e.start for e in ends.values()) < mention.end):
            return Facing.UNCLEAR
        agrees = option.passive == passive
        return _judge((first == link.source) == (is_subject == agrees))
    if _is_turned(mention, words):
        return Facing.UNCLEAR
    if first is None:
        return Facing.RIGHT
    owner = _find_owner(mention, ends, words)
    if owner is None:
        return Facing.UNCLEAR
    return _judge((owner == link.source) == relation.names_target)


def _judge(is_right: bool) -> Facing:
    return Facing.RIGHT if is_right else Facing.WRONG


def _is_turned(mention: Mention, words: Sequence[Word]) -> bool:
    """Whether the noun may be a verb, or its owner is what is asked for."""
    lowers = [word.lower for word in words]
    before = lowers[: mention.start]
    stranded = lowers[-1] in _ASIDE or any(
        one in _ASIDE and other in _OPEN for one, other in pairwise(lowers)
    )
    return stranded or bool({"do", "does", "did", "whose", "as"} & set(before))


def _find_owner(mention: Mention, ends: dict[int, Mention], words: Sequence[Word]) -> int | None:
    """The named end whose mentor, part, ... the question speaks of; None when it does not say."""
    for spot, end in ends.items():
        if end.end == mention.start:  # X's mentor
            return spot
    for spot, end in sorted(ends.items(), key=lambda pair: pair[1].start):
        between = {word.lower for word in words[mention.end : end.start]}
        if end.start >= mention.end:
            has = {word.lower for word in words[end.end :]} & _HAVING
            return spot if between & _ASIDE or (has and len(ends) == 1) else None
    return None


def turn(tree: Tree, link: Link) -> Tree:
    """The tree with a link the other way round."""
    other = Link(link.target, link.iri, link.source)
    return replace(tree, links=tuple(other if x == link else x for x in tree.links))
