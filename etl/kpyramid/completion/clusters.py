"""Relations of the graph by their meaning, and the clusters of those the ontology lacks."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from kpyramid.completion.types import (
    LITERAL,
    Completion,
    GraphLayer,
    OntologyLayer,
    find_stated,
)
from kpyramid.documents.words import RelationForm, normalise_relation
from kpyramid.embeddings.port import Embedder, Matrix, embed_finite
from kpyramid.graph.synonyms.comparison import Comparer, Reading
from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.numerics.medoids import find_clusters
from kpyramid.settings import CompleteSettings
from kpyramid.storage.columns import Coded, encode, group_rows, join_columns

_EMPTY = frozenset({"be", "be a", "have", "do", "include", "make", "become"})
"""Relations too general to be a property."""
_TURNING = frozenset({"from", "against", "until", "before", "after"})
"""Last words that change the relation of the words before them: `transferred from`."""
_AXES = 64
"""Random axes that stand for all pairs: the cosine of two units errs by about 1/8."""


@dataclass(frozen=True, slots=True, eq=False)
class Units:
    """The relations of the graph grouped by meaning, as columns of equal length u.

    A unit is all wordings of one meaning, or of one base form where the lexicon has no meaning,
    read in the direction that more facts have (`plays for`, `has club`; `was born in`, `is
    birthplace of`). Wordings with literal tails and those with entities as tails are apart.
    `texts`: its most frequent wording in that direction. `support`: number of its new facts, which
    state no value of the ontology; `missing`: number of these in the priority region.
    `unit_of`, `turned`, `new`, `inside`: unit of each fact, whether it reads in the other
    direction, whether it is new, and whether it is new and in the region, shape (n,).
    """

    texts: list[str]
    support: Integers
    missing: Integers
    unit_of: Integers
    turned: Mask
    new: Mask
    inside: Mask

    def __len__(self) -> int:
        return len(self.texts)


def list_units(
    graph: GraphLayer, ontology: OntologyLayer, compared: Completion, comparer: Comparer
) -> Units:
    """The units of the facts.

    A wording that is a phrase of a property is not missing: a fact with it that states no value has
    ends that did not fit.
    """
    wordings = encode(graph.wordings)
    forms = [normalise_relation(wording) for wording in wordings.words]
    read = [name_relation(wording, comparer) for wording in wordings.words]
    keys = encode([name for name, _ in read]).codes
    known = {
        _name(normalise_relation(phrase))
        for prop in ontology.schema.properties
        for phrase in (prop.label, *prop.alt_labels)
    }
    says = np.array([says_something(f) and _name(f) not in known for f in forms], dtype=bool)
    backwards = np.array([turned for _, turned in read], dtype=bool)
    types = encode(graph.tail_types)
    literal = np.array([name == LITERAL for name in types.words], dtype=np.int64)[types.codes]
    (key, _), unit_of, _ = group_rows(keys[wordings.codes], literal)
    turned = backwards[wordings.codes]
    new = ~find_stated(graph, ontology) & says[wordings.codes]
    count = len(key)
    back = np.bincount(unit_of[new & turned], minlength=count)
    support = np.bincount(unit_of[new], minlength=count)
    turned = turned != (back * 2 > support)[unit_of]
    inside = new & compared.region[compared.phrase_of]
    return Units(
        _choose_texts(wordings, unit_of, new & ~turned, count),
        support,
        np.bincount(unit_of[inside], minlength=count),
        unit_of,
        turned,
        new,
        inside,
    )


def name_relation(wording: str, comparer: Comparer) -> tuple[str, bool]:
    """The common name of a relation's wordings, and whether this one reads from tail to head.

    The name is the meaning with its qualities, or the base form where the lexicon has no meaning.
    """
    form, reading = normalise_relation(wording), comparer.read(wording)
    if reading.meaning is None:
        return _name(form), form.passive_by
    return f"[{name_meaning(reading)}]", reading.turned


def _name(form: RelationForm) -> str:
    return form.inverse_key or form.key


def name_meaning(reading: Reading) -> str | None:
    """The name that separates a wording from similar ones: its meaning with qualities, or None.

    `mayor of` and `former mayor of` have different names; a wording ending in `from` has one too.
    """
    altered = [*sorted(reading.qualities), *(["not"] if reading.negated else [])]
    if reading.meaning:
        return " ".join([reading.meaning, *altered])
    turning = reading.key.rpartition(" ")[2] in _TURNING
    return " ".join([reading.key, *altered]) if turning or altered else None


def says_something(form: RelationForm) -> bool:
    """Whether a wording is specific enough, and states a fact rather than a possibility."""
    return (
        form.key not in _EMPTY
        and form.modal is None
        and any(word.isalpha() and len(word) > 2 for word in form.lemmas)
    )


def _choose_texts(wordings: Coded, unit_of: Integers, counted: Mask, count: int) -> list[str]:
    """The most frequent wording of each unit, the first of a tie; empty without a fact."""
    (unit, wording), _, facts = group_rows(unit_of[counted], wordings.codes[counted])
    order = np.lexsort((wording, -facts, unit))
    first = order[np.unique(unit[order], return_index=True)[1]]
    chosen = dict(zip(unit[first].tolist(), wording[first].tolist(), strict=True))
    return [wordings.words[chosen[u]] if u in chosen else "" for u in range(count)]


def profile_types(graph: GraphLayer, units: Units, chosen: Integers) -> Matrix:
    """Counts of head and tail types of the chosen units, as rows of length 1."""
    types = encode(join_columns(graph.head_types, graph.tail_types))
    size = len(types.words)
    head, tail = types.codes[: len(graph)], types.codes[len(graph) :]
    first = np.where(units.turned, tail, head)
    second = np.where(units.turned, head, tail) + size
    unit = units.unit_of[units.new]
    counts = np.zeros((len(units), 2 * size), dtype=np.float32)
    for column in (first[units.new], second[units.new]):
        np.add.at(counts, (unit, column), 1)
    return scale_rows(counts[chosen])


def profile_pairs(graph: GraphLayer, units: Units, chosen: Integers, seed: int) -> Matrix:
    """The pairs of ends that the chosen units join, in either direction, on random axes.

    The cosine of two rows approximates the number of pairs that both units join, divided by the
    root of the product of their numbers. A pair of one unit alone only adds to that unit's number.
    """
    facts = np.flatnonzero(units.new)
    ends = encode(join_columns(graph.head_keys, graph.tail_keys)).codes.reshape(2, -1)[:, facts]
    couples = np.sort(ends, axis=0).T
    (unit, left, right), _, _ = group_rows(units.unit_of[facts], couples[:, 0], couples[:, 1])
    _, pair, units_joining = group_rows(left, right)
    shared = units_joining[pair] > 1
    _, number, _ = group_rows(pair[shared])
    draw = np.random.default_rng(seed).standard_normal((int(number.max(initial=-1)) + 1, _AXES))
    ones = np.ones(len(number), dtype=np.float64)
    joins = csr_array((ones, (unit[shared], number)), shape=(len(units), len(draw)))
    sums = (joins @ (draw / np.sqrt(_AXES)))[chosen]
    sizes = np.bincount(unit, minlength=len(units))[chosen]
    scaled: Matrix = (sums / np.sqrt(np.maximum(sizes, 1))[:, None]).astype(np.float32)
    return scaled


def scale_rows(rows: Matrix) -> Matrix:
    """The same rows, scaled in place to length 1; rows of zeros stay."""
    for block in np.array_split(rows, 1 + len(rows) // 4096):  # norms need a copy of each block
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        block /= np.where(lengths > 0.0, lengths, 1.0)
    return rows


# Clusters by k-medoids.

_TYPES = 0.5
"""Weight of the types of the ends; words, and the pairs that two units join, weigh 1."""


def place_units(
    graph: GraphLayer,
    units: Units,
    chosen: Integers,
    *,
    settings: CompleteSettings,
    embedder: Embedder,
) -> Matrix:
    """Unit vectors of the chosen units: words, types of both ends, and joined pairs."""
    parts = [
        profile_types(graph, units, chosen) * np.float32(np.sqrt(_TYPES)),
        profile_pairs(graph, units, chosen, settings.seed),
    ]
    words = embed_finite(embedder, [units.texts[unit] for unit in chosen.tolist()])
    return scale_rows(np.concatenate([words, *parts], axis=1))


def cluster_units(
    points: Matrix, meanings: Sequence[str | None], weights: Integers, *, settings: CompleteSettings
) -> list[Integers]:
    """The indices of each cluster's points, its medoid first.

    A point too far from its medoid is a separate cluster if it is heavy enough alone. Wordings of
    different meanings never share a cluster. Clusters are joined where their medoids have at least
    the cosine `alias_similarity`, from which a proposal may be another name for a property.
    """
    clusters = [
        part
        for cluster in _find_clusters(points, weights, settings)
        for part in _part_meanings(cluster, meanings, weights)
    ]
    clusters.sort(key=lambda cluster: -int(weights[cluster].sum()))
    medoids = np.array([cluster[0] for cluster in clusters], dtype=np.int64)
    near = points[medoids] @ points[medoids].T >= settings.alias_similarity
    merged: dict[int, list[Integers]] = {}
    for number, cluster in enumerate(clusters):
        meaning = meanings[cluster[0]]
        fitting = (i for i in merged if not meaning or meanings[medoids[i]] in (meaning, None))
        first = next((i for i in fitting if near[number, i]), number)
        merged.setdefault(first, []).append(cluster)
    return [np.concatenate(parts) for parts in merged.values()]


def _part_meanings(
    cluster: Integers, meanings: Sequence[str | None], weights: Integers
) -> Iterator[Integers]:
    """A cluster's parts by meaning, the heaviest member first; unknown meanings join the main part.

    The main part is that of the medoid, or the heaviest where the medoid's meaning is unknown.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for index in cluster.tolist():
        groups[meanings[index] or ""].append(index)
    unknown = groups.pop("", [])
    if not groups:
        yield cluster
        return
    main = meanings[cluster[0]] or max(groups, key=lambda name: int(weights[groups[name]].sum()))
    groups[main] += unknown
    for members in groups.values():
        members.sort(key=lambda index: (-int(weights[index]), index))
        yield np.array(members, dtype=np.int64)


def _find_clusters(
    points: Matrix, weights: Integers, settings: CompleteSettings
) -> Iterator[Integers]:
    clustering = find_clusters(
        points,
        weights.astype(np.float64),
        most=max(2, min(len(points), settings.max_points) // 2),
        sample=settings.max_points,
        seed=settings.seed,
    )
    near = np.zeros(len(points), dtype=bool)
    for number, medoid in enumerate(clustering.medoids.tolist()):
        members = np.flatnonzero(clustering.labels == number)
        members = members[points[members] @ points[medoid] >= settings.member_similarity]
        near[members] = True
        near[medoid] = True
        yield np.concatenate([[medoid], members[members != medoid]])
    alone = np.flatnonzero(~near & (weights >= settings.min_support))
    heaviest = alone[np.argsort(-weights[alone], kind="stable")][: settings.max_points]
    yield from heaviest[:, None]
