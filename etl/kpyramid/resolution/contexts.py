"""Whether two names keep the same company: the vectors of what is said of them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.keys import content_id
from kpyramid.resolution.entries import Use
from kpyramid.resolution.names import parse_name

_MOST = 32
"""Statements of one name that are looked at; more would cost and change little."""
_LEAST = 3
"""Statements that a context needs to say anything."""

Place = tuple[str, str]
"""A key and a document."""


def gather_contexts(uses: Iterable[Use], wanted: Collection[Place]) -> dict[Place, set[str]]:
    """What is said of each name in each document, without the name itself."""
    said: dict[Place, set[str]] = defaultdict(set)
    if not wanted:
        return said
    for use in uses:
        place = (parse_name(use.name).key, use.document)
        if place in wanted:
            parts = (use.relation, use.other) if use.side == "head" else (use.other, use.relation)
            said[place].add(" ".join(parts))
    return said


def embed_contexts(
    said: Mapping[Place, Collection[str]], embedder: Embedder
) -> dict[Place, Matrix]:
    """The mean vector, of unit length, of each context that says enough."""
    return {
        place: _scale(embedder.embed(_sample(said[place])).mean(axis=0))
        for place in sorted(said)
        if len(said[place]) >= _LEAST
    }


def compare_contexts(
    pairs: Sequence[tuple[str, str]], uses: Iterable[Use], embedder: Embedder
) -> dict[tuple[str, str], float]:
    """The cosine of the contexts of two keys; a pair with too little said of either is left out.

    The mean of all names compared is taken off: what all names of the corpus have in common
    says nothing.
    """
    wanted = {key for pair in pairs for key in pair}
    said: dict[Place, set[str]] = defaultdict(set)
    uses = [use for use in uses if parse_name(use.name).key in wanted]
    places = {(parse_name(use.name).key, use.document) for use in uses}
    for (key, _), texts in gather_contexts(uses, places).items():
        said[key, ""] |= texts
    vectors = embed_contexts(said, embedder)
    if not vectors:
        return {}
    common = np.mean(np.stack(list(vectors.values())), axis=0)
    contexts = {key: _scale(vector - common) for (key, _), vector in vectors.items()}
    return {
        (one, other): float(contexts[one] @ contexts[other])
        for one, other in pairs
        if one in contexts and other in contexts
    }


def _sample(texts: Iterable[str]) -> list[str]:
    """At most so many, chosen by hash: the same in every order and corpus."""
    return sorted(texts, key=lambda text: content_id("context", text))[:_MOST]


def _scale(vector: Matrix) -> Matrix:
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector
