"""Facts that cannot hold together: they are reported, none is removed."""

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
from kpyramid.documents.qualifiers import DOCUMENT
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
"""Words at the end of a relation that say no other time or amount: `founded in`, `founding year`,
not `chair from`."""
_LEAST, _SHARE = 3, 0.6
"""Subjects of a relation, and the share of them that have one value, for it to have one."""
_MOST = 16
"""Values of one subject that are compared with each other."""


@dataclass(frozen=True, slots=True)
class _Value:
    """What a fact gives a subject; `entity` is -1 for a literal, whose value is `canonical`."""

    row: int
    subject: int
    entity: int
    text: str
    canonical: str
    quantity: Quantity | None = None


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Facts, by row, of which at most one holds; `anchor` is the property that has one value."""

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
    """The contradictions among the condensed facts; what holds at different times is none.

    `sources`: the documents that state each fact of the graph, as numbers.
    """
    times = _unite_times(graph, made)
    contrary = []
    for found in made.contraries:
        rows = tuple(sorted((found.one.place, found.other.place)))
        is_over = differ_in_time(*(times.get(row, ()) for row in rows))
        if not is_over and all(made.stands[row] == row for row in rows):
            contrary.append(Contradiction("contrary", None, rows, found.reason))
    every = [
        *contrary,
        *_find_denied(graph, made, standards, times),
        *_find_second_values(graph, made, stated, standards, schema, times),
        *_find_several(graph, made, standards, times, sources),
    ]
    return [*{one.rows: one for one in reversed(every)}.values()][::-1]


def _unite_times(graph: Graph, made: Condensation) -> Times:
    """The times of the condensed facts, by row."""
    found: dict[int, tuple[Time, ...]] = defaultdict(tuple)
    for row, own in graph.times.items():
        if made.how[row] != "broader":
            found[int(made.stands[row])] += own
    return found


def _find_denied(
    graph: Graph, made: Condensation, standards: Sequence[Standard], times: Times
) -> Iterator[Contradiction]:
    """Facts that one text states and another denies, of one standard relation and its ends."""
    if not graph.denied:
        return
    standing = made.stands == np.arange(len(graph))
    stated: dict[tuple[str, object, object], list[int]] = defaultdict(list)

    def read_ends(row: int) -> tuple[str, object, object]:
        tail, standard = int(graph.tails[row]), standards[row]
        value: object = tail if tail >= 0 else read_value(graph.texts[graph.literals[row]])
        if tail >= 0 and graph.names[tail] == graph.names[tail].lower():
            value = normalise_name(graph.names[tail])  # a common noun is a thing of its document
        ends: tuple[object, object] = (int(graph.heads[row]), value)
        return (standard.name, *(ends[::-1] if standard.turned and tail >= 0 else ends))

    for row in np.flatnonzero(standing & graph.plain).tolist():
        stated[read_ends(row)].append(row)
    for row in sorted({*graph.denied} - {*graph.corrected}):
        for twin in stated.get(read_ends(row), ()):
            if not differ_in_time(times.get(row, ()), times.get(twin, ())):
                name, said, value = graph.tell(row)
                detail = f"{name}: {graph.tell(twin)[1]} {value}, and {deny(said)} {value}"
                yield Contradiction("denied", None, (twin, row), detail)


def _find_second_values(
    graph: Graph,
    made: Condensation,
    stated: Stated,
    standards: Sequence[Standard],
    schema: Schema,
    times: Times,
) -> Iterator[Contradiction]:
    """Subjects to which facts give several values of a property that has one.

    Only facts count that state the property in words of the ontology, or that have its name as
    standard relation, and fit its domain and range.
    Two places or things may both hold where a fact joins them, as a town and its country.
    """
    entailed = {
        wording: [pair for iri in sorted(iris) for pair in schema.find_entailed(iri)]
        for wording, iris in stated.items()
    }
    named = {p.label: schema.find_entailed(p.iri) for p in schema.properties}
    telling = np.isin(graph.relations, [at for at, w in enumerate(graph.wordings) if w in entailed])
    telling |= np.fromiter((standard.name in named for standard in standards), np.bool_, len(graph))
    standing = (made.stands == np.arange(len(graph))) & graph.plain
    values: dict[tuple[str, int], list[_Value]] = defaultdict(list)
    for row in np.flatnonzero(standing & telling).tolist():
        pairs = set(entailed.get(graph.wordings[graph.relations[row]], ()))
        name, turned = standards[row].name, standards[row].turned
        pairs |= {(iri, swapped != turned) for iri, swapped in named.get(name, ())}
        for iri, swapped in sorted(pairs):
            found = _read_fact(row, swapped, schema.property_by_iri.get(iri), graph, schema)
            if found is not None:
                values[iri, found.subject].append(found)
    several = {key: found for key, found in values.items() if len(found) > 1}
    joined = _list_joined(graph) if several else np.zeros(0, dtype=np.int64)
    for (iri, subject), told in sorted(several.items()):
        against = {
            value
            for one, other in combinations(told[:_MOST], 2)
            if not _agree(one, other, graph, joined)
            and not differ_in_time(times.get(one.row, ()), times.get(other.row, ()))
            for value in (one, other)
        }
        if against:
            ordered = sorted(against, key=lambda value: value.row)
            said = ", ".join(dict.fromkeys(value.text for value in ordered))
            label = schema.property_by_iri[iri].label
            detail = f"{graph.names[subject]}: {label} has one value, not {said}"
            yield Contradiction("functional", iri, tuple(v.row for v in ordered), detail)


def _find_several(
    graph: Graph,
    made: Condensation,
    standards: Sequence[Standard],
    times: Times,
    sources: Sequence[frozenset[int]],
) -> Iterator[Contradiction]:
    """Subjects with several values of a relation that mostly has one, as this graph uses it.

    A relation is taken with the kind of its values: dates, numbers on one scale, or named things,
    these from either end. Amounts have one value in every graph, of one group and time. A common
    noun means its document's own thing, save where what the documents say of it mostly agrees: a
    handbook's "test centre" is one.
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
        for relation, found in zip(groups, nouns, strict=True)
        for values in found.values()
        if len({value.subject for value in values}) > 1
    ]
    agreeing = sum(shared)
    if shared and 2 * (agreeing + 1) >= len(shared) + 2:
        groups = dict(zip(groups, nouns, strict=True))
    for relation, subjects in sorted(groups.items()):
        against = {subject: list_against(relation, values) for subject, values in subjects.items()}
        is_amount = relation[0] == _AMOUNT
        told = [
            subject
            for subject, values in subjects.items()
            if len(frozenset().union(*(stated[value.row] for value in values))) > 1
        ]
        if not is_amount and not _has_one(relation, against, told):
            continue
        for subject, pairs in sorted(against.items()):
            if pairs:
                rows = tuple(sorted({value.row for pair in pairs for value in pair}))
                said = "; ".join(" ".join(graph.tell(row)) for row in rows)
                detail = f"{graph.names[subject]} has one value of this, not several: {said}"
                yield Contradiction("amount" if is_amount else "single", None, rows, detail)


def _join_nouns(subjects: Mapping[int, Sequence[_Value]], graph: Graph) -> dict[int, list[_Value]]:
    """The subjects, common nouns that are written alike as one: of several words, or plurals."""
    first: dict[str, int] = {}
    found: dict[int, list[_Value]] = defaultdict(list)
    for subject, values in subjects.items():
        noun = normalise_name(graph.names[subject])
        is_noun = graph.types[subject] == UNKNOWN and (" " in noun or lemmatise(noun) != noun)
        found[first.setdefault(noun, subject) if is_noun else subject] += values
    return found


def _has_one(
    relation: _Relation, against: Mapping[int, Sequence[object]], told: Sequence[int]
) -> bool:
    """Whether a relation mostly has one value, by the share of its subjects that have one.

    Of the subjects of which several documents state it (`told`) half have to agree, by Laplace's
    rule of succession: what one document states says nothing of how many values there may be.
    Numbers and dates, of which a thing seldom has several, have one success more before the count,
    and what things have from their other end one less: many are born in one town.
    """
    single = sum(not pairs for pairs in against.values())
    agreeing = sum(not against[subject] for subject in told)
    lead = 2 if relation[1] != _THING else 0 if relation[0].startswith(_TURNED) else 1
    return (
        len(against) >= _LEAST
        and single >= _SHARE * len(against)
        and 2 * (agreeing + lead) >= len(told) + lead + 1
    )


def _list_readings(
    row: int, standard: Standard, graph: Graph
) -> Iterator[tuple[_Relation, _Value]]:
    """What a fact says of its subject, and, of two named things, of its object."""
    head, tail = int(graph.heads[row]), int(graph.tails[row])
    _, wording, text = graph.tell(row)
    quantity = read_quantity(text)
    if quantity is not None:
        kind = quantity.kind
        said = wording if kind == "date" else standard.name
        lemmas = [*normalise_relation(said).lemmas]
        while len(lemmas) > 1 and lemmas[-1] in _NEUTRAL:
            lemmas.pop()
        kind = " ".join(word for word in kind.split() if lemmatise(word) not in lemmas)
        yield (" ".join(lemmas), kind), _Value(row, head, -1, text, text, quantity)
    elif tail >= 0:
        ends = (tail, head) if standard.turned else (head, tail)
        for name, (subject, value) in (
            (standard.name, ends),
            (_TURNED + standard.name, ends[::-1]),
        ):
            text = graph.names[value]
            if text != text.lower():  # a common noun may be one of several of its kind
                yield (name, _THING), _Value(row, subject, value, text, text)


def _are_apart(one: _Value, other: _Value, graph: Graph, times: Times) -> bool:
    """Whether two values hold at different times or in different circumstances.

    What was is none of what is: "was chair" and "is chair".
    """
    first, second = (dict(graph.qualifiers.get(value.row, ())) for value in (one, other))
    roles = (first.keys() | second.keys()) - {DOCUMENT}
    if one.quantity is None or one.quantity.kind == "date":
        roles &= (first.keys() & second.keys()) - {"time"}
    past = [is_past_state(graph.tell(value.row)[1]) for value in (one, other)]
    return (
        any(first.get(role) != second.get(role) for role in roles)
        or (one.quantity is None and past[0] != past[1])
        or differ_in_time(times.get(one.row, ()), times.get(other.row, ()))
    )


def _read_fact(
    row: int, swapped: bool, prop: OntologyProperty | None, graph: Graph, schema: Schema
) -> _Value | None:
    """The value that a fact gives of a property, None where the property may have several."""
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
    fits = all(own is not None and schema.is_subclass(own, wanted) for own, wanted in ends)
    return _Value(row, subject, value, text, canonical) if fits and canonical else None


def _agree(one: _Value, other: _Value, graph: Graph, joined: Integers) -> bool:
    """Whether both values can hold: they are one, or one is in the other."""
    if one.quantity and other.quantity:
        return one.quantity.agrees(other.quantity)
    if one.entity < 0 or other.entity < 0:
        return one.canonical == other.canonical
    words = [WORD.findall(value.text.casefold()) for value in (one, other)]
    if _says_name(*words) or _says_name(*words[::-1]):
        return True
    places = [(tuple(each) in STATES, tuple(each) in REGIONS) for each in words]
    if places[0] != places[1]:
        return True  # a town may lie in a country, whether a text says so or not
    pair = sorted((one.entity, other.entity))
    code = pair[0] * len(graph.names) + pair[1]
    at = int(np.searchsorted(joined, code))
    return at < len(joined) and int(joined[at]) == code


def _says_name(words: Sequence[str], others: Sequence[str]) -> bool:
    """Whether all words of a name are among those of another, one letter for a word with it."""
    return all(any(o == w or (len(w) == 1 and o[0] == w) for o in others) for w in words)


def _list_joined(graph: Graph) -> Integers:
    """The pairs of entities that a fact joins, each as one number, in order."""
    between = (graph.tails >= 0) & graph.plain
    heads, tails = graph.heads[between], graph.tails[between]
    lower, upper = np.minimum(heads, tails), np.maximum(heads, tails)
    return np.unique(lower * len(graph.names) + upper)
