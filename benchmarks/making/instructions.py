"""Rows for fine-tuning a model that walks over the graph (Knowledge Solver, Algorithm 2).

Each step of a shortest path from an entity of a question to a right answer is one row in the form
of Alpaca: instruction, input, output. Not in the paper: a path leads through no other option, since
a walk would end there; the split into train and test by what leads into the answer.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Literal

from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.query.analysis import QuestionAnalysis, analyse
from kpyramid.query.ksl import Subgraph, draw, find_subgraph, list_tails
from kpyramid.query.model.walks import INSTRUCTION, render_step, show_round
from kpyramid.query.paths import Path, link_names, state_paths
from kpyramid.snapshot.snapshot import Snapshot

Prompt = Literal["paper", "ask"]
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Row:
    """One step of a path: what is asked, what is shown, the right reply."""

    instruction: str
    input: str
    output: str


@dataclass(frozen=True, slots=True)
class TaughtWalk:
    """The rows of one path, with the question and the pairs of entities that its steps join."""

    question: str
    pairs: tuple[Pair, ...]
    facts: tuple[str, ...]
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Instructions:
    """Walks to train on and to test with, and what there is none of.

    `left_out`: questions without a walk, by the reason. `unreached`: entities of the questions
    without a path of their own, though another of the same question may have one.
    """

    train: tuple[TaughtWalk, ...]
    test: tuple[TaughtWalk, ...]
    left_out: Counter[str]
    unreached: int


def make_instructions(
    questions: Iterable[EvalQuestion],
    snapshot: Snapshot,
    *,
    seed: int = 0,
    test_share: float = 0.1,
    hops: int = 2,
    rounds: int = 5,
    prompt: Prompt = "paper",
) -> Instructions:
    """Rows of the shortest paths from questions to right answers, in the order of the questions.

    `seed` draws right answers and the walks to test with, `test_share` of the rows at most. `hops`
    and `rounds` are those of the strategy. `prompt`: with `paper` every row has one instruction,
    and the next entity is the output; with `ask` a row is what `ask --strategy ksl` sends and
    reads, with a stop at the answer of an open question.
    """
    walks: list[TaughtWalk] = []
    left_out: Counter[str] = Counter()
    unreached = 0
    for question in questions:
        made = teach_question(question, snapshot, seed, hops, rounds, prompt)
        if isinstance(made, str):
            left_out[made] += 1
            continue
        walks += [walk for walk in made if walk is not None]
        unreached += sum(walk is None for walk in made)
        left_out["no path leads to a right answer"] += not any(made)
    train, test = split_walks(walks, seed, test_share)
    return Instructions(train, test, +left_out, unreached)


def teach_question(
    question: EvalQuestion, snapshot: Snapshot, seed: int, hops: int, rounds: int, prompt: Prompt
) -> list[TaughtWalk | None] | str:
    """The walk of each entity of a question (lines 3 to 10), None without a path; or why none."""
    if not question.answers:
        return "nothing says what is right"
    try:
        asked = analyse(question.text, snapshot, question.candidates)
    except InputError:
        return "it is no question that can be asked"
    within = find_subgraph(asked, hops)
    if isinstance(within, str):
        return within
    right = _find_right(question, within, snapshot)
    if not right:
        return "no right answer is an entity near the question"
    left = frozenset(within.nodes.tolist())
    ends = {*within.options, *right}
    walks: list[TaughtWalk | None] = []
    for start in within.starts:
        if start in ends:
            continue  # an open question that names its answer
        graph = within.graph
        target = draw(f"{seed} {question.text} {graph.name_entity(start)}", right)
        path = find_shortest(within, left | {target}, start, target, ends, rounds)
        walks.append(_teach(asked, within, path, prompt) if path else None)
        if path:
            left -= set(path.entities) - {target}
    return walks or "the question names only its answer"


def _find_right(question: EvalQuestion, within: Subgraph, snapshot: Snapshot) -> list[int]:
    """The entities of the subgraph that are right answers, in their order."""
    if question.candidates:
        found = [row for row, option in within.options.items() if option in question.values]
    else:
        names = [name for value in question.answers for name in value]
        keys = link_names(names, snapshot, similar=None).entities
        found = [*within.graph.locate(keys).values()]
    return sorted(set(found) & set(within.nodes.tolist()))


def find_shortest(
    within: Subgraph,
    left: Collection[int],
    start: int,
    target: int,
    ends: Collection[int],
    most: int,
) -> Path | None:
    """A shortest path over what is left, of equals the first by the keys of facts (line 7).

    It meets none of `ends` before the target.
    """
    if start not in left:
        return None
    paths, seen = [Path((start,), (), ())], {start, *ends}
    for _ in range(most):
        longer = []
        for path in paths:
            for way in list_tails(within, path):
                if (row := way.entities[-1]) == target:
                    return way
                if row in left and row not in seen:
                    seen.add(row)
                    longer.append(way)
        paths = longer
    return None


def _teach(
    asked: QuestionAnalysis, within: Subgraph, path: Path, prompt: Prompt
) -> TaughtWalk | None:
    """The rows of a path over the whole subgraph (lines 13 to 26); None if a prompt is too long."""
    rows: list[Row] = []
    for at in range(len(path.facts) + 1):
        ways = list_tails(within, Path(path.entities[: at + 1], path.facts[:at], path.forward[:at]))
        is_end = at == len(path.facts)
        if is_end and (prompt == "paper" or within.options or not ways):
            break
        stated = state_paths(ways, within.graph, asked.snapshot)
        chosen = -1 if is_end else [way.facts[-1] for way in ways].index(path.facts[at])
        if prompt == "ask":
            may_stop = not within.options and at > 0
            request, shown = render_step(asked.question, stated, may_stop=may_stop)
            said = [message.content for message in request.messages]
            row = Row(said[0], said[1], json.dumps({"tail": chosen + 1}))
        else:
            lines, shown = show_round(asked.question, stated)
            row = Row(INSTRUCTION, "\n".join(lines), stated[chosen].names[-1])
        if chosen >= shown:
            return None
        rows.append(row)
    facts = tuple(within.graph.name_fact(fact) for fact in path.facts)
    return TaughtWalk(asked.text, tuple(_list_pairs(path)), facts, tuple(rows))


def _list_pairs(path: Path) -> Iterator[Pair]:
    return ((min(pair), max(pair)) for pair in pairwise(path.entities))


# Train and test: no answer is in both, by its question or by the step that leads into it.


def split_walks(
    walks: Sequence[TaughtWalk], seed: int, share: float
) -> tuple[tuple[TaughtWalk, ...], tuple[TaughtWalk, ...]]:
    """Walks to train on and to test with, at most `share` of the rows, each in their order.

    Walks of one question stay together, and so do walks that join two entities by whose joining one
    of them reaches its answer. Groups are taken in an order that the seed draws, as they fit.
    """
    groups = group_walks(walks)
    keyed = {
        number: min(_hash(seed, walks[at]) for at in members)
        for number, members in enumerate(groups)
    }
    room = share * sum(len(walk.rows) for walk in walks)
    taken: set[int] = set()
    for number in sorted(keyed, key=keyed.__getitem__):
        size = sum(len(walks[at].rows) for at in groups[number])
        if size <= room:
            room -= size
            taken.update(groups[number])
    train = tuple(walk for at, walk in enumerate(walks) if at not in taken)
    test = tuple(walk for at, walk in enumerate(walks) if at in taken)
    assert not find_leaks(train, test)
    return train, test


def group_walks(walks: Sequence[TaughtWalk]) -> list[list[int]]:
    """The places of walks that tell of each other's answers, by group."""
    into = {walk.pairs[-1] for walk in walks}
    sharing: dict[str | Pair, list[int]] = defaultdict(list)
    for at, walk in enumerate(walks):
        sharing[walk.question.casefold()].append(at)
        for pair in into.intersection(walk.pairs):
            sharing[pair].append(at)
    root = list(range(len(walks)))

    def find(at: int) -> int:
        while root[at] != at:
            root[at] = at = root[root[at]]
        return at

    for members in sharing.values():
        for at in members[1:]:
            root[find(at)] = find(members[0])
    groups: dict[int, list[int]] = defaultdict(list)
    for at in range(len(walks)):
        groups[find(at)].append(at)
    return list(groups.values())


def find_leaks(train: Sequence[TaughtWalk], test: Sequence[TaughtWalk]) -> frozenset[str | Pair]:
    """Questions of both sides, and pairs of entities that lead into an answer and are in both."""
    sides = [{pair for walk in side for pair in walk.pairs} for side in (train, test)]
    into = {walk.pairs[-1] for walk in (*train, *test)}
    asked = [{walk.question.casefold() for walk in side} for side in (train, test)]
    return frozenset(asked[0] & asked[1]) | frozenset(sides[0] & sides[1] & into)


def _hash(seed: int, walk: TaughtWalk) -> bytes:
    told = json.dumps([seed, walk.facts[-1], walk.question])
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def encode_rows(walks: Iterable[TaughtWalk]) -> bytes:
    """The rows as JSON lines."""
    rows = (row for walk in walks for row in walk.rows)
    return "".join(f"{json.dumps(asdict(row), ensure_ascii=False)}\n" for row in rows).encode()
