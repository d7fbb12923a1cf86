"""PolyRAG: down the pyramid until a layer suffices (Algorithm 1)."""

from dataclasses import replace

from kpyramid.extraction.normal import normalise_relation
from kpyramid.ontology.names import ENTITY
from kpyramid.query.kaping import NearFact, answer_from_facts, find_facts, pick_side
from kpyramid.query.linking import KIND_TYPES, LinkedQuestion
from kpyramid.query.naive import ask_naive
from kpyramid.query.snapshot import LITERAL, Snapshot
from kpyramid.query.sparql_rules import OntologyQuery, write_queries
from kpyramid.query.types import Answer

SUFFICIENT = 0.6
"""Cosine of question and fact from which the graph's answer is taken; the twin by rules of the
yes/no prompt `Query_kg`. It holds only for facts that name an entity of the question."""


def ask_polyrag(
    question: str,
    snapshot: Snapshot,
    *,
    triples: int = 10,
    chunks: int = 5,
    sufficient: float = SUFFICIENT,
    ontology: bool = True,
    graph: bool = True,
    text: bool = True,
) -> Answer:
    """Ontology by SPARQL, else the graph if its facts suffice, else the text.

    `ontology`, `graph` and `text` switch layers off, for ablations.
    """
    linked = snapshot.link(question)
    trace: tuple[str, ...] = ()
    if ontology:
        found, step = _ask_ontology(linked, snapshot)
        trace = (*trace, step)
        if found:
            return replace(found, trace=trace)
    if graph:
        facts = find_facts(question, snapshot, triples)
        enough, step = _judge_facts(facts, linked, sufficient)
        trace = (*trace, step)
        if enough or (facts and not text):
            return answer_from_facts(enough or facts, facts, linked, snapshot, trace)
    if text:
        lower = ask_naive(question, snapshot, chunks=chunks)
        return replace(lower, trace=(*trace, *lower.trace))
    return Answer("", (), (), None, (), trace)


def _ask_ontology(question: LinkedQuestion, snapshot: Snapshot) -> tuple[Answer | None, str]:
    if not question.entities:
        return None, "ontology: the question names no known entity"
    queries = write_queries(question, snapshot.schema)
    if not queries:
        names = ", ".join(dict.fromkeys(question.names))
        return None, f"ontology: no property of {names} accounts for {question.rest!r}"
    for query in queries:
        rows = snapshot.ontology.select_trusted(query.sparql)
        if rows:
            step = f"ontology: {len(rows)} value(s) from {query.sparql}"
            return _answer_from_rows(rows, query, snapshot, step), step
    tried = ", ".join(dict.fromkeys(query.property_iri for query in queries))
    return None, f"ontology: no value for {tried}"


def _answer_from_rows(
    rows: list[dict[str, str]], query: OntologyQuery, snapshot: Snapshot, step: str
) -> Answer:
    values = tuple(dict.fromkeys(row.get("label") or row["value"] for row in rows))
    entity = query.entity_id
    wanted = {row["value"].removeprefix(ENTITY) for row in rows}
    facts = [
        row
        for row in snapshot.find_instances(query.property_iri, entity)
        if ({row["subject_id"], row["object_id"], row["literal"]} - {entity}) & wanted
    ]
    label = snapshot.schema.property_by_iri[query.property_iri].label
    name = snapshot.names[entity]
    if query.forward:
        context = tuple(f"{name} {label} {value}" for value in values)
    else:
        context = tuple(f"{value} {label} {name}" for value in values)
    evidence = [place for row in facts for place in snapshot.evidence(row["instance_id"])]
    return Answer(
        text="; ".join(values),
        choices=values,
        context=context,
        layer="ontology",
        evidence=tuple(dict.fromkeys(evidence)),
        trace=(step,),
    )


def _judge_facts(
    facts: list[NearFact], question: LinkedQuestion, sufficient: float
) -> tuple[list[NearFact], str]:
    """The facts that answer the question, and why; none when the graph does not suffice."""
    if not facts:
        return [], "graph: it has no fact"
    named = set(question.entities)
    asked = set(question.lemmas)
    near = [fact for fact in facts if fact.cosine >= sufficient]
    about = [f for f in near if named & {f.head_id, f.tail_id}]
    # Nearness alone is fooled by a fact about the right entity that says something else: the
    # relation has to share a word with the question, and the value to be of the kind asked for.
    saying = [f for f in about if asked & _say(f) and _fits_kind(f, question)]
    found = f"{len(facts)} facts, best cosine {facts[0].cosine:.2f}"
    if saying:
        return saying, f"graph: {found}; {len(saying)} reach {sufficient} and say what is asked"
    return [], (
        f"graph: {found}; {len(near)} reach {sufficient}, {len(about)} of them name an entity of "
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
