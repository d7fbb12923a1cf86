"""MINE (KGGen, Mo et al. 2025): facts of essays, what a graph offers about them, and a judge.

Retrieval is the published one (section 4): the eight nodes nearest to the fact are looked up, and
from each of them every triple that leads away from it in at most two steps. The graph is directed
and joins a head and a tail by one triple at most, the last one given, and each node speaks for
itself, so that a triple may come twice. A node that is only ever a tail offers nothing.

The judge stands in for GPT-4 and is calibrated on GPT-4's recorded verdicts: a regularised logistic
model over signs of entailment. No sign counts triples or words of the context, and no sign can fall
by leaving words out or rise by adding triples that have nothing to do with the fact.

As a set of questions, each fact is a query for its essay: a fact is true of no other one.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kpyramid.documents.words import lemmatise
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.errors import InputError
from kpyramid.evaluation.questions import EvalQuestion
from sets.files import QuestionSet, find_by_fields, read_json_lines, read_licence

TOP_NODES = 8
HOPS = 2


class Triple(NamedTuple):
    """A head, a relation and a tail in words."""

    head: str
    relation: str
    tail: str

    @property
    def sentence(self) -> str:
        """The triple as the judge reads it."""
        return f"{self.head} {self.relation} {self.tail}."


class Graph:
    """Triples by their heads, and the vectors of all nodes."""

    def __init__(self, triples: Sequence[Triple], embedder: Embedder) -> None:
        joined = {(t.head, t.tail): t for t in triples}
        self.nodes = tuple(sorted({node for pair in joined for node in pair}))
        self._vectors: Matrix | None = embedder.embed(self.nodes) if self.nodes else None
        self._leaving: dict[str, list[Triple]] = {node: [] for node in self.nodes}
        for triple in sorted(joined.values()):
            self._leaving[triple.head].append(triple)

    def rank_nodes(self, vector: Matrix, count: int = TOP_NODES) -> list[str]:
        """The nodes most similar to a vector of shape (size,), best first; ties by alphabet."""
        if self._vectors is None:
            return []
        order = np.argsort(-(self._vectors @ vector), kind="stable")
        return [self.nodes[at] for at in order[:count]]

    def follow(self, node: str, hops: int = HOPS) -> list[Triple]:
        """The triples at most `hops` steps ahead of a node, nearest first, each once."""
        found: dict[Triple, None] = {}
        front = [node]
        for _ in range(hops):
            step = [triple for at in front for triple in self._leaving[at]]
            front = sorted({triple.tail for triple in step})
            found.update(dict.fromkeys(step))
        return list(found)

    def retrieve(self, vector: Matrix) -> list[Triple]:
        """The context of a fact's vector: node by node, a triple as often as nodes lead to it."""
        return [triple for node in self.rank_nodes(vector) for triple in self.follow(node)]


def read_context(text: str, triples: Sequence[Triple]) -> list[Triple]:
    """The triples that a recorded context lists, in its order.

    Words that no triple of the graph accounts for (a full stop within a name, a graph that lacks
    the triple) are kept as a triple with head alone, sentence by sentence.
    """
    by_sentence: Mapping[str, Triple] = {t.sentence: t for t in triples}
    longest_first = sorted(by_sentence, key=lambda sentence: (-len(sentence), sentence))
    found: list[Triple] = []
    rest = text.strip()
    while rest:
        match = next((s for s in longest_first if rest.startswith(s)), None)
        if match is None:
            match = rest.split(". ", 1)[0]
            found.append(Triple(match.rstrip("."), "", ""))
            rest = rest[len(match) :].lstrip(". ")
        else:
            found.append(by_sentence[match])
            rest = rest[len(match) :].lstrip()
    return found


def measure_overlap(one: Sequence[Triple], other: Sequence[Triple]) -> float:
    """The share of two contexts' triples that both have (Jaccard); 1 when both are empty."""
    union = set(one) | set(other)
    return len(set(one) & set(other)) / len(union) if union else 1.0


Floats = npt.NDArray[np.float64]

FEATURES = (
    "similarity",  # cosine of the fact and its three nearest triples read together
    "words",  # share of the fact's content words, by lemma, in the best chain of three triples
    "meaning",  # the same, where a word near in meaning counts in part
    "weakest_word",  # 1 when that chain holds every content word
    "beginning",  # meaning covered in the first third of the words: mostly the subject
    "ending",  # in the last third: mostly what is said of it
    "numbers",  # 1 when the context holds every number of the fact; 1 without numbers
    "names",  # share of the fact's names in the context; 1 without names
)
"""Negation is no sign: fact and triples differ in it in 2 % of the recorded cases, and GPT-4 found
half of those facts; the graph keeps what is denied out of its triples anyway."""

_CHAIN = 3
_NEAREST = 3
_WORD = re.compile(r"\d+(?:[.,]\d+)+|[^\W_]+")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][\w'-]*")
"""A capital inside a sentence; the first word has one anyway."""
_EMPTY = frozenset(
    (
        "a an the of in on at to from by with for as into onto over under about through during "
        "between among and or but nor so yet if then than that this these those it its they them "
        "their there here he she his her him we our us you your i who whom whose which what when "
        "where while how why be am is are was were been being do does did done have has had "
        "having can could may might will would shall should must not no n't t s also often "
        "usually typically generally such more most some many various several each every other "
        "another both all any only very own"
    ).split()
)
_UNRELATED, _EQUAL = 0.3, 0.8
"""Cosines of single words: chance pairs lie below the first, inflections above the second."""
_NEAR = 0.9
"""The most that nearness in meaning counts: a synonym is a little less than the word."""


def measure_support(fact: str, context: Sequence[Triple], embedder: Embedder) -> Floats:
    """The signs that the context states the fact, in the order of `FEATURES`."""
    triples = sorted(set(context))
    words = list_words(fact)
    if not triples or not words:
        return np.zeros(len(FEATURES))
    sentences = [triple.sentence for triple in triples]
    vector = embedder.embed([fact])[0]
    near = embedder.embed(sentences) @ vector
    nearest = np.argsort(-near, kind="stable")[:_NEAREST]
    together = embedder.embed([" ".join(sentences[at] for at in nearest)])[0] @ vector
    exact, meaning = _cover_words(words, [list_words(text) for text in sentences], embedder)
    chain = exact[_chain_triples(triples, exact, near)].max(axis=0)
    third = max(1, len(words) // 3)
    in_context = exact.max(axis=0)
    numbers = [at for at, word in enumerate(words) if word[0].isdigit()]
    names = [at for at, word in enumerate(words) if word in _list_names(fact)]
    return np.array(
        [
            together,
            chain.mean(),
            meaning[_chain_triples(triples, meaning, near)].max(axis=0).mean(),
            chain.min(),
            meaning[:, :third].max(axis=0).mean(),
            meaning[:, -third:].max(axis=0).mean(),
            in_context[numbers].min() if numbers else 1.0,
            in_context[names].mean() if names else 1.0,
        ]
    )


@lru_cache(maxsize=200_000)
def list_words(text: str) -> tuple[str, ...]:
    """The lemmas of the content words, each once, in order; numbers stay as they are."""
    lemmas = (lemmatise(word) for word in _WORD.findall(text.lower()) if word not in _EMPTY)
    return tuple(dict.fromkeys(lemma for lemma in lemmas if lemma not in _EMPTY))


class Judge:
    """A verdict for a row of signs, learnt from verdicts."""

    def __init__(self, signs: Floats, verdicts: Sequence[bool]) -> None:
        """Learns from signs of shape (verdicts, FEATURES)."""
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        known = signs.any(axis=1)  # an empty context is decided without a model
        self._model: Any = make_pipeline(StandardScaler(), LogisticRegression(C=1.0, max_iter=1000))
        self._model.fit(signs[known], np.asarray(verdicts)[known])

    def estimate(self, signs: Floats) -> Floats:
        """The probability that GPT-4 would find the fact, one per row; 0 for an empty context."""
        chances = np.asarray(self._model.predict_proba(signs)[:, 1], dtype=np.float64)
        return np.where(signs.any(axis=1), chances, 0.0)

    def decide(self, signs: Floats) -> list[bool]:
        """Whether the fact is found, one per row."""
        return [bool(chance >= 0.5) for chance in self.estimate(signs)]

    @property
    def weights(self) -> dict[str, float]:
        """What one standard deviation of each sign adds to the log odds."""
        return dict(zip(FEATURES, map(float, self._model[-1].coef_[0]), strict=True))


def _cover_words(
    words: Sequence[str], triples: Sequence[Sequence[str]], embedder: Embedder
) -> tuple[Floats, Floats]:
    """How far each triple holds each word of the fact, by lemma and by meaning, in [0, 1]."""
    vocabulary = sorted({word for triple in triples for word in triple})
    place = {word: at for at, word in enumerate(vocabulary)}
    exact = np.array(
        [[float(_share_stem(word, other)) for other in vocabulary] for word in words]
    ).reshape(len(words), len(vocabulary))
    cosine = embedder.embed(words) @ embedder.embed(vocabulary).T if vocabulary else exact
    scaled = np.clip((cosine - _UNRELATED) / (_EQUAL - _UNRELATED), 0.0, _NEAR)
    meaning = np.maximum(exact, scaled)
    rows = [[place[word] for word in triple] for triple in triples]
    nothing = np.zeros(len(words))
    return (
        np.stack([exact[:, row].max(axis=1) if row else nothing for row in rows]),
        np.stack([meaning[:, row].max(axis=1) if row else nothing for row in rows]),
    )


@lru_cache(maxsize=500_000)
def _share_stem(one: str, other: str) -> bool:
    """Whether two lemmas are one word or a derivation of it: transform, transformation."""
    if one == other or one[0].isdigit() or other[0].isdigit():
        return one == other
    shared = next(
        (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b),
        min(len(one), len(other)),
    )
    shorter, longer = sorted((len(one), len(other)))
    return shared >= 4 and shared >= shorter - 2 and shared >= 0.55 * longer


def _chain_triples(triples: Sequence[Triple], covered: Floats, near: Floats) -> list[int]:
    """The triples that together cover most, each sharing a node with an earlier one."""
    chain: list[int] = []
    total = np.zeros(covered.shape[1])
    nodes: set[str] = set()
    while len(chain) < min(_CHAIN, len(triples)):
        choice = [
            at
            for at, triple in enumerate(triples)
            if at not in chain and (not nodes or {triple.head.lower(), triple.tail.lower()} & nodes)
        ]
        if not choice:
            break
        best = max(choice, key=lambda at: (np.maximum(total, covered[at]).mean(), near[at], -at))
        chain.append(best)
        total = np.maximum(total, covered[best])
        nodes |= {triples[best].head.lower(), triples[best].tail.lower()} - {""}
    return chain


def _list_names(fact: str) -> set[str]:
    return {word for name in _NAME.findall(fact) for word in list_words(name)}


@dataclass(frozen=True, slots=True)
class Recorded:
    """The signs of the recorded contexts, shape (verdicts, FEATURES), and what goes with them."""

    signs: Floats
    half: npt.NDArray[np.int_]
    found: npt.NDArray[np.bool_]
    system: npt.NDArray[np.str_]

    def learn_judges(self, without: str = "") -> tuple[Judge, Judge]:
        """A judge that learnt from the first half's verdicts, one that learnt from the second's.

        `without` leaves a system's verdicts out.
        """
        seen = [(self.half == half) & (self.system != without) for half in (0, 1)]
        one, other = (Judge(self.signs[rows], list(self.found[rows])) for rows in seen)
        return one, other


def decide(
    judges: tuple[Judge, Judge], signs: Floats, half: int | npt.NDArray[np.int_]
) -> npt.NDArray[np.bool_]:
    """The verdicts, each by the judge that learnt from the other half."""
    return np.where(half == 1, judges[0].decide(signs), judges[1].decide(signs)).astype(bool)


def measure_agreement(one: Sequence[bool], other: Sequence[bool]) -> float:
    """The share of equal verdicts."""
    return sum(a == b for a, b in zip(one, other, strict=True)) / len(one)


def measure_kappa(one: Sequence[bool], other: Sequence[bool]) -> float:
    """Cohen's kappa: agreement beyond chance over the most there can be; 0 when nobody varies."""
    yes, other_yes = sum(one) / len(one), sum(other) / len(other)
    chance = yes * other_yes + (1 - yes) * (1 - other_yes)
    if chance == 1.0:
        return 0.0
    return (measure_agreement(one, other) - chance) / (1 - chance)


def measure_majority(verdicts: Sequence[bool]) -> float:
    """The agreement of a judge who always gives the commoner verdict."""
    yes = sum(verdicts) / len(verdicts)
    return max(yes, 1 - yes)


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when no file holds essays with facts."""
    paths = find_by_fields(folder, "*.jsonl", "id", "text", "facts")
    if not paths:
        return None
    path = paths[0]
    essays: dict[str, Mapping[str, Any]] = {str(row["id"]): row for row in read_json_lines(path)}
    said: Counter[str] = Counter()
    for row in essays.values():
        if not isinstance(row["facts"], list):
            raise InputError(f"{path}: essay {row['id']} has no list of facts")
        said.update(map(str, row["facts"]))
    shared = sum(count for count in said.values() if count > 1)
    return QuestionSet(
        folder.name,
        tuple(
            {"id": key, "title": str(row.get("topic", "")), "text": str(row["text"])}
            for key, row in essays.items()
        ),
        tuple(
            EvalQuestion(f"{key}-{n}", str(fact), "retrieval", gold_documents=(key,))
            for key, row in essays.items()
            for n, fact in enumerate(row["facts"])
            if said[str(fact)] == 1
        ),
        read_licence(folder),
        "each fact is a query for the essay that states it: MINE has no questions, and every fact "
        "is true, so there is no other answer to give",
        {"several essays have this fact": shared} if shared else {},
    )
