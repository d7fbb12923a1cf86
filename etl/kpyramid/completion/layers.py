"""Both layers as phrases in one space, and the priority of each phrase of the graph."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kpyramid.completion.nouns import find_filing, find_noun
from kpyramid.completion.types import (
    LITERAL,
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
from kpyramid.numerics.priority import Signed, score_novelty, score_priority
from kpyramid.ontology.names import THING
from kpyramid.ontology.population.checking import Kinds
from kpyramid.ontology.schema import Schema
from kpyramid.settings import CompleteSettings, PhraseKind

_VALUE = "value"
"""What stands for a literal, and for a datatype, in a phrase."""


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
    said = [say_graph(graph, ontology, settings.phrases), say_ontology(ontology, settings.phrases)]
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
    if not moments[1].count:
        priority = Signed(np.ones(len(points[0]), dtype=np.int8), np.zeros(len(points[0])))
    elif settings.priority == "novelty":
        priority = score_novelty(vectors[0], vectors[1])
    else:
        densities = phrases[0].log_graph, phrases[0].log_ontology
        priority = score_priority(settings.priority, *densities)
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


def say_graph(graph: GraphLayer, ontology: OntologyLayer, by: PhraseKind) -> _Said:
    """The phrases of the facts, in the form that `CompleteSettings.phrases` says.

    Of `X is a …` the noun stands in place of the class of its tail.
    """
    if by == "names":
        return _say(graph.heads, graph.wordings)
    schema = ontology.schema
    kinds = Kinds(schema)
    tails = encode(graph.tails)
    nouns: dict[int, str] = {}
    firsts, lasts = [], []
    filing = find_filing(graph)
    for at, (head, value) in enumerate(graph.pairs):
        firsts.append(_name_kind(ontology.classes.get(head), graph.head_types[at], schema))
        if filing[at]:
            tail = int(tails.codes[at])
            if tail not in nouns:
                found = find_noun(tails.words[tail], kinds)
                nouns[tail] = " ".join(filter(None, found[::-1])) if found else tails.words[tail]
            lasts.append(nouns[tail])
        else:
            lasts.append(_name_kind(ontology.classes.get(value), graph.tail_types[at], schema))
    return _say(firsts, graph.wordings, lasts)


def say_ontology(ontology: OntologyLayer, by: PhraseKind) -> _Said:
    """The phrases of the values and of the schema, in the form of `say_graph`.

    By classes, each property stands with all its labels between its own ends and between those of
    its values, and each class as a kind of the class above it. By names, a property without any
    value stands with the label of its class, so that nothing that the schema has is missing.
    """
    schema = ontology.schema
    if by == "names":
        labels = {prop.iri: prop.label for prop in schema.properties}
        bare = sorted(labels.keys() - set(ontology.properties))
        domains = (_label(schema.property_by_iri[iri].domain, schema) for iri in bare)
        relations = [labels[iri] for iri in (*ontology.properties, *bare)]
        return _say([*ontology.subjects, *domains], relations)
    rows = {(p.domain, p.iri, p.range) for p in schema.properties}
    for (subject, value), iri in zip(ontology.pairs, ontology.properties, strict=True):
        prop = schema.property_by_iri[iri]
        classes = ontology.classes.get(subject, prop.domain), ontology.classes.get(value)
        rows.add((classes[0], iri, classes[1] or prop.range))
    said = [
        (_label(domain, schema), label, _label(range_iri, schema))
        for domain, iri, range_iri in rows
        for prop in [schema.property_by_iri[iri]]
        for label in (prop.label, *prop.alt_labels)
    ]
    said += [
        (_label(parent, schema), "is a", label)
        for found in schema.classes
        for parent in (found.parents or (THING,))
        for label in (found.label, *found.alt_labels)
    ]
    return _say(*zip(*said, strict=True)) if said else _say([], [])


def _name_kind(known: str | None, entity_type: str, schema: Schema) -> str:
    """What an end is in words: its class, else that of its type; `value` of a literal."""
    if entity_type == LITERAL:
        return _VALUE
    return _label(known or schema.class_for_type(entity_type) or THING, schema)


def _label(iri: str, schema: Schema) -> str:
    found = schema.class_by_iri.get(iri)
    return found.label if found else "thing" if iri == THING else _VALUE


def _say(*parts: Sequence[str]) -> _Said:
    columns = [encode(part) for part in parts]
    places, phrase_of, counts = group_rows(*(column.codes for column in columns))
    words = [[column.words[at] for at in own] for column, own in zip(columns, places, strict=True)]
    # Two rows may spell one phrase: "Ann" with "Lee visited", "Ann Lee" with "visited".
    spelt = encode([" ".join(row) for row in zip(*words, strict=True)])
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
