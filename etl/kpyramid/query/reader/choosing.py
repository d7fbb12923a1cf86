"""Choice questions: which of the candidates a context supports."""

from collections.abc import Sequence

from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.reader.asked import Asked
from kpyramid.query.reader.finding import find_candidates, read_candidates
from kpyramid.query.reader.hits import Hit, measure_hits
from kpyramid.query.reader.pieces import Piece
from kpyramid.query.reader.weighing import Supported, pick, weigh
from kpyramid.query.types import Evidence, Reading

WHOLE = 0.9
"""How surely a place says a candidate that says all of it, at most in other endings."""


def choose(
    asked: Asked, candidates: Sequence[str], pieces: Sequence[Piece], snapshot: Snapshot
) -> Reading:
    """The candidates that the context says answer the question, with its places; none if none."""
    hits = drop_echoes(find_candidates(read_candidates(candidates, snapshot), pieces), asked)
    if not hits:
        return Reading("", (), 0.0, ())
    weighed = weigh(hits, measure_hits(asked, hits, pieces), "choice", asked.number)
    chosen = pick(weighed, asked.number)
    if not chosen:
        return Reading("", (), weighed[0].probability, ())
    held = {found.candidate for found in chosen}
    choices = tuple(text for index, text in enumerate(candidates) if index in held)
    confidence = sum(found.probability for found in chosen) / len(chosen)
    return Reading("; ".join(choices), choices, confidence, cite(chosen))


def drop_echoes(hits: Sequence[Hit], asked: Asked) -> list[Hit]:
    """The places without those that say only a part of a candidate, in the question's own words.

    Asked for clubs, "club" says no more of "Central Club" than of any other.
    """
    return [hit for hit in hits if hit.strength >= WHOLE or not _is_echo(hit, asked)]


def _is_echo(hit: Hit, asked: Asked) -> bool:
    own = [word for word in hit.piece.words if hit.start <= word.start < hit.end]
    return all(word.stem in asked.said for word in own)


def cite(found: Sequence[Supported]) -> tuple[Evidence, ...]:
    """The places of the best hit of each value, once each."""
    return tuple(dict.fromkeys(place for one in found for place in one.hits[0].piece.evidence))
