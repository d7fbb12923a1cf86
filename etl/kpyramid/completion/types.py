"""What completion reads and what it finds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from kpyramid.ontology.schema import Schema

Pair = tuple[str, str]
"""Ids of a fact's head and tail; of a literal tail its text."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphLayer:
    """The facts of the knowledge graph, as columns of equal length n; `LITERAL` types a literal."""

    heads: Sequence[str]
    head_types: Sequence[str]
    wordings: Sequence[str]
    tails: Sequence[str]
    tail_types: Sequence[str]
    pairs: Sequence[Pair]

    def __len__(self) -> int:
        return len(self.heads)


@dataclass(frozen=True, slots=True, eq=False)
class OntologyLayer:
    """The schema and the values that its instances state, as columns of equal length m."""

    schema: Schema
    subjects: Sequence[str]
    properties: Sequence[str]
    pairs: Sequence[Pair]


@dataclass(frozen=True, slots=True)
class Proposal:
    """A class or property that the ontology lacks.

    `facts`: places in the graph's columns of the facts that support it.
    `existing`: IRI of what it is only another name for; its phrases become alternative labels.
    `splits`: IRI of the property of which it states a part (`department`: `past`, `current`).
    `inverse`: IRI of the existing property, or label of the proposal, that it turns round.
    `agreement`: share of the support that fits domain and range.
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
    notes: tuple[str, ...] = field(default=())
