"""Baseline strategies with a single retrieval: direct, naive, KAPING, exact match.

`direct` retrieves nothing, `naive` the nearest chunks, `kaping` the nearest facts of the graph by
embedding, `exact` the facts about the question's entities (WTS, Table 2: EM-QSR). A reader words
the answer.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.facts import MOST_ENTITIES, find_about, find_nearest, state_facts, state_items
from kpyramid.query.passages import find_passages
from kpyramid.query.types import Answer, Item, Outcome, Step, list_places
from kpyramid.snapshot.view import NearFact

By = Literal["bm25", "vectors", "both"]


def ask_direct(asked: QuestionAnalysis, decisions: Decisions) -> Answer:
    """The answer without context.

    Rules have no knowledge: they do not answer open questions, and among candidates they guess the
    one nearest to the question, with the confidence of a guess.

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
    """A reader's answer from the `chunks` chunks nearest to the question.

    `by`: nearness by words (BM25), by vectors, or by both (see `passages.py`).

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    items = tuple(find_passages(asked, chunks, by=by))
    seen = f"{len(items)} chunks" + (f", best {items[0].score:.2f}" if items else "")
    return _read(asked, items, "text", seen, decisions)


def ask_kaping(asked: QuestionAnalysis, decisions: Decisions, *, triples: int = 10) -> Answer:
    """A reader's answer from the `triples` nearest facts.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    facts = find_nearest(asked, triples)
    return _read_facts(asked, facts, "nearest to the question", decisions)


def ask_exact(asked: QuestionAnalysis, decisions: Decisions, *, triples: int = 10) -> Answer:
    """A reader's answer from the `triples` nearest facts about the question's entities.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    entities = asked.linked.entities[:MOST_ENTITIES]
    about = find_about(entities, asked, triples)
    named = ", ".join(dict.fromkeys(asked.linked.names))
    seen = f"about {named}" if entities else "as the question names nothing that the graph knows"
    return _read_facts(asked, state_facts(about, asked.snapshot), seen, decisions)


def _read_facts(
    asked: QuestionAnalysis, facts: Sequence[NearFact], which: str, decisions: Decisions
) -> Answer:
    """A reader's answer from facts."""
    items = state_items(((fact, fact.cosine) for fact in facts), asked.snapshot)
    best = max((fact.cosine for fact in facts), default=0.0)
    seen = f"{len(items)} facts {which}, best cosine {best:.2f}" if facts else f"no fact {which}"
    return _read(asked, items, "graph", seen, decisions)


def _read(
    asked: QuestionAnalysis, items: tuple[Item, ...], layer: str, seen: str, decisions: Decisions
) -> Answer:
    """A reader's answer from items, with a step of their layer in its trace."""
    reading = decisions.read(asked, items)
    texts = tuple(item.text for item in items) if layer == "graph" else ()
    step = reading.judge(layer, seen, texts)
    step = step if items else replace(step, outcome=Outcome.EMPTY)
    return reading.give(items, layer if items else None, step, places=list_places(items))
