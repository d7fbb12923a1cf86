"""Strategies of one look-up, which others are compared with: direct, naive, KAPING, exact match.

`direct` looks nowhere, `naive` takes the nearest chunks, `kaping` the nearest facts of the graph by
embedding, `exact` the facts about what the question names (WTS, Table 2: EM-QSR). A reader makes
the answer.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from kpyramid.errors import InputError
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.facts import (
    MOST_ENTITIES,
    NearFact,
    find_about,
    find_nearest,
    state_facts,
    state_items,
)
from kpyramid.query.passages import find_passages
from kpyramid.query.types import Answer, Outcome, Step

By = Literal["bm25", "vectors", "both"]


def ask_direct(asked: QuestionAnalysis, decisions: Decisions) -> Answer:
    """The answer without anything to read.

    Rules have learnt nothing: they have no answer to an open question, and of candidates they
    guess the one nearest to the question, with the confidence of a guess.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    reading = decisions.recall(asked)
    outcome = Outcome.ANSWERED if reading.answers else Outcome.EMPTY
    step = Step("model", outcome, reading.reason, confidence=reading.confidence)
    answer = reading.give((), "model" if reading.answers else None, step)
    return replace(answer, evidence=())


def ask_naive(
    asked: QuestionAnalysis, decisions: Decisions, *, chunks: int = 5, by: By = "vectors"
) -> Answer:
    """The answer that a reader finds in the `chunks` chunks nearest to the question.

    `by` says how near is meant: in words (BM25), in vectors, or in both (see `passages.py`).

    Raises:
        InputError: there is no such `by`.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if by not in get_args(By):
        raise InputError(f"by = {by!r}: chunks are found by {', '.join(get_args(By))}")
    items = tuple(find_passages(asked, chunks, by=by))
    reading = decisions.read(asked, items)
    outcome = Outcome.INSUFFICIENT if items else Outcome.EMPTY
    found = f"{len(items)} chunks" + (f", best {items[0].score:.2f}" if items else "")
    said = reading.reason
    if not reading.answers:
        said = said or "no sentence is near the question and answers it"
    step = Step(
        "text",
        Outcome.ANSWERED if reading.answers else outcome,
        f"{found}; {said}" if said else found,
        confidence=reading.confidence,
    )
    places = tuple(place for item in items for place in item.evidence)
    return reading.give(items, "text" if items else None, step, places=places)


def ask_kaping(asked: QuestionAnalysis, decisions: Decisions, *, triples: int = 10) -> Answer:
    """What a reader makes of the `triples` nearest facts.

    Raises:
        InputError: `triples` is less than 1.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    _require_facts(triples)
    facts = find_nearest(asked, triples)
    return _read_facts(asked, facts, "nearest to the question", decisions)


def ask_exact(asked: QuestionAnalysis, decisions: Decisions, *, triples: int = 10) -> Answer:
    """What a reader makes of the nearest `triples` of the facts about the question's entities.

    Raises:
        InputError: `triples` is less than 1.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    _require_facts(triples)
    entities = asked.linked.entities[:MOST_ENTITIES]
    about = find_about(entities, asked, triples) if entities else {}
    named = ", ".join(dict.fromkeys(asked.linked.names))
    seen = f"about {named}" if entities else "as the question names nothing that the graph knows"
    return _read_facts(asked, state_facts(about, asked.snapshot), seen, decisions)


def _require_facts(triples: int) -> None:
    if triples < 1:
        raise InputError(f"triples = {triples}: at least one fact is read")


def _read_facts(
    asked: QuestionAnalysis, facts: Sequence[NearFact], which: str, decisions: Decisions
) -> Answer:
    """The answer that a reader finds in facts, with one step of the graph in its trace."""
    items = state_items(((fact, fact.cosine) for fact in facts), asked.snapshot)
    if not items:
        return Answer("", (), (), None, (), (Step("graph", Outcome.EMPTY, f"no fact {which}"),))
    reading = decisions.read(asked, items)
    reason = f"{len(items)} facts {which}, best cosine {max(fact.cosine for fact in facts):.2f}"
    if not reading.answers:
        reason = f"{reason}; {reading.reason or 'none of them answers it'}"
    outcome = Outcome.ANSWERED if reading.answers else Outcome.INSUFFICIENT
    step = Step("graph", outcome, reason, tuple(item.text for item in items), reading.confidence)
    places = tuple(dict.fromkeys(p for item in items for p in item.evidence))
    return reading.give(items, "graph", step, places=places)
