"""Complete: what the graph says often and the ontology lacks becomes a class or a property.

PolyRAG §III-B: both layers' phrases in one space, a Gaussian per layer, a priority per phrase,
k-medoids over the priority region, a proposal per cluster, instances of what is accepted. Each
round compares the graph with what the ontology has grown to.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kpyramid.completion.decisions import Decisions
from kpyramid.completion.naming import Namer
from kpyramid.completion.proposals import propose
from kpyramid.completion.types import Completion, Phrases
from kpyramid.embeddings.port import Embedder
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.keys import content_id
from kpyramid.numerics.moments import round_digits
from kpyramid.ontology.constraints import Constraint
from kpyramid.ontology.proposals import adopt_proposals
from kpyramid.ontology.schema import Schema
from kpyramid.pipeline.stages.graph import Graph
from kpyramid.pipeline.stages.growth import Growth
from kpyramid.pipeline.stages.instances import state_values
from kpyramid.pipeline.stages.tables import (
    Row,
    build_rejects,
    build_table,
    build_vectors,
    make_reject,
)
from kpyramid.settings import CompleteSettings
from kpyramid.storage.columns import BLOCK, TextColumn
from kpyramid.storage.contracts import load_contracts

_DRAFTED = 3
"""Facts of a property that rules accept where the corpus makes the ontology, by default."""


def run(
    documents: pa.Table,
    chunks: pa.Table,
    claims: pa.Table,
    raw_triples: pa.Table,
    entities: pa.Table,
    relations: pa.Table,
    triples: pa.Table,
    instances: pa.Table,
    proposals: pa.Table,
    *,
    settings: CompleteSettings,
    schema: Schema,
    shapes: Sequence[Constraint],
    decisions: Decisions,
    drafting: Decisions | None = None,
    embedder: Embedder,
    namer: Namer | None,
) -> dict[str, pa.Table]:
    """`proposals` with the `instances` of the accepted ones, and what the first round measured.

    `additions` lists these instances, as against those that were there.

    That is `phrases`, `priorities` of all triples and `layers`, with the ontology as the seed and
    the decisions file have it. Rounds end when one adds nothing, or after `settings.rounds`.
    With `drafting` the corpus makes the ontology: `proposals` has its first classes, and all facts
    make proposals, as nothing is covered yet.

    Raises:
        InputError: an entry of the decisions file does not fit the ontology, or a vector is none.
    """
    graph = Graph(documents, chunks, claims, raw_triples, entities, relations, triples)
    if drafting is not None:
        drafted = proposals.to_pylist()
        schema = adopt_proposals(schema, drafted)
        decisions = decisions.leave_out(drafted)
        least = settings.accept_support
        least = _DRAFTED if least == CompleteSettings().accept_support else least
        settings = replace(settings, region_share=1.0, accept_support=least)
    comparer = Comparer(embedder)
    growth = Growth(
        graph,
        instances,
        schema,
        shapes,
        decisions,
        settings,
        comparer,
        is_open=drafting is not None,
    )
    growth.adopt_decided()
    measured: Completion | None = None
    rejects: list[Row] = []
    for number in range(1, settings.rounds + 1):
        found = propose(graph.layer, growth.layer, settings=settings, embedder=embedder)
        drawn, judges = found.proposals, {}
        measured = measured or replace(found, proposals=())
        if namer is not None:
            naming = namer.name(drawn, graph.layer, growth.schema, embedder)
            drawn, judges = naming.proposals, dict.fromkeys(naming.judged, namer.model)
            rejects += [make_reject("complete", x.reason, x.key, x.detail) for x in naming.losses]
        if not growth.adopt(drawn, number, judges):
            break
        del found, drawn  # the next round makes as much
    ends = {str(x[end]) for x in growth.made for end in ("subject_id", "object_id") if x[end]}
    stated = state_values(growth.made, growth.schema, graph.find_names(ends))
    return {
        **(_build_measured(measured, graph) if measured else {}),
        "proposals": build_table("proposals", growth.list_rows()),
        "instances": build_table("instances", growth.made),
        "additions": build_table("additions", growth.additions),
        "vectors": build_vectors("instances", *stated, embedder),
        "rejects": build_rejects([*growth.rejects, *growth.list_dropped(), *rejects]),
    }


def _build_measured(found: Completion, graph: Graph) -> dict[str, pa.Table]:
    """`phrases`, `priorities` and `layers`, column by column: there may be a million rows."""
    contracts = load_contracts()
    layers = {"graph": found.graph, "ontology": found.ontology}
    ids = {layer: _identify(layer, phrases.texts) for layer, phrases in layers.items()}
    outside = np.zeros(len(found.ontology.texts), dtype=bool)
    both = found.graph, found.ontology
    phrases = {
        "phrase_id": pa.chunked_array([*ids["graph"].chunks, *ids["ontology"].chunks], pa.string()),
        "layer": pa.chunked_array([pa.repeat(layer, len(own)) for layer, own in ids.items()]),
        "text": pa.chunked_array([part.texts.read().cast(pa.string()) for part in both]),
        "facts": np.concatenate([part.facts for part in both]),
        "x": round_digits(np.concatenate([part.points[:, 0] for part in both])),
        "y": round_digits(np.concatenate([part.points[:, 1] for part in both])),
        "log_graph": round_digits(np.concatenate([part.log_graph for part in both])),
        "log_ontology": round_digits(np.concatenate([part.log_ontology for part in both])),
        "region": np.concatenate([found.region, outside]),
    }
    place = found.phrase_of
    own = ids["graph"].take(pa.array(place))
    priorities = {
        "triple_id": graph.ids,
        "phrase_id": own,
        "sign": found.sign[place].astype(np.int64),
        "log_magnitude": round_digits(found.log_magnitude[place]),
        "region": found.region[place],
    }
    return {
        "phrases": contracts["phrases"].fill(phrases),
        "priorities": contracts["priorities"].fill(priorities),
        "layers": build_table(
            "layers", [_describe(name, part, found) for name, part in layers.items()]
        ),
    }


def _identify(layer: str, texts: TextColumn) -> pa.ChunkedArray:
    """The ids of phrases, block by block."""
    blocks = (texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK))
    found = ([content_id("phrase", layer, text) for text in block] for block in blocks)
    return pa.chunked_array(map(pa.array, found), pa.string())


def _describe(layer: str, phrases: Phrases, found: Completion) -> Row:
    moments = phrases.moments
    lower = np.tril_indices(len(moments.total))
    return {
        "layer": layer,
        "phrases": moments.count,
        "total": moments.total.tolist(),
        "outer": moments.outer[lower].tolist(),
        "explained": round_digits(found.explained).tolist(),
    }
