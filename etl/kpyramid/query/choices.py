"""Choice questions without a model: each option by the facts and passages that say it.

A place that says an option speaks for it as far as it names what the question names. Two logistic
steps, whose weights lie in `choices.json`: one rates a place, one an option by its best place and
its rivals'.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import numpy as np

from kpyramid.documents.sentences import split_sentences
from kpyramid.documents.values import find_values
from kpyramid.documents.words import Word, find_name, is_akin, split_words
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.options import Candidate, Number, read_candidates, read_number
from kpyramid.query.types import Item, Reading
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.snapshot import Snapshot

HOLDS, HOLDS_OF_SEVERAL = 0.5, 0.3
"""Probability from which an option is chosen beside others, and where the question wants several:
its F1 gains by one right more than it loses by one wrong."""
LEAST = 0.15
"""Probability from which the best one is chosen alone; a guess among eight is right by .125."""
MARGIN = 4.0
"""Log-odds ahead of the next option beyond which one is no surer; alone counts as that."""
WHOLE = 0.9
"""How surely a place says an option that says all of it, at most in other endings."""
_DENYING = frozenset("not never neither nor without cannot unlike".split())
_DENIAL_REACH = 7
"""Words from a denial to what it denies."""


@dataclass(frozen=True)
class Piece:
    """A sentence, or a fact in words with the entities and names of its `sides`.

    `around` are the stems of the passage that a sentence stands in, with its title's; `rank` is the
    item's place in the context, from 0.
    """

    text: str
    evidence: tuple[Evidence, ...]
    rank: int
    sides: tuple[tuple[str | None, str], ...] = ()
    around: frozenset[str] = frozenset()

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Its words."""
        return split_words(self.text)


@dataclass(frozen=True, slots=True)
class Hit:
    """An option where a piece says it, with the words that do, or the side of the fact."""

    option: int
    piece: Piece
    strength: float
    words: tuple[Word, ...]
    side: int | None = None


def choose(asked: QuestionAnalysis, items: Sequence[Item]) -> Reading:
    """The options that context supports, with its places; none if it says none of them."""
    pieces = cut_items(items, asked.snapshot)
    if {"yes", "no"} <= {c.strip().casefold() for c in asked.candidates} <= _DECISIONS:
        if _ASKS_OTHERWISE.match(asked.text):
            return Reading("", (), 0.0, (), reason="the question asks for no yes or no")
        return _decide(asked, pieces)
    options = read_candidates(asked.candidates, asked.snapshot)
    hits = drop_echoes(find_hits(options, pieces), asked)
    if not hits:
        return Reading("", (), 0.0, (), reason="nothing that was found says one of the options")
    number = read_number(asked.text)
    weighed = weigh(hits, measure_hits(asked, hits, pieces), number)
    chosen = _pick(weighed, number)
    if not chosen:
        return Reading("", (), weighed[0][0], ())
    held = {option for _, option, _ in chosen}
    choices = tuple(text for at, text in enumerate(asked.candidates) if at in held)
    confidence = sum(chance for chance, *_ in chosen) / len(chosen)
    places = dict.fromkeys(place for *_, hit in chosen for place in hit.piece.evidence)
    return Reading("; ".join(choices), choices, confidence, tuple(places))


def guess(asked: QuestionAnalysis) -> Reading:
    """The option nearest to the question, with the probability of a guess."""
    options = asked.candidates
    vectors = asked.snapshot.embedder.embed([asked.text, *options])
    nearest = options[int(np.argmax(vectors[1:] @ vectors[0]))]
    # "None of them" is one more that can be right; one option is no surer than one of two.
    chance = 1 / (max(len(options), 2) + 1)
    return Reading(nearest, (nearest,), chance, (), "a guess: the option nearest to the question")


def cut_items(items: Sequence[Item], snapshot: Snapshot) -> list[Piece]:
    """The pieces of a context in its order; passages that overlap give a sentence once."""
    places = [place for item in items if item.layer == "text" for place in item.evidence]
    titles = snapshot.titles({place.document_id for place in places})
    pieces: dict[object, Piece] = {}
    for rank, item in enumerate(items):
        if item.layer != "text":
            pieces[item.key] = Piece(item.text, item.evidence, rank, _list_sides(item, snapshot))
            continue
        for place in item.evidence:
            title = titles.get(place.document_id, "")
            around = frozenset(w.stem for w in split_words(f"{title}\n{place.text}"))
            for span in split_sentences(place.text):
                text = place.text[span.start : span.end]
                start, end = place.start + span.start, place.start + span.end
                sentence = replace(place, start=start, end=end, text=text)
                key = place.document_id, start, end
                pieces.setdefault(key, Piece(text, (sentence,), rank, around=around))
    return list(pieces.values())


def _list_sides(item: Item, snapshot: Snapshot) -> tuple[tuple[str | None, str], ...]:
    from kpyramid.snapshot.individuals import state_value

    if item.key.startswith("condensed-"):
        stated = snapshot.state_condensed(item.key)
    elif item.key.startswith("instance-"):
        stated = state_value(item.key, snapshot)
    else:  # a value that a query found: what it is of, the query says
        return (None, ""), (None, item.text)
    head_id, head, _, _, tail_id, tail, _ = stated
    return (head_id, head), (tail_id, tail)


def find_hits(options: Sequence[Candidate], pieces: Sequence[Piece]) -> list[Hit]:
    """Every place where a piece says an option and does not deny it."""
    hits = []
    for piece in pieces:
        for at, option in enumerate(options):
            for side, (entity, name) in enumerate(piece.sides):
                if sure := _match_side(option, entity, name):
                    hits.append(Hit(at, piece, sure, split_words(name), side))
            places = (
                () if piece.sides else find_name(option.name, piece.words, find_values(piece.text))
            )
            for place in places:
                if not _is_denied(piece, place.first):
                    words = piece.words[place.first : place.last]
                    hits.append(Hit(at, piece, place.strength, words))
    return hits


def _match_side(option: Candidate, entity: str | None, name: str) -> float:
    """How surely a side is the option; a longer name that only contains it is less sure."""
    if entity in option.entities:
        return 1.0
    words = split_words(name)
    places = find_name(option.name, words, find_values(name))
    if not places:
        return 0.0
    best = places[0]
    return best.strength * (0.4 + 0.6 * (best.last - best.first) / max(len(words), 1))


def _is_denied(piece: Piece, first: int) -> bool:
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


def drop_echoes(hits: Sequence[Hit], asked: QuestionAnalysis) -> list[Hit]:
    """The places that say more of an option than the question does.

    Where the question lists its options itself, only what says a part of one is an echo.
    """
    known = asked.named | {word.stem for word in asked.content}
    listed = all(known.issuperset(w.stem for w in split_words(c)) for c in asked.candidates)
    return [
        hit
        for hit in hits
        if (listed and hit.strength >= WHOLE) or not all(word.stem in known for word in hit.words)
    ]


def measure_hits(
    asked: QuestionAnalysis, hits: Sequence[Hit], pieces: Sequence[Piece]
) -> list[dict[str, float]]:
    """What speaks for each hit; the rare words of a question that names nothing are its names."""
    shares = {} if asked.names else _share_words(asked, pieces)
    return [_measure(asked, hit, shares) for hit in hits]


def _measure(asked: QuestionAnalysis, hit: Hit, shares: Mapping[Piece, float]) -> dict[str, float]:
    piece = hit.piece
    measures = {
        "strength": hit.strength,
        "rank": 1 / (1 + piece.rank),
        "nameless": float(not asked.names),
        "large": float(any(word.large for word in hit.words)),
    }
    if hit.side is None:
        places = [find_name(name, piece.words, find_values(piece.text))[:1] for name in asked.names]
        said = sum(place.strength for found in places for place in found)
        named = shares.get(piece, said / max(len(asked.names), 1))
        around = len(asked.named & piece.around) / max(len(asked.named), 1)
        measures |= {"sentence": 1.0, "sentence_named": named, "around_named": around}
        near = named or around
    else:
        near = shares.get(piece, _name_side(asked, *piece.sides[1 - hit.side]))
        measures |= {"fact": 1.0, "fact_named": near}
    return measures | {"astray": float(bool(asked.names or shares) and not near)}


def _name_side(asked: QuestionAnalysis, entity: str | None, name: str) -> float:
    """How far the question names a side of a fact, 0 to 1; an unnamed one is what a query asked."""
    if not name or entity in asked.linked.entities:
        return 1.0
    stems = {word.stem for word in split_words(name)}
    shared = len(asked.named & stems)
    return 2 * shared / (len(stems) + len(asked.named)) if shared else 0.0


def _share_words(asked: QuestionAnalysis, pieces: Sequence[Piece]) -> dict[Piece, float]:
    """The share of a question's words that each piece says, a word the more the fewer say it.

    What only the passage around a sentence says is half said.
    """
    words = list({word.stem: word for word in asked.content}.values())
    found = {
        piece: [
            1.0 if any(is_akin(w, own) for own in piece.words) else 0.5 * (w.stem in piece.around)
            for w in words
        ]
        for piece in pieces
    }
    rare = [
        math.log((len(found) + 1) / (sum(says) + 0.5)) for says in zip(*found.values(), strict=True)
    ]
    total = sum(rare)
    return {
        piece: sum(r * own for r, own in zip(rare, says, strict=True)) / total if total else 0.0
        for piece, says in found.items()
    }


@cache
def load_weights() -> dict[str, dict[str, float]]:
    """The weights of `choices.json`: of a place, and of an option."""
    found: dict[str, dict[str, float]] = json.loads(
        Path(__file__).with_name("choices.json").read_text("utf-8")
    )["weights"]
    return found


def weigh(
    hits: Sequence[Hit], measures: Sequence[Mapping[str, float]], number: Number
) -> list[tuple[float, int, Hit]]:
    """The options that are said with their probabilities and best places, most probable first.

    Where several are asked for they are no rivals.
    """
    of_place, of_option = load_weights()["place"], load_weights()["option"]
    places: dict[int, list[tuple[float, int]]] = {}
    for at, (hit, own) in enumerate(zip(hits, measures, strict=True)):
        odds = of_place["bias"] + sum(of_place.get(name, 0.0) * x for name, x in own.items())
        places.setdefault(hit.option, []).append((odds, -at))
    best = {option: max(found) for option, found in places.items()}
    weighed = []
    for option, (odds, at) in best.items():
        rivals = [other for one, (other, _) in best.items() if one != option]
        margin = 0.0 if number == "several" else odds - max(rivals) if rivals else MARGIN
        total = of_option["bias"] + of_option["best"] * odds
        total += of_option["behind"] * min(margin, 0.0)
        total += of_option["ahead"] * min(max(margin, 0.0), MARGIN)
        total += of_option["repeated"] * math.log(len(places[option]))
        total += of_option["several"] * (number == "several")
        weighed.append((1 / (1 + math.exp(-max(min(total, 30.0), -30.0))), option, hits[-at]))
    return sorted(weighed, key=lambda one: (-one[0], one[1]))


def _pick(
    weighed: Sequence[tuple[float, int, Hit]], number: Number
) -> Sequence[tuple[float, int, Hit]]:
    """Those that hold: of a question for one thing one, of one for several two at least."""
    known = [one for one in weighed if one[0] >= LEAST]
    if number == "one":
        return known[:1]
    holds = HOLDS_OF_SEVERAL if number == "several" else HOLDS
    chosen = [one for one in known if one[0] >= holds]
    return chosen if len(chosen) > 1 else known[: 2 if number == "several" else 1]


# Yes, no or maybe: what the sentences nearest to the question come to.

_DECISIONS = frozenset({"yes", "no", "maybe"})
_DENIED = re.compile(
    r"\b(?:no|not|never|neither|nor|none|cannot|without|fail(?:ed|s)? to|lack(?:ed|s)? of|unable"
    r"|absen(?:t|ce)|similar|comparable|unlikely)\b|n't\b",
    re.IGNORECASE,
)
_ASKS_OTHERWISE = re.compile(r"\W*(?:who|whom|whose|what|which|where|when|how|why)\b", re.I)
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
_MOST, _NEAREST, _NEAR, _SHARPNESS = 38, 3, 0.4, 4
"""Sentences that are compared, and that are heard; the cosine from which one is heard, and the
power of it by which it counts."""


def _decide(asked: QuestionAnalysis, pieces: Sequence[Piece]) -> Reading:
    """No when most of the nearest sentences deny, maybe when they hedge, else yes.

    The confidence is the share of what was said, drawn towards a guess.
    """
    heard = [piece for piece in pieces if not _ASKING.search(piece.text)][:_MOST]
    if not heard:
        return Reading("", (), 0.0, ())
    vectors = asked.snapshot.embedder.embed([piece.text for piece in heard])
    cosines = vectors @ asked.vector
    order = [i for i in np.argsort(-cosines, kind="stable")[:_NEAREST] if cosines[i] >= _NEAR]
    votes = dict.fromkeys(("yes", "no", "maybe"), 0.0)
    for i in order:
        votes[_hear(asked, heard[i].text)] += float(cosines[i]) ** _SHARPNESS
    given = {c.strip().casefold(): c for c in asked.candidates}
    best = max(given, key=lambda word: (votes[word], word == "yes", word))
    if not votes[best]:
        return Reading("", (), 0.0, (), reason="what was found neither says nor denies it")
    share = votes[best] / sum(votes.values())
    places = tuple(dict.fromkeys(p for i in order for p in heard[i].evidence))
    likely = 1 / len(given)
    return Reading(given[best], (given[best],), likely + (share - likely) / 2, places)


def _hear(asked: QuestionAnalysis, text: str) -> str:
    # A question that denies itself ("is it not ...?") is answered yes by a denial.
    if bool(_DENIED.search(text)) != bool(_DENIED.search(asked.text)):
        return "no"
    return "maybe" if _HEDGED.search(text) else "yes"
