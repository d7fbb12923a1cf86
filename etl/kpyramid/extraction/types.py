"""Extractions: claims, mentions, facts and rejects of one text, with character offsets into it.

Also the input of a model: a chunk of a document with the extraction of the rules.
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
    """One participant of a proposition; after the first two the text includes its preposition.

    `role` is subject, object, receiver, time, place, manner, adverb, clause, purpose, circumstance
    or the preposition. The span is None where the words do not occur literally.
    """

    role: str
    text: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class Proposition:
    """An n-ary fact as the sentence words it: pronouns stay, the subject comes first.

    `confidence` is the probability that most of its words agree with an annotator's fact.
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
    """A short, self-contained statement and the spans that support it (`f_par`)."""

    text: str
    spans: tuple[Span, ...]
    predicate: str | None = None
    arguments: tuple[Argument, ...] = ()
    """The arguments of its n-ary fact, subject first; empty where the clause states none."""


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
    `verdict`: of the model that checked it, see `kpyramid.extraction.cascade.review`.
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
    """All that was extracted from one text."""

    claims: tuple[Claim, ...] = ()
    mentions: tuple[Mention, ...] = ()
    facts: tuple[Fact, ...] = ()
    dropped: tuple[Dropped, ...] = ()


class Titled(NamedTuple):
    """A text, the title of its document ("" without one), and its blocks where they are known."""

    text: str
    title: str = ""
    blocks: tuple[Block, ...] = ()


ExtractFunction = Callable[[Iterable[Titled]], Iterable[tuple[Titled, Extraction]]]
"""Yields each distinct text with its extraction, in no fixed order."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A text to read with its context.

    `title`: its document's; it may name the referent of "it" in the text. `document`: the id that
    calls are booked on. `extraction`: the rules' for this text, offsets into it; its facts
    are used in steps of the rules, its mentions and antecedents in all steps. `context`: named
    parts of the document before a window, which the model is shown.
    """

    text: str
    title: str | None = None
    document: str | None = None
    extraction: Extraction = field(default_factory=Extraction)
    context: tuple[tuple[str, str], ...] = ()


def cut_extraction(pairs: Iterable[tuple[int, Extraction]], start: int, end: int) -> Extraction:
    """The extraction of the characters `start` to `end` of a document, offsets from `start`.

    `extractions`: each with the offset of its text. A claim belongs to the place where its clause
    begins, which is its last span; the antecedent of its pronoun may lie outside. A clause that
    continues after the end, as in a sentence that was cut, ends there.
    """
    parts = Extraction()
    for offset, extraction in pairs:
        parts = join_extractions(parts, _cut(extraction, start - offset, end - offset))
    return parts


def find_clause(claim: Claim) -> Span:
    """The span of the clause that states a claim: its last, because antecedents precede it."""
    return max(claim.spans)


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
    """Splits an extraction: the claims with a span that `is_apart`, and the other claims."""
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
    """The claims at `indices` with their mentions and facts; the functions move their spans."""
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
    """The union of two extractions of the same text."""
    more = len(first.claims)
    return Extraction(
        claims=(*first.claims, *second.claims),
        mentions=(*first.mentions, *(replace(m, claim=m.claim + more) for m in second.mentions)),
        facts=(*first.facts, *(replace(f, claim=f.claim + more) for f in second.facts)),
        dropped=(*first.dropped, *second.dropped),
    )
