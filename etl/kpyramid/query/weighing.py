"""From what was counted to the probability that a value answers, by two logistic models."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from kpyramid.query.hits import Features, Hit

Kind = Literal["choice", "open"]


@dataclass(frozen=True, slots=True)
class Supported:
    """A candidate with the probability that it answers, and the places that speak for it."""

    candidate: int
    probability: float
    hits: tuple[Hit, ...]
    """Surest first."""


@dataclass(frozen=True, slots=True)
class _Weights:
    """Log-odds: of a place by its features, and of a value by its best place and its rivals'."""

    hit: Mapping[str, float]
    behind: float
    ahead: float
    best: float
    repeated: float
    bias: float


_MARGIN = 4.0
"""Log-odds ahead of the next value beyond which it is no surer; alone counts as that."""


@cache
def _load_weights() -> Mapping[str, _Weights]:
    """The weights of `reader.json`.

    Fitted by `benchmarks/reading_weights.py`: questions made from half of the train triples of
    Text2KGBench (Wikidata-TekGen), asked of their sentences and of the facts read from them.
    """
    data = json.loads(Path(__file__).with_name("reader.json").read_text("utf-8"))
    return {kind: _Weights(**weights) for kind, weights in data["weights"].items()}


def weigh(hits: Sequence[Hit], features: Sequence[Features], kind: Kind) -> list[Supported]:
    """The values that a context says, most probable first; ties by the order of candidates."""
    weights = _load_weights()[kind]
    places: dict[int, list[tuple[float, int]]] = {}
    for index, (hit, counted) in enumerate(zip(hits, features, strict=True)):
        odds = weights.hit["bias"] + sum(
            weights.hit.get(name, 0.0) * value for name, value in counted.items()
        )
        places.setdefault(hit.candidate, []).append((-odds, index))
    best = {candidate: -min(found)[0] for candidate, found in places.items()}
    weighed = [
        Supported(
            candidate,
            _squash(_add_up(candidate, best, len(found), weights)),
            tuple(hits[index] for _, index in sorted(found)),
        )
        for candidate, found in places.items()
    ]
    return sorted(weighed, key=lambda s: (-s.probability, s.candidate))


def _add_up(candidate: int, best: Mapping[int, float], places: int, weights: _Weights) -> float:
    own = best[candidate]
    rivals = [odds for other, odds in best.items() if other != candidate]
    margin = own - max(rivals) if rivals else _MARGIN
    return (
        weights.bias
        + weights.best * own
        + weights.behind * min(margin, 0.0)
        + weights.ahead * min(max(margin, 0.0), _MARGIN)
        + weights.repeated * math.log(places)
    )


def _squash(odds: float) -> float:
    return 1 / (1 + math.exp(-max(min(odds, 30.0), -30.0)))
