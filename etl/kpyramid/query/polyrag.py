"""PolyRAG: down the pyramid until a layer suffices (Algorithm 1), and better where it can be.

`mode="paper"` is Algorithm 1 to the letter: SPARQL; else the 10 triples nearest by embedding, if
they suffice; else the 5 chunks nearest by embedding. The first layer that has something answers,
and what it gives is given. `mode="authors"` hands the triples to the reader of the chunks as well,
as the authors' code does. `mode="best"` looks for facts about what the question names, judges
them by a calibrated probability, and carries what a layer found without answering down to the next
one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kpyramid.documents.words import split_label
from kpyramid.ontology.names import shorten
from kpyramid.query.analysis import KIND_TYPES, QuestionAnalysis
from kpyramid.query.decisions import FLOOR, SUFFICIENT, Decisions, read_values
from kpyramid.query.facts import (
    Judgement,
    find_nearest,
    gather_facts,
    match_candidates,
    spell_out,
    state_items,
)
from kpyramid.query.lookup import judge, rank_facts, state_instances
from kpyramid.query.passages import find_passages
from kpyramid.query.retrieval import CARRIED, LEAST, retrieve_passages
from kpyramid.query.types import Answer, Found, Item, Outcome, Reading, Step, list_places
from kpyramid.snapshot.individuals import find_instances
from kpyramid.snapshot.snapshot import Snapshot

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
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
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
    return way.end(_read_rest(asked, decisions, way, mode, chunks, text=text))


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


def _read_rest(
    asked: QuestionAnalysis, decisions: Decisions, way: _Way, mode: Mode, chunks: int, *, text: bool
) -> Answer:
    """What a reader finds in passages and, but in the paper's mode, in what was carried down.

    With the `text` switched off it has what was carried alone, in any mode.
    """
    best, passages = mode == "best", tuple[Item, ...]()
    if not text:
        way.trace.append(_skip("text"))
    elif best:
        passages, _ = retrieve_passages(asked, chunks, way.carried)
    else:
        passages = tuple(find_passages(asked, chunks, by="vectors"))
    items = passages if text and mode == "paper" else (*passages, *way.carried)
    if not text and not items:
        return Answer()
    reading = decisions.read(asked, items)
    named = _name_layer(reading, items)
    seen = f"{len(passages)} passages" if text else f"{len(items)} findings"
    floor = OPTION_FLOOR if best and asked.candidates else 0.0
    tried = "text" if text else named or "graph"
    step = _judge_reading(reading, seen, bool(passages) or not text, tried, floor)
    way.trace.append(step)
    by_facts = not text or (best and decisions.backends.reader == "rules")
    layer = named if by_facts else "text"
    if step.outcome is not Outcome.ANSWERED:
        return Answer(context=items, layer=layer if items else None)
    return reading.give(items, layer)


def _judge_reading(reading: Reading, seen: str, any_seen: bool, layer: str, floor: float) -> Step:
    """Whether what was read is given as the answer, and why not."""
    if not any_seen:
        return Step(layer, Outcome.EMPTY, "it has no passage for the question")
    chance, outcome = reading.confidence, Outcome.INSUFFICIENT
    if not reading.answers:
        why = reading.reason or "no sentence is near the question and answers it"
    elif not reading.evidence:
        why = "what was read in them has no place that can be shown, and is not given"
    elif chance < floor:
        why = f"the best option by them is right with a probability of {chance:.2f} only, and "
        why += f"below {floor:.2f} none is chosen"
    else:
        outcome, why = Outcome.ANSWERED, "the answer in them is right with a probability of "
        why += f"{chance:.2f}" + (f": {reading.reason}" if reading.reason else "")
    return Step(layer, outcome, f"{seen}; {why}", confidence=chance)


def _name_layer(reading: Reading, items: tuple[Item, ...]) -> str | None:
    """The layer of the item that the answer rests on; that of the first item without one."""
    cited = set(reading.evidence)
    for item in items:
        if cited & set(item.evidence):
            return item.layer
    return items[0].layer if items else None


def _skip(layer: str) -> Step:
    return Step(layer, Outcome.SKIPPED, "it was switched off")


# The ontology layer: its statements looked up, or a model's SPARQL.

RIGHT = 0.95
"""Share of a model's queries with values that ask what was meant; set by hand."""
MOST_HINTS = 3
"""Statements that go down as hints where there is no answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the layer came to: its step, the answer if it has one, and the items to carry down."""

    step: Step
    answer: Answer | None = None
    items: tuple[Item, ...] = ()


def ask_ontology(
    asked: QuestionAnalysis, decisions: Decisions, *, literal: bool, sufficient: float
) -> Finding:
    """The ontology's answer, or why it has none, and what it says nearby.

    Values answer when they can be shown in the documents and, of a question with candidates, when
    they are some of them. By the `literal` algorithm whatever the query gives is the answer.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if not decisions.writes_sparql:
        return _look_up(asked, decisions, sufficient)
    found = decisions.query_ontology(asked)
    step = Step("ontology", found.outcome, found.reason, query=found.sparql)
    if found.outcome is not Outcome.ANSWERED:
        return Finding(step)
    return _take_values(asked, found, step, decisions, literal=literal)


def _look_up(asked: QuestionAnalysis, decisions: Decisions, sufficient: float) -> Finding:
    """The values of the statements about what a question names, by the look-up."""
    snapshot = asked.snapshot
    facts = state_instances(asked)
    if not facts:
        return Finding(Step("ontology", Outcome.EMPTY, "it states nothing of what is named"))
    judged = judge(asked, facts, sufficient)
    order = sorted(facts, key=lambda f: (-judged.chances.get(f, 0.0), f.condensed_id))
    near = [f for f in order if judged.chances.get(f, 0.0) >= LEAST][:MOST_HINTS]
    shown = {f: judged.chances.get(f, 0.0) for f in (*judged.supporting, *near)}
    items = tuple(
        Item(f.condensed_id, f.statement, "ontology", chance, places, f.confidence)
        for f, chance in shown.items()
        for places in [tuple(snapshot.evidence(f.condensed_id))]
    )
    texts = tuple(item.text for item in items)
    step = Step("ontology", Outcome.INSUFFICIENT, judged.reason, texts, judged.probability)
    known = read_values(judged, items)
    if not judged.enough or not known.evidence:
        return Finding(step, items=items)
    reading = decisions.read(asked, items, known)
    answer = (reading if reading.answers else known).give(items, "ontology")
    return Finding(replace(step, outcome=Outcome.ANSWERED, found=judged.values), answer, items)


def _take_values(
    asked: QuestionAnalysis, found: Found, step: Step, decisions: Decisions, *, literal: bool
) -> Finding:
    snapshot = asked.snapshot
    shown = tuple(dict.fromkeys(_show(value, snapshot) for value in found.values))
    rows = find_instances([(shorten(s), p, shorten(o)) for s, p, o in found.facts], snapshot)
    items = tuple(state_instance(row, snapshot) for row in rows)
    places = list_places(items)
    step = replace(step, found=shown)
    if not places and not literal:
        reason = f"{found.reason}; no place in the documents says so, and it is not given"
        return _leave(step, items, reason)
    choices = shown
    if asked.candidates:
        choices = tuple(
            dict.fromkeys(
                c
                for value in found.values
                for spelt in spell_out(shorten(value), _show(value, snapshot), snapshot)
                for c in match_candidates(spelt, asked.candidates)
            )
        )
        if not choices and not literal:
            return _leave(step, items, f"{found.reason}; none of them is a candidate")
    chance = round(RIGHT * min((item.score for item in items), default=1.0), 4)
    known = Reading("; ".join(choices), choices, chance, places)
    reading = decisions.read(asked, items, known)
    answer = (reading if reading.answers else known).give(items, "ontology", places=places)
    return Finding(replace(step, confidence=chance), answer, items)


def _leave(step: Step, items: tuple[Item, ...], reason: str) -> Finding:
    return Finding(replace(step, outcome=Outcome.INSUFFICIENT, reason=reason), items=items)


def state_instance(row: Mapping[str, Any], snapshot: Snapshot) -> Item:
    """A statement of the ontology in words: a property's value, or a class."""
    names, schema = snapshot.names, snapshot.schema
    if row["property_iri"] is None:
        said = f"is a {split_label(schema.class_by_iri[row['class_iri']].label)}"
    else:
        value = names[row["object_id"]] if row["object_id"] else row["literal"]
        said = f"{split_label(schema.property_by_iri[row['property_iri']].label)} {value}"
    return Item(
        row["instance_id"],
        f"{names[row['subject_id']]} {said}",
        "ontology",
        row["confidence"],
        tuple(snapshot.evidence(row["instance_id"])),
        row["confidence"],
        conflicts=snapshot.conflicts.about(row["instance_id"]),
    )


def _show(value: str, snapshot: Snapshot) -> str:
    """A value in words: an entity's or a class's name, `yes` for an ASK that is true."""
    if value == "true":
        return "yes"
    named = snapshot.schema.class_by_iri.get(value) or snapshot.schema.property_by_iri.get(value)
    return named.label if named else snapshot.names.get(shorten(value), value)
