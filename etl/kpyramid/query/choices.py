"""Choice questions without a model: each option is rated by the facts and passages that contain it.

A place with an option counts the more, the more of the question's names it contains. Two logistic
models, with weights in `choices.json`, rate a place, and an option by its best place and those of
its rivals. Yes-no questions are left to a language model.
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
from kpyramid.query.passages import show_passages
from kpyramid.query.types import Item, Reading
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.snapshot import Snapshot

HOLDS = 0.5
"""Least probability of an option to be chosen beside others."""
LEAST = 0.15
"""Least probability of the best option to be chosen alone; a guess among eight has .125."""
_SINGULAR = re.compile(
    r"\b(?:who|where|(?:what|which)(?: \w+)?) (?:is|was|has|does)\b|\b(?:when|how)\b", re.IGNORECASE
)
"""Questions whose verb shows that they ask for a single thing."""
MARGIN = 4.0
"""Cap of the log-odds ahead of the next option; also the margin of a lone option."""
WHOLE = 0.9
"""Least strength of a place with all words of an option, apart from endings."""
_DENIAL_REACH = 7
"""Words from a denial to what it denies."""


@dataclass(frozen=True)
class Piece:
    """A sentence, or a fact in words.

    `around`: stems of a sentence's passage and its title; `rank`: the item's rank in the context,
    from 0.
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
        """The places of a name in it, the strongest first."""
        return find_name(name, self.words, find_values(self.text))


@dataclass(frozen=True, slots=True)
class Hit:
    """An occurrence of an option in a piece: its strength, and the words."""

    option: int
    piece: Piece
    strength: float
    words: tuple[Word, ...]


def choose(asked: QuestionAnalysis, items: Sequence[Item]) -> Reading:
    """The options that the context supports, with its places; none if it contains none of them."""
    if {c.strip().casefold() for c in asked.candidates} <= _VERDICTS:
        return Reading(reason="only a model says yes or no")
    options = read_options(asked.candidates, asked.snapshot)
    hits = drop_echoes(find_hits(options, cut_items(items, asked.snapshot)), asked)
    if not hits:
        return Reading(reason="nothing that was found says one of the options")
    weighed = weigh(asked, hits)
    if weighed[0][0] < LEAST:
        return Reading(confidence=weighed[0][0])
    several = [entry for entry in weighed if entry[0] >= HOLDS and not _SINGULAR.search(asked.text)]
    chosen = several or weighed[:1]
    held = {option for _, option, _ in chosen}
    choices = tuple(text for index, text in enumerate(asked.candidates) if index in held)
    confidence = sum(chance for chance, *_ in chosen) / len(chosen)
    places = dict.fromkeys(place for *_, hit in chosen for place in hit.piece.evidence)
    return Reading("; ".join(choices), choices, confidence, tuple(places))


def guess(asked: QuestionAnalysis) -> Reading:
    """The option nearest to the question, with the probability of a guess."""
    options = asked.candidates
    vectors = asked.snapshot.embedder.embed([asked.text, *options])
    nearest = options[int(np.argmax(vectors[1:] @ vectors[0]))]
    # "None of them" is a further possible answer; a lone option counts as one of two.
    chance = 1 / (max(len(options), 2) + 1)
    return Reading(nearest, (nearest,), chance, (), "a guess: the option nearest to the question")


def cut_items(items: Sequence[Item], snapshot: Snapshot) -> list[Piece]:
    """The pieces of a context in order; a sentence of overlapping passages occurs once."""
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
    """Every place where a piece contains an option without a denial."""
    return [
        Hit(index, piece, place.strength, piece.words[place.first : place.last])
        for piece in pieces
        for index, option in enumerate(options)
        for place in piece.find(option)
        if not _is_denied(piece, place.first)
    ]


def _is_denied(piece: Piece, first: int) -> bool:
    """Whether a denial precedes word `first` of a sentence within `_DENIAL_REACH` words."""
    for index in range(first - 1, max(first - 1 - _DENIAL_REACH, -1), -1):
        word = piece.words[index]
        after = piece.text[word.end : piece.words[index + 1].start]
        if re.search(r"[;:.,]", after) or word.plain == "but":
            return False
        clitic = word.plain == "t" and index and piece.words[index - 1].plain.endswith("n")
        if word.plain in WORDS["denying"] or clitic:
            return piece.words[index + 1].plain != "only"
    return False


def drop_echoes(hits: Sequence[Hit], asked: QuestionAnalysis) -> list[Hit]:
    """The hits with more words of an option than the question contains.

    Where the question itself lists its options, only hits with a part of an option are echoes.
    """
    known = {word.stem for word in asked.words}
    listed = all(known.issuperset(w.stem for w in split_words(c)) for c in asked.candidates)
    return [
        hit
        for hit in hits
        if (listed and hit.strength >= WHOLE) or not all(word.stem in known for word in hit.words)
    ]


def _measure(asked: QuestionAnalysis, hit: Hit) -> dict[str, float]:
    """The features of a hit."""
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
    """The options with hits, their probabilities and best hits, most probable first."""
    weights = load_weights("choices.json")  # of a place, and of an option
    places: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
    for index, hit in enumerate(hits):
        speaks = {"bias": 1.0, **_measure(asked, hit)}
        odds = sum(weights["place"].get(name, 0.0) * x for name, x in speaks.items())
        places[hit.option].append((odds, -index))
    best = {option: max(odds_of) for option, odds_of in places.items()}
    weighed = []
    for option, (odds, index) in best.items():
        rivals = [rival_odds for rival, (rival_odds, _) in best.items() if rival != option]
        margin = odds - max(rivals) if rivals else MARGIN
        speaks = {
            "best": odds,
            "behind": min(margin, 0.0),
            "ahead": min(max(margin, 0.0), MARGIN),
            "repeated": math.log(len(places[option])),
        }
        weighed.append((apply_weights(speaks, weights["option"]), option, hits[-index]))
    return sorted(weighed, key=lambda rival: (-rival[0], rival[1]))


# Options by all their names, and passages with an option and the names of the question.

_VERDICTS = frozenset({"yes", "no", "maybe"})
SHARED = 0.5
"""Share of the options above which a common word does not distinguish them."""
LOOKED = 10
"""Passages retrieved for an option."""
NAMED = 0.5
"""Least strength of an option in a passage, and least share of the question's named words there."""


def read_options(texts: Sequence[str], snapshot: Snapshot) -> list[Name]:
    """Options with all their names in the pyramid, and with their distinctive words.

    Words that more than half of the options share ("language" of "German language") are not
    distinctive.
    """
    named: list[Name] = []
    for text in texts:
        linked = link_text(text, snapshot)
        is_name = [*map(join_words, linked.names)] == [join_words(text)]
        forms = snapshot.surface_forms(linked.entities if is_name else ()).values()
        named.append(read_name(text, [form for group in forms for form in group]))
    first = [next((form for form, _ in name.forms), ()) for name in named]
    counts = Counter(word for form in first for word in {*form})
    options = []
    for name, form in zip(named, first, strict=True):
        unique = tuple(word for word in form if not counts[word] > SHARED * len(named) > 1)
        known = ({unique: 0.8} if unique and unique != form else {}) | dict(name.forms)
        options.append(Name(name.text, tuple(known.items()), name.value))
    return options


def find_for_options(
    asked: QuestionAnalysis, k: int, *, without: Collection[str] = ()
) -> list[Item]:
    """At most k passages that contain an option and the question's names, best first.

    The best passage of each option comes before the second of any. `without`: keys of passages to
    leave out.
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
            if share >= NAMED and places and places[0].strength >= NAMED:
                scores.append((-share * places[0].strength - float(cosine), key))
        ranked += [(place, *score) for place, score in enumerate(sorted(scores))]
    best: dict[str, float] = {}
    for _, score, key in sorted(ranked):
        if key not in without:
            best.setdefault(key, -score)
    return show_passages(list(best.items())[:k], snapshot)
