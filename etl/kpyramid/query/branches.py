"""Branches of main paths: first-order neighbours that the paths do not stand for (RoK, 4.2.2)."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from kpyramid.documents.words import normalise_name
from kpyramid.query.analysis import QuestionAnalysis, link_text
from kpyramid.query.chains import RatedPath, go_on, lead_from, rate_open
from kpyramid.query.facts import NearFact, find_about, state_facts
from kpyramid.query.paths import MOST_NEIGHBOURS, MOST_PATHS, Path, StatedPath, state_paths
from kpyramid.query.types import Item
from kpyramid.snapshot.adjacency import Adjacency

MOST_BRANCHES = 100
"""Facts about the key entities that are filtered, those nearest to the question: one call's."""


def list_branches(
    asked: QuestionAnalysis,
    entities: Sequence[str],
    main: Sequence[StatedPath],
    supposed: Sequence[Item] = (),
) -> list[NearFact]:
    """The facts beside the main paths: what supposed passages state, then those about key entities.

    Of the latter the nearest to the question. Of all those that are about a key entity, dropped are
    those whose relation leads from it to one on a main path already.
    """
    walked = {fact.condensed_id for path in main for fact in path.facts}
    stated = find_stated(asked, supposed, known=walked)
    known = walked | stated.keys()
    about = find_about(entities, asked, MOST_BRANCHES, known=known) if entities else {}
    facts = state_facts(stated | about, asked.snapshot)
    left = {fact.condensed_id for fact in drop_led(facts, entities, main)}
    key = frozenset(entities)
    return [f for f in facts if f.condensed_id in left or key.isdisjoint((f.head_id, f.tail_id))]


def find_stated(
    asked: QuestionAnalysis, passages: Sequence[Item], known: Collection[str] = ()
) -> dict[str, float]:
    """The facts that passages state, with their cosines with the question.

    In the order of these and of the scores of the passages together, which are cosines in the main.
    A name of more than `MOST_NEIGHBOURS` facts is not looked up: the other end leads to its facts.
    """
    snapshot, scores = asked.snapshot, {item.key: item.score for item in passages}
    named = (e for item in passages for e in link_text(item.text, snapshot).entities)
    keys: dict[str, float] = {}
    looked = set(known)
    for entity in dict.fromkeys(named):
        about = snapshot.facts_about([entity], MOST_NEIGHBOURS + 1)
        for key in about if len(about) <= MOST_NEIGHBOURS else ():
            if key not in looked:
                looked.add(key)
                places = {place.chunk_id for place in snapshot.evidence(key)}
                if places & scores.keys():
                    keys[key] = max(scores[chunk] for chunk in places & scores.keys())
    if not keys:
        return {}
    cosines = (snapshot.vectors_of(list(keys), "condensed") @ asked.vector).tolist()
    near = dict(zip(keys, cosines, strict=True))
    order = sorted(keys, key=lambda key: (-round(near[key] + keys[key], 6), key))
    return {key: near[key] for key in order}


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


# Chains from the question that paths and branches make together.

MOST_STARTS = 3
"""Stretches to one key entity from which rules go on by a fact about it."""


def rate_chains(
    asked: QuestionAnalysis,
    graph: Adjacency,
    rows: Sequence[int],
    paths: Sequence[Path],
    branches: Sequence[NearFact] = (),
) -> list[RatedPath]:
    """What rules answer by: stretches from the question's entities, and a branch beyond them."""
    own = {graph.find(entity) for entity in asked.linked.entities}
    sources = {row for row in rows if row in own} or set(rows[:1])
    led = lead_from(paths, sources)[:MOST_PATHS]
    stated = state_paths(led, graph, asked.snapshot)
    starts: dict[str, list[StatedPath]] = defaultdict(list)
    for row in sources:
        own_id = graph.name_entity(row)
        starts[own_id].append(StatedPath((asked.snapshot.names[own_id],), (), ()))
    for path, words in zip(led, stated, strict=True):
        end = graph.name_entity(path.entities[-1])
        if path.entities[-1] in rows and len(starts[end]) < MOST_STARTS:
            starts[end].append(words)
    chains = list(stated)
    for fact in branches:
        for key in (fact.head_id, fact.tail_id):
            for start in starts.get(key or "", ()):
                chain = go_on(start, key or "", fact)
                if len({normalise_name(name) for name in chain.names}) == len(chain.names):
                    chains.append(chain)
    return rate_open(asked, chains)
