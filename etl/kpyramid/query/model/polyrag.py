"""PolyRAG's two decisions by a language model: `Query_onto` writes SPARQL, `Query_kg` judges facts.

This module has the prompts, replies and parsers. A query is never trusted: it is parsed, restricted
and run in the sandbox of `kpyramid.ontology`, and any fault of it is an outcome of the layer. A
verdict that cannot be used counts as no, with its reason, and the next layer is asked.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from kpyramid.errors import InputError
from kpyramid.llm.task import (
    Asker,
    Failure,
    FailureKind,
    ReplyError,
    Request,
    Strict,
    flatten,
    parse_json,
    quote_text,
)
from kpyramid.ontology import names as n
from kpyramid.ontology.names import shorten
from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema
from kpyramid.ontology.sparql import (
    LONGEST_QUERY,
    bind_patterns,
    check_query,
    list_patterns,
    select_all,
)
from kpyramid.query.analysis import link_text
from kpyramid.query.model import reading
from kpyramid.query.types import Outcome, Question, Result
from kpyramid.snapshot.individuals import find_instances
from kpyramid.snapshot.snapshot import Snapshot

_MOST_ROWS = 5_000
"""Most matches of a query's patterns that are searched for the evidence of an answer."""
MOST_VALUES = 50
"""Most values of an answer; a longer list is too broad."""
MOST_CLASSES, MOST_PROPERTIES, MOST_ENTITIES, MOST_EXAMPLES = 120, 200, 20, 4
"""Most terms of a schema in a prompt; those that share words with the question come first."""

_CONSTANT = re.compile(r"<[^>\s]+>|(?<![\w?$])\w*:[\w%-]+|\"[^\"]*\"|'[^']*'")


class Query(Strict):
    """The reply."""

    sparql: str


def ask_by_model(question: str, snapshot: Snapshot, asker: Asker) -> Result:
    """The ontology's answer to a question by the query of a model.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    sparql = reading.ask_model(asker, render(question, snapshot), parse)
    if isinstance(sparql, Failure):
        return Result(Outcome.FAILED, f"no query: {sparql}")
    if not sparql:
        return Result(Outcome.FAILED, "no query: the model sees none in the ontology")
    return _run(sparql, question, snapshot)


def render(question: str, snapshot: Snapshot) -> Request:
    """The question with the schema in compact form and the entities that it names."""
    schema = snapshot.schema
    linked = link_text(question, snapshot)
    lines = [f"Question: {flatten(question)}", *describe_schema(schema, question)]
    lines += list_examples(snapshot, question)
    lines += ["Entities:"] if linked.entities else []
    lines += [
        f"- e:{entity} {snapshot.names[entity]} ({snapshot.types[entity]})"
        for entity in linked.entities[:MOST_ENTITIES]
    ]
    return reading.make_request(
        QUERY_ONTO, reading.write_prompt(QUERY_ONTO.name, base=schema.base), lines, question
    )


def describe_schema(schema: Schema, question: str) -> Iterator[str]:
    """A line per class and property: its name, its label if different, its ends."""
    words = _list_words(question)

    def rank(row: OntologyClass | OntologyProperty) -> tuple[bool, str]:
        return not words & _list_words(" ".join((row.label, *row.alt_labels))), row.iri

    yield "Classes:"
    for c in sorted(sorted(schema.classes, key=rank)[:MOST_CLASSES], key=lambda c: c.iri):
        above = ", ".join(_shorten(parent, schema) for parent in c.parents)
        yield f"- {_shorten(c.iri, schema)} {c.label}" + (f" < {above}" if above else "")
    shown = sorted(sorted(schema.properties, key=rank)[:MOST_PROPERTIES], key=lambda p: p.iri)
    for title, literal in (("Object properties:", False), ("Data properties:", True)):
        yield title
        for p in shown:
            if p.is_datatype is literal:
                ends = f"{_shorten(p.domain, schema)} -> {_shorten(p.range, schema)}"
                yield f"- {_shorten(p.iri, schema)} {p.label}: {ends}"


_KIND = re.compile(r"<(\w+)>")
_SELECTED = re.compile(
    r"(?is)\bselect\s+((?:distinct|reduced)\s+)?(.*?)\s*(?=(?<![?$])\bwhere\b|\{)"
)
_COLUMN = re.compile(r"(?is)\?\w+|\(.*?\bas\s+\?\w+\s*\)")


def list_examples(snapshot: Snapshot, question: str) -> list[str]:
    """Lines with the ontology's competency questions and their queries, the nearest in words."""
    words = _list_words(question)
    stored = cast("list[dict[str, str]]", snapshot.manifest.get("questions", []))
    nearest = sorted(stored, key=lambda row: -len(words & _list_words(row["text"])))
    examples = (write_example(row["text"], row["sparql"]) for row in nearest)
    lines = [f"- {example}" for example in examples if example]
    return ["Examples, with KIND where an entity stands:", *lines[:MOST_EXAMPLES]] if lines else []


def write_example(text: str, sparql: str) -> str:
    """A competency question as an example for a model: about one entity, for one variable.

    The stored query is about all persons: `<Person>` in the text is its variable of that name, else
    the first that it selects. A model that imitated it would return other persons, so the example
    has `e:PERSON` for both. Empty if no valid query remains.
    """
    selected = _SELECTED.search(sparql)
    columns = _COLUMN.findall(selected[2]) if selected else []
    for kind in _KIND.findall(text):
        variables = {v.casefold(): v for v in re.findall(r"\?\w+", sparql)}
        variable = variables.get(f"?{kind}".casefold()) or "".join(columns[:1])
        if variable.startswith("?"):
            sparql = re.sub(rf"{re.escape(variable)}\b", f"e:{kind.upper()}", sparql)
            columns = [column for column in columns if column != variable]
        text = text.replace(f"<{kind}>", f"e:{kind.upper()}")
    if selected and (start := _SELECTED.search(sparql)):
        sparql = (
            f"{sparql[: start.start()]}SELECT {start[1] or ''}{''.join(columns[:1])} "
            f"{sparql[start.end() :]}"
        )
    sparql = re.sub(r"(?i)\bgroup\s+by(?:\s+e:\w+)+(?!\S)(?!\s*[?(])", "", sparql)
    try:
        check_query(f"PREFIX e: <{n.ENTITY}>\n{sparql}")
    except InputError:
        return ""
    return f"{flatten(text)} {flatten(sparql)}"


def _list_words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def parse(content: str) -> str:
    """The query in a reply, empty if there is none.

    Raises:
        ReplyError: it is no JSON of the schema, or the query is too long.
    """
    sparql = parse_json(content, Query).sparql.strip()
    if len(sparql) > LONGEST_QUERY:
        raise ReplyError(FailureKind.INVALID, f"a query of {len(sparql)} characters")
    return sparql


def add_prefixes(sparql: str, schema: Schema) -> str:
    """The query with those prefixes of the prompt that it does not declare."""
    known = {"": schema.base, "e": n.ENTITY, "rdf": n.RDF, "rdfs": n.RDFS, "xsd": n.XSD}
    declared = {name for name in re.findall(r"(?i)\bprefix\s+([\w-]*):\s*<", sparql)}
    lines = [f"PREFIX {name}: <{iri}>" for name, iri in known.items() if name not in declared]
    return "\n".join([*lines, sparql])


def _run(sparql: str, question: str, snapshot: Snapshot) -> Result:
    if not _names_something(sparql):
        return Result(Outcome.TOO_BROAD, f"it is about nothing in particular: {flatten(sparql)}")
    try:
        whole = add_prefixes(sparql, snapshot.schema)
        rows = snapshot.sparql(whole, limit=_MOST_ROWS)
    except InputError as e:
        return Result(Outcome.FAILED, str(e))
    named = {f"{n.ENTITY}{entity}" for entity in link_text(question, snapshot).entities}
    rows, column = choose_column(rows, question, named)
    values = [{column: row[column]} for row in rows if column in row]
    result = judge_rows(values, flatten(sparql), MOST_VALUES)
    if result.outcome is not Outcome.ANSWERED:
        return result
    facts = _bind_facts(whole, rows, snapshot)
    reason = result.reason if facts else f"{result.reason}; no evidence found for it"
    return replace(result, reason=reason, facts=facts)


def judge_rows(rows: list[dict[str, str]], sparql: str, most: int) -> Result:
    """The result of rows; a count of 0 and a false ASK only mean that none is known."""
    values = tuple(dict.fromkeys(value for row in rows for value in row.values()))
    if not values or values in {("0",), ("false",)}:
        return Result(Outcome.EMPTY, "its query is sound and finds no value", sparql=sparql)
    if len(rows) > most:
        return Result(Outcome.TOO_BROAD, f"its query finds more than {most} values", sparql=sparql)
    return Result(Outcome.ANSWERED, f"values of its query: {len(values)}", values, sparql=sparql)


def choose_column(
    rows: Sequence[dict[str, str]], question: str, named: Collection[str]
) -> tuple[list[dict[str, str]], str]:
    """The rows about the question's entities, and the column that it asks for.

    A column with an entity of the question is the subject of the rows: rows with other subjects are
    left out, and the column is no answer. Of the other columns, the question asks for the one that
    it names ("year"), that its question word requires (literals for "when" and "how", entities for
    "who" and "where"), or that comes first.
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    about = {c for c in columns if any(row.get(c) in named for row in rows)}
    if not columns or len(columns) == 1:
        return [*rows], "".join(columns)
    if about != {*columns}:
        columns = [column for column in columns if column not in about]
        rows = [row for row in rows if all(row.get(c) in named for c in about)]
    words = _list_words(question)

    def rank(column: str) -> tuple[bool, bool]:
        entities = any(row.get(column, "").startswith(n.ENTITY) for row in rows)
        wanted = (
            (words & {"who", "whom", "whose", "where"}) if entities else words & {"when", "how"}
        )
        return column.casefold() not in words, not wanted

    return [*rows], min(columns, key=rank)


def _names_something(sparql: str) -> bool:
    """Whether the patterns contain an entity, a class, a property or a literal."""
    plain = re.sub(r"(?is)\b(?:prefix\s+[\w-]*:|base)\s*<[^>]*>|#[^\n>]*$", " ", sparql)
    held = set(_CONSTANT.findall(plain)) - {"rdf:type", "rdfs:label", f"<{n.RDF_TYPE}>"}
    return bool(held - {f"<{n.LABEL}>"})


def _bind_facts(
    sparql: str, answers: Sequence[Mapping[str, str]], snapshot: Snapshot
) -> tuple[dict[str, Any], ...]:
    """The rows of the statements that the query's patterns match for these answers."""
    try:
        rows = snapshot.sparql(select_all(sparql), limit=_MOST_ROWS)
    except InputError:  # all variables take longer than those that were asked for
        return ()
    patterns = list_patterns(sparql)
    properties = snapshot.schema.property_by_iri
    facts = {
        (shorten(subject), iri, shorten(value))
        for row in rows
        if any(_agree(row, answer) for answer in answers)
        for subject, iri, value in bind_patterns(patterns, row)
        if iri in properties
    }
    return tuple(find_instances(facts, snapshot))


def _agree(row: Mapping[str, str], answer: Mapping[str, str]) -> bool:
    """Whether a match of the patterns agrees with an answer in the values of its variables."""
    return all(row.get(name, value) == value for name, value in answer.items())


def _shorten(iri: str, schema: Schema) -> str:
    for base, prefix in ((schema.base, ""), (n.XSD, "xsd"), (n.OWL, "owl"), (n.RDFS, "rdfs")):
        if iri.startswith(base):
            return f"{prefix}:{iri.removeprefix(base)}"
    return f"<{iri}>"


QUERY_ONTO = reading.make_task(
    "query_onto", 3, Query, "sparql", lambda _: reading.write_prompt("query_onto", base="")
)

# `Query_kg`: are these facts enough to answer the question (IV-B)?

MOST_CHARACTERS = 12_000
"""Most characters of facts; ten facts have about 800."""


class Decision(Strict):
    """The reply."""

    reason: str
    facts: tuple[int, ...]
    enough: Literal["yes", "no"]


def judge_by_model(
    question: Question, statements: Sequence[str], asker: Asker
) -> tuple[tuple[int, ...], str]:
    """The indices of the statements that suffice to answer, none for a no, and the reason.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    shown = reading.show_numbered(statements, MOST_CHARACTERS)
    lines = [*reading.show_question(question), "Facts:", *shown]
    request = reading.make_request(
        QUERY_KG, reading.write_prompt(QUERY_KG.name), lines, question.text
    )
    decision = reading.ask_model(asker, request, lambda reply: parse_json(reply, Decision))
    if isinstance(decision, Failure):
        return (), f"the model gave no verdict: {decision}"
    reason = quote_text(decision.reason) or "it gives no reason"
    supporting = reading.pick_numbers(decision.facts, len(shown))
    if decision.enough == "yes" and not supporting:
        return (), f"the model says yes and names none of the facts: {reason}"
    return supporting if decision.enough == "yes" else (), f"the model: {reason}"


QUERY_KG = reading.make_task("query_kg", 1, Decision, "sufficiency")
