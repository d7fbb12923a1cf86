"""What the cascade is given of one chunk."""

from dataclasses import dataclass, field

from kpyramid.extraction.types import Extraction


@dataclass(frozen=True, slots=True)
class Chunk:
    """A text to read and what it is known by.

    `title`: its document's; it may name what the text only calls "it". `document`: the id that
    calls are booked on. `found`: what the rules found in this text, offsets into it; its facts
    serve where a step is the rules', and its mentions and antecedents everywhere.
    """

    text: str
    title: str | None = None
    document: str | None = None
    found: Extraction = field(default_factory=Extraction)
