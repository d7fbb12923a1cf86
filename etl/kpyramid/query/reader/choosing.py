"""Choice questions: which of the candidates a context supports."""

from collections.abc import Sequence

from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.reader.asked import Asked
from kpyramid.query.reader.finding import find_candidates, read_candidates
from kpyramid.query.reader.hits import measure_hits
from kpyramid.query.reader.pieces import Piece
from kpyramid.query.reader.weighing import Supported, pick, weigh
from kpyramid.query.types import Evidence, Reading


def choose(
    asked: Asked, candidates: Sequence[str], pieces: Sequence[Piece], snapshot: Snapshot
) -> Reading:
    """The candidates that the context says answer the question, with its places; none if none."""
    hits = find_candidates(read_candidates(candidates, snapshot), pieces)
    if not hits:
        return Reading("", (), 0.0, ())
    weighed = weigh(hits, measure_hits(asked, hits, snapshot), "choice")
    chosen = pick(weighed, asked.number)
    if not chosen:
        return Reading("", (), weighed[0].probability, ())
    held = {found.candidate for found in chosen}
    choices = tuple(text for index, text in enumerate(candidates) if index in held)
    confidence = sum(found.probability for found in chosen) / len(chosen)
    return Reading("; ".join(choices), choices, confidence, cite(chosen))


def cite(found: Sequence[Supported]) -> tuple[Evidence, ...]:
    """The places of the best hit of each value, once each."""
    return tuple(dict.fromkeys(place for one in found for place in one.hits[0].piece.evidence))
