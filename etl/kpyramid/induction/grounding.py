"""What a model noted, held against the text: no value stays that the text does not support.

What is given up is counted with its reason: `not_a_value` (a field is empty), `unknown_property`
(outside of those that were asked for), `no_evidence` (the quotation does not occur, or says
nothing), `pronoun`, `unsupported` (subject or value do not stand there), `self_reference`,
`repeated`, `too_many`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kpyramid.extraction.cascade.evidence import Folded, fold, locate_quotation
from kpyramid.extraction.cascade.grounding import CONFIDENCE, RESOLVED_CONFIDENCE, count_allowed
from kpyramid.extraction.cascade.support import is_pronoun, says_something
from kpyramid.extraction.text.screening import Dropped
from kpyramid.extraction.text.sentences import Span, split_sentences
from kpyramid.induction.prompt import Noted
from kpyramid.induction.types import Value, Words
from kpyramid.ontology.schema import OntologyProperty

_WORD = re.compile(r"\w+")
_REFERRING = frozenset({"the", "this", "these", "whose", "who", "which", "where"})
"""Words besides pronouns by which a sentence speaks of what another one names."""


@dataclass(frozen=True, slots=True)
class _Text:
    text: str
    folded: Folded
    sentences: tuple[Span, ...]


@dataclass(slots=True)
class Grounding:
    """The values that one text supports, reply by reply; `model` is the name that they bear."""

    text: str
    model: str
    values: dict[tuple[object, ...], Value]
    dropped: list[Dropped]
    _ready: _Text

    def __init__(self, text: str, model: str) -> None:
        self.text = text
        self.model = model
        self.values = {}
        self.dropped = []
        self._ready = _Text(text, fold(text), tuple(split_sentences(text)))

    def add(self, rows: Iterable[Noted], properties: Mapping[str, OntologyProperty]) -> None:
        """Takes what a reply holds; `properties` are those that it was asked for, by name.

        The length of a text bounds what it, or who wrote it, can add.
        """
        room = count_allowed(self.text)
        for row in rows:
            made: Value | str = _ground(row, properties, self._ready, self.model)
            if isinstance(made, Value):
                key = (made.property_iri, made.subject.text, made.object.text, made.evidence.start)
                if key not in self.values and len(self.values) < room:
                    self.values[key] = made
                    continue
                made = "repeated" if key in self.values else "too_many"
            shown = " | ".join(" ".join(w.split()) for w in (row.subject, row.property, row.value))
            self.dropped.append(Dropped(made, shown, Span(0, len(self.text))))


def _ground(
    row: Noted, properties: Mapping[str, OntologyProperty], text: _Text, model: str
) -> Value | str:
    """The value, or the reason why the row is none."""
    if not (row.subject.strip() and row.property.strip() and row.value.strip()):
        return "not_a_value"
    prop = properties.get(row.property)
    if prop is None:
        return "unknown_property"
    quoted = locate_quotation(text.text, text.folded, row.evidence)
    if not says_something(" ".join(text.text[s.start : s.end] for s in quoted)):
        return "no_evidence"
    if is_pronoun(row.subject.strip()) or is_pronoun(row.value.strip()):
        return "pronoun"
    sentences = [s for s in text.sentences if _overlaps(s, quoted)]
    value = _locate(text.text, row.value, sentences)
    subject = _locate(text.text, row.subject, sentences)
    confidence = CONFIDENCE
    if subject is None and _refers(text.text, sentences):
        before = [s for s in text.sentences if s.end <= sentences[0].start]
        subject = _locate(text.text, row.subject, before[::-1])
        confidence = RESOLVED_CONFIDENCE
    if subject is None or value is None:
        return "unsupported"
    words, ends = _take(text.text, subject), _take(text.text, value)
    if words.text.casefold() == ends.text.casefold():
        return "self_reference"
    cover = [s for s in text.sentences if _overlaps(s, [subject])] + sentences
    evidence = _take(text.text, Span(min(s.start for s in cover), max(s.end for s in cover)))
    return Value(prop.iri, words, ends, evidence, confidence, model)


def _locate(text: str, name: str, within: Sequence[Span]) -> Span | None:
    """Where a name stands first, whatever its case, white space, quotation marks and dashes."""
    for span in within:
        part = text[span.start : span.end]
        found = locate_quotation(part, fold(part), name)
        if len(found) == 1:
            return Span(span.start + found[0].start, span.start + found[0].end)
    return None


def _refers(text: str, sentences: Sequence[Span]) -> bool:
    """Whether sentences speak of something that they do not name."""
    return any(
        is_pronoun(word) or word.casefold() in _REFERRING
        for span in sentences
        for word in _WORD.findall(text[span.start : span.end])
    )


def _overlaps(one: Span, others: Sequence[Span]) -> bool:
    return any(one.start < other.end and other.start < one.end for other in others)


def _take(text: str, span: Span) -> Words:
    return Words(text[span.start : span.end], span.start, span.end)
