"""Where a context says the values that can answer a question: candidates', or its own."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kpyramid.extraction.normal import normalise_name
from kpyramid.query.pyramid.linking import join_words
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.reader.asked import STOP, Asked, fits
from kpyramid.query.reader.hits import Hit, is_denied, name_side
from kpyramid.query.reader.matching import Name, find_name, read_names, split_words
from kpyramid.query.reader.pieces import Piece, Side
from kpyramid.query.reader.values import Date, find_values

_LONGEST_SPAN = 8
"""Words of a noun phrase that can still be an answer; longer ones are clauses."""
_UNIT = re.compile(
    r"\s?%|[ -](?:(?:kilo|centi|milli)?met(?:er|re)s?|miles?|feet|foot|inch(?:es)?|yards?|acres?"
    r"|hectares?|(?:kilo)?grams?|tons?|tonnes?|pounds?|seconds?|minutes?|hours?|days?|weeks?"
    r"|months?|years?|percent|per cent|dollars?|euros?|km|cm|mm|m|kg|lbs?|ft|mph|kmh?)\b[²³]?"
)
"""What belongs to the number before it."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An option: its name in all forms, the entities that it can be, and their type."""

    name: Name
    entities: frozenset[str]
    kind: str


def read_candidates(texts: Sequence[str], snapshot: Snapshot) -> list[Candidate]:
    """Candidates with the names that the pyramid knows them by."""
    entities = [_link_whole(text, snapshot) for text in texts]
    forms = snapshot.surface_forms([e for ids in entities for e in ids])
    aliases = [[form for entity in ids for form in forms.get(entity, ())] for ids in entities]
    return [
        Candidate(name, frozenset(ids), _find_kind(name, ids, snapshot))
        for name, ids in zip(read_names(texts, aliases), entities, strict=True)
    ]


def find_candidates(candidates: Sequence[Candidate], pieces: Sequence[Piece]) -> list[Hit]:
    """Every place where a piece says a candidate and does not deny it."""
    return [
        hit
        for piece in pieces
        for index, candidate in enumerate(candidates)
        for hit in (
            _find_sides(index, candidate, piece)
            if piece.sides
            else _find_spans(index, candidate, piece)
        )
    ]


def gather_values(asked: Asked, pieces: Sequence[Piece]) -> tuple[list[str], list[Hit]]:
    """The context's own values that can answer, with every place of each; equal names are one."""
    texts: list[str] = []
    index: dict[object, int] = {}
    hits: list[Hit] = []

    def add(key: object, text: str) -> int:
        if key not in index:
            index[key] = len(texts)
            texts.append(text)
        return index[key]

    for piece in pieces:
        if piece.sides:
            for side in (0, 1):
                own = piece.sides[side]
                if own.name and fits(own.kind, asked) >= 0 and name_side(asked, own) < 1:
                    start, end = _locate_side(piece, side)
                    key = add(_find_key(own.name), own.name)
                    hits.append(Hit(key, piece, start, end, 1.0, own.kind, side))
            continue
        for start, end, kind in _list_spans(piece):
            text = piece.text[start:end]
            words = split_words(text)
            if not words or len(words) > _LONGEST_SPAN or fits(kind, asked) < 0:
                continue
            if all(word.stem in asked.said or word.plain in STOP for word in words):
                continue
            first = next(i for i, w in enumerate(piece.words) if w.start >= words[0].start + start)
            if not is_denied(piece, first):
                hits.append(Hit(add(_find_key(text), text), piece, start, end, 1.0, kind))
    return texts, hits


def _list_spans(piece: Piece) -> list[tuple[int, int, str]]:
    """Names, noun phrases, dates and numbers of a sentence, of those that overlap the best one.

    A typed name is taken before a noun phrase that holds it ("editor Jan Roth"), else the longer.
    """
    spans = {(m.start, m.end): m.kind for m in piece.mentions}
    for value in piece.values:
        kind = "DATE" if isinstance(value.value, Date) else "CARDINAL"
        measured = _UNIT.match(piece.text, value.end) if kind == "CARDINAL" else None
        span = (value.start, measured.end() if measured else value.end)
        if spans.get(span, "NOUN") == "NOUN":
            spans[span] = kind
    order = sorted(spans, key=lambda s: (spans[s] in {"NOUN", "CARDINAL"}, s[0] - s[1], s))
    kept: list[tuple[int, int]] = []
    for start, end in order:
        if not any(a < end and start < b for a, b in kept):
            kept.append((start, end))
    return [(start, end, spans[start, end]) for start, end in sorted(kept)]


def _find_key(text: str) -> str:
    return normalise_name(text)


def _find_sides(index: int, candidate: Candidate, piece: Piece) -> list[Hit]:
    assert piece.sides
    hits = []
    for side in (0, 1):
        own = piece.sides[side]
        sure = _match_side(candidate, own)
        if sure:
            start, end = _locate_side(piece, side)
            kind = own.kind if own.kind != "NOUN" else candidate.kind
            hits.append(Hit(index, piece, start, end, sure, kind, side))
    return hits


def _match_side(candidate: Candidate, side: Side) -> float:
    """How surely a side is the candidate; a longer name that only contains it is less sure."""
    if side.entity in candidate.entities:
        return 1.0
    words = split_words(side.name)
    places = find_name(candidate.name, words, find_values(side.name))
    if not places:
        return 0.0
    best = places[0]
    return best.strength * (0.4 + 0.6 * (best.last - best.first) / max(len(words), 1))


def _locate_side(piece: Piece, side: int) -> tuple[int, int]:
    assert piece.sides
    name = piece.sides[side].name
    start = piece.text.find(name) if side == 0 else piece.text.rfind(name)
    return (start, start + len(name)) if start >= 0 else (0, len(piece.text))


def _find_spans(index: int, candidate: Candidate, piece: Piece) -> list[Hit]:
    return [
        Hit(
            index,
            piece,
            piece.words[place.first].start,
            piece.words[place.last - 1].end,
            place.strength,
            candidate.kind,
        )
        for place in find_name(candidate.name, piece.words, piece.values)
        if not is_denied(piece, place.first)
    ]


def _link_whole(text: str, snapshot: Snapshot) -> tuple[str, ...]:
    """The entities that a text as a whole names."""
    linked = snapshot.link(text)
    whole = len(linked.names) == 1 and join_words(linked.names[0]) == join_words(text)
    return linked.entities if whole else ()


def _find_kind(name: Name, entities: Sequence[str], snapshot: Snapshot) -> str:
    if name.value is not None:
        return "DATE" if isinstance(name.value, Date) else "CARDINAL"
    kinds = {snapshot.types[entity] for entity in entities}
    return kinds.pop() if len(kinds) == 1 else ""
