"""What the graph says often and the ontology lacks (PolyRAG §III-B)."""

from dataclasses import replace

import numpy as np

from kpyramid.completion.classes import propose_classes
from kpyramid.completion.clustering import cluster_units, place_units
from kpyramid.completion.comparing import name_meaning, pair_inverses, place_beside
from kpyramid.completion.drafting import Facts, draft_property
from kpyramid.completion.layers import compare_layers
from kpyramid.completion.types import Completion, GraphLayer, OntologyLayer, Proposal
from kpyramid.completion.units import list_units
from kpyramid.embeddings.checked import embed_finite
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.numerics.moments import Array
from kpyramid.paraphrase.comparing import Comparer
from kpyramid.settings import CompleteSettings

_ALIKE = 0.5
"""How much of a proposal's score one loses that is wholly like an earlier one."""
_RANKED = 1000
"""Proposals, of the highest score, that are held against each other."""


def propose(
    graph: GraphLayer, ontology: OntologyLayer, *, settings: CompleteSettings, embedder: Embedder
) -> Completion:
    """Both layers compared, and proposals, the best first.

    Raises:
        InputError: the embedding of a phrase is not finite; names the phrase.
    """
    compared = compare_layers(graph, ontology, settings=settings, embedder=embedder)
    return draw_proposals(graph, ontology, compared, settings=settings, embedder=embedder)


def draw_proposals(
    graph: GraphLayer,
    ontology: OntologyLayer,
    compared: Completion,
    *,
    settings: CompleteSettings,
    embedder: Embedder,
) -> Completion:
    """The layers as they were compared, with the proposals that follow from priority and region."""
    schema = ontology.schema
    proposals = _propose_properties(graph, ontology, compared, settings, embedder)
    placed = place_beside(
        proposals, schema, similarity=settings.alias_similarity, embedder=embedder
    )
    placed += propose_classes(graph, ontology, compared, settings.min_support)
    vectors = embed_finite(embedder, [proposal.label for proposal in placed])
    if placed:
        ranked = rank_apart(np.array([proposal.score for proposal in placed]), vectors)
        placed = [placed[at] for at in ranked]
    new = [proposal for proposal in placed if not proposal.existing]
    known = [proposal for proposal in placed if proposal.existing]
    return replace(compared, proposals=(*pair_inverses(new, embedder), *known))


def _propose_properties(
    graph: GraphLayer,
    ontology: OntologyLayer,
    compared: Completion,
    settings: CompleteSettings,
    embedder: Embedder,
) -> list[Proposal]:
    """A property for each cluster that enough facts support."""
    units = list_units(graph, ontology, compared)
    chosen = np.flatnonzero(units.region)
    if not len(chosen):
        return []
    points = place_units(graph, units, chosen, settings=settings, embedder=embedder)
    counted = np.flatnonzero(units.new)
    order = counted[np.argsort(units.unit_of[counted], kind="stable")]
    starts = np.concatenate([[0], np.cumsum(units.support)])
    facts = Facts(graph, units.turned)
    proposals = []
    comparer = Comparer(embedder)
    meanings = [name_meaning(comparer.read(units.texts[at])) for at in chosen.tolist()]
    for cluster in cluster_units(points, meanings, units.support[chosen], settings=settings):
        own = chosen[cluster]
        if units.support[own].sum() >= settings.min_support:
            places = np.sort(np.concatenate([order[starts[u] : starts[u + 1]] for u in own]))
            score = float((units.missing[own] * units.support[own]).sum())
            proposals.append(
                draft_property(facts, places, score, ontology.schema, settings.min_support)
            )
    return [proposal for proposal in proposals if proposal is not None]


def rank_apart(scores: Array, centres: Matrix) -> list[int]:
    """The order of scores in which what is like an earlier one comes later.

    Maximal marginal relevance (Carbonell and Goldstein 1998) with a factor: next is the highest
    score x (1 - `_ALIKE` x cosine to the likest of those before).
    """
    by_score = np.argsort(-scores, kind="stable")
    first, rest = by_score[:_RANKED], by_score[_RANKED:]
    likest = np.zeros(len(first))
    left = np.ones(len(first), dtype=bool)
    ranked: list[int] = []
    for _ in range(len(first)):
        worth = np.where(left, scores[first] * (1.0 - _ALIKE * likest), -np.inf)
        best = int(np.argmax(np.round(worth, 9)))
        left[best] = False
        ranked.append(int(first[best]))
        likest = np.maximum(likest, centres[first] @ centres[first[best]])
    return [*ranked, *rest.tolist()]
