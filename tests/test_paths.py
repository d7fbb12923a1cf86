"""Walks over the graph: paths against brute force, PageRank against an eigenvector, bad graphs."""

import random
import tracemalloc
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import pytest

from kpyramid.graph.steps import _order
from kpyramid.query import Scope, Snapshot
from kpyramid.query.analysis import QuestionAnalysis, analyse
from kpyramid.query.decisions import Decisions
from kpyramid.query.paths import (
    MOST_NEIGHBOURS,
    Path,
    RatedPath,
    choose_fitting,
    find_paths,
    link_names,
    rank_entities,
    rate_paths,
    rate_steps,
    read_paths,
    show_path,
    state_paths,
)
from kpyramid.query.types import RULES
from kpyramid.query.wts import Search
from kpyramid.snapshot.adjacency import Adjacency
from tests.rows import each_row

Fact = tuple[int, int]


def make_graph(facts: Sequence[Fact], hidden: Sequence[int] = ()) -> Adjacency:
    """A graph of rows without a snapshot; a tail of -1 is a literal."""
    graph = object.__new__(Adjacency)
    count = max((max(pair) for pair in facts), default=-1) + 1
    about: list[list[int]] = [[] for _ in range(count)]
    for row, (head, tail) in enumerate(facts):
        for end in {head, tail} - {-1}:
            about[end].append(row)
    graph._starts = np.concatenate([[0], np.cumsum([len(rows) for rows in about])]).astype(np.int32)
    graph._facts = np.array([row for rows in about for row in rows], np.int32)
    graph._heads = np.array([head for head, _ in facts], np.int32)
    graph._tails = np.array([tail for _, tail in facts], np.int32)
    graph._confidence = np.full(len(facts), 0.9)
    graph._seen = None
    if hidden:
        graph._seen = np.ones(len(facts), np.bool_)
        graph._seen[list(hidden)] = False
    return graph


def walk(facts: Sequence[Fact], path: Path, goal: int, hops: int) -> Iterator[Path]:
    if path.entities[-1] == goal and path.facts:
        yield path
        return
    if len(path.facts) == hops:
        return
    for row, (head, tail) in enumerate(facts):
        for here, there, ahead in ((head, tail, True), (tail, head, False)):
            if here == path.entities[-1] and there >= 0 and there not in path.entities:
                entities = (*path.entities, there)
                longer = Path(entities, (*path.facts, row), (*path.forward, ahead))
                yield from walk(facts, longer, goal, hops)


def brute_force(facts: Sequence[Fact], anchors: Sequence[int], hops: int) -> set[Path]:
    return {
        path
        for first, second in combinations(sorted(set(anchors)), 2)
        for path in walk(facts, Path((first,), (), ()), second, hops)
    }


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("hops", [1, 2, 3, 4, 5])
def test_paths_are_all_simple_paths_up_to_k_hops(seed: int, hops: int) -> None:
    chance = random.Random(seed)
    facts = [(chance.randrange(7), chance.randrange(-1, 7)) for _ in range(11)]
    graph = make_graph([*facts, (6, 5)])
    anchors = chance.sample(range(7), 3)
    found = find_paths(graph, anchors, hops, most=100_000)
    assert len(found) == len(set(found))
    assert set(found) == brute_force([*facts, (6, 5)], anchors, hops)
    assert [len(path.facts) for path in found] == sorted(len(path.facts) for path in found)
    assert find_paths(graph, anchors[::-1], hops, most=3) == found[:3]


def test_a_chain_is_named_by_its_arrows() -> None:
    ends = (0, 1, 2)
    kinds = {
        (True, True): "path",
        (False, False): "path",
        (True, False): "common tail",
        (False, True): "common head",
    }
    for arrows, kind in kinds.items():
        assert Path(ends, (0, 1), arrows).chain == kind
        assert Path(ends, (0, 1), arrows).turn().turn() == Path(ends, (0, 1), arrows)
    assert Path((0, 1, 2, 3), (0, 1, 2), (True, False, True)).chain is None
    (tail,) = find_paths(make_graph([(0, 1), (2, 1)]), [0, 2], 2)
    assert tail.chain == "common tail" and tail.entities == (0, 1, 2)


def test_neither_cycles_nor_parts_nor_lone_anchors_hold_a_walk_up() -> None:
    ring = make_graph([(0, 1), (1, 2), (2, 0), (3, 4), (4, 3), (5, 5), (5, -1)])
    assert {path.entities for path in find_paths(ring, [0, 1], 6)} == {(0, 1), (0, 2, 1)}
    assert find_paths(ring, [0, 3], 6) == []
    assert len(find_paths(ring, [3, 4], 3)) == 2
    assert find_paths(ring, [0], 3) == find_paths(ring, [], 3) == find_paths(ring, [5, 5], 3) == []


def test_a_hub_of_100_000_facts_is_an_end_and_no_way_through() -> None:
    facts = [(0, at) for at in range(3, 100_003)] + [(1, 0), (2, 0), (1, 3), (3, 2)]
    graph = make_graph(facts)
    found = find_paths(graph, [1, 2], 3)
    assert [path.entities for path in found] == [(1, 3, 2)]
    assert find_paths(graph, [0, 1], 1)  # as an end it is met
    assert len(graph.leave(np.array([0]), MOST_NEIGHBOURS)) == MOST_NEIGHBOURS


@pytest.mark.slow
def test_five_hops_through_a_dense_part_are_bounded_in_number_and_memory() -> None:
    """Eight entities, a neighbour each, and two dozen nodes between, all joined twice."""
    middle = range(16, 40)
    facts = [(at, 8 + at) for at in range(8)]
    facts += [(8 + at, node) for at in range(8) for node in middle] * 2
    facts += list(combinations(middle, 2)) * 2
    graph = make_graph(facts)
    tracemalloc.start()
    found = find_paths(graph, range(8), 5, most=3_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert [len(path.facts) for path in found] == [4] * 2688 + [5] * 312
    assert peak < 250_000_000


def test_what_is_hidden_is_in_no_path() -> None:
    facts = [(0, 1), (1, 2), (0, 3), (3, 2)]
    assert len(find_paths(make_graph(facts), [0, 2], 2)) == 2
    (left,) = find_paths(make_graph(facts, hidden=[1]), [0, 2], 2)
    assert left.entities == (0, 3, 2)


@pytest.mark.parametrize("seed", range(6))
def test_rank_is_the_eigenvector_of_the_damped_graph(seed: int) -> None:
    chance = random.Random(seed)
    facts = [(chance.randrange(6), chance.randrange(6)) for _ in range(12)]
    paths = find_paths(make_graph([*facts, (5, 0)]), range(6), 3, most=10_000)
    ranks = rank_entities(paths)
    nodes = sorted(ranks)
    joined = np.zeros((len(nodes), len(nodes)))
    pairs = {
        (fact, *sorted(path.entities[at : at + 2]))
        for path in paths
        for at, fact in enumerate(path.facts)
    }
    for _, one, other in pairs:
        a, b = nodes.index(one), nodes.index(other)
        joined[a, b] += 1
        joined[b, a] += 1
    moved = 0.85 * joined / joined.sum(axis=0) + 0.15 / len(nodes)
    values, vectors = np.linalg.eig(moved)
    first = np.real(vectors[:, np.argmax(np.real(values))])
    assert np.allclose([ranks[node] for node in nodes], first / first.sum(), atol=1e-9)
    assert sum(ranks.values()) == pytest.approx(1)
    assert rank_entities([]) == {}


# Over a snapshot: what is stated, rated and read.


def open_graph(snapshot: Snapshot) -> tuple[Adjacency, list[int]]:
    graph = Adjacency(snapshot)
    ids = analyse("Who wrote Grey Water, John Harlow?", snapshot).linked.entities
    return graph, [*graph.locate(ids).values()]


def test_paths_are_stated_with_their_arrows_and_places(snapshot: Snapshot) -> None:
    graph, rows = open_graph(snapshot)
    found = state_paths(find_paths(graph, rows, 3), graph, snapshot)
    assert any({"John Harlow", "Mary Stone", "Grey Water"} == set(p.names) for p in found)
    asked = analyse("Who wrote Grey Water, John Harlow?", snapshot)
    rated = rate_paths(asked, found)
    assert rated == rate_paths(asked, found[::-1])
    assert all(0 <= one.chance <= 1 for one in rated)


def test_what_a_name_means_is_found_without_a_shared_word(snapshot: Snapshot) -> None:
    named = link_names(["grey water"], snapshot)
    assert named.entities and not named.unknown
    ((key, name, cosine),) = snapshot.neighbours("Ada Lovelace", 1, "entities")
    assert name == "Ada Lovelace" and cosine > 0.99
    assert key in snapshot.names
    near = snapshot.neighbours("the capital of England", 50, "entities")
    assert "London" in [name for _, name, _ in near][:3]
    assert link_names(["qzx 17 unheard of"], snapshot).unknown == ("qzx 17 unheard of",)
    assert link_names(["qzx 17"], snapshot, similar=None).entities == ()


def test_nothing_is_found_for_what_is_not_seen(snapshot: Snapshot) -> None:
    scoped = snapshot.scoped(Scope(access=None, documents=frozenset({"ada.txt"})))
    graph = Adjacency(scoped)
    names = [name for _, name, _ in scoped.neighbours("Grey Water", 100, "entities")]
    assert "Grey Water" not in names and "Ada Lovelace" in names
    assert analyse("Mary Stone", scoped).linked.entities == ()
    whole = Adjacency(snapshot)
    (mary,) = analyse("Is it Mary Stone?", snapshot).linked.entities
    assert whole.locate([mary]) and not graph.locate([mary])
    assert not len(graph.leave(np.array([*whole.locate([mary]).values()]), 10))


# What the words of a question say of a chain.


@each_row("question, words")
def test_words_are_read_in_the_order_away_from_a_name(question: str, words: str) -> None:
    tokens = question.replace("'s", " 's").casefold().split()
    assert [word for _, word in _order(tokens, "X Y")] == words.split()


def rate(snapshot: Snapshot, question: str, *steps: tuple[str, bool]) -> float:
    asked = analyse(question, snapshot)
    start = asked.linked.entities[0]
    return rate_steps(asked, start, tuple(steps))[1]


def test_every_step_is_said_and_every_word_is_used(snapshot: Snapshot) -> None:
    question = "What is the nationality of Mary Stone's husband?"
    whole = rate(snapshot, question, ("was married to", True), ("has nationality", True))
    assert whole > 0.7
    assert rate(snapshot, question, ("was married to", True)) < whole / 3
    assert rate(snapshot, question, ("has nationality", True), ("was married to", True)) < whole / 3
    longer = (("was married to", True), ("has nationality", True), ("has gender", True))
    assert rate(snapshot, question, *longer) < whole / 3
    synonym = "What nation is the other half of Mary Stone from?"
    said = rate(snapshot, synonym, ("was married to", True), ("has nationality", True))
    assert said > rate(snapshot, synonym, ("worked as", True), ("has nationality", True)) > 0


def walk_from(asked: QuestionAnalysis, depth: int) -> list[RatedPath]:
    search = Search(asked, asked.linked.entities, 10, 1.0, "exact", True)
    for _ in range(depth):
        search.keep(search.match_facts(), search.score())
    return choose_fitting(asked, rate_paths(asked, search.list_likely()))


def test_chains_are_walked_and_the_best_one_is_read(snapshot: Snapshot) -> None:
    asked = analyse("Which novel did the niece of John Harlow write?", snapshot)
    rated = walk_from(asked, 2)
    assert rated == walk_from(analyse(asked.text, snapshot), 2)
    assert len(rated) <= 10 and {len(one.path.facts) for one in rated} <= {1, 2}
    shown = [show_path(one.path, snapshot, one.chance) for one in rated]
    found = read_paths(asked, rated, "from John Harlow", Decisions(RULES), context=shown)
    assert found.text == "Grey Water" and len(found.evidence) >= 2
    nothing = read_paths(asked, [], "from nothing", Decisions(RULES), context=[])
    assert nothing.text == "" and nothing.trace[0].outcome == "empty"


def test_a_question_for_one_of_two_kinds_is_not_for_yes_or_no(snapshot: Snapshot) -> None:
    assert not analyse("Is Mary Stone's niece a man or a woman?", snapshot).is_yes_no
    assert analyse("Is Mary Stone a woman?", snapshot).is_yes_no
    assert analyse("Is there a dog or a cat?", snapshot).is_yes_no
