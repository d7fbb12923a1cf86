"""PolyRAG: down the pyramid until a layer suffices (Algorithm 1)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kpyramid.extraction.normal import normalise_relation
from kpyramid.query.kaping import NearFact, answer_from_facts, find_facts, pick_side
from kpyramid.query.linking import KIND_TYPES, LinkedQuestion
from kpyramid.query.naive import ask_naive
from kpyramid.query.snapshot import LITERAL, Snapshot
from kpyramid.query.sparql_model import ask_by_model
from kpyramid.query.sparql_rules import Found, ask_by_rules, shorten
from kpyramid.query.types import Answer, Item, Makers, Outcome, Question, Step

SUFFICIENT = 0.6
"""Cosine of question and fact from which the graph's answer is taken; the twin by rules of the
yes/no prompt `Query_kg`. It holds only for facts that name an entity of the question."""


def ask_polyrag(
    question: Question,
    snapshot: Snapshot,
    makers: Makers,
    *,
    triples: int = 10,
    chunks: int = 5,
    sufficient: float = SUFFICIENT,
    ontology: bool = True,
    graph: bool = True,
    text: bool = True,
) -> Answer:
    """Ontology by SPARQL, else the graph if its facts suffice, else the text.

    `ontology`, `graph` and `text` switch layers off, for ablations. The trace says of each
    whether it answered, and if not why.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    linked = snapshot.link(question.text)
    trace: tuple[Step, ...] = ()
    calls = tokens = 0
    if ontology:
        found = _ask_ontology(question.text, snapshot, makers)
        trace, calls, tokens = (found.step,), found.calls, found.tokens
        if found.outcome is Outcome.ANSWERED:
            return _answer_from_values(found, snapshot)
    lower = _ask_below(
        question, snapshot, makers, linked, trace, triples, chunks, sufficient, graph, text
    )
    return replace(lower, calls=calls, tokens=tokens)


def _ask_below(
    question: Question,
    snapshot: Snapshot,
    makers: Makers,
    linked: LinkedQuestion,
    trace: tuple[Step, ...],
    triples: int,
    chunks: int,
    sufficient: float,
    graph: bool,
    text: bool,
) -> Answer:
    """The answer of the graph if its facts suffice, else of the text."""
    if graph:
        facts = find_facts(question.text, snapshot, triples)
        enough, step = _judge_facts(facts, linked, sufficient)
        outcome = Outcome.ANSWERED if enough else Outcome.INSUFFICIENT if facts else Outcome.EMPTY
        trace = (*trace, Step("graph", outcome, step))
        if enough or (facts and not text):
            return answer_from_facts(enough or facts, facts, linked, snapshot, trace)
    if text:
        lower = ask_naive(question, snapshot, makers, chunks=chunks)
        return replace(lower, trace=(*trace, *lower.trace))
    return Answer("", (), (), None, (), trace)


def _ask_ontology(question: str, snapshot: Snapshot, makers: Makers) -> Found:
    if makers.sparql == "rules":
        return ask_by_rules(question, snapshot)
    assert makers.asker is not None  # `Makers` demands it
    return ask_by_model(question, snapshot, makers.asker)


def _answer_from_values(found: Found, snapshot: Snapshot) -> Answer:
    shown = tuple(dict.fromkeys(_show(value, snapshot) for value in found.values))
    facts = [(shorten(s), p, shorten(o)) for s, p, o in found.facts]
    rows = snapshot.find_instances(facts)
    items = tuple(_state_instance(row, snapshot) for row in rows)
    places = tuple(dict.fromkeys(place for item in items for place in item.evidence))
    return Answer(
        text="; ".join(shown),
        choices=shown,
        context=items or tuple(Item("", value, "ontology", 1.0, ()) for value in shown),
        layer="ontology",
        evidence=places,
        trace=(found.step,),
        calls=found.calls,
        tokens=found.tokens,
    )


def _state_instance(row: Mapping[str, Any], snapshot: Snapshot) -> Item:
    """A statement of the ontology in words."""
    names = snapshot.names
    relation = snapshot.schema.property_by_iri[row["property_iri"]].label
    value = names[row["object_id"]] if row["object_id"] else row["literal"]
    return Item(
        row["instance_id"],
        f"{names[row['subject_id']]} {relation} {value}",
        "ontology",
        row["confidence"],
        tuple(snapshot.evidence(row["instance_id"])),
    )


def _show(value: str, snapshot: Snapshot) -> str:
    """A value in words: an entity's or a class's name, `yes` for an ASK that is true."""
    if value == "true":
        return "yes"
    named = snapshot.schema.class_by_iri.get(value) or snapshot.schema.property_by_iri.get(value)
    return named.label if named else snapshot.names.get(shorten(value), value)


def _judge_facts(
    facts: list[NearFact], question: LinkedQuestion, sufficient: float
) -> tuple[list[NearFact], str]:
    """The facts that answer the question, and why; none when the graph does not suffice."""
    if not facts:
        return [], "it has no fact"
    named = set(question.entities)
    asked = set(question.lemmas)
    near = [fact for fact in facts if fact.cosine >= sufficient]
    about = [f for f in near if named & {f.head_id, f.tail_id}]
    # Nearness alone is fooled by a fact about the right entity that says something else: the
    # relation has to share a word with the question, and the value to be of the kind asked for.
    saying = [f for f in about if asked & _say(f) and _fits_kind(f, question)]
    found = f"{len(facts)} facts, best cosine {facts[0].cosine:.2f}"
    if saying:
        return saying, f"{found}; {len(saying)} reach {sufficient} and say what is asked"
    return [], (
        f"{found}; {len(near)} reach {sufficient}, {len(about)} of them name an entity of "
        "the question, none says what is asked"
    )


def _fits_kind(fact: NearFact, question: LinkedQuestion) -> bool:
    """Whether the side that the question does not name can be what it asks for."""
    side, kind = pick_side(fact, question)
    if question.asks_for in {"when", "number"}:
        return kind == LITERAL
    if question.asks_for == "what":
        return True
    if kind == "NOUN":  # the recogniser could not type it: it fits when it is written as a name
        return side[:1].isupper()
    return kind in KIND_TYPES[question.asks_for]


def _say(fact: NearFact) -> set[str]:
    return {word for word in normalise_relation(fact.relation).lemmas if len(word) > 2}
