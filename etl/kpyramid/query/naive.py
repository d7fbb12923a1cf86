"""Naive RAG: the chunks nearest to the question."""

import numpy as np

from kpyramid.extraction.text.sentences import split_sentences
from kpyramid.query.linking import find_names
from kpyramid.query.snapshot import Snapshot
from kpyramid.query.types import Answer, Evidence, Item, Makers, Outcome, Question, Step

NEAR = 0.3
"""Cosine below which a sentence is no answer; unrelated ones reach about .25."""


def ask_naive(question: Question, snapshot: Snapshot, makers: Makers, *, chunks: int = 5) -> Answer:
    """The `chunks` nearest chunks as context; their sentence nearest to the question as answer.

    No sentence is offered that is far from the question or has none of the names in it: the text
    is then empty, and the context is what a reader can work with.
    """
    found = snapshot.neighbours(question.text, chunks, "chunks")
    items = tuple(
        Item(key, place.text, "text", cosine, (place,))
        for key, _, cosine in found
        for place in snapshot.evidence(key)
    )
    places = [place for item in items for place in item.evidence]
    best, cosine = _pick_sentence(question.text, places, snapshot)
    step = f"{len(found)} chunks" + (f", best cosine {found[0][2]:.2f}" if found else "")
    if best is None and places:
        step += "; no sentence is near the question and names what it names"
    elif best is not None:
        step += f"; a sentence of cosine {cosine:.2f}"
    return Answer(
        text=best.text if best else "",
        choices=(best.text,) if best else (),
        context=items,
        layer="text" if places else None,
        evidence=(best,) if best else tuple(places),
        trace=(Step("text", Outcome.ANSWERED if best else Outcome.INSUFFICIENT, step),),
    )


def _pick_sentence(
    question: str, places: list[Evidence], snapshot: Snapshot
) -> tuple[Evidence | None, float]:
    names = find_names(question, first_counts=False)
    sentences = [
        Evidence(
            item.document_id,
            item.chunk_id,
            item.start + span.start,
            item.start + span.end,
            item.text[span.start : span.end],
            item.source,
        )
        for item in places
        for span in split_sentences(item.text)
    ]
    sentences = [s for s in sentences if not names or names & find_names(s.text, first_counts=True)]
    if not sentences:
        return None, 0.0
    vectors = snapshot.embedder.embed([question, *(sentence.text for sentence in sentences)])
    cosines = vectors[1:] @ vectors[0]
    best = int(np.argmax(cosines))
    cosine = float(cosines[best])
    return (sentences[best], cosine) if cosine >= NEAR else (None, cosine)
