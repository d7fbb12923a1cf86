"""RoK: reasoning on efficient knowledge paths (Jiang et al. 2024).

A chain of thought writes a tentative answer, whose key entities are the anchors (4.1). The paths
between all pairs of them are the candidates; those with most key entities and the highest mean
PageRank are the main paths (4.2.1). Facts about the key entities that the main paths do not cover,
filtered as whole triples, are the branches (4.2.2). The reader gets both (4.3).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from kpyramid.errors import InputError
from kpyramid.llm.task import Failure
from kpyramid.query import paths as kit
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.facts import StatedPath, state_items, tell_facts
from kpyramid.query.types import Answer
from kpyramid.snapshot.adjacency import Adjacency
from kpyramid.snapshot.view import NearFact

ENTITIES = 8
"""Key entities, 28 pairs: further ones, which fewer passages name, only add paths through
countries; the paper states no number."""
HOPS = 3
"""The paper's N, which it does not state: HyKGE's value, and the length of its longest examples."""
PATHS = 10
"""The paper's k, which it does not state: HyKGE's topK."""
BRANCHES = 60
"""Branches that rules retain. The first 20, 40 and 60 facts of ten passages contain .33, .50 and
.61 of the answers to MuSiQue's two-hop questions (36)."""
MOST_CANDIDATES = 5_000
"""Most paths that enter PageRank, the shortest first."""


def ask_rok(
    asked: QuestionAnalysis,
    decisions: Decisions,
    *,
    entities: int = ENTITIES,
    hops: int = HOPS,
    paths: int = PATHS,
    branches: int = BRANCHES,
    damping: float = 0.85,
    hypothesis: bool = True,
    neighbours: bool = True,
    domain: str = "",
) -> Answer:
    """The answer from main paths between key entities and from their neighbours.

    `hypothesis` and `neighbours` switch the tentative answer and the branches off; `domain`: field
    of expertise in the model's prompt.

    Raises:
        InputError: `damping` is 1 or more, with which PageRank does not converge.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if damping >= 1:
        raise InputError(f"damping = {damping}: pass a number below 1")
    decisions = decisions.read_as("rok", domain)
    tentative, key = _find_key_entities(asked, decisions, entities, domain, hypothesis=hypothesis)
    graph = Adjacency(asked.snapshot)
    rows = [*graph.locate(key).values()]
    candidates = kit.find_paths(graph, rows, hops, most=MOST_CANDIDATES)
    ranks = kit.rank_entities(candidates, damping)
    main = choose_main(candidates, rows, paths, ranks)
    stated = kit.state_paths(main, graph, asked.snapshot)
    about = kit.list_branches(asked, key, stated) if neighbours else []
    chosen, note = _filter_branches(asked, decisions, stated, about, branches)
    chains = kit.rate_chains(asked, graph, rows, candidates, about)
    scores = (_score_path(path, ranks) for path in main)
    context = [kit.show_path(p, asked.snapshot, s) for p, s in zip(stated, scores, strict=True)]
    context += state_items(((fact, fact.cosine) for fact in chosen), asked.snapshot)
    which = (
        f"{len(main)} of {len(candidates)} paths of at most {hops} hops between {len(rows)} key "
        f"entities, and {note}"
    )
    missing = "neither the question nor its tentative answer: no entity of it is known to the graph"
    if rows:
        missing = f"{which}: the graph has no fact about them"
    answer = kit.read_paths(asked, chains, which, decisions, context=context, missing=missing)
    return tentative.precede(answer)


# 4.1: key entities of a tentative answer.


def _find_key_entities(
    asked: QuestionAnalysis, decisions: Decisions, most: int, domain: str, *, hypothesis: bool
) -> tuple[kit.Hypothesis, tuple[str, ...]]:
    """The tentative answer, and the anchors: the question's entities, then the answer's.

    Without a model the best passages replace the answer, and names that the graph knows replace its
    entities.
    """
    snapshot, asker = asked.snapshot, decisions.walker
    names, tentative = tuple[str, ...](), kit.Hypothesis()
    if hypothesis:
        tentative = kit.suppose(asked, "tentative answer", "rok", domain, asker)
    steps = [*tentative.steps]
    if asker and tentative.by_model:
        from kpyramid.query.model.walks import list_key_entities

        listed = list_key_entities(tentative.texts[0], domain, asked.question, asker)
        if isinstance(listed, Failure):
            steps.append(kit.explain_failure("list of key entities", listed))
        else:
            names = listed
    # The names that a model lists replace those that rules would find in its text.
    supposed = () if names else tentative.texts
    texts = [asked.text, *asked.candidates]
    key = kit.choose_anchors(texts, supposed, snapshot, most, names=names)
    recognised = (*tentative.recognised, *kit.tell_links(key, "key entities", snapshot))
    return replace(tentative, recognised=recognised, steps=tuple(steps)), key.entities


# 4.2.1: main paths.


def choose_main(
    paths: Sequence[kit.Path], key: Collection[int], most: int, ranks: Mapping[int, float]
) -> list[kit.Path]:
    """The main paths: from the fullest bucket down, by the mean PageRank (`ranks`) of entities.

    A bucket has the paths with equally many key entities. Ties: shorter ones first, then by rows.
    """
    wanted = set(key)

    def rank(path: kit.Path) -> tuple[object, ...]:
        bucket = len(wanted.intersection(path.entities))
        return -bucket, -_score_path(path, ranks), len(path.facts), path.entities, path.facts

    return sorted(paths, key=rank)[:most]


def _score_path(path: kit.Path, ranks: Mapping[int, float]) -> float:
    """The mean PageRank of a path's entities."""
    return round(sum(ranks[row] for row in path.entities) / len(path.entities), 9)


# 4.2.2: neighbours as branches.


def _filter_branches(
    asked: QuestionAnalysis,
    decisions: Decisions,
    main: Sequence[StatedPath],
    facts: Sequence[NearFact],
    most: int,
) -> tuple[list[NearFact], str]:
    """Step (b) of 4.2.2: one call about all triples, or by rules the first; with a note."""
    nearest, how = list(facts[:most]), f"the {min(most, len(facts))} first of {len(facts)} branches"
    if not decisions.walker or not facts:
        return nearest, how
    from kpyramid.query.model.walks import filter_triples

    paths, shown = [path.statement for path in main], tell_facts(facts, asked.snapshot)
    chosen = filter_triples(asked.question, paths, shown, decisions.walker)
    if isinstance(chosen, Failure):
        return nearest, f"{how}: the model did not filter them ({chosen.kind})"
    best = [facts[index] for index in chosen]
    return best, f"{len(best)} of {len(facts)} branches, by the model"
