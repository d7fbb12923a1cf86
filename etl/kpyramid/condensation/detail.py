"""More detailed facts: a day for its year, "Lund, Sweden" for "Lund"."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from kpyramid.condensation.graph import LITERAL, Graph, Qualifiers, Value, read_value, read_values
from kpyramid.condensation.merging import Compare, Condensation, Fact, read_fact, says
from kpyramid.documents.words import normalise_name
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.numerics.arrays import Integers

_MOST = 64
"""Most facts of one subject and object that are compared with each other."""
_PLACED = frozenset({"in", "at"})
"""Roles of a place that no recogniser tagged."""


def group_details(graph: Graph, rows: Iterable[int]) -> list[list[int]]:
    """Groups of plain facts of a subject whose objects can be one thing, in more or less detail."""
    values = read_values(graph)
    groups: dict[tuple[int, str], list[int]] = defaultdict(list)
    plain = graph.plain
    for row in rows:
        if not plain[row]:
            continue
        core = _find_core(row, graph, values)
        groups[int(graph.heads[row]), core].append(row)
    return [group[:_MOST] for group in groups.values() if len(group) > 1]


def link_details(
    graph: Graph,
    made: Condensation,
    qualifiers: Mapping[int, Qualifiers],
    comparer: Comparer,
    compare: Compare,
) -> dict[int, int]:
    """The more detailed fact of each standing fact that has one; by rows.

    It has the same subject, a wording that entails the other's, an object at least as precise (a
    day of the year, a place with the name of its region), and all qualifiers of the other. Denied
    facts are not linked: of these the broader one says more. `qualifiers`: of the standing facts.
    """
    values = read_values(graph)
    held = {
        row: {("place" if role in _PLACED else role, value) for role, value in pairs}
        for row, pairs in qualifiers.items()
    }
    links: dict[int, int] = {}
    standing = np.flatnonzero(made.stands == np.arange(len(graph))).tolist()
    for group in group_details(graph, standing):
        stated = [row for row in group if not comparer.read(graph.tell(row)[1]).negated]
        facts = {
            row: read_fact(graph, row, values[i] if (i := graph.literals[row]) >= 0 else None)
            for row in stated
        }

        def covers(left: int, right: int, facts: Mapping[int, Fact] = facts) -> bool:
            return (
                _has_object(left, right, graph)
                and held.get(left, set()) >= held.get(right, set())
                and says(facts[left], facts[right], compare) is not None
            )

        more = {
            row: [by for by in stated if by != row and covers(by, row) and not covers(row, by)]
            for row in stated
        }
        for row, fuller in more.items():
            if fuller:  # a fact without a more detailed one comes first
                links[row] = min((bool(more[by]), by) for by in fuller)[1]
    return links


def _find_core(row: int, graph: Graph, values: Sequence[Value]) -> str:
    """A key that the object of a fact shares with that of a less precise one."""
    tail = int(graph.tails[row])
    if tail < 0:
        return f"{LITERAL} {values[graph.literals[row]].stem}"
    return f"{graph.types[tail]} {_cut_name(graph.names[tail])}"


def _cut_name(name: str) -> str:
    """A name up to its first comma, normalised."""
    return normalise_name(name.partition(", ")[0])


def _has_object(left: int, right: int, graph: Graph) -> bool:
    """Whether the left fact's object is the right one's, or its name extends that one's."""
    first, second = int(graph.tails[left]), int(graph.tails[right])
    if first < 0 or second < 0 or first == second:
        return (first < 0) == (second < 0)  # literals are compared by their values
    return _cut_name(graph.names[first]) == normalise_name(graph.names[second])


# The facts of the graph that the condensed graph does not state.


def list_lost(
    full: Graph, standing: Graph, stands: Integers, trusted: Sequence[bool], compare: Compare
) -> Iterator[tuple[int, str]]:
    """Rows of the facts of `full` that their condensed fact does not state, each with the reason.

    `stands`: row of each fact's condensed fact in `standing`, -1 for none, shape (n,). `trusted`:
    whether a model merged the fact; its wording is then not compared. Both graphs use the same
    tables of entities and relations.
    """
    for row in np.flatnonzero(stands < 0).tolist():
        yield row, "it stands in no condensed fact"
    rows = np.flatnonzero(stands >= 0)
    over = stands[rows]
    same = (
        (full.heads[rows] == standing.heads[over])
        & (full.relations[rows] == standing.relations[over])
        & (full.tails[rows] == standing.tails[over])
        & (_unite_texts(full, standing)[rows] == standing.literals[over])
    )
    for row in rows[~same].tolist():
        place = int(stands[row])
        fact, by = _turn_fact(full, row), _turn_fact(standing, place)
        ends = {int(full.heads[row]), int(full.tails[row])}
        if ends != {int(standing.heads[place]), int(standing.tails[place])}:
            yield row, "it is about other things"
        elif by.value is not None and fact.value is not None and not by.value.says(fact.value):
            yield row, "its value is another"
        elif not trusted[row] and not says(by, fact, compare):
            verdict = compare(by.wording, fact.wording, by.ends)
            yield row, f"{by.wording!r} does not say {fact.wording!r}: {verdict.reason}"


def _unite_texts(full: Graph, standing: Graph) -> Integers:
    """Each fact's literal in `full` as an index in `standing.texts`; -2 where that lacks it."""
    place = {text: index for index, text in enumerate(standing.texts)}
    places = np.array([*(place.get(text, -2) for text in full.texts), -1], dtype=np.int64)
    return places[full.literals]


def _turn_fact(graph: Graph, row: int) -> Fact:
    """A fact, flipped where its head is the entity with the higher index."""
    tail = int(graph.tails[row])
    value = read_value(graph.tell(row)[2]) if tail < 0 else None
    return read_fact(graph, row, value, flipped=0 <= tail < int(graph.heads[row]))
