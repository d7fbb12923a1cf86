"""HyKGE: a hypothesis that explores a knowledge graph (Jiang et al. 2025).

A hypothesis and the question name entities (4.1), which are linked to the graph (4.2.1). Three
kinds of chain of at most three hops join every two of them (4.2.2): `→ →`, `→ ←` and `← →`. Chains
are scored against fragments of question and hypothesis (4.3); the reader gets the best with
descriptions of the entities (4.4). A model is called twice.
"""

from collections.abc import Sequence
from pathlib import Path as Folder

import numpy as np

from kpyramid.documents.words import STOP, match_plain_words
from kpyramid.embeddings.port import Matrix
from kpyramid.embeddings.reranking import Scorer, open_cross_encoder
from kpyramid.errors import InputError
from kpyramid.query import paths as kit
from kpyramid.query.analysis import Links, QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.facts import StatedPath, find_about, state_facts
from kpyramid.query.types import Answer, Item
from kpyramid.snapshot.adjacency import Adjacency
from kpyramid.snapshot.individuals import list_classes

HOPS, PATHS, LENGTH, OVERLAP = 3, 10, 10, 4
"""The paper's k, topK, lc and oc (5.1.6). It states no unit of a fragment; here it is words."""
ENTITIES = 10
"""Most anchors; the paper has no bound, and 45 pairs take about 20 milliseconds."""
BEST = 3
"""Number of best fragments of which a chain's score is the mean; the paper does not state this. The
best alone would let a stray fragment of a wrong hypothesis carry a chain; with the mean of all, a
chain that matches a part of a long text would lose to a general one."""
MOST_SCORED = 60
"""Most chains that are scored, those whose facts' vectors are nearest to the fragments: a
cross-encoder takes about ten milliseconds a pair."""
SENTENCES = 3
"""Sentences of a description beside that of the "is a" fact; the paper uses texts of a base."""
_MOST_FACTS = 200
"""Most facts about an anchor from which its description is made."""


def ask_hykge(
    asked: QuestionAnalysis,
    decisions: Decisions,
    *,
    entities: int = ENTITIES,
    hops: int = HOPS,
    paths: int = PATHS,
    length: int = LENGTH,
    overlap: int = OVERLAP,
    similar: float = kit.SIMILAR,
    rerank: str = "",
    domain: str = "",
    hypothesis: bool = True,
    fragments: bool = True,
    reranker: bool = True,
    chains: bool = True,
    descriptions: bool = True,
) -> Answer:
    """The answer from the chains between entities of a question and a hypothesis.

    `rerank`: folder of a cross-encoder; without it cosines are used. The five switches are the
    ablations of Table 2: without `fragments` question and hypothesis are a single text, without
    `reranker` chains are ordered by length.

    Raises:
        InputError: fragments overlap by their whole length.
        SettingsError: there is no such cross-encoder.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if overlap >= length:
        raise InputError(f"overlap = {overlap}: it is less than length, {length}")
    decisions = decisions.read_as("hykge", domain)
    snapshot, graph = asked.snapshot, Adjacency(asked.snapshot)
    guess = kit.Hypothesis()
    if hypothesis:  # 4.1.1
        guess = kit.suppose(asked, "hypothesis", "hykge", domain, decisions.walker)
    wordings = [asked.text, *asked.candidates]
    anchors = _link(asked, wordings, guess, entities, similar)
    rows = [*graph.locate(anchors.entities).values()]

    def score(queries: Sequence[str], texts: Sequence[str]) -> Matrix:
        return np.asarray(snapshot.embed_all(texts) @ snapshot.embed_all(queries).T, np.float32)

    scorer: Scorer = score
    if rerank and reranker and chains:
        scorer = open_cross_encoder(Folder(rerank)).score
    candidates = find_chains(graph, rows, hops)
    stated = kit.state_paths(candidates, graph, snapshot) if chains else []
    scores = np.zeros(len(stated), np.float32)
    if reranker and stated:
        words = " ".join((*wordings, *guess.texts))
        parts = (cut_fragments(words, length, overlap) if fragments else []) or [words]
        near = kit.compose_vectors(stated, snapshot) @ snapshot.embed_all(parts).T
        pool = kit.shortlist(stated, _average_best(near), MOST_SCORED)
        scores[:] = -1.0
        scores[pool] = score_chains([stated[i] for i in pool], parts, scorer)
    order = kit.shortlist(stated, scores, paths)
    context = [kit.show_path(stated[i], snapshot, round(float(scores[i]), 6)) for i in order]
    if descriptions:
        context += [item for entity in anchors.entities if (item := describe_entity(entity, asked))]
    rated = kit.rate_chains(asked, graph, rows, [candidates[i] for i in order])
    which = f"{len(order)} of {len(candidates)} chains of at most {hops} hops between {len(rows)} "
    which += f"anchors, and {len(context) - len(order)} descriptions"
    nothing = "the question and the hypothesis name nothing that the graph knows"
    missing = which if rows else nothing
    answer = kit.read_paths(asked, rated, which, decisions, context=context, missing=missing)
    return guess.precede(answer, *kit.tell_links(anchors, "anchors", snapshot))


# 4.1.2 and 4.2.1: entities, linked by name, then by vector.


def _link(
    asked: QuestionAnalysis, texts: Sequence[str], guess: kit.Hypothesis, most: int, similar: float
) -> Links:
    """The anchors: entities that the question names, then the hypothesis, at most `most`.

    Entities are recognised as names that the graph knows, and as words written as names; the latter
    are linked by vector, where a person or a model wrote them.
    """
    written = [*texts, *(guess.texts if guess.by_model else ())]
    names = [name.text for text in written for name in asked.part(text).names]
    snapshot = asked.snapshot
    return kit.choose_anchors(texts, guess.texts, snapshot, most, names=names, similar=similar)


# 4.2.2: three kinds of chain, and descriptions.


def find_chains(graph: Adjacency, rows: Sequence[int], hops: int) -> list[kit.Path]:
    """The chains between every two anchors; a path along its arrows, from head to tail."""
    paths = [path for path in kit.find_paths(graph, rows, hops) if path.chain]
    return [path if any(path.forward) else path.turn() for path in paths]


def describe_entity(entity: str, asked: QuestionAnalysis) -> Item | None:
    """An entity with its classes, its most certain "is a" fact, and a few sentences about it.

    The sentences are those of the "is a" fact and of the facts nearest to the question; None
    without any fact.
    """
    snapshot = asked.snapshot
    name, schema = snapshot.names[entity], snapshot.schema
    classes = [schema.class_by_iri[iri].label for iri in list_classes(entity, snapshot)]
    about = state_facts(find_about([entity], asked, _MOST_FACTS), snapshot)
    kinds = [fact for fact in about if fact.head_id == entity and fact.relation == "is a"]
    kinds.sort(key=lambda fact: (-fact.confidence, fact.condensed_id))
    if not about:
        return None
    shown = dict.fromkeys([*kinds[:1], *about[:SENTENCES]])
    quoted = (kit.quote_fact(fact, snapshot.evidence(fact.condensed_id)) for fact in shown)
    places = tuple({place.text: place for place in quoted}.values())
    says = f"is a {kinds[0].tail}" if kinds else ""
    words = " ".join(
        part for part in (name, f"({', '.join(classes)})" * bool(classes), says) if part
    )
    sentences = " ".join(" ".join(place.text.split()) for place in places)
    return Item(entity, f"{words}: {sentences}", "graph", 0.0, places)


# 4.3: fragments of question and hypothesis, and scores of chains against them.


def cut_fragments(text: str, length: int = LENGTH, overlap: int = OVERLAP) -> list[str]:
    """Windows of `length` words of a text without its stop words, `overlap` of them shared (Eq. 5).

    The last window may be shorter; a text of stop words has none.
    """
    words = [word for word in match_plain_words(text) if word.casefold() not in STOP]
    starts = range(0, max(len(words) - overlap, 1), length - overlap)
    return [" ".join(words[start : start + length]) for start in starts if words]


def score_chains(chains: Sequence[StatedPath], fragments: Sequence[str], scorer: Scorer) -> Matrix:
    """The score of each chain (Eq. 6): the mean of its `BEST` highest over the fragments."""
    if not chains or not fragments:
        return np.zeros(len(chains), np.float32)
    return _average_best(scorer(fragments, [chain.statement for chain in chains]))


def _average_best(scores: Matrix) -> Matrix:
    return np.asarray(np.sort(scores, axis=1)[:, ::-1][:, :BEST].mean(axis=1), np.float32)
