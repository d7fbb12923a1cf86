"""Both layers as phrases in one space, and the priority of each phrase of the graph."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.nouns import find_filing, find_noun, is_filing, name_kind
from kpyramid.completion.types import (
    LITERAL,
    Completion,
    GraphLayer,
    OntologyLayer,
    Phrases,
    Places,
    encode,
    group_rows,
    may_share,
)
from kpyramid.documents.words import FUNCTION_WORDS, lemmatise
from kpyramid.embeddings.port import Embedder, Matrix, embed_finite
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
from kpyramid.ontology.names import THING
from kpyramid.ontology.population.checking import Kinds
from kpyramid.ontology.schema import Schema
from kpyramid.settings import CompleteSettings, PhraseKind

_VALUE = "value"
"""What stands for a literal, and for a datatype, in a phrase."""
_KIND = "kind"
"""The end of `X is a …` that names a class."""
_SHARED = 0.5
"""How much a phrase is less new of which the ontology has all words, or values for all facts."""
_COVERED = 0.65
"""Novelty up to which a phrase is taken for one that the ontology has in other words."""
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|_")

_Ends = tuple[str | None, str | None]
"""What a phrase joins: classes, `value`, `kind`, or None where no class is known."""


@dataclass(frozen=True, slots=True, eq=False)
class _Said:
    """A layer's distinct phrases, how many rows say each, and the phrase of each row.

    `ends` and `words`: what each joins, and the words between; empty for phrases with names.
    """

    texts: list[str]
    counts: Places
    phrase_of: Places
    ends: list[_Ends]
    words: list[str]


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
            round_digits(np.pad(where, ((0, 0), (0, 2)))[:, :2]),
            _measure_density(placed[0], space, where),
            _measure_density(placed[1], space, where),
            own,
        )
        for layer, where, own in zip(said, points, moments, strict=True)
    ]
    if not moments[1].count:
        priority = Signed(np.ones(len(points[0]), dtype=np.int8), np.zeros(len(points[0])))
    elif settings.priority == "novelty":
        words = [embed_finite(embedder, layer.words) for layer in said]
        priority = _score_novelty(said, words if said[1].ends else vectors, ontology, graph)
    else:
        densities = phrases[0].log_graph, phrases[0].log_ontology
        priority = score_priority(settings.priority, *densities)
    region = choose_region(priority, said[0].counts, settings.region_share)
    if settings.priority == "novelty" and settings.region_share < 1.0:
        region &= priority.sign > 0
    return Completion(
        graph=phrases[0],
        ontology=phrases[1],
        explained=space.explained,
        phrase_of=said[0].phrase_of,
        sign=priority.sign.astype(np.int64),
        log_magnitude=priority.log_magnitude,
        region=region,
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
    shared: dict[_Ends, _Ends] = {}
    ends: list[_Ends] = []
    firsts, lasts = [], []
    filing = find_filing(graph)
    for at, (head, value) in enumerate(graph.pairs):
        first = _find_kind(ontology.classes.get(head), graph.head_types[at], schema)
        last = _find_kind(ontology.classes.get(value), graph.tail_types[at], schema)
        firsts.append(_label(first, schema))
        if filing[at]:
            tail = int(tails.codes[at])
            if tail not in nouns:
                found = find_noun(tails.words[tail], kinds)
                nouns[tail] = name_kind(found) if found else tails.words[tail]
            lasts.append(nouns[tail])
            last = last or (_KIND if schema.knows_types else None)
        else:
            lasts.append(_label(last, schema))
        both = first, last
        ends.append(shared.setdefault(both, both))
    return _say(firsts, graph.wordings, lasts, ends=ends)


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
    for at, iri in enumerate(ontology.properties):
        first, last = _find_ends(ontology, at)
        rows.add((first, iri, last))
    said = [
        ((domain, range_iri), (_label(domain, schema), label, _label(range_iri, schema)))
        for domain, iri, range_iri in sorted(rows)
        for prop in [schema.property_by_iri[iri]]
        for label in (prop.label, *prop.alt_labels)
    ]
    said += [
        ((parent, _KIND), (_label(parent, schema), "is a", label))
        for found in schema.classes
        for parent in (found.parents or (THING,))
        for label in (found.label, *found.alt_labels)
    ]
    if not said:
        return _say([], [])
    ends, parts = zip(*said, strict=True)
    columns = ([_HUMP.sub(" ", text) for text in part] for part in zip(*parts, strict=True))
    return _say(*columns, ends=ends)


def _find_kind(known: str | None, entity_type: str, schema: Schema) -> str | None:
    """What an end is: its class, else that of its type; `value` of a literal."""
    return _VALUE if entity_type == LITERAL else known or schema.class_for_type(entity_type)


def _label(kind: str | None, schema: Schema) -> str:
    found = schema.class_by_iri.get(kind or THING)
    return found.label if found else "thing" if kind in (None, THING) else _VALUE


def _score_novelty(
    said: Sequence[_Said], vectors: Sequence[Matrix], known: OntologyLayer, graph: GraphLayer
) -> Signed:
    """How far each phrase of the graph is from what the ontology can say; negative where it can.

    1 minus the largest cosine to a phrase whose classes the ends may be of, either way round; 1
    where there is none. Taken off are half the largest share of its words that such a phrase has,
    and half the share of the facts with such ends that values may be which no fact joins. The
    ontology states nothing of an end that it has no class for: each adds the share of all ends
    that it has one for. Where the types of recognisers give classes, it is a noun that no property
    has a place for, and halves the novelty. Without classes of recognisers `_COVERED` is taken off,
    so that what is covered is negative.
    """
    own, ontology = said
    if not ontology.ends:
        return Signed.of(measure_novelty(*vectors))
    schema = known.schema
    weights = np.repeat(own.counts, 2)
    classed = np.array([end is not None for ends in own.ends for end in ends], dtype=bool)
    more = float(weights[classed].sum()) / max(1, int(weights.sum()))
    there, here = defaultdict[_Ends, list[int]](list), defaultdict[_Ends, list[int]](list)
    for groups, layer in ((there, ontology), (here, own)):
        for at, ends in enumerate(layer.ends):
            groups[ends].append(at)
    stated = {*known.pairs, *(pair[::-1] for pair in known.pairs)}.intersection(graph.pairs)
    stated |= {pair[::-1] for pair in stated}
    values = Counter[_Ends](
        _find_ends(known, at) for at, pair in enumerate(known.pairs) if pair not in stated
    )
    novelty = np.ones(len(own.texts))
    for ends, places in here.items():
        fitting = [other for other in there if _may_state(ends, other, schema)]
        near = [at for other in fitting for at in there[other]]
        if near:
            novelty[places] = measure_novelty(vectors[0][places], vectors[1][near])
            novelty[places] -= _SHARED * _share_words(
                [own.words[at] for at in places], [ontology.words[at] for at in near]
            )
        left = sum(values[other] for other in fitting)
        novelty[places] -= _SHARED * min(1.0, left / int(own.counts[places].sum()))
        unknown = ends.count(None)
        if schema.knows_types:
            novelty[places] *= 0.5**unknown
        else:
            novelty[places] += more * unknown - _COVERED
    return Signed.of(novelty)


def _find_ends(known: OntologyLayer, at: int) -> tuple[str, str]:
    """The classes of a value's ends: its individuals', else those of its property."""
    (subject, value), prop = known.pairs[at], known.schema.property_by_iri[known.properties[at]]
    return known.classes.get(subject, prop.domain), known.classes.get(value, prop.range)


def _share_words(own: Sequence[str], known: Sequence[str]) -> Array:
    """Of some phrases, the largest share of words that a known one has; shape (n,)."""
    having = defaultdict[str, list[int]](list)
    for at, text in enumerate(known):
        for word in _read_words(text):
            having[word].append(at)
    shares = []
    for text in own:
        words = _read_words(text)
        shared = Counter(at for word in words for at in having.get(word, ()))
        shares.append(max(shared.values(), default=0) / max(1, len(words)))
    return np.array(shares)


def _read_words(text: str) -> set[str]:
    return {lemmatise(word).casefold() for word in text.casefold().split()} - FUNCTION_WORDS


def _may_state(ends: _Ends, other: _Ends, schema: Schema) -> bool:
    """Whether a phrase of the ontology with the other ends may be said of these."""

    def fits(end: str | None, wanted: str | None) -> bool:
        if end is None or THING in (end, wanted):
            return True
        if wanted in schema.class_by_iri and end in schema.class_by_iri:
            return may_share(end, wanted, schema)
        return end == wanted or (end == _VALUE and wanted in DATATYPES)

    return any(
        fits(ends[0], first) and fits(ends[1], second) for first, second in (other, other[::-1])
    )


def _say(*parts: Sequence[str], ends: Sequence[_Ends] = ()) -> _Said:
    columns = [encode(part) for part in parts]
    places, phrase_of, counts = group_rows(*(column.codes for column in columns))
    texts = (pa.array(column.words, pa.large_string()) for column in columns)
    words = [text.take(pa.array(own)) for text, own in zip(texts, places, strict=True)]
    # Two rows may spell one phrase: "Ann" with "Lee visited", "Ann Lee" with "visited".
    spelt = encode(pc.binary_join_element_wise(*words, pa.scalar(" ", pa.large_string())))
    facts = np.bincount(spelt.codes, counts, len(spelt.words)).astype(np.int64)
    phrase = spelt.codes[phrase_of]
    first = np.unique(phrase, return_index=True)[1].tolist() if ends else []
    filing = set(filter(is_filing, columns[1].words)) if ends else set()
    between = [f"is a {parts[2][at]}" if parts[1][at] in filing else parts[1][at] for at in first]
    return _Said(spelt.words, facts, phrase, [ends[at] for at in first], between)


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
