"""What induction finds in one text; every offset is a character offset into that text."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """A stretch of the text as it stands there: characters `start` to `end`, end exclusive."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Value:
    """One value of one property of one individual, as a text states it.

    Nothing is checked against domain or range yet, and no entity is linked. `evidence` covers at
    least both ends: the sentence or passage that a reviewer is shown. `confidence`: 0 to 1.
    """

    property_iri: str
    subject: Words
    object: Words
    evidence: Words
    confidence: float
    producer: str
