"""The kit of the strategies that walk: anchors, simple paths between entities, and chains.

WTS (3.1), RoK (4.1), HyKGE (3.2) and Knowledge Solver start from entities that a text names; RoK
and HyKGE join them by paths. Chains are paths, and paths with a branch: a fact beside them about a
key entity (RoK, 4.2.2); they are rated against a question, and read.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations, islice, pairwise
from typing import Literal

import numpy as np

from kpyramid.documents.words import list_plain_words, normalise_name
from kpyramid.embeddings.port import Matrix
from kpyramid.graph.steps import Step as RelationStep
from kpyramid.graph.steps import StepRater
from kpyramid.llm.task import Asker, Failure
from kpyramid.numerics.arrays import Integers
from kpyramid.query.analysis import KIND_TYPES, NUMERIC, Links, QuestionAnalysis, link_text
from kpyramid.query.decisions import Decisions
from kpyramid.query.facts import (
    StatedPath,
    find_about,
    find_end,
    fit_kind,
    match_candidates,
    state_facts,
)
from kpyramid.query.lookup import MOST_VALUES, UNFOUNDED
from kpyramid.query.passages import find_passages
from kpyramid.query.types import Answer, Item, Outcome, Reading, Step, list_places
from kpyramid.snapshot.adjacency import Adjacency, Edges, spread, walk
from kpyramid.snapshot.adjacency import Step as GraphStep
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import LITERAL, NearFact

# Anchors: the entities of the graph from which a walk starts, by the name, then by its vector.

SIMILAR = 0.7
"""Least cosine to link a name that no entity has to the nearest entity (HyKGE's delta).

The paper's .7 is on GTE's scale; fitted to MiniLM it is the same. Of 90 alternative names of
entities in four built graphs .87 are at least as near to their entity's main name, and .43 to
another's, some of which are spellings of the same name. No threshold from .5 to .85 separates the
two better (.7: .434, .75: .422, .65: .378, .8: .356); .68 of the links are right at any.
"""
PASSAGES = 5
"""Passages that replace a hypothesis where no model writes one."""

_SHOWN = 5
_NO_THING = NUMERIC | {"NOUN", LITERAL}


def tell_links(linked: Links, what: str, snapshot: Snapshot) -> tuple[str, ...]:
    """The lines of an answer about its anchors: their names, and names without an entity."""
    text = f"{what}: {list_some([snapshot.names[entity] for entity in linked.entities])}"
    return (text, f"not in the graph: {list_some(linked.unknown)}") if linked.unknown else (text,)


def list_some(names: Sequence[str]) -> str:
    """The first distinct names, and the number of further ones."""
    distinct = list(dict.fromkeys(names))
    more = f" and {len(distinct) - _SHOWN} more" if len(distinct) > _SHOWN else ""
    return f"{', '.join(distinct[:_SHOWN])}{more}" or "none"


def link_names(names: Iterable[str], snapshot: Snapshot, similar: float | None = SIMILAR) -> Links:
    """The entities that some names denote: by the name, else the nearest by vector.

    A name that several entities have denotes all of them. Without `similar` no vectors are used.
    """
    index = snapshot.entities_by_name()
    entities: dict[str, None] = {}
    known: list[str] = []
    unknown: list[str] = []
    for name in dict.fromkeys(names):
        ids: Sequence[str] = index.get(join_words(name), ())
        if not ids and similar is not None:
            near = snapshot.neighbours(name, 1, "entities")
            ids = [key for key, _, cosine in near if cosine >= similar]
        entities.update(dict.fromkeys(ids))
        (known if ids else unknown).append(name)
    return Links(tuple(entities), tuple(known), tuple(unknown))


def choose_anchors(
    texts: Iterable[str],
    supposed: Iterable[str],
    snapshot: Snapshot,
    most: int,
    *,
    names: Iterable[str] = (),
    similar: float = SIMILAR,
) -> Links:
    """Up to `most` entities that texts name.

    First those of the question's `texts` in order; then those that most of the `supposed` texts
    name, in a tie those of an earlier text, without dates, numbers and common nouns, which join
    unrelated things. Last those that further `names` denote, by the name or by vector.
    """
    name_of: dict[str, str] = {}
    for text in texts:
        name_of |= {e: n for e, n in _name_entities(text, snapshot).items() if e not in name_of}
    named = [_name_entities(text, snapshot) for text in supposed]
    counts = Counter(e for each in named for e in each if snapshot.types[e] not in _NO_THING)
    for entity, _ in counts.most_common():  # ties in order of appearance
        name_of.setdefault(entity, next(each[entity] for each in named if entity in each))
    known = {name.casefold() for entity, name in [*name_of.items()][:most]}
    further = [name for name in dict.fromkeys(names) if name.casefold() not in known][: 2 * most]
    linked = link_names(further, snapshot, similar)
    for entity in linked.entities:
        name_of.setdefault(entity, snapshot.names[entity])
    chosen = list(name_of)[:most]
    called = tuple(dict.fromkeys(name_of[entity] for entity in chosen))
    return Links(tuple(chosen), called, linked.unknown)


def _name_entities(text: str, snapshot: Snapshot) -> dict[str, str]:
    """The entities that a text names, each with its first name in the text."""
    index = snapshot.entities_by_name()
    name_of: dict[str, str] = {}
    for name in link_text(text, snapshot).names:
        for entity in index.get(join_words(name), ()):
            name_of.setdefault(entity, name.rstrip("."))
    return name_of


# Hypotheses: a tentative answer (RoK, 4.1) or an exploration (HyKGE, 4.1.1).


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Texts that may answer a question, by a model or not, and an answer's lines about them."""

    texts: tuple[str, ...] = ()
    by_model: bool = False
    recognised: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()

    def precede(self, answer: Answer, *recognised: str) -> Answer:
        """An answer with the hypothesis first in `recognised` and `trace`."""
        recognised_all = (*self.recognised, *recognised, *answer.recognised)
        return replace(answer, recognised=recognised_all, trace=(*self.steps, *answer.trace))


def suppose(
    asked: QuestionAnalysis, what: str, strategy: str, domain: str, asker: Asker | None
) -> Hypothesis:
    """The hypothesis of a model; without a model, or where it fails, the best passages.

    Pseudo-relevance feedback (Rocchio 1971): these name entities near those of the answer.
    """
    steps: tuple[Step, ...] = ()
    if asker:
        from kpyramid.query.model.walks import suppose  # rules need no prompts

        text = suppose(strategy, asked.question, domain, asker)
        if text and not isinstance(text, Failure):
            return Hypothesis((text,), True, (f"{what}: {' '.join(text.split())[:300]}",))
        steps = (explain_failure(what, text),)
    passages = find_passages(asked, PASSAGES)
    return Hypothesis(tuple(item.text for item in passages), steps=steps)


def explain_failure(what: str, reply: object) -> Step:
    """The step of a model that failed, or whose reply is empty."""
    why = reply if isinstance(reply, Failure) else "it is empty"
    return Step("model", Outcome.FAILED, f"the model gave no {what}: {why}")


# Paths.

MOST_NEIGHBOURS = 100
"""Hub cap: a node with more facts is not passed through, and left only by its most certain ones. It
is a country or a field, which joins unrelated things."""
MOST_JOINED = 2_000
"""Most paths of a length between two entities; further ones are not walked.

Without it a dense part between eight entities makes 350,000 paths of five hops."""
MOST_PATHS = 500
"""Most paths that are stated, the shortest first: each costs about 50 microseconds."""
_MOST_QUOTED = 10
"""Places of a fact from which the best is chosen."""
_MOST_ROUNDS, _CONVERGED = 1000, 1e-12

Chain = Literal["path", "common tail", "common head"]
"""Kinds of chain by their arrows: `→ →` (path), `→ ←`, `← →`.

HyKGE (3.3) calls the second co-ancestor, although the common entity is below both, and the third
co-occurrence; we name them by the common end.
"""


@dataclass(frozen=True, slots=True)
class Path:
    """A simple path: rows of its entities, and the fact of each step with its direction."""

    entities: tuple[int, ...]
    facts: tuple[int, ...]
    forward: tuple[bool, ...]

    @property
    def chain(self) -> Chain | None:
        """The kind of chain; None if its arrows turn more than once."""
        turns = [a for a, b in pairwise(self.forward) if a != b]
        if not turns:
            return "path"
        if len(turns) > 1:
            return None
        return "common tail" if turns[0] else "common head"

    def turn(self) -> "Path":
        """The same path from its end."""
        arrows = tuple(not arrow for arrow in self.forward[::-1])
        return Path(self.entities[::-1], self.facts[::-1], arrows)


def find_paths(
    graph: Adjacency, anchors: Sequence[int], hops: int, *, most: int = MOST_PATHS
) -> list[Path]:
    """The simple paths of at most `hops` steps between every two of some entities.

    Shortest first, then by the rows of entities and facts. Paths through a third anchor count too.
    """
    rows = sorted(set(anchors))
    near = {row: reach(graph, [row], hops - 1, MOST_NEIGHBOURS) for row in rows}
    sizes = dict(zip(rows, graph.count_facts(np.array(rows, np.int64)).tolist(), strict=True))

    @cache
    def list_steps(row: int, begins: bool) -> list[GraphStep]:
        alone = np.array([row], np.int64)
        is_passed = begins or graph.count_facts(alone)[0] <= MOST_NEIGHBOURS
        return graph.leave(alone, MOST_NEIGHBOURS).list_steps() if is_passed else []

    def leave(start: int, row: int) -> list[GraphStep]:
        return list_steps(row, row == start)

    paths: list[Path] = []
    for length in range(1, hops + 1):
        for pair in combinations(rows, 2):
            start, end = sorted(pair, key=sizes.__getitem__)  # a hub has only its first facts
            for steps in islice(walk(partial(leave, start), start, length, near[end]), MOST_JOINED):
                facts, targets, arrows = zip(*steps, strict=True)
                path = Path((start, *targets), facts, arrows)
                paths.append(path if start == pair[0] else path.turn())
        if len(paths) >= most:
            break
    return sorted(paths, key=lambda path: (len(path.facts), path.entities, path.facts))[:most]


def reach(graph: Adjacency, starts: Iterable[int], hops: int, most: int) -> dict[int, int]:
    """The entities within `hops` steps, with the least number of steps; none beyond hubs.

    `most`: facts of an entity that are followed, the most certain first.
    """
    begun = [*starts]

    def leave(rows: Integers) -> Edges:
        passed = np.isin(rows, begun) | (graph.count_facts(rows) <= MOST_NEIGHBOURS)
        return graph.leave(rows[passed], most)

    return spread(begun, hops, leave)


def rank_entities(paths: Iterable[Path], damping: float = 0.85) -> dict[int, float]:
    """PageRank of the entities of some paths, each fact an undirected edge (RoK, 4.2.1).

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
    left, right = places.reshape(-1, 2).T
    leaves, enters = np.concatenate([left, right]), np.concatenate([right, left])
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

    Its first places are one per step, in order, so that a sentence may occur twice; the other
    places that support a step follow.
    """
    evidence = [snapshot.evidence(fact.condensed_id) for fact in path.facts]
    shown = [quote_fact(fact, places) for fact, places in zip(path.facts, evidence, strict=True)]
    others = dict.fromkeys(place for places in evidence for place in places if place not in shown)
    key = "+".join(fact.condensed_id for fact in path.facts)
    return Item(key, path.statement, "graph", score, (*shown, *others), path.confidence)


def quote_fact(fact: NearFact, places: Sequence[Evidence]) -> Evidence:
    """The sentence with most of a fact's words; in a tie the shortest.

    Every visible fact has a place: a fact without one is hidden.
    """
    words = {*list_plain_words(fact.statement)}
    return min(
        dict.fromkeys(places[:_MOST_QUOTED]),
        key=lambda place: (-len(words & {*list_plain_words(place.text)}), len(place.text)),
    )


# Chains: rated against a question.

MOST_NEAR, UNSAID = 50, 0.2
"""Most paths that are embedded where the question has no words of their relations, and the largest
chance of such a path: its cosine shows only that it is on the topic."""
MOST_RATED = 40
"""Most paths that are rated by words, which takes three milliseconds each."""
COMES_BACK = 0.3
"""Least chance of a chain that returns to a name of the question to be an answer; set by hand."""
UNCLEAR, MISTAKEN = 0.8, 0.5
"""Factors of a path's chance where its end may be of the kind asked for, or is a name of another
type, perhaps by mistake; set by hand."""


@dataclass(frozen=True, slots=True)
class RatedPath:
    """A path, its value, and the chance that the value answers the question.

    `choices`: the candidates that the value matches.
    """

    path: StatedPath
    value: str
    chance: float
    choices: tuple[str, ...] = ()


def lead_from(paths: Iterable[Path], sources: Collection[int]) -> list[Path]:
    """The parts of paths from a source entity to each following entity that is no source.

    Shortest first. Their ends are what a question that names the sources may ask for.
    """
    stretches: set[Path] = set()
    for path in (turned for each in paths for turned in (each, each.turn())):
        start = None
        for end, row in enumerate(path.entities):
            if row in sources:
                start = end
            elif start is not None:
                steps = slice(start, end)
                stretch = path.entities[start : end + 1]
                stretches.add(Path(stretch, path.facts[steps], path.forward[steps]))
    return sorted(stretches, key=lambda path: (len(path.facts), path.entities, path.facts))


def go_on(path: StatedPath, end_id: str, fact: NearFact) -> StatedPath:
    """A path with one more step: a fact about the entity at its end, possibly with a literal."""
    ahead = fact.head_id == end_id
    end = fact.tail if ahead else fact.head
    return StatedPath((*path.names, end), (*path.facts, fact), (*path.forward, ahead))


def compose_vectors(paths: Sequence[StatedPath], snapshot: Snapshot) -> Matrix:
    """A unit vector for each of some paths, shape (n, d): the sum of its facts', normalised."""
    keys = list(dict.fromkeys(fact.condensed_id for path in paths for fact in path.facts))
    place = {key: index for index, key in enumerate(keys)}
    known = snapshot.vectors_of(keys, "condensed")
    sums = np.stack([known[[place[f.condensed_id] for f in p.facts]].sum(axis=0) for p in paths])
    return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True), np.float32)


def shortlist(paths: Sequence[StatedPath], scores: Matrix, most: int) -> list[int]:
    """The indices of the `most` paths with the highest scores, best first, ties in order.

    Scoring the rest by words afterwards would cost milliseconds each.
    """
    return sorted(range(len(paths)), key=lambda i: (-round(float(scores[i]), 6), i))[:most]


def rate_open(asked: QuestionAnalysis, paths: Sequence[StatedPath]) -> list[RatedPath]:
    """The paths nearest to a question, rated by words, whose value can be the answer."""
    if not paths:
        return []
    near = shortlist(paths, compose_vectors(paths, asked.snapshot) @ asked.vector, MOST_RATED)
    return choose_fitting(asked, rate_paths(asked, [paths[index] for index in near]))


def choose_fitting(asked: QuestionAnalysis, rated: Iterable[RatedPath]) -> list[RatedPath]:
    """The rated paths whose value can be the answer, best first.

    Left out are numbers for names, names for numbers, and words of the question, except where a
    chain returns to them: the wife of X's husband is X. A name of another type than asked for is
    rated lower, since recognisers err, and so is one of unclear type. The best path to each value
    remains.
    """
    best: dict[str, RatedPath] = {}
    for p in rated:
        last, ahead = p.path.facts[-1], p.path.forward[-1]
        kind = last.tail_type if ahead else last.head_type
        fit = fit_kind(kind, p.value, asked.types)
        if kind == "ORG" and asked.types == KIND_TYPES["where"]:
            fit = 0.0  # where somebody works
        echoes = asked.holds(p.value) and (len(p.path.facts) == 1 or p.chance < COMES_BACK)
        mistaken = p.value[:1].isupper() and not asked.types & NUMERIC
        if p.choices or not (echoes or (fit < 0 and not mistaken)):
            weight = 1.0 if p.choices or fit > 0 else UNCLEAR
            weight = MISTAKEN if fit < 0 and not p.choices else weight
            known = best.get(p.value)
            if known is None or known.chance < weight * p.chance:
                best[p.value] = replace(p, chance=weight * p.chance)
    return sorted(best.values(), key=lambda p: (-p.chance, p.path.statement))


def rate_paths(asked: QuestionAnalysis, paths: Sequence[StatedPath]) -> list[RatedPath]:
    """Paths that start from an entity of the question, with the chance of each, best first.

    The value of a path is its last entity, or a time of its last fact. See `kpyramid.graph.steps`
    for the rating of chains; where the question has no words of any, the nearest statement comes
    first.
    """
    if not paths:
        return []
    chances = [rate_steps(asked, path.start, path.steps)[1] for path in paths]
    if not any(chances):
        vectors = asked.snapshot.embed_all([path.statement for path in paths[:MOST_NEAR]])
        near = UNSAID * np.maximum(vectors @ asked.vector, 0.0)
        chances = [*near.tolist(), *[0.0] * (len(paths) - len(near))]
    rated = [_give_value(path, chance, asked) for path, chance in zip(paths, chances, strict=True)]
    return sorted(rated, key=_rank)


def rate_steps(
    asked: QuestionAnalysis, start: str, steps: tuple[RelationStep, ...]
) -> tuple[float, float]:
    """The chance that the question begins with these steps from an entity, and that they are all.

    See `kpyramid.graph.steps`.
    """
    snapshot, names = asked.snapshot, asked.linked.names
    name = next((name for name in names if start in link_text(name, snapshot).entities), "")
    raters: dict[str, StepRater] = asked.__dict__.setdefault("step_raters", {})
    if name not in raters:

        def wants_head(relation: str) -> bool | None:
            return find_end(relation, asked.text, names)

        raters[name] = StepRater(asked.text, name, snapshot.embed_all, wants_head)
    return raters[name].rate(steps)


def _rank(rated: RatedPath) -> tuple[float | str, ...]:
    """Smaller is better: by chance, then by length, then by confidence."""
    path = rated.path
    return -rated.chance, len(path.facts), -path.confidence, path.statement


def _give_value(path: StatedPath, chance: float, asked: QuestionAnalysis) -> RatedPath:
    """A path with its value: its last entity; for "when" the time of its last fact.

    A value without a digit does not answer a question for a time or a number.
    """
    value = path.names[-1]
    if asked.types and asked.types <= NUMERIC:
        times = [q.partition(": ")[2] for q in path.facts[-1].qualifiers if q.startswith("time: ")]
        if times and asked.types <= KIND_TYPES["when"]:
            value = times[0]
        elif not any(character.isdigit() for character in value):
            chance = min(chance, UNFOUNDED)
    return RatedPath(path, value, round(chance, 6), match_candidates(value, asked.candidates))


def read_paths(
    asked: QuestionAnalysis,
    rated: Sequence[RatedPath],
    which: str,
    decisions: Decisions,
    *,
    context: Sequence[Item],
    missing: str = "",
) -> Answer:
    """A reader's answer from a context, with a step of the graph in its trace.

    Rules return the value of the best path, and those of paths with the same steps from the same
    name, which then come first in the context; a model reads the context.
    `which` describes the context, `missing` why there is none.
    """
    snapshot, items = asked.snapshot, tuple(context)
    if not items:
        return Answer(trace=(Step("graph", Outcome.EMPTY, missing or f"no path {which}"),))
    known = Reading(reason="no path gives one of the options")
    if not asked.candidates:
        known = replace(known, reason="no path leads to what can be the answer")
    best = next((p for p in rated if p.choices or not asked.candidates), None)
    if best:
        alike = [p for p in rated if _says_as_much(p, best)][:MOST_VALUES]
        cited = [show_path(p.path, snapshot, round(p.chance, 6)) for p in alike]
        choices = tuple(dict.fromkeys(c for p in alike for c in p.choices or (p.value,)))
        known = Reading("; ".join(choices), choices, best.chance, list_places(cited))
        keys = {item.key for item in cited}
        items = (*cited, *(each for each in items if each.key not in keys))
    reading = decisions.read(asked, tuple(context), known)
    items = items if reading is known else tuple(context)
    seen = f"{which}, the best of {rated[0].chance:.2f}" if rated else which
    step = reading.judge("graph", seen, tuple(item.text for item in items))
    return reading.give(items, "graph", step, places=list_places(items))


def _says_as_much(this: RatedPath, best: RatedPath) -> bool:
    """Whether a path takes the steps of the best path, with the same chance."""
    ways = [(p.names[0], p.steps) for p in (this.path, best.path)]
    return this is best or (ways[0] == ways[1] and this.chance == best.chance and not best.choices)


# Branches of main paths: first-order neighbours that the paths do not cover (RoK, 4.2.2).

MOST_BRANCHES = 100
"""Most facts about the key entities that a call filters, those nearest to the question."""


def list_branches(
    asked: QuestionAnalysis, entities: Sequence[str], main: Sequence[StatedPath]
) -> list[NearFact]:
    """The facts about the key entities beside the main paths, the nearest to the question first.

    Facts whose relation already leads from the key entity to one on a main path are left out.
    """
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
        (entity, fact.relation, ahead)
        for fact in (*walked, *facts)
        for entity, target, ahead in _list_ends(fact)
        if entity in key and target in there
    }
    return [
        fact
        for fact in facts
        if any(
            target in there or (entity, fact.relation, ahead) not in led
            for entity, target, ahead in _list_ends(fact)
            if entity in key
        )
    ]


def _list_ends(fact: NearFact) -> Iterator[tuple[str | None, str | None, bool]]:
    yield fact.head_id, fact.tail_id, True
    yield fact.tail_id, fact.head_id, False


# Chains from the question that paths and branches make together.

MOST_STARTS = 3
"""Most paths to a key entity that rules extend by a fact about it."""


def rate_chains(
    asked: QuestionAnalysis,
    graph: Adjacency,
    rows: Sequence[int],
    paths: Sequence[Path],
    branches: Sequence[NearFact] = (),
) -> list[RatedPath]:
    """The rated chains of the rules: paths from the question's entities, or with a branch."""
    linked = {*graph.locate(asked.linked.entities).values()}
    sources = {row for row in rows if row in linked} or set(rows[:1])
    led = lead_from(paths, sources)[:MOST_PATHS]
    stated = state_paths(led, graph, asked.snapshot)
    starts: dict[str, list[StatedPath]] = defaultdict(list)
    for row in sources:
        source_id = graph.name_entity(row)
        starts[source_id].append(StatedPath((asked.snapshot.names[source_id],), (), ()))
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
