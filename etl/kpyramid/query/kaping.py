"""KAPING: the facts of the graph nearest to the question, by embedding, as a reader's context."""

from collections.abc import Sequence

from kpyramid.errors import InputError
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.facts import NearFact, find_facts, state_items
from kpyramid.query.types import Answer, Outcome, Step


def ask_kaping(asked: QuestionAnalysis, decisions: Decisions, *, triples: int = 10) -> Answer:
    """What a reader makes of the `triples` nearest facts.

    Raises:
        InputError: `triples` is less than 1.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if triples < 1:
        raise InputError(f"triples = {triples}: at least one fact is read")
    facts = find_facts(asked, triples, anchored=False)
    return read_facts(asked, facts, "nearest to the question", decisions)


def read_facts(
    asked: QuestionAnalysis, facts: Sequence[NearFact], which: str, decisions: Decisions
) -> Answer:
    """The answer that a reader finds in facts, with one step of the graph in its trace."""
    items = state_items(((fact, fact.cosine) for fact in facts), asked.snapshot)
    if not items:
        return Answer("", (), (), None, (), (Step("graph", Outcome.EMPTY, f"no fact {which}"),))
    reading = decisions.read(asked, items)
    given = bool(reading.text or reading.choices)
    best = max(fact.cosine for fact in facts)
    reason = f"{len(items)} facts {which}, best cosine {best:.2f}"
    if not given:
        reason = f"{reason}; {reading.reason or 'none of them answers it'}"
    outcome = Outcome.ANSWERED if given else Outcome.INSUFFICIENT
    step = Step("graph", outcome, reason, tuple(item.text for item in items), reading.confidence)
    return Answer(
        reading.text,
        reading.choices,
        items,
        "graph",
        reading.evidence or tuple(dict.fromkeys(p for item in items for p in item.evidence)),
        (step,),
        confidence=reading.confidence,
        calls=reading.calls,
        tokens=reading.tokens,
        logprobs=reading.logprobs,
    )
