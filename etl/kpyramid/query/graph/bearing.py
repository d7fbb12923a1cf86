"""What a fact of the graph has to do with a question: measured, and weighed into a chance.

Each measure is between 0 and 1. A logistic model makes of them the
chance that the fact's open side, the one that the question does not name, answers it. The weights
are data: `benchmarks/sufficiency.py --write` fits them.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kpyramid.extraction.normal import lemmatise, normalise_name, normalise_relation
from kpyramid.query.graph.facts import NearFact
from kpyramid.query.graph.turning import find_end
from kpyramid.query.graph.weights import BEARING
from kpyramid.query.pyramid.linking import LinkedQuestion, find_names
from kpyramid.query.pyramid.snapshot import LITERAL, Snapshot
from kpyramid.query.questions.wording import FUNCTION, share_stem
from kpyramid.query.reader.asked import Asked as ReadQuestion
from kpyramid.query.reader.asked import fits, read_question
from kpyramid.query.reader.values import agree, read_value
from kpyramid.query.types import Question

_WORD = re.compile(r"[^\W_]+(?:[-.][^\W_]+)*")
_POSSESSIVE = re.compile(r"['’]s\b|(?<=s)['’](?=\s|$)")
_BARE = FUNCTION | frozenset("be have do become make get go include".split())
_OPEN = re.compile(
    r"^\W*(?:why|how(?!\s+(?:many|much|old|tall|long|high|far|large|big|deep)))\b",
    re.IGNORECASE,
)
_NONE: frozenset[str] = frozenset()
_NUMERIC = frozenset({"DATE", "TIME", "CARDINAL", "QUANTITY", "MONEY", "PERCENT"})


UNFOUNDED = 0.1
"""Chance that is left of a fact that cannot answer whatever else speaks for it: a name or year of
the question occurs nowhere in it, or it is of another form than the answer. Set by hand."""

SAME_VALUE = 0.85
"""How far a date or number must say an option to be it: a year is its first of January."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question taken apart: what it names, what it says beside, and whom it asks for.

    `rest` are the words beside the names, `lemmas` their dictionary forms, `words` all words and
    `names` those of names and numbers, in small letters; `spelt` the words by which it names each
    entity.
    """

    question: Question
    linked: LinkedQuestion
    rest: str
    lemmas: frozenset[str]
    words: frozenset[str]
    names: frozenset[str]
    read: ReadQuestion
    spelt: Mapping[str, frozenset[str]]

    def find_strange(self, texts: Sequence[str]) -> frozenset[str]:
        """The words of its names and numbers that some texts have in no form."""
        known = frozenset(word for text in texts for word in split_words(text))
        left = self.names - known
        return frozenset(w for w in left if not any(share_stem(w, other) for other in known))


@dataclass(frozen=True, slots=True)
class Bearing:
    """A fact, the value it would give, its measures, and the chance that this answers.

    `choices` are the candidates that the value is, by any of its names.
    """

    fact: NearFact
    value: str
    value_type: str | None
    anchor: str
    measures: Mapping[str, float]
    chance: float
    choices: tuple[str, ...] = ()

    @property
    def meaning(self) -> str:
        """What values are told apart by."""
        return normalise_name(self.value)


def weigh_facts(question: Question, facts: Sequence[NearFact], snapshot: Snapshot) -> list[Bearing]:
    """Facts with the chance that each answers the question, best first."""
    asked = take_apart(question, snapshot)
    weighed = []
    for fact in facts:
        value, kind, anchor = open_side(fact, asked)
        choices = _choose(fact, value, question, snapshot)
        measures = measure(fact, value, kind, anchor, asked)
        measures["chosen"] = float(bool(choices))
        founded = not measures["missing"] and answers_form(fact, value, measures, asked)
        measures["unfounded"] = float(not founded)
        chance = find_chance(measures, BEARING)
        weighed.append(Bearing(fact, value, kind, anchor, measures, chance, choices))
    return sorted(weighed, key=lambda b: (-b.chance, -b.fact.cosine, b.fact.condensed_id))


def find_chance(measures: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The chance that a fact with these measures answers, six decimals."""
    chance = apply_weights(measures, weights)
    return round(min(chance, UNFOUNDED) if measures["unfounded"] else chance, 6)


def take_apart(question: Question, snapshot: Snapshot) -> Asked:
    """What a question names and says."""
    linked = snapshot.link(question.text)
    named = {word for name in linked.names for word in split_words(name)}
    spelt = {
        entity: frozenset(split_words(name))
        for name in linked.names
        for entity in snapshot.link(name).entities
    }
    names = frozenset(
        word for name in find_names(question.text, first_counts=False) for word in split_words(name)
    )
    texts = _list_words(question.text)
    rest = [
        word
        for word in texts
        if word.casefold() not in named | names and word.casefold() not in FUNCTION
    ]
    lemmas = frozenset(lemmatise(word.casefold()) for word in rest)
    words = frozenset(word.casefold() for word in texts)
    # Years and other numbers tell one thing from another as names do.
    numbers = frozenset(word for word in words if word[:1].isdigit())
    return Asked(
        question,
        linked,
        " ".join(rest),
        lemmas,
        words,
        names | numbers,
        read_question(question.text, linked),
        spelt,
    )


def split_words(text: str) -> list[str]:
    """The words of a text in small letters."""
    return [word.casefold() for word in _list_words(text)]


def _list_words(text: str) -> list[str]:
    return _WORD.findall(_POSSESSIVE.sub(" ", text))


def measure(
    fact: NearFact, value: str, kind: str | None, anchor: str, asked: Asked
) -> dict[str, float]:
    """What speaks for and against a fact that would give a value of some type."""
    is_exact = bool({fact.head_id, fact.tail_id} & set(asked.linked.entities))
    said = list_lemmas(fact.relation)
    statement = frozenset(split_words(fact.statement))
    lemmas = frozenset(lemmatise(word) for word in statement)
    names = asked.names - asked.spelt.get(fact.head_id, _NONE)
    names = names - asked.spelt.get(fact.tail_id or "", _NONE) - statement
    content = [word for word in split_words(value) if word not in FUNCTION]
    measures = {
        "anchored": float(is_exact and bool(anchor)),
        "named": 0.0 if is_exact or not anchor else _cover(split_words(anchor), asked.words),
        "missing": float(bool(names)),
        "cosine": max(fact.cosine, 0.0),
        "said": _count_shared(said, asked.lemmas) / len(said) if said else 0.0,
        "left": 1.0 - _count_shared(asked.lemmas, lemmas) / len(asked.lemmas)
        if asked.lemmas
        else 0.0,
        "bare": float(not said),
        "echo": _cover(content, asked.words) if content else 1.0,
        "proper": float(kind == LITERAL or value[:1].isupper()),
    }
    return measures | _measure_kind(kind, value, asked)


def open_side(fact: NearFact, asked: Asked) -> tuple[str, str | None, str]:
    """The value that a fact gives for the question, its type, and the side that is named.

    A side is named when it is linked, else when the question has at least half of its words, one
    of them a name. No side is open when both are named, and none is the anchor when neither is.
    """
    if fact.through:  # what leads to a fact gives the side that is the anchor of the next
        known = fact.through.head_id, fact.through.tail_id
        head, tail = fact.head_id in known, fact.tail_id is not None and fact.tail_id in known
    else:
        head, tail = (side in asked.linked.entities for side in (fact.head_id, fact.tail_id))
    if not head and not tail:
        shares = [_share_name(side, asked) for side in (fact.head, fact.tail)]
        head, tail = shares[0] > shares[1], shares[1] > shares[0]
    if head and not tail:
        return fact.tail, fact.tail_type, fact.head
    if tail and not head:
        return fact.head, fact.head_type, fact.tail
    return "", None, ""


def match_candidates(value: str, candidates: Sequence[str]) -> tuple[str, ...]:
    """The candidates that a value is: by their normal forms, as date or number, by most words."""
    own = normalise_name(value)
    found = tuple(c for c in candidates if normalise_name(c) == own)
    if found or not own:
        return found
    if (stated := read_value(value)) is not None:
        read = {c: read_value(c) for c in candidates}
        sure = {c: agree(v, stated) for c, v in read.items() if v is not None}
        best = max(sure.values(), default=0.0)
        return tuple(c for c in sure if sure[c] == best >= SAME_VALUE)
    inside = [c for c in candidates if f" {normalise_name(c)} " in f" {own} "]
    longest = max((len(normalise_name(c)) for c in inside), default=0)
    return tuple(c for c in inside if len(normalise_name(c)) == longest and 2 * longest > len(own))


def spell_out(entity: str | None, value: str, snapshot: Snapshot) -> tuple[str, ...]:
    """All names of a value that is an entity, the one given first."""
    if not entity:
        return (value,)
    forms = snapshot.surface_forms([entity]).get(entity, ())
    return tuple(dict.fromkeys([value, *forms]))


def _choose(fact: NearFact, value: str, question: Question, snapshot: Snapshot) -> tuple[str, ...]:
    if not question.candidates or not value:
        return ()
    entity = fact.head_id if value == fact.head else fact.tail_id
    names = spell_out(entity, value, snapshot)
    found = [match_candidates(name, question.candidates) for name in names]
    return tuple(dict.fromkeys(c for choices in found for c in choices))


def apply_weights(measures: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The logistic model's probability."""
    total = weights["bias"] + sum(weights.get(name, 0.0) * x for name, x in measures.items())
    return 1.0 / (1.0 + math.exp(-max(min(total, 30.0), -30.0)))


@lru_cache(maxsize=100_000)
def list_lemmas(relation: str) -> frozenset[str]:
    """The lemmas of a relation that say something."""
    return frozenset(
        word for word in normalise_relation(relation).lemmas if len(word) > 2 and word not in _BARE
    )


def answers_form(fact: NearFact, value: str, measures: Mapping[str, float], asked: Asked) -> bool:
    """Whether a fact has the form of an answer.

    Nothing that one fact gives answers yes or no, or why; what stands in the question answers
    nothing; and a relation has a direction: whoever bought X is not what X bought.
    """
    if asked.read.is_yes_no or _OPEN.match(asked.question.text) or measures["echo"] == 1.0:
        return False
    ends = find_end(fact.relation, asked.question.text, asked.linked.names)
    return ends is None or ends is (value == fact.head)


def _measure_kind(kind: str | None, value: str, asked: Asked) -> dict[str, float]:
    """Whether a value can be what is asked for: a person, a place, a time, a number."""
    types = asked.read.types
    if not types or kind is None:
        return {}
    if types & _NUMERIC:
        has_number = any(c.isdigit() for c in value)
        return {"fits" if has_number else "unfit": 1.0}
    fit = fits(kind, asked.read)
    if fit:
        return {"fits" if fit > 0 else "unfit": 1.0}
    # The recogniser could not type it: it may fit when it is written as a name.
    return {} if value[:1].isupper() else {"unfit": 1.0}


def _share_name(side: str, asked: Asked) -> float:
    """The share of a side's words that the question has, if one is a name, and at least half."""
    words = [word for word in split_words(side) if word not in FUNCTION]
    if not words or not asked.names & set(words):
        return 0.0
    share = _cover(words, asked.words)
    return share if share >= 0.5 else 0.0


def _cover(words: Sequence[str] | frozenset[str], others: frozenset[str]) -> float:
    return sum(word in others for word in words) / len(words) if words else 0.0


def _count_shared(words: frozenset[str], others: frozenset[str]) -> int:
    """The words that others have too, or a word of their stem: `director` and `direct`."""
    return sum(word in others or any(share_stem(word, other) for other in others) for word in words)
