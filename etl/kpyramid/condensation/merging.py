"""Merging of facts: anchors, neighbours, and verdicts on pairs (PolyRAG §III-C)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from kpyramid.condensation.graph import (
    LITERAL,
    Graph,
    Value,
    find_shared_ends,
    read_values,
)
from kpyramid.documents.validity import Time, differ_in_time
from kpyramid.embeddings.port import Embedder, Matrix, embed_finite
from kpyramid.graph.synonyms.comparison import Comparer, Verdict
from kpyramid.numerics.arrays import Integers
from kpyramid.numerics.moments import Array
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import SYMMETRIC_PROPERTY, XSD
from kpyramid.ontology.population.checking import Kinds
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.settings import CondenseSettings

# Facts of a pair of ends: equivalent ones, and broader ones.

Ends = tuple[str, str]
Compare = Callable[[str, str, Ends], Verdict]
"""The verdict on a wording and another; `Ends`: types of the first wording's head and tail."""
How: TypeAlias = Literal["kept", "equivalent", "turned", "broader", "llm"]

_MOST = 64
"""Condensed facts of a pair of ends with which a further fact is compared."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A triple of a pair of ends.

    `place`: its row in the table. `flipped`: it reads from the pair's second end to its first.
    `value`: of a literal tail. `anchors`: the near anchors, each as a property and whether the
    fact reads in its opposite direction; a property and its inverse share a name. `times`: the
    times that qualify it.
    """

    place: int
    wording: str
    flipped: bool
    ends: Ends
    value: Value | None
    anchors: frozenset[tuple[str, bool]]
    times: tuple[Time, ...] = ()


def read_fact(
    graph: Graph,
    row: int,
    value: Value | None,
    *,
    flipped: bool = False,
    anchors: frozenset[tuple[str, bool]] = frozenset(),
) -> Fact:
    """A fact of the graph; `value`: of its literal."""
    ends = graph.types[graph.heads[row]], value.type if value else graph.types[graph.tails[row]]
    wording = graph.wordings[graph.relations[row]]
    return Fact(row, wording, flipped, ends, value, anchors, graph.times.get(row, ()))


@dataclass(frozen=True, slots=True)
class Merger:
    """A fact and those merged into it, each with the reason; the first is itself, `kept`."""

    fact: Fact
    merged: list[tuple[Fact, How]]


@dataclass(frozen=True, slots=True)
class Contrary:
    """Two facts of the same ends that cannot both hold."""

    left: Fact
    right: Fact
    reason: str


def guard_comparer(comparer: Comparer) -> Compare:
    """Compares as the comparer does, except that a possibility is different from a fact.

    `was born in` entails `may have been born in`, yet merging them would lose the uncertainty.
    """

    def compare(left: str, right: str, ends: Ends) -> Verdict:
        if comparer.read(left).modal != comparer.read(right).modal:
            return Verdict("different", False, "one states a fact, the other a possibility")
        return comparer.compare(left, right, ends)

    return compare


def merge_facts(facts: Sequence[Fact], compare: Compare) -> list[Merger]:
    """The facts of a pair of ends, merged; `facts` in order of preference, the best first.

    A fact joins the first equivalent one, near an anchor or not. A broader fact is absorbed only
    near an anchor, by a fact of a compatible time that entails it and all its equivalents. Each is
    compared with the fact that will stand for it, never along a chain.
    """
    mergers: list[Merger] = []
    for fact in facts:
        for merger in mergers[:_MOST]:
            if says(merger.fact, fact, compare) == "equivalent" and not any(
                _is_contrary(member, fact, compare) for member, _ in merger.merged[1:]
            ):
                how: How = "turned" if fact.flipped != merger.fact.flipped else "equivalent"
                merger.merged.append((fact, how))
                break
        else:
            mergers.append(Merger(fact, [(fact, "kept")]))
    return _absorb(mergers, compare)


def list_contraries(mergers: Sequence[Merger], compare: Compare) -> list[Contrary]:
    """The pairs of facts that cannot both hold."""
    facts = [merger.fact for merger in mergers[:_MOST]]
    return [
        Contrary(left, right, _judge(left, right, compare).reason)
        for index, left in enumerate(facts)
        for right in facts[index + 1 :]
        if _is_contrary(left, right, compare)
    ]


def _absorb(mergers: Sequence[Merger], compare: Compare) -> list[Merger]:
    """The mergers that no other entails, with the facts of those that they entail."""
    few = mergers[:_MOST]
    sayers = {
        index: [
            wider
            for wider, by in enumerate(few)
            if wider != index
            and by.fact.anchors & merger.fact.anchors
            and not differ_in_time(by.fact.times, merger.fact.times)
            and all(says(by.fact, member, compare) for member, _ in merger.merged)
            and not says(merger.fact, by.fact, compare)
        ]
        for index, merger in enumerate(few)
    }
    left = []
    for index, merger in enumerate(mergers):
        stays = [wider for wider in sayers.get(index, ()) if not sayers[wider]]
        if not stays:
            left.append(merger)
        for wider in stays[:1]:
            mergers[wider].merged.extend((member, "broader") for member, _ in merger.merged)
    return left


def says(narrow: Fact, broad: Fact, compare: Compare) -> Literal["equivalent", "narrower"] | None:
    """Whether the first fact is equivalent to the second, narrower, or neither (None)."""
    same = True
    if narrow.value is not None and broad.value is not None:
        if not narrow.value.says(broad.value):
            return None
        same = broad.value.says(narrow.value)
    if narrow.wording == broad.wording and narrow.flipped == broad.flipped:
        return "equivalent" if same else "narrower"
    verdict = _judge(narrow, broad, compare)
    if not _fits(verdict, narrow, broad) or verdict.likeness not in ("equivalent", "narrower"):
        return None
    return "equivalent" if same and verdict.likeness == "equivalent" else "narrower"


def _is_contrary(left: Fact, right: Fact, compare: Compare) -> bool:
    verdict = _judge(left, right, compare)
    return verdict.likeness == "contrary" and _fits(verdict, left, right)


def _fits(verdict: Verdict, left: Fact, right: Fact) -> bool:
    """Whether the verdict's direction fits these facts, which read alike or in opposite ways."""
    return verdict.symmetric or verdict.turned == (left.flipped != right.flipped)


def _judge(left: Fact, right: Fact, compare: Compare) -> Verdict:
    return compare(left.wording, right.wording, left.ends)


# The nearest vectors.

_DECIMALS = 6
"""Digits of a cosine that do not depend on the blocks of a product."""
_BLOCK = 2**25
"""Cosines in memory at a time: 128 MB."""


def find_nearest(
    queries: Matrix, points: Matrix, k: int, least: float
) -> Iterator[tuple[Integers, Array]]:
    """For each query, indices and cosines of up to k points of cosine `least` or more.

    The best come first, ties by index. `queries` (q, d) and `points` (n, d), n > 0, have unit rows.
    """
    k = min(k, len(points))
    size = max(1, _BLOCK // len(points))
    for start in range(0, len(queries), size):
        for row in queries[start : start + size] @ points.T:
            lowest = max(float(np.partition(row, len(row) - k)[len(row) - k]), least)
            near = np.flatnonzero(row >= lowest - 10.0**-_DECIMALS)
            rounded = np.round(row[near].astype(np.float64), _DECIMALS)
            order = np.lexsort((near, -rounded))[:k]
            order = order[rounded[order] >= least]
            yield near[order].astype(np.int64), rounded[order]


# Anchors: wordings near a property of a class (PolyRAG §III-C).

_Class = str | None
"""Class of a head or tail; None if unknown.

The class of a literal is `LITERAL` with the datatypes of which it can be a value.
"""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A property of a class; `class_iri` is None where the subjects' class is unknown."""

    property_iri: str
    class_iri: str | None


def find_anchors(
    phrases: Sequence[tuple[str, _Class, _Class]],
    schema: Schema,
    settings: CondenseSettings,
    embedder: Embedder,
) -> list[tuple[Anchor, ...]]:
    """The anchors near each phrase, the nearest first.

    A phrase is a wording with the classes of its head and tail. It is near an anchor if it is among
    the anchor's k nearest, its cosine suffices, and its ends fit the property. The subject's class
    only selects wordings and is not part of the compared text: it would make all wordings similar.

    Raises:
        InputError: the embedding of a wording is not finite.
    """
    wordings = sorted({wording for wording, _, _ in phrases})
    named = [(p, text) for p in schema.properties for text in (p.label, *p.alt_labels)]
    if not wordings or not named:
        return [() for _ in phrases]
    queries = embed_finite(embedder, [text for _, text in named])
    points = embed_finite(embedder, wordings)
    place = {wording: i for i, wording in enumerate(wordings)}
    used: dict[_Class, dict[_Class, set[int]]] = defaultdict(lambda: defaultdict(set))
    for wording, head, tail in phrases:
        used[head][tail].add(place[wording])
    near: dict[tuple[str, _Class, _Class], list[tuple[float, str]]] = defaultdict(list)
    for head, by_tail in used.items():
        ranked: dict[str, list[tuple[float, int, _Class]]] = defaultdict(list)
        for tail, places in by_tail.items():
            joining = {p.iri for p in schema.properties if can_join(head, tail, p, schema)}
            fitting = [i for i, (p, _) in enumerate(named) if p.iri in joining]
            rows = np.array(sorted(places))
            best: dict[tuple[str, int], float] = {}
            nearest = find_nearest(
                queries[fitting], points[rows], settings.neighbours, settings.anchor_similarity
            )
            for i, (indices, cosines) in zip(fitting, nearest, strict=True):
                for row, cosine in zip(rows[indices].tolist(), cosines.tolist(), strict=True):
                    key = named[i][0].iri, row
                    best[key] = max(best.get(key, cosine), cosine)
            for (iri, row), cosine in best.items():
                ranked[iri].append((-cosine, row, tail))
        for iri, neighbours in ranked.items():
            order = sorted(neighbours, key=lambda n: (n[0], n[1], n[2] or ""))
            for distance, row, tail in order[: settings.neighbours]:
                near[wordings[row], head, tail].append((distance, iri))
    return [tuple(Anchor(iri, p[1]) for _, iri in sorted(near.get(p, ()))) for p in phrases]


def can_join(head: _Class, tail: _Class, prop: OntologyProperty, schema: Schema) -> bool:
    """Whether a property can join things of these classes; an unknown class may fit.

    So may a class above the wanted: an organisation may be a school.
    """
    if head is not None and not schema.may_share(head, prop.domain):
        return False
    if tail is not None and tail.startswith(LITERAL):
        return prop.is_datatype and prop.range in tail.removeprefix(LITERAL).split()
    if prop.is_datatype:
        return prop.range == XSD + "string"
    return tail is None or schema.may_share(tail, prop.range)


# The condensed graph: the fact that stands for each fact, and contrary facts.

Phrase: TypeAlias = tuple[str, _Class, _Class]
"""A wording with the classes of its head and tail."""
Stated = Mapping[str, Set[str]]
"""The properties that a wording states in words of the ontology."""
_Form = tuple[str, bool, bool]


@dataclass(frozen=True, slots=True, eq=False)
class Linked:
    """The phrases of the facts, and the anchors near each, the nearest first.

    `phrase_of[row]`: the index of a fact's phrase in `phrases` and in `near`.
    """

    phrases: Sequence[Phrase]
    near: Sequence[tuple[Anchor, ...]]
    phrase_of: Integers

    def of(self, row: int) -> tuple[Anchor, ...]:
        """The anchors of a fact."""
        return self.near[int(self.phrase_of[row])]


@dataclass(frozen=True, slots=True, eq=False)
class Condensation:
    """The result of condensation; `stands[row]`: the row of the fact that stands for a fact.

    `how`: the reason for each row. `apart`: the mergers of each pair of ends of which several
    unmerged facts are near one anchor.
    """

    stands: Integers
    how: npt.NDArray[np.object_]
    apart: list[list[Merger]]
    contraries: list[Contrary]


def link_facts(
    graph: Graph, schema: Schema, settings: CondenseSettings, embedder: Embedder
) -> Linked:
    """The anchors near each fact.

    Raises:
        InputError: the embedding of a wording is not finite.
    """
    ranges = sorted({prop.range for prop in schema.properties if prop.is_datatype})
    classes: dict[_Class, int] = {}
    values = (
        LITERAL + " ".join(iri for iri in ranges if parse_literal(text, iri) is not None)
        for text in graph.texts
    )
    kinds = Kinds(schema)
    named = (
        min(kinds.find_by_name(name, kind), default=None) or schema.class_for_type(kind)
        for name, kind in zip(graph.names, graph.types, strict=True)
    )
    ends = chain(named, values)
    class_of = np.array([classes.setdefault(c, len(classes)) for c in ends], dtype=np.int64)
    tails = np.where(graph.tails < 0, len(graph.types) + graph.literals, graph.tails)
    columns_of_facts = np.stack([graph.relations, class_of[graph.heads], class_of[tails]])
    size = len(graph.wordings), len(classes), len(classes)
    codes, phrase_of = np.unique(np.ravel_multi_index(columns_of_facts, size), return_inverse=True)
    columns, names = np.unravel_index(codes, size), list(classes)
    phrases = [
        (graph.wordings[relation], names[head], names[tail])
        for relation, head, tail in zip(*(c.tolist() for c in columns), strict=True)
    ]
    return Linked(phrases, find_anchors(phrases, schema, settings, embedder), phrase_of)


def list_compared(graph: Graph) -> set[str]:
    """The wordings of facts that share both ends with other facts."""
    groups = find_shared_ends(graph, read_values(graph))
    return {graph.wordings[code] for rows in groups for code in graph.relations[rows].tolist()}


def condense_graph(
    graph: Graph,
    linked: Linked,
    stated: Stated,
    schema: Schema,
    compare: Compare,
    stood: Collection[int],
) -> Condensation:
    """The facts merged with equivalent ones of the same ends, or narrower ones near an anchor.

    `stood`: rows of facts that stood for others in the previous build.
    """
    values = read_values(graph)
    forms = {p.iri: _find_form(p.iri, schema) for p in schema.properties}

    @cache
    def turn(anchors: tuple[Anchor, ...], flipped: bool) -> frozenset[tuple[str, bool]]:
        return frozenset(_turn(forms[anchor.property_iri], flipped) for anchor in anchors)

    made = Condensation(np.arange(len(graph)), np.full(len(graph), "kept", dtype=object), [], [])
    for rows in find_shared_ends(graph, values):
        facts = _list_facts(rows.tolist(), graph, linked, values, stated, turn, stood)
        mergers = merge_facts(facts, compare)
        for merger in mergers:
            for fact, how in merger.merged[1:]:
                made.stands[fact.place], made.how[fact.place] = merger.fact.place, how
        made.contraries.extend(list_contraries(mergers, compare))
        anchors = Counter(anchor for merger in mergers for anchor in merger.fact.anchors)
        if max(anchors.values(), default=0) > 1:
            made.apart.append(mergers)
    return made


def _list_facts(
    rows: Sequence[int],
    graph: Graph,
    linked: Linked,
    values: Sequence[Value],
    stated: Stated,
    turn: Callable[[tuple[Anchor, ...], bool], frozenset[tuple[str, bool]]],
    stood: Collection[int],
) -> list[Fact]:
    """The facts of a pair of ends, in order of preference to stand for others.

    The more precise value comes first, then a wording of the ontology, then a fact that stood
    before, then the most frequent relation.
    """
    ranked = []
    first = min(int(graph.heads[row]) for row in rows)
    for row in rows:
        flipped, anchors = int(graph.heads[row]) != first, linked.of(row)
        value = values[graph.literals[row]] if graph.tails[row] < 0 else None
        fact = read_fact(graph, row, value, flipped=flipped, anchors=turn(anchors, flipped))
        states = bool(stated.get(fact.wording, frozenset()) & {a.property_iri for a in anchors})
        precision, support = len(value.rest) if value else 0, graph.support[graph.relations[row]]
        rank = -precision, not states, row not in stood, -support, fact.wording, row
        ranked.append((*rank, fact))
    return [entry[-1] for entry in sorted(ranked, key=lambda entry: entry[:-1])]


def _find_form(iri: str, schema: Schema) -> _Form:
    """A common form of a property and its inverse: name, whether turned, whether symmetric."""
    inverse = schema.property_by_iri[iri].inverse_of
    both = inverse == iri or SYMMETRIC_PROPERTY in schema.find_characteristics(iri)
    name = min(iri, inverse or iri)
    return name, iri != name, both


def _turn(form: _Form, flipped: bool) -> tuple[str, bool]:
    name, turned, both = form
    return name, False if both else turned != flipped
