"""Facts of the graph that may answer a question: the nearest ones, and those about what it names.

A question is embedded once; it costs one look-up of neighbours and one of what is known about its
entities. (What its words and a relation's have in common says as much as the cosine of the two,
which would cost an embedding per relation: see `benchmarks/sufficiency.py` in RESULTS.)
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from kpyramid.documents.values import NUMBER_WORDS, agree, read_value
from kpyramid.documents.words import (
    ARTICLES,
    BE,
    DO,
    FUNCTION,
    HAVE,
    WORD,
    lemmatise,
    list_plain_words,
    normalise_name,
    normalise_relation,
    share_stem,
    split_label,
)
from kpyramid.query.analysis import KIND_TYPES, NUMERIC, LinkedQuestion, QuestionAnalysis, fits
from kpyramid.query.types import Item
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import LITERAL

NEAREST = 30
"""Facts taken by nearness alone: how far down a fact lies whose names are written otherwise."""
MOST_ENTITIES = 12
"""Entities of a question whose facts are looked up; a name stands for several now and then."""
MOST_ABOUT = 60
"""Facts about what a question names that are weighed; of more, those nearest to it."""
MOST_LOOKED = 4_000
"""Facts about what a question names that are looked at: 6 MB of vectors. What has more facts
is a country or a field; of those the first by key are looked at, and the nearest of all anyway."""


@dataclass(frozen=True, slots=True)
class NearFact:
    """A condensed triple in words, its sides' ids and types, its cosine with the question.

    `confidence` says how surely it was read, `qualifiers` when, where and how it holds. `through`
    is the fact that leads to it: the answer to "the X of the Y of Z" lies beyond one about Z.
    `standard` is its standard relation, `turned` where that is read from tail to head. A statement
    of the ontology is a fact whose relation is a property's label.
    """

    condensed_id: str
    head_id: str
    head: str
    head_type: str
    relation: str
    tail_id: str | None
    tail: str
    tail_type: str
    cosine: float
    confidence: float = 1.0
    qualifiers: tuple[str, ...] = ()
    through: "NearFact | None" = None
    standard: str = ""
    turned: bool = False
    is_instance: bool = False

    @property
    def statement(self) -> str:
        """The fact in words with what qualifies it, after the one that leads to it."""
        held = f" ({'; '.join(self.qualifiers)})" if self.qualifiers else ""
        own = f"{self.head} {self.relation} {self.tail}{held}"
        return f"{self.through.statement}; {own}" if self.through else own


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether facts are enough, how probably their answer is right, and which facts support it.

    `values` are what they give, of a question with candidates the candidates. `chances` says of
    each fact how probably it answers, where the look-up judged.
    """

    enough: bool
    probability: float
    reason: str
    supporting: tuple[NearFact, ...]
    values: tuple[str, ...] = ()
    chances: Mapping[NearFact, float] = field(default_factory=dict)


def rank_facts(asked: QuestionAnalysis) -> "list[RatedFact]":
    """The facts nearest to a question and about its entities, rated, best first."""
    return hop_by_facts(asked, rate_singles(asked, gather_facts(asked)))


def find_nearest(asked: QuestionAnalysis, k: int) -> list[NearFact]:
    """The k facts nearest to a question, best first."""
    near = asked.snapshot.neighbours(asked.text, k, "condensed")
    return state_facts({key: cosine for key, _, cosine in near}, asked.snapshot)


def gather_facts(asked: QuestionAnalysis) -> list[NearFact]:
    """The nearest facts and those about the entities that a question names, each once.

    Left out is a fact of which another one among them says all, and more.
    """
    neighbours = asked.snapshot.neighbours(asked.text, NEAREST, "condensed")
    near = {key: cosine for key, _, cosine in neighbours}
    entities = asked.linked.entities[:MOST_ENTITIES]
    about = find_about(entities, asked, MOST_ABOUT, known=near) if entities else {}
    found, detailed = near | about, asked.snapshot.find_detailed
    kept = {key: at for key, at in found.items() if detailed(key) not in found}
    return state_facts(kept, asked.snapshot)


def find_about(
    entities: Sequence[str], asked: QuestionAnalysis, most: int, known: Iterable[str] = ()
) -> dict[str, float]:
    """The facts about some entities nearest to a question, with their cosines."""
    snapshot = asked.snapshot
    seen = frozenset(known)
    about = snapshot.facts_about(entities, most=MOST_LOOKED)
    keys = [key for key in about if key not in seen]
    if not keys:
        return {}
    cosines = snapshot.vectors_of(keys, "condensed") @ asked.vector
    order = np.argsort(-cosines, kind="stable")[:most]
    return {keys[index]: float(cosines[index]) for index in order}


def state_facts(cosines: dict[str, float], snapshot: Snapshot) -> list[NearFact]:
    """Facts in words, in the order given."""
    found = []
    known = zip(cosines.items(), snapshot.weigh_condensed(list(cosines)), strict=True)
    for (key, cosine), (confidence, *_) in known:
        stated, held = snapshot.state_condensed(key), snapshot.qualify_condensed(key)
        standard, turned = snapshot.read_standard(key)
        found.append(NearFact(key, *stated, cosine, confidence, held, None, standard, turned))
    return found


def state_item(fact: NearFact, snapshot: Snapshot, score: float) -> Item:
    """A fact as a piece of context, with the places of the facts that lead to it."""
    places = tuple(snapshot.evidence(fact.condensed_id))
    if fact.through:
        places = (*snapshot.evidence(fact.through.condensed_id), *places)
    sure = min(fact.confidence, fact.through.confidence if fact.through else 1.0)
    own = fact.condensed_id, fact.statement, "graph", score, tuple(dict.fromkeys(places))
    standard = snapshot.standardise_condensed(fact.condensed_id)
    return Item(*own, sure, fact.qualifiers, standard)


def state_items(scored: Iterable[tuple[NearFact, float]], snapshot: Snapshot) -> tuple[Item, ...]:
    """Facts with their scores as context; each statement that cites some stands with the first."""
    told: set[str] = set()
    items = []
    for fact, score in scored:
        item = state_item(fact, snapshot, score)
        statement = snapshot.summarise_condensed(fact.condensed_id)
        items.append(replace(item, statement="" if statement in told else statement))
        told.add(statement)
    return tuple(items)


def restate_items(asked: QuestionAnalysis, items: Sequence[Item]) -> list[NearFact]:
    """The facts that items of context state, with their cosines."""
    keys = [item.key for item in items if item.key.startswith("condensed-")]
    if not keys:
        return []
    cosines = (asked.snapshot.vectors_of(keys, "condensed") @ asked.vector).tolist()
    return state_facts(dict(zip(keys, cosines, strict=True)), asked.snapshot)


def tell_facts(facts: Iterable[NearFact], snapshot: Snapshot) -> list[str]:
    """Facts as a model is shown them, see `Item.told`."""
    return [item.told for item in state_items(((fact, 0.0) for fact in facts), snapshot)]


# Which end of a relation a question asks for, where its grammar says so.

_OF = frozenset("of for by to in".split())
_BARE = frozenset("be have do become".split())


def find_end(relation: str, question: str, names: Sequence[str]) -> bool | None:
    """True when the relation's subject is asked for, False when its object is, None when unclear.

    "Who bought X?" and "By whom was X bought?" ask for the subject of `bought`, "What did X buy?"
    and "What was bought by X?" for its object; "a tributary of X" for the subject of
    `is tributary of`, "X is a tributary of what" for its object.
    """
    words = tuple(word.casefold() for word in WORD.findall(question))
    form = normalise_relation(relation)
    lemmas = form.lemmas
    if not words or not lemmas:
        return None
    at = _find_only_name(words, names)
    if at is None:
        return None
    if lemmas[0] == "be" and len(lemmas) > 2 and lemmas[-1] in _OF:
        noun = lemmas[-2]
        place = _find_lemma(words, noun)
        if place is None or words[-1] in _OF:
            return False if place is not None and words[-1] == lemmas[-1] else None
        follows = words[place + 1 : place + 2] == (lemmas[-1],) and at > place
        return True if follows else None
    verb = lemmas[0]
    owned = relation.casefold().split()[0] in HAVE  # "has child": no verb
    if verb in _BARE or len(lemmas) > 1 or form.passive or owned:
        return None
    place = _find_lemma(words, verb)
    if place is None:
        return None
    agent = _find_role(words, place, at)
    if agent is None:
        return None
    # The named one is the agent: what is asked for is what it does it to.
    wants_subject = not agent
    return wants_subject is not form.passive_by


def _find_role(words: Sequence[str], verb: int, name: int) -> bool | None:
    """Whether the named one does what the verb says (True), or it is done to it (False)."""
    before, after = words[:verb], words[verb + 1 :]
    is_passive = bool(BE & set(before[-4:])) and not DO & set(before)
    if is_passive:
        if "by" in after[:1]:
            return name > verb
        return False if before and before[0] == "by" else None
    if DO & set(before):
        return True if name < verb else None
    return False if name > verb else None


def _find_only_name(words: Sequence[str], names: Sequence[str]) -> int | None:
    """Where the only name of a question begins; None when it has none or several."""
    if len(names) != 1:
        return None
    parts = tuple(word.casefold() for word in WORD.findall(names[0]))
    for at in range(len(words) - len(parts) + 1):
        if tuple(words[at : at + len(parts)]) == parts:
            return at
    return None


def _find_lemma(words: Sequence[str], lemma: str) -> int | None:
    return next((at for at, word in enumerate(words) if lemmatise(word) == lemma), None)


# The relevance of a fact: measures, and the chance that it answers.

_EMPTY = FUNCTION | frozenset("be have do become make get go include".split())
_OPEN = re.compile(
    r"^\W*(?:why|how(?!\s+(?:many|much|old|tall|long|high|far|large|big|deep)))\b",
    re.IGNORECASE,
)
_YEAR = re.compile(r"[12]\d{3}")
_PASSIVE = re.compile(r"^\W*how\s+(?:is|are|was|were)\b", re.IGNORECASE)
_MEANS = (" with", " by", " through", " via", " using")
"""How something is done is what it is done with: "is treated with"."""
_DEFINING = BE | ARTICLES
"""The words of a relation that says what something is: "is a", "was the"."""
_NONE: frozenset[str] = frozenset()


RELEVANCE: Mapping[str, float] = {
    "bias": -2.99,
    "anchored": -0.13,
    "bare": 0.13,
    "chosen": 5.05,
    "cosine": 1.5,
    "echo": 0.0,
    "fits": 1.96,
    "left": -1.07,
    "named": -0.1,
    "proper": 0.55,
    "said": 1.15,
    "unfit": -1.19,
}
"""Weights of the measures of this module: the chance that a fact's open side answers."""

UNFOUNDED = 0.1
"""Chance that is left of a fact that cannot answer whatever else speaks for it: a name or year of
the question occurs nowhere in it, or it is of another form than the answer. Set by hand."""

SAME_VALUE = 0.85
"""How far a date or number must say an option to be it: a year is its first of January."""


@dataclass(frozen=True, slots=True)
class RatedFact:
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


def rate_facts(asked: QuestionAnalysis, facts: Sequence[NearFact]) -> list[RatedFact]:
    """Facts with the chance that each answers the question, best first."""
    weighed = []
    for fact in facts:
        value, kind, anchor = open_side(fact, asked)
        choices = _choose(fact, value, asked)
        measures = measure(fact, value, kind, anchor, asked)
        measures["chosen"] = float(bool(choices))
        founded = not measures["missing"] and answers_form(fact, value, measures, asked)
        measures["unfounded"] = float(not founded)
        chance = find_chance(measures, RELEVANCE)
        if value and asked.is_definition:  # it answers as surely as it was read; kinds come first
            chance = round(fact.confidence * (1.0 if value == fact.tail else 0.9), 6)
        weighed.append(RatedFact(fact, value, kind, anchor, measures, chance, choices))
    return sorted(weighed, key=_rank)


def find_chance(measures: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The chance that a fact with these measures answers, six decimals."""
    chance = apply_weights(measures, weights)
    return round(min(chance, UNFOUNDED) if measures["unfounded"] else chance, 6)


def measure(
    fact: NearFact, value: str, kind: str | None, anchor: str, asked: QuestionAnalysis
) -> dict[str, float]:
    """What speaks for and against a fact that would give a value of some type.

    Its own words or its standard relation say what is asked, whichever says more of it.
    """
    is_exact = bool({fact.head_id, fact.tail_id} & set(asked.linked.entities))
    standard = list_lemmas(fact.standard)
    worded = max(
        (list_lemmas(fact.relation), standard),
        key=lambda said: count_shared(said, asked.lemmas) / max(len(said), 1),
    )
    held = tuple(text for text in fact.qualifiers if not text.startswith("document: "))
    statement = frozenset(list_plain_words(replace(fact, qualifiers=held).statement))
    lemmas = standard | frozenset(lemmatise(word) for word in statement)
    names = asked.name_words - asked.spelt.get(fact.head_id, _NONE)
    names = names - asked.spelt.get(fact.tail_id or "", _NONE) - statement
    content = [word for word in list_plain_words(value) if word not in FUNCTION]
    measures = {
        "anchored": float(is_exact and bool(anchor)),
        "named": 0.0 if is_exact else _cover(list_plain_words(anchor), asked.plain_words),
        "missing": float(bool(names)),
        "cosine": max(fact.cosine, 0.0),
        "said": count_shared(worded, asked.lemmas) / max(len(worded), 1),
        "left": (len(asked.lemmas) - count_shared(asked.lemmas, lemmas))
        / max(len(asked.lemmas), 1),
        "bare": float(not worded),
        "echo": _cover(content, asked.plain_words) if content else 1.0,
        "proper": float(kind == LITERAL or value[:1].isupper()),
    }
    return measures | measure_kind(kind, value, asked)


def open_side(fact: NearFact, asked: QuestionAnalysis) -> tuple[str, str | None, str]:
    """The value that a fact gives for the question, its type, and the side that is named.

    A side is named when it is linked, else when the question has at least half of its words, one
    of them a name. No side is open when both are named, and none is the anchor when neither is.
    "Who is X?" leaves open what facts say that X is.
    """
    if asked.is_definition and not asked.candidates:
        said = _define(fact) if fact.head_id in asked.linked.entities else ""
        return said, fact.tail_type if said else None, fact.head if said else ""
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


def _define(fact: NearFact) -> str:
    """What a fact says that its head is: "dean of Koç University"; empty when it says no kind."""
    words = fact.relation.split()
    said = [word for word in words if word not in _DEFINING]
    is_kind = not said or said[-1] in {"of", "from"}
    is_kind = is_kind and not normalise_relation(fact.relation).passive
    return " ".join([*said, fact.tail]) if words[0] in BE and is_kind else ""


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


def _choose(fact: NearFact, value: str, asked: QuestionAnalysis) -> tuple[str, ...]:
    if not asked.candidates or not value:
        return ()
    entity = fact.head_id if value == fact.head else fact.tail_id
    names = spell_out(entity, value, asked.snapshot)
    found = [match_candidates(name, asked.candidates) for name in names]
    return tuple(dict.fromkeys(c for choices in found for c in choices))


def apply_weights(measures: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The logistic model's probability."""
    total = weights["bias"] + sum(weights.get(name, 0.0) * x for name, x in measures.items())
    return 1.0 / (1.0 + math.exp(-max(min(total, 30.0), -30.0)))


@lru_cache(maxsize=100_000)
def list_lemmas(relation: str) -> frozenset[str]:
    """The lemmas of a relation or a label that say something."""
    return frozenset(
        word
        for word in normalise_relation(split_label(relation)).lemmas
        if len(word) > 2 and word not in _EMPTY
    )


def answers_form(
    fact: NearFact, value: str, measures: Mapping[str, float], asked: QuestionAnalysis
) -> bool:
    """Whether a fact has the form of an answer.

    Nothing that one fact gives answers yes or no, or why; what stands in the question answers
    nothing; and a relation has a direction: whoever bought X is not what X bought.
    """
    by_means = value == fact.tail and fact.relation.endswith(_MEANS) and _PASSIVE.match(asked.text)
    is_open = _OPEN.match(asked.text) and not by_means
    if asked.is_yes_no or is_open or measures["echo"] == 1.0:
        return False
    ends = find_end(fact.relation, asked.text, asked.linked.names)
    return ends is None or ends is (value == fact.head)


def measure_kind(kind: str | None, value: str, asked: QuestionAnalysis) -> dict[str, float]:
    """Whether a value can be what is asked for: a person, a place, a time, a number."""
    types = asked.types
    if not types or kind is None:
        return {}
    if types & NUMERIC:
        counted = any(c.isdigit() for c in value) or bool({*value.split()} & {*NUMBER_WORDS})
        return {"fits" if counted and not is_mere_year(value, types) else "unfit": 1.0}
    if fit := fits(kind, asked):
        return {"fits" if fit > 0 else "unfit": 1.0}
    # The recogniser could not type it: it may fit when it is written as a name.
    return {} if value[:1].isupper() else {"unfit": 1.0}


def is_mere_year(value: str, types: frozenset[str]) -> bool:
    """Whether a value is a year, for a question about an amount: "1906" is no number of bridges."""
    return not types & KIND_TYPES["when"] and _YEAR.fullmatch(value) is not None


def _share_name(side: str, asked: QuestionAnalysis) -> float:
    """The share of a side's words that the question has, if one is a name, and at least half."""
    words = [word for word in list_plain_words(side) if word not in FUNCTION]
    if not words or not asked.name_words & set(words):
        return 0.0
    share = _cover(words, asked.plain_words)
    return share if share >= 0.5 else 0.0


def _cover(words: Sequence[str] | frozenset[str], others: frozenset[str]) -> float:
    return sum(word in others for word in words) / len(words) if words else 0.0


def count_shared(words: frozenset[str], others: frozenset[str]) -> int:
    """The words that others have too, or a word of their stem: `director` and `direct`."""
    return sum(word in others or any(share_stem(word, other) for other in others) for word in words)


# Multi-hop retrieval of facts: "the X of the Y of Z", "when was the Y of Z born".

CLEAR = 0.6
"""Chance of a single fact from which nothing beyond it is looked for."""
FIRST_ONLY = 0.25
"""What the chance of a fact is worth that says only what the first part asks; set by hand."""
LEAST = 0.15
"""Chance of a first fact below which it is not followed: a chain is no surer than each link."""
MOST_PARTS, MOST_BRIDGES, MOST_BEYOND = 3, 3, 30
"""Ways to part a question, first facts that are followed for each, and facts about what each
gives that are weighed: some 300 in all at worst, 10 ms."""
_ARTICLE = re.compile(r"\b(?:the|a|an|whose)\b", re.IGNORECASE)
_OWNER_MARK = re.compile(r"['’]s?$")
_OWNED = re.compile(r"['’]s?\s+\w+")


@dataclass(frozen=True, slots=True)
class Parts:
    """The two questions of one: the first, and what stands before and after its answer."""

    first: str
    before: str
    after: str


def rate_singles(asked: QuestionAnalysis, facts: Sequence[NearFact]) -> list[RatedFact]:
    """Facts with the chance that each answers the whole question by itself, best first.

    One whose relation says only what the first part of a question asks answers another question:
    who wrote the book is not the uncle of who wrote it.
    """
    weighed = rate_facts(asked, facts)
    parts = list_part_lemmas(asked) if weighed else []
    for at, rated in enumerate(weighed):
        if says_only_first(list_lemmas(rated.fact.relation), parts):
            weighed[at] = replace(rated, chance=round(FIRST_ONLY * rated.chance, 6))
    return _sort(weighed)


def list_part_lemmas(asked: QuestionAnalysis) -> list[tuple[frozenset[str], frozenset[str]]]:
    """The lemmas of the first part and of the rest, for each way to part a question."""
    return [
        (_list_lemmas(part.first), _list_lemmas(f"{part.before} {part.after}"))
        for part in list_parts(asked.text, asked.linked)
    ]


def says_only_first(
    said: frozenset[str], parts: Sequence[tuple[frozenset[str], frozenset[str]]]
) -> bool:
    """Whether a relation says only what the first part of a question asks."""
    return any(said & first and not said & rest for first, rest in parts)


def hop_by_facts(asked: QuestionAnalysis, weighed: Sequence[RatedFact]) -> list[RatedFact]:
    """Weighed facts with those one step beyond the best of them, where the question asks so."""
    found = list(weighed)
    if not weighed or weighed[0].chance >= CLEAR:
        return found
    singles = [rated.fact for rated in weighed]
    for parts in list_parts(asked.text, asked.linked):
        first = rate_facts(asked.part(parts.first), singles)
        for bridge in [b for b in first if b.chance >= LEAST and _name_end(b)][:MOST_BRIDGES]:
            known = {bridge.fact.condensed_id}
            end = [_name_end(bridge)]
            about = find_about(end, asked, MOST_BEYOND, known=known)
            beyond = [replace(f, through=bridge.fact) for f in state_facts(about, asked.snapshot)]
            found += _rate_beyond(asked, parts, bridge, beyond)
    return _sort(found)


def list_parts(text: str, linked: LinkedQuestion) -> list[Parts]:
    """The ways to part a question at what it says of a name; none for a simple one."""
    whole = text.rstrip(" ?.!")
    named = frozenset(word for name in linked.names for word in list_plain_words(name))
    found = []
    for written in linked.names[:2]:
        name = _OWNER_MARK.sub("", written)
        at = whole.find(name)
        for start, end in _list_inner(whole, at, at + len(name)) if at >= 0 else ():
            inner, outer = whole[start:end], f"{whole[:start]} {whole[end:]}"
            if _says_more(inner, named) and _says_more(outer, named):
                found.append(Parts(f"What is {inner}?", whole[:start], f"{whole[end:]}?"))
    return list(dict.fromkeys(found))[:MOST_PARTS]


def _list_inner(text: str, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Where "the Y of Z", "the Y that Z made" and "Z's Y" stand, shortest first."""
    owned = _OWNED.match(text, end)
    if owned:
        yield at, owned.end()
    articles = [match.start() for match in _ARTICLE.finditer(text, 0, at)]
    for start in reversed(articles[-2:]):
        yield start, end
        if len(text) > end and not owned:
            yield start, len(text)


def _says_more(text: str, named: frozenset[str]) -> bool:
    return any(word not in named and word not in FUNCTION for word in list_plain_words(text))


def _list_lemmas(text: str) -> frozenset[str]:
    return frozenset(lemmatise(word) for word in list_plain_words(text))


def _rate_beyond(
    asked: QuestionAnalysis, parts: Parts, bridge: RatedFact, facts: Sequence[NearFact]
) -> list[RatedFact]:
    """Facts about what a first fact gives, weighed by the question that is left."""
    if not bridge.value:
        return []
    rest = asked.part(f"{parts.before}{bridge.value}{parts.after}", asked.candidates)
    return [
        replace(b, chance=round(b.chance * bridge.chance, 6))
        for b in rate_facts(rest, facts)
        if b.value
    ]


def _name_end(rated: RatedFact) -> str:
    """The entity that a fact gives; empty for a literal or no value."""
    fact = rated.fact
    if not rated.value:
        return ""
    return fact.head_id if rated.value == fact.head else fact.tail_id or ""


def _rank(rated: RatedFact) -> tuple[float | str, ...]:
    """Smaller is better: of facts that are about as relevant as each other the surer one."""
    fact, chance = rated.fact, rated.chance
    near = -round(chance, 2), -round(fact.cosine, 1)
    return *near, -fact.confidence, -chance, -fact.cosine, fact.condensed_id


def _sort(found: Sequence[RatedFact]) -> list[RatedFact]:
    """Best first, each fact once."""
    best: dict[str, RatedFact] = {}
    for rated in sorted(found, key=_rank):
        best.setdefault(rated.fact.condensed_id, rated)
    return list(best.values())
