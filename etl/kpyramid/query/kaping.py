"""KAPING: the facts of the graph nearest to the question."""

from dataclasses import dataclass

from kpyramid.extraction.normal import normalise_name
from kpyramid.query.linking import LinkedQuestion
from kpyramid.query.snapshot import Snapshot
from kpyramid.query.types import Answer


@dataclass(frozen=True, slots=True)
class NearFact:
    """A condensed triple in words and its cosine with the question."""

    condensed_id: str
    head: str
    relation: str
    tail: str
    cosine: float

    @property
    def statement(self) -> str:
        return f"{self.head} {self.relation} {self.tail}"


def ask_kaping(question: str, snapshot: Snapshot, *, triples: int = 10) -> Answer:
    """The `triples` nearest facts as context; the answer is the nearest one's unnamed side."""
    facts = find_facts(question, snapshot, triples)
    best = f", best cosine {facts[0].cosine:.2f}" if facts else ""
    return answer_from_facts(
        facts, snapshot.link(question), snapshot, (f"graph: {len(facts)} facts{best}",)
    )


def find_facts(question: str, snapshot: Snapshot, k: int) -> list[NearFact]:
    """The k facts of the condensed graph nearest to the question, best first."""
    found = snapshot.neighbours(question, k, "condensed")
    return [
        NearFact(key, *snapshot.state_condensed(key), cosine=cosine) for key, _, cosine in found
    ]


def answer_from_facts(
    facts: list[NearFact], question: LinkedQuestion, snapshot: Snapshot, trace: tuple[str, ...]
) -> Answer:
    """An answer that rests on these facts, the first of them giving its text."""
    text = _pick_side(facts[0], question) if facts else ""
    return Answer(
        text=text,
        choices=(text,) if text else (),
        context=tuple(fact.statement for fact in facts),
        layer="graph" if facts else None,
        evidence=tuple(place for fact in facts for place in snapshot.evidence(fact.condensed_id)),
        trace=trace,
    )


def _pick_side(fact: NearFact, question: LinkedQuestion) -> str:
    """The side of a fact that the question does not name; the whole fact when neither is."""
    named = {normalise_name(name) for name in question.names}
    if normalise_name(fact.head) in named:
        return fact.tail
    if normalise_name(fact.tail) in named:
        return fact.head
    return fact.statement
