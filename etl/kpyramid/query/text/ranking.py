"""Passages by how well they fit a question: their meaning in its place, words, kin, and rivals."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kpyramid.embeddings.port import Matrix
from kpyramid.query.pyramid.snapshot import Snapshot

POOL = 100
"""Passages that words and vectors each put forward; gold ones are seldom further down."""
WORDS_PART = 0.1
"""What a word that no other passage says is worth in cosine at most. Not a share of the best
passage's score: where all words of a question are common, words should count for little."""
CROWD = 10
"""Passages of other documents nearest to one, by which is told how crowded its place is."""
CROWD_PART = 0.4
"""What is lost by standing where everything is near: such a passage is near to all questions."""
FIRST = 10
"""The first passages, by which the others are judged once more."""
FIRST_PART = 0.25
"""What is gained by lying where they do: answers to one question are alike."""
STEEPNESS = 30.0
"""How fast a passage counts for less among the first, the further its score is below the best."""


def rank_directly(question: str, snapshot: Snapshot, pool: int = POOL) -> dict[str, float]:
    """The scores of the passages that words or vectors put forward, by key."""
    near = [key for key, *_ in snapshot.neighbours(question, pool, "chunks")]
    worded = dict(snapshot.words(question, pool, "chunks"))
    keys = sorted({*near, *worded})
    if not keys:
        return {}
    placed, documents = snapshot.place_vectors(keys)
    points = np.array([worded.get(key, 0.0) for key in keys], np.float32)
    scores = placed @ snapshot.embed(question) + WORDS_PART / measure_rarest(snapshot) * points
    units = placed / np.linalg.norm(placed, axis=1, keepdims=True)
    scores -= CROWD_PART * measure_crowd(units, documents)
    scores += FIRST_PART * (units @ average_first(scores, units))
    return dict(zip(keys, scores.tolist(), strict=True))


def measure_crowd(units: Matrix, documents: npt.NDArray[Any]) -> Matrix:
    """For each vector its mean cosine with the `CROWD` nearest of other documents; 0 without any.

    Vectors of many dimensions have hubs, which are among the nearest of far too many others
    (Radovanović et al., JMLR 2010); how crowded a place is may be taken off its cosines (Conneau
    et al., ICLR 2018, CSLS). Here the neighbours are those in the pool.
    """
    cosines = units @ units.T
    cosines[documents[:, None] == documents] = -np.inf
    nearest = np.partition(cosines, -CROWD, axis=1)[:, -CROWD:] if len(units) > CROWD else cosines
    counted = np.isfinite(nearest)
    total = np.where(counted, nearest, 0).sum(axis=1)
    return np.asarray(total / np.maximum(counted.sum(axis=1), 1), dtype=np.float32)


def measure_rarest(snapshot: Snapshot) -> float:
    """How rare BM25 holds a word of a single passage, which grows with the number of passages."""
    return math.log(1 + (snapshot.count("chunks") - 0.5) / 1.5)


def average_first(scores: Matrix, units: Matrix) -> Matrix:
    """Where the first passages lie: their mean by how near their scores are to the best.

    Feedback without a judge (Rocchio 1971), from vectors.
    """
    first = np.argsort(-scores, kind="stable")[:FIRST]
    shares = np.exp(STEEPNESS * (scores[first] - scores[first[0]]))
    mean = shares @ units[first]
    return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)
