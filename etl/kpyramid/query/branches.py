"""Branches of main paths: first-order neighbours that the paths do not stand for (RoK, 4.2.2)."""

from collections.abc import Collection, Iterator, Sequence

from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.facts import NearFact, find_about, state_facts
from kpyramid.query.paths import StatedPath

MOST_BRANCHES = 100
"""Facts about the key entities that are filtered, those nearest to the question: one call's."""


def list_branches(
    asked: QuestionAnalysis, entities: Sequence[str], main: Sequence[StatedPath]
) -> list[NearFact]:
    """The facts about key entities beside the main paths, by cosine with the question.

    Dropped are those whose relation leads from the key entity to one on a main path already.
    """
    if not entities:
        return []
    walked = {fact.condensed_id for path in main for fact in path.facts}
    about = find_about(entities, asked, MOST_BRANCHES, known=walked)
    return drop_led(state_facts(about, asked.snapshot), entities, main)


def drop_led(
    facts: Sequence[NearFact], key: Collection[str], main: Sequence[StatedPath]
) -> list[NearFact]:
    """The facts that branch off: step (a) of 4.2.2, by relation and its direction."""
    walked = [fact for path in main for fact in path.facts]
    there = {end for fact in walked for end in (fact.head_id, fact.tail_id)}
    led = {
        (own, fact.relation, ahead)
        for fact in (*walked, *facts)
        for own, other, ahead in _list_ends(fact)
        if own in key and other in there
    }
    return [
        fact
        for fact in facts
        if any(
            other in there or (own, fact.relation, ahead) not in led
            for own, other, ahead in _list_ends(fact)
            if own in key
        )
    ]


def _list_ends(fact: NearFact) -> Iterator[tuple[str | None, str | None, bool]]:
    yield fact.head_id, fact.tail_id, True
    yield fact.tail_id, fact.head_id, False
