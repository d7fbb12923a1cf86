"""KAPING: the facts of the graph nearest to the question."""

from dataclasses import dataclass

from kpyramid.query.linking import LinkedQuestion
from kpyramid.query.snapshot import Snapshot
from kpyramid.query.types import Answer, Item, Makers, Outcome, Question, Step


@dataclass(frozen=True, slots=True)
class NearFact:
    """A condensed triple in words, its sides' ids and types, its cosine with the question."""

    condensed_id: str
    head_id: str
    head: str
    head_type: str
    relation: str
    tail_id: str | None
    tail: str
    tail_type: str
    cosine: float

    @property
    def statement(self) -> str:
        return f"{self.head} {self.relation} {self.tail}"


def ask_kaping(
    question: Question, snapshot: Snapshot, makers: Makers, *, triples: int = 10
) -> Answer:
    """The `triples` nearest facts as context; the answer is the nearest one's unnamed side."""
    facts = find_facts(question.text, snapshot, triples)
    best = f", best cosine {facts[0].cosine:.2f}" if facts else ""
    outcome = Outcome.ANSWERED if facts else Outcome.EMPTY
    trace = (Step("graph", outcome, f"{len(facts)} facts{best}"),)
    return answer_from_facts(facts, facts, snapshot.link(question.text), snapshot, trace)


def find_facts(question: str, snapshot: Snapshot, k: int) -> list[NearFact]:
    """The k facts of the condensed graph nearest to the question, best first."""
    found = snapshot.neighbours(question, k, "condensed")
    return [
        NearFact(key, *snapshot.state_condensed(key), cosine=cosine) for key, _, cosine in found
    ]


def answer_from_facts(
    bearing: list[NearFact],
    context: list[NearFact],
    question: LinkedQuestion,
    snapshot: Snapshot,
    trace: tuple[Step, ...],
) -> Answer:
    """An answer whose text and evidence come from the bearing facts, the first of them leading."""
    text = pick_side(bearing[0], question)[0] if bearing else ""
    places = [place for fact in bearing for place in snapshot.evidence(fact.condensed_id)]
    return Answer(
        text=text,
        choices=(text,) if text else (),
        context=tuple(
            Item(
                fact.condensed_id,
                fact.statement,
                "graph",
                fact.cosine,
                tuple(snapshot.evidence(fact.condensed_id)),
            )
            for fact in context
        ),
        layer="graph" if bearing else None,
        evidence=tuple(dict.fromkeys(places)),
        trace=trace,
    )


def pick_side(fact: NearFact, question: LinkedQuestion) -> tuple[str, str | None]:
    """The side of a fact that the question does not name, with its type.

    The whole fact, without a type, when the question names neither side or both.
    """
    head, tail = (side in question.entities for side in (fact.head_id, fact.tail_id))
    if head and not tail:
        return fact.tail, fact.tail_type
    if tail and not head:
        return fact.head, fact.head_type
    return fact.statement, None
