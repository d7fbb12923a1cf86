"""Extractions: claims, mentions, facts and rejects of one text, with character offsets into it.

And what a model is given of one: a chunk of a document, with what the rules found there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kpyramid.documents.blocks import Block
from kpyramid.documents.sentences import Dropped, Span

MAX_RELATION_WORDS = 8
"""Words of a relation, of rules and models alike; a longer one is a clause."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One participant of a proposition, after the first two with the words that lead to it.

    `role` is subject, object, receiver, time, place, manner, adverb, clause, purpose, circumstance
    or the preposition. The span is None where the words do not occur literally.
    """

    role: str
    text: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class Proposition:
    """An n-ary fact as the sentence words it: pronouns stay, the subject comes first.

    `confidence` is the probability that most of its words agree with what annotators wrote down.
    """

    predicate: str
    arguments: tuple[Argument, ...]
    span: Span
    negated: bool = False
    modality: str | None = None
    attribution: str | None = None
    confidence: float = 1.0


@dataclass(frozen=True, slots=True)
class Claim:
    """A short, self-contained statement and the text it rests on (`f_par`)."""

    text: str
    spans: tuple[Span, ...]
    predicate: str | None = None
    arguments: tuple[Argument, ...] = ()
    """The n-ary fact that it states, subject first; empty where a clause is no such fact."""


@dataclass(frozen=True, slots=True)
class Mention:
    """A noun entity named in a claim (`f_ent`); `claim` indexes `Extraction.claims`."""

    claim: int
    text: str
    type: str
    span: Span


@dataclass(frozen=True, slots=True)
class Fact:
    """One head, one relation, one tail (`f_rel`); `claim` indexes `Extraction.claims`.

    A span is None where the words do not occur literally; the claim's spans then support it.
    `verdict`: what a model that checked it says, see `kpyramid.extraction.cascade.review`.
    """

    claim: int
    head: str
    relation: str
    tail: str
    head_span: Span | None
    relation_span: Span | None
    tail_span: Span | None
    negated: bool = False
    modality: str | None = None
    attribution: str | None = None
    qualifiers: Mapping[str, str] = field(default_factory=dict)
    confidence: float = 1.0
    verdict: str | None = None


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that was found in one text."""

    claims: tuple[Claim, ...] = ()
    mentions: tuple[Mention, ...] = ()
    facts: tuple[Fact, ...] = ()
    dropped: tuple[Dropped, ...] = ()


class Titled(NamedTuple):
    """A text, the title of its document, "" without one, and its blocks, where they are known."""

    text: str
    title: str = ""
    blocks: tuple[Block, ...] = ()


ExtractFunction = Callable[[Iterable[Titled]], Iterable[tuple[Titled, Extraction]]]
"""Each distinct text with what is found in it, in no fixed order."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A text to read and what it is known by.

    `title`: its document's; it may name what the text only calls "it". `document`: the id that
    calls are booked on. `extraction`: the rules' for this text, offsets into it; its facts
    serve where a step is the rules', and its mentions and antecedents everywhere. `context`: what
    a window is shown of what stands before it in its document, by name.
    """

    text: str
    title: str | None = None
    document: str | None = None
    extraction: Extraction = field(default_factory=Extraction)
    context: tuple[tuple[str, str], ...] = ()


def cut_extraction(
    extractions: Iterable[tuple[int, Extraction]], start: int, end: int
) -> Extraction:
    """What was found between two characters of a document, offsets from the first.

    `found` are extractions with the place where their text begins. A claim belongs to where its
    clause begins, which is its last span; what a pronoun of it refers to may lie outside. A clause
    that goes on behind the end, as in a sentence that was cut, ends there.
    """
    parts = Extraction()
    for offset, extraction in extractions:
        parts = join_extractions(parts, _cut(extraction, start - offset, end - offset))
    return parts


def find_clause(claim: Claim) -> Span:
    """The stretch that states a claim; antecedents stand before the clause that refers to them."""
    return max(claim.spans, key=lambda span: (span.start, span.end))


def _cut(extraction: Extraction, start: int, end: int) -> Extraction:
    def shift(span: Span | None) -> Span | None:
        inside = span is not None and start <= span.start and span.end <= end
        return Span(span.start - start, span.end - start) if span and inside else None

    def clip(span: Span) -> Span | None:
        begins = start <= span.start < end
        return Span(span.start - start, min(span.end, end) - start) if begins else None

    indices = [index for index, claim in enumerate(extraction.claims) if clip(find_clause(claim))]
    dropped = (replace(d, span=span) for d in extraction.dropped if (span := clip(d.span)))
    return replace(_select(extraction, indices, shift, clip), dropped=tuple(dropped))


def part_extraction(
    extraction: Extraction, is_apart: Callable[[Span], bool]
) -> tuple[Extraction, Extraction]:
    """The claims that have a span apart, with what belongs to them, and the others."""
    lies = [any(map(is_apart, claim.spans)) for claim in extraction.claims]
    apart, rest = (
        replace(
            _select(extraction, [index for index, it in enumerate(lies) if it is wanted]),
            dropped=tuple(d for d in extraction.dropped if is_apart(d.span) is wanted),
        )
        for wanted in (True, False)
    )
    return apart, rest


def _select(
    extraction: Extraction,
    indices: Sequence[int],
    shift: Callable[[Span | None], Span | None] = lambda span: span,
    clip: Callable[[Span], Span | None] = lambda span: span,
) -> Extraction:
    """Some claims with what belongs to them, their spans as the functions place them."""
    number = {index: place for place, index in enumerate(indices)}
    return Extraction(
        claims=tuple(
            replace(
                extraction.claims[index],
                spans=tuple(span for s in extraction.claims[index].spans if (span := clip(s))),
                arguments=tuple(
                    replace(argument, span=shift(argument.span))
                    for argument in extraction.claims[index].arguments
                ),
            )
            for index in indices
        ),
        mentions=tuple(
            replace(mention, claim=number[mention.claim], span=span)
            for mention in extraction.mentions
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
            for fact in extraction.facts
            if fact.claim in number
        ),
    )


def join_extractions(first: Extraction, second: Extraction) -> Extraction:
    """All that two extractions of the same text hold."""
    more = len(first.claims)
    return Extraction(
        claims=(*first.claims, *second.claims),
        mentions=(*first.mentions, *(replace(m, claim=m.claim + more) for m in second.mentions)),
        facts=(*first.facts, *(replace(f, claim=f.claim + more) for f in second.facts)),
        dropped=(*first.dropped, *second.dropped),
    )
