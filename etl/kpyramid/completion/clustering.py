"""Units of the priority region that say the same, by k-medoids."""

from collections.abc import Iterator

import numpy as np

from kpyramid.completion.columns import Places
from kpyramid.completion.layers import embed_texts
from kpyramid.completion.units import Units, says_something, word_type
from kpyramid.embeddings.port import Embedder
from kpyramid.numerics.medoids import find_clusters
from kpyramid.ontology.schema import Schema
from kpyramid.settings import CompleteSettings

_MEMBERS = 4
"""Units that a medoid has at least on average."""


def cluster_units(
    units: Units, schema: Schema, *, settings: CompleteSettings, embedder: Embedder
) -> Iterator[Places]:
    """The units of each cluster, its medoid first."""
    usable = [
        at
        for at in np.flatnonzero(units.region & (units.new > 0)).tolist()
        if says_something(units.wordings[at])
    ]
    texts = [f"{word_type(units.heads[at], schema)} {units.wordings[at]}".strip() for at in usable]
    vectors = embed_texts(embedder, texts)
    places = np.array(usable, dtype=np.int64)
    found = find_clusters(
        vectors,
        units.new[places].astype(np.float64),
        most=min(len(usable), settings.max_points) // _MEMBERS,
        sample=settings.max_points,
        seed=settings.seed,
    )
    for number, medoid in enumerate(found.medoids.tolist()):
        members = np.flatnonzero(found.labels == number)
        near = members[vectors[members] @ vectors[medoid] >= settings.member_similarity]
        yield np.concatenate([places[[medoid]], places[near[near != medoid]]])
