"""Contradictions: facts that cannot hold together are reported, and none is removed."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from kpyramid.condensation.graph import Graph, read_value
from kpyramid.condensation.merging import Condensation, Stated
from kpyramid.condensation.standard import Standard
from kpyramid.documents.measures import Quantity, read_quantity
from kpyramid.documents.qualifiers import WHEREABOUTS
from kpyramid.documents.validity import Time, differ_in_time
from kpyramid.documents.words import WORD, deny, lemmatise, normalise_name, normalise_relation
from kpyramid.graph.entities import UNKNOWN
from kpyramid.graph.names import REGIONS, STATES
from kpyramid.graph.synonyms.comparison import is_past_state
from kpyramid.graph.synonyms.meaning import read_modality
from kpyramid.numerics.arrays import Integers
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.schema import OntologyProperty, Schema

Kind: TypeAlias = Literal["functional", "denied", "contrary", "amount", "single"]
Times: TypeAlias = Mapping[int, tuple[Time, ...]]
_Relation: TypeAlias = tuple[str, str]
"""The name of a relation, and the kind of its values."""
_AMOUNT, _THING = "amount", "thing"
_TURNED = "^"
_NEUTRAL = frozenset("in on at to of for by as year date day".split())
"""Words at the end of a relation that do not change its time or amount: `founded in`, `founding
year`, but not `chair from`."""
_LEAST, _SHARE = 3, 0.6
"""Least subjects of a relation, and least share of them with one value, for it to be single."""
_MOST = 16
"""Most values of a subject that are compared with each other."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A subject's value by a fact; `entity` is -1 for a literal, whose value is `canonical`."""

    row: int
    subject: int
    entity: int
    text: str
    canonical: str
    quantity: Quantity | None = None


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Rows of facts of which at most one holds; `anchor`: the property that has one value."""

    kind: Kind
    anchor: str | None
    rows: tuple[int, ...]
    detail: str


def find_contradictions(
    graph: Graph,
    made: Condensation,
    stated: Stated,
    standards: Sequence[Standard],
    schema: Schema,
    sources: Sequence[frozenset[int]],
) -> list[Contradiction]:
    """The contradictions among the condensed facts; facts of different times are compatible.

    `sources`: the documents that state each fact of the graph, as numbers.
    """
    times: dict[int, tuple[Time, ...]] = defaultdict(tuple)
    for row, given in graph.times.items():
        if made.how[row] != "broader":
            times[int(made.stands[row])] += given
    contrary = []
    for pair in made.contraries:
        rows = tuple(sorted((pair.left.place, pair.right.place)))
        is_over = differ_in_time(*(times.get(row, ()) for row in rows))
        if not is_over and all(made.stands[row] == row for row in rows):
            contrary.append(Contradiction("contrary", None, rows, pair.reason))
    every = [
        *contrary,
        *_find_denied(graph, made, standards, times),
        *_find_second_values(graph, made, stated, standards, schema, times),
        *_find_several(graph, made, standards, times, sources),
    ]
    return [*{each.rows: each for each in reversed(every)}.values()][::-1]


def _find_denied(
    graph: Graph, made: Condensation, standards: Sequence[Standard], times: Times
) -> Iterator[Contradiction]:
    """Pairs of a stated and a denied fact with the same standard relation and ends."""
    if not graph.denied:
        return
    standing = made.stands == np.arange(len(graph))
    stated: dict[tuple[str, object, object], list[int]] = defaultdict(list)

    def read_ends(row: int) -> tuple[str, object, object]:
        tail, standard = int(graph.tails[row]), standards[row]
        value: object = tail if tail >= 0 else read_value(graph.texts[graph.literals[row]])
        if tail >= 0 and graph.names[tail] == graph.names[tail].lower():
            value = normalise_name(graph.names[tail])  # common nouns are entities per document
        ends: tuple[object, object] = (int(graph.heads[row]), value)
        return (standard.name, *(ends[::-1] if standard.turned and tail >= 0 else ends))

    for row in np.flatnonzero(standing & graph.plain).tolist():
        stated[read_ends(row)].append(row)
    for row in sorted({*graph.denied} - {*graph.corrected}):
        for twin in stated.get(read_ends(row), ()):
            if not differ_in_time(times.get(row, ()), times.get(twin, ())):
                name, wording, value = graph.tell(row)
                detail = f"{name}: {graph.tell(twin)[1]} {value}, and {deny(wording)} {value}"
                yield Contradiction("denied", None, (twin, row), detail)


def _find_second_values(
    graph: Graph,
    made: Condensation,
    stated: Stated,
    standards: Sequence[Standard],
    schema: Schema,
    times: Times,
) -> Iterator[Contradiction]:
    """Subjects with several values of a property that allows one.

    A fact counts if it states the property in words of the ontology, or has the property's name as
    its standard relation, and fits its domain and range. Two places or things are compatible where
    a fact joins them, as a town and its country.
    """
    entailed = {
        wording: [pair for iri in sorted(iris) for pair in schema.find_entailed(iri)]
        for wording, iris in stated.items()
    }
    named = {p.label: schema.find_entailed(p.iri) for p in schema.properties}
    telling = np.isin(graph.relations, [i for i, w in enumerate(graph.wordings) if w in entailed])
    telling |= np.fromiter((standard.name in named for standard in standards), np.bool_, len(graph))
    standing = (made.stands == np.arange(len(graph))) & graph.plain
    values: dict[tuple[str, int], list[_Value]] = defaultdict(list)
    for row in np.flatnonzero(standing & telling).tolist():
        pairs = set(entailed.get(graph.wordings[graph.relations[row]], ()))
        name, turned = standards[row].name, standards[row].turned
        pairs |= {(iri, swapped != turned) for iri, swapped in named.get(name, ())}
        for iri, swapped in sorted(pairs):
            value = _read_fact(row, swapped, schema.property_by_iri.get(iri), graph, schema)
            if value is not None:
                values[iri, value.subject].append(value)
    several = {key: given for key, given in values.items() if len(given) > 1}
    joined = _list_joined(graph) if several else np.zeros(0, dtype=np.int64)
    for (iri, subject), given in sorted(several.items()):
        against = {
            value
            for left, right in combinations(given[:_MOST], 2)
            if not _agree(left, right, graph, joined)
            and not differ_in_time(times.get(left.row, ()), times.get(right.row, ()))
            for value in (left, right)
        }
        if against:
            ordered = sorted(against, key=lambda value: value.row)
            listed = ", ".join(dict.fromkeys(value.text for value in ordered))
            label = schema.property_by_iri[iri].label
            detail = f"{graph.names[subject]}: {label} has one value, not {listed}"
            yield Contradiction("functional", iri, tuple(v.row for v in ordered), detail)


def _find_several(
    graph: Graph,
    made: Condensation,
    standards: Sequence[Standard],
    times: Times,
    sources: Sequence[frozenset[int]],
) -> Iterator[Contradiction]:
    """Subjects with several values of a relation that mostly has one in this graph.

    A relation is taken with the kind of its values: dates, numbers on one scale, or named things,
    these from either end. Amounts of the same group and time have one value in every graph. A
    common noun denotes a separate thing in each document, unless the documents mostly agree on it:
    a handbook's "test centre" is a single thing.
    """
    stated: dict[int, frozenset[int]] = defaultdict(frozenset)
    for row, standing in enumerate(made.stands.tolist()):
        stated[standing] |= sources[row]
    groups: dict[_Relation, dict[int, list[_Value]]] = {}
    for row in np.flatnonzero((made.stands == np.arange(len(graph))) & graph.plain).tolist():
        if read_modality(graph.wordings[graph.relations[row]]) == "fact":
            for relation, value in _list_readings(row, standards[row], graph):
                groups.setdefault(relation, {}).setdefault(value.subject, []).append(value)
    joined = _list_joined(graph)

    def list_against(relation: _Relation, values: Sequence[_Value]) -> list[tuple[_Value, _Value]]:
        return [
            pair
            for pair in combinations(values[:_MOST], 2)
            if relation[0] == _AMOUNT or stated[pair[0].row].isdisjoint(stated[pair[1].row])
            if not _agree(*pair, graph, joined) and not _are_apart(*pair, graph, times)
        ]

    nouns = [_join_nouns(subjects, graph) for subjects in groups.values()]
    shared = [
        not list_against(relation, values)
        for relation, by_subject in zip(groups, nouns, strict=True)
        for values in by_subject.values()
        if len({value.subject for value in values}) > 1
    ]
    if shared and 2 * (sum(shared) + 1) >= len(shared) + 2:
        groups = dict(zip(groups, nouns, strict=True))
    for relation, subjects in sorted(groups.items()):
        against = {subject: list_against(relation, values) for subject, values in subjects.items()}
        is_amount = relation[0] == _AMOUNT
        repeated = [
            subject
            for subject, values in subjects.items()
            if len(frozenset().union(*(stated[value.row] for value in values))) > 1
        ]
        if not is_amount and not _is_single(relation, against, repeated):
            continue
        for subject, pairs in sorted(against.items()):
            if pairs:
                rows = tuple(sorted({value.row for pair in pairs for value in pair}))
                facts = "; ".join(" ".join(graph.tell(row)) for row in rows)
                detail = f"{graph.names[subject]} has one value of this, not several: {facts}"
                yield Contradiction("amount" if is_amount else "single", None, rows, detail)


def _join_nouns(subjects: Mapping[int, Sequence[_Value]], graph: Graph) -> dict[int, list[_Value]]:
    """Values by subject; equal common nouns (of several words, or plurals) become one subject."""
    first: dict[str, int] = {}
    joined: dict[int, list[_Value]] = defaultdict(list)
    for subject, values in subjects.items():
        noun = normalise_name(graph.names[subject])
        is_noun = graph.types[subject] == UNKNOWN and (" " in noun or lemmatise(noun) != noun)
        joined[first.setdefault(noun, subject) if is_noun else subject] += values
    return joined


def _is_single(
    relation: _Relation, against: Mapping[int, Sequence[object]], repeated: Sequence[int]
) -> bool:
    """Whether a relation mostly has one value, by the share of its subjects with one value.

    Of the subjects that several documents give a value (`repeated`), half must agree, by Laplace's
    rule of succession; a single document does not show how many values are possible. The prior has
    one success more for numbers and dates, of which a thing seldom has several, and one less for a
    relation read from its tail: many people are born in one town.
    """
    single = sum(not pairs for pairs in against.values())
    agreeing = sum(not against[subject] for subject in repeated)
    lead = 2 if relation[1] != _THING else 0 if relation[0].startswith(_TURNED) else 1
    return (
        len(against) >= _LEAST
        and single >= _SHARE * len(against)
        and 2 * (agreeing + lead) >= len(repeated) + lead + 1
    )


def _list_readings(
    row: int, standard: Standard, graph: Graph
) -> Iterator[tuple[_Relation, _Value]]:
    """The relation and value that a fact gives its head and, for two named things, its tail."""
    head, tail = int(graph.heads[row]), int(graph.tails[row])
    _, wording, text = graph.tell(row)
    quantity = read_quantity(text)
    if quantity is not None:
        kind = quantity.kind
        named = wording if kind == "date" else standard.name
        lemmas = [*normalise_relation(named).lemmas]
        while len(lemmas) > 1 and lemmas[-1] in _NEUTRAL:
            lemmas.pop()
        kind = " ".join(word for word in kind.split() if lemmatise(word) not in lemmas)
        yield (" ".join(lemmas), kind), _Value(row, head, -1, text, text, quantity)
    elif tail >= 0:
        ends = (tail, head) if standard.turned else (head, tail)
        both = ((standard.name, ends), (_TURNED + standard.name, ends[::-1]))
        for name, (subject, value) in both:
            text = graph.names[value]
            if text != text.lower():  # a common noun may denote any of several things
                yield (name, _THING), _Value(row, subject, value, text, text)


def _are_apart(left: _Value, right: _Value, graph: Graph, times: Times) -> bool:
    """Whether two values hold at different times or in different circumstances.

    A past state is apart from a present one: "was chair" and "is chair".
    """
    first, second = (dict(graph.qualifiers.get(value.row, ())) for value in (left, right))
    roles = (first.keys() | second.keys()) - WHEREABOUTS
    if left.quantity is None or left.quantity.kind == "date":
        roles &= (first.keys() & second.keys()) - {"time"}
    past = [is_past_state(graph.tell(value.row)[1]) for value in (left, right)]
    return (
        any(first.get(role) != second.get(role) for role in roles)
        or (left.quantity is None and past[0] != past[1])
        or differ_in_time(times.get(left.row, ()), times.get(right.row, ()))
    )


def _read_fact(
    row: int, swapped: bool, prop: OntologyProperty | None, graph: Graph, schema: Schema
) -> _Value | None:
    """The value of a property by a fact; None where it does not fit or allows several values."""
    head, tail = int(graph.heads[row]), int(graph.tails[row])
    subject, value = (tail, head) if swapped else (head, tail)
    if prop is None or subject < 0 or (value < 0) != prop.is_datatype:
        return None
    kind = schema.class_for_type(graph.types[subject])
    if kind is None or schema.max_values(kind, prop.iri) != 1:
        return None
    text = graph.names[value] if value >= 0 else graph.texts[graph.literals[row]]
    canonical = text if value >= 0 else parse_literal(text, prop.range)
    class_iri = schema.class_for_type(graph.types[value]) if value >= 0 else prop.range
    ends = ((kind, prop.domain), (class_iri, prop.range))
    fits = all(cls is not None and schema.is_subclass(cls, wanted) for cls, wanted in ends)
    return _Value(row, subject, value, text, canonical) if fits and canonical else None


def _agree(left: _Value, right: _Value, graph: Graph, joined: Integers) -> bool:
    """Whether both values can hold: they are equal, or one contains or locates the other."""
    if left.quantity and right.quantity:
        return left.quantity.agrees(right.quantity)
    if left.entity < 0 or right.entity < 0:
        return left.canonical == right.canonical
    words = [WORD.findall(value.text.casefold()) for value in (left, right)]
    if _says_name(*words) or _says_name(*words[::-1]):
        return True
    places = [(tuple(each) in STATES, tuple(each) in REGIONS) for each in words]
    if places[0] != places[1]:
        return True  # a town may lie in a country, whether a text says so or not
    pair = sorted((left.entity, right.entity))
    code = pair[0] * len(graph.names) + pair[1]
    index = int(np.searchsorted(joined, code))
    return index < len(joined) and int(joined[index]) == code


def _says_name(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether a name's words are among those of another; an initial matches a word."""
    return all(any(o == w or (len(w) == 1 and o[0] == w) for o in others) for w in words)


def _list_joined(graph: Graph) -> Integers:
    """The pairs of entities that a fact joins, each coded as an integer, ascending."""
    between = (graph.tails >= 0) & graph.plain
    heads, tails = graph.heads[between], graph.tails[between]
    lower, upper = np.minimum(heads, tails), np.maximum(heads, tails)
    return np.unique(lower * len(graph.names) + upper)
