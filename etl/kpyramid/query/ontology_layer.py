"""The ontology's part in an answer: its values, or what it knows beside the point."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kpyramid.documents.words import split_label, split_words
from kpyramid.ontology import names as n
from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import Decisions, Found, choose_supported
from kpyramid.query.facts import list_lemmas, match_candidates, spell_out
from kpyramid.query.options import read_number
from kpyramid.query.types import Answer, Item, Outcome, Reading, Step
from kpyramid.snapshot.individuals import find_instances
from kpyramid.snapshot.snapshot import Snapshot

RIGHT = 0.95
"""Share of the rules' queries with values that ask what was meant: .438 of (.438 + .021) on the
questions of `benchmarks/sparql.py`, whose graph itself is right."""
MOST_VALUES = 50
"""Values of an answer; a list that nobody reads to its end answers nothing in particular."""
MOST_ENTITIES, MOST_STATEMENTS, MOST_ROWS = 4, 3, 60
"""Entities whose statements are looked at when there is no answer, statements of them that go
down as hints, and statements that are looked through for each."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What the layer came to: its step, the answer if it has one, and the items to carry down.

    `partial` is what it knows of a question that wants several options.
    """

    step: Step
    answer: Answer | None = None
    items: tuple[Item, ...] = ()
    partial: Reading | None = None


def ask_ontology(
    asked: QuestionAnalysis, decisions: Decisions, *, literal: bool = False
) -> Finding:
    """The ontology's answer, or why it has none, and what it says nearby.

    Values answer when they can be shown in the documents and, of a question with candidates, when
    they are some of them. By the `literal` algorithm whatever the query gives is the answer, and
    what it does not give is not looked for.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    snapshot = asked.snapshot
    found = decisions.query_ontology(asked)
    found = replace(found, reason=_shorten_reason(found))
    step = replace(found.step, query=_name_ids(found.sparql, snapshot))
    finding = Finding(step)
    if found.outcome is Outcome.ANSWERED:
        finding = _take_values(asked, found, step, decisions, literal=literal)
    if finding.answer or literal:
        return finding
    items = (*finding.items, *_list_hints(asked))
    said = tuple(dict.fromkeys([*finding.step.found, *(item.text for item in items)]))
    return replace(finding, step=replace(finding.step, found=said), items=items)


def _take_values(
    asked: QuestionAnalysis, found: Found, step: Step, decisions: Decisions, *, literal: bool
) -> Finding:
    snapshot = asked.snapshot
    shown = tuple(dict.fromkeys(_show(value, snapshot) for value in found.values))
    rows = find_instances([(shorten(s), p, shorten(o)) for s, p, o in found.facts], snapshot)
    items = tuple(state_instance(row, snapshot) for row in rows)
    places = tuple(dict.fromkeys(place for item in items for place in item.evidence))
    step = replace(step, found=shown)
    finding = Finding(step, items=items)
    if not places and not literal:
        reason = f"{found.reason}; no place in the documents says so, and it is not given"
        return _leave(finding, reason)
    choices = shown
    chance = round(RIGHT * min((item.score for item in items), default=1.0), 4)
    if asked.candidates:
        choices = tuple(
            dict.fromkeys(
                c
                for value in found.values
                for spelt in spell_out(shorten(value), _show(value, snapshot), snapshot)
                for c in match_candidates(spelt, asked.candidates)
            )
        )
    if asked.candidates and not literal:
        if not choices:
            return _leave(finding, f"{found.reason}; none of them is a candidate")
        if unused := _find_unused(asked, found, items):
            return _leave(finding, f"{found.reason}; {', '.join(unused)} is not asked for in it")
        if read_number(asked.text) == "several":
            partial = Reading("; ".join(choices), choices, chance, places)
            reason = f"{found.reason}; the question wants several of its options"
            return _leave(replace(finding, partial=partial), f"{reason}: more may be found below")
    elif not literal:
        choices, whole = choose_supported(asked, choices, places, items, decisions)
        if not choices:
            return _leave(finding, f"{found.reason}; but {whole.reason}")
        left = set(shown) - {*choices}
        items = tuple(i for i in items if not any(i.text.endswith(f" {one}") for one in left))
        places = tuple(dict.fromkeys(place for item in items for place in item.evidence))
    known = Reading("; ".join(choices), choices, chance, places)
    reading = decisions.read(asked, items, known)
    answer = (reading if reading.answers else known).give(items, "ontology", places=places)
    return replace(finding, step=replace(step, confidence=chance), answer=answer)


def _find_unused(asked: QuestionAnalysis, found: Found, items: Sequence[Item]) -> tuple[str, ...]:
    """The words of a question that a query about nothing in particular leaves out.

    Whatever has an ideology is found where "secularism" is a word that the ontology does not know;
    a query that names a thing or a value is about that.
    """
    if f"<{n.ENTITY}" in found.sparql or '"' in found.sparql:
        return ()
    schema = asked.snapshot.schema
    known = [label for p in schema.properties for label in (p.label, *p.alt_labels)]
    known += [label for c in schema.classes for label in (c.label, *c.alt_labels)]
    known += [item.text for item in items]
    stems = {word.stem for text in known for word in split_words(text)}
    return tuple(dict.fromkeys(word.plain for word in asked.content if word.stem not in stems))


def _shorten_reason(found: Found) -> str:
    """The reason without the query, which stands by itself."""
    if not found.sparql:
        return found.reason
    reason = found.reason.replace(f"; the nearest query was {found.sparql}", "")
    plain = reason.replace(f" from {found.sparql}", "").replace(f": {found.sparql}", "")
    if found.outcome is Outcome.EMPTY:
        return "its query is sound and finds no value"
    if found.outcome is Outcome.ANSWERED:
        return f"its query finds {plain}"
    return plain


def _name_ids(sparql: str, snapshot: Snapshot) -> str:
    """A query with names in place of ids and local names in place of IRIs."""

    def shorten_iri(match: re.Match[str]) -> str:
        iri = match[1]
        if iri.startswith(n.ENTITY):
            return f"«{snapshot.names.get(shorten(iri), shorten(iri))}»"
        prefix = ":" if iri.startswith(snapshot.schema.base) else ""
        return prefix + re.split(r"[#/]", iri)[-1]

    return re.sub(r"<([^<>\s]+)>", shorten_iri, sparql)


def _leave(finding: Finding, reason: str) -> Finding:
    return replace(finding, step=replace(finding.step, outcome=Outcome.INSUFFICIENT, reason=reason))


def _list_hints(asked: QuestionAnalysis) -> tuple[Item, ...]:
    """Statements about what the question names whose property shares a word with it."""
    snapshot = asked.snapshot
    shared = {
        p.iri: len(asked.lemmas & frozenset().union(*map(list_lemmas, (p.label, *p.alt_labels))))
        for p in snapshot.schema.properties
    }
    if not any(shared.values()):
        return ()
    facts: list[tuple[int, tuple[str, str, str]]] = []
    for entity in asked.linked.entities[:MOST_ENTITIES]:
        query = f"SELECT ?p ?o WHERE {{ <{n.ENTITY}{entity}> ?p ?o }}"
        for row in snapshot.ontology.select_trusted(query, limit=MOST_ROWS):
            if often := shared.get(row["p"], 0):
                facts.append((-often, (entity, row["p"], shorten(row["o"]))))
    chosen = [fact for _, fact in sorted(facts)[:MOST_STATEMENTS]]
    return tuple(state_instance(row, snapshot) for row in find_instances(chosen, snapshot))


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
    )


def _show(value: str, snapshot: Snapshot) -> str:
    """A value in words: an entity's or a class's name, `yes` for an ASK that is true."""
    if value == "true":
        return "yes"
    named = snapshot.schema.class_by_iri.get(value) or snapshot.schema.property_by_iri.get(value)
    return named.label if named else snapshot.names.get(shorten(value), value)


def judge_rows(rows: list[dict[str, str]], sparql: str, most: int) -> Found:
    """Whether rows are an answer; a count of none and an untrue ASK only say that none is known."""
    values = tuple(dict.fromkeys(value for row in rows for value in row.values()))
    if not values or values in {("0",), ("false",)}:
        return Found(Outcome.EMPTY, f"no value from {sparql}", sparql=sparql)
    if len(rows) > most:
        return Found(Outcome.TOO_BROAD, f"more than {most} values from {sparql}", sparql=sparql)
    return Found(Outcome.ANSWERED, f"{len(values)} value(s) from {sparql}", values, sparql=sparql)


def shorten(iri: str) -> str:
    """An entity's id, or the value itself."""
    return iri.removeprefix(n.ENTITY)
