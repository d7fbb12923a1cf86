"""Extractions: claims, mentions, facts and rejects of one text, with character offsets into it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

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


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that was found in one text."""

    claims: tuple[Claim, ...] = ()
    mentions: tuple[Mention, ...] = ()
    facts: tuple[Fact, ...] = ()
    dropped: tuple[Dropped, ...] = ()


class Titled(NamedTuple):
    """A text and the title of its document, "" without one."""

    text: str
    title: str = ""


ExtractFunction = Callable[[Sequence[Titled]], Sequence[Extraction]]


class Extractor(Protocol):
    """A pure function from texts with their titles to facts, for many texts at a time."""

    def extract_all(self, texts: Iterable[Titled]) -> Iterator[Extraction]: ...
