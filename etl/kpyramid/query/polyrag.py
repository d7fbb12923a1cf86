"""PolyRAG: down the pyramid until a layer suffices (Algorithm 1), and better where it can be.

`mode="paper"` is Algorithm 1 to the letter: SPARQL; else the 10 triples nearest by embedding, if
they suffice; else the 5 chunks nearest by embedding. The first layer that has something answers,
and what it gives is given. `mode="authors"` hands the triples to the reader of the chunks as well,
as the authors' code does. `mode="best"` looks for facts about what the question names, judges
them by a calibrated probability, carries what a layer found without answering down to the next
one, unites what several layers found, and withholds what its citations do not support.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from kpyramid.errors import InputError
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import FLOOR, SUFFICIENT, Decisions, Judgement
from kpyramid.query.facts import find_facts, state_items
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
    partial: list[Reading] = field(default_factory=list)

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
    best = mode == "best" and ontology and graph

    def end(answer: Answer) -> Answer:
        return way.end(decisions.add_disagreeing(asked, answer) if best else answer)

    if best and (whole := decisions.ask_sets(asked, text=text)):
        way.trace.append(whole.trace[-1])
        return end(whole)
    if ontology:
        found = ask_ontology(asked, decisions, literal=mode != "best")
        way.trace.append(found.step)
        if found.answer:
            return end(found.answer)
        way.carried += found.items if mode == "best" else ()
        way.partial += [found.partial] if found.partial else []
    else:
        way.trace.append(_skip("ontology"))
    if graph:
        last = mode == "best" and not text and not asked.candidates
        enough = min(sufficient, FLOOR) if last else sufficient  # no passage says it better
        answer = _ask_graph(asked, decisions, way, mode, triples, enough)
        if answer:
            return end(answer)
    else:
        way.trace.append(_skip("graph"))
    if text:
        return end(_ask_text(asked, decisions, way, mode, chunks))
    way.trace.append(_skip("text"))
    return end(_read_carried(asked, decisions, way, best=mode == "best"))


def tell_recognised(asked: QuestionAnalysis) -> tuple[str, ...]:
    """What is recognised in a question: names that are known, what it asks for, what it says."""
    linked = asked.linked
    kinds = {"who": "a person or an organisation", "where": "a place", "when": "a time",
             "number": "a number"}  # fmt: skip
    said = {
        "names that the pyramid knows": ", ".join(dict.fromkeys(linked.names)) or "none",
        "asks for": kinds.get(linked.asks_for, "a thing or a value of any kind"),
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
    facts = find_facts(asked, triples, anchored=mode == "best")
    judged = decisions.judge_facts(asked, facts, sufficient)
    # A model that judges says nothing of single facts: they keep the order of their cosines.
    scores = judged.chances or {fact: fact.cosine for fact in facts}
    items = state_items(((fact, scores.get(fact, 0.0)) for fact in facts), asked.snapshot)
    answer = None
    if judged.enough:
        answer = _take_facts(asked, judged, items, decisions, literal=mode != "best")
    outcome = Outcome.INSUFFICIENT if facts else Outcome.EMPTY
    reason = judged.reason
    unsupported = ""
    if answer and not asked.candidates and mode == "best":
        unsupported = decisions.verify(asked, answer.choices, answer.evidence, items).reason
    if unsupported:  # the text may support what the fact does not
        answer, reason = None, f"{reason}; {unsupported}"
    elif answer:
        outcome = Outcome.ANSWERED
    elif judged.enough:
        reason += "; no place in the documents, or no value, can be given from it"
    found = tuple(item.text for item in items)
    chance = judged.probability if facts else None
    way.trace.append(Step("graph", outcome, reason, found, chance))
    if not answer:
        if judged.values and not judged.enough:
            way.partial.append(_read_values(judged, items))
        way.carried += _choose_carried(judged, items) if mode == "best" else items
    return answer


def _choose_carried(judged: Judgement, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """The facts that a reader of the text is shown: those that may answer, by the rules."""
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
    values = _read_values(judged, items)
    places = values.evidence
    reading = decisions.read(asked, items, values if judged.values else None)
    if not literal and not (reading.answers and (reading.evidence or places)):
        return None
    return reading.give(items, "graph", places=places)


def _read_values(judged: Judgement, items: tuple[Item, ...]) -> Reading:
    """The values of the facts that support an answer, with their citations."""
    keys = {fact.condensed_id for fact in judged.supporting}
    places = tuple(
        dict.fromkeys(place for item in items if item.key in keys for place in item.evidence)
    )
    return Reading("; ".join(judged.values), judged.values, judged.probability, places)


def _unite(readings: Sequence[Reading], candidates: Sequence[str]) -> Reading:
    """One reading of the options that several layers found, no surer than the least sure.

    What would not be given by itself takes no part.
    """
    found = [r for r in readings if r.choices and r.evidence and r.confidence >= OPTION_FLOOR]
    if len(found) < 2:
        return found[0] if found else readings[0]
    chosen = dict.fromkeys(choice for reading in found for choice in reading.choices)
    choices = tuple(c for c in candidates or chosen if c in chosen)
    return replace(
        found[0],
        text="; ".join(choices),
        choices=choices,
        confidence=min(reading.confidence for reading in found),
        evidence=tuple(dict.fromkeys(p for reading in found for p in reading.evidence)),
    )


def _ask_text(
    asked: QuestionAnalysis, decisions: Decisions, way: _Way, mode: Mode, chunks: int
) -> Answer:
    """What a reader finds in passages and, but in the paper's mode, in what was carried down."""
    if mode == "best":
        passages, _ = retrieve_passages(asked, chunks, way.carried)
    else:
        passages = tuple(find_passages(asked, chunks, by="vectors"))
    items = passages if mode == "paper" else (*passages, *way.carried)
    own = decisions.read(asked, items)
    if mode != "best":
        step = _judge_reading(own, f"{len(passages)} passages", bool(passages), "text", 0.0)
        way.trace.append(step)
        return _make_answer(own, step, items, "text")
    reading = _unite([own, *way.partial], asked.candidates)
    floor = OPTION_FLOOR if asked.candidates else 0.0
    above = reading in way.partial  # the passages add nothing to what a layer above found
    found = tuple(place.text for place in reading.evidence)
    seen = f"{len(passages)} passages" + (" add nothing to what the layers above say" * above)
    step = _judge_reading(reading, seen, bool(passages), "text", floor)
    way.trace.append(replace(step, found=found))
    layer = _name_layer(reading, tuple(way.carried)) if above else None
    return _make_answer(reading, step, items, layer or "text")


def _read_carried(
    asked: QuestionAnalysis, decisions: Decisions, way: _Way, *, best: bool
) -> Answer:
    """What a reader makes of what the upper layers found, when the text is switched off.

    Algorithm 1 takes it as it is; the `best` unites it with what each layer read, above a floor.
    """
    items = tuple(way.carried)
    if not items:
        return Answer("", (), (), None, (), ())
    own = decisions.read(asked, items)
    reading = _unite([own, *way.partial], asked.candidates) if best else own
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
