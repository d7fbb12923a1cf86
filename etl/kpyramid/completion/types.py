"""Input and output of completion: the two layers, proposals, priorities."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.numerics.moments import Array, Moments
from kpyramid.ontology.schema import Schema
from kpyramid.storage.columns import TextColumn

LITERAL = "LITERAL"
"""Type of a tail that is no entity."""
Pair = tuple[str, str]
"""Ids of a fact's head and tail; for a literal tail its text."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphLayer:
    """The facts of the knowledge graph, as columns of equal length n; `LITERAL` types a literal.

    `head_keys`, `tail_keys`: the ids of the ends, for a literal its text.
    """

    heads: Sequence[str]
    head_types: Sequence[str]
    wordings: Sequence[str]
    tails: Sequence[str]
    tail_types: Sequence[str]
    head_keys: Sequence[str]
    tail_keys: Sequence[str]

    def __len__(self) -> int:
        return len(self.heads)

    def pair(self, place: int) -> Pair:
        """The ends of one fact."""
        return self.head_keys[place], self.tail_keys[place]

    def walk_pairs(self) -> Iterator[Pair]:
        """The ends of all facts."""
        return zip(self.head_keys, self.tail_keys, strict=True)

    def walk_ends(self) -> Iterator[tuple[str, str]]:
        """Words and type of all heads, then of all tails."""
        yield from zip(self.heads, self.head_types, strict=True)
        yield from zip(self.tails, self.tail_types, strict=True)


@dataclass(frozen=True, slots=True, eq=False)
class OntologyLayer:
    """The schema and the values that its instances state, as columns of equal length m.

    `classes`: the class of an individual, by its id. `is_open`: whether the ontology is made from
    the corpus, so that a thing without a class may be an end of a property.
    """

    schema: Schema
    properties: Sequence[str]
    pairs: Sequence[Pair]
    classes: Mapping[str, str]
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Proposal:
    """A class or property that the ontology lacks.

    `facts`: indices in the graph's columns of the facts that support it.
    `existing`: IRI of the term for which it is another name; its phrases become its labels.
    `splits`: IRI of the property of which it states a part (`department`: `past`, `current`).
    `inverse`: IRI of the existing property of which it is the inverse.
    `agreement`: share of the support that fits domain and range by the types of its ends.
    `doubt`: why a person has to decide whether it is another name. `fault`: why it is not
    proposed at all.
    """

    kind: Literal["class", "property"]
    label: str
    definition: str
    domain: str
    range: str | None
    phrases: tuple[str, ...]
    facts: tuple[int, ...]
    score: float
    agreement: float
    existing: str | None = None
    splits: str | None = None
    inverse: str | None = None
    notes: tuple[str, ...] = ()
    doubt: str = ""
    fault: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Phrases:
    """The phrases of one layer, as columns of equal length p, and the layer's moments.

    `facts`: number of facts or values with each. `points`: coordinates on the first two axes of the
    shared space, shape (p, 2); 0 on the second in a space with one axis. `log_graph`,
    `log_ontology`: log densities of both layers there, in nats. `moments`: of the embeddings.
    """

    texts: TextColumn
    facts: Integers
    points: Array
    log_graph: Array
    log_ontology: Array
    moments: Moments


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """Both layers in one space; `explained`: share of their variance on each axis, shape (d,)."""

    graph: Phrases
    ontology: Phrases
    explained: Array


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """Priorities of the graph's phrases, and proposals, the best first.

    `measure`: places both layers in one space, which only priorities by density need. `phrase_of`:
    the index of each fact's phrase in the graph's layer, shape (n,). `sign`, `log_magnitude`,
    `region`: the priority of each phrase of that layer, as -1, 0 or 1 times exp of the log (0.0
    where the sign is 0), and whether it is in the priority region.
    """

    measure: Callable[[], Layers]
    phrase_of: Integers
    sign: Integers
    log_magnitude: Array
    region: Mask
    proposals: tuple[Proposal, ...]

    def weigh(self, facts: Sequence[int]) -> float:
        """The priority of some facts together."""
        places = self.phrase_of[list(facts)]
        return float(self.sign[places] @ np.exp(self.log_magnitude[places]))


def find_stated(graph: GraphLayer, ontology: OntologyLayer) -> Mask:
    """Which facts join the subject and value of a known value, in either direction, shape (n,)."""
    known: set[Pair] = set(ontology.pairs)
    known |= {(b, a) for a, b in known}
    return np.fromiter((pair in known for pair in graph.walk_pairs()), bool, count=len(graph))
