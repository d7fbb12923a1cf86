"""What of a snapshot a reader may see: by access label, document, metadata and class."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Scope:
    """What a reader may see and wants to see.

    `access`: the labels that the reader has. Documents without labels are everybody's, of those
    with labels one that the reader has is enough; None stands for whoever may see everything.
    `documents`: ids or sources; a source stands for all records of its file. `metadata`: pairs of
    field and value, all of which a document must have. `classes`: IRIs or labels; facts are then
    those about an individual of one of them, passages those that state such a fact. Empty: all.
    """

    access: frozenset[str] | None = frozenset()
    documents: frozenset[str] = frozenset()
    metadata: frozenset[tuple[str, str]] = frozenset()
    classes: frozenset[str] = frozenset()


PUBLIC = Scope()
"""What everybody may see."""
EVERYTHING = Scope(access=None)
