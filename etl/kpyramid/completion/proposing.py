"""What the graph says often and the ontology lacks (PolyRAG §III-B)."""

from dataclasses import replace

import numpy as np

from kpyramid.completion.clustering import cluster_units
from kpyramid.completion.columns import Places
from kpyramid.completion.drafting import draft_property
from kpyramid.completion.layers import compare_layers
from kpyramid.completion.types import Completion, GraphLayer, OntologyLayer, Proposal
from kpyramid.completion.units import Units, find_stated, list_units
from kpyramid.embeddings.port import Embedder
from kpyramid.settings import CompleteSettings


def propose(
    graph: GraphLayer, ontology: OntologyLayer, *, settings: CompleteSettings, embedder: Embedder
) -> Completion:
    """Both layers compared, and proposals, the best first.

    Raises:
        InputError: the embedding of a phrase is not finite; names the phrase.
    """
    compared = compare_layers(graph, ontology, settings=settings, embedder=embedder)
    units = list_units(graph, ontology, compared)
    new = ~find_stated(graph, ontology)
    order = np.argsort(units.unit_of, kind="stable")
    starts = np.concatenate([[0], np.cumsum(units.facts)])
    proposals: list[Proposal] = []
    for cluster in cluster_units(units, ontology.schema, settings=settings, embedder=embedder):
        places = np.concatenate([order[starts[u] : starts[u + 1]] for u in cluster.tolist()])
        facts = np.sort(places[new[places]])
        if len(facts) >= settings.min_support:
            wordings = [units.wordings[u] for u in cluster.tolist()]
            score = _score(units, cluster)
            proposals.append(draft_property(graph, facts, wordings, score, ontology.schema))
    ordered = sorted(proposals, key=lambda p: (p.existing is not None, -p.score, p.label))
    return replace(compared, proposals=tuple(ordered))


def _score(units: Units, cluster: Places) -> float:
    """Facts of the cluster, each weighted by its priority's rank."""
    return float((units.missing[cluster] * units.new[cluster]).sum())
