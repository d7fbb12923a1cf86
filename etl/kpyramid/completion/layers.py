"""Both layers as phrases in one space, and the priority of each phrase of the graph."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kpyramid.completion.types import (
    Completion,
    GraphLayer,
    OntologyLayer,
    Phrases,
    Places,
    encode,
    group_rows,
    sum_by,
)
from kpyramid.embeddings.port import Embedder, embed_finite
from kpyramid.numerics.gaussian import Space, fit_gaussian, fit_space
from kpyramid.numerics.moments import Array, Moments, round_digits
from kpyramid.numerics.priority import Signed, score_priority
from kpyramid.settings import CompleteSettings


@dataclass(frozen=True, slots=True, eq=False)
class _Said:
    """A layer's distinct phrases, how many rows say each, and the phrase of each row."""

    texts: list[str]
    counts: Places
    phrase_of: Places


def compare_layers(
    graph: GraphLayer, ontology: OntologyLayer, *, settings: CompleteSettings, embedder: Embedder
) -> Completion:
    """Both layers' densities and the priority of each phrase of the graph; no proposals yet.

    PolyRAG §III-B: "subject relation" phrases, their principal components, a Gaussian per layer
    (Eq. 4), a priority per phrase. An ontology that says nothing lacks everything: all phrases have
    the same positive priority.

    Raises:
        InputError: the embedding of a phrase is not finite; names the phrase.
    """
    said = [say_graph(graph), say_ontology(ontology)]
    vectors = [embed_finite(embedder, layer.texts) for layer in said]
    size = max(found.shape[1] for found in vectors)  # a model may give no columns for no texts
    vectors = [found if len(found) else found.reshape(0, size) for found in vectors]
    moments = [Moments.of(points, on_grid=True) for points in vectors]
    both = moments[0] + moments[1]
    space = (
        fit_space(both, settings.dimensions)
        if both.count
        else Space(both.total, np.zeros((0, len(both.total))), np.zeros(0), np.zeros(0))
    )
    points = [space.transform(layer) for layer in vectors]
    placed = [space.project(layer) for layer in moments]
    phrases = [
        Phrases(
            layer.texts,
            layer.counts,
            _plane(where),
            _measure_density(placed[0], space, where),
            _measure_density(placed[1], space, where),
            own,
        )
        for layer, where, own in zip(said, points, moments, strict=True)
    ]
    priority = (
        score_priority(settings.priority, phrases[0].log_graph, phrases[0].log_ontology)
        if moments[1].count
        else Signed(np.ones(len(points[0]), dtype=np.int8), np.zeros(len(points[0])))
    )
    return Completion(
        graph=phrases[0],
        ontology=phrases[1],
        explained=space.explained,
        phrase_of=said[0].phrase_of,
        sign=priority.sign.astype(np.int64),
        log_magnitude=priority.log_magnitude,
        region=choose_region(priority, said[0].counts, settings.region_share),
        proposals=(),
    )


def say_graph(graph: GraphLayer) -> _Said:
    """The phrases "<head> <wording>" of the facts."""
    return _say(graph.heads, graph.wordings)


def say_ontology(ontology: OntologyLayer) -> _Said:
    """The phrases "<subject> <property>" of the values.

    A property without any value stands with its class's name, so that nothing that the schema has
    counts as missing.
    """
    schema = ontology.schema
    labels = {prop.iri: prop.label for prop in schema.properties}
    bare = sorted(labels.keys() - set(ontology.properties))
    domains = (schema.class_by_iri.get(schema.property_by_iri[iri].domain) for iri in bare)
    subjects = [*ontology.subjects, *(found.label if found else "thing" for found in domains)]
    return _say(subjects, [labels[iri] for iri in (*ontology.properties, *bare)])


def _say(subjects: Sequence[str], relations: Sequence[str]) -> _Said:
    first, second = encode(subjects), encode(relations)
    (left, right), phrase_of, counts = group_rows(first.codes, second.codes)
    # Two pairs may spell one phrase: "Ann" with "Lee visited", "Ann Lee" with "visited".
    spelt = encode(
        [
            f"{first.words[a]} {second.words[b]}"
            for a, b in zip(left.tolist(), right.tolist(), strict=True)
        ]
    )
    facts = sum_by(spelt.codes, counts.astype(np.float64), len(spelt.words)).astype(np.int64)
    return _Said(spelt.words, facts, spelt.codes[phrase_of])


def _plane(points: Array) -> Array:
    """The first two coordinates of points (n, k), 0 where the space has fewer axes."""
    plane = np.zeros((len(points), 2))
    plane[:, : min(2, points.shape[1])] = points[:, :2]
    return round_digits(plane)


def _measure_density(layer: Moments, space: Space, points: Array) -> Array:
    """Log densities of a layer at points, in nats; 0.0 where the layer or the space is empty."""
    if not layer.count or not len(space.components):
        return np.zeros(len(points))
    return round_digits(fit_gaussian(layer, space.floor).log_density(points))


def choose_region(priority: Signed, facts: Places, share: float) -> npt.NDArray[np.bool_]:
    """The phrases of highest priority that together say at least `share` of the facts."""
    region = np.zeros(len(priority), dtype=bool)
    order = priority.order()
    said = np.cumsum(facts[order])
    if len(order):
        last = int(np.searchsorted(said, share * said[-1]))
        region[order[: last + 1]] = True
    return region
