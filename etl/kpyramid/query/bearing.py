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
from kpyramid.query.asked import Asked as ReadQuestion
from kpyramid.query.asked import fits, read_question
from kpyramid.query.facts import NearFact, embed_phrases, pick_known
from kpyramid.query.linking import LinkedQuestion, find_names
from kpyramid.query.questions.wording import FUNCTION, share_stem
from kpyramid.query.snapshot import LITERAL, Snapshot
from kpyramid.query.types import Question
from kpyramid.query.weights import BEARING

MOST_NEW = 12
"""Relation names embedded for one question that none before it needed, 1.2 ms each; those of the
facts that are best without."""
_UNKNOWN = 0.3
"""Cosine of relation and question where it was not looked at: that of unrelated phrases."""
_WORD = re.compile(r"[^\W_]+(?:[-.'’][^\W_]+)*")
_BARE = FUNCTION | frozenset("be have do become make get go include".split())
_NUMERIC = frozenset({"DATE", "TIME", "CARDINAL", "QUANTITY", "MONEY", "PERCENT"})
_LONGEST = 12
"""Words of a value beyond which more make no difference."""
_ABOUT = frozenset("of for by to".split())


@dataclass(frozen=True, slots=True)
class Asked:
    """A question taken apart: what it names, what it says beside, and whom it asks for.

    `rest` are the words beside the names. `order` says which part of a verb's sentence is asked
    for: "subject" ("Who founded X?"), "object" ("What did X found?", "Where was X born?"), or "".
    """

    question: Question
    linked: LinkedQuestion
    rest: str
    lemmas: frozenset[str]
    words: frozenset[str]
    names: frozenset[str]
    order: str
    read: ReadQuestion


@dataclass(frozen=True, slots=True)
class Bearing:
    """A fact, the value it would give, its measures, and the chance that this answers."""

    fact: NearFact
    value: str
    value_type: str | None
    anchor: str
    measures: Mapping[str, float]
    chance: float

    @property
    def meaning(self) -> str:
        """What values are told apart by."""
        return normalise_name(self.value)


def weigh_facts(
    question: Question, facts: Sequence[NearFact], snapshot: Snapshot, *, most_new: int = MOST_NEW
) -> list[Bearing]:
    """Facts with the chance that each answers the question, best first.

    At most `most_new` names of relations are embedded, see `MOST_NEW`.
    """
    asked = take_apart(question, snapshot)
    rough = [(fact, measure_words(fact, asked)) for fact in facts]
    cosines = _compare_relations(asked, rough, snapshot, most_new)
    weighed = []
    for fact, measures in rough:
        measures["relation"] = cosines.get(fact.relation, _UNKNOWN)
        value, kind, anchor = open_side(fact, asked)
        chance = apply_weights(measures, BEARING)
        weighed.append(Bearing(fact, value, kind, anchor, measures, round(chance, 6)))
    return sorted(weighed, key=lambda b: (-b.chance, -b.fact.cosine, b.fact.condensed_id))


def take_apart(question: Question, snapshot: Snapshot) -> Asked:
    """What a question names and says."""
    linked = snapshot.link(question.text)
    named = {word for name in linked.names for word in split_words(name)}
    names = find_names(question.text, first_counts=False)
    texts = [match.group() for match in _WORD.finditer(question.text)]
    rest = [
        word
        for word in texts
        if word.casefold() not in named | names and word.casefold() not in FUNCTION
    ]
    lemmas = frozenset(lemmatise(word.casefold()) for word in rest)
    words = frozenset(word.casefold() for word in texts)
    # Years and other numbers tell one thing from another as names do.
    numbers = frozenset(word for word in words if word[:1].isdigit())
    order = _find_order(question.text)
    return Asked(
        question,
        linked,
        " ".join(rest),
        lemmas,
        words,
        names | numbers,
        order,
        read_question(question.text, linked),
    )


def split_words(text: str) -> list[str]:
    """The words of a text in small letters."""
    return [match.group().casefold() for match in _WORD.finditer(text)]


def measure_words(fact: NearFact, asked: Asked) -> dict[str, float]:
    """The measures that take no embedding."""
    value, kind, anchor = open_side(fact, asked)
    is_exact = bool({fact.head_id, fact.tail_id} & set(asked.linked.entities))
    said, means = list_lemmas(fact.relation), asked.lemmas
    both = _count_shared(said, means)
    value_words = split_words(value)
    statement = frozenset(split_words(fact.statement))
    content = [word for word in value_words if word not in FUNCTION]
    measures = {
        "anchored": float(is_exact and bool(anchor)),
        "named": 0.0 if is_exact or not anchor else _cover(split_words(anchor), asked.words),
        "floating": float(not anchor),
        "names_left": 1.0 - _cover(asked.names, statement) if asked.names else 0.0,
        "cosine": max(fact.cosine, 0.0),
        "said": both / len(said) if said else 0.0,
        "asked": min(_count_shared(means, said | _lemmatise_all(value)) / len(means), 1.0)
        if means
        else 0.0,
        "bare": float(not said),
        "echo": _cover(content, asked.words) if content else 1.0,
        "proper": float(kind == LITERAL or value[:1].isupper()),
        "long": min(len(value_words), _LONGEST) / _LONGEST,
    }
    measures |= _measure_kind(kind, value, asked) | _measure_order(fact, value, said, asked)
    if asked.question.candidates:
        measures["choice"] = 1.0
        measures["chosen"] = float(bool(match_candidates(value, asked.question.candidates)))
    return measures


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
    """The candidates that a value is, by their normal forms or as most of its words."""
    own = normalise_name(value)
    found = tuple(c for c in candidates if normalise_name(c) == own)
    if found or not own:
        return found
    inside = [c for c in candidates if f" {normalise_name(c)} " in f" {own} "]
    longest = max((len(normalise_name(c)) for c in inside), default=0)
    return tuple(c for c in inside if len(normalise_name(c)) == longest and 2 * longest > len(own))


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


def _compare_relations(
    asked: Asked,
    rough: Sequence[tuple[NearFact, Mapping[str, float]]],
    snapshot: Snapshot,
    most_new: int,
) -> dict[str, float]:
    """The cosine of what the question says beside its names with each relation, of most facts."""
    if not asked.rest:
        return {}
    ranked = sorted(
        rough,
        key=lambda pair: (
            -apply_weights({**pair[1], "relation": _UNKNOWN}, BEARING),
            pair[0].condensed_id,
        ),
    )
    names = list(dict.fromkeys(fact.relation for fact, measures in ranked))
    known = pick_known(names, snapshot)
    new = [name for name in names if name not in known][:most_new]
    wanted = [*new, *(name for name in names if name in known)]
    vectors = embed_phrases([asked.rest, *wanted], snapshot)
    cosines = vectors[1:] @ vectors[0]
    return {name: float(cosine) for name, cosine in zip(wanted, cosines, strict=True)}


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


def _measure_order(
    fact: NearFact, value: str, said: frozenset[str], asked: Asked
) -> dict[str, float]:
    """Whether the open side is the end of the relation that is asked for.

    "Who founded X?" wants the subject of `founded`; "the president of X" is the subject of
    `is president of` and the object of `has president`.
    """
    if not value or not asked.order or not _count_shared(said, asked.lemmas):
        return {}
    form = normalise_relation(fact.relation)
    is_head = value == fact.head
    if "be" in form.lemmas[:1] and form.lemmas[-1] in _ABOUT and len(form.lemmas) > 2:
        wants_head = True  # X is president of Y
        if asked.order == "subject":
            return {}
    elif form.lemmas[:1] == ("have",):
        wants_head = False
    else:
        wants_head = (asked.order == "subject") is not form.passive_by
        if asked.order == "noun":
            return {}
    return {"aligned" if is_head is wants_head else "against": 1.0}


_DO = re.compile(r"\b(?:do|does|did)\b", re.IGNORECASE)
_SUBJECT = re.compile(
    r"^\W*(?:who|what|which(?:\s+\w+){1,3}?)\s+(?!is\b|was\b|are\b|were\b)\w+", re.IGNORECASE
)
_PASSIVE = re.compile(r"^\W*by (?:whom|what|which)\b|\bby\W*(?:who|whom|what)?\W*$", re.IGNORECASE)
_NOUN = re.compile(r"\b(?:is|was|are|were)\s+(?:the|a|an)\b|['’]s\b|\bof\b", re.IGNORECASE)
_OBJECT = re.compile(r"^\W*(?:where|when|in which|in what|to whom|whom)\b", re.IGNORECASE)


def _find_order(text: str) -> str:
    """`subject`, `object`, `noun` or nothing: which side of a relation is asked for."""
    if _PASSIVE.search(text):
        return "subject"
    if _DO.search(text) or _OBJECT.search(text):
        return "object"
    if _NOUN.search(text):
        return "noun"
    return "subject" if _SUBJECT.search(text) else ""


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


def _lemmatise_all(text: str) -> frozenset[str]:
    return frozenset(lemmatise(word) for word in split_words(text))
