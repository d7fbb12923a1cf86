"""The kit of the strategies that walk: anchors, simple paths between entities, and PageRank.

WTS (3.1), RoK (4.1), HyKGE (3.2) and Knowledge Solver start from entities that a text names; RoK
and HyKGE join them by paths, which `chains` rates against a question and reads.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Literal

import numpy as np

from kpyramid.documents.words import list_plain_words
from kpyramid.llm.task import Failure
from kpyramid.numerics.arrays import Integers
from kpyramid.query.analysis import NUMERIC, QuestionAnalysis, link_text
from kpyramid.query.facts import state_facts
from kpyramid.query.passages import find_passages
from kpyramid.query.types import Answer, Item, Outcome, Step
from kpyramid.snapshot.adjacency import Adjacency
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import LITERAL, NearFact

# Anchors: the entities of the graph from which a walk starts, by the name, then by its vector.

SIMILAR = 0.7
"""Cosine from which the nearest entity is what a name means that no entity has (HyKGE's delta).

The paper's .7 is GTE's scale; fitted anew to MiniLM it stays. Of 90 further names of entities in
four built graphs .87 lie so near to their entity's main name and .43 to another's, some of
these being other spellings of the same; no cut from .5 to .85 parts the two better (.7: .434,
.75: .422, .65: .378, .8: .356), and of what is linked .68 are right at any.
"""
PASSAGES = 5
"""Passages that stand for a hypothesis where no model writes one."""

_SHOWN = 5
_NO_THING = NUMERIC | {"NOUN", LITERAL}


@dataclass(frozen=True, slots=True)
class Anchors:
    """Entities by their ids, each once, in the order of the names that mean them.

    `unknown`: the names that mean none.
    """

    entities: tuple[str, ...]
    names: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    def tell(self, what: str, snapshot: Snapshot) -> tuple[str, ...]:
        """What an answer tells of them: their names, and those that mean none."""
        said = f"{what}: {list_some([snapshot.names[entity] for entity in self.entities])}"
        return (said, f"not in the graph: {list_some(self.unknown)}") if self.unknown else (said,)


def list_some(names: Sequence[str]) -> str:
    """The first of some names, each once, and how many more there are."""
    own = list(dict.fromkeys(names))
    more = f" and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
    return f"{', '.join(own[:_SHOWN])}{more}" or "none"


def link_names(
    names: Iterable[str], snapshot: Snapshot, similar: float | None = SIMILAR
) -> Anchors:
    """The entities that some names mean: by the name, else the nearest by vector.

    A name that several entities have means all of them. Without `similar` no vector is asked.
    """
    index = snapshot.entities_by_name()
    found: dict[str, None] = {}
    known: list[str] = []
    unknown: list[str] = []
    for name in dict.fromkeys(names):
        ids: Sequence[str] = index.get(join_words(name), ())
        if not ids and similar is not None:
            near = snapshot.neighbours(name, 1, "entities")
            ids = [key for key, _, cosine in near if cosine >= similar]
        found.update(dict.fromkeys(ids))
        (known if ids else unknown).append(name)
    return Anchors(tuple(found), tuple(known), tuple(unknown))


def choose_anchors(
    own: Iterable[str],
    supposed: Iterable[str],
    snapshot: Snapshot,
    most: int,
    *,
    names: Iterable[str] = (),
    similar: float = SIMILAR,
) -> Anchors:
    """The entities that texts name by names that the snapshot knows, at most `most` of them.

    First those of the question's `own` texts in their order; then those that most of the
    `supposed` texts name, of equally many those of an earlier, nearer one: of the latter no dates,
    numbers and common nouns, as anything is joined by them. Last those that further `names` mean,
    by the name or by vector.
    """
    found: dict[str, str] = {}
    for text in own:
        found |= {e: n for e, n in _name_entities(text, snapshot).items() if e not in found}
    named = [_name_entities(text, snapshot) for text in supposed]
    counts = Counter(e for each in named for e in each if snapshot.types[e] not in _NO_THING)
    for entity, _ in counts.most_common():  # of equally many the first
        found.setdefault(entity, next(each[entity] for each in named if entity in each))
    known = {name.casefold() for entity, name in [*found.items()][:most]}
    further = [name for name in dict.fromkeys(names) if name.casefold() not in known][: 2 * most]
    linked = link_names(further, snapshot, similar)
    for entity in linked.entities:
        found.setdefault(entity, snapshot.names[entity])
    chosen = list(found)[:most]
    called = tuple(dict.fromkeys(found[entity] for entity in chosen))
    return Anchors(tuple(chosen), called, linked.unknown)


def _name_entities(text: str, snapshot: Snapshot) -> dict[str, str]:
    """The entities that a text names, each with its first name in the text."""
    index = snapshot.entities_by_name()
    found: dict[str, str] = {}
    for name in link_text(text, snapshot).names:
        for entity in index.get(join_words(name), ()):
            found.setdefault(entity, name.rstrip("."))
    return found


# Hypotheses: a tentative answer (RoK, 4.1) or an exploration (HyKGE, 4.1.1).


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Texts that may answer a question, by a model or not, and what an answer tells of them."""

    texts: tuple[str, ...] = ()
    by_model: bool = False
    recognised: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()

    def precede(self, answer: Answer, *recognised: str) -> Answer:
        """The answer that was found by it, which tells of it first."""
        said = (*self.recognised, *recognised, *answer.recognised)
        return replace(answer, recognised=said, trace=(*self.steps, *answer.trace))


def suppose(
    asked: QuestionAnalysis, what: str, ask: Callable[[], str | Failure] | None
) -> Hypothesis:
    """A model's hypothesis; where it gives none, or none is asked, the best passages.

    Pseudo-relevance feedback (Rocchio 1971): what they name is near to what the answer names.
    """
    steps: tuple[Step, ...] = ()
    if ask is not None:
        told = ask()
        if told and not isinstance(told, Failure):
            return Hypothesis((told,), True, (f"{what}: {' '.join(told.split())[:300]}",))
        steps = (explain_failure(what, told),)
    passages = find_passages(asked, PASSAGES)
    return Hypothesis(tuple(item.text for item in passages), steps=steps)


def explain_failure(what: str, told: object) -> Step:
    """The step of a model that did not give something, or gave nothing."""
    why = f"{told.kind}: {told.detail}" if isinstance(told, Failure) else "it is empty"
    return Step("model", Outcome.FAILED, f"the model gave no {what}: {why}")


# Paths.

MOST_NEIGHBOURS = 100
"""Hub cap: a node with more facts is not passed through, and left only by its surest ones. What has
more is a country or a field, by which anything is joined to anything."""
MOST_WALKS = 20_000
"""Walks from one entity that are followed; of more, those that come first."""
MOST_JOINED = 2_000
"""Ways to join walks of two entities to paths of one length that are tried; of more, the first.

Without it a dense part between eight entities makes 350,000 paths of five hops."""
MOST_PATHS = 500
"""Paths that are stated, the shortest first: each costs some 50 microseconds."""
_MOST_QUOTED = 10
"""Places of a fact of which the best is shown."""
_MOST_ROUNDS, _CONVERGED = 1000, 1e-12

Chain = Literal["path", "common tail", "common head"]
"""Kinds of chain by their arrows: `→ →` (path), `→ ←`, `← →`.

HyKGE (3.3) calls the second co-ancestor although what both lead to is below them, and the third
co-occurrence: we name them by what is common.
"""


@dataclass(frozen=True, slots=True)
class Path:
    """A simple path: rows of its entities, and the fact of each step with its direction."""

    entities: tuple[int, ...]
    facts: tuple[int, ...]
    forward: tuple[bool, ...]

    @property
    def chain(self) -> Chain | None:
        """The kind of chain that it is; None when its arrows turn more than once."""
        turns = [a for a, b in pairwise(self.forward) if a != b]
        if not turns:
            return "path"
        if len(turns) > 1:
            return None
        return "common tail" if turns[0] else "common head"

    def turn(self) -> "Path":
        """The same from its end."""
        arrows = tuple(not arrow for arrow in self.forward[::-1])
        return Path(self.entities[::-1], self.facts[::-1], arrows)


def find_paths(
    graph: Adjacency, anchors: Sequence[int], hops: int, *, most: int = MOST_PATHS
) -> list[Path]:
    """The simple paths of at most `hops` steps between every two of some entities.

    Shortest first, then by the rows of entities and facts. A path through a third anchor is one.
    Half of the steps is walked from either end, so that three hops cost what two cost.
    """
    rows = sorted(set(anchors))
    walks = {row: _walk(graph, row, (hops + 1) // 2) for row in rows}
    found: set[Path] = set()
    for length in range(1, hops + 1):
        halves = (length + 1) // 2, length // 2
        for first, second in combinations(rows, 2):
            found.update(_join(graph, walks[first][halves[0]], walks[second][halves[1]]))
            if halves[0] != halves[1]:  # the hub cap leaves more of the walks from the other end
                other = _join(graph, walks[second][halves[0]], walks[first][halves[1]])
                found.update(path.turn() for path in other)
        if len(found) >= most:
            break
    return sorted(found, key=lambda path: (len(path.facts), path.entities, path.facts))[:most]


@dataclass(frozen=True, slots=True)
class _Walks:
    """Walks of one length from one entity: a row each of entities (one more), facts, arrows."""

    entities: Integers
    facts: Integers
    forward: Integers


def _walk(graph: Adjacency, start: int, steps: int) -> list[_Walks]:
    """The walks from an entity by length from 0 on that meet no entity twice."""
    alone = np.array([[start]], np.int64)
    found = [_Walks(alone, np.zeros((1, 0), np.int64), np.zeros((1, 0), np.int64))]
    for step in range(steps):
        last = found[-1]
        ends = last.entities[:, -1]
        if step:  # hubs are not passed through
            passed = np.flatnonzero(graph.count_facts(ends) <= MOST_NEIGHBOURS)
        else:
            passed = np.arange(len(ends))
        edges = graph.leave(ends[passed], MOST_NEIGHBOURS)
        owner = passed[edges.source]
        fresh = (last.entities[owner] != edges.target[:, None]).all(axis=1)
        owner, edges = owner[fresh][:MOST_WALKS], edges.take(np.flatnonzero(fresh)[:MOST_WALKS])
        found.append(
            _Walks(
                np.column_stack([last.entities[owner], edges.target]),
                np.column_stack([last.facts[owner], edges.fact]),
                np.column_stack([last.forward[owner], edges.forward.astype(np.int64)]),
            )
        )
    return found


def _join(graph: Adjacency, ahead: _Walks, back: _Walks) -> list[Path]:
    """The simple paths that go on from the end of a walk along another one, turned.

    None where both meet in a hub; `MOST_JOINED` are tried.
    """
    ends, starts = ahead.entities[:, -1], back.entities[:, -1]
    if back.facts.shape[1]:
        ends = np.where(graph.count_facts(ends) <= MOST_NEIGHBOURS, ends, -1)
    order = np.argsort(starts, kind="stable")
    low = np.searchsorted(starts[order], ends, "left")
    sizes = np.searchsorted(starts[order], ends, "right") - low
    sizes = np.clip(MOST_JOINED - (np.cumsum(sizes) - sizes), 0, sizes)
    left = np.repeat(np.arange(len(ends)), sizes)
    within = np.arange(len(left)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    right = order[np.repeat(low, sizes) + within]
    entities = np.column_stack([ahead.entities[left], back.entities[right, -2::-1]])
    simple = (np.diff(np.sort(entities, axis=1)) > 0).all(axis=1)
    left, right = left[simple], right[simple]
    columns = (
        entities[simple],
        np.column_stack([ahead.facts[left], back.facts[right, ::-1]]),
        np.column_stack([ahead.forward[left] > 0, back.forward[right, ::-1] == 0]),
    )
    return [
        Path(tuple(nodes), tuple(facts), tuple(arrows))
        for nodes, facts, arrows in zip(*(each.tolist() for each in columns), strict=True)
    ]


def rank_entities(paths: Iterable[Path], damping: float = 0.85) -> dict[int, float]:
    """PageRank of the entities of some paths, each fact an edge both ways (RoK, 4.2.1).

    Sums to 1; converged to 1e-12. Empty without paths.
    """
    steps = {
        (min(ends), max(ends), fact)
        for path in paths
        for ends, fact in zip(pairwise(path.entities), path.facts, strict=True)
    }
    if not steps:
        return {}
    nodes, places = np.unique(np.array(sorted(steps), np.int64)[:, :2], return_inverse=True)
    one, other = places.reshape(-1, 2).T
    leaves, enters = np.concatenate([one, other]), np.concatenate([other, one])
    count = len(nodes)
    degrees = np.bincount(leaves, minlength=count)
    rank = np.full(count, 1 / count)
    for _ in range(_MOST_ROUNDS):
        shares = np.bincount(enters, (rank / degrees)[leaves], minlength=count)
        before, rank = rank, (1 - damping) / count + damping * shares
        if np.abs(rank - before).sum() < _CONVERGED:
            break
    return dict(zip(nodes.tolist(), rank.tolist(), strict=True))


# Paths in words, with the places that support each step.


@dataclass(frozen=True, slots=True)
class StatedPath:
    """A path in words: names of its entities, and the fact of each step with its direction."""

    names: tuple[str, ...]
    facts: tuple[NearFact, ...]
    forward: tuple[bool, ...]

    @property
    def statement(self) -> str:
        """The path with its arrows: `A – wrote → B ← is located in – C`."""
        words = [self.names[0]]
        for fact, ahead, name in zip(self.facts, self.forward, self.names[1:], strict=True):
            held = f" ({'; '.join(fact.qualifiers)})" if fact.qualifiers else ""
            said = f"{fact.relation}{held}"
            words += [f"– {said} →" if ahead else f"← {said} –", name]
        return " ".join(words)

    @property
    def steps(self) -> tuple[tuple[str, bool], ...]:
        """The relation of each step, and whether it is taken from head to tail."""
        return tuple((f.relation, ahead) for f, ahead in zip(self.facts, self.forward, strict=True))

    @property
    def start(self) -> str:
        """The id of the entity that it leaves."""
        first = self.facts[0]
        return first.head_id if self.forward[0] else first.tail_id or ""

    @property
    def confidence(self) -> float:
        """How surely its least sure fact was read."""
        return min(fact.confidence for fact in self.facts)


def state_paths(paths: Sequence[Path], graph: Adjacency, snapshot: Snapshot) -> list[StatedPath]:
    """Paths in words, in the order given."""
    rows = list(dict.fromkeys(fact for path in paths for fact in path.facts))
    keys = [graph.name_fact(row) for row in rows]
    facts = dict(zip(rows, state_facts(dict.fromkeys(keys, 0.0), snapshot), strict=True))
    names = snapshot.names
    return [
        StatedPath(
            tuple(names[graph.name_entity(row)] for row in path.entities),
            tuple(facts[row] for row in path.facts),
            path.forward,
        )
        for path in paths
    ]


def show_path(path: StatedPath, snapshot: Snapshot, score: float) -> Item:
    """A path as a piece of context.

    The first of its places are one for each step, in their order, so that one sentence may stand
    there twice; after them come the other places that support a step.
    """
    found = [snapshot.evidence(fact.condensed_id) for fact in path.facts]
    shown = [quote_fact(fact, places) for fact, places in zip(path.facts, found, strict=True)]
    others = dict.fromkeys(place for places in found for place in places if place not in shown)
    key = "+".join(fact.condensed_id for fact in path.facts)
    return Item(key, path.statement, "graph", score, (*shown, *others), path.confidence)


def quote_fact(fact: NearFact, places: Sequence[Evidence]) -> Evidence:
    """The sentence that has most of a fact's words; the shortest of equally good ones.

    What is seen of a fact has a place: a fact without one is hidden.
    """
    words = {*list_plain_words(fact.statement)}
    return min(
        dict.fromkeys(places[:_MOST_QUOTED]),
        key=lambda place: (-len(words & {*list_plain_words(place.text)}), len(place.text)),
    )
