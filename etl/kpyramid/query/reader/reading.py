"""What a reader makes of context: by rules, or by the model that is asked."""

from collections.abc import Sequence

import numpy as np

from kpyramid.query.model.reading import read_by_model
from kpyramid.query.pyramid.linking import find_names
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.reader.asked import Asked, read_question
from kpyramid.query.reader.choosing import choose, cite
from kpyramid.query.reader.deciding import decide, is_decision
from kpyramid.query.reader.finding import gather_values
from kpyramid.query.reader.hits import measure_hits
from kpyramid.query.reader.pieces import Piece, cut_items
from kpyramid.query.reader.weighing import weigh
from kpyramid.query.types import Item, Makers, Question, Reading

SURE = 0.3
"""Probability of a short answer below which the sentence it stands in is the answer, or none."""
NEAR = 0.3
"""Cosine below which a sentence is no answer; unrelated ones reach about .25."""
MOST_SENTENCES = 38


def read(question: Question, items: Sequence[Item], snapshot: Snapshot, makers: Makers) -> Reading:
    """The answer that context gives, best items first; empty when it does not say.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if not items:
        return Reading("", (), 0.0, ())
    if makers.reader == "llm":
        assert makers.asker is not None  # `Makers` demands it
        return read_by_model(question, items, makers.asker, logprobs=makers.logprobs)
    asked = read_question(question.text, snapshot.link(question.text))
    pieces = cut_items(items, snapshot)
    if question.candidates and is_decision(question.candidates):
        return decide(asked, question.candidates, pieces, snapshot)
    if question.candidates:
        return choose(asked, question.candidates, pieces, snapshot)
    return _find_value(asked, pieces, snapshot)


def _find_value(asked: Asked, pieces: Sequence[Piece], snapshot: Snapshot) -> Reading:
    """The value that answers most probably, else the sentence nearest to the question."""
    texts, hits = gather_values(asked, pieces)
    best = 0.0
    if hits:
        weighed = weigh(hits, measure_hits(asked, hits, snapshot), "open")
        best = weighed[0].probability
        if best >= SURE:
            hit = weighed[0].hits[0]
            text = hit.piece.text[hit.start : hit.end] or texts[weighed[0].candidate]
            return Reading(text, (text,), best, cite(weighed[:1]))
    return _find_sentence(asked, pieces, snapshot, best)


def _find_sentence(
    asked: Asked, pieces: Sequence[Piece], snapshot: Snapshot, probability: float
) -> Reading:
    names = find_names(asked.text, first_counts=False)
    near = [p for p in pieces if not names or names & find_names(p.text, first_counts=True)]
    near = [p for p in near if not p.sides][:MOST_SENTENCES]
    if not near:
        return Reading("", (), probability, ())
    vectors = snapshot.embedder.embed([piece.text for piece in near])
    cosines = vectors @ snapshot.embed(asked.text)
    best = int(np.argmax(cosines))
    if cosines[best] < NEAR:
        return Reading("", (), probability, ())
    piece = near[best]
    return Reading(piece.text, (piece.text,), probability, piece.evidence)
