"""What a reader makes of context: the twin by rules of the model that reads, and the choice."""

from collections.abc import Sequence

import numpy as np

from kpyramid.extraction.normal import normalise_name
from kpyramid.extraction.text.sentences import split_sentences
from kpyramid.query.linking import find_names
from kpyramid.query.snapshot import Snapshot
from kpyramid.query.types import Evidence, Item, Makers, Question, Reading

NEAR = 0.3
"""Cosine below which a sentence is no answer; unrelated ones reach about .25."""


def read(question: Question, items: Sequence[Item], snapshot: Snapshot, makers: Makers) -> Reading:
    """The answer that context gives, best items first; empty when it does not say.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    sentences = [s for item in items for place in item.evidence for s in _split(place)]
    names = find_names(question.text, first_counts=False)
    near = [s for s in sentences if not names or names & find_names(s.text, first_counts=True)]
    if not near:
        return Reading("", (), 0.0, ())
    vectors = snapshot.embedder.embed([question.text, *(s.text for s in near)])
    cosines = vectors[1:] @ vectors[0]
    if not question.candidates:
        best = int(np.argmax(cosines))
        if cosines[best] < NEAR:
            return Reading("", (), float(max(cosines[best], 0.0)), ())
        return Reading(near[best].text, (near[best].text,), float(cosines[best]), (near[best],))
    for index in np.argsort(-cosines, kind="stable"):
        text = f" {normalise_name(near[index].text)} "
        held = tuple(c for c in question.candidates if f" {normalise_name(c)} " in text)
        if held:
            return Reading("; ".join(held), held, float(cosines[index]), (near[index],))
    return Reading("", (), 0.0, ())


def _split(place: Evidence) -> list[Evidence]:
    return [
        Evidence(
            place.document_id,
            place.chunk_id,
            place.start + span.start,
            place.start + span.end,
            place.text[span.start : span.end],
            place.source,
        )
        for span in split_sentences(place.text)
    ]
