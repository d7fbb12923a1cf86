"""Where a value is stated: its sentence, the words in it, and how sure several places make it."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kpyramid.extraction.text.sentences import Span, split_sentences


@dataclass(frozen=True, slots=True)
class Place:
    """A place that states a value; every offset is one into the document's text.

    `start`, `end`: the whole sentence or sentences, whose words are `text`. `subject`, `object`:
    the words that name the two ends, None where they stand elsewhere. `source`: the key of the
    triple or value that was read there.
    """

    document_id: str
    chunk_id: str
    start: int
    end: int
    text: str
    subject: Span | None
    object: Span | None
    confidence: float
    producer: str
    source: str


class Sentences:
    """The sentences of documents, cut once each; `texts` is their text by id."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self._cut: dict[str, list[Span]] = {}

    def cover(self, document_id: str, spans: Sequence[Span]) -> Span:
        """From the beginning of the first sentence touched to the end of the last."""
        start, end = min(s.start for s in spans), max(s.end for s in spans)
        if document_id not in self._cut:
            self._cut[document_id] = list(split_sentences(self.texts[document_id]))
        cut = self._cut[document_id]
        first = cut[max(0, bisect_right(cut, start, key=lambda s: s.start) - 1)]
        last = cut[max(0, bisect_right(cut, end - 1, key=lambda s: s.start) - 1)]
        return Span(min(first.start, start), max(last.end, end))


def order_places(places: Iterable[Place]) -> tuple[Place, ...]:
    """Each place once, the surest first."""
    order = sorted(places, key=lambda p: (-p.confidence, p.document_id, p.start, p.end, p.source))
    return tuple({(p.document_id, p.start, p.end): p for p in reversed(order)}.values())[::-1]


def combine_confidence(places: Iterable[Place]) -> float:
    """The chance that at least one of the sentences is read right, taken as independent.

    The same sentence counts once, wherever it was copied to and however often it was read.
    """
    best: dict[str, float] = {}
    for place in places:
        words = " ".join(place.text.split())
        best[words] = max(best.get(words, 0.0), place.confidence)
    doubt = 1.0
    for confidence in sorted(best.values()):
        doubt *= 1.0 - confidence
    return 1.0 - doubt
