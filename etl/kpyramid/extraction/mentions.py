"""Noun entities named in the claims: named entities first, then noun chunks (`f_ent`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpyramid.extraction.phrases import Phrase, build_phrase, find_phrase
from kpyramid.extraction.types import Claim, Mention, Span

if TYPE_CHECKING:
    from spacy.tokens import Doc


def list_phrases(doc: Doc) -> list[Phrase]:
    """Return the entities of the text, split at commas unless a comma belongs to a date."""
    found: dict[Span, Phrase] = {}
    for entity in doc.ents:
        first = entity.start
        literal = entity.label_ in {"DATE", "MONEY", "QUANTITY", "CARDINAL", "TIME"}
        for i in range(entity.start, entity.end + 1):
            if i == entity.end or (doc[i].text == "," and not literal):
                phrase = build_phrase(doc, first, i - 1, i - 1) if i > first else None
                if phrase is not None:
                    found.setdefault(phrase.span, phrase)
                first = i + 1
    covered = {i for p in found.values() for i in range(p.first, p.last + 1)}
    for chunk in doc.noun_chunks:
        if chunk.root.pos_ not in {"NOUN", "PROPN"} or chunk.root.i in covered:
            continue
        phrase = find_phrase(chunk.root)
        if phrase is not None and "," not in phrase.text:
            found.setdefault(phrase.span, phrase)
    return sorted(found.values(), key=lambda p: (p.span.start, p.span.end))


def assign_mentions(
    phrases: list[Phrase], claims: tuple[Claim, ...], arguments: dict[Span, Phrase]
) -> tuple[Mention, ...]:
    """Return one mention per entity and claim whose spans contain it, arguments included."""
    pool = {p.span: p for p in phrases}
    for span, phrase in arguments.items():
        if "," not in phrase.text:
            pool.setdefault(span, phrase)
    ordered = sorted(pool.values(), key=lambda p: (p.span.start, p.span.end))
    mentions = [
        Mention(at, phrase.text, "NOUN" if phrase.label == "MISC" else phrase.label, phrase.span)
        for at, claim in enumerate(claims)
        for phrase in ordered
        if any(s.start <= phrase.span.start and phrase.span.end <= s.end for s in claim.spans)
    ]
    return tuple(mentions)
