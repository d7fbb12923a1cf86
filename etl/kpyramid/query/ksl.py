"""Knowledge Solver: from head to tail over the graph until an option is met (KSL, Algorithm 1).

The subgraph has all entities on paths of at most `hops` steps between the question and its
options. A walk starts at an entity of the question; each round offers the tails of the current
head, and the chosen tail is the next head. The walk is the explanation.

Beyond the paper: an entity of the question that is also an option starts no walk (line 13 would end
it at once); no entity is visited twice; at the limit of rounds there is no answer (line 23 would
return an entity that is no option); for a question without options the walk covers all entities
within `hops` steps of it, and decides where it stops.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpyramid.llm.task import Asker, Failure
from kpyramid.numerics.arrays import Integers
from kpyramid.query import paths as kit
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.types import Answer, Outcome, Reading, Step
from kpyramid.snapshot.adjacency import Adjacency
from kpyramid.snapshot.search import hash_name

MOST_TAILS = 100
"""Most tails that a round offers: options first, then by the keys of their facts."""


@dataclass(frozen=True, slots=True, eq=False)
class Subgraph:
    """Rows of the entities of a walk: the question's, those of its options, and all."""

    graph: Adjacency
    starts: tuple[int, ...]
    options: Mapping[int, str]
    nodes: Integers


@dataclass(slots=True)
class Walk:
    """A walk so far, why it ended, the option reached, and by rules its chance."""

    path: kit.Path
    ended: str = ""
    option: str = ""
    has_failed: bool = False
    chance: float = 0.0


def ask_ksl(
    asked: QuestionAnalysis, decisions: Decisions, *, hops: int = 2, rounds: int = 5
) -> Answer:
    """The option that a walk from an entity of the question reaches, with the walk.

    `hops`: k of the subgraph (5.2: 2); `rounds`: N_r (5.3: 5), each one call of the model.
    The paper draws the entity at random; here a hash of the question draws it.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    within = find_subgraph(asked, hops)
    if isinstance(within, str):
        return Answer(trace=(Step("graph", Outcome.EMPTY, within),))
    row = draw(asked.text, within.starts)
    return conclude(asked, within, walk(asked, within, row, rounds, decisions.walker))


def find_subgraph(asked: QuestionAnalysis, hops: int) -> Subgraph | str:
    """The subgraph between the question and its options (5.2), or why there is none."""
    graph = Adjacency(asked.snapshot)
    named = [*graph.locate(asked.linked.entities).values()]
    if not named:
        return "the question names no entity of the graph"
    options: dict[int, str] = {}
    for candidate in asked.candidates:
        linked = kit.link_names([candidate], asked.snapshot, similar=None)
        for row in graph.locate(linked.entities).values():
            options.setdefault(row, candidate)
    if asked.candidates and not options:
        return "no option is an entity of the graph"
    starts = [row for row in named if row not in options]
    if not starts:
        return "the question names only its options"
    nodes = kit.reach(graph, starts, hops, sys.maxsize)
    if options:
        far = kit.reach(graph, options, hops, sys.maxsize)
        nodes = {row: near for row, near in nodes.items() if near + far.get(row, hops + 1) <= hops}
        if not nodes:
            return f"no path of at most {hops} steps joins the question and an option"
    within = Subgraph(graph, (), options, np.array(sorted(nodes), np.int64))
    joined = [
        row for row in starts if row in nodes and list_tails(within, kit.Path((row,), (), ()))
    ]
    if not joined:
        return "no fact joins what the question names with anything"
    return replace(within, starts=tuple(joined))


def draw(text: str, rows: Sequence[int]) -> int:
    """One of some rows, drawn by the hash of a text, so always the same."""
    return rows[hash_name(text) % len(rows)]


def walk(
    asked: QuestionAnalysis, within: Subgraph, start: int, rounds: int, asker: Asker | None
) -> Walk:
    """The walk from an entity: at most `rounds` choices (Algorithm 1, lines 12 to 22)."""
    done = Walk(kit.Path((start,), (), ()))
    for _ in range(rounds):
        ways = list_tails(within, done.path)
        if not ways:
            done.ended = "nothing new is linked to the last entity"
            break
        chosen = _choose(asked, within, done, ways, asker)
        if chosen is None:
            break
        done.path = ways[chosen]
        if (option := within.options.get(done.path.entities[-1])) is not None:
            done.option, done.ended = option, "an option is reached"
            break
    else:
        done.ended = f"{'no option within ' if within.options else ''}{rounds} rounds"
    return done


def list_tails(within: Subgraph, path: kit.Path) -> list[kit.Path]:
    """The path extended by each step to an unvisited entity of the subgraph (line 1)."""
    edges = within.graph.leave(np.array([path.entities[-1]], np.int64), sys.maxsize)
    inside = np.isin(edges.target, within.nodes) & ~np.isin(edges.target, path.entities)
    places = np.flatnonzero(inside)
    if len(places) > MOST_TAILS:
        others = ~np.isin(edges.target[places], list(within.options))
        places = np.sort(places[np.argsort(others, kind="stable")[:MOST_TAILS]])
    edges = edges.take(places)
    return [
        kit.Path((*path.entities, target), (*path.facts, fact), (*path.forward, forward))
        for fact, target, forward in edges.list_steps()
    ]


def _choose(
    asked: QuestionAnalysis,
    within: Subgraph,
    done: Walk,
    ways: Sequence[kit.Path],
    asker: Asker | None,
) -> int | None:
    """The index of the next step; None where the walk ends, with the reason noted.

    Rules take the way nearest to the question; without options they stop where none is nearer.
    """
    stated = kit.state_paths(ways, within.graph, asked.snapshot)
    may_stop = not within.options and bool(done.path.facts)
    if asker is None:
        best = kit.rate_paths(asked, stated)[0]
        if may_stop and done.chance >= best.chance:
            done.ended = "no further step is nearer to the question"
            return None
        done.chance = best.chance
        return next(index for index, path in enumerate(stated) if path is best.path)
    from kpyramid.query.model.walks import choose_step  # rules need no prompts

    chosen = choose_step(asked.question, stated, asker, may_stop=may_stop)
    if isinstance(chosen, Failure):
        done.has_failed = True
        done.ended = f"the model chose no tail: {chosen}"
        return None
    if chosen is None:
        done.ended = "the model stops here"
    return chosen


def conclude(asked: QuestionAnalysis, within: Subgraph, done: Walk) -> Answer:
    """The answer at the end of a walk, with the walk as its explanation."""
    stated = kit.state_paths([done.path], within.graph, asked.snapshot)[0]
    rated = kit.rate_paths(asked, [stated] if stated.facts else [])
    if not within.options:
        rated = kit.choose_fitting(asked, rated)
    best = next(iter(rated), None)
    chance = round(best.chance, 4) if best else 0.0
    value = done.option
    if best and not value and not asked.candidates and not done.has_failed:
        value = best.value
    items = tuple(kit.show_path(stated, asked.snapshot, chance) for _ in stated.facts[:1])
    places = items[0].evidence if items and value else ()
    read = Reading(value, (value,) if value else (), chance if value else 0.0, places)
    outcome = Outcome.ANSWERED if value else Outcome.INSUFFICIENT
    why = f"from {stated.names[0]} to {stated.names[-1]}: {done.ended}"
    shown = tuple(item.text for item in items)
    return read.give(items, "graph" if items else None, Step("graph", outcome, why, shown, chance))
