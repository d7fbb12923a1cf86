"""From what was counted to the probability that a value answers, by two logistic models."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from kpyramid.query.reader.asked import Number
from kpyramid.query.reader.hits import Features, Hit

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
    several: float
    bias: float


HOLDS = 0.5
"""Probability from which a candidate is chosen beside others: it holds more likely than not."""
HOLDS_OF_SEVERAL = 0.3
"""The same where the question says that there are several: its F1 gains by one right more than it
loses by one wrong."""
LEAST = 0.15
"""Probability from which the best one is chosen alone; a guess among eight is right by .125."""
_MARGIN = 4.0
"""Log-odds ahead of the next value beyond which it is no surer; alone counts as that."""


@cache
def load_weights() -> Mapping[str, _Weights]:
    """The weights of `reader.json`.

    Fitted by `benchmarks/reading.py`, which also says how well they hold.
    """
    data = json.loads(Path(__file__).with_name("reader.json").read_text("utf-8"))
    return {kind: _Weights(**weights) for kind, weights in data["weights"].items()}


def weigh(
    hits: Sequence[Hit], features: Sequence[Features], kind: Kind, number: Number = "any"
) -> list[Supported]:
    """The values that a context says, most probable first; ties by the order of candidates."""
    weights = load_weights()[kind]
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
            _squash(_add_up(compare(candidate, best, len(found), number), weights)),
            tuple(hits[index] for _, index in sorted(found)),
        )
        for candidate, found in places.items()
    ]
    return sorted(weighed, key=lambda s: (-s.probability, s.candidate))


def compare(
    candidate: int, best: Mapping[int, float], places: int, number: Number = "any"
) -> tuple[float, float, float, float, float]:
    """A value's log-odds at its best place, how far behind and ahead of its rivals, its places.

    `best` are the log-odds of all values, `places` the number of this one's, as a logarithm. Where
    several are asked for they are no rivals, and the last figure is 1.
    """
    own = best[candidate]
    if number == "several":
        return own, 0.0, 0.0, math.log(places), 1.0
    rivals = [odds for other, odds in best.items() if other != candidate]
    margin = own - max(rivals) if rivals else _MARGIN
    return own, min(margin, 0.0), min(max(margin, 0.0), _MARGIN), math.log(places), 0.0


def pick(weighed: Sequence[Supported], number: Number) -> list[Supported]:
    """Those of a question's candidates that hold, at least the best when it is no guess.

    A question for one thing has one answer; one for several has two where two have support.
    """
    known = [found for found in weighed if found.probability >= LEAST]
    if number == "one":
        return known[:1]
    holds = HOLDS_OF_SEVERAL if number == "several" else HOLDS
    chosen = [found for found in known if found.probability >= holds]
    return chosen if len(chosen) > 1 else known[: 2 if number == "several" else 1]


def _add_up(compared: tuple[float, float, float, float, float], weights: _Weights) -> float:
    own, behind, ahead, places, several = compared
    return (
        weights.bias
        + weights.best * own
        + weights.behind * behind
        + weights.ahead * ahead
        + weights.repeated * places
        + weights.several * several
    )


def _squash(odds: float) -> float:
    return 1 / (1 + math.exp(-max(min(odds, 30.0), -30.0)))
