"""The confidence of a fact: logistic models over its words, its clause and its sentence.

The weights are data (`scoring.toml`). Those of propositions are fitted by
`benchmarks/calibration.py --write`: right is that at least half of the words agree, slot by slot,
with a fact of CaRB's annotators. Those of triples are fitted by `benchmarks/truth.py --write` to
triples of five kinds of text that readers judged beside their sentences: what ranks is whether a
triple is right (true, whole and specific), vague or wrong, the number is the share of triples as
sure as it that are not false. Those of tables, cells by rows, by columns, keys of a table and pairs
of lines, are set by hand, below the shares that were right in 60 pages of documentation.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

from kpyramid.extraction.facts.candidates import Candidate, Findings
from kpyramid.extraction.syntax.predicates import Frame, count_clauses_above, is_copula
from kpyramid.extraction.syntax.tree import LITERALS, QUOTATION, Node, Phrase, Tree

WEIGHTS: Mapping[str, Mapping[str, float]] = tomllib.loads(
    Path(__file__).with_name("scoring.toml").read_text("utf-8")
)
"""The weights of `propositions` and `triples`, one per value; other values have no weight."""

RESOLVED = -0.7
"""The weight of `resolved`, set by hand: single sentences do not show its effect."""


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a fact, n-ary or binary, for its confidence; lengths are in words.

    `construction` is where the fact was read: "main" clause, "conjunct" of another verb,
    "relative", "participle", "adverbial", "complement", "infinitive", or in a noun phrase
    "apposition", "possessive", "title", "place", "noun". `depth` counts the clauses above it.
    `indirect_subject`: the subject stands in another clause (coordination, control, the noun that
    is modified). `inferred_predicate`: a word of the predicate does not stand in the sentence.
    `split`: an argument was cut out of a coordination. `object_*` speak of the first argument
    after the subject; `object_words` is 0 without one. `longest_words`: of the arguments after it.
    `resolved`: a pronoun or "the town" was replaced by its antecedent.
    """

    construction: str
    depth: int = 0
    sentence_words: int = 0
    predicate_words: int = 1
    subject_words: int = 1
    object_words: int = 0
    longest_words: int = 0
    arguments: int = 2
    subject_named: bool = False
    object_named: bool = False
    subject_pronoun: bool = False
    object_pronoun: bool = False
    object_clause: bool = False
    indirect_subject: bool = False
    inferred_predicate: bool = False
    resolved: bool = False
    split: bool = False
    passive: bool = False
    copula: bool = False
    negated: bool = False
    modal: bool = False
    attributed: bool = False
    preposition: bool = False


_NUMBERS: Mapping[str, tuple[int, int]] = {
    "depth": (0, 4),
    "sentence_words": (0, 60),
    "predicate_words": (0, 8),
    "subject_words": (6, 16),
    "object_words": (0, 24),
    "longest_words": (6, 24),
    "arguments": (2, 6),
}
"""Values below the first number or above the second count as that number."""
_FLAGS = [each.name for each in fields(Features) if each.type == "bool"]


def estimate_confidence(features: Features) -> float:
    """The probability of a proposition, 4 decimals; depends on nothing but `features`."""
    return round(apply_weights(list_values(features), WEIGHTS["propositions"]), 4)


def apply_weights(values: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The logistic model's probability."""
    total = values.get("resolved", 0.0) * RESOLVED
    total += sum(weights.get(name, 0.0) * value for name, value in values.items())
    return 1.0 / (1.0 + math.exp(-total))


def list_values(features: Features) -> dict[str, float]:
    """The features as numbers from 0 to 1, by name, in a fixed order; zeros are left out."""
    values = {"bias": 1.0, f"construction={features.construction}": 1.0}
    for name, (least, most) in _NUMBERS.items():
        values[name] = (min(max(getattr(features, name), least), most) - least) / (most - least)
    for name in _FLAGS:
        values[name] = float(getattr(features, name))
    values["subject_only"] = float(features.arguments < 2)
    values["no_object"] = float(not features.object_words)
    return {name: value for name, value in values.items() if value}


# Triples.

_MOST_WORDS = 6
"""Larger numbers of an argument's words share one trait."""
_MOST_LENGTH = 14
_MOST_COUNTED = 6
_MOST_NUMBER = 20
_COVERED_BY_TRAITS = ("resolved", "subject_named", "object_named", "inferred_predicate")
"""Features of facts that a triple's traits express by side and kind instead."""
_SPEAKERS = frozenset("i me my mine we us our ours".split())
_ADDRESSED = frozenset("you your yours".split())
_SUPPOSING = frozenset("if unless whether suppose assume".split())
_TURNING = frozenset("but however although though".split())


def score_candidate(candidate: Candidate, findings: Findings, attributed: bool = False) -> float:
    """The probability that the triple is not false, 4 decimals."""
    traits = list_traits(candidate, findings, attributed)
    return round(apply_weights(traits, WEIGHTS["triples"]), 4)


def list_traits(
    candidate: Candidate, findings: Findings, attributed: bool = False
) -> dict[str, float]:
    """The traits of a triple for its confidence, numbers from 0 to 1 by name; zeros are left out.

    `head name`, `tail noun`, `tail literal`: what the argument is; `head before VBZ`: the tag of
    the token after it; `left time`: a part of the clause that the triple does not have.
    """
    tree = findings.tree
    frame = findings.frames.get(candidate.clause) if candidate.clause is not None else None
    traits = list_values(_read_features(candidate, frame, findings, attributed))
    for name in _COVERED_BY_TRAITS:
        traits.pop(name, None)
    for side, phrase in (("head", candidate.head), ("tail", candidate.tail)):
        traits |= dict.fromkeys((f"{side} {each}" for each in _list_marks(phrase, tree)), 1.0)
        traits[f"{side} length"] = min(phrase.last - phrase.first + 1, _MOST_LENGTH) / _MOST_LENGTH
        traits[f"doubt {side}"] = _measure_doubt(_list_path(tree[phrase.root], candidate.clause))
        edges = (phrase.first - 1, phrase.first, phrase.last, phrase.last + 1)
        around = [tree[i] for i in edges if 0 <= i < len(tree)]
        traits[f"doubt {side} edges"] = _measure_doubt(around)
    if frame is not None:
        traits |= dict.fromkeys(_list_parts(candidate, frame), 1.0)
        traits["parts"] = min(len(frame.parts), _MOST_COUNTED) / _MOST_COUNTED
    place = tree[candidate.tail.root].sentence
    nodes = tree.nodes[slice(*tree.sentences[place])]
    traits |= _read_sentence(nodes)
    traits |= {"sentence first": float(place == 0), "sentence second": float(place == 1)}
    traits["sentence number"] = min(place, _MOST_NUMBER) / _MOST_NUMBER
    traits |= {"doubt text": _measure_text(tree), "doubt sentence": _measure_doubt(nodes)}
    return {name: value for name, value in traits.items() if value}


@lru_cache(maxsize=1)
def _measure_text(tree: Tree) -> float:
    return min(3 * _measure_doubt(tree.nodes), 1.0)


def _measure_doubt(nodes: Sequence[Node]) -> float:
    return sum(node.doubt for node in nodes) / len(nodes) / 10


def _list_path(node: Node, end: int | None) -> list[Node]:
    """The token and its ancestors up to the verb of its clause.

    Ends at a repeated token: the heads of a parse may form a cycle.
    """
    path = [node]
    while node.i != end and node.head not in path:
        node = node.head
        path.append(node)
    return path


def _read_features(
    candidate: Candidate, frame: Frame | None, findings: Findings, attributed: bool
) -> Features:
    tree, head, tail = findings.tree, candidate.head, candidate.tail
    first, end = tree.sentences[tree[tail.root].sentence]
    last = tree[max(candidate.tokens)] if candidate.tokens else None
    return Features(
        frame.construction if frame is not None else "noun",
        count_clauses_above(frame.verb, findings.frames) if frame is not None else 0,
        end - first,
        candidate.relation.count(" ") + 1,
        head.words,
        tail.words,
        subject_named=head.is_named,
        object_named=tail.is_named,
        indirect_subject=candidate.indirect,
        inferred_predicate=frame is None,
        resolved=head.resolved or tail.resolved,
        split=tree[tail.root].dep == "conj" or tree[head.root].dep == "conj",
        passive=frame is not None and "auxpass" in frame.kids,
        copula=frame is not None and is_copula(frame.verb),
        negated=candidate.negated,
        modal=candidate.modality is not None,
        attributed=attributed,
        preposition=last is not None and last.pos == "ADP",
    )


def _list_marks(phrase: Phrase, tree: Tree) -> Iterator[str]:
    """The traits of an argument and of the tokens before and after it."""
    kind = "name" if phrase.is_named else "literal" if phrase.label in LITERALS else "noun"
    yield kind
    count = phrase.last - phrase.first + 1
    yield f"{kind} of {min(count, _MOST_WORDS)}"
    if phrase.resolved:
        yield f"replaced {kind}"
    if len(phrase.text) > 1 and phrase.text.isupper():
        yield "capitals"
    if phrase.text[:1].isdigit():
        yield f"digit {kind}"
    determiner = next((c.word for c in tree[phrase.root].children if c.dep == "det"), "")
    yield f"determiner {determiner}" if determiner else f"bare {tree[phrase.root].pos}"
    if kind == "noun" and phrase.words == 1:
        yield f"one noun with {determiner or 'none'}"
    for tag in sorted({node.tag for node in tree.nodes[phrase.first : phrase.last + 1]}):
        yield f"holds {tag}"
    sentence = tree[phrase.root].sentence
    for way, i in (("after", phrase.first - 1), ("before", phrase.last + 1)):
        inside = 0 <= i < len(tree) and tree[i].sentence == sentence
        yield f"{way} {tree[i].tag if inside else 'edge'}"


def _list_parts(candidate: Candidate, frame: Frame) -> Iterator[str]:
    """The roles of the clause's parts: of the tail, in the relation, and outside the triple."""
    tail = candidate.tail
    for part in frame.parts:
        if tail.first <= part.root.i <= tail.last:
            yield f"tail as {part.role}"
        elif any(node.i in candidate.tokens for node in (part.root, *part.link[:1])):
            yield f"relation holds {part.role}"
        else:
            yield f"left {part.role}"


def _read_sentence(nodes: list[Node]) -> dict[str, float]:
    words = {node.word for node in nodes}
    texts = {node.text for node in nodes}
    return {
        "sentence asks": float("?" in texts),
        "sentence has brackets": float("(" in texts),
        "sentence has colon": float(not texts.isdisjoint({":", ";"})),
        "sentence has dash": float(
            any(n.text in {"-", "\u2013", "\u2014"} and n.space for n in nodes)
        ),
        "sentence has quotation": float(not texts.isdisjoint(QUOTATION - {"'", "\u2019"})),
        "sentence speaks": float(not words.isdisjoint(_SPEAKERS)),
        "sentence addresses": float(not words.isdisjoint(_ADDRESSED)),
        "sentence supposes": float(not words.isdisjoint(_SUPPOSING)),
        "sentence turns": float(not words.isdisjoint(_TURNING)),
        "sentence starts small": float(nodes[0].text.islower()),
        "sentence has no end": float(nodes[-1].text not in {".", "!", "?", '"', "\u201d", "''"}),
        "sentence verbs": min(sum(n.pos == "VERB" for n in nodes), _MOST_COUNTED) / _MOST_COUNTED,
        "sentence numbers": min(sum(n.pos == "NUM" for n in nodes), _MOST_COUNTED) / _MOST_COUNTED,
    }
