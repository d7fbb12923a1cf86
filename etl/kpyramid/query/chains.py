"""Chains rated against a question, and read: what a walk over the graph hands to a reader."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.facts import match_candidates
from kpyramid.query.paths import MOST_NEIGHBOURS, Path, StatedPath, show_path, state_paths
from kpyramid.query.types import Answer, Outcome, Reading, Step
from kpyramid.query.wording import rate_prefix, rate_steps
from kpyramid.snapshot.adjacency import Adjacency

DEPTH = 3
WIDTH = 30
"""Steps of a walk, and chains that are kept at each: a person has some five facts of one relation,
so that two such steps make 25 chains that are equally likely."""
MOST_FOLLOWED = 200
"""Chains of each depth that are rated as answers."""
MOST_NEAR, UNSAID = 50, 0.2
"""Paths that are embedded where the question says none of their relations, and the most that the
chance of such a path is: its cosine says that it is about the same."""


@dataclass(frozen=True, slots=True)
class RatedPath:
    """A path, the value that it would give, and the chance that this answers the question.

    `choices` are the candidates that the value is.
    """

    path: StatedPath
    value: str
    chance: float
    choices: tuple[str, ...] = ()


def rate_paths(asked: QuestionAnalysis, paths: Sequence[StatedPath]) -> list[RatedPath]:
    """Paths that leave an entity of the question, with the chance of each, best first.

    The value of a path is its last entity. See `kpyramid.query.wording` for how a chain is rated;
    where the words of the question say nothing of any, the nearest statement comes first.
    """
    if not paths:
        return []
    chances = [
        rate_steps(asked, _name_start(path), list(zip(path.relations, path.forward, strict=True)))
        for path in paths
    ]
    if not any(chances):
        vectors = asked.snapshot.embed_all([path.statement for path in paths[:MOST_NEAR]])
        near = UNSAID * np.maximum(vectors @ asked.vector, 0.0)
        chances = [*near.tolist(), *[0.0] * (len(paths) - len(near))]
    rated = [
        RatedPath(path, path.names[-1], round(chance, 6), _choose(path.names[-1], asked))
        for path, chance in zip(paths, chances, strict=True)
    ]
    return sorted(rated, key=_rank)


def walk_from(
    asked: QuestionAnalysis,
    graph: Adjacency,
    anchors: Sequence[int],
    depth: int = DEPTH,
    width: int = WIDTH,
) -> list[RatedPath]:
    """The chains of at most `depth` steps that leave some entities, rated, best first (WTS, 3.1).

    Of each depth the best `width` are kept and gone on from: those whose steps so far are said in
    the question, nearest to the named entity first. A walk may come back, also by the same fact:
    the mother of X's son may be X, and one fact says whose son he is. Hubs are ends only.
    """
    last: list[tuple[Path, _Steps]]
    last = [(Path((row,), (), ()), ()) for row in dict.fromkeys(anchors)]
    found: list[tuple[float, Path]] = []
    for _ in range(depth):
        ahead = _go_on(asked, graph, last)
        ahead.sort(key=lambda one: (-one[0], one[2].entities, one[2].facts))
        found += [(whole, path) for _, whole, path, _ in ahead[:MOST_FOLLOWED]]
        last = [(path, steps) for _, _, path, steps in ahead[:width]]
    found.sort(key=lambda one: (-one[0], len(one[1].facts), one[1].entities, one[1].facts))
    stated = state_paths([path for _, path in found[:width]], graph, asked.snapshot)
    rated = [
        RatedPath(path, path.names[-1], round(whole, 6), _choose(path.names[-1], asked))
        for (whole, _), path in zip(found, stated, strict=False)
    ]
    return sorted(rated, key=_rank)


_Steps = tuple[tuple[str, bool], ...]


def _go_on(
    asked: QuestionAnalysis, graph: Adjacency, last: Sequence[tuple[Path, _Steps]]
) -> list[tuple[float, float, Path, _Steps]]:
    """Chains one step longer: chance so far, chance as a whole, the chain, its steps in words."""
    ends = np.array([path.entities[-1] for path, _ in last], np.int64)
    passed = [
        place
        for place, many in enumerate(graph.count_facts(ends).tolist() if len(ends) else ())
        if many <= MOST_NEIGHBOURS or not last[place][1]
    ]
    if not passed:
        return []
    edges = graph.leave(ends[passed], MOST_NEIGHBOURS)
    found = []
    rows = zip(
        edges.source.tolist(),
        edges.fact.tolist(),
        edges.target.tolist(),
        edges.forward.tolist(),
        strict=True,
    )
    for source, fact, target, ahead in rows:
        path, steps = last[passed[source]]
        longer = (*steps, (graph.word_fact(fact), ahead))
        start = graph.name_entity(path.entities[0])
        so_far, whole = rate_prefix(asked, start, longer)
        entities = (*path.entities, target)
        way = Path(entities, (*path.facts, fact), (*path.forward, ahead))
        found.append((so_far, whole, way, longer))
    return found


def _name_start(path: StatedPath) -> str:
    """The id of the entity that a path leaves."""
    first = path.facts[0]
    return first.head_id if path.forward[0] else first.tail_id or ""


def _rank(one: RatedPath) -> tuple[float | str, ...]:
    """Smaller is better: of chains that are as likely the shorter, then the surer one."""
    path = one.path
    return -one.chance, len(path.facts), -path.confidence, path.statement


def _choose(value: str, asked: QuestionAnalysis) -> tuple[str, ...]:
    return match_candidates(value, asked.candidates) if asked.candidates else ()


def read_paths(
    asked: QuestionAnalysis,
    rated: Sequence[RatedPath],
    which: str,
    decisions: Decisions,
    *,
    sufficient: float = 0.0,
) -> Answer:
    """The answer that a reader finds in paths, best first, with one step of the graph in its trace.

    Rules give the value of the best one where its chance is `sufficient`; a model reads them all.
    `which` says which paths they are.
    """
    items = tuple(show_path(one.path, asked.snapshot, round(one.chance, 6)) for one in rated)
    if not items:
        return Answer("", (), (), None, (), (Step("graph", Outcome.EMPTY, f"no path {which}"),))
    usable = [at for at, one in enumerate(rated) if one.choices or not asked.candidates]
    found = Reading("", (), 0.0, (), reason="no path gives one of the options")
    if usable and rated[usable[0]].chance >= sufficient:
        best, item = rated[usable[0]], items[usable[0]]
        choices = best.choices or (best.value,)
        found = Reading("; ".join(choices), choices, round(best.chance, 4), item.evidence)
    reading = decisions.read(asked, items, found)
    given = bool(reading.text or reading.choices)
    reason = f"{len(items)} paths {which}, the best of {rated[0].chance:.2f}"
    reason = reason if given else f"{reason}; {reading.reason or 'none of them answers it'}"
    outcome = Outcome.ANSWERED if given else Outcome.INSUFFICIENT
    step = Step("graph", outcome, reason, tuple(item.text for item in items), reading.confidence)
    places = tuple(dict.fromkeys(place for item in items for place in item.evidence))
    return Answer(
        reading.text,
        reading.choices,
        items,
        "graph",
        reading.evidence or places,
        (step,),
        confidence=reading.confidence,
        calls=reading.calls,
        tokens=reading.tokens,
        logprobs=reading.logprobs,
    )


def charge(answer: Answer, calls: int, tokens: int) -> Answer:
    """An answer with the calls and tokens of the walk that led to it."""
    return replace(answer, calls=answer.calls + calls, tokens=answer.tokens + tokens)
