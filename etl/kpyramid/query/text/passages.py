"""The passages that bear on a question: by words, by vectors, by both, and by walking on."""

from collections.abc import Sequence
from typing import Literal, get_args

from kpyramid.errors import InputError
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.text.bridging import walk_on
from kpyramid.query.types import Item

By = Literal["bm25", "vectors", "both", "walk"]

POOL = 100
"""Passages that words and vectors each put forward; gold ones are seldom further down."""
WORDS_PART = 0.018
"""What a point of BM25 is worth in cosine. Not a share of the best passage's score: where all words
of a question are common the best has few points, and words should count for little."""


def find_passages(
    question: str,
    snapshot: Snapshot,
    k: int,
    *,
    by: By = "walk",
    facts: Sequence[str] = (),
) -> list[Item]:
    """The k passages of the text layer that bear most on a question, best first.

    `bm25` ranks by words, `vectors` by cosine, `both` by their sum. `walk` is for questions that
    no single passage answers: from the first passages, and from `facts`, statements found in the
    layers above, it goes on to passages about what they name. Fewer come back where the layer
    has fewer, by `bm25` also where fewer share a word with the question.

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
        scores = fuse_scores(question, snapshot, max(k, POOL))
        if by == "walk":
            scores = walk_on(question, snapshot, scores, facts)
    best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
    return [
        Item(key, place.text, "text", float(score), (place,))
        for key, score in best
        for place in snapshot.evidence(key)
    ]


def fuse_scores(question: str, snapshot: Snapshot, pool: int) -> dict[str, float]:
    """Cosine plus a part for words, of the best `pool` passages of each, by key."""
    near = {key: cosine for key, _, cosine in snapshot.neighbours(question, pool, "chunks")}
    worded = dict(snapshot.words(question, pool, "chunks"))
    missing = sorted(worded.keys() - near.keys())
    if missing:
        cosines = snapshot.vectors_of(missing, "chunks") @ snapshot.embed(question)
        near |= dict(zip(missing, cosines.tolist(), strict=True))
    return {key: cosine + WORDS_PART * worded.get(key, 0.0) for key, cosine in near.items()}
