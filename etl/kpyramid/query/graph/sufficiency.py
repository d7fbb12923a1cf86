"""Whether facts are enough to answer from: the twin by rules of `Query_kg`, and its dispatch.

The rules give a probability. Two logistic models stand behind it: one weighs each fact by itself
(`bearing`), one the best of them beside its rival, the best fact that gives another value. Both
were fitted on questions with known answers; the threshold is a choice about errors.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kpyramid.query.graph.bearing import UNFOUNDED, Bearing, apply_weights, take_apart
from kpyramid.query.graph.chains import weigh_chains, weigh_singles
from kpyramid.query.graph.facts import NearFact
from kpyramid.query.graph.weights import SUFFICIENCY
from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.types import Makers, Question

SUFFICIENT = 0.65
"""Probability from which the graph answers: of what is answered from there on, about nine in ten
are right on questions that the weights were not fitted on; between .5 and .6 fewer than half are
(`benchmarks/RESULTS.md`). What is below goes down to the text, which sees these facts as well: a
question sent down needlessly costs milliseconds, one answered wrongly costs trust."""
MOST_LEAD = 4.0
"""Log-odds by which the best fact leads, beyond which more make no difference."""
_AS_GOOD = 0.8
"""Share of the best fact's chance from which another value of the same relation is given too."""
MOST_VALUES = 5
"""Values that one question has; what has more is a list that a reader of the text words better."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether facts are enough, how probably their answer is right, and which facts bear it.

    `values` are what they give, of a question with candidates the candidates, also when several of
    them are wanted, for which facts are never enough: there may be more below. `chances` says of
    each fact how probably it answers, where the rules judged.
    """

    enough: bool
    probability: float
    reason: str
    bearing: tuple[NearFact, ...]
    values: tuple[str, ...] = ()
    chances: Mapping[NearFact, float] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0


def judge_facts(
    question: Question,
    facts: Sequence[NearFact],
    snapshot: Snapshot,
    makers: Makers,
    *,
    sufficient: float = SUFFICIENT,
) -> Judgement:
    """Whether facts answer a question, by rules or by the model that `makers` names.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if not facts:
        return Judgement(False, 0.0, "there is no fact to judge", ())
    weighed = weigh_singles(question, [f for f in facts if not f.through], snapshot)
    chains = weigh_chains(question, [f for f in facts if f.through], snapshot)
    weighed = sorted([*weighed, *chains], key=lambda b: (-b.chance, b.fact.condensed_id))
    best = weigh_best(question, weighed, snapshot)
    if makers.sufficiency == "llm":
        return _ask_model(question, facts, best, makers)
    if best is None:
        return Judgement(False, 0.0, _explain_none(question, weighed), ())
    enough = best.chance >= sufficient
    reason = (
        f"the best fact, “{best.facts[0].fact.statement}”, answers with a probability of "
        f"{best.chance:.2f}; {sufficient:.2f} is asked for"
    )
    values = best.values if enough else ()
    number = take_apart(question, snapshot).read.number if question.candidates else "any"
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
        values = _list_values(question, best.facts)
    bearing = tuple(b.fact for b in best.facts)
    chances = {b.fact: b.chance for b in weighed}
    return Judgement(enough, best.chance, reason, bearing, values, chances)


@dataclass(frozen=True, slots=True)
class Best:
    """The fact that answers best with those that say the same or as much, and their measures."""

    facts: tuple[Bearing, ...]
    values: tuple[str, ...]
    measures: Mapping[str, float]
    chance: float


def weigh_best(question: Question, weighed: Sequence[Bearing], snapshot: Snapshot) -> Best | None:
    """What the best of some weighed facts gives; None when none has an open side that fits.

    With candidates only facts that give one of them count. A fact that the text denies or only
    supposes is never probable.
    """
    usable = [b for b in weighed if b.value]
    if question.candidates:
        usable = [b for b in usable if b.choices]
    if not usable:
        return None
    best = usable[0]
    allies = [b for b in usable if _says_as_much(b, best)]
    rival = next((b for b in usable if b not in allies), None)
    same = [b for b in allies if b.meaning == best.meaning]
    lead = _take_logit(best.chance) - _take_logit(rival.chance) if rival else MOST_LEAD
    measures = {
        "best": _take_logit(best.chance),
        "lead": min(lead, MOST_LEAD),
        "again": math.log2(min(len(same), 4)) / 2,
        "several": float(len({b.meaning for b in allies}) > 1),
        **weigh_support(best.fact, snapshot),
    }
    chance = round(apply_weights(measures, SUFFICIENCY), 4)
    if measures["negated"] or best.measures["unfounded"]:
        chance = min(chance, UNFOUNDED)
    return Best(tuple(allies), _list_values(question, allies), measures, chance)


def weigh_support(fact: NearFact, snapshot: Snapshot) -> dict[str, float]:
    """How well the text supports a fact: how surely it was read, how often it is said."""
    ((confidence, statements, negated, hedged),) = snapshot.weigh_condensed([fact.condensed_id])
    return {
        "confidence": confidence,
        "said_often": math.log2(min(max(statements, 1), 16)) / 4,
        "negated": float(negated),
        "hedged": float(hedged),
    }


def _says_as_much(one: Bearing, best: Bearing) -> bool:
    """Whether a fact gives the same value, or another one that stands to the same thing alike."""
    if one.meaning == best.meaning:
        return True
    ends = (one.fact.relation, one.anchor, one.value == one.fact.head)
    return ends == (best.fact.relation, best.anchor, best.value == best.fact.head) and (
        one.chance >= _AS_GOOD * best.chance
    )


def _list_values(question: Question, allies: Sequence[Bearing]) -> tuple[str, ...]:
    if question.candidates:
        return tuple(dict.fromkeys(c for b in allies for c in b.choices))
    values = {b.meaning: b.value for b in reversed(allies)}
    return tuple(dict.fromkeys(values[b.meaning] for b in allies))[:MOST_VALUES]


def _take_logit(chance: float) -> float:
    safe = min(max(chance, 1e-6), 1 - 1e-6)
    return math.log(safe / (1 - safe))


def _explain_none(question: Question, weighed: Sequence[Bearing]) -> str:
    if not any(b.anchor for b in weighed):
        return "no fact is about anything that the question names"
    if question.candidates:
        return "no fact about what the question names gives one of the candidates"
    return "no fact about what the question names says anything new of it"


def _ask_model(
    question: Question, facts: Sequence[NearFact], best: Best | None, makers: Makers
) -> Judgement:
    """The model's yes or no; the values are those that the rules would take."""
    assert makers.asker is not None  # `Makers` demands it
    from kpyramid.query.model.sufficiency import judge_by_model  # prompts take as long as the rest

    verdict = judge_by_model(question, [fact.statement for fact in facts], makers.asker)
    ours = tuple(b.fact for b in best.facts) if best else ()
    bearing = tuple(facts[at] for at in verdict.bearing) or ours or tuple(facts[:1])
    # Facts of the model's own choice are read anew: the values of the rules' are not theirs.
    values = best.values if best and verdict.enough and set(bearing) & set(ours) else ()
    return Judgement(
        verdict.enough,
        best.chance if best else 0.0,
        f"the model says {'yes' if verdict.enough else 'no'}: {verdict.reason}",
        bearing,
        values,
        calls=verdict.calls,
        tokens=verdict.tokens,
    )
