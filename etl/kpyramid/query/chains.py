"""Chains rated against a question, and read: what a walk over the graph hands to a reader.

They are paths, and paths with a branch: a fact beside them about a key entity (RoK, 4.2.2).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpyramid.documents.words import FUNCTION, list_plain_words, normalise_name
from kpyramid.embeddings.port import Matrix
from kpyramid.graph.steps import Step as GraphStep
from kpyramid.graph.steps import StepRater
from kpyramid.query.analysis import KIND_TYPES, NUMERIC, QuestionAnalysis, link_text
from kpyramid.query.decisions import Decisions
from kpyramid.query.facts import (
    find_about,
    find_end,
    fit_kind,
    match_candidates,
    state_facts,
)
from kpyramid.query.lookup import UNFOUNDED
from kpyramid.query.paths import (
    MOST_PATHS,
    Path,
    StatedPath,
    show_path,
    state_paths,
)
from kpyramid.query.types import Answer, Item, Outcome, Reading, Step
from kpyramid.snapshot.adjacency import Adjacency
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import NearFact

MOST_NEAR, UNSAID = 50, 0.2
"""Paths that are embedded where the question says none of their relations, and the most that the
chance of such a path is: its cosine says that it is about the same."""
MOST_RATED = 40
"""Paths that are rated in words, which takes three milliseconds each."""
MOST_VALUES = 5
"""Values that several paths give together, as many as facts do."""
COMES_BACK = 0.3
"""Chance from which a chain that comes back to a name of the question is an answer; by hand."""
UNCLEAR, MISTAKEN = 0.8, 0.5
"""What the chance of a path is worth whose end may be of the kind asked for, or is a name that was
taken for another kind; by hand."""


@dataclass(frozen=True, slots=True)
class RatedPath:
    """A path, the value that it would give, and the chance that this answers the question.

    `choices` are the candidates that the value is.
    """

    path: StatedPath
    value: str
    chance: float
    choices: tuple[str, ...] = ()


def lead_from(paths: Iterable[Path], sources: Collection[int]) -> list[Path]:
    """The stretches of paths from one of some entities to each after it that is none of them.

    Shortest first. What they lead to is what a question that names the sources may ask for.
    """
    found: set[Path] = set()
    for path in (turned for each in paths for turned in (each, each.turn())):
        start = next((at for at, row in enumerate(path.entities) if row in sources), None)
        while start is not None:
            end = start + 1
            while end < len(path.entities) and path.entities[end] not in sources:
                steps = slice(start, end)
                stretch = path.entities[start : end + 1]
                found.add(Path(stretch, path.facts[steps], path.forward[steps]))
                end += 1
            start = end if end < len(path.entities) else None
    return sorted(found, key=lambda path: (len(path.facts), path.entities, path.facts))


def go_on(path: StatedPath, end_id: str, fact: NearFact) -> StatedPath:
    """A path with one more step: a fact about the entity at its end, also one with a literal."""
    ahead = fact.head_id == end_id
    end = fact.tail if ahead else fact.head
    return StatedPath((*path.names, end), (*path.facts, fact), (*path.forward, ahead))


def compose_vectors(paths: Sequence[StatedPath], snapshot: Snapshot) -> Matrix:
    """A vector of unit length per path: the mean of its facts', which the snapshot has already."""
    keys = list(dict.fromkeys(fact.condensed_id for path in paths for fact in path.facts))
    if not keys:
        return np.zeros((0, 0), np.float32)
    place = {key: at for at, key in enumerate(keys)}
    known = snapshot.vectors_of(keys, "condensed")
    sums = np.stack([known[[place[f.condensed_id] for f in p.facts]].sum(axis=0) for p in paths])
    return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True), np.float32)


def shortlist(paths: Sequence[StatedPath], scores: Matrix, most: int) -> list[int]:
    """The places of the `most` paths with the highest scores, best first; of equal ones the first.

    What is scored in words afterwards costs milliseconds each.
    """
    return sorted(range(len(paths)), key=lambda at: (-round(float(scores[at]), 6), at))[:most]


def rate_open(asked: QuestionAnalysis, paths: Sequence[StatedPath]) -> list[RatedPath]:
    """The paths nearest to a question, rated in words, whose value can be what is asked for."""
    if not paths:
        return []
    near = shortlist(paths, compose_vectors(paths, asked.snapshot) @ asked.vector, MOST_RATED)
    return choose_fitting(asked, rate_paths(asked, [paths[at] for at in near]))


def choose_fitting(asked: QuestionAnalysis, rated: Iterable[RatedPath]) -> list[RatedPath]:
    """The rated paths whose value can be what is asked for, best first.

    Left out is a number for a name or a name for a number, and what stands in the question, but
    where a chain comes back: whoever is the wife of X's husband is X. A name of another kind than
    asked for counts for less, since recognisers mistake kinds, and so does one whose kind is
    unclear. Of paths to the same value the best one stays.
    """
    found: dict[str, RatedPath] = {}
    for one in rated:
        last, ahead = one.path.facts[-1], one.path.forward[-1]
        kind = last.tail_type if ahead else last.head_type
        fit = fit_kind(kind, one.value, asked.types)
        if kind == "ORG" and asked.types == KIND_TYPES["where"]:
            fit = 0.0  # where somebody works
        words = [word for word in list_plain_words(one.value) if word not in FUNCTION]
        echoes = all(word in asked.plain_words for word in words)
        echoes = echoes and (len(one.path.facts) == 1 or one.chance < COMES_BACK)
        mistaken = one.value[:1].isupper() and not asked.types & NUMERIC
        if one.choices or not (echoes or (fit < 0 and not mistaken)):
            weight = 1.0 if one.choices or fit > 0 else UNCLEAR
            weight = MISTAKEN if fit < 0 and not one.choices else weight
            known = found.get(one.value)
            if known is None or known.chance < weight * one.chance:
                found[one.value] = replace(one, chance=weight * one.chance)
    return sorted(found.values(), key=lambda one: (-one.chance, one.path.statement))


def rate_paths(asked: QuestionAnalysis, paths: Sequence[StatedPath]) -> list[RatedPath]:
    """Paths that leave an entity of the question, with the chance of each, best first.

    The value of a path is its last entity, or a time of its last fact. See
    `kpyramid.graph.steps` for how a chain is rated; where the words of the question say nothing
    of any, the nearest statement comes first.
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
    asked: QuestionAnalysis, start: str, steps: tuple[GraphStep, ...]
) -> tuple[float, float]:
    """The chance that steps from an entity are the first of what is asked, and that they are all.

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


def _rank(one: RatedPath) -> tuple[float | str, ...]:
    """Smaller is better: of chains that are as likely the shorter, then the surer one."""
    path = one.path
    return -one.chance, len(path.facts), -path.confidence, path.statement


def _give_value(path: StatedPath, chance: float, asked: QuestionAnalysis) -> RatedPath:
    """A path with what it gives: its last entity; to "when" the time of its last fact.

    Where a time or a number is asked for, what has no digit is no answer.
    """
    value = path.names[-1]
    if asked.types and asked.types <= NUMERIC:
        times = [q.partition(": ")[2] for q in path.facts[-1].qualifiers if q.startswith("time: ")]
        if times and asked.types <= KIND_TYPES["when"]:
            value = times[0]
        elif not any(character.isdigit() for character in value):
            chance = min(chance, UNFOUNDED)
    return RatedPath(path, value, round(chance, 6), _choose(value, asked))


def _choose(value: str, asked: QuestionAnalysis) -> tuple[str, ...]:
    return match_candidates(value, asked.candidates) if asked.candidates else ()


def read_paths(
    asked: QuestionAnalysis,
    rated: Sequence[RatedPath],
    which: str,
    decisions: Decisions,
    *,
    context: Sequence[Item] | None = None,
    missing: str = "",
) -> Answer:
    """The answer that a reader finds in paths, best first, with one step of the graph in its trace.

    Rules give the value of the best one, and the values of those that take the same steps from the
    same name to others; a model reads them all, or the `context` that is given in their place. The
    paths that rules answer by then come first.
    `which` says which paths they are, `missing` why there are none.
    """
    snapshot = asked.snapshot
    items = tuple(context or ())
    if context is None:
        items = tuple(show_path(one.path, snapshot, round(one.chance, 6)) for one in rated)
    if not items:
        step = Step("graph", Outcome.EMPTY, missing or f"no path {which}")
        return Answer("", (), (), None, (), (step,))
    found = Reading("", (), 0.0, (), reason="no path gives one of the options")
    if not asked.candidates:
        found = replace(found, reason="no path leads to what can be the answer")
    best = next((one for one in rated if one.choices or not asked.candidates), None)
    if best:
        alike = [one for one in rated if _says_as_much(one, best)][:MOST_VALUES]
        cited = [show_path(one.path, snapshot, round(one.chance, 6)) for one in alike]
        choices = tuple(dict.fromkeys(c for one in alike for c in one.choices or (one.value,)))
        places = tuple(dict.fromkeys(place for item in cited for place in item.evidence))
        found = Reading("; ".join(choices), choices, best.chance, places)
        own = {item.key for item in cited}
        items = (*cited, *(other for other in items if other.key not in own))
    shown = items if context is None else tuple(context)
    reading = decisions.read(asked, shown, found)
    items = items if reading is found else shown
    sure = f", the best of {rated[0].chance:.2f}" if rated else ""
    reason = f"{len(items)} paths {which}{sure}" if context is None else f"{which}{sure}"
    if not reading.answers:
        reason = f"{reason}; {reading.reason or 'none of them answers it'}"
    outcome = Outcome.ANSWERED if reading.answers else Outcome.INSUFFICIENT
    step = Step("graph", outcome, reason, tuple(item.text for item in items), reading.confidence)
    places = tuple(dict.fromkeys(place for item in items for place in item.evidence))
    return reading.give(items, "graph", step, places=places)


def _says_as_much(one: RatedPath, best: RatedPath) -> bool:
    """Whether a path takes the steps of the best one, and is as likely."""
    ways = [(p.names[0], p.steps) for p in (one.path, best.path)]
    return one is best or (ways[0] == ways[1] and one.chance == best.chance and not best.choices)


# Branches of main paths: first-order neighbours that the paths do not stand for (RoK, 4.2.2).

MOST_BRANCHES = 100
"""Facts about the key entities that are filtered, those nearest to the question: one call's."""


def list_branches(
    asked: QuestionAnalysis, entities: Sequence[str], main: Sequence[StatedPath]
) -> list[NearFact]:
    """The facts about the key entities beside the main paths, the nearest to the question first.

    Dropped are those whose relation leads from the key entity to one on a main path already.
    """
    walked = {fact.condensed_id for path in main for fact in path.facts}
    about = find_about(entities, asked, MOST_BRANCHES, known=walked) if entities else {}
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
    own = {*graph.locate(asked.linked.entities).values()}
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
