"""Facts of the graph that may answer a question: the nearest ones, and those about what it names.

A question is embedded once; it costs one look-up of neighbours and one of what is known about its
entities. (What its words and a relation's have in common says as much as the cosine of the two,
which would cost an embedding per relation: see `benchmarks/sufficiency.py` in RESULTS.)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.types import Item, Question

NEAREST = 30
"""Facts taken by nearness alone: how far down a fact lies whose names are written otherwise."""
MOST_ENTITIES = 12
"""Entities of a question whose facts are looked up; a name stands for several now and then."""
MOST_ABOUT = 60
"""Facts about what a question names that are weighed; of more, those nearest to it."""
MOST_LOOKED = 4_000
"""Facts about what a question names that are looked at: 6 MB of vectors. What has more facts
is a country or a field; of those the first by key are looked at, and the nearest of all anyway."""


@dataclass(frozen=True, slots=True)
class NearFact:
    """A condensed triple in words, its sides' ids and types, its cosine with the question.

    `through` is the fact that leads to it: the answer to "the X of the Y of Z" lies one fact
    beyond what is known about Z.
    """

    condensed_id: str
    head_id: str
    head: str
    head_type: str
    relation: str
    tail_id: str | None
    tail: str
    tail_type: str
    cosine: float
    through: "NearFact | None" = None

    @property
    def statement(self) -> str:
        """The fact in words, after the one that leads to it."""
        own = f"{self.head} {self.relation} {self.tail}"
        return f"{self.through.statement}; {own}" if self.through else own


def find_facts(
    question: Question, snapshot: Snapshot, k: int, *, anchored: bool = True
) -> list[NearFact]:
    """The k facts of the condensed graph that bear most on a question, best first.

    Without `anchored` they are simply the nearest (PolyRAG's Algorithm 1, KAPING). With it,
    facts about the question's entities are candidates as well, and all are ranked by the chance
    that they answer it, see `bearing`; where the question asks for something of something of what
    it names, so are the facts one step beyond.
    """
    if not anchored:
        return find_nearest(question.text, snapshot, k)
    from kpyramid.query.graph.chains import (  # they weigh what is found here
        follow_facts,
        weigh_singles,
    )

    candidates = gather_facts(question.text, snapshot)
    weighed = weigh_singles(question, candidates, snapshot)
    weighed = follow_facts(question, weighed, snapshot)
    return [bearing.fact for bearing in weighed[:k]]


def find_nearest(text: str, snapshot: Snapshot, k: int) -> list[NearFact]:
    """The k facts nearest to a text, best first."""
    near = snapshot.neighbours(text, k, "condensed")
    return state_facts({key: cosine for key, _, cosine in near}, snapshot)


def gather_facts(text: str, snapshot: Snapshot) -> list[NearFact]:
    """The nearest facts and those about the entities that a text names, each once."""
    near = {key: cosine for key, _, cosine in snapshot.neighbours(text, NEAREST, "condensed")}
    entities = snapshot.link(text).entities[:MOST_ENTITIES]
    about = find_about(entities, text, snapshot, MOST_ABOUT, known=near) if entities else {}
    return state_facts(near | about, snapshot)


def find_about(
    entities: Sequence[str],
    text: str,
    snapshot: Snapshot,
    most: int,
    known: Iterable[str] = (),
) -> dict[str, float]:
    """The facts about some entities nearest to a text, with their cosines."""
    seen = frozenset(known)
    about = snapshot.facts_about(entities, most=MOST_LOOKED)
    keys = [key for key in about if key not in seen]
    if not keys:
        return {}
    cosines = snapshot.vectors_of(keys, "condensed") @ snapshot.embed(text)
    order = np.argsort(-cosines, kind="stable")[:most]
    return {keys[index]: float(cosines[index]) for index in order}


def state_facts(cosines: dict[str, float], snapshot: Snapshot) -> list[NearFact]:
    """Facts in words, in the order given."""
    stated = zip(cosines.items(), snapshot.state_condensed_all(list(cosines)), strict=True)
    return [NearFact(key, *words, cosine=cosine) for (key, cosine), words in stated]


def state_item(fact: NearFact, snapshot: Snapshot, score: float) -> Item:
    """A fact as a piece of context, with the places of the facts that lead to it."""
    places = tuple(snapshot.evidence(fact.condensed_id))
    if fact.through:
        places = (*snapshot.evidence(fact.through.condensed_id), *places)
    return Item(fact.condensed_id, fact.statement, "graph", score, tuple(dict.fromkeys(places)))
