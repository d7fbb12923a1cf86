"""PolyRAG: down the pyramid until a layer suffices (Algorithm 1), and better where it can be.

`mode="paper"` is Algorithm 1 to the letter: SPARQL; else the 10 triples nearest by embedding, if
they suffice; else the 5 chunks nearest by embedding. The first layer that has something answers,
and what it gives is given. `mode="authors"` hands the triples to the reader of the chunks as well,
as the authors' code does. `mode="best"` looks for facts about what the question names, judges
them by a calibrated probability, and carries what a layer found without answering down to the next
one.
"""

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from kpyramid.errors import InputError
from kpyramid.query.analysis import KIND_TYPES, QuestionAnalysis
from kpyramid.query.decisions import FLOOR, SUFFICIENT, Decisions, read_values
from kpyramid.query.facts import Judgement, find_nearest, gather_facts, state_items
from kpyramid.query.lookup import rank_facts
from kpyramid.query.ontology_layer import ask_ontology
from kpyramid.query.passages import find_passages
from kpyramid.query.retrieval import CARRIED, LEAST, retrieve_passages
from kpyramid.query.types import Answer, Item, Outcome, Reading, Step

Mode = Literal["best", "authors", "paper"]
OPTION_FLOOR = 0.2
"""Probability below which no option is chosen: a guess among eight is right by .125."""


@dataclass(slots=True)
class _Way:
    """The way down so far: what was tried, what is carried."""

    trace: list[Step] = field(default_factory=list)
    carried: list[Item] = field(default_factory=list)
    recognised: tuple[str, ...] = ()

    def end(self, answer: Answer) -> Answer:
        """An answer with the whole way in it."""
        return replace(answer, trace=tuple(self.trace), recognised=self.recognised)


def ask_polyrag(
    asked: QuestionAnalysis,
    decisions: Decisions,
    *,
    mode: Mode = "best",
    triples: int = 10,
    chunks: int = 5,
    sufficient: float = SUFFICIENT,
    ontology: bool = True,
    graph: bool = True,
    text: bool = True,
) -> Answer:
    """Ontology by SPARQL, else the graph if its facts suffice, else the text.

    `ontology`, `graph` and `text` switch layers off, for ablations. The trace says of each
    whether it answered, and if not why. `sufficient` is the probability from which facts are
    enough.

    Raises:
        InputError: there is no such mode, or a number is out of its range.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if mode not in get_args(Mode):
        raise InputError(f"mode = {mode!r}: polyrag runs as {', '.join(get_args(Mode))}")
    if triples < 1 or chunks < 1 or not 0 <= sufficient <= 1:
        raise InputError("triples and chunks are 1 or more, sufficient from 0 to 1")
    way = _Way(recognised=tell_recognised(asked))
    best = mode == "best"
    if ontology:
        found = ask_ontology(asked, decisions, literal=not best, sufficient=sufficient)
        way.trace.append(found.step)
        if found.answer:
            return way.end(found.answer)
        way.carried += found.items if best else ()
    else:
        way.trace.append(_skip("ontology"))
    if graph:
        last = best and not text and not asked.candidates
        enough = min(sufficient, FLOOR) if last else sufficient  # no passage says it better
        answer = _ask_graph(asked, decisions, way, mode, triples, enough)
        if answer:
            return way.end(answer)
    else:
        way.trace.append(_skip("graph"))
    if text:
        return way.end(_ask_text(asked, decisions, way, mode, chunks))
    way.trace.append(_skip("text"))
    return way.end(_read_carried(asked, decisions, way, best=best))


def tell_recognised(asked: QuestionAnalysis) -> tuple[str, ...]:
    """What is recognised in a question: names that are known, what it asks for, what it says."""
    linked = asked.linked
    kinds = {"who": "a person or an organisation", "where": "a place", "when": "a time",
             "number": "a number"}  # fmt: skip
    asks = next((k for k in kinds if asked.types and asked.types <= KIND_TYPES[k]), "")
    said = {
        "names that the pyramid knows": ", ".join(dict.fromkeys(linked.names)) or "none",
        "asks for": kinds.get(asks, "a thing or a value of any kind"),
        "says besides": " ".join(asked.beside) or "nothing",
        "options to choose from": ", ".join(asked.candidates),
    }
    return tuple(f"{what}: {words}" for what, words in said.items() if words)


def _ask_graph(
    asked: QuestionAnalysis,
    decisions: Decisions,
    way: _Way,
    mode: Mode,
    triples: int,
    sufficient: float,
) -> Answer | None:
    """The graph's answer, None when its facts do not suffice; they are carried down."""
    best = mode == "best"
    if not best:
        facts = find_nearest(asked, triples)
    elif decisions.backends.sufficiency == "rules":
        facts = gather_facts(asked)
    else:
        facts = [fact for fact, _ in rank_facts(asked)[:triples]]
    judged = decisions.judge_facts(asked, facts, sufficient)
    # A model that judges says nothing of single facts: they keep the order of their cosines.
    scores = judged.chances or {fact: fact.cosine for fact in facts}
    shown = sorted(facts, key=lambda fact: -scores.get(fact, 0.0))[:triples] if best else facts
    shown = list(dict.fromkeys((*judged.supporting, *shown)))
    items = state_items(((fact, scores.get(fact, 0.0)) for fact in shown), asked.snapshot)
    answer = _take_facts(asked, judged, items, decisions, literal=not best)
    outcome = Outcome.INSUFFICIENT if facts else Outcome.EMPTY
    reason = judged.reason
    if answer:
        outcome = Outcome.ANSWERED
    elif judged.enough:
        reason += "; no place in the documents, or no value, can be given from it"
    found = tuple(item.text for item in items)
    chance = judged.probability if facts else None
    way.trace.append(Step("graph", outcome, reason, found, chance))
    if not answer:
        way.carried += _choose_carried(judged, items) if best else items
    return answer


def _choose_carried(judged: Judgement, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The facts that a reader of the text is shown: by the look-up those that may answer."""
    if not judged.chances:
        return items[:CARRIED]
    return tuple(item for item in items if item.score >= LEAST)[:CARRIED]


def _take_facts(
    asked: QuestionAnalysis,
    judged: Judgement,
    items: tuple[Item, ...],
    decisions: Decisions,
    *,
    literal: bool,
) -> Answer | None:
    """The answer that sufficient facts give; None when it has no words or no places.

    To the `literal` algorithm they are the context, whatever the reader makes of it.
    """
    if not judged.enough:
        return None
    values = read_values(judged, items)
    reading = decisions.read(asked, items, values if judged.values else None)
    if not literal and not (reading.answers and (reading.evidence or values.evidence)):
        return None
    return reading.give(items, "graph", places=values.evidence)


def _ask_text(
    asked: QuestionAnalysis, decisions: Decisions, way: _Way, mode: Mode, chunks: int
) -> Answer:
    """What a reader finds in passages and, but in the paper's mode, in what was carried down."""
    if mode == "best":
        passages, _ = retrieve_passages(asked, chunks, way.carried)
    else:
        passages = tuple(find_passages(asked, chunks, by="vectors"))
    items = passages if mode == "paper" else (*passages, *way.carried)
    reading = decisions.read(asked, items)
    floor = OPTION_FLOOR if asked.candidates and mode == "best" else 0.0
    step = _judge_reading(reading, f"{len(passages)} passages", bool(passages), "text", floor)
    way.trace.append(step)
    by_facts = mode == "best" and decisions.backends.reader == "rules"
    layer = _name_layer(reading, items) if by_facts else "text"
    return _make_answer(reading, step, items, layer)


def _read_carried(
    asked: QuestionAnalysis, decisions: Decisions, way: _Way, *, best: bool
) -> Answer:
    """What a reader makes of what the upper layers found, when the text is switched off."""
    items = tuple(way.carried)
    if not items:
        return Answer("", (), (), None, (), ())
    reading = decisions.read(asked, items)
    floor = OPTION_FLOOR if best and asked.candidates else 0.0
    layer = _name_layer(reading, items)
    step = _judge_reading(reading, f"{len(items)} findings", True, layer or "graph", floor)
    way.trace.append(step)
    return _make_answer(reading, step, items, layer)


def _judge_reading(reading: Reading, seen: str, any_seen: bool, layer: str, floor: float) -> Step:
    """Whether what was read is given as the answer, and why not."""
    if not any_seen:
        return Step(layer, Outcome.EMPTY, "it has no passage for the question")
    chance = reading.confidence
    if not reading.answers:
        why = reading.reason or "no sentence is near the question and answers it"
        return Step(layer, Outcome.INSUFFICIENT, f"{seen}; {why}", confidence=chance)
    if not reading.evidence:
        why = "what was read in them has no place that can be shown, and is not given"
        return Step(layer, Outcome.INSUFFICIENT, f"{seen}; {why}", confidence=chance)
    if chance < floor:
        why = (
            f"the best option by them is right with a probability of {chance:.2f} only, and "
            f"below {floor:.2f} none is chosen"
        )
        return Step(layer, Outcome.INSUFFICIENT, f"{seen}; {why}", confidence=chance)
    why = f"the answer in them is right with a probability of {chance:.2f}"
    why = f"{why}: {reading.reason}" if reading.reason else why
    return Step(layer, Outcome.ANSWERED, f"{seen}; {why}", confidence=chance)


def _make_answer(
    reading: Reading, step: Step, items: tuple[Item, ...], layer: str | None
) -> Answer:
    """The answer that was read, or the context alone when it is not given."""
    if step.outcome is not Outcome.ANSWERED:
        return Answer("", (), items, layer if items else None, (), ())
    return reading.give(items, layer)


def _name_layer(reading: Reading, items: tuple[Item, ...]) -> str | None:
    """The layer of the item that the answer rests on; that of the first item without one."""
    cited = set(reading.evidence)
    for item in items:
        if cited & set(item.evidence):
            return item.layer
    return items[0].layer if items else None


def _skip(layer: str) -> Step:
    return Step(layer, Outcome.SKIPPED, "it was switched off")
