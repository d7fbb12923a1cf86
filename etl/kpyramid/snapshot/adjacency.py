"""The graph of condensed facts as an adjacency: entities are nodes, facts between two are edges.

It needs no storage: the index has the rows of the facts about each entity (compressed sparse rows)
and the rows of each fact's ends. Both are mapped into memory and read in place, so that the cost of
a walk depends on the facts that it reads, not on the size of the graph.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.snapshot.view import View

Step = tuple[int, int, bool]
"""The fact of a step, the entity that it reaches, and whether it goes from head to tail."""
MOST_HOPS = 4
"""Largest number of facts that may be requested for a path between two entities."""


class Viewed(Protocol):
    """An object that reads through a view: a snapshot, or one derived from it."""

    @property
    def _view(self) -> View: ...


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges from some nodes, as arrays of equal length.

    `source`: index of the start node among the nodes requested. `fact`: row of the fact.
    `target`: row of the entity at the other end. `forward`: from the fact's head to its tail.
    """

    source: Integers
    fact: Integers
    target: Integers
    forward: Mask

    def __len__(self) -> int:
        return len(self.fact)

    def list_steps(self) -> list[Step]:
        """The edges as steps."""
        columns = (self.fact.tolist(), self.target.tolist(), self.forward.tolist())
        return [*zip(*columns, strict=True)]

    def take(self, chosen: Any) -> "Edges":
        """Some of the edges, by a mask or by indices."""
        return Edges(
            self.source[chosen], self.fact[chosen], self.target[chosen], self.forward[chosen]
        )


def spread(starts: Iterable[int], hops: int, leave: Callable[[Integers], Edges]) -> dict[int, int]:
    """The nodes within `hops` steps of some nodes, with the least number of steps."""
    steps = dict.fromkeys(starts, 0)
    last = sorted(steps)
    for step in range(1, hops + 1):
        met = np.unique(leave(np.array(last, np.int64)).target).tolist()
        last = [row for row in met if row not in steps]
        steps |= dict.fromkeys(last, step)
    return steps


def walk(
    leave: Callable[[int], Iterable[Step]], start: int, steps: int, near: Mapping[int, int]
) -> Iterator[list[Step]]:
    """The simple walks of exactly `steps` steps that reach an end only with the last step.

    `near`: least number of steps to an end, 0 for the ends; nodes not in it are further away.
    """

    def go(row: int, passed: frozenset[int], left: int) -> Iterator[list[Step]]:
        for step in leave(row):
            target = step[1]
            distance = near.get(target, left)
            if target in passed or distance >= left or (distance == 0) is not (left == 1):
                continue
            rests = [[]] if left == 1 else go(target, passed | {target}, left - 1)
            yield from ([step, *rest] for rest in rests)

    return go(start, frozenset([start]), steps)


class Adjacency:
    """The edges of the visible facts, without literals and loops."""

    def __init__(self, snapshot: Viewed) -> None:
        self._view = view = snapshot._view
        view.require_whole()
        self._starts, self._facts = view.rows("entities").lists("facts")
        facts = view.rows("condensed")
        self._heads, self._tails = facts.numbers("head"), facts.numbers("tail")
        self._confidence = facts.numbers("confidence")
        self._seen = view.mask("condensed")

    def locate(self, entity_ids: Iterable[str]) -> dict[str, int]:
        """The rows of the visible entities among some, in order."""
        return self._view.find_all("entities", entity_ids)

    def name_entity(self, row: int) -> str:
        """The id of the entity of a row."""
        return str(self._view.rows("entities").keys[row])

    def name_fact(self, row: int) -> str:
        """The id of the fact of a row."""
        return str(self._view.rows("condensed").keys[row])

    def count_facts(self, rows: Integers) -> Integers:
        """The number of visible facts about each of some entities, literals included."""
        if self._seen is None:
            return np.asarray(self._starts[rows + 1] - self._starts[rows], np.int64)
        return np.bincount(self._list_facts(rows)[0], minlength=len(rows))

    def leave(self, rows: Integers, most: int) -> Edges:
        """The edges of some nodes, for each at most the `most` with the highest confidence.

        In the order of the nodes, then of the facts' keys.
        """
        source, fact = self._list_facts(rows)
        forward = self._heads[fact] == rows[source]
        target = np.where(forward, self._tails[fact], self._heads[fact]).astype(np.int64)
        proper = (target >= 0) & (target != rows[source])
        edges = Edges(source, fact, target, np.asarray(forward)).take(proper)
        many = np.flatnonzero(np.bincount(edges.source, minlength=len(rows)) > most)
        if not len(many):
            return edges
        chosen = np.ones(len(edges), np.bool_)
        for place in many:
            edges_of = np.flatnonzero(edges.source == place)
            order = np.lexsort((edges.fact[edges_of], -self._confidence[edges.fact[edges_of]]))
            chosen[edges_of[order[most:]]] = False
        return edges.take(chosen)

    def _list_facts(self, rows: Integers) -> tuple[Integers, Integers]:
        """The visible facts about some entities: the index of each one's entity, and its row."""
        starts = self._starts[rows].astype(np.int64)
        sizes = self._starts[rows + 1] - starts
        source = np.repeat(np.arange(len(rows)), sizes)
        first = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
        fact = self._facts[first + np.arange(len(source))].astype(np.int64)
        shown = slice(None) if self._seen is None else self._seen[fact]
        return source[shown], fact[shown]
