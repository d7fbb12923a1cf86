"""MINE's retrieval: what a graph offers about a fact (KGGen, Mo et al. 2025, section 4).

The eight nodes nearest to the fact are looked up, and from each of them every triple that leads
away from it in at most two steps. As published, the graph is directed and joins a head and a tail
by one triple at most, the last one given, and each node speaks for itself, so that a triple may
come twice. A node that is only ever a tail offers nothing.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kpyramid.embeddings.port import Embedder, Matrix

TOP_NODES = 8
HOPS = 2


class Triple(NamedTuple):
    """A head, a relation and a tail in words."""

    head: str
    relation: str
    tail: str

    @property
    def sentence(self) -> str:
        """The triple as the judge reads it."""
        return f"{self.head} {self.relation} {self.tail}."


class Graph:
    """Triples by their heads, and the vectors of all nodes."""

    def __init__(self, triples: Sequence[Triple], embedder: Embedder) -> None:
        joined = {(t.head, t.tail): t for t in triples}
        self.nodes = tuple(sorted({node for pair in joined for node in pair}))
        self._vectors: Matrix | None = embedder.embed(self.nodes) if self.nodes else None
        self._leaving: dict[str, list[Triple]] = {node: [] for node in self.nodes}
        for triple in sorted(joined.values()):
            self._leaving[triple.head].append(triple)

    def rank_nodes(self, vector: Matrix, count: int = TOP_NODES) -> list[str]:
        """The nodes most similar to a vector of shape (size,), best first; ties by alphabet."""
        if self._vectors is None:
            return []
        order = np.argsort(-(self._vectors @ vector), kind="stable")
        return [self.nodes[at] for at in order[:count]]

    def follow(self, node: str, hops: int = HOPS) -> list[Triple]:
        """The triples at most `hops` steps ahead of a node, nearest first, each once."""
        found: dict[Triple, None] = {}
        front = [node]
        for _ in range(hops):
            step = [triple for at in front for triple in self._leaving[at]]
            front = sorted({triple.tail for triple in step})
            found.update(dict.fromkeys(step))
        return list(found)

    def retrieve(self, vector: Matrix) -> list[Triple]:
        """The context of a fact's vector: node by node, a triple as often as nodes lead to it."""
        return [triple for node in self.rank_nodes(vector) for triple in self.follow(node)]


def read_context(text: str, triples: Sequence[Triple]) -> list[Triple]:
    """The triples that a recorded context lists, in its order.

    Words that no triple of the graph accounts for (a full stop within a name, a graph that lacks
    the triple) are kept as a triple with head alone, sentence by sentence.
    """
    by_sentence: Mapping[str, Triple] = {t.sentence: t for t in triples}
    longest_first = sorted(by_sentence, key=lambda sentence: (-len(sentence), sentence))
    found: list[Triple] = []
    rest = text.strip()
    while rest:
        match = next((s for s in longest_first if rest.startswith(s)), None)
        if match is None:
            match = rest.split(". ", 1)[0]
            found.append(Triple(match.rstrip("."), "", ""))
            rest = rest[len(match) :].lstrip(". ")
        else:
            found.append(by_sentence[match])
            rest = rest[len(match) :].lstrip()
    return found


def measure_overlap(one: Sequence[Triple], other: Sequence[Triple]) -> float:
    """The share of two contexts' triples that both have (Jaccard); 1 when both are empty."""
    union = set(one) | set(other)
    return len(set(one) & set(other)) / len(union) if union else 1.0
