"""Facts that cannot hold together: they are reported, none is removed."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from kpyramid.condensation.graph import Graph, Qualifiers, read_value
from kpyramid.condensation.merging import Condensation, Stated
from kpyramid.condensation.standard import Standard
from kpyramid.documents.validity import Time, differ_in_time
from kpyramid.documents.words import deny, normalise_relation
from kpyramid.numerics.arrays import Integers
from kpyramid.ontology.literals import parse_literal
from kpyramid.ontology.schema import OntologyProperty, Schema

Kind: TypeAlias = Literal["functional", "denied", "contrary", "amount"]
Times: TypeAlias = Mapping[int, tuple[Time, ...]]
_AMOUNT = re.compile(r"(?:text|year) ([-+~$€£¥]?)\d+(?:\.\d+)? *(\D*)")
"""A value that is one number, before or after its unit; "2001" is read as a year."""
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
) -> list[Contradiction]:
    """The contradictions among the condensed facts; what holds at different times is none."""
    times = _unite_times(graph, made)
    contrary = []
    for found in made.contraries:
        if made.stands[found.one.place] == found.one.place and (
            made.stands[found.other.place] == found.other.place
        ):
            rows = tuple(sorted((found.one.place, found.other.place)))
            if differ_in_time(*(times.get(row, ()) for row in rows)):
                continue
            contrary.append(Contradiction("contrary", None, rows, found.reason))
    return [
        *contrary,
        *_find_denied(graph, made, standards, times),
        *_find_second_values(graph, made, stated, standards, schema, times),
        *_find_second_amounts(graph, made),
    ]


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
        value = tail if tail >= 0 else read_value(graph.texts[graph.literals[row]])
        ends = (int(graph.heads[row]), value)
        return (standard.name, *(ends[::-1] if standard.turned and tail >= 0 else ends))

    for row in np.flatnonzero(standing & graph.plain).tolist():
        stated[read_ends(row)].append(row)
    for row in sorted(graph.denied):
        for twin in stated.get(read_ends(row), ()):
            if not differ_in_time(times.get(row, ()), times.get(twin, ())):
                name, tail = graph.names[graph.heads[row]], int(graph.tails[row])
                value = graph.names[tail] if tail >= 0 else graph.texts[graph.literals[row]]
                said = [graph.wordings[graph.relations[at]] for at in (twin, row)]
                detail = f"{name}: {said[0]} {value}, and {deny(said[1])} {value}"
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


def _find_second_amounts(graph: Graph, made: Condensation) -> Iterator[Contradiction]:
    """Things that amount to several numbers of one unit, said of the same group and time."""
    keys = [normalise_relation(wording).key for wording in graph.wordings]
    amounting = [at for at, key in enumerate(keys) if key == "amount to"]
    standing = (made.stands == np.arange(len(graph))) & graph.plain
    told: dict[tuple[int, str, Qualifiers], list[int]] = defaultdict(list)
    rows = np.flatnonzero(standing & np.isin(graph.relations, amounting) & (graph.tails < 0))
    for row in rows.tolist():
        amount = _AMOUNT.fullmatch(read_value(graph.texts[graph.literals[row]]).stem)
        if amount:
            held = graph.qualifiers.get(row, frozenset())
            told[int(graph.heads[row]), amount[1] + amount[2], held].append(row)
    for (head, _, _), found in sorted(told.items(), key=lambda entry: entry[1]):
        if len(found) > 1:
            said = ", ".join(graph.texts[graph.literals[row]] for row in found)
            detail = f"{graph.names[head]}: one amount, not {said}"
            yield Contradiction("amount", None, tuple(found), detail)


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
    if not schema.is_subclass(kind, prop.domain):
        return None
    if value < 0:
        text = graph.texts[graph.literals[row]]
        canonical = parse_literal(text, prop.range)
        return _Value(row, subject, value, text, canonical) if canonical else None
    class_iri = schema.class_for_type(graph.types[value])
    if class_iri is None or not schema.is_subclass(class_iri, prop.range):
        return None
    return _Value(row, subject, value, graph.names[value], graph.names[value])


def _agree(one: _Value, other: _Value, graph: Graph, joined: Integers) -> bool:
    """Whether both values can hold: they are one, or one is in the other."""
    if one.entity < 0 or other.entity < 0:
        return one.canonical == other.canonical
    words = [set(value.text.casefold().replace(",", " ").split()) for value in (one, other)]
    if words[0] <= words[1] or words[1] <= words[0]:
        return True
    pair = sorted((one.entity, other.entity))
    code = pair[0] * len(graph.names) + pair[1]
    at = int(np.searchsorted(joined, code))
    return at < len(joined) and int(joined[at]) == code


def _list_joined(graph: Graph) -> Integers:
    """The pairs of entities that a fact joins, each as one number, in order."""
    between = (graph.tails >= 0) & graph.plain
    heads, tails = graph.heads[between], graph.tails[between]
    lower, upper = np.minimum(heads, tails), np.maximum(heads, tails)
    return np.unique(lower * len(graph.names) + upper)
