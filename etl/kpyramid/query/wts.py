"""WTS: Way to Specialist, its DKG-augmented answering (Zhang et al. 2025, 3.2.1 and Algorithm 1).

The entities of a question are matched with facts; those near enough to the question are scored,
and the best of each depth are kept (width pruning). From all that is kept an answer is read; is it
sure, the search ends (depth pruning), else the new entities start the next depth.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kpyramid.errors import InputError
from kpyramid.llm.types import Failure
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.anchors import Anchors, link_names
from kpyramid.query.chains import charge, choose_fitting, rate_paths, read_paths
from kpyramid.query.decisions import Decisions
from kpyramid.query.depths import DISTANCE, MATCHES, WIDTH, Search
from kpyramid.query.facts import NearFact, state_items, tell_facts
from kpyramid.query.types import Answer, Item, Outcome, Step

ENTITIES = 5
"""The paper's N: names of a question from which a search starts (Prompt 1)."""
DEPTH = 3
"""The paper's D is 2 to 4 by data set (Table 5), 3 for most of them."""
SUFFICIENT = 0.5
"""Chance of a chain from which rules go no deeper."""
_SHOWN = 5


def ask_wts(
    asked: QuestionAnalysis,
    decisions: Decisions,
    *,
    entities: int = ENTITIES,
    depth: int = DEPTH,
    width: int = WIDTH,
    distance: float = DISTANCE,
    match: str = "question",
    chained: bool = True,
    sufficient: float = SUFFICIENT,
    knowledge: bool = False,
    domain: str = "",
) -> Answer:
    """The answer that is read from the facts kept at each depth, as deep as it takes.

    `match`: facts are near to the question, to its entities, or matched by entities alone (EM-QSR,
    EM-ESR and EM of Table 2). `chained`: beyond the first depth a fact is compared together with
    those that lead to it. `sufficient` is the chance from which rules go no deeper; `knowledge`
    lets a model that reads add what it knows, `domain` is what it is told to be an expert in.

    Raises:
        InputError: a number is out of its range, or `match` is none of those.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if min(entities, depth, width) < 1 or not (0 <= distance <= 1 and 0 <= sufficient <= 1):
        raise InputError(
            "entities, depth and width are 1 or more, distance and sufficient from 0 to 1"
        )
    if match not in MATCHES:
        raise InputError(f"match = {match[:40]!r}: facts are matched by {', '.join(MATCHES)}")
    from kpyramid.query.limits import limit_depths

    asking = limit_depths(decisions)
    found, steps = _extract_entities(asked, asking.entities, entities, domain)
    search = Search(asked, width, distance, match, chained=chained)
    search.begin(found.anchors.entities)
    said, calls, tokens = found.recognised, found.calls, found.tokens
    answer, names = Answer("", (), (), None, (), ()), asked.snapshot.names
    for level in range(1, depth + 1):
        if not search.ahead:
            break
        asking.deepen()
        query = f"depth {level}, from {_list_some([names[e] for e in search.ahead])}"
        near = search.match_facts()
        scores, note, spent = _score_facts(search, near, asking.scores, domain)
        calls, tokens = calls + spent[0], tokens + spent[1]
        kept = search.keep(near, scores)
        note = f"{search.note}, {note}, {len(kept)} kept"
        if asking.reader:
            one, sure = _reason(search, asking, note, domain, knowledge=knowledge)
        else:
            one, sure = _read_chains(search, decisions, note, sufficient)
        calls, tokens = calls + one.calls, tokens + one.tokens
        last = level == depth or not search.ahead
        step = replace(one.trace[-1], found=tuple(f.statement for f in kept), query=query)
        if not sure:
            outcome = Outcome.INSUFFICIENT if search.kept else Outcome.EMPTY
            end = "nothing further to go on from" if level < depth else "the last depth"
            step = replace(
                step,
                outcome=step.outcome if last and one.text else outcome,
                reason=f"{step.reason}; not sure, {end if last else 'deeper'}",
            )
        steps.append(step)
        answer = one
        if sure:
            break
    if not any(step.layer == "graph" for step in steps):
        steps.append(Step("graph", Outcome.EMPTY, "no entity of it is known to the graph"))
    assert asking.calls.taken <= asking.calls.most
    answer = charge(replace(answer, calls=0, tokens=0), calls, tokens)
    return replace(answer, recognised=(*said, *answer.recognised), trace=tuple(steps))


# Entity extraction module.


@dataclass(frozen=True, slots=True)
class _Found:
    """Where a search starts, what is told of it, and what the model took."""

    anchors: Anchors
    recognised: tuple[str, ...]
    calls: int = 0
    tokens: int = 0


def _extract_entities(
    asked: QuestionAnalysis, asker: Any, most: int, domain: str
) -> tuple[_Found, list[Step]]:
    """At most `most` entities of the question; by rules the names that the graph knows."""
    names, calls, tokens = asked.linked.names[:most], 0, 0
    steps: list[Step] = []
    similar: dict[str, Any] = {"similar": None}
    if asker:
        from kpyramid.query.model.wts import extract

        told = extract(asked.question, most, domain, asker)
        calls, tokens = told.calls, told.tokens
        if isinstance(told.value, Failure):
            why = f"the model lists no entities: {told.value.kind}: {told.value.detail}"
            steps.append(Step("model", Outcome.FAILED, why))
        else:
            names, similar = told.value, {}
    anchors = link_names(names, asked.snapshot, **similar)
    shown = [asked.snapshot.names[one] for one in anchors.entities]
    recognised = [f"entities: {_list_some(shown)}"]
    if anchors.unknown:
        recognised.append(f"not in the graph: {_list_some(anchors.unknown)}")
    return _Found(anchors, tuple(recognised), calls, tokens), steps


def _list_some(names: Sequence[str]) -> str:
    own = list(dict.fromkeys(names))
    more = f" and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
    return f"{', '.join(own[:_SHOWN])}{more}" or "none"


# Pruning module.


def _score_facts(
    search: Search, near: Sequence[NearFact], asker: Any, domain: str
) -> tuple[dict[str, float], str, tuple[int, int]]:
    """The relevance of facts by their keys, how it was found, calls and tokens.

    By a model only of those that it scores above 0; by rules the chance of the chain to a fact.
    """
    by_rules = search.score()
    if not asker or not near:
        return by_rules, "scored by rules", (0, 0)
    from kpyramid.query.model.wts import score

    shown = tell_facts(near, search.asked.snapshot)
    told = score(search.asked.question, shown, domain, asker)
    if isinstance(told.value, Failure):
        note = f"scored by rules, since the model gave no scores ({told.value.kind})"
        return by_rules, note, (told.calls, told.tokens)
    scores, odd = told.value
    note = "scored by the model"
    if odd:
        note += f" ({odd} scores of no triple shown or out of range left out)"
    named = {near[at].condensed_id: value for at, value in scores.items() if value > 0}
    return named, note, (told.calls, told.tokens)


# Reasoning module.


def _read_chains(
    search: Search, decisions: Decisions, note: str, sufficient: float
) -> tuple[Answer, bool]:
    """By rules: the value of the likeliest chain of what is kept, and whether it is sure."""
    rated = choose_fitting(search.asked, rate_paths(search.asked, search.list_likely()))
    best = next((one for one in rated if one.choices or not search.asked.candidates), None)
    sure = best is not None and best.chance >= sufficient
    found = read_paths(search.asked, rated, note, decisions, context=_show_kept(search))
    if best is None:
        return found, False
    step = replace(found.trace[-1], reason=f"{note}; support: {best.path.statement}")
    return replace(found, trace=(step,)), sure


def _reason(
    search: Search, asking: Any, note: str, domain: str, *, knowledge: bool
) -> tuple[Answer, bool]:
    """By a model: the answer from all that is kept, and whether it is confident."""
    from kpyramid.query.model.wts import reason

    items = _show_kept(search)
    if not items and not knowledge:
        return Answer("", (), (), None, (), (Step("graph", Outcome.EMPTY, note),)), False
    question, ways = search.asked.question, {"domain": domain, "logprobs": asking.logprobs}
    told = reason(question, items, asking.reader, knowledge=knowledge, **ways)
    assert not isinstance(told.value, Failure)  # a failure is a reading with its reason
    reading = told.value.reading
    why = [note, reading.reason, f"support: {told.value.support}" if told.value.support else ""]
    outcome = Outcome.ANSWERED if reading.text else Outcome.INSUFFICIENT
    step = Step("graph", outcome, "; ".join(filter(None, why)), (), reading.confidence)
    answer = Answer(
        reading.text,
        reading.choices,
        items,
        "graph" if reading.evidence or not reading.text else "model",
        reading.evidence,
        (step,),
        confidence=reading.confidence,
        calls=told.calls,
        tokens=told.tokens,
        logprobs=reading.logprobs,
    )
    return answer, told.value.sure


def _show_kept(search: Search) -> tuple[Item, ...]:
    """The union of what each depth kept, in that order."""
    kept = ((fact, fact.cosine) for fact in search.kept.values())
    return state_items(kept, search.asked.snapshot)
