"""The passages that bear on a question: by words, by vectors, by both, and by walking on."""

from collections.abc import Sequence
from typing import Literal, get_args

from kpyramid.errors import InputError
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.text.bridging import walk_on
from kpyramid.query.text.ranking import POOL, rank_directly
from kpyramid.query.types import Item

By = Literal["bm25", "vectors", "both", "walk"]


def find_passages(
    question: str,
    snapshot: Snapshot,
    k: int,
    *,
    by: By = "walk",
    facts: Sequence[str] = (),
) -> list[Item]:
    """The k passages of the text layer that bear most on a question, best first.

    `bm25` ranks by words, `vectors` by cosine, `both` by the two and by where passages stand (see
    `ranking.py`). `walk` is for questions that no single passage answers: from the first passages,
    and from `facts`, statements found in the layers above, it goes on to passages about what they
    name. Fewer come back where the layer has fewer, by `bm25` also where fewer share a word with
    the question.

    Raises:
        InputError: `by` is unknown.
    """
    if by not in get_args(By):
        raise InputError(f"by = {by!r}: passages are found by {', '.join(get_args(By))}")
    if k < 1:
        return []
    if by == "bm25":
        scores = dict(snapshot.words(question, k, "chunks"))
    elif by == "vectors":
        scores = {key: cosine for key, _, cosine in snapshot.neighbours(question, k, "chunks")}
    else:
        scores = rank_directly(question, snapshot, max(k, POOL))
        if by == "walk":
            scores = walk_on(question, snapshot, scores, facts)
    best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
    return [
        Item(key, place.text, "text", float(score), (place,))
        for key, score in best
        for place in snapshot.evidence(key)
    ]
