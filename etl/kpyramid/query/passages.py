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
"""Passages retrieved by words and by vectors each; gold passages are seldom ranked lower."""
WORDS_PART = 0.1
"""Weight of a word in a single passage, in units of cosine. It is not relative to the best
passage's score: where all words of a question are common, words should count little."""
NAMED_PART = 0.25
"""Bonus of a passage whose title the question contains: questions name their subject."""
CROWD = 10
"""Number of nearest passages of other documents that measure how crowded a passage's region is."""
CROWD_PART = 0.4
"""Weight of the crowd's mean cosine, which is subtracted: a hub is near to all questions."""
FIRST = 10
"""Number of first passages from which pseudo-relevance feedback is computed."""
FIRST_PART = 0.25
"""Weight of the cosine to their mean: answers to the same question are similar."""
STEEPNESS = 30.0
"""Decay of a first passage's weight with the distance of its score from the best."""


def rank_directly(
    question: str, snapshot: Snapshot, named: Collection[Sequence[str]] = (), pool: int = POOL
) -> dict[str, float]:
    """The scores of the passages retrieved by words or vectors, by key.

    `named`: passages of each document whose title the question contains; the first of each is
    added.
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
    """Each vector's mean cosine with the `CROWD` nearest of other documents, shape (n,); else 0.

    Vectors of many dimensions have hubs, which are among the nearest of very many others
    (Radovanović et al., JMLR 2010); subtracting the mean cosine of the neighbours corrects for them
    (Conneau et al., ICLR 2018, CSLS). Here the neighbours are those in the pool.
    """
    cosines = units @ units.T
    cosines[documents[:, None] == documents] = -np.inf
    nearest = np.partition(cosines, -CROWD, axis=1)[:, -CROWD:] if len(units) > CROWD else cosines
    counted = np.isfinite(nearest)
    total = np.where(counted, nearest, 0).sum(axis=1)
    return np.asarray(total / np.maximum(counted.sum(axis=1), 1), dtype=np.float32)


def measure_rarest(snapshot: Snapshot) -> float:
    """BM25's idf of a word that occurs in a single passage."""
    return math.log(1 + (snapshot.count("chunks") - 0.5) / 1.5)


def average_first(scores: Matrix, units: Matrix) -> Matrix:
    """The unit mean of the first passages' vectors, weighted by their scores, shape (d,).

    Pseudo-relevance feedback (Rocchio 1971), on vectors.
    """
    first = np.argsort(-scores, kind="stable")[:FIRST]
    shares = np.exp(STEEPNESS * (scores[first] - scores[first[0]]))
    mean = shares @ units[first]
    return np.asarray(mean / np.linalg.norm(mean), dtype=np.float32)


# Multi-hop retrieval: from passages that answer a part of a question to passages about the rest.

_ASIDE = WORDS["aside"] | (
    (w.ARTICLES | w.AUXILIARIES | w.JOINING | w.MODALS | w.PREPOSITIONS | w.POINTING)
    - {"having", "must", "ought", "shall"}
)
_NO_NAMES, _ASKING = WORDS["no_names"], WORDS["interrogative"]

STARTS = 3
"""Number of first passages that multi-hop retrieval starts from if they contain a named word."""
LOOKED, TITLED = 10, 2
"""Number of first passages to start from if the question contains their title, and most further."""
CARRIED = 5
"""Most statements to start from."""
NAMES = 8
"""Most names of a start to follow, in order of position: later ones are seldom of its subject."""
LINKED = 20
"""Most documents to follow from a start that contains their titles, nearest to the question."""
ONWARD = 20
"""Most passages retrieved for each name."""

ANCHORS = 20
"""Most words, and words written as names, that are looked up; a question with more is a text."""
COMMON = 30
"""Number of passages with a word from which it does not identify a thing."""

START_PART = 0.5
"""Weight of the start's score in the score of a passage reached from it."""
DIRECT_PART = 0.3
"""Weight of the passage's direct score for the whole question."""
WORD_PART = 0.145
"""Weight of a word of the name or the rest that only this passage contains."""
TITLE_PART = 0.12
"""Bonus of a title that equals the name; half of it if the title contains the name."""
RARE_PART = 0.1
"""Bonus of a name that no other passage contains."""
ASKED_PART = 0.25
"""Bonus of a sentence that contains the name and the whole question."""
USUAL = 0.25
"""Usual share of the question in such a sentence; used for statements."""
TOLL = 0.2
"""Cost of a step, so that scores of reached and directly retrieved passages are comparable."""
FOLLOWING, MOST_FOLLOWING = 0.04, 3
"""Penalty per better passage reached by the same name, and their largest number: a name that many
passages share would otherwise fill the first ranks."""
REACHED = 2
"""Number of first passages after a step from which, if it reached them, a second step starts."""


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a hop: its key if it is a passage, its text, names and score.

    `titled`: passages of documents whose titles it contains, by title.
    """

    key: str | None
    text: str
    names: tuple[str, ...]
    score: float
    titled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Path:
    """A step by a name, with the rest of the question that the start does not contain.

    `asked`: share of the question in the start's sentence with the name; `targets`: passages with
    the name as their title.
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

    `scores`: of directly retrieved passages; `titles`: keys of those whose title the question
    contains. A second step starts from the best passages that a first step reached. A passage has
    the best of its direct score and those of its paths.
    Nothing is embedded: BM25 measures how well a passage covers the rest.
    """
    starts = [
        *start_from_passages(question, snapshot, scores, titles),
        *start_from_facts(snapshot, scores, facts),
    ]
    steps = _Steps(snapshot, scores)
    weights = weigh_words(question, snapshot) if any(start.key for start in starts) else {}
    steps.go([path for start in starts for path in list_paths(question, start, weights)])
    reached, paths = steps.settle()
    begun = {start.key for start in starts}
    best = sorted(reached, key=lambda key: (-reached[key], key))[:REACHED]
    onward = [key for key in best if key in paths and key not in begun]
    names = list_names(snapshot, onward)
    for key, text in zip(onward, snapshot.texts_of(onward, "chunks"), strict=True):
        start = Start(key, text, names[key], reached[key], link_titles(snapshot, key, scores))
        steps.go(list_paths(question, start, weights, paths[key].start.text))
    return steps.settle() if onward else (reached, paths)


class _Steps:
    """Steps by names to other passages, each with its score."""

    def __init__(self, snapshot: Snapshot, scores: Mapping[str, float]) -> None:
        self._snapshot, self._scores = snapshot, scores
        self._least = min(scores.values(), default=0.0)
        self._word_part = WORD_PART / measure_rarest(snapshot)
        self._reached: dict[str, dict[str, tuple[float, Path]]] = {}

    def go(self, paths: Iterable[Path]) -> None:
        """Follows paths and notes the best score of each passage reached, by name."""
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
                    + DIRECT_PART * self._scores.get(key, self._least)
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
        """The scores of all passages, and the best path to those that a path improves.

        A passage loses `FOLLOWING` for each better passage reached by the same name.
        """
        led: defaultdict[str, list[float]] = defaultdict(list)
        for known in self._reached.values():
            for name, (score, _) in known.items():
                insort(led[name], round(-score, 6))
        best, paths = dict(self._scores), dict[str, Path]()
        for key, known in self._reached.items():
            rated = []
            for name, (score, path) in known.items():
                better = bisect_left(led[name], round(-score, 6))
                rated.append((score - FOLLOWING * min(better, MOST_FOLLOWING), path))
            score, path = max(rated, key=lambda pair: pair[0])
            if score >= best.get(key, score):
                best[key], paths[key] = score, path
        return best, paths


def start_from_passages(
    question: str, snapshot: Snapshot, scores: Mapping[str, float], titles: Collection[str]
) -> list[Start]:
    """The starts among the first passages: those with a name of the question, and titled ones.

    `titles`: keys of passages of documents whose title the question contains.

    A question of several steps begins at a thing that it names, also in lower case: the subject of
    a document with that title. A question without names is answered by a single passage, from which
    further steps only lead away.
    """
    named, stems = find_anchors(question, snapshot), read_stems(question)
    order = sorted(scores, key=lambda key: (-scores[key], key))[:LOOKED]
    texts: dict[str, str] = {}
    for i, (key, text) in enumerate(zip(order, snapshot.texts_of(order, "chunks"), strict=True)):
        is_named = key in titles or names_title(stems, text)
        titled = is_named and len(texts) < STARTS + TITLED
        if titled or (i < STARTS and not named.isdisjoint(read_stems(text))):
            texts[key] = text
    names = list_names(snapshot, list(texts))
    return [
        Start(key, text, names[key], scores[key], link_titles(snapshot, key, scores))
        for key, text in texts.items()
    ]


def link_titles(
    snapshot: Snapshot, key: str, scores: Mapping[str, float]
) -> dict[str, tuple[str, ...]]:
    """Passages of up to `LINKED` documents whose titles a passage contains, by title.

    Of each document the directly retrieved passages, or else its first.
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


def names_title(stems: frozenset[str], text: str) -> bool:
    """Whether stems include those of all content words of a text's title."""
    words = [word for word in read_title(text).split() if word not in _ASIDE]
    return bool(words) and stems.issuperset(w.stem_words(words))


def find_anchors(question: str, snapshot: Snapshot) -> frozenset[str]:
    """The stems of a question's words that are written as names and occur in few passages.

    "UK" in a collection about British taxes is no name to start from.
    """
    written = find_names(question) - _ASIDE - _ASKING
    parts = sorted({part for word in written for part in w.WORD.findall(word)})[:ANCHORS]
    return frozenset(
        stem_word(part)
        for part in parts
        if 0 < len(snapshot.words(part, COMMON, "chunks")) < COMMON
    )


def list_names(snapshot: Snapshot, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The names in some passages in the form of `join_name`, in order of position."""
    places: dict[str, dict[str, int]] = {key: {} for key in keys}
    for mention in snapshot.mentions_in(keys):
        name, start = join_name(mention["text"]), int(mention["start"])
        starts = places[mention["chunk_id"]]
        if name and mention["type"] not in _NO_NAMES:
            starts[name] = min(start, starts.get(name, start))
    return {
        key: tuple(sorted(starts, key=lambda n: (starts[n], n))) for key, starts in places.items()
    }


def start_from_facts(
    snapshot: Snapshot, scores: Mapping[str, float], facts: Sequence[str]
) -> list[Start]:
    """Statements from the layers above as starts, each with the best passage's score.

    Statements that are carried down are relevant to the question.
    """
    best = max(scores.values(), default=0.0)
    return [
        Start(None, fact, tuple(map(join_name, link_text(fact, snapshot).names)), best)
        for fact in facts[:CARRIED]
    ]


def list_paths(
    question: str, start: Start, weights: Mapping[str, float], before: str = ""
) -> list[Path]:
    """The paths from a start by those of its names that the question does not contain.

    `before`: the text that led to the start; the rest of the question excludes its words.
    """
    words = frozenset(w.WORD.findall(question.casefold()))
    title = read_title(start.text) if start.key else ""
    rest = find_rest(question, f"{start.text} {before}" if before else start.text)
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
    """The share of each of a question's words, by stem, in the sum of their BM25 scores."""
    words = {stem_word(word): word for word in w.WORD.findall(question.casefold())}
    looked = [stem for stem in words if words[stem] not in _ASIDE][:ANCHORS]
    hits = {stem: snapshot.words(words[stem], 1, "chunks") for stem in looked}
    best = {stem: points for stem in looked for _, points in hits[stem]}
    return {stem: points / sum(best.values()) for stem, points in best.items()}


def find_rest(question: str, text: str) -> tuple[str, ...]:
    """The words of a question that a text does not contain, in order."""
    seen = read_stems(text)
    return tuple(
        word
        for word in w.WORD.findall(question)
        if (low := word.casefold()) in _ASKING or (low not in _ASIDE and stem_word(low) not in seen)
    )


def find_holding(name: str, keys: Sequence[str], snapshot: Snapshot) -> dict[str, float]:
    """The passages among `keys` that contain a name, each with its `measure_titled`."""
    rows = map(read_row, snapshot.texts_of(keys, "chunks"))
    return {
        key: measure_titled(name, title)
        for key, (row, title) in zip(keys, rows, strict=True)
        if f" {name} " in row
    }


def measure_titled(name: str, title: str) -> float:
    """1 for a title that equals the name, 0.5 for one that contains it, else 0."""
    return 1.0 if title == name else 0.5 * (f" {name} " in f" {title} ")


def read_title(text: str) -> str:
    """The first line without text in brackets, in the form of `join_name`."""
    return join_name(re.sub(r"\(.*?\)", "", text.partition("\n")[0]))


@lru_cache(maxsize=4096)
def read_row(text: str) -> tuple[str, str]:
    """A text's words joined and enclosed by spaces, and its title."""
    return f" {' '.join(w.WORD.findall(text.casefold()))} ", read_title(text)


@lru_cache(maxsize=1024)
def read_stems(text: str) -> frozenset[str]:
    """The stems of a text's words."""
    return frozenset(w.stem_words(w.WORD.findall(text.casefold())))


def join_name(text: str) -> str:
    """The words of a name in lower case, without a leading article."""
    words = w.WORD.findall(text.casefold())
    return " ".join(words[1:] if words[:1] and words[0] in w.ARTICLES else words)


def stem_word(word: str) -> str:
    """A word's stem, in lower case."""
    return w.stem_words([word.casefold()])[0]


# The passages of a question, by one of these methods.

By = Literal["bm25", "vectors", "both", "walk"]


def find_passages(asked: QuestionAnalysis, k: int, *, by: By = "walk") -> list[Item]:
    """The passages of `find_connected` without the paths between them."""
    return find_connected(asked, k, by=by)[0]


def find_connected(
    asked: QuestionAnalysis, k: int, *, by: By = "walk", facts: Sequence[str] = ()
) -> tuple[list[Item], dict[str, Path]]:
    """The k passages of the text layer most relevant to a question, best first.

    `bm25` ranks by words, `vectors` by cosine, `both` by the two and by the passages' region (see
    `rank_directly`). `walk` is for questions that no single passage answers: from the first
    passages and from `facts`, statements of the layers above, it continues to passages about the
    things that they name. Fewer are returned where the layer has fewer, by `bm25` also where fewer
    share a word with the question.
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
    return show_passages(best, snapshot), {key: paths[key] for key, _ in best if key in paths}


def show_passages(scored: Iterable[tuple[str, float]], snapshot: Snapshot) -> list[Item]:
    """Passages with their scores as context, by their keys."""
    return [
        Item(key, place.text, "text", float(score), (place,))
        for key, score in scored
        for place in snapshot.evidence(key)
    ]
