"""Knowledge Solver: from head to tail over the graph until an option is met (KSL, Algorithm 1).

The subgraph holds all entities on paths of at most `hops` steps between the question and its
options. A walk starts at one entity of the question; each round offers the tails of the current
head, and the chosen one is the next head. The walk is the explanation.

Beyond the paper: what is both in the question and an option starts no walk (line 13 would end it at
once); no entity is visited twice; a question without options is walked over all that is within
`hops` steps of it, and the walk says itself where it stops.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kpyramid.errors import InputError
from kpyramid.llm.types import Asker, Failure
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.anchors import find_anchors, link_names
from kpyramid.query.chains import RatedPath, rate_paths
from kpyramid.query.decisions import Decisions
from kpyramid.query.paths import (
    MOST_NEIGHBOURS,
    Path,
    StatedPath,
    find_paths,
    show_path,
    state_paths,
)
from kpyramid.query.types import Answer, Outcome, Step
from kpyramid.snapshot.adjacency import Adjacency

STARTS = ("hash", "all")


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Where a walk may go: rows of the question's entities, of those of options, and of all."""

    starts: tuple[int, ...]
    options: Mapping[int, str]
    nodes: frozenset[int]


@dataclass(slots=True)
class Walk:
    """A walk so far: its path, why it ended, the option met, and what the model took."""

    path: Path
    ended: str = ""
    option: str = ""
    calls: int = 0
    tokens: int = 0
    rated: RatedPath | None = None


def ask_ksl(
    asked: QuestionAnalysis,
    decisions: Decisions,
    *,
    hops: int = 2,
    rounds: int = 5,
    start: str = "hash",
) -> Answer:
    """The option that a walk from an entity of the question reaches, with the walk.

    `hops`: k of the subgraph (5.2: 2); `rounds`: N_r (5.3: 5). `start`: the paper draws an entity
    at random; `hash` draws it by the question's words, `all` walks from each and takes the option
    that most walks reach, which multiplies the calls.

    Raises:
        InputError: `start` is unknown.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if start not in STARTS:
        raise InputError(f"start = {start!r}: a walk starts by {' or '.join(STARTS)}")
    graph = Adjacency(asked.snapshot)
    found = find_subgraph(asked, graph, hops)
    if isinstance(found, str):
        return Answer("", (), (), None, (), (Step("graph", Outcome.EMPTY, found),))
    drawn = found.starts if start == "all" else (draw_start(asked.text, found.starts),)
    walks = [walk(asked, graph, found, row, rounds, decisions.walker) for row in drawn]
    return conclude(asked, graph, walks)


def find_subgraph(asked: QuestionAnalysis, graph: Adjacency, hops: int) -> Subgraph | str:
    """The entities on paths between the question and its options (5.2); why there is none."""
    named = find_anchors([asked.text], asked.snapshot)
    of_question = [row for key in named.entities if (row := graph.find(key)) is not None]
    if not of_question:
        return "the question names no entity of the graph"
    options: dict[int, str] = {}
    for candidate in asked.candidates:
        for key in link_names([candidate], asked.snapshot, similar=None).entities:
            if (row := graph.find(key)) is not None:
                options.setdefault(row, candidate)
    starts = tuple(row for row in of_question if row not in options)
    if not asked.candidates:
        return Subgraph(tuple(of_question), {}, reach(graph, of_question, hops))
    if not options:
        return "no option is an entity of the graph"
    if not starts:
        return "the question names only its options"
    ends = set(starts), set(options)
    paths = [
        path
        for path in find_paths(graph, [*starts, *options], hops)
        if {path.entities[0], path.entities[-1]} & ends[0]
        and {path.entities[0], path.entities[-1]} & ends[1]
    ]
    nodes = frozenset(row for path in paths for row in path.entities)
    if not nodes:
        return f"no path of at most {hops} steps joins the question and an option"
    return Subgraph(tuple(row for row in starts if row in nodes), options, nodes)


def reach(graph: Adjacency, starts: Sequence[int], hops: int) -> frozenset[int]:
    """What is within so many steps; hubs are not passed through."""
    seen = last = set(starts)
    for step in range(hops):
        rows = np.array(sorted(last), np.int64)
        if step:
            rows = rows[graph.count_facts(rows) <= MOST_NEIGHBOURS]
        last = set(graph.leave(rows, MOST_NEIGHBOURS).target.tolist()) - seen
        seen = seen | last
    return frozenset(seen)


def draw_start(text: str, starts: Sequence[int]) -> int:
    """The entity that a walk starts from: drawn by the question's words, so always the same."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return starts[int.from_bytes(digest, "little") % len(starts)]


def walk(
    asked: QuestionAnalysis,
    graph: Adjacency,
    within: Subgraph,
    start: int,
    rounds: int,
    asker: Asker | None,
) -> Walk:
    """The walk from one entity: at most `rounds` choices (Algorithm 1, lines 12 to 22)."""
    done = Walk(Path((start,), (), ()))
    for _ in range(rounds):
        ways = list_tails(graph, within, done.path)
        if not ways:
            done.ended = "nothing new is linked to the last entity"
            break
        chosen = _choose(asked, graph, within, done, ways, asker)
        if chosen is None:
            break
        done.path = ways[chosen]
        if (option := within.options.get(done.path.entities[-1])) is not None:
            done.option, done.ended = option, "an option is reached"
            break
    else:
        done.ended = f"no option within {rounds} rounds" if within.options else "the last round"
    return done


def list_tails(graph: Adjacency, within: Subgraph, path: Path) -> list[Path]:
    """The path with one step more, to each entity of the subgraph that it has not met."""
    edges = graph.leave(np.array([path.entities[-1]], np.int64), MOST_NEIGHBOURS)
    columns = edges.fact.tolist(), edges.target.tolist(), edges.forward.tolist()
    return [
        Path((*path.entities, target), (*path.facts, fact), (*path.forward, forward))
        for fact, target, forward in zip(*columns, strict=True)
        if target in within.nodes and target not in path.entities
    ]


def _choose(
    asked: QuestionAnalysis,
    graph: Adjacency,
    within: Subgraph,
    done: Walk,
    ways: Sequence[Path],
    asker: Asker | None,
) -> int | None:
    """The place of the next step; None where the walk ends, with the reason noted.

    Rules take the way whose relations the question asks for. Without options they stop where the
    walk so far answers better than with any further step.
    """
    stated = state_paths(ways, graph, asked.snapshot)
    may_stop = not within.options and bool(done.path.facts)
    if asker is None:
        rated = {id(one.path): one for one in rate_paths(asked, stated)}
        best = max(range(len(stated)), key=lambda at: (rated[id(stated[at])].chance, -at))
        if may_stop and done.rated and done.rated.chance >= rated[id(stated[best])].chance:
            done.ended = "no further step answers better"
            return None
        done.rated = rated[id(stated[best])]
        return best
    from kpyramid.query.model.ksl import choose_by_model  # rules need no prompts

    history = _show_steps(state_paths([done.path], graph, asked.snapshot)[0])
    tails = [_show_steps(path)[-1] for path in stated]
    head = stated[0].names[-2]
    reply = choose_by_model(asked.question, history, head, tails, asker, may_stop=may_stop)
    done.calls += reply.calls
    done.tokens += reply.tokens
    if isinstance(reply.value, Failure):
        done.ended = f"the model chose no tail: {reply.value.kind}: {reply.value.detail}"
        return None
    if reply.value is None:
        done.ended = "the model stops here"
    return reply.value


def _show_steps(path: StatedPath) -> list[str]:
    """Each step in words; "is ... of" marks a relation read from tail to head."""
    return [
        f"{head} – {fact.relation} → {tail}"
        if ahead
        else f"{head} – is {fact.relation} of → {tail}"
        for head, tail, fact, ahead in zip(
            path.names, path.names[1:], path.facts, path.forward, strict=False
        )
    ]


def conclude(asked: QuestionAnalysis, graph: Adjacency, walks: Sequence[Walk]) -> Answer:
    """The option that most walks reach; without options the end of the surest walk."""
    stated = state_paths([done.path for done in walks], graph, asked.snapshot)
    chances = [_rate(asked, path) for path in stated]
    order = sorted(range(len(walks)), key=lambda at: (-chances[at], stated[at].statement))
    votes = Counter(done.option for done in walks if done.option)
    if votes:
        sums = {
            o: sum(c for c, w in zip(chances, walks, strict=True) if w.option == o) for o in votes
        }
        value = min(votes, key=lambda option: (-votes[option], -sums[option], option))
        chosen = [at for at in order if walks[at].option == value]
    else:
        chosen = [at for at in order if walks[at].path.facts and not asked.candidates][:1]
        value = stated[chosen[0]].names[-1] if chosen else ""
    shown = [at for at in [*chosen, *(a for a in order if a not in chosen)] if stated[at].facts]
    items = tuple(show_path(stated[at], asked.snapshot, round(chances[at], 6)) for at in shown)
    sure = round(chances[chosen[0]], 4) if chosen else 0.0
    trace = tuple(
        Step(
            "graph",
            Outcome.ANSWERED if at in chosen else Outcome.INSUFFICIENT,
            f"walked {len(walks[at].path.facts)} steps from {stated[at].names[0]}: "
            f"{walks[at].ended}",
            (stated[at].statement,),
            round(chances[at], 4),
        )
        for at in [*chosen, *(a for a in order if a not in chosen)]
    )
    return Answer(
        value,
        (value,) if value else (),
        items,
        "graph" if items else None,
        items[0].evidence if chosen else (),
        trace,
        confidence=sure,
        calls=sum(done.calls for done in walks),
        tokens=sum(done.tokens for done in walks),
    )


def _rate(asked: QuestionAnalysis, path: StatedPath) -> float:
    return rate_paths(asked, [path])[0].chance if path.facts else 0.0
