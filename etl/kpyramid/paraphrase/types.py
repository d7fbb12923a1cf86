"""The verdict on two relation wordings."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Likeness: TypeAlias = Literal["equivalent", "narrower", "broader", "contrary", "different"]
"""What the first wording says of the second: the same; a special case of it (`is CEO of`, `works
for`); a more general one; what cannot hold with it of the same ends (`was born in`, `was not born
in`); something else."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How two wordings relate.

    `turned`: the second reads from tail to head (`founded`, `was founded by`).
    `reason`: what decided, for a person to read.
    `symmetric`: what both say holds in either direction (`is married to`).
    """

    likeness: Likeness
    turned: bool
    reason: str
    symmetric: bool = False
