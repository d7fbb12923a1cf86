"""MuSiQue (Trivedi et al., TACL 2022): multi-hop questions, their passages and their hop facts.

Each hop has a fact, the passage that states it, and the two names it joins. A hop fact counts as
found when one triple of its passage joins both names.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kpyramid.embeddings.port import Matrix
from kpyramid.evaluation.questions import EvalQuestion
from sets.files import QuestionSet, read_json, read_licence

Triple = tuple[str, str, str]
Words = tuple[str, ...]

_MAX_ARGUMENT_WORDS = 8
"""A longer argument would match by containing half of the sentence."""
_ARTICLES = frozenset({"a", "an", "the"})
_WORD = re.compile(r"\w+")
_BE = frozenset("be is are am was were been being".split())
_FUNCTION_WORDS = _BE | frozenset(
    (
        "has have had having do does did done will would can could may might shall should must not "
        "n't also a an the and or but "
        "about above across after against along amid among around as at before behind below "
        "beneath beside besides between beyond by despite down during except for from in inside "
        "into like near of off on onto out outside over past per since than through throughout "
        "till to toward towards under underneath until unto up upon via with within without"
    ).split()
)
"""The closed classes: auxiliaries, articles, conjunctions, prepositions."""


@dataclass(frozen=True, slots=True)
class HopFact:
    """A fact that a question needs: the two names it joins, and the passage that states it."""

    subject: str
    object: str
    passage: str


def list_words(text: str) -> Words:
    """The words of a name, in small letters and without articles."""
    return tuple(w for w in _WORD.findall(text.lower()) if w not in _ARTICLES)


def matches(argument: Words, name: Words) -> bool:
    """Whether one of the two contains the other as a run of words."""
    if not argument or not name or len(argument) > _MAX_ARGUMENT_WORDS:
        return False
    short, long = sorted((argument, name), key=len)
    return any(
        long[start : start + len(short)] == short for start in range(len(long) - len(short) + 1)
    )


def joins(triple: Triple, hop: HopFact) -> bool:
    """Whether head and tail name the two ends of the hop, in either direction."""
    head, tail = list_words(triple[0]), list_words(triple[2])
    one, other = list_words(hop.subject), list_words(hop.object)
    return (matches(head, one) and matches(tail, other)) or (
        matches(head, other) and matches(tail, one)
    )


def score_hop_facts(
    hops: Sequence[HopFact], triples: Mapping[str, Iterable[Triple]]
) -> tuple[bool, ...]:
    """For each hop whether one of its passage's triples joins its names; keyed by passage text."""
    return tuple(any(joins(t, hop) for t in triples.get(hop.passage, ())) for hop in hops)


def is_empty_relation(relation: str, tail: str, is_kind: Callable[[str], bool]) -> bool:
    """Whether a relation says nothing about how its arguments are joined.

    It does when it is made of auxiliaries, prepositions and articles alone. "is a", "is the" and,
    before a plural, "are" stand only before a kind: `is_kind` tells whether a text is headed by a
    common noun, not by a name, a number, a date or an adjective.
    """
    words = re.findall(r"[\w']+", relation.lower())
    singular = len(words) == 2 and words[0] in _BE and words[1] in {"a", "an", "the"}
    if singular or words in (["are"], ["were"]):
        return not is_kind(tail)
    return all(word in _FUNCTION_WORDS for word in words)


@dataclass(frozen=True, slots=True)
class RetrievalScores:
    """Mean share of gold passages among the first k, and share of questions with all of them."""

    recall: Mapping[int, float]
    all_gold: Mapping[int, float]


def score_retrieval(
    questions: Matrix, passages: Matrix, gold: Sequence[frozenset[int]], ranks: Sequence[int]
) -> RetrievalScores:
    """Scores of the passages nearest to each question; ties go to the earlier passage.

    `questions` and `passages` hold one vector of unit length per row; `gold` the rows of
    `passages` that answer each question.

    Raises:
        ValueError: there is no question, or one without a gold passage.
    """
    if not gold or not all(gold):
        raise ValueError("no retrieval to score: give questions with gold passages")
    order = np.argsort(-(questions @ passages.T), axis=1, kind="stable")
    pairs = list(zip(gold, order.tolist(), strict=True))
    shares = {k: [len(rows & set(found[:k])) / len(rows) for rows, found in pairs] for k in ranks}
    return RetrievalScores(
        {k: sum(values) / len(values) for k, values in shares.items()},
        {k: sum(value == 1 for value in values) / len(values) for k, values in shares.items()},
    )


MUSIQUE = "MuSiQue CC BY 4.0, Wikipedia text CC BY-SA"


def read(folder: Path) -> QuestionSet | None:
    """The set, or nothing when there are no passages with questions."""
    passages = sorted(folder.glob("*_corpus.json"))
    asked = [p for p in sorted(folder.glob("*.json")) if p not in passages and _is_musique(p)]
    return _read_passages(folder, passages[0], asked) if passages and asked else None


def _is_musique(path: Path) -> bool:
    rows = read_json(path, default=[])
    return bool(rows) and isinstance(rows, list) and "question_decomposition" in rows[0]


def _read_passages(folder: Path, corpus: Path, asked: Sequence[Path]) -> QuestionSet:
    passages = read_json(corpus)
    rows = tuple(
        {"id": f"p{n:04}", "title": str(p["title"]), "text": str(p["text"])}
        for n, p in enumerate(passages)
    )
    by_text = {(row["title"], row["text"]): row["id"] for row in rows}
    questions = []
    for path in asked:
        for row in read_json(path):
            gold = [
                by_text[p["title"], p["paragraph_text"]]
                for p in row["paragraphs"]
                if p["is_supporting"] and (p["title"], p["paragraph_text"]) in by_text
            ]
            answers = [str(hop["answer"]) for hop in row["question_decomposition"]]
            spellings = (str(row["answer"]), *map(str, row.get("answer_aliases", ())))
            questions.append(
                EvalQuestion(
                    id=str(row["id"]),
                    text=str(row["question"]),
                    kind="open",
                    answers=(tuple(dict.fromkeys(spellings)),),
                    gold_documents=tuple(dict.fromkeys(gold)),
                    group=f"{len(answers)} hops",
                    entities=tuple(dict.fromkeys(answers)),
                )
            )
    return QuestionSet(folder.name, rows, tuple(questions), read_licence(folder) or MUSIQUE)
