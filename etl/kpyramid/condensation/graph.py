"""The graph's facts as columns, and which of them have both ends in common."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kpyramid.condensation.values import Value, read_value

Column = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Facts as columns of equal length n: places of heads, relations and tails in their tables.

    `tails`: -1 where the tail is a literal; `literals`: the place of its text in `texts`, else -1.
    `names`, `types`: of the entities. `wordings`, `support`: of the relations.
    """

    heads: Column
    relations: Column
    tails: Column
    literals: Column
    texts: Sequence[str]
    names: Sequence[str]
    types: Sequence[str]
    wordings: Sequence[str]
    support: Sequence[int]

    def __len__(self) -> int:
        return len(self.heads)


def read_values(graph: Graph) -> tuple[Value, ...]:
    """The value of each text of the graph's literals."""
    return tuple(map(read_value, graph.texts))


def find_shared_ends(graph: Graph, values: Sequence[Value]) -> Iterator[Column]:
    """The rows of facts that have both ends in common, where there are several.

    Ends are a pair of entities, whichever is the head, or a head and literals that can be one
    value. Time grows with n log n.
    """
    stems: dict[str, int] = {}
    stem_of = np.array([stems.setdefault(v.stem, len(stems)) for v in values], dtype=np.int64)
    is_literal = graph.tails < 0
    lower = np.where(is_literal, graph.heads, np.minimum(graph.heads, graph.tails))
    upper = np.maximum(graph.heads, graph.tails)
    if len(stem_of):
        upper[is_literal] = len(graph.names) + stem_of[graph.literals[is_literal]]
    order = np.lexsort((upper, lower))
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(lower[order]) != 0) | (np.diff(upper[order]) != 0)
    starts = np.flatnonzero(new)
    sizes = np.diff(np.append(starts, len(order)))
    for start, size in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        yield np.sort(order[start : start + size])
