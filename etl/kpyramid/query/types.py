"""What an answer is."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Evidence:
    """Characters `start` to `end` of a document, and where that document came from."""

    document_id: str
    chunk_id: str
    start: int
    end: int
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with all it rests on.

    `text` is made by rules from the context, empty when nothing was found; `choices` are the
    single values it consists of. `layer` is `ontology`, `graph` or `text`; `trace` says which
    layers were tried and why each was or was not enough.
    """

    text: str
    choices: tuple[str, ...]
    context: tuple[str, ...]
    layer: str | None
    evidence: tuple[Evidence, ...]
    trace: tuple[str, ...]
    calls: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain values."""
        return asdict(self)
