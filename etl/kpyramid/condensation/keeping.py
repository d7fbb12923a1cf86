"""The facts of the graph that the condensed graph does not say."""

from collections.abc import Iterator, Sequence

import numpy as np

from kpyramid.condensation.graph import Column, Graph, read_value
from kpyramid.condensation.merging import LITERAL, Compare, Fact, says_all


def list_lost(
    said: Graph, standing: Graph, stands: Column, trusted: Sequence[bool], compare: Compare
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
        fact, by = _read_fact(said, row), _read_fact(standing, place)
        ends = {int(said.heads[row]), int(said.tails[row])}
        if ends != {int(standing.heads[place]), int(standing.tails[place])}:
            yield row, "it is about other things"
        elif by.value is not None and fact.value is not None and not by.value.says(fact.value):
            yield row, "its value is another"
        elif not trusted[row] and not says_all(by, fact, compare):
            verdict = compare(by.wording, fact.wording, by.ends)
            yield row, f"{by.wording!r} does not say {fact.wording!r}: {verdict.reason}"


def _unite_texts(said: Graph, standing: Graph) -> Column:
    """The literals of the first graph by their places in the second; -2 for those it lacks."""
    place = {text: at for at, text in enumerate(standing.texts)}
    places = np.array([*(place.get(text, -2) for text in said.texts), -1], dtype=np.int64)
    return places[said.literals]


def _read_fact(graph: Graph, row: int) -> Fact:
    """A fact, flipped where its head is the later of two entities."""
    head, tail = int(graph.heads[row]), int(graph.tails[row])
    return Fact(
        row,
        graph.wordings[graph.relations[row]],
        0 <= tail < head,
        (graph.types[head], graph.types[tail] if tail >= 0 else LITERAL),
        read_value(graph.texts[graph.literals[row]]) if tail < 0 else None,
        frozenset(),
    )
