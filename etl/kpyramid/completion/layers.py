"""Both layers as phrases in one space, and the priority of each phrase of the graph."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.nouns import find_filing, find_noun, name_kind
from kpyramid.completion.types import (
    LITERAL,
    Completion,
    GraphLayer,
    Layers,
    OntologyLayer,
    Phrases,
    find_stated,
)
from kpyramid.documents.words import FUNCTION_WORDS, is_filing, lemmatise, normalise_relation
from kpyramid.embeddings.port import Embedder, Matrix, embed_finite
from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.numerics.gaussian import (
    Signed,
    Space,
    fit_gaussian,
    fit_space,
    measure_novelty,
    score_priority,
)
from kpyramid.numerics.moments import Array, Moments, round_digits
from kpyramid.ontology.literals import DATATYPES
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.population.checking import Kinds
from kpyramid.ontology.schema import Schema
from kpyramid.settings import CompleteSettings
from kpyramid.storage.columns import TextColumn, encode, group_rows, join_columns, pick_rows

_VALUE = "value"
"""Stands for a literal, and for a datatype, in a phrase."""
_KIND = "kind"
"""Stands for the end of `X is a …` that names a class."""
_SHARED = 0.5
"""Novelty taken off a phrase if the ontology has all its words; or values for all its facts."""
_COVERED = 0.6
"""Novelty up to which a phrase counts as one that the ontology has in other words."""
_BLOCK = 8192
"""Phrases whose vectors are in memory at a time."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|_")

_Ends = tuple[str | None, str | None]
"""The ends that a phrase joins: a class, `value`, `kind`, or None where no class is known."""


@dataclass(frozen=True, slots=True, eq=False)
class _Layer:
    """A layer's distinct phrases, the number of rows with each, and the phrase of each row.

    `ends`: distinct pairs of ends; `ends_of`: index in `ends` of each phrase; `words`: the words of
    each phrase between its ends.
    """

    texts: TextColumn
    counts: Integers
    phrase_of: Integers
    ends: Sequence[_Ends]
    ends_of: Integers
    words: TextColumn


def compare_layers(
    graph: GraphLayer, ontology: OntologyLayer, *, settings: CompleteSettings, embedder: Embedder
) -> Completion:
    """The priority of each phrase of the graph, and how to measure both layers; no proposals yet.

    PolyRAG §III-B: "subject relation" phrases, their principal components, a Gaussian per layer
    (Eq. 4), a priority per phrase.

    Raises:
        InputError: the embedding of a phrase is not finite; names the phrase.
    """
    layers = [say_graph(graph, ontology), say_ontology(ontology)]
    measure = cache(partial(_measure_layers, layers, settings.dimensions, embedder))
    if settings.priority == "novelty":
        words = [embed_finite(embedder, layer.words) for layer in layers]
        priority = _score_novelty(layers, words, ontology, graph)
    else:
        placed = measure().graph
        priority = score_priority(settings.priority, placed.log_graph, placed.log_ontology)
    region = choose_region(priority, layers[0].counts, settings.region_share)
    if settings.priority == "novelty" and settings.region_share < 1.0:
        region &= priority.sign > 0
    return Completion(
        measure=measure,
        phrase_of=layers[0].phrase_of,
        sign=priority.sign.astype(np.int64),
        log_magnitude=priority.log_magnitude,
        region=region,
        proposals=(),
    )


def _measure_layers(layers: Sequence[_Layer], dimensions: int, embedder: Embedder) -> Layers:
    """Both layers in the space of their first `dimensions` principal components.

    Raises:
        InputError: as `compare_layers`.
    """
    vectors = [embed_finite(embedder, layer.texts) for layer in layers]
    size = max(matrix.shape[1] for matrix in vectors)  # a model may give no columns for no texts
    vectors = [matrix if len(matrix) else matrix.reshape(0, size) for matrix in vectors]
    moments = [Moments.of(points, on_grid=True) for points in vectors]
    space = fit_space(moments[0] + moments[1], dimensions)
    placed = [space.project(layer) for layer in moments]
    graph, ontology = (
        Phrases(layer.texts, layer.counts, *_place(points, space, placed), layer_moments)
        for layer, points, layer_moments in zip(layers, vectors, moments, strict=True)
    )
    return Layers(graph, ontology, space.explained)


def say_graph(graph: GraphLayer, ontology: OntologyLayer) -> _Layer:
    """The phrases of the facts: the classes of both ends around the wording.

    For `X is a …` the noun stands in place of the class of its tail.
    """
    schema = ontology.schema
    known, ends = _find_kinds(graph, ontology)
    labels = [_label(kind, schema) for kind in known]
    words = ends.copy()
    filed = np.flatnonzero(find_filing(graph))
    tails = encode(pick_rows(graph.tails, filed))
    kinds = Kinds(schema)
    nouns = [(find_noun(tail, kinds), tail) for tail in tails.words]
    words[1, filed] = len(labels) + tails.codes
    if schema.knows_types:
        unknown = filed[np.array([kind is None for kind in known], dtype=bool)[ends[1, filed]]]
        ends[1, unknown] = len(known)
    labels += [name_kind(noun) if noun else tail for noun, tail in nouns]
    first, last = (TextColumn(pa.array(labels, pa.large_string()), codes) for codes in words)
    return _say(first, graph.wordings, last, ends=([*known, _KIND], ends))


def _find_kinds(graph: GraphLayer, ontology: OntologyLayer) -> tuple[list[str | None], Integers]:
    """The distinct kinds of ends, and the index of each head's and tail's kind, shape (2, n)."""
    keys = encode(join_columns(graph.head_keys, graph.tail_keys))
    types = encode(join_columns(graph.head_types, graph.tail_types))
    (key, kind), ends, _ = group_rows(keys.codes, types.codes)
    places: dict[str | None, int] = {}
    of_end = np.empty(len(key), dtype=np.int64)
    both = zip(pick_rows(keys.words, key), pick_rows(types.words, kind), strict=True)
    for index, (key_text, entity_type) in enumerate(both):
        end_kind = _find_kind(ontology.classes.get(key_text), entity_type, ontology.schema)
        of_end[index] = places.setdefault(end_kind, len(places))
    return list(places), of_end[ends].reshape(2, -1)


def say_ontology(ontology: OntologyLayer) -> _Layer:
    """The phrases of the values and of the schema, in the form of `say_graph`.

    Each property gives a phrase per label between its domain and range and between the ends of its
    values; each class gives one as a kind of the class above it.
    """
    schema = ontology.schema
    rows = {(p.domain, p.iri, p.range) for p in schema.properties}
    for row, iri in enumerate(ontology.properties):
        first, last = _find_ends(ontology, row)
        rows.add((first, iri, last))
    phrases = [
        ((domain, range_iri), (_label(domain, schema), label, _label(range_iri, schema)))
        for domain, iri, range_iri in sorted(rows)
        for prop in [schema.property_by_iri[iri]]
        for label in (prop.label, *prop.alt_labels)
    ]
    phrases += [
        ((parent, _KIND), (_label(parent, schema), "is a", label))
        for cls in schema.classes
        for parent in (cls.parents or (THING,))
        for label in (cls.label, *cls.alt_labels)
    ]
    ends, parts = zip(*phrases, strict=True)
    columns = ([_HUMP.sub(" ", text) for text in part] for part in zip(*parts, strict=True))
    known = {end: index for index, end in enumerate(sorted({end for both in ends for end in both}))}
    places = np.array([[known[end] for end in column] for column in zip(*ends, strict=True)])
    return _say(*columns, ends=(list(known), places))


def _find_kind(known: str | None, entity_type: str, schema: Schema) -> str | None:
    """The kind of an end: its class, else that of its type; `value` for a literal."""
    return _VALUE if entity_type == LITERAL else known or schema.class_for_type(entity_type)


def _label(kind: str | None, schema: Schema) -> str:
    cls = schema.class_by_iri.get(kind or THING)
    return cls.label if cls else "thing" if kind in (None, THING) else _VALUE


def _score_novelty(
    layers: Sequence[_Layer], vectors: Sequence[Matrix], known: OntologyLayer, graph: GraphLayer
) -> Signed:
    """The distance of each phrase of the graph from those of the ontology; negative where covered.

    1 minus the largest cosine to a phrase with compatible ends, in either direction; 1 where there
    is none. Subtracted are half the largest share of its words in such a phrase, and half the ratio
    (at most 1) of values that no fact states to facts with such ends. The ontology states nothing
    of an end without a class. Where the types of recognisers give classes, such an end is a noun
    for which no property has a place: it halves the novelty. Elsewhere it adds the share of all
    ends that have a class, and `_COVERED` is subtracted, so that covered phrases become negative.
    """
    phrases, ontology = layers
    schema = known.schema
    classed = np.array([2 - ends.count(None) for ends in phrases.ends], dtype=np.int64)
    more = float(phrases.counts @ classed[phrases.ends_of]) / max(1, 2 * int(phrases.counts.sum()))
    classes = sum(prop.range in schema.class_by_iri for prop in schema.properties)
    loose = 2 * classes < len(schema.properties)
    there, here = _group_ends(ontology), _group_ends(phrases)
    is_stated = find_stated(graph, known)
    stated = {pair for pair, held in zip(graph.walk_pairs(), is_stated, strict=True) if held}
    stated |= {pair[::-1] for pair in stated}
    values = Counter[_Ends](
        _find_ends(known, row) for row, pair in enumerate(known.pairs) if pair not in stated
    )
    novelty = np.ones(len(phrases.texts))
    known_ends = {end for pair in there for end in pair}
    fit = cache(lambda end: {e for e in known_ends if _may_be(end, e, schema, loose=loose)})
    for ends, places in here.items():
        first, last = map(fit, ends)
        fitting = [
            (a, b) for a, b in there if (a in first and b in last) or (b in first and a in last)
        ]
        near = np.concatenate([np.zeros(0, dtype=np.int64), *(there[pair] for pair in fitting)])
        nearby, having = vectors[1][near], _index_words(pick_rows(ontology.words, near))
        for start in range(0, len(places) if len(near) else 0, _BLOCK):
            block = places[start : start + _BLOCK]
            novelty[block] = measure_novelty(vectors[0][block], nearby)
            novelty[block] -= _SHARED * _share_words(pick_rows(phrases.words, block), having)
        left = sum(values[pair] for pair in fitting)
        novelty[places] -= _SHARED * min(1.0, left / int(phrases.counts[places].sum()))
        unknown = ends.count(None)
        if schema.knows_types:
            novelty[places] *= 0.5**unknown
        else:
            novelty[places] += more * unknown - _COVERED
    coverage = _rate_coverage(phrases, known, graph, is_stated)
    return Signed.of(novelty - np.maximum(novelty, 0.0) * coverage)


def _rate_coverage(phrases: _Layer, known: OntologyLayer, graph: GraphLayer, stated: Mask) -> Array:
    """The degree to which the ontology already states each phrase of the graph, 0 to 1.

    A wording is covered by the share of its facts that are values already, among those about things
    that have values (distant supervision, Mintz et al. 2009). Since values are never complete, this
    share is divided by the average share of the wordings of values.
    `stated`: which facts are values, shape (n,).
    """
    subjects = {subject for subject, _ in known.pairs}
    wordings = encode(graph.wordings)
    keys = encode([normalise_relation(word).key for word in wordings.words]).codes[wordings.codes]
    named = (not subjects.isdisjoint(pair) for pair in graph.walk_pairs())
    about = stated | np.fromiter(named, bool, count=len(graph))
    facts = np.bincount(keys[about], minlength=int(keys.max(initial=-1)) + 1)
    values = np.bincount(keys[stated], minlength=len(facts))
    share = values / np.maximum(facts, 1)
    usual = float(share @ values) / max(1, int(values.sum()))
    covered = np.minimum(share / usual, 1.0) if usual else share
    sums = np.bincount(phrases.phrase_of, covered[keys], len(phrases.texts))
    return np.asarray(sums / np.bincount(phrases.phrase_of, minlength=len(phrases.texts)))


def _group_ends(layer: _Layer) -> dict[_Ends, Integers]:
    """The indices of the phrases with each pair of ends, ascending."""
    order = np.argsort(layer.ends_of, kind="stable")
    parts = np.split(order, np.searchsorted(layer.ends_of[order], np.arange(1, len(layer.ends))))
    return dict(zip(layer.ends, parts, strict=True)) if layer.ends else {}


def _find_ends(known: OntologyLayer, row: int) -> tuple[str, str]:
    """The classes of a value's ends: of the individuals, else the property's domain and range."""
    (subject, value), prop = known.pairs[row], known.schema.property_by_iri[known.properties[row]]
    return known.classes.get(subject, prop.domain), known.classes.get(value, prop.range)


def _index_words(texts: Sequence[str]) -> Mapping[str, Sequence[int]]:
    """The indices of the texts that contain each word."""
    having = defaultdict[str, list[int]](list)
    for index, text in enumerate(texts):
        for word in _read_words(text):
            having[word].append(index)
    return having


def _share_words(phrases: Sequence[str], having: Mapping[str, Sequence[int]]) -> Array:
    """The largest share of each phrase's words that one known phrase contains, shape (n,)."""
    shares = []
    for text in phrases:
        words = _read_words(text)
        shared = Counter(index for word in words for index in having.get(word, ()))
        shares.append(max(shared.values(), default=0) / max(1, len(words)))
    return np.array(shares)


@lru_cache(maxsize=1 << 16)
def _read_words(text: str) -> frozenset[str]:
    words = text.casefold().split()
    return frozenset(lemmatise(word).casefold() for word in words) - FUNCTION_WORDS


def _may_be(end: str | None, known: str | None, schema: Schema, *, loose: bool) -> bool:
    """Whether a phrase of the ontology with a `known` end may apply to this end.

    `loose`: a string fits any end, since the ontology gives most properties no class as range; a
    recogniser takes such values for things (`Ann Prize` for an ORG).
    """
    if end is None or THING in (end, known):
        return True
    if known in schema.class_by_iri and end in schema.class_by_iri:
        return schema.may_share(end, known)
    if loose and known == XSD + "string":
        return True
    return end == known or (end == _VALUE and known in DATATYPES)


def _say(*parts: Sequence[str], ends: tuple[Sequence[str | None], Integers]) -> _Layer:
    """The phrases of columns joined row by row; `ends`: distinct kinds, and those of each row."""
    columns = [encode(part) for part in parts]
    places, phrase_of, counts = group_rows(*(column.codes for column in columns))
    words = [column.words.take(rows) for column, rows in zip(columns, places, strict=True)]
    gap, is_a = (pa.scalar(word, pa.large_string()) for word in (" ", "is a"))
    # Two rows may spell one phrase: "Ann" with "Lee visited", "Ann Lee" with "visited".
    spelt = encode(pc.binary_join_element_wise(*words, gap))
    facts = np.bincount(spelt.codes, counts, len(spelt.words)).astype(np.int64)
    phrase = spelt.codes[phrase_of]
    _, first = np.unique(phrase, return_index=True)
    known, codes = ends
    (head, tail), pair_of, _ = group_rows(*codes[:, first])
    pairs = [(known[a], known[b]) for a, b in zip(head.tolist(), tail.tolist(), strict=True)]
    _, wordings, lasts = columns
    is_filed = np.array([is_filing(word) for word in wordings.words], dtype=bool)
    between = pc.if_else(
        pa.array(is_filed[wordings.codes[first]]),
        pc.binary_join_element_wise(is_a, lasts.words.take(lasts.codes[first]), gap),
        wordings.words.take(wordings.codes[first]),
    )
    return _Layer(spelt.words, facts, phrase, pairs, pair_of, TextColumn(between))


def _place(vectors: Matrix, space: Space, layers: Sequence[Moments]) -> tuple[Array, Array, Array]:
    """The phrases' points on the first two axes, and both layers' log densities there, in nats.

    Densities are 0.0 where the layer or the space is empty.
    """
    densities = [
        fit_gaussian(layer, space.floor) if layer.count and len(space.components) else None
        for layer in layers
    ]
    plane, logs = np.zeros((len(vectors), 2)), np.zeros((2, len(vectors)))
    for start in range(0, len(vectors), _BLOCK):
        block = slice(start, start + _BLOCK)
        points = space.transform(vectors[block])
        axes = points[:, :2]
        plane[block, : axes.shape[1]] = round_digits(axes)
        for column, density in zip(logs, densities, strict=True):
            if density is not None:
                column[block] = round_digits(density.log_density(points))
    return plane, logs[0], logs[1]


def choose_region(priority: Signed, facts: Integers, share: float) -> Mask:
    """The phrases of highest priority that together cover at least `share` of the facts."""
    region = np.zeros(len(priority), dtype=bool)
    order = priority.order()
    cumulated = np.cumsum(facts[order])
    if len(order):
        last = int(np.searchsorted(cumulated, share * cumulated[-1]))
        region[order[: last + 1]] = True
    return region
