"""Combined chances of independent witnesses."""

from collections.abc import Hashable, Iterable
from math import prod


def combine_chances(witnessed: Iterable[tuple[Hashable, float]]) -> float:
    """The chance that at least one witness is right; a repeated witness counts once, at its best.

    `witnessed`: witnesses with the chance that each is right.
    """
    best: dict[Hashable, float] = {}
    for witness, chance in witnessed:
        best[witness] = max(best.get(witness, 0.0), chance)
    return 1.0 - prod(1.0 - chance for chance in sorted(best.values()))
