"""Naive RAG: the chunks nearest to the question, and nothing else."""

from typing import Literal, get_args

from kpyramid.errors import InputError
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.reader.reading import read
from kpyramid.query.types import Answer, Item, Makers, Outcome, Question, Step

By = Literal["bm25", "vectors", "both"]
_RANK_OFFSET = 60
"""Of reciprocal rank fusion (Cormack et al., SIGIR 2009)."""


def ask_naive(
    question: Question,
    snapshot: Snapshot,
    makers: Makers,
    *,
    chunks: int = 5,
    by: By = "vectors",
) -> Answer:
    """The answer that a reader finds in the `chunks` chunks nearest to the question.

    `by` says how near is meant: in words (BM25), in vectors, or in both rankings fused.

    Raises:
        InputError: there is no such `by`.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if by not in get_args(By):
        raise InputError(f"by = {by!r}: chunks are found by {', '.join(get_args(By))}")
    items = _find_chunks(question.text, snapshot, chunks, by)
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


def _find_chunks(question: str, snapshot: Snapshot, k: int, by: By) -> tuple[Item, ...]:
    ranked: list[tuple[str, float]]
    if by == "bm25":
        ranked = snapshot.words(question, k, "chunks")
    elif by == "vectors":
        ranked = [(key, cosine) for key, _, cosine in snapshot.neighbours(question, k, "chunks")]
    else:
        scores: dict[str, float] = {}
        for order in (
            [key for key, _ in snapshot.words(question, 10 * k, "chunks")],
            [key for key, *_ in snapshot.neighbours(question, 10 * k, "chunks")],
        ):
            for rank, key in enumerate(order, 1):
                scores[key] = scores.get(key, 0.0) + 1 / (_RANK_OFFSET + rank)
        ranked = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
    return tuple(
        Item(key, place.text, "text", score, (place,))
        for key, score in ranked
        for place in snapshot.evidence(key)
    )
