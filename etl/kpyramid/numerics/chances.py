"""Chances of independent witnesses taken together."""

from collections.abc import Hashable, Iterable
from math import prod


def combine_chances(told: Iterable[tuple[Hashable, float]]) -> float:
    """The chance that at least one witness is right; what one tells again counts once, at best.

    `told`: witnesses with the chance that each is right.
    """
    best: dict[Hashable, float] = {}
    for witness, chance in told:
        best[witness] = max(best.get(witness, 0.0), chance)
    return 1.0 - prod(1.0 - chance for chance in sorted(best.values()))
