"""Whether two names keep the same company: the vectors of what is said of them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.keys import content_id
from kpyramid.resolution.entries import Use
from kpyramid.resolution.names import parse_name

_MOST = 32
"""Statements of one name that are looked at; more would cost and change little."""
_LEAST = 3
"""Statements that a context needs to say anything."""

Pair = tuple[str, str]
"""The keys of two names."""


def compare_contexts(
    pairs: Sequence[Pair], uses: Iterable[Use], embedder: Embedder
) -> dict[Pair, float]:
    """The cosine of the pairs' contexts; a pair with too little said of either is left out.

    A context is the mean vector of what is said of a name without the name itself, minus the
    mean of all names compared: what all names of the corpus have in common says nothing.
    """
    wanted = {key for pair in pairs for key in pair}
    said: dict[str, set[str]] = defaultdict(set)
    for use in uses:
        key = parse_name(use.name).key
        if key in wanted:
            parts = (use.relation, use.other) if use.side == "head" else (use.other, use.relation)
            said[key].add(" ".join(parts))
    texts = {key: _sample(said[key]) for key in sorted(said) if len(said[key]) >= _LEAST}
    pairs = [pair for pair in pairs if pair[0] in texts and pair[1] in texts]
    if not pairs:
        return {}
    means = {key: embedder.embed(texts[key]).mean(axis=0) for key in texts}
    common = np.mean(np.stack(list(means.values())), axis=0)
    contexts = {key: _scale(mean - common) for key, mean in means.items()}
    return {(one, other): float(contexts[one] @ contexts[other]) for one, other in pairs}


def _sample(texts: Iterable[str]) -> list[str]:
    """At most so many, chosen by hash: the same in every order and corpus."""
    return sorted(texts, key=lambda text: content_id("context", text))[:_MOST]


def _scale(vector: Matrix) -> Matrix:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
