"""Naive RAG: the chunks nearest to the question, and nothing else."""

from typing import Literal, get_args

from kpyramid.errors import InputError
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.reader.reading import read
from kpyramid.query.text.passages import find_passages
from kpyramid.query.types import Answer, Makers, Outcome, Question, Step

By = Literal["bm25", "vectors", "both"]


def ask_naive(
    question: Question,
    snapshot: Snapshot,
    makers: Makers,
    *,
    chunks: int = 5,
    by: By = "vectors",
) -> Answer:
    """The answer that a reader finds in the `chunks` chunks nearest to the question.

    `by` says how near is meant: in words (BM25), in vectors, or in both (see `text/ranking.py`).

    Raises:
        InputError: there is no such `by`.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if by not in get_args(By):
        raise InputError(f"by = {by!r}: chunks are found by {', '.join(get_args(By))}")
    items = tuple(find_passages(question.text, snapshot, chunks, by=by))
    reading = read(question, items, snapshot, makers)
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
