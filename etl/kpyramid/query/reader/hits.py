"""Where a context says a value that may answer, and what speaks for that place."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kpyramid.query.reader.asked import STOP, Asked, fits
from kpyramid.query.reader.matching import Place, Word, find_name, split_words
from kpyramid.query.reader.pieces import Piece, Side

_DENYING = frozenset("not never neither nor without cannot unlike".split())
_DENIAL_REACH = 7
"""Words from a denial to what it denies; a comma, a semicolon or "but" ends it."""
_PRONOUNS = frozenset("he she it they his her its their".split())
_AKIN = 4
"""Letters that words of one root share at least: direct-or and direct-ed."""

Features = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Hit:
    """A candidate's value where a piece says it: characters `start` to `end` of the piece.

    `side` is 0 or 1 where the piece is a fact, and the value its head or tail.
    """

    candidate: int
    piece: Piece
    start: int
    end: int
    strength: float
    kind: str
    side: int | None = None


def is_denied(piece: Piece, first: int) -> bool:
    """Whether the words before word `first` of a sentence deny what is said of it."""
    for at in range(first - 1, max(first - 1 - _DENIAL_REACH, -1), -1):
        word = piece.words[at]
        after = piece.text[word.end : piece.words[at + 1].start]
        if re.search(r"[;:.,]", after) or word.plain == "but":
            return False
        clitic = word.plain == "t" and at and piece.words[at - 1].plain.endswith("n")
        if word.plain in _DENYING or clitic:
            return piece.words[at + 1].plain != "only"
    return False


def is_akin(word: Word, other: Word) -> bool:
    """Whether two words are of one root: the same stem, or its first letters alike."""
    if word.stem == other.stem:
        return True
    if word.plain[:_AKIN] != other.plain[:_AKIN]:
        return False
    shared = 0
    for a, b in zip(word.plain, other.plain, strict=False):
        if a != b:
            break
        shared += 1
    return shared >= max(_AKIN, 0.6 * max(len(word.stem), len(other.stem)))


def measure_hits(asked: Asked, hits: Sequence[Hit], pieces: Sequence[Piece] = ()) -> list[Features]:
    """What speaks for each hit, all of it by words.

    With `pieces`, all of the context, the rare words of a question that names nothing are its
    names.
    """
    shares = {} if asked.names else _share_words(asked, pieces)
    return [_count(asked, hit, shares) for hit in hits]


def _share_words(asked: Asked, pieces: Sequence[Piece]) -> dict[Piece, float]:
    """The share of a question's words that each piece says, a word the more the fewer say it.

    All of ten passages about parties say "party", and the one that says "secularism" is meant. What
    only the passage around a sentence says is half said.
    """
    words = list({word.stem: word for word in asked.content}.values())
    found = {piece: [_say(piece, word) for word in words] for piece in pieces}
    counts = [sum(says) for says in zip(*found.values(), strict=True)]
    rare = [math.log((len(found) + 1) / (count + 0.5)) for count in counts]
    total = sum(rare)
    return {
        piece: sum(r * one for r, one in zip(rare, says, strict=True)) / total if total else 0.0
        for piece, says in found.items()
    }


def _say(piece: Piece, word: Word) -> float:
    if any(is_akin(word, other) for other in piece.words):
        return 1.0
    return 0.5 * (word.stem in piece.around)


def _count(asked: Asked, hit: Hit, shares: Mapping[Piece, float]) -> dict[str, float]:
    counted = {
        "strength": hit.strength,
        "kind": fits(hit.kind, asked),
        "rank": 1 / (1 + hit.piece.rank),
        "nameless": float(not asked.names),
        "large": float(
            any(word.large for word in split_words(hit.piece.text[hit.start : hit.end]))
        ),
    }
    if hit.side is None:
        counted |= _count_sentence(asked, hit)
        named = counted["sentence_named"] or counted["around_named"]
    else:
        counted |= _count_fact(asked, hit.piece, hit.side)
        named = counted["fact_named"]
    if shares:
        named = shares[hit.piece]
        counted["sentence_named" if hit.side is None else "fact_named"] = named
    return counted | {"astray": float(bool(asked.names or shares) and not named)}


def _count_fact(asked: Asked, piece: Piece, side: int) -> dict[str, float]:
    assert piece.sides
    relation = split_words(piece.relation)
    found = sum(any(is_akin(word, said) for said in relation) for word in asked.content)
    return {
        "fact": 1.0,
        "fact_named": name_side(asked, piece.sides[1 - side]),
        "fact_echo": name_side(asked, piece.sides[side]),
        "fact_words": found / max(len(asked.content), 1),
        "fact_tail": float(side),
    }


def name_side(asked: Asked, side: Side) -> float:
    """How far the question names a side of a fact, 0 to 1; an unnamed one is what a query asked."""
    if not side.name or side.entity in asked.entities:
        return 1.0
    stems = {word.stem for word in split_words(side.name)}
    shared = len(asked.named & stems)
    return 2 * shared / (len(stems) + len(asked.named)) if shared else 0.0


def _count_sentence(asked: Asked, hit: Hit) -> dict[str, float]:
    words = hit.piece.words
    own = [i for i, w in enumerate(words) if hit.start <= w.start < hit.end]
    at = own[0] if own else 0
    named = [_find_surest(asked, index, hit.piece) for index in range(len(asked.names))]
    places = [place for place in named if place]
    said = [
        i
        for i, word in enumerate(words)
        if i not in own and any(is_akin(word, content) for content in asked.content)
    ]
    found = sum(any(is_akin(words[i], content) for i in said) for content in asked.content)
    about = len(asked.named & hit.piece.around) / max(len(asked.named), 1)
    nearest = min(said, key=lambda i: (abs(i - at), i)) if said else None
    return {
        "sentence": 1.0,
        "sentence_named": sum(place.strength for place in places) / max(len(named), 1),
        "sentence_near_name": max((1 / (1 + abs(p.first - at) / 5) for p in places), default=0.0),
        "around_named": about,
        "sentence_pronoun": about * float(bool(words) and words[0].plain in _PRONOUNS),
        "sentence_words": found / max(len(asked.content), 1),
        "sentence_near_word": max((1 / (1 + abs(i - at) / 4) for i in said), default=0.0),
        "sentence_joined": max((float(_is_joined(hit, own, i)) for i in said), default=0.0),
        "sentence_between": _count_between(hit, nearest) if nearest is not None else 0.0,
        "sentence_echo": float(bool(own) and all(words[i].stem in asked.named for i in own)),
    }


def _count_between(hit: Hit, index: int) -> float:
    """1 when nothing else that is named stands between a value and a word, less for each that does.

    Of several names in a sentence the one next to "directed" is its director.
    """
    word = hit.piece.words[index]
    first, last = (hit.end, word.start) if word.start >= hit.end else (word.end, hit.start)
    spans = {(m.start, m.end) for m in hit.piece.mentions if m.kind != "NOUN"}
    return 1 / (1 + sum(first <= start and end <= last for start, end in spans))


def _is_joined(hit: Hit, own: Sequence[int], index: int) -> bool:
    """Whether only function words stand between a word and a value: `composed by Arthur Bliss`."""
    if not own:
        return False
    first, last = (index + 1, own[0]) if index < own[0] else (own[-1] + 1, index)
    return all(word.plain in STOP for word in hit.piece.words[first:last])


def _find_surest(asked: Asked, index: int, piece: Piece) -> Place | None:
    places = find_name(asked.names[index], piece.words, piece.values)
    return places[0] if places else None
