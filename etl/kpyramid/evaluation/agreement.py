"""How far two judges agree beyond what chance and habit explain."""

from collections.abc import Sequence


def measure_agreement(one: Sequence[bool], other: Sequence[bool]) -> float:
    """The share of equal verdicts."""
    return sum(a == b for a, b in zip(one, other, strict=True)) / len(one)


def measure_kappa(one: Sequence[bool], other: Sequence[bool]) -> float:
    """Cohen's kappa: agreement beyond chance over the most there can be; 0 when nobody varies."""
    yes, other_yes = sum(one) / len(one), sum(other) / len(other)
    chance = yes * other_yes + (1 - yes) * (1 - other_yes)
    if chance == 1.0:
        return 0.0
    return (measure_agreement(one, other) - chance) / (1 - chance)


def measure_majority(verdicts: Sequence[bool]) -> float:
    """The agreement of a judge who always gives the commoner verdict."""
    yes = sum(verdicts) / len(verdicts)
    return max(yes, 1 - yes)
