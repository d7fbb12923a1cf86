"""The port's decisions by rules; among them whether facts are enough to answer from.

For that the rules give a probability. Two logistic models stand behind it: one rates each fact by
itself (`query/facts.py`), one the best of them beside its rival, the best fact that gives another
value. Both were fitted on questions with known answers; the threshold is a choice about errors.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kpyramid.answering.reader import read
from kpyramid.answering.related import state_sound
from kpyramid.answering.sets import ask_sets, widen
from kpyramid.answering.sparql import ask_by_rules
from kpyramid.answering.verification import verify_places
from kpyramid.documents.values import agree, read_value
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import SUFFICIENT, Found, Judgement, Verification
from kpyramid.query.facts import (
    UNFOUNDED,
    NearFact,
    RatedFact,
    apply_weights,
    rate_chains,
    rate_singles,
)
from kpyramid.query.options import read_number
from kpyramid.query.types import Answer, Item, Reading
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.view import LITERAL

SUFFICIENCY: Mapping[str, float] = {
    "bias": -1.94,
    "again": 0.69,
    "best": 1.02,
    "confidence": 1.91,
    "hedged": 0.44,
    "lead": 0.36,
    "negated": 0.0,
    "said_often": -0.25,
    "several": -0.24,
}
"""Weights of the measures of `weigh_best`: the chance that the best fact answers."""
MOST_LEAD = 4.0
"""Log-odds by which the best fact leads, beyond which more make no difference."""
_AS_GOOD = 0.8
"""Share of the best fact's chance from which another value of the same relation is given too."""
MOST_VALUES = 5
"""Values that one question has; what has more is a list that a reader of the text words better."""


class Rules:
    """The decisions of `kpyramid.query.decisions.Decisions` by rules: no model is asked."""

    walker = None

    def ask_sets(self, asked: QuestionAnalysis, *, text: bool = True) -> Answer | None:
        """See `Decisions`."""
        return ask_sets(asked, text=text)

    def query_ontology(self, asked: QuestionAnalysis) -> Found:
        """See `Decisions`."""
        return ask_by_rules(asked.text, asked.snapshot)

    def judge_facts(
        self, asked: QuestionAnalysis, facts: Sequence[NearFact], sufficient: float = SUFFICIENT
    ) -> Judgement:
        """See `Decisions`."""
        return judge_facts(asked, facts, sufficient)

    def read(
        self, asked: QuestionAnalysis, items: Sequence[Item], found: Reading | None = None
    ) -> Reading:
        """See `Decisions`."""
        return found or read(asked, items)

    def add_disagreeing(self, asked: QuestionAnalysis, answer: Answer) -> Answer:
        """See `Decisions`."""
        return add_disagreeing(asked, answer)

    def recall(self, asked: QuestionAnalysis) -> Reading:
        """No answer to an open question; of candidates a guess, the one nearest to the question."""
        options = asked.candidates
        if not options:
            return Reading("", (), 0.0, (), reason="rules know nothing without context")
        vectors = asked.snapshot.embedder.embed([asked.text, *options])
        guess = options[int(np.argmax(vectors[1:] @ vectors[0]))]
        # "None of them" is one more that can be right; one option is no surer than one of two.
        chance = 1 / (max(len(options), 2) + 1)
        reason = "a guess: the candidate nearest to the question"
        return Reading(guess, (guess,), chance, (), reason=reason)

    def verify(
        self,
        asked: QuestionAnalysis,
        values: Sequence[str],
        places: Sequence[Evidence],
        context: Sequence[Item],
    ) -> Verification:
        """See `Decisions`."""
        return verify_places(asked, values, places, context)


def add_disagreeing(asked: QuestionAnalysis, answer: Answer) -> Answer:
    """A date or number with the others that other documents state of a property of one value."""
    value = read_value(answer.text)
    if value is None or asked.candidates:
        return answer
    snapshot = asked.snapshot
    single = {
        label.casefold()
        for one in snapshot.schema.properties
        if one.is_functional
        for label in (one.label, *one.alt_labels)
    }
    own = set(asked.linked.entities)
    facts = [f for f in state_sound(snapshot.facts_about(own), snapshot) if f.head_id in own]
    named = [(f, snapshot.name_standard(f.condensed_id) or f.relation) for f in facts]
    told = [(f, name, read_value(f.tail.rstrip("."))) for f, name in named if name in single]
    said = {(f.head_id, name) for f, name, stated in told if stated and agree(value, stated)}
    places, values = list(answer.evidence), [answer.text]
    known = {place.document_id for place in places}
    for fact, name, stated in told:
        if type(stated) is not type(value) or (fact.head_id, name) not in said:
            continue
        if any(agree(one, stated) for text in values if (one := read_value(text))):
            continue
        evidence = [e for e in snapshot.evidence(fact.condensed_id) if e.document_id not in known]
        if evidence and not any(text.startswith("time: ") for text in fact.qualifiers):
            values.append(fact.tail)
            places += [widen(place, snapshot) for place in evidence]
    if len(values) == 1:
        return answer
    cited = tuple(dict.fromkeys(places))
    return replace(answer, text="; ".join(values), choices=tuple(values), evidence=cited)


def judge_facts(
    asked: QuestionAnalysis, facts: Sequence[NearFact], sufficient: float = SUFFICIENT
) -> Judgement:
    """Whether facts answer a question."""
    if not facts:
        return Judgement(False, 0.0, "there is no fact to judge", ())
    weighed = rate_singles(asked, [f for f in facts if not f.through])
    chains = rate_chains(asked, [f for f in facts if f.through])
    weighed = sorted(
        [*weighed, *chains], key=lambda b: (-b.chance, -b.fact.confidence, b.fact.condensed_id)
    )
    best = weigh_best(asked, weighed)
    if best is None:
        return Judgement(False, 0.0, _explain_none(asked, weighed), ())
    enough = best.chance >= sufficient
    reason = (
        f"the best fact, “{best.facts[0].fact.statement}”, answers with a probability of "
        f"{best.chance:.2f}; {sufficient:.2f} is asked for"
    )
    values = best.values if enough else ()
    number = read_number(asked.text) if asked.candidates else "any"
    if number == "one" and values:
        values = values[:1]
        saying = tuple(b for b in best.facts if values[0] in b.choices)
        best = replace(best, facts=saying or best.facts)
    if number == "several" and values:
        enough = False
        reason = f"{reason}; the question wants several of its options: more may be found below"
        likely = [b for b in weighed if b.choices and b.chance >= sufficient]
        likely = [b for b in likely if b not in best.facts]
        best = replace(best, facts=(*best.facts, *likely))
        values = _list_values(asked, best.facts)
    supporting = tuple(b.fact for b in best.facts)
    chances = {b.fact: b.chance for b in weighed}
    return Judgement(enough, best.chance, reason, supporting, values, chances)


@dataclass(frozen=True, slots=True)
class Best:
    """The fact that answers best with those that say the same or as much, and their measures."""

    facts: tuple[RatedFact, ...]
    values: tuple[str, ...]
    measures: Mapping[str, float]
    chance: float


def weigh_best(asked: QuestionAnalysis, weighed: Sequence[RatedFact]) -> Best | None:
    """What the best of some weighed facts gives; None when none has an open side that fits.

    With candidates only facts that give one of them count. A fact that the text denies or only
    supposes is never probable.
    """
    usable = [b for b in weighed if b.value]
    if asked.candidates:
        usable = [b for b in usable if b.choices]
    if not usable:
        return None
    best = usable[0]
    allies = [b for b in usable if _says_as_much(b, best, asked.snapshot)]
    rival = next((b for b in usable if b not in allies), None)
    same = [b for b in allies if b.meaning == best.meaning]
    lead = _take_logit(best.chance) - _take_logit(rival.chance) if rival else MOST_LEAD
    measures = {
        "best": _take_logit(best.chance),
        "lead": min(lead, MOST_LEAD),
        "again": math.log2(min(len(same), 4)) / 2,
        "several": float(len({b.meaning for b in allies}) > 1),
        **weigh_support(best.fact, asked.snapshot),
    }
    chance = round(apply_weights(measures, SUFFICIENCY), 4)
    if measures["negated"] or best.measures["unfounded"]:
        chance = min(chance, UNFOUNDED)
    return Best(tuple(allies), _list_values(asked, allies), measures, chance)


def weigh_support(fact: NearFact, snapshot: Snapshot) -> dict[str, float]:
    """How well the text supports a fact: how surely it was read, how often it is said."""
    ((confidence, statements, negated, hedged),) = snapshot.weigh_condensed([fact.condensed_id])
    return {
        "confidence": confidence,
        "said_often": math.log2(min(max(statements, 1), 16)) / 4,
        "negated": float(negated),
        "hedged": float(hedged),
    }


def _says_as_much(one: RatedFact, best: RatedFact, snapshot: Snapshot) -> bool:
    """Whether a fact gives the same value, or another one that stands to the same thing alike.

    A name is as sure as the best one when one sentence says both.
    """
    if one.meaning == best.meaning:
        return True
    ends = (one.fact.relation, one.anchor, one.value == one.fact.head)
    if ends != (best.fact.relation, best.anchor, best.value == best.fact.head):
        return False
    if one.chance >= _AS_GOOD * best.chance:
        return True
    is_name = one.measures["proper"] and "unfit" not in one.measures
    if not is_name or LITERAL in (one.value_type, best.value_type):
        return False
    places = [{*snapshot.evidence(b.fact.condensed_id)} for b in (one, best)]
    return not places[0].isdisjoint(places[1])


def _list_values(asked: QuestionAnalysis, allies: Sequence[RatedFact]) -> tuple[str, ...]:
    if asked.candidates:
        return tuple(dict.fromkeys(c for b in allies for c in b.choices))
    values = {b.meaning: b.value for b in reversed(allies)}
    return tuple(dict.fromkeys(values[b.meaning] for b in allies))[:MOST_VALUES]


def _take_logit(chance: float) -> float:
    safe = min(max(chance, 1e-6), 1 - 1e-6)
    return math.log(safe / (1 - safe))


def _explain_none(asked: QuestionAnalysis, weighed: Sequence[RatedFact]) -> str:
    if not any(b.anchor for b in weighed):
        return "no fact is about anything that the question names"
    if asked.candidates:
        return "no fact about what the question names gives one of the candidates"
    return "no fact about what the question names says anything new of it"
