"""Retrieval of passages: by words, by vectors, by both reranked, and multi-hop."""

import math
import re
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from kpyramid.documents import words as w
from kpyramid.documents.sentences import split_sentences
from kpyramid.embeddings.port import Matrix
from kpyramid.query.analysis import WORDS, QuestionAnalysis, find_names, link_text
from kpyramid.query.types import Item
from kpyramid.snapshot.snapshot import Snapshot

POOL = 100
"""Passages that words and vectors each put forward; gold ones are seldom further down."""
WORDS_PART = 0.1
"""What a word that no other passage says is worth in cosine at most. Not a share of the best
passage's score: where all words of a question are common, words should count for little."""
NAMED_PART = 0.25
"""What is gained by a title that the question says: whoever asks about something names it."""
CROWD = 10
"""Passages of other documents nearest to one, by which is told how crowded its place is."""
CROWD_PART = 0.4
"""What is lost by standing where everything is near: such a passage is near to all questions."""
FIRST = 10
"""The first passages, by which the others are judged once more."""
FIRST_PART = 0.25
"""What is gained by lying where they do: answers to one question are alike."""
STEEPNESS = 30.0
"""How fast a passage counts for less among the first, the further its score is below the best."""


def rank_directly(
    question: str, snapshot: Snapshot, named: Collection[Sequence[str]] = (), pool: int = POOL
) -> dict[str, float]:
    """The scores of the passages that words or vectors put forward, by key.

    `named` are the passages of each document whose title the question says: of each its first
    comes in besides.
    """
    near = snapshot.nearest(question, pool, "chunks")
    worded = dict(snapshot.words(question, pool, "chunks"))
    titled = {key for chunks in named for key in chunks if key in near or key in worded}
    titled |= {chunks[0] for chunks in named if chunks}
    keys = sorted({*near, *worded, *titled})
    if not keys:
        return {}
    placed, documents = snapshot.place_vectors(keys)
    points = np.array([worded.get(key, 0.0) for key in keys], np.float32)
    scores = placed @ snapshot.embed(question) + WORDS_PART / measure_rarest(snapshot) * points
    units = placed / np.linalg.norm(placed, axis=1, keepdims=True)
    scores -= CROWD_PART * measure_crowd(units, documents)
    scores += NAMED_PART * np.array([key in titled for key in keys], np.float32)
    scores += FIRST_PART * (units @ average_first(scores, units))
    return dict(zip(keys, scores.tolist(), strict=True))


def measure_crowd(units: Matrix, documents: npt.NDArray[Any]) -> Matrix:
    """For each vector its mean cosine with the `CROWD` nearest of other documents; 0 without any.

    Vectors of many dimensions have hubs, which are among the nearest of far too many others
    (Radovanović et al., JMLR 2010); how crowded a place is may be taken off its cosines (Conneau
    et al., ICLR 2018, CSLS). Here the neighbours are those in the pool.
    """
    cosines = units @ units.T
    cosines[documents[:, None] == documents] = -np.inf
    nearest = np.partition(cosines, -CROWD, axis=1)[:, -CROWD:] if len(units) > CROWD else cosines
    counted = np.isfinite(nearest)
    total = np.where(counted, nearest, 0).sum(axis=1)
    return np.asarray(total / np.maximum(counted.sum(axis=1), 1), dtype=np.float32)


def measure_rarest(snapshot: Snapshot) -> float:
    """How rare BM25 holds a word of a single passage, which grows with the number of passages."""
    return math.log(1 + (snapshot.count("chunks") - 0.5) / 1.5)


def average_first(scores: Matrix, units: Matrix) -> Matrix:
    """Where the first passages lie: their mean by how near their scores are to the best.

    Feedback without a judge (Rocchio 1971), from vectors.
    """
    first = np.argsort(-scores, kind="stable")[:FIRST]
    shares = np.exp(STEEPNESS * (scores[first] - scores[first[0]]))
    mean = shares @ units[first]
    return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)


# Multi-hop retrieval: from passages that answer a part of a question to those about the rest.

_ASIDE = WORDS["aside"] | (
    (w.ARTICLES | w.AUXILIARIES | w.JOINING | w.MODALS | w.PREPOSITIONS | w.POINTING)
    - {"having", "must", "ought", "shall"}
)
_NO_NAMES, _ASKING = WORDS["no_names"], WORDS["interrogative"]

STARTS = 3
"""The first passages, from which multi-hop retrieval goes on where they say what is named."""
LOOKED, TITLED = 10, 2
"""From how many it goes on where a question says their whole title, and how many more that are."""
CARRIED = 5
"""Statements from which it goes on."""
NAMES = 8
"""Names of a start that it goes on by, first place first: later ones are seldom its subject's."""
LINKED = 20
"""Documents that a start goes on to because it says their titles, the nearest to the question."""
ONWARD = 20
"""Passages looked at for each name."""

ANCHORS = 20
"""Words, and of them words written as names, that are looked up; what has more is a text."""
COMMON = 30
"""Passages with a word from which on it is no name of one thing."""

START_PART = 0.5
"""How much of its start's score a passage takes over."""
OWN_PART = 0.3
"""How much of its own score for the whole question counts."""
SAID_PART = 0.145
"""What is gained by saying, of the name and the rest, a word that no other passage says."""
TITLE_PART = 0.12
"""What is gained by being titled as the name is; half of it where the title only holds it."""
RARE_PART = 0.1
"""What is gained where the name stands in no other passage."""
ASKED_PART = 0.25
"""What is gained where the sentence with the name says the whole question."""
USUAL = 0.25
"""What it says as a rule, and what a statement counts as, which the question found."""
TOLL = 0.2
"""What a step costs, so that a passage reached is comparable with one found directly."""
FOLLOWING, MOST_FOLLOWING = 0.04, 3
"""What each passage loses that a name leads to after the best one, and after how many no more: a
name that many passages share would fill the first places with them."""
REACHED = 2
"""The first passages after a step, of which those that it reached begin a second one."""


@dataclass(frozen=True, slots=True)
class Start:
    """Where a hop begins: its key if it is a passage, its words, names and score.

    `titled` are the passages of documents whose titles it says, by title.
    """

    key: str | None
    text: str
    names: tuple[str, ...]
    score: float
    titled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Path:
    """A step by a name, and what to look for: the rest of the question that the start left.

    `asked` is the share of the question that the passage's sentence with the name says, `targets`
    the passages that have the name as their title.
    """

    start: Start
    name: str
    rest: tuple[str, ...]
    asked: float
    targets: tuple[str, ...] = ()


def hop_by_names(
    question: str,
    snapshot: Snapshot,
    scores: Mapping[str, float],
    facts: Sequence[str] = (),
    titles: Collection[str] = (),
) -> tuple[dict[str, float], dict[str, Path]]:
    """The scores of passages for a question, and the best path to those reached by steps.

    `scores` are those of passages found directly, `titles` the keys of those whose title the
    question says. A second step goes on from the best passages that a first one reached. A passage
    keeps the best of its own score and those of its paths.
    Nothing is embedded: what a passage says of the rest is told by BM25.
    """
    starts = [
        *start_from_passages(question, snapshot, scores, titles),
        *start_from_facts(snapshot, scores, facts),
    ]
    steps = _Steps(snapshot, scores)
    weights = weigh_words(question, snapshot) if any(start.key for start in starts) else {}
    steps.go([path for start in starts for path in list_paths(question, start, weights)])
    found, paths = steps.settle()
    begun = {start.key for start in starts}
    best = sorted(found, key=lambda key: (-found[key], key))[:REACHED]
    onward = [key for key in best if key in paths and key not in begun]
    names = list_names(snapshot, onward)
    for key, text in zip(onward, snapshot.texts_of(onward, "chunks"), strict=True):
        start = Start(key, text, names[key], found[key], link_titles(snapshot, key, scores))
        steps.go(list_paths(question, start, weights, paths[key].start.text))
    return steps.settle() if onward else (found, paths)


class _Steps:
    """Steps by names to other passages, each with its score."""

    def __init__(self, snapshot: Snapshot, scores: Mapping[str, float]) -> None:
        self._snapshot, self._scores = snapshot, scores
        self._least = min(scores.values(), default=0.0)
        self._word_part = SAID_PART / measure_rarest(snapshot)
        self._reached: dict[str, dict[str, tuple[float, Path]]] = {}

    def go(self, paths: Iterable[Path]) -> None:
        """The passages that paths lead to, each with its best score by each name."""
        for path in paths:
            rest = " ".join(path.rest)
            points = dict(self._snapshot.words_holding(path.name, rest, ONWARD))
            points.pop(path.start.key or "", None)
            held = find_holding(path.name, list(points), self._snapshot)
            held |= dict.fromkeys(path.targets, 1.0)
            rare = 1 - (len(held) - 1) / ONWARD
            for key, titled in held.items():
                score = (
                    START_PART * path.start.score
                    + OWN_PART * self._scores.get(key, self._least)
                    + self._word_part * points.get(key, 0.0)
                    + TITLE_PART * titled
                    + RARE_PART * rare
                    + ASKED_PART * path.asked
                    - TOLL
                )
                known = self._reached.setdefault(key, {})
                if path.name not in known or known[path.name][0] < score:
                    known[path.name] = score, path

    def settle(self) -> tuple[dict[str, float], dict[str, Path]]:
        """The scores of all passages, and the best path to those that paths make better.

        By how many better passages a name leads to, a passage that it leads to is the worse.
        """
        led: defaultdict[str, list[float]] = defaultdict(list)
        for known in self._reached.values():
            for name, (score, _) in known.items():
                insort(led[name], round(-score, 6))
        found, paths = dict(self._scores), dict[str, Path]()
        for key, known in self._reached.items():
            rated = [
                (
                    score
                    - FOLLOWING * min(bisect_left(led[name], round(-score, 6)), MOST_FOLLOWING),
                    path,
                )
                for name, (score, path) in known.items()
            ]
            score, path = max(rated, key=lambda pair: pair[0])
            if score >= found.get(key, score):
                found[key], paths[key] = score, path
        return found, paths


def start_from_passages(
    question: str, snapshot: Snapshot, scores: Mapping[str, float], titles: Collection[str]
) -> list[Start]:
    """The first passages as starts, of those that say a name of the question, and titled ones.

    `titles` are those of documents whose title the question says.

    A question of several steps begins at something that it names, in small letters too: what has
    the name as its title. One that names nothing is answered by a passage of its own, and going on
    from there only leads away.
    """
    named, said = find_anchors(question, snapshot), read_stems(question)
    order = sorted(scores, key=lambda key: (-scores[key], key))[:LOOKED]
    texts: dict[str, str] = {}
    for at, (key, text) in enumerate(zip(order, snapshot.texts_of(order, "chunks"), strict=True)):
        is_named = key in titles or names_title(said, text)
        titled = is_named and len(texts) < STARTS + TITLED
        if titled or (at < STARTS and not named.isdisjoint(read_stems(text))):
            texts[key] = text
    names = list_names(snapshot, list(texts))
    return [
        Start(key, text, names[key], scores[key], link_titles(snapshot, key, scores))
        for key, text in texts.items()
    ]


def link_titles(
    snapshot: Snapshot, key: str, scores: Mapping[str, float]
) -> dict[str, tuple[str, ...]]:
    """By title, the passages of the documents whose titles a passage says, at most `LINKED`.

    Of each document those that were found directly, or else its first.
    """
    linked = []
    for chunks in snapshot.link_titles(key):
        near = [chunk for chunk in chunks if chunk in scores]
        linked.append((max(map(scores.__getitem__, near), default=-math.inf), near or chunks[:1]))
    titled: dict[str, tuple[str, ...]] = {}
    for _, chunks in sorted(linked, key=lambda pair: -pair[0])[:LINKED]:
        name = read_title(snapshot.texts_of(chunks[:1], "chunks")[0])
        titled[name] = (*titled.get(name, ()), *chunks)
    return titled


def names_title(said: frozenset[str], text: str) -> bool:
    """Whether stems hold all that say something in a text's title."""
    words = [word for word in read_title(text).split() if word not in _ASIDE]
    return bool(words) and said.issuperset(w.stem_words(words))


def find_anchors(question: str, snapshot: Snapshot) -> frozenset[str]:
    """The stems of those words of a question that are written as names and stand in few passages.

    "UK" in a collection about British taxes names nothing to begin at.
    """
    written = find_names(question) - _ASIDE - _ASKING
    parts = sorted({part for word in written for part in w.WORD.findall(word)})[:ANCHORS]
    return frozenset(
        stem_word(part)
        for part in parts
        if 0 < len(snapshot.words(part, COMMON, "chunks")) < COMMON
    )


def list_names(snapshot: Snapshot, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The names in some passages in the form of `join_name`, first place first."""
    places: dict[str, dict[str, int]] = {key: {} for key in keys}
    for mention in snapshot.mentions_in(keys):
        name, start = join_name(mention["text"]), int(mention["start"])
        own = places[mention["chunk_id"]]
        if name and mention["type"] not in _NO_NAMES:
            own[name] = min(start, own.get(name, start))
    return {
        key: tuple(sorted(own, key=lambda name: (own[name], name))) for key, own in places.items()
    }


def start_from_facts(
    snapshot: Snapshot, scores: Mapping[str, float], facts: Sequence[str]
) -> list[Start]:
    """Statements from the layers above as starts, each as good as the best passage.

    What is carried down was found relevant to the question.
    """
    best = max(scores.values(), default=0.0)
    return [
        Start(None, fact, tuple(map(join_name, link_text(fact, snapshot).names)), best)
        for fact in facts[:CARRIED]
    ]


def list_paths(
    question: str, start: Start, weights: Mapping[str, float], said: str = ""
) -> list[Path]:
    """The ways on from a start: by the names in it that are new to the question.

    `said` is the text that led to the start: what of the question it says is not looked for again.
    """
    words = frozenset(w.WORD.findall(question.casefold()))
    title = read_title(start.text) if start.key else ""
    rest = find_rest(question, f"{start.text} {said}" if said else start.text)
    new = [name for name in start.names if name != title and not words.issuperset(name.split())]
    rows = dict[str, float]()
    for span in split_sentences(start.text) if start.key else ():
        stems = read_stems(sentence := start.text[span.start : span.end])
        rows[read_row(sentence)[0]] = sum(weights[stem] for stem in weights if stem in stems)
    new = [*new[:NAMES], *(n for n in start.titled if not words.issuperset(n.split()))]
    asked = {name: [rows[row] for row in rows if f" {name} " in row] for name in new}
    usual = 0.0 if start.key else USUAL
    return [
        Path(start, name, rest, max(asked[name], default=usual), start.titled.get(name, ()))
        for name in asked
    ]


def weigh_words(question: str, snapshot: Snapshot) -> dict[str, float]:
    """The shares of a question's words in it, by stem: what BM25 gives a passage for each."""
    words = {stem_word(word): word for word in w.WORD.findall(question.casefold())}
    looked = [stem for stem in words if words[stem] not in _ASIDE][:ANCHORS]
    found = {stem: snapshot.words(words[stem], 1, "chunks") for stem in looked}
    best = {stem: points for stem in looked for _, points in found[stem]}
    return {stem: points / sum(best.values()) for stem, points in best.items()}


def find_rest(question: str, text: str) -> tuple[str, ...]:
    """The words of a question that a text does not say, in order."""
    said = read_stems(text)
    return tuple(
        word
        for word in w.WORD.findall(question)
        if (low := word.casefold()) in _ASKING or (low not in _ASIDE and stem_word(low) not in said)
    )


def find_holding(name: str, keys: Sequence[str], snapshot: Snapshot) -> dict[str, float]:
    """Those of some passages that hold a name, with `measure_titled` of it."""
    rows = map(read_row, snapshot.texts_of(keys, "chunks"))
    return {
        key: measure_titled(name, title)
        for key, (row, title) in zip(keys, rows, strict=True)
        if f" {name} " in row
    }


def measure_titled(name: str, title: str) -> float:
    """1 for a title that is the name, a half for one with the name in it."""
    return 1.0 if title == name else 0.5 * (f" {name} " in f" {title} ")


def read_title(text: str) -> str:
    """The first line without what stands in brackets, in the form of `join_name`."""
    return join_name(re.sub(r"\(.*?\)", "", text.partition("\n")[0]))


@lru_cache(maxsize=4096)
def read_row(text: str) -> tuple[str, str]:
    """A text's words in a row between spaces, and its title."""
    return f" {' '.join(w.WORD.findall(text.casefold()))} ", read_title(text)


@lru_cache(maxsize=1024)
def read_stems(text: str) -> frozenset[str]:
    """The stems of a text's words."""
    return frozenset(w.stem_words(w.WORD.findall(text.casefold())))


def join_name(text: str) -> str:
    """The words of a name in small letters, without an article before them."""
    words = w.WORD.findall(text.casefold())
    return " ".join(words[1:] if words[:1] and words[0] in w.ARTICLES else words)


def stem_word(word: str) -> str:
    """A word's stem, in small letters."""
    return w.stem_words([word.casefold()])[0]


# The passages of a question, by one of these ways.

By = Literal["bm25", "vectors", "both", "walk"]


def find_passages(asked: QuestionAnalysis, k: int, *, by: By = "walk") -> list[Item]:
    """The passages of `find_connected` without the paths between them."""
    return find_connected(asked, k, by=by)[0]


def find_connected(
    asked: QuestionAnalysis, k: int, *, by: By = "walk", facts: Sequence[str] = ()
) -> tuple[list[Item], dict[str, Path]]:
    """The k passages of the text layer most relevant to a question, best first.

    `bm25` ranks by words, `vectors` by cosine, `both` by the two and by where passages stand (see
    `rank_directly`). `walk` is for questions that no single passage answers: from the first
    passages and from `facts`, statements found in the layers above, it goes on to passages about
    what they name. Fewer come back where the layer has fewer, by `bm25` also where fewer share a
    word with the question.
    """
    if k < 1:
        return [], {}
    question, snapshot = asked.text, asked.snapshot
    paths: dict[str, Path] = {}
    if by == "bm25":
        scores = dict(snapshot.words(question, k, "chunks"))
    elif by == "vectors":
        scores = snapshot.nearest(question, k, "chunks")
    else:
        named = snapshot.find_titled(question)
        scores = rank_directly(question, snapshot, named, max(k, POOL))
        if by == "walk":
            titles = {key for chunks in named for key in chunks}
            scores, paths = hop_by_names(question, snapshot, scores, facts, titles)
    best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
    items = [
        Item(key, place.text, "text", float(score), (place,))
        for key, score in best
        for place in snapshot.evidence(key)
    ]
    return items, {key: paths[key] for key, _ in best if key in paths}
