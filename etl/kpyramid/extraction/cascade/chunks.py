"""What the cascade is given of one chunk."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kpyramid.documents.sentences import Span
from kpyramid.extraction.types import Claim, Extraction


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


def cut_extraction(found: Iterable[tuple[int, Extraction]], start: int, end: int) -> Extraction:
    """What was found between two characters of a document, offsets from the first.

    `found` are extractions with the place where their text begins. A claim belongs to where its
    clause begins, which is its last span; what a pronoun of it refers to may lie outside. A clause
    that goes on behind the end, as in a sentence that was cut, ends there.
    """
    parts = Extraction()
    for offset, extraction in found:
        parts = _join(parts, _cut(extraction, start - offset, end - offset))
    return parts


def find_clause(claim: Claim) -> Span:
    """The stretch that states a claim; antecedents stand before the clause that refers to them."""
    return max(claim.spans, key=lambda span: (span.start, span.end))


def _cut(found: Extraction, start: int, end: int) -> Extraction:
    def shift(span: Span | None) -> Span | None:
        inside = span is not None and start <= span.start and span.end <= end
        return Span(span.start - start, span.end - start) if span and inside else None

    def clip(span: Span) -> Span | None:
        begins = start <= span.start < end
        return Span(span.start - start, min(span.end, end) - start) if begins else None

    kept = [at for at, claim in enumerate(found.claims) if clip(find_clause(claim))]
    number = {at: place for place, at in enumerate(kept)}
    return Extraction(
        claims=tuple(
            replace(
                found.claims[at],
                spans=tuple(span for s in found.claims[at].spans if (span := clip(s))),
                arguments=tuple(
                    replace(argument, span=shift(argument.span))
                    for argument in found.claims[at].arguments
                ),
            )
            for at in kept
        ),
        mentions=tuple(
            replace(mention, claim=number[mention.claim], span=span)
            for mention in found.mentions
            if mention.claim in number and (span := shift(mention.span))
        ),
        facts=tuple(
            replace(
                fact,
                claim=number[fact.claim],
                head_span=shift(fact.head_span),
                relation_span=shift(fact.relation_span),
                tail_span=shift(fact.tail_span),
            )
            for fact in found.facts
            if fact.claim in number
        ),
        dropped=tuple(
            replace(dropped, span=span) for dropped in found.dropped if (span := clip(dropped.span))
        ),
    )


def _join(one: Extraction, other: Extraction) -> Extraction:
    more = len(one.claims)
    return Extraction(
        claims=(*one.claims, *other.claims),
        mentions=(*one.mentions, *(replace(m, claim=m.claim + more) for m in other.mentions)),
        facts=(*one.facts, *(replace(f, claim=f.claim + more) for f in other.facts)),
        dropped=(*one.dropped, *other.dropped),
    )
