"""Naive RAG: the chunks nearest to the question, and nothing else."""

from typing import Literal, get_args

from kpyramid.errors import InputError
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.passages import find_passages
from kpyramid.query.types import Answer, Outcome, Step

By = Literal["bm25", "vectors", "both"]


def ask_naive(
    asked: QuestionAnalysis,
    decisions: Decisions,
    *,
    chunks: int = 5,
    by: By = "vectors",
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
    answered = bool(reading.text or reading.choices)
    outcome = Outcome.ANSWERED if answered else Outcome.INSUFFICIENT if items else Outcome.EMPTY
    found = f"{len(items)} chunks" + (f", best {items[0].score:.2f}" if items else "")
    said = reading.reason or ("" if answered else "no sentence is near the question and answers it")
    reason = f"{found}; {said}" if said else found
    return Answer(
        text=reading.text,
        choices=reading.choices,
        context=items,
        layer="text" if items else None,
        evidence=reading.evidence or tuple(place for item in items for place in item.evidence),
        trace=(Step("text", outcome, reason, confidence=reading.confidence),),
        confidence=reading.confidence,
        calls=reading.calls,
        tokens=reading.tokens,
        logprobs=reading.logprobs,
    )
