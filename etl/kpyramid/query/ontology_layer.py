"""The ontology's part in an answer: its statements looked up, or a model's SPARQL."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from kpyramid.documents.words import split_label
from kpyramid.ontology.names import shorten
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import SUFFICIENT, Decisions, read_values
from kpyramid.query.facts import match_candidates, spell_out
from kpyramid.query.lookup import judge, state_instances
from kpyramid.query.types import Answer, Found, Item, Outcome, Reading, Step
from kpyramid.snapshot.individuals import find_instances
from kpyramid.snapshot.snapshot import Snapshot

RIGHT = 0.95
"""Share of a model's queries with values that ask what was meant; set by hand."""
MOST_HINTS, LEAST = 3, 0.15
"""Statements that go down as hints where there is no answer, and the chance that they have."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the layer came to: its step, the answer if it has one, and the items to carry down."""

    step: Step
    answer: Answer | None = None
    items: tuple[Item, ...] = ()


def ask_ontology(
    asked: QuestionAnalysis,
    decisions: Decisions,
    *,
    literal: bool = False,
    sufficient: float = SUFFICIENT,
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
    shown = dict.fromkeys((*judged.supporting, *near))
    items = tuple(
        Item(
            fact.condensed_id,
            fact.statement,
            "ontology",
            judged.chances.get(fact, 0.0),
            tuple(snapshot.evidence(fact.condensed_id)),
            fact.confidence,
        )
        for fact in shown
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
    places = tuple(dict.fromkeys(place for item in items for place in item.evidence))
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
