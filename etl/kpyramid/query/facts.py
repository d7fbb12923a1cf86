"""Facts of the graph that may answer a question: the nearest, and those about its entities.

A question is embedded once; it costs a search for neighbours and a look-up of the facts about its
entities.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from kpyramid.documents import words as w
from kpyramid.documents.values import NUMBER_WORDS, agree, read_value
from kpyramid.query.analysis import KIND_TYPES, NUMERIC, QuestionAnalysis
from kpyramid.query.types import Item
from kpyramid.snapshot.conflicts import Conflict
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import NearFact

NEAREST = 30
"""Facts retrieved by cosine alone, for facts whose names have other spellings."""
MOST_ENTITIES = 12
"""Most entities of a question whose facts are looked up; some names denote several."""
MOST_ABOUT = 60
"""Most facts about a question's entities that are rated, those nearest to it."""
MOST_LOOKED = 1_000
"""Most facts about a question's entities that are compared, the first by key. Entities with more
are countries or fields; the nearest of all facts are retrieved anyway. Each fact may need a page
from disk: among a million facts, one question in a hundred waited for 4,000."""


@dataclass(frozen=True, slots=True)
class StatedPath:
    """A path in words: names of its entities, and the fact of each step with its direction."""

    names: tuple[str, ...]
    facts: tuple[NearFact, ...]
    forward: tuple[bool, ...]

    @property
    def statement(self) -> str:
        """The path with its arrows: `A – wrote → B ← is located in – C`."""
        words = [self.names[0]]
        for fact, ahead, name in zip(self.facts, self.forward, self.names[1:], strict=True):
            held = f" ({'; '.join(fact.qualifiers)})" if fact.qualifiers else ""
            step = f"{fact.relation}{held}"
            words += [f"– {step} →" if ahead else f"← {step} –", name]
        return " ".join(words)

    @property
    def steps(self) -> tuple[tuple[str, bool], ...]:
        """The relation of each step, and whether it is taken from head to tail."""
        return tuple((f.relation, ahead) for f, ahead in zip(self.facts, self.forward, strict=True))

    @property
    def start(self) -> str:
        """The id of the entity from which it starts."""
        first = self.facts[0]
        return first.head_id if self.forward[0] else first.tail_id or ""

    @property
    def confidence(self) -> float:
        """The least confidence of its facts."""
        return min(fact.confidence for fact in self.facts)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether facts are enough, the probability of their answer, and the facts that support it.

    `values`: those of the facts; for a question with candidates, the matching candidates.
    `chances`: the probability that each fact answers, where the look-up judged.
    """

    enough: bool
    probability: float
    reason: str
    supporting: tuple[NearFact, ...]
    values: tuple[str, ...] = ()
    chances: Mapping[NearFact, float] = field(default_factory=dict)


def find_nearest(asked: QuestionAnalysis, k: int) -> list[NearFact]:
    """The k facts nearest to a question, best first."""
    return state_facts(asked.snapshot.nearest(asked.text, k), asked.snapshot)


def gather_facts(asked: QuestionAnalysis) -> list[NearFact]:
    """The nearest facts and those about the entities that a question names, each once.

    A fact is left out where its more detailed fact is among them.
    """
    near = asked.snapshot.nearest(asked.text, NEAREST)
    about = find_about(asked.linked.entities[:MOST_ENTITIES], asked, MOST_ABOUT, known=near)
    cosines, detailed = near | about, asked.snapshot.find_detailed
    narrowest = {key: cosine for key, cosine in cosines.items() if detailed(key) not in cosines}
    return state_facts(narrowest, asked.snapshot)


def find_about(
    entities: Sequence[str], asked: QuestionAnalysis, most: int, known: Iterable[str] = ()
) -> dict[str, float]:
    """The facts about some entities nearest to a question, with their cosines."""
    snapshot = asked.snapshot
    seen = frozenset(known)
    keys = [key for key in snapshot.facts_about(entities, MOST_LOOKED) if key not in seen]
    if not keys:
        return {}
    cosines = snapshot.vectors_of(keys, "condensed") @ asked.vector
    order = np.argsort(-cosines, kind="stable")[:most]
    return {keys[index]: float(cosines[index]) for index in order}


def state_facts(cosines: dict[str, float], snapshot: Snapshot) -> list[NearFact]:
    """Facts in words, in the order given."""
    return [snapshot.read_fact(key, cosine) for key, cosine in cosines.items()]


def state_items(scored: Iterable[tuple[NearFact, float]], snapshot: Snapshot) -> tuple[Item, ...]:
    """Facts with their scores as context.

    Each statement that cites several, and each conflict, is given with the first.
    """
    shown: set[str] = set()
    listed: set[Conflict] = set()
    items = []
    for fact, score in scored:
        key = fact.condensed_id
        statement, conflicts = snapshot.summarise_condensed(key), snapshot.conflicts.about(key)
        item = Item(
            key,
            fact.statement,
            "graph",
            score,
            tuple(snapshot.evidence(key)),
            fact.confidence,
            fact.qualifiers,
            snapshot.standardise_condensed(key),
            "" if statement in shown else statement,
            tuple(conflict for conflict in conflicts if conflict not in listed),
        )
        items.append(item)
        shown.add(statement)
        listed.update(conflicts)
    return tuple(items)


def restate_items(asked: QuestionAnalysis, items: Sequence[Item]) -> list[NearFact]:
    """The facts of context items, with their cosines to the question."""
    keys = [item.key for item in items if item.key.startswith("condensed-")]
    if not keys:
        return []
    cosines = (asked.snapshot.vectors_of(keys, "condensed") @ asked.vector).tolist()
    return state_facts(dict(zip(keys, cosines, strict=True)), asked.snapshot)


def tell_facts(facts: Iterable[NearFact], snapshot: Snapshot) -> list[str]:
    """Facts in the form of a model's prompt, see `Item.told`."""
    return [item.told for item in state_items(((fact, 0.0) for fact in facts), snapshot)]


# The end of a relation that a question asks for, where its grammar shows it.

_OF = frozenset("of for by to in".split())
_BARE = frozenset("be have do become".split())


def find_end(relation: str, question: str, names: Sequence[str]) -> bool | None:
    """True if the question asks for the relation's subject, False for its object, None if unclear.

    "Who bought X?" and "By whom was X bought?" ask for the subject of `bought`, "What did X buy?"
    and "What was bought by X?" for its object; "a tributary of X" for the subject of
    `is tributary of`, "X is a tributary of what" for its object.
    """
    words = tuple(word.casefold() for word in w.WORD.findall(question))
    form = w.normalise_relation(relation)
    lemmas = form.lemmas
    if not words or not lemmas:
        return None
    position = _find_only_name(words, names)
    if position is None:
        return None
    if lemmas[0] == "be" and len(lemmas) > 2 and lemmas[-1] in _OF:
        noun = lemmas[-2]
        place = _find_lemma(words, noun)
        if place is None or words[-1] in _OF:
            return False if place is not None and words[-1] == lemmas[-1] else None
        follows = words[place + 1 : place + 2] == (lemmas[-1],) and position > place
        return True if follows else None
    verb = lemmas[0]
    owned = relation.casefold().split()[0] in w.HAVE  # "has child": no verb
    if verb in _BARE or len(lemmas) > 1 or form.passive or owned:
        return None
    place = _find_lemma(words, verb)
    if place is None:
        return None
    agent = _find_role(words, place, position)
    if agent is None:
        return None
    # Where the named entity is the agent, the question asks for the object.
    wants_subject = not agent
    return wants_subject is not form.passive_by


def _find_role(words: Sequence[str], verb: int, name: int) -> bool | None:
    """True if the named entity is the verb's agent, False if its object, None if unclear."""
    before, after = words[:verb], words[verb + 1 :]
    is_passive = bool(w.BE & set(before[-4:])) and not w.DO & set(before)
    if is_passive:
        if "by" in after[:1]:
            return name > verb
        return False if before and before[0] == "by" else None
    if w.DO & set(before):
        return True if name < verb else None
    return False if name > verb else None


def _find_only_name(words: Sequence[str], names: Sequence[str]) -> int | None:
    """The index at which the only name of a question begins; None if it has none or several."""
    if len(names) != 1:
        return None
    parts = tuple(word.casefold() for word in w.WORD.findall(names[0]))
    starts = range(len(words) - len(parts) + 1)
    return next((i for i in starts if tuple(words[i : i + len(parts)]) == parts), None)


def _find_lemma(words: Sequence[str], lemma: str) -> int | None:
    return next((i for i, word in enumerate(words) if w.lemmatise(word) == lemma), None)


# The meaning of values and wordings.

SAME_VALUE = 0.85
"""Least agreement of a date or number with an option: a year agrees with its first of January."""
_EMPTY = w.FUNCTION | frozenset("be have do become make get go include".split())
_YEAR = re.compile(r"[12]\d{3}")


def match_candidates(value: str, candidates: Sequence[str]) -> tuple[str, ...]:
    """The candidates that a value equals: by normal form, as date or number, or by most words."""
    name, forms = w.normalise_name(value), {c: w.normalise_name(c) for c in candidates}
    equal = tuple(c for c in candidates if forms[c] == name)
    if equal or not name:
        return equal
    if (stated := read_value(value)) is not None:
        read = {c: read_value(c) for c in candidates}
        sure = {c: agree(v, stated) for c, v in read.items() if v is not None}
        best = max(sure.values(), default=0.0)
        return tuple(c for c in sure if sure[c] == best >= SAME_VALUE)
    inside = [c for c in candidates if f" {forms[c]} " in f" {name} "]
    longest = max((len(forms[c]) for c in inside), default=0)
    return tuple(c for c in inside if len(forms[c]) == longest and 2 * longest > len(name))


def spell_out(entity: str | None, value: str, snapshot: Snapshot) -> tuple[str, ...]:
    """All names of a value; further names if it is an entity."""
    if not entity:
        return (value,)
    forms = snapshot.surface_forms([entity]).get(entity, ())
    return tuple(dict.fromkeys([value, *forms]))


@lru_cache(maxsize=100_000)
def list_lemmas(relation: str) -> frozenset[str]:
    """The content lemmas of a relation or a label."""
    return frozenset(
        word
        for word in w.normalise_relation(w.split_label(relation)).lemmas
        if len(word) > 2 and word not in _EMPTY
    )


def fit_kind(kind: str | None, value: str, types: frozenset[str]) -> float:
    """1 if a value of an entity type is of the types asked for, 0 if unclear, -1 if not."""
    if not types or kind is None:
        return 0.0
    if types & NUMERIC:
        counted = any(c.isdigit() for c in value) or bool({*value.split()} & {*NUMBER_WORDS})
        mere_year = not types & KIND_TYPES["when"] and _YEAR.fullmatch(value)
        return 1.0 if counted and not mere_year else -1.0
    if kind in types and not (kind == "NORP" and types == KIND_TYPES["who"]):
        return 1.0
    # The recogniser could not type it, or it is a place of study or work.
    is_unclear = kind == "NOUN" or (kind == "ORG" and types == KIND_TYPES["where"])
    is_unclear |= kind == "NORP" and " " in value  # a people has one word, "Marcus Oyelaran" two
    return 0.0 if is_unclear and value[:1].isupper() else -1.0


def count_shared(words: frozenset[str], others: frozenset[str]) -> int:
    """The number of words that are also among others, or share a stem: `director` and `direct`."""
    return sum(
        word in others or any(w.share_stem(word, second) for second in others) for word in words
    )
