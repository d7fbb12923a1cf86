"""What condensation reads and what it makes."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """One fact in words; `key` names it, `tail` is an entity's name or a literal."""

    key: str
    head: str
    relation: str
    tail: str


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Facts of one pair of ends around one anchor that no rule merged.

    `anchor`: the property's label. `anchor_class`: the label of its subjects' class, None when it
    is not known. A statement that reads the other way round has head and tail swapped.
    """

    anchor: str
    anchor_class: str | None
    statements: tuple[Statement, ...]
