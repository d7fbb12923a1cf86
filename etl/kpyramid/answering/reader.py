"""The reader by rules: pieces of the context, values in them, and the most probable answer."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from kpyramid.answering.sets import measure_thing, read_kind
from kpyramid.answering.verification import (
    add_fact,
    drop_document,
    find_unsupported,
    find_wanted,
    is_about_nothing,
    is_undone,
    list_citations,
    list_said,
    turns_doer,
    verify_places,
    verify_value,
)
from kpyramid.documents.sentences import split_sentences
from kpyramid.documents.values import Date, Value, find_values
from kpyramid.documents.words import (
    STOP,
    Word,
    find_name,
    is_akin,
    list_plain_words,
    normalise_name,
    share_stem,
    split_words,
)
from kpyramid.query.analysis import QuestionAnalysis, fits
from kpyramid.query.options import Candidate, Number, read_candidates, read_number
from kpyramid.query.types import Item, Reading
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.individuals import state_value
from kpyramid.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Side:
    """What a fact speaks of at one end; a literal has no id."""

    entity: str | None
    name: str
    kind: str


@dataclass(frozen=True, slots=True, order=True)
class Mention:
    """A name or noun phrase in a piece, by its characters there, with its entity type."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Piece:
    """A sentence or a fact in words, with its places.

    `sides` are a fact's head and tail and `relation` what joins them. `around` are the stems of
    the passage that a sentence stands in, with its title's; `rank` is the item's place in the
    context, from 0.
    """

    text: str
    evidence: tuple[Evidence, ...]
    rank: int
    layer: str
    sides: tuple[Side, Side] | None = None
    relation: str = ""
    around: frozenset[str] = frozenset()
    mentions: tuple[Mention, ...] = ()

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Its words."""
        return split_words(self.text)

    @cached_property
    def values(self) -> tuple[Value, ...]:
        """Its dates and numbers."""
        return find_values(self.text)


def cut_items(items: Sequence[Item], snapshot: Snapshot) -> list[Piece]:
    """The pieces of a context in its order; passages that overlap give a sentence once."""
    places = [place for item in items if item.layer == "text" for place in item.evidence]
    titles = snapshot.titles({place.document_id for place in places})
    mentions: dict[str, set[Mention]] = {}
    for row in snapshot.mentions_in(sorted({place.chunk_id for place in places})):
        mention = Mention(row["start"], row["end"], row["type"])
        mentions.setdefault(row["chunk_id"], set()).add(mention)
    pieces: list[Piece] = []
    seen: set[tuple[str, int, int]] = set()
    for rank, item in enumerate(items):
        if item.layer == "text" and item.evidence:
            for place in item.evidence:
                title = titles.get(place.document_id, "")
                around = frozenset(w.stem for w in split_words(f"{title}\n{place.text}"))
                for sentence in _split_sentences(place):
                    key = (sentence.document_id, sentence.start, sentence.end)
                    if key in seen:
                        continue
                    seen.add(key)
                    inside = _find_inside(sentence, mentions.get(place.chunk_id, set()))
                    pieces.append(
                        Piece(
                            sentence.text,
                            (sentence,),
                            rank,
                            item.layer,
                            around=around,
                            mentions=inside,
                        )
                    )
        else:
            pieces.append(_read_fact(item, rank, snapshot))
    return pieces


def _read_fact(item: Item, rank: int, snapshot: Snapshot) -> Piece:
    if item.key.startswith("condensed-"):
        stated = snapshot.state_condensed(item.key)
    elif item.key.startswith("instance-"):
        stated = state_value(item.key, snapshot)
    else:  # a value that a query found: what it is of, the query says
        own = Side(None, item.text, "")
        return Piece(item.text, item.evidence, rank, item.layer, (Side(None, "", ""), own))
    text = drop_document(item)
    head_id, head, head_type, relation, tail_id, tail, kind = stated
    sides = Side(head_id, head, head_type), Side(tail_id, tail, kind)
    return Piece(text, item.evidence, rank, item.layer, sides, relation)


def _split_sentences(place: Evidence) -> list[Evidence]:
    return [
        replace(
            place,
            start=place.start + span.start,
            end=place.start + span.end,
            text=place.text[span.start : span.end],
        )
        for span in split_sentences(place.text)
    ]


def _find_inside(sentence: Evidence, mentions: set[Mention]) -> tuple[Mention, ...]:
    return tuple(
        Mention(mention.start - sentence.start, mention.end - sentence.start, mention.kind)
        for mention in sorted(mentions)
        if sentence.start <= mention.start and mention.end <= sentence.end
    )


# Where a context says a value that may answer, and what speaks for that place.

_DENYING = frozenset("not never neither nor without cannot unlike".split())
_DENIAL_REACH = 7
"""Words from a denial to what it denies; a comma, a semicolon or "but" ends it."""

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


def measure_hits(
    asked: QuestionAnalysis, hits: Sequence[Hit], pieces: Sequence[Piece] = ()
) -> list[Features]:
    """What speaks for each hit, all of it by words.

    With `pieces`, all of the context, the rare words of a question that names nothing are its
    names.
    """
    shares = {} if asked.names else _share_words(asked, pieces)
    return [_count(asked, hit, shares) for hit in hits]


def _share_words(asked: QuestionAnalysis, pieces: Sequence[Piece]) -> dict[Piece, float]:
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


def _count(asked: QuestionAnalysis, hit: Hit, shares: Mapping[Piece, float]) -> dict[str, float]:
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


def _count_fact(asked: QuestionAnalysis, piece: Piece, side: int) -> dict[str, float]:
    assert piece.sides
    relation = split_words(piece.relation)
    found = sum(any(is_akin(word, said) for said in relation) for word in asked.content)
    return {
        "fact": 1.0,
        "fact_named": name_side(asked, piece.sides[1 - side]),
        "fact_words": found / max(len(asked.content), 1),
        "fact_tail": float(side),
    }


def name_side(asked: QuestionAnalysis, side: Side) -> float:
    """How far the question names a side of a fact, 0 to 1; an unnamed one is what a query asked."""
    if not side.name or side.entity in asked.linked.entities:
        return 1.0
    stems = {word.stem for word in split_words(side.name)}
    shared = len(asked.named & stems)
    return 2 * shared / (len(stems) + len(asked.named)) if shared else 0.0


def _count_sentence(asked: QuestionAnalysis, hit: Hit) -> dict[str, float]:
    words = hit.piece.words
    own = [i for i, w in enumerate(words) if hit.start <= w.start < hit.end]
    places = [find_name(name, words, hit.piece.values)[:1] for name in asked.names]
    said = [
        i
        for i, word in enumerate(words)
        if i not in own and any(is_akin(word, content) for content in asked.content)
    ]
    named = sum(place.strength for found in places for place in found)
    return {
        "sentence": 1.0,
        "sentence_named": named / max(len(asked.names), 1),
        "around_named": len(asked.named & hit.piece.around) / max(len(asked.named), 1),
        "sentence_joined": float(any(_is_joined(hit, own, i) for i in said)),
        "sentence_echo": float(bool(own) and all(words[i].stem in asked.named for i in own)),
    }


def _is_joined(hit: Hit, own: Sequence[int], index: int) -> bool:
    """Whether only function words stand between a word and a value: `composed by Arthur Bliss`."""
    if not own:
        return False
    first, last = (index + 1, own[0]) if index < own[0] else (own[-1] + 1, index)
    return all(word.plain in STOP for word in hit.piece.words[first:last])


# Where a context says the values that can answer a question: candidates', or its own.

_LONGEST_SPAN = 8
"""Words of a noun phrase that can still be an answer; longer ones are clauses."""
_UNIT = re.compile(
    r"\s?%|[ -](?:(?:kilo|centi|milli)?met(?:er|re)s?|miles?|feet|foot|inch(?:es)?|yards?|acres?"
    r"|hectares?|(?:kilo)?grams?|tons?|tonnes?|pounds?|seconds?|minutes?|hours?|days?|weeks?"
    r"|months?|years?|percent|per cent|dollars?|euros?|km|cm|mm|m|kg|lbs?|ft|mph|kmh?)\b[²³]?"
)
"""What belongs to the number before it."""


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


def gather_values(asked: QuestionAnalysis, pieces: Sequence[Piece]) -> tuple[list[str], list[Hit]]:
    """The context's own values that can answer, with every place of each; equal names are one."""
    known = list_said(asked)
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
                    key = add(normalise_name(own.name), own.name)
                    hits.append(Hit(key, piece, start, end, 1.0, own.kind, side))
            continue
        for start, end, kind in _list_spans(piece):
            text = piece.text[start:end]
            words = split_words(text)
            if not words or len(words) > _LONGEST_SPAN or fits(kind, asked) < 0:
                continue
            if all(word.stem in known or word.plain in STOP for word in words):
                continue
            first = next(i for i, w in enumerate(piece.words) if w.start >= words[0].start + start)
            if not is_denied(piece, first):
                hits.append(Hit(add(normalise_name(text), text), piece, start, end, 1.0, kind))
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


# From what was counted to the probability that a value answers, by two logistic models.

Kind = Literal["choice", "open"]


@dataclass(frozen=True, slots=True)
class Supported:
    """A candidate with the probability that it answers, and the places that speak for it."""

    candidate: int
    probability: float
    hits: tuple[Hit, ...]
    """Surest first."""


@dataclass(frozen=True, slots=True)
class _Weights:
    """Log-odds: of a place by its features, and of a value by its best place and its rivals'."""

    hit: Mapping[str, float]
    behind: float
    ahead: float
    best: float
    repeated: float
    several: float
    bias: float


HOLDS = 0.5
"""Probability from which a candidate is chosen beside others: it holds more likely than not."""
HOLDS_OF_SEVERAL = 0.3
"""The same where the question says that there are several: its F1 gains by one right more than it
loses by one wrong."""
LEAST = 0.15
"""Probability from which the best one is chosen alone; a guess among eight is right by .125."""
_MARGIN = 4.0
"""Log-odds ahead of the next value beyond which it is no surer; alone counts as that."""


@cache
def load_weights() -> Mapping[str, _Weights]:
    """The weights of `reader.json`.

    Fitted by `benchmarks/reading.py`, which also says how well they hold.
    """
    data = json.loads(Path(__file__).with_name("reader.json").read_text("utf-8"))
    return {kind: _Weights(**weights) for kind, weights in data["weights"].items()}


def weigh(
    hits: Sequence[Hit], features: Sequence[Features], kind: Kind, number: Number = "any"
) -> list[Supported]:
    """The values that a context says, most probable first; ties by the order of candidates."""
    weights = load_weights()[kind]
    places: dict[int, list[tuple[float, int]]] = {}
    for index, (hit, counted) in enumerate(zip(hits, features, strict=True)):
        odds = weights.hit["bias"] + sum(
            weights.hit.get(name, 0.0) * value for name, value in counted.items()
        )
        places.setdefault(hit.candidate, []).append((-odds, index))
    best = {candidate: -min(found)[0] for candidate, found in places.items()}
    weighed = [
        Supported(
            candidate,
            _squash(_add_up(compare(candidate, best, len(found), number), weights)),
            tuple(hits[index] for _, index in sorted(found)),
        )
        for candidate, found in places.items()
    ]
    return sorted(weighed, key=lambda s: (-s.probability, s.candidate))


def compare(
    candidate: int, best: Mapping[int, float], places: int, number: Number = "any"
) -> tuple[float, float, float, float, float]:
    """A value's log-odds at its best place, how far behind and ahead of its rivals, its places.

    `best` are the log-odds of all values, `places` the number of this one's, as a logarithm. Where
    several are asked for they are no rivals, and the last figure is 1.
    """
    own = best[candidate]
    if number == "several":
        return own, 0.0, 0.0, math.log(places), 1.0
    rivals = [odds for other, odds in best.items() if other != candidate]
    margin = own - max(rivals) if rivals else _MARGIN
    return own, min(margin, 0.0), min(max(margin, 0.0), _MARGIN), math.log(places), 0.0


def pick(weighed: Sequence[Supported], number: Number) -> list[Supported]:
    """Those of a question's candidates that hold, at least the best when it is no guess.

    A question for one thing has one answer; one for several has two where two have support.
    """
    known = [found for found in weighed if found.probability >= LEAST]
    if number == "one":
        return known[:1]
    holds = HOLDS_OF_SEVERAL if number == "several" else HOLDS
    chosen = [found for found in known if found.probability >= holds]
    return chosen if len(chosen) > 1 else known[: 2 if number == "several" else 1]


def _add_up(compared: tuple[float, float, float, float, float], weights: _Weights) -> float:
    own, behind, ahead, places, several = compared
    return (
        weights.bias
        + weights.best * own
        + weights.behind * behind
        + weights.ahead * ahead
        + weights.repeated * places
        + weights.several * several
    )


def _squash(odds: float) -> float:
    return 1 / (1 + math.exp(-max(min(odds, 30.0), -30.0)))


# Choice questions: which of the candidates a context supports.

WHOLE = 0.9
"""How surely a place says a candidate that says all of it, at most in other endings."""


def choose(
    asked: QuestionAnalysis, candidates: Sequence[str], pieces: Sequence[Piece], snapshot: Snapshot
) -> Reading:
    """The candidates that the context says answer the question, with its places; none if none."""
    hits = drop_echoes(find_candidates(read_candidates(candidates, snapshot), pieces), asked)
    if not hits:
        return Reading("", (), 0.0, ())
    number = read_number(asked.text)
    weighed = weigh(hits, measure_hits(asked, hits, pieces), "choice", number)
    chosen = pick(weighed, number)
    if not chosen:
        return Reading("", (), weighed[0].probability, ())
    held = {found.candidate for found in chosen}
    choices = tuple(text for index, text in enumerate(candidates) if index in held)
    confidence = sum(found.probability for found in chosen) / len(chosen)
    return Reading("; ".join(choices), choices, confidence, cite(chosen))


def drop_echoes(hits: Sequence[Hit], asked: QuestionAnalysis) -> list[Hit]:
    """The places without those that say only a part of a candidate, in the question's own words.

    Asked for clubs, "club" says no more of "Central Club" than of any other.
    """
    return [hit for hit in hits if hit.strength >= WHOLE or not _is_echo(hit, asked)]


def _is_echo(hit: Hit, asked: QuestionAnalysis) -> bool:
    own = [word for word in hit.piece.words if hit.start <= word.start < hit.end]
    known = list_said(asked)
    return all(word.stem in known for word in own)


def cite(found: Sequence[Supported]) -> tuple[Evidence, ...]:
    """The places of the best hit of each value, once each."""
    return tuple(dict.fromkeys(place for one in found for place in one.hits[0].piece.evidence))


# Yes, no or maybe: what the sentences nearest to the question come to.

_DECISIONS = frozenset({"yes", "no", "maybe"})
_DENIED = re.compile(
    r"\b(?:no|not|never|neither|nor|none|cannot|without|fail(?:ed|s)? to|lack(?:ed|s)? of|unable"
    r"|absen(?:t|ce)|similar|comparable|unlikely)\b|n't\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"\b(?:may|might|could|unclear|uncertain|inconclusive|controversial|possibl[ey]|perhaps"
    r"|further|remain(?:s|ed)?|limited|insufficient)\b",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"\?\s*$|\b(?:whether|aim(?:s|ed)?|purpose|objectives?|hypothesi[sz]ed?|investigated?)\b",
    re.IGNORECASE,
)
"""A sentence that asks says nothing yet."""
_NEAREST = 3
"""Sentences that are heard."""
_SHARPNESS = 4
"""Power of the cosine by which a sentence counts: the nearest outweighs two that are far."""
CONFIRMED = 0.75
"""Probability of an answer that one sentence says in the words of the question. Set by hand."""
_MOST = 38
_NEAR = 0.4
"""Cosine from which a sentence speaks about what is asked."""


def is_decision(candidates: Sequence[str]) -> bool:
    """Whether the candidates are yes, no and perhaps maybe."""
    return {"yes", "no"} <= {c.strip().casefold() for c in candidates} <= _DECISIONS


def decide(
    asked: QuestionAnalysis, candidates: Sequence[str], pieces: Sequence[Piece], snapshot: Snapshot
) -> Reading:
    """No when most of the nearest sentences deny, maybe when they hedge, else yes.

    The sentences nearest to the question are heard, each as loud as it is near; the confidence is
    the share of what was said, drawn towards a guess. Nothing near: no answer.
    """
    heard = [piece for piece in pieces if not _ASKING.search(piece.text)][:_MOST]
    if not heard:
        return Reading("", (), 0.0, ())
    vectors = snapshot.embedder.embed([piece.text for piece in heard])
    cosines = vectors @ snapshot.embed(asked.text)
    order = [i for i in np.argsort(-cosines, kind="stable")[:_NEAREST] if cosines[i] >= _NEAR]
    if not order:
        return Reading("", (), 0.0, ())
    votes = dict.fromkeys(("yes", "no", "maybe"), 0.0)
    for i in order:
        votes[_hear(asked, heard[i].text)] += float(cosines[i]) ** _SHARPNESS
    given = {c.strip().casefold(): c for c in candidates}
    best = max(given, key=lambda word: (votes[word], word == "yes", word))
    if not votes[best]:
        return Reading("", (), 0.0, (), reason="what was found neither says nor denies it")
    share = votes[best] / sum(votes.values())
    places = tuple(dict.fromkeys(p for i in order for p in heard[i].evidence))
    guess = 1 / len(given)
    return Reading(given[best], (given[best],), guess + (share - guess) / 2, places)


def confirm(asked: QuestionAnalysis, pieces: Sequence[Piece], snapshot: Snapshot) -> Reading:
    """Yes where a sentence says all that an open question says, no where one denies it.

    Nothing is said for sure by a sentence that says less, and nothing where two disagree. That
    something is of a kind is said by facts alone: a bridge over a river does not make it one.
    """
    if is_about_nothing(asked):
        return Reading("", (), 0.0, (), reason="the question names nothing that it asks about")
    if (kind := read_kind(asked)) is not None:
        return Reading("", (), 0.0, (), reason=f"no fact says that it is a {' '.join(kind.kind)}")
    context = [piece.text for piece in pieces]
    said: dict[str, Piece] = {}
    for piece in pieces:
        citations = list_citations(piece.evidence, (), snapshot)
        if piece.sides:
            citations = [add_fact(citation, piece.text) for citation in citations]
        if (
            citations
            and find_wanted(asked)
            and not find_unsupported(asked, citations, context, snapshot).reason
            and not turns_doer(asked, citations[0].text)
        ):
            word = _hear(asked, citations[0].text)
            is_so = word == "no" or is_undone(asked.text) or not is_undone(citations[0].text)
            said.setdefault(word if is_so else "maybe", piece)
    if len(said) != 1 or "maybe" in said:
        why = (
            "what was found neither says nor denies it" if not said else "what was found disagrees"
        )
        return Reading("", (), 0.0, (), reason=why)
    ((word, piece),) = said.items()
    return Reading(word, (word,), CONFIRMED, piece.evidence)


def _hear(asked: QuestionAnalysis, text: str) -> str:
    # A question that denies itself ("is it not ...?") is answered yes by a denial.
    if bool(_DENIED.search(text)) != bool(_DENIED.search(asked.text)):
        return "no"
    return "maybe" if _HEDGED.search(text) else "yes"


# What a reader makes of context: by rules, or by the model that is asked.

STATED = 0.15
"""Probability from which a value is given whose place says all that the question says."""
MOST_VERIFIED, MOST_PLACES = 8, 2
"""Values that are verified, and places of each."""


def read(asked: QuestionAnalysis, items: Sequence[Item]) -> Reading:
    """The answer that context gives, best items first; empty when it does not say."""
    if not items:
        return Reading("", (), 0.0, ())
    if strange := _find_strange(asked, items):
        reason = f"nothing that was found mentions {', '.join(sorted(strange))}"
        return Reading("", (), 0.0, (), reason=reason)
    snapshot = asked.snapshot
    pieces = cut_items(items, snapshot)
    if is_decision(asked.candidates):
        return decide(asked, asked.candidates, pieces, snapshot)
    if asked.candidates:
        return _verify_options(asked, choose(asked, asked.candidates, pieces, snapshot), items)
    if asked.is_yes_no:
        return confirm(asked, pieces, snapshot)
    return measure_thing(asked) or _find_value(asked, pieces, snapshot)


def _find_strange(asked: QuestionAnalysis, items: Sequence[Item]) -> frozenset[str]:
    """The names and years of a question that passages and their titles mention in no form.

    A context that never mentions them says nothing of them, however near the rest of it lies.
    """
    if not any(item.layer == "text" for item in items):
        return frozenset()
    documents = {place.document_id for item in items for place in item.evidence}
    titles = asked.snapshot.titles(documents).values()
    texts = [*(item.text for item in items), *titles]
    known = frozenset(word for text in texts for word in list_plain_words(text))
    left = asked.name_words - known
    return frozenset(w for w in left if not any(share_stem(w, other) for other in known))


def _verify_options(asked: QuestionAnalysis, chosen: Reading, items: Sequence[Item]) -> Reading:
    """The options chosen, with at most the confidence that their citations support.

    Where the wording leaves open whether several are asked for, those that their citations support
    in the words of the question stand alone: who starred in a film is not who directed it.
    """
    if not chosen.choices:
        return chosen
    open_question = asked.part(asked.text)
    if len(chosen.choices) > 1 and read_number(asked.text) == "any":
        sound = tuple(
            choice
            for choice in chosen.choices
            if not verify_places(open_question, [choice], chosen.evidence, items).reason
        )
        if sound and sound != chosen.choices:
            chosen = replace(chosen, text="; ".join(sound), choices=sound)
    verified = verify_places(asked, chosen.choices, chosen.evidence, items)
    if verified.bound >= chosen.confidence:
        return chosen
    return replace(chosen, confidence=verified.bound, reason=verified.reason)


def _find_value(asked: QuestionAnalysis, pieces: Sequence[Piece], snapshot: Snapshot) -> Reading:
    """The most probable value that a place states, saying all that the question says; else none.

    Nothing is guessed: the passages themselves are worth more than the value nearest to a question.
    """
    texts, hits = gather_values(asked, pieces)
    weighed = weigh(hits, measure_hits(asked, hits), "open") if hits else []
    context = [piece.text for piece in pieces]
    for one in weighed[:MOST_VERIFIED]:
        if one.probability < STATED:
            break
        text = texts[one.candidate]
        for hit in one.hits[:MOST_PLACES]:
            citations = list_citations(hit.piece.evidence, (), snapshot)
            if hit.side is not None:  # its words as well: a pronoun is resolved in them
                citations = [add_fact(citation, hit.piece.text) for citation in citations]
            if not verify_value(asked, text, citations, context, snapshot).reason:
                written = hit.piece.text[hit.start : hit.end] or text
                return Reading(written, (written,), one.probability, hit.piece.evidence)
    return Reading("", (), 0.0, (), reason="no sentence states a value for all that it asks")
