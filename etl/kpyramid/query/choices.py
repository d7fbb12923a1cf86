"""Choice questions without a model: each option by the facts and passages that say it.

A place that says an option speaks for it as far as it names what the question names. Two logistic
steps, whose weights lie in `choices.json`: one rates a place, one an option by its best place and
its rivals'. Whether a text comes to yes or no, only a model says.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kpyramid.documents.sentences import split_sentences
from kpyramid.documents.values import find_values
from kpyramid.documents.words import Name, Place, Word, find_name, read_name, split_words
from kpyramid.query.analysis import WORDS, QuestionAnalysis, link_text
from kpyramid.query.lookup import apply_weights, load_weights
from kpyramid.query.types import Item, Reading
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.snapshot import Snapshot

HOLDS = 0.5
"""Probability from which an option is chosen beside others."""
LEAST = 0.15
"""Probability from which the best one is chosen alone; a guess among eight is right by .125."""
_ASKS_ONE = re.compile(
    r"\b(?:who|where|(?:what|which)(?: \w+)?) (?:is|was|has|does)\b|\b(?:when|how)\b", re.IGNORECASE
)
"""The verb that agrees with what is asked for says that it is one thing."""
MARGIN = 4.0
"""Log-odds ahead of the next option beyond which one is no surer; alone counts as that."""
WHOLE = 0.9
"""How surely a place says an option that says all of it, at most in other endings."""
_DENIAL_REACH = 7
"""Words from a denial to what it denies."""


@dataclass(frozen=True)
class Piece:
    """A sentence, or a fact in words.

    `around` are the stems of the passage that a sentence stands in, with its title's; `rank` is the
    item's place in the context, from 0.
    """

    text: str
    evidence: tuple[Evidence, ...]
    rank: int
    is_fact: bool = False
    around: frozenset[str] = frozenset()

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Its words."""
        return split_words(self.text)

    def find(self, name: Name) -> list[Place]:
        """Where it says a name, surest first."""
        return find_name(name, self.words, find_values(self.text))


@dataclass(frozen=True, slots=True)
class Hit:
    """An option where a piece says it: how surely, and the words that do."""

    option: int
    piece: Piece
    strength: float
    words: tuple[Word, ...]


def choose(asked: QuestionAnalysis, items: Sequence[Item]) -> Reading:
    """The options that context supports, with its places; none if it says none of them."""
    if {c.strip().casefold() for c in asked.candidates} <= _VERDICTS:
        return Reading(reason="only a model says yes or no")
    options = read_options(asked.candidates, asked.snapshot)
    hits = drop_echoes(find_hits(options, cut_items(items, asked.snapshot)), asked)
    if not hits:
        return Reading(reason="nothing that was found says one of the options")
    weighed = weigh(asked, hits)
    if weighed[0][0] < LEAST:
        return Reading(confidence=weighed[0][0])
    several = [one for one in weighed if one[0] >= HOLDS and not _ASKS_ONE.search(asked.text)]
    chosen = several or weighed[:1]
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
            pieces[item.key] = Piece(item.text, item.evidence, rank, is_fact=True)
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


def find_hits(options: Sequence[Name], pieces: Sequence[Piece]) -> list[Hit]:
    """Every place where a piece says an option and does not deny it."""
    return [
        Hit(at, piece, place.strength, piece.words[place.first : place.last])
        for piece in pieces
        for at, option in enumerate(options)
        for place in piece.find(option)
        if not _is_denied(piece, place.first)
    ]


def _is_denied(piece: Piece, first: int) -> bool:
    """Whether the words before word `first` of a sentence deny what is said of it."""
    for at in range(first - 1, max(first - 1 - _DENIAL_REACH, -1), -1):
        word = piece.words[at]
        after = piece.text[word.end : piece.words[at + 1].start]
        if re.search(r"[;:.,]", after) or word.plain == "but":
            return False
        clitic = word.plain == "t" and at and piece.words[at - 1].plain.endswith("n")
        if word.plain in WORDS["denying"] or clitic:
            return piece.words[at + 1].plain != "only"
    return False


def drop_echoes(hits: Sequence[Hit], asked: QuestionAnalysis) -> list[Hit]:
    """The places that say more of an option than the question does.

    Where the question lists its options itself, only what says a part of one is an echo.
    """
    known = {word.stem for word in asked.words}
    listed = all(known.issuperset(w.stem for w in split_words(c)) for c in asked.candidates)
    return [
        hit
        for hit in hits
        if (listed and hit.strength >= WHOLE) or not all(word.stem in known for word in hit.words)
    ]


def _measure(asked: QuestionAnalysis, hit: Hit) -> dict[str, float]:
    """What speaks for a hit."""
    piece, kind = hit.piece, "fact" if hit.piece.is_fact else "sentence"
    named = len(asked.named & {word.stem for word in piece.words}) / max(len(asked.named), 1)
    around = len(asked.named & piece.around) / max(len(asked.named), 1)
    return {
        "strength": hit.strength,
        "rank": 1 / (1 + piece.rank),
        "nameless": float(not asked.names),
        "large": float(any(word.large for word in hit.words)),
        kind: 1.0,
        f"{kind}_named": named,
        "around_named": around,
        "astray": float(not (named or around)),
    }


def weigh(asked: QuestionAnalysis, hits: Sequence[Hit]) -> list[tuple[float, int, Hit]]:
    """The options that are said with their probabilities and best places, most probable first."""
    weights = load_weights("choices.json")  # of a place, and of an option
    places: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
    for at, hit in enumerate(hits):
        speaks = {"bias": 1.0, **_measure(asked, hit)}
        odds = sum(weights["place"].get(name, 0.0) * x for name, x in speaks.items())
        places[hit.option].append((odds, -at))
    best = {option: max(found) for option, found in places.items()}
    weighed = []
    for option, (odds, at) in best.items():
        rivals = [other for one, (other, _) in best.items() if one != option]
        margin = odds - max(rivals) if rivals else MARGIN
        speaks = {
            "best": odds,
            "behind": min(margin, 0.0),
            "ahead": min(max(margin, 0.0), MARGIN),
            "repeated": math.log(len(places[option])),
        }
        weighed.append((apply_weights(speaks, weights["option"]), option, hits[-at]))
    return sorted(weighed, key=lambda one: (-one[0], one[1]))


# Options by all their names, and passages that say one of them with what the question names.

_VERDICTS = frozenset({"yes", "no", "maybe"})
SHARED = 0.5
"""Share of the options from which a word that they have in common tells none apart."""
LOOKED = 10
"""Passages looked at for an option."""
SAID = 0.5
"""How surely a passage must say an option, and how much of what the question names."""


def read_options(texts: Sequence[str], snapshot: Snapshot) -> list[Name]:
    """Options with the names that the pyramid knows them by, and the words that only one has.

    What half of the options share ("language" of "German language") tells none of them apart.
    """
    named: list[Name] = []
    for text in texts:
        linked = link_text(text, snapshot)
        is_name = [*map(join_words, linked.names)] == [join_words(text)]
        forms = snapshot.surface_forms(linked.entities if is_name else ()).values()
        named.append(read_name(text, [form for own in forms for form in own]))
    first = [next((form for form, _ in name.forms), ()) for name in named]
    counts = Counter(word for form in first for word in {*form})
    options = []
    for name, form in zip(named, first, strict=True):
        kept = tuple(word for word in form if not counts[word] > SHARED * len(named) > 1)
        known = ({kept: 0.8} if kept and kept != form else {}) | dict(name.forms)
        options.append(Name(name.text, tuple(known.items()), name.value))
    return options


def find_for_options(
    asked: QuestionAnalysis, k: int, *, without: Collection[str] = ()
) -> list[Item]:
    """At most k passages that say an option and what the question names, best first.

    The best one of each option comes before the second of any. `without` are keys of passages
    that are known already.
    """
    snapshot = asked.snapshot
    wanted, named = asked.named, " ".join([name.text for name in asked.names] or asked.beside)
    ranked: list[tuple[int, float, str]] = []
    for option in read_options(asked.candidates, snapshot):
        keys = [key for key, _ in snapshot.words(f"{named} {option.text}", LOOKED, "chunks")]
        cosines = snapshot.vectors_of(keys, "chunks") @ asked.vector if keys else ()
        scores = []
        for key, text, cosine in zip(keys, snapshot.texts_of(keys, "chunks"), cosines, strict=True):
            words = split_words(text)
            share = len(wanted & {word.stem for word in words}) / max(len(wanted), 1)
            places = find_name(option, words, find_values(text))[:1]
            if share >= SAID and places and places[0].strength >= SAID:
                scores.append((-share * places[0].strength - float(cosine), key))
        ranked += [(place, *score) for place, score in enumerate(sorted(scores))]
    best: dict[str, float] = {}
    for _, score, key in sorted(ranked):
        if key not in without:
            best.setdefault(key, -score)
    return [
        Item(key, place.text, "text", score, (place,))
        for key, score in list(best.items())[:k]
        for place in snapshot.evidence(key)
    ]
