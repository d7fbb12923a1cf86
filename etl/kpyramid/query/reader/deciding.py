"""Yes, no or maybe: what the sentences nearest to the question come to."""

import re
from collections.abc import Sequence

import numpy as np

from kpyramid.query.doubt import find_unborne, is_undone
from kpyramid.query.grounds import add_fact, find_grounds
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.reader.asked import Asked
from kpyramid.query.reader.pieces import Piece
from kpyramid.query.types import Reading

_DECISIONS = frozenset({"yes", "no", "maybe"})
_DENIED = re.compile(
    r"\b(?:no|not|never|neither|nor|none|cannot|without|fail(?:ed|s)? to|lack(?:ed|s)? of|unable"
    r"|absen(?:t|ce)|similar|comparable|unlikely)\b|n't\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:may|might|could|unclear|uncertain|inconclusive|controversial|possibl[ey]|perhaps"
    r"|further|remain(?:s|ed)?|limited|insufficient)\b",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"\?\s*$|\b(?:whether|aim(?:s|ed)?|purpose|objectives?|hypothesi[sz]ed?|investigated?)\b",
    re.IGNORECASE,
)
"""A sentence that asks says nothing yet."""
_NEAREST = 3
"""Sentences that are heard."""
_SHARPNESS = 4
"""Power of the cosine by which a sentence counts: the nearest outweighs two that are far."""
CONFIRMED = 0.75
"""Probability of an answer that one sentence says in the words of the question. Set by hand."""
_MOST = 38
_NEAR = 0.4
"""Cosine from which a sentence speaks about what is asked."""


def is_decision(candidates: Sequence[str]) -> bool:
    """Whether the candidates are yes, no and perhaps maybe."""
    return {"yes", "no"} <= {c.strip().casefold() for c in candidates} <= _DECISIONS


def decide(
    asked: Asked, candidates: Sequence[str], pieces: Sequence[Piece], snapshot: Snapshot
) -> Reading:
    """No when most of the nearest sentences deny, maybe when they hedge, else yes.

    The sentences nearest to the question are heard, each as loud as it is near; the confidence is
    the share of what was said, drawn towards a guess. Nothing near: no answer.
    """
    heard = [piece for piece in pieces if not _ASKING.search(piece.text)][:_MOST]
    if not heard:
        return Reading("", (), 0.0, ())
    vectors = snapshot.embedder.embed([piece.text for piece in heard])
    cosines = vectors @ snapshot.embed(asked.text)
    order = [i for i in np.argsort(-cosines, kind="stable")[:_NEAREST] if cosines[i] >= _NEAR]
    if not order:
        return Reading("", (), 0.0, ())
    votes = dict.fromkeys(("yes", "no", "maybe"), 0.0)
    for i in order:
        votes[_hear(asked, heard[i].text)] += float(cosines[i]) ** _SHARPNESS
    given = {c.strip().casefold(): c for c in candidates}
    best = max(given, key=lambda word: (votes[word], word == "yes", word))
    if not votes[best]:
        return Reading("", (), 0.0, (), reason="what was found neither says nor denies it")
    share = votes[best] / sum(votes.values())
    places = tuple(dict.fromkeys(p for i in order for p in heard[i].evidence))
    guess = 1 / len(given)
    return Reading(given[best], (given[best],), guess + (share - guess) / 2, places)


def confirm(asked: Asked, pieces: Sequence[Piece], snapshot: Snapshot) -> Reading:
    """Yes where a sentence says all that an open question says, no where one denies it.

    Nothing is said for sure by a sentence that says less, and nothing where two disagree.
    """
    if asked.is_about_nothing:
        return Reading("", (), 0.0, (), reason="the question names nothing that it asks about")
    context = [piece.text for piece in pieces]
    said: dict[str, Piece] = {}
    for piece in pieces:
        grounds = find_grounds(piece.evidence, (), snapshot)
        if piece.sides:
            grounds = [add_fact(ground, piece.text) for ground in grounds]
        if grounds and asked.wanted and not find_unborne(asked, grounds, context, snapshot).reason:
            word = _hear(asked, grounds[0].text)
            is_so = word == "no" or is_undone(asked.text) or not is_undone(grounds[0].text)
            said.setdefault(word if is_so else "maybe", piece)
    if len(said) != 1 or "maybe" in said:
        why = (
            "what was found neither says nor denies it" if not said else "what was found disagrees"
        )
        return Reading("", (), 0.0, (), reason=why)
    ((word, piece),) = said.items()
    return Reading(word, (word,), CONFIRMED, piece.evidence)


def _hear(asked: Asked, text: str) -> str:
    # A question that denies itself ("is it not ...?") is answered yes by a denial.
    if bool(_DENIED.search(text)) != bool(_DENIED.search(asked.text)):
        return "no"
    return "maybe" if _HEDGED.search(text) else "yes"
