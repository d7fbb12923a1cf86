"""Facts that say what others say in more detail: a day of its year, "Lund, Sweden" of "Lund"."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from kpyramid.condensation.graph import LITERAL, Graph, Qualifiers, Value, read_value, read_values
from kpyramid.condensation.merging import Compare, Condensation, Fact, read_fact, says_all
from kpyramid.documents.words import normalise_name
from kpyramid.graph.synonyms.comparison import Comparer
from kpyramid.numerics.arrays import Integers

_MOST = 64
"""Facts of one subject and object that are compared with each other."""
_PLACED = frozenset({"in", "at"})
"""Roles of a place that no recogniser took for one."""


def group_details(graph: Graph, rows: Iterable[int]) -> list[list[int]]:
    """Plain facts of one subject whose objects can be one thing, told more or less precisely."""
    values = read_values(graph)
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    plain = graph.plain
    for row in rows:
        if not plain[row]:
            continue
        core = _find_core(row, graph, values)
        found[int(graph.heads[row]), core].append(row)
    return [group[:_MOST] for group in found.values() if len(group) > 1]


def link_details(
    graph: Graph,
    made: Condensation,
    qualifiers: Mapping[int, Qualifiers],
    comparer: Comparer,
    compare: Compare,
) -> dict[int, int]:
    """For standing facts the one that says all of it and more; by rows.

    It has the same subject, a wording that says the other's, an object as precise or more so (a
    day of the year, the name with what it is in), and all that qualifies the other. What is denied
    is linked to nothing: of that the broader says more. `qualifiers`: of the standing facts.
    """
    values = read_values(graph)
    held = {
        row: {("place" if role in _PLACED else role, value) for role, value in pairs}
        for row, pairs in qualifiers.items()
    }
    links: dict[int, int] = {}
    standing = np.flatnonzero(made.stands == np.arange(len(graph))).tolist()
    for group in group_details(graph, standing):
        said = [row for row in group if not comparer.read(graph.tell(row)[1]).negated]
        facts = {
            row: read_fact(graph, row, values[at] if (at := graph.literals[row]) >= 0 else None)
            for row in said
        }

        def says(one: int, other: int, facts: Mapping[int, Fact] = facts) -> bool:
            return (
                _has_object(one, other, graph)
                and held.get(one, set()) >= held.get(other, set())
                and says_all(facts[one], facts[other], compare)
            )

        more = {
            row: [one for one in said if one != row and says(one, row) and not says(row, one)]
            for row in said
        }
        for row, found in more.items():
            if found:  # what nothing says in more detail comes first
                links[row] = min((bool(more[one]), one) for one in found)[1]
    return links


def _find_core(row: int, graph: Graph, values: Sequence[Value]) -> str:
    """What the objects of a fact and of a less precise one have in common."""
    tail = int(graph.tails[row])
    if tail < 0:
        return f"{LITERAL} {values[graph.literals[row]].stem}"
    return f"{graph.types[tail]} {_cut_name(graph.names[tail])}"


def _cut_name(name: str) -> str:
    """A name without what stands behind its first comma."""
    return normalise_name(name.partition(", ")[0])


def _has_object(one: int, other: int, graph: Graph) -> bool:
    """Whether the first fact's object is the other's, or its name goes on where that one ends."""
    first, second = int(graph.tails[one]), int(graph.tails[other])
    if first < 0 or second < 0 or first == second:
        return (first < 0) == (second < 0)  # values are compared by what they say
    return _cut_name(graph.names[first]) == normalise_name(graph.names[second])


# The facts of the graph that the condensed graph does not say.


def list_lost(
    said: Graph, standing: Graph, stands: Integers, trusted: Sequence[bool], compare: Compare
) -> Iterator[tuple[int, str]]:
    """The facts that their condensed fact does not say, by row, and why.

    `stands`: for each fact the row of its condensed fact in `standing`, -1 for none. `trusted`:
    rows that a model merged; their wordings are not compared. Both graphs use the same tables of
    entities and relations.
    """
    for row in np.flatnonzero(stands < 0).tolist():
        yield row, "it stands in no condensed fact"
    rows = np.flatnonzero(stands >= 0)
    over = stands[rows]
    same = (
        (said.heads[rows] == standing.heads[over])
        & (said.relations[rows] == standing.relations[over])
        & (said.tails[rows] == standing.tails[over])
        & (_unite_texts(said, standing)[rows] == standing.literals[over])
    )
    for row in rows[~same].tolist():
        place = int(stands[row])
        fact, by = _turn_fact(said, row), _turn_fact(standing, place)
        ends = {int(said.heads[row]), int(said.tails[row])}
        if ends != {int(standing.heads[place]), int(standing.tails[place])}:
            yield row, "it is about other things"
        elif by.value is not None and fact.value is not None and not by.value.says(fact.value):
            yield row, "its value is another"
        elif not trusted[row] and not says_all(by, fact, compare):
            verdict = compare(by.wording, fact.wording, by.ends)
            yield row, f"{by.wording!r} does not say {fact.wording!r}: {verdict.reason}"


def _unite_texts(said: Graph, standing: Graph) -> Integers:
    """The literals of the first graph by their places in the second; -2 for those it lacks."""
    place = {text: at for at, text in enumerate(standing.texts)}
    places = np.array([*(place.get(text, -2) for text in said.texts), -1], dtype=np.int64)
    return places[said.literals]


def _turn_fact(graph: Graph, row: int) -> Fact:
    """A fact, flipped where its head is the later of two entities."""
    tail = int(graph.tails[row])
    value = read_value(graph.tell(row)[2]) if tail < 0 else None
    return read_fact(graph, row, value, flipped=0 <= tail < int(graph.heads[row]))
