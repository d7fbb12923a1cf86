"""The gates `checks` and `questions`: queries without solutions, and queries that must run."""

import logging
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyoxigraph as ox
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.sparql import (
    Pattern,
    bind_paths,
    bind_patterns,
    check_query,
    list_iris,
    list_paths,
    list_patterns,
    read_prefixes,
    select_all,
)
from kpyramid.ontology.store import OntologyStore, QueryStoppedError
from kpyramid.ontology.validation.repair import Fault
from kpyramid.storage.declarations import OntologyFiles

log = logging.getLogger(__name__)

_MOST_NAMED = 3
_MOST_COUNTED = 1000
_MOST_EXPLAINED = 10_000
"""Violations of one check that are traced to their facts at once."""


@checked(frozen=True)
class Question:
    """A competency question in words, its query, and its least number of rows.

    `least` applies to a pyramid of the ontology's own field; with 0 it only has to run.
    """

    text: str
    sparql: str
    least: int = 1


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a question or check: its first rows, or why it failed.

    `count` is the number of all rows, a lower bound if `more`; `stopped` marks a limit of time or
    memory as the problem.
    """

    text: str
    rows: Sequence[Mapping[str, str]]
    count: int
    problem: str = ""
    more: bool = False
    stopped: bool = False


def read_questions(path: Path) -> list[Question]:
    """The competency questions of a file.

    Raises:
        InputError: it is no TOML, or a question has no text or no query.
    """
    try:
        entries = tomllib.loads(path.read_text("utf-8-sig")).get("questions", [])
        return TypeAdapter(list[Question]).validate_python(entries)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise InputError(f"{path}: {e}; correct the file") from e
    except ValidationError as e:
        problems = "; ".join(
            f"question {'.'.join(map(str, p['loc']))}: {p['msg']}" for p in e.errors()
        )
        raise InputError(
            f"{path}: {problems}; each has a text, a sparql and perhaps a least"
        ) from e


def complete_query(query: str, prefixes: Mapping[str, str]) -> str:
    """The query with the declarations of prefixes that it uses; its own declarations win."""
    used = sorted((name, iri) for name, iri in prefixes.items() if f"{name}:" in query)
    return "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in used) + query


def run_checks(
    paths: Sequence[Path], store: OntologyStore, prefixes: Mapping[str, str]
) -> list[Answered]:
    """The rows of each violation query, with labels for IRIs.

    Its text is the file's first comment line.
    """
    answers = []
    for path in paths:
        text, query = _read_check(path)
        answered = _run(text, query, store, prefixes, limit=_MOST_COUNTED)
        answers.append(replace(answered, rows=label_rows(answered.rows, store)))
    return answers


def _read_check(path: Path) -> tuple[str, str]:
    """The text and the query of a check."""
    query = path.read_text("utf-8-sig")
    first = query.lstrip().partition("\n")[0]
    return first.lstrip("# ").strip() if first.startswith("#") else path.name, query


def trace_violations(files: OntologyFiles, store: OntologyStore) -> list[Fault]:
    """The facts that match the patterns of a check, for each of its solutions.

    A path matches the facts on all ways between its ends.
    """
    prefixes = read_prefixes(files.turtle.read_text("utf-8-sig"))
    found = []
    for text, query in map(_read_check, files.checks):
        try:
            query = check_query(complete_query(query, prefixes))
            rows = store.select(select_all(query), limit=_MOST_EXPLAINED)
        except InputError as e:  # the gate says what is wrong with it
            log.warning("the facts behind %s were not found: %s", text, e)
            continue
        found.append((text, rows, list_patterns(query), list_paths(query)))
    bound = {f for _, rows, some, _ in found for row in rows for f in bind_patterns(some, row)}
    followed = {iri for *_, paths in found for steps, _ in paths for iri, _ in steps}
    stated: dict[Pattern, ox.Triple] = {}
    of_property: defaultdict[str, list[Pattern]] = defaultdict(list)
    used = {f"<{iri}>" for iri in followed | {predicate for _, predicate, _ in bound}}
    lines = (x for x in store.instances_nt.split("\n") if x and x.split(" ", 2)[1] in used)
    for quad in ox.parse("\n".join(lines), format=ox.RdfFormat.N_TRIPLES):
        if not isinstance(quad.subject, ox.NamedNode) or isinstance(quad.object, ox.Triple):
            continue
        fact = quad.subject.value, quad.predicate.value, quad.object.value
        if fact in bound or fact[1] in followed:
            stated[fact] = quad.triple
            of_property[fact[1]].append(fact)
    faults: dict[tuple[str, tuple[Pattern, ...]], Fault] = {}
    for text, rows, patterns, paths in found:
        for row in rows:
            matched = {f for f in bind_patterns(patterns, row) if f in stated}
            for steps, start, end in bind_paths(paths, row):
                edges = [
                    (*((o, s) if turned else (s, o)), (s, p, o))
                    for iri, turned in steps
                    for s, p, o in of_property[iri]
                ]
                matched |= _list_between(edges, start, end)
            key = text, tuple(sorted(matched))
            facts = tuple(stated[fact] for fact in key[1])
            faults[key] = Fault("violated_check", text, facts, max(0, len(facts) - 1))
    return [fault for _, fault in sorted(faults.items()) if fault.facts]


def _list_between(edges: Sequence[tuple[str, str, Pattern]], start: str, end: str) -> set[Pattern]:
    """The facts of the edges on ways from one node to another."""
    after, before = {start}, {end}
    for reached, near, far in ((after, 0, 1), (before, 1, 0)):
        size = 0
        while len(reached) > size:
            size = len(reached)
            reached.update(str(edge[far]) for edge in edges if edge[near] in reached)
    return {fact for source, target, fact in edges if source in after and target in before}


def run_questions(
    questions: Sequence[Question],
    store: OntologyStore,
    prefixes: Mapping[str, str],
    known: frozenset[str],
    base: str,
) -> list[Answered]:
    """The rows of each competency question; terms of `base` that are not `known` make it fail."""
    answers = []
    for question in questions:
        limit = max(_MOST_COUNTED, question.least)
        answer = _run(question.text, question.sparql, store, prefixes, limit=limit)
        if not answer.problem:
            used = list_iris(complete_query(question.sparql, prefixes))
            strange = sorted(iri for iri in used if iri.startswith(base) and iri not in known)
            if strange:
                problem = f"<{strange[0]}> is not in the ontology"
                answer = Answered(question.text, (), 0, problem)
        answers.append(answer)
    return answers


def _run(
    text: str, query: str, store: OntologyStore, prefixes: Mapping[str, str], *, limit: int
) -> Answered:
    try:
        rows = store.select(complete_query(query, prefixes), limit=limit)
    except InputError as e:
        return Answered(text, (), 0, str(e), stopped=isinstance(e, QueryStoppedError))
    if rows and "ask" in rows[0]:  # ASK: true is one row, false none
        rows = [row for row in rows if row["ask"] == "true"]
    return Answered(text, rows[:_MOST_NAMED], len(rows), more=len(rows) >= limit)


def label_rows(rows: Iterable[Mapping[str, str]], store: OntologyStore) -> list[dict[str, str]]:
    """The rows with labels in place of IRIs that have one.

    Of the instances only these labels are loaded: all take a second, and memory, in each round.
    """
    rows = [*rows]
    if not rows:
        return []
    named, says = {f"<{value}>" for row in rows for value in row.values()}, f" <{n.LABEL}> "
    lines = (x for x in store.instances_nt.split("\n") if says in x and x.split(" ")[0] in named)
    store = OntologyStore(store.schema_turtle, "\n".join(lines))

    def label(value: str) -> str:
        if not value.startswith(("http://", "https://", "urn:")):
            return value
        try:
            query = f"SELECT ?l {{ {ox.NamedNode(value)} <{n.LABEL}> ?l }}"
        except ValueError:  # a literal that only begins like an IRI
            return value
        labels = store.select_trusted(query, limit=1)
        return labels[0]["l"] if labels else value

    return [{name: label(value) for name, value in row.items()} for row in rows]


def check_queries(files: OntologyFiles) -> None:
    """Passes when the questions and checks beside an ontology can be read and may run.

    Raises:
        InputError: names the file and what is wrong with it.
    """
    prefixes = read_prefixes(files.turtle.read_text("utf-8-sig"))
    queries = {str(path): path.read_text("utf-8-sig") for path in files.checks}
    asked = read_questions(files.questions) if files.questions else []
    queries |= {f"{files.questions}, “{q.text}”": q.sparql for q in asked}
    for place, query in queries.items():
        try:
            check_query(complete_query(query, prefixes))
        except InputError as e:
            raise InputError(f"{place}: {e}") from e


def judge_checks(answers: Sequence[Answered]) -> str:
    """`pass` when no check has rows, else the rows.

    `not run: why` when one was stopped and no other fails.
    """

    def tell(check: Answered) -> str:
        if check.problem:
            return f"{check.text}: {check.problem}"
        rows = "; ".join(", ".join(row.values()) for row in check.rows)
        left = check.count - len(check.rows)
        rest = f" and {left} {'or more others' if check.more else 'more'}" if left else ""
        return f"{check.text} ({rows}{rest})"

    problems = "; ".join(tell(check) for check in answers if check.problem or check.count)
    if any(check.count for check in answers):
        return f"fail: {problems}; correct the text"
    return f"{_choose_verdict(answers)}: {problems}" if problems else "pass"


def _choose_verdict(answers: Iterable[Answered]) -> str:
    """The verdict on queries with problems: a stopped query does not fail."""
    return "fail" if any(a.problem and not a.stopped for a in answers) else "not run"


def judge_questions(
    questions: Sequence[Question], answers: Sequence[Answered], *, strict: bool
) -> str:
    """`pass` when all questions run and, if `strict`, have at least `least` rows.

    `not run: why` when one was stopped and no other fails.
    """
    faults = [f"“{answered.text}”: {answered.problem}" for answered in answers if answered.problem]
    short = [
        f"“{question.text}” has {answered.count} rows, not {question.least}"
        for question, answered in zip(questions, answers, strict=True)
        if strict and not answered.problem and answered.count < question.least
    ]
    verdict = "fail" if short else _choose_verdict(answers)
    return f"{verdict}: {'; '.join([*faults, *short])}" if faults or short else "pass"
