"""Which facts become one: anchors, neighbours, and verdicts on pairs (PolyRAG III-C)."""

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
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.names import SYMMETRIC_PROPERTY, XSD
from kpyramid.ontology.population.checking import Kinds
from kpyramid.ontology.schema import OntologyProperty, Schema
from kpyramid.settings import CondenseSettings

# Facts of one pair of ends: which say the same, and which say more than others.

Ends = tuple[str, str]
Compare = Callable[[str, str, Ends], Verdict]
"""What a wording says of another; `Ends` are the types of the first one's head and tail."""
How: TypeAlias = Literal["kept", "equivalent", "turned", "broader", "llm"]

_MOST = 64
"""Condensed facts of one pair of ends that a further fact is compared with."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A triple of a pair of ends.

    `place`: its row in the table. `flipped`: it reads from the pair's second end to its first.
    `value`: of a literal tail. `anchors`: the anchors it is near to, each as a property and
    whether it reads the other way round, written alike for a property and its inverse. `times`:
    those that qualify it.
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
    """A fact and what was merged into it, each with the reason; the first is itself, `kept`."""

    fact: Fact
    merged: list[tuple[Fact, How]]


@dataclass(frozen=True, slots=True)
class Contrary:
    """Two facts of the same ends that cannot both hold."""

    one: Fact
    other: Fact
    reason: str


def guard_comparer(comparer: Comparer) -> Compare:
    """Compares as the comparer does, but a possibility is different from a fact.

    `was born in` says all that `may have been born in` says, yet the uncertainty is worth keeping.
    """

    def compare(one: str, other: str, ends: Ends) -> Verdict:
        if comparer.read(one).modal != comparer.read(other).modal:
            return Verdict("different", False, "one states a fact, the other a possibility")
        return comparer.compare(one, other, ends)

    return compare


def merge_facts(facts: Sequence[Fact], compare: Compare) -> list[Merger]:
    """The facts of one pair of ends, merged; `facts` in order of preference, the best first.

    A fact joins the first that says the same, near an anchor or not. A broader fact is absorbed
    only near an anchor, by one that says all that it and its equals say, and not of another time.
    Each is compared with the fact that will stand for it, never along a chain.
    """
    mergers: list[Merger] = []
    for fact in facts:
        for merger in mergers[:_MOST]:
            if _says(merger.fact, fact, compare) == "equivalent" and not any(
                _is_contrary(member, fact, compare) for member, _ in merger.merged[1:]
            ):
                how: How = "turned" if fact.flipped != merger.fact.flipped else "equivalent"
                merger.merged.append((fact, how))
                break
        else:
            mergers.append(Merger(fact, [(fact, "kept")]))
    return _absorb(mergers, compare)


def list_contraries(mergers: Sequence[Merger], compare: Compare) -> list[Contrary]:
    """The facts that cannot hold with each other."""
    facts = [merger.fact for merger in mergers[:_MOST]]
    return [
        Contrary(one, other, _judge(one, other, compare).reason)
        for at, one in enumerate(facts)
        for other in facts[at + 1 :]
        if _is_contrary(one, other, compare)
    ]


def says_all(narrow: Fact, broad: Fact, compare: Compare) -> bool:
    """Whether a fact says what the other says, or more."""
    return _says(narrow, broad, compare) is not None


def _absorb(mergers: Sequence[Merger], compare: Compare) -> list[Merger]:
    """The mergers whose facts no other says, with those that they say."""
    few = mergers[:_MOST]
    sayers = {
        at: [
            other
            for other, by in enumerate(few)
            if other != at
            and by.fact.anchors & merger.fact.anchors
            and not differ_in_time(by.fact.times, merger.fact.times)
            and all(_says(by.fact, member, compare) for member, _ in merger.merged)
            and not _says(merger.fact, by.fact, compare)
        ]
        for at, merger in enumerate(few)
    }
    left = []
    for at, merger in enumerate(mergers):
        stays = [other for other in sayers.get(at, ()) if not sayers[other]]
        if not stays:
            left.append(merger)
        for other in stays[:1]:
            mergers[other].merged.extend((member, "broader") for member, _ in merger.merged)
    return left


def _says(one: Fact, other: Fact, compare: Compare) -> Literal["equivalent", "narrower"] | None:
    """Whether the first fact says the second: the same, or more."""
    same = True
    if one.value is not None and other.value is not None:
        if not one.value.says(other.value):
            return None
        same = other.value.says(one.value)
    if one.wording == other.wording and one.flipped == other.flipped:
        return "equivalent" if same else "narrower"
    verdict = _judge(one, other, compare)
    if not _fits(verdict, one, other) or verdict.likeness not in ("equivalent", "narrower"):
        return None
    return "equivalent" if same and verdict.likeness == "equivalent" else "narrower"


def _is_contrary(one: Fact, other: Fact, compare: Compare) -> bool:
    verdict = _judge(one, other, compare)
    return verdict.likeness == "contrary" and _fits(verdict, one, other)


def _fits(verdict: Verdict, one: Fact, other: Fact) -> bool:
    """Whether the verdict is on these facts, which read one way, or one of them the other way."""
    return verdict.symmetric or verdict.turned == (one.flipped != other.flipped)


def _judge(one: Fact, other: Fact, compare: Compare) -> Verdict:
    return compare(one.wording, other.wording, one.ends)


# The nearest vectors.

Cosines = npt.NDArray[np.float64]

_DECIMALS = 6
"""Digits of a cosine that do not depend on how a product is cut into blocks."""
_BLOCK = 2**25
"""Cosines that are held at a time: 128 MB."""


def find_nearest(
    queries: Matrix, points: Matrix, k: int, least: float
) -> Iterator[tuple[Integers, Cosines]]:
    """Per query the at most k points of cosine `least` and more: best first, ties by place.

    `queries` (q, d) and `points` (n, d), at least one, have rows of unit length.
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


# Anchors: which wordings lie near a property of a class (PolyRAG §III-C).

_Class = str | None
"""Of a head or tail; None where it is not known.

That of a literal is `LITERAL` and the datatypes that it can be a value of.
"""


@dataclass(frozen=True, slots=True)
class Anchor:
    """A property of a class; `class_iri` is None where the subjects' class is not known."""

    property_iri: str
    class_iri: str | None


def find_anchors(
    phrases: Sequence[tuple[str, _Class, _Class]],
    schema: Schema,
    settings: CondenseSettings,
    embedder: Embedder,
) -> list[tuple[Anchor, ...]]:
    """For each phrase the anchors it is near to, the nearest first.

    A phrase is a wording with the classes of its head and tail. It is near an anchor when it is
    among the anchor's k nearest, its cosine suffices, and its ends fit the property. Wordings are
    compared without the subject's class, which only selects them: with its name before them all
    wordings would be alike.

    Raises:
        InputError: the embedding of a wording is not finite.
    """
    said = sorted({wording for wording, _, _ in phrases})
    named = [(p, text) for p in schema.properties for text in (p.label, *p.alt_labels)]
    if not said or not named:
        return [() for _ in phrases]
    queries = embed_finite(embedder, [text for _, text in named])
    points = embed_finite(embedder, said)
    place = {wording: at for at, wording in enumerate(said)}
    used: dict[_Class, dict[_Class, set[int]]] = defaultdict(lambda: defaultdict(set))
    for wording, head, tail in phrases:
        used[head][tail].add(place[wording])
    near: dict[tuple[str, _Class, _Class], list[tuple[float, str]]] = defaultdict(list)
    for head, by_tail in used.items():
        ranked: dict[str, list[tuple[float, int, _Class]]] = defaultdict(list)
        for tail, places in by_tail.items():
            fitting = [at for at, (p, _) in enumerate(named) if can_join(head, tail, p, schema)]
            rows = np.array(sorted(places))
            best: dict[tuple[str, int], float] = {}
            nearest = find_nearest(
                queries[fitting], points[rows], settings.neighbours, settings.anchor_similarity
            )
            for at, (found, cosines) in zip(fitting, nearest, strict=True):
                for row, cosine in zip(rows[found].tolist(), cosines.tolist(), strict=True):
                    key = named[at][0].iri, row
                    best[key] = max(best.get(key, cosine), cosine)
            for (iri, row), cosine in best.items():
                ranked[iri].append((-cosine, row, tail))
        for iri, neighbours in ranked.items():
            order = sorted(neighbours, key=lambda n: (n[0], n[1], n[2] or ""))
            for distance, row, tail in order[: settings.neighbours]:
                near[said[row], head, tail].append((distance, iri))
    return [tuple(Anchor(iri, p[1]) for _, iri in sorted(near.get(p, ()))) for p in phrases]


def can_join(head: _Class, tail: _Class, prop: OntologyProperty, schema: Schema) -> bool:
    """Whether a property can join things of these classes; what is not known may fit."""
    if not is_near(head, prop.domain, schema):
        return False
    if tail is not None and tail.startswith(LITERAL):
        return prop.is_datatype and prop.range in tail.removeprefix(LITERAL).split()
    if prop.is_datatype:
        return prop.range == XSD + "string"
    return is_near(tail, prop.range, schema)


def is_near(found: _Class, wanted: str, schema: Schema) -> bool:
    """Whether a thing of one class can be one of the other: an organisation may be a school."""
    return found is None or schema.is_subclass(found, wanted) or schema.is_subclass(wanted, found)


# The condensed graph: which fact stands for which, and what contradicts what.

Said: TypeAlias = tuple[str, _Class, _Class]
"""A wording with the classes of its head and tail."""
Stated = Mapping[str, Set[str]]
"""The properties that a wording states in words of the ontology."""
_Form = tuple[str, bool, bool]


@dataclass(frozen=True, slots=True, eq=False)
class Linked:
    """The phrases of the facts, and the anchors near each, the nearest first.

    `phrase_of[row]`: the place of a fact's phrase in `phrases` and in `near`.
    """

    phrases: Sequence[Said]
    near: Sequence[tuple[Anchor, ...]]
    phrase_of: Integers

    def of(self, row: int) -> tuple[Anchor, ...]:
        """The anchors of a fact."""
        return self.near[int(self.phrase_of[row])]


@dataclass(frozen=True, slots=True, eq=False)
class Condensation:
    """`stands[row]`: the row of the fact that stands for a fact, itself if nothing else does.

    `how`: why, for each row. `apart`: facts of one pair of ends that no rule merged, where
    several are near one anchor.
    """

    stands: Integers
    how: npt.NDArray[np.object_]
    apart: list[list[Merger]]
    contraries: list[Contrary]


def link_facts(
    graph: Graph, schema: Schema, settings: CondenseSettings, embedder: Embedder
) -> Linked:
    """The anchors that each fact is near to.

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
    own = chain(named, values)
    class_of = np.array([classes.setdefault(c, len(classes)) for c in own], dtype=np.int64)
    tails = np.where(graph.tails < 0, len(graph.types) + graph.literals, graph.tails)
    said = np.stack([graph.relations, class_of[graph.heads], class_of[tails]])
    size = len(graph.wordings), len(classes), len(classes)
    found, phrase_of = np.unique(np.ravel_multi_index(said, size), return_inverse=True)
    columns, names = np.unravel_index(found, size), list(classes)
    phrases = [
        (graph.wordings[relation], names[head], names[tail])
        for relation, head, tail in zip(*(c.tolist() for c in columns), strict=True)
    ]
    return Linked(phrases, find_anchors(phrases, schema, settings, embedder), phrase_of)


def list_compared(graph: Graph) -> set[str]:
    """The wordings of facts that have both ends in common with others."""
    groups = find_shared_ends(graph, read_values(graph))
    return {graph.wordings[at] for rows in groups for at in graph.relations[rows].tolist()}


def condense_graph(
    graph: Graph,
    linked: Linked,
    stated: Stated,
    schema: Schema,
    compare: Compare,
    stood: Collection[int],
) -> Condensation:
    """The facts, merged with those of the same ends that say the same, or more around an anchor.

    `stood`: rows of facts that stood for others before.
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
    """The facts of one pair of ends, those first that will stand for others.

    The more precise of two values, then what the ontology says in these words, then what stood
    before, then what is told most often.
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
    """How a property and its inverse are written alike: a name, whether turned, or both ways."""
    inverse = schema.property_by_iri[iri].inverse_of
    both = inverse == iri or SYMMETRIC_PROPERTY in schema.find_characteristics(iri)
    name = min(iri, inverse or iri)
    return name, iri != name, both


def _turn(form: _Form, flipped: bool) -> tuple[str, bool]:
    name, turned, both = form
    return name, False if both else turned != flipped
