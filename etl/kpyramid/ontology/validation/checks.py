"""The gates `checks` and `questions`: queries that must find nothing, and those that must run."""

import json
import logging
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pyoxigraph as ox
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.sandbox import QueryStoppedError, ask_function
from kpyramid.ontology.sparql import check_query, list_iris, load_store, read_prefixes, shut_doors
from kpyramid.ontology.store import OntologyStore
from kpyramid.ontology.validation.reasoner import Part, shrink
from kpyramid.ontology.validation.repair import Fault
from kpyramid.storage.declarations import OntologyFiles

log = logging.getLogger(__name__)

_MOST_NAMED = 3
_MOST_COUNTED = 1000
_MOST_EXPLAINED = 10_000
"""Violations of one check that are traced to their facts at once."""
_MEMORY = 2 * 2**30
_BYTES_OF_A_STORE = 20
"""Memory that a store and its facts take for each byte of N-Triples, with room to spare."""


@checked(frozen=True)
class Question:
    """A competency question: what a person would ask, its query, and the rows it must give.

    `least` holds on a pyramid of the ontology's own field; with 0 it only has to run.
    """

    text: str
    sparql: str
    least: int = 1


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a question or check: its first rows, or why it failed.

    `count` is of all rows, at least so many if `more`; `stopped` says that the problem was the
    limit of time or memory.
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
        found = tomllib.loads(path.read_text("utf-8-sig")).get("questions", [])
        return TypeAdapter(list[Question]).validate_python(found)
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
    """The query with the prefixes that it may mean in front; one that it declares itself wins."""
    used = sorted((name, iri) for name, iri in prefixes.items() if f"{name}:" in query)
    return "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in used) + query


def run_checks(
    paths: Sequence[Path], store: OntologyStore, prefixes: Mapping[str, str]
) -> list[Answered]:
    """The rows of each violation query, with labels for IRIs.

    Its text is the file's first comment line.
    """
    found = []
    for path in paths:
        text, query = _read_check(path)
        answered = _run(text, query, store, prefixes, limit=_MOST_COUNTED)
        found.append(replace(answered, rows=label_rows(answered.rows, store)))
    return found


def _read_check(path: Path) -> tuple[str, str]:
    """A check in words, and its query."""
    query = path.read_text("utf-8-sig")
    first = query.lstrip().partition("\n")[0]
    return first.lstrip("# ").strip() if first.startswith("#") else path.name, query


def trace_violations(
    files: OntologyFiles, schema_turtle: str, instances_nt: str, *, seconds: float
) -> list[Fault]:
    """The smallest set of facts behind each row that a check finds.

    Empty when that takes longer than `seconds`, or more memory than there is: what is left must
    not depend on the speed of a machine.
    """
    prefixes = read_prefixes(files.turtle.read_text("utf-8-sig"))
    checks = [_read_check(path) for path in files.checks]
    queries = [complete_query(query, prefixes) for _, query in checks]
    given = {"schema": schema_turtle, "instances": instances_nt, "queries": queries}
    try:
        answer, end = ask_function(
            "kpyramid.ontology.validation.checks:serve", given, seconds=seconds
        )
    except TimeoutError:
        answer, end = None, f"within {seconds:g} seconds"
    if answer is None:
        log.warning("the facts behind violated checks were not found: their search ended %s", end)
        return []
    faults = []
    for (text, _), explained in zip(checks, cast("list[list[list[str]]]", answer), strict=True):
        for lines in explained:
            parsed = ox.parse("".join(lines), format=ox.RdfFormat.N_TRIPLES)
            facts = tuple(quad.triple for quad in parsed)
            faults.append(Fault("violated_check", text, facts, len(facts) - 1))
    return faults


def serve() -> None:
    """Reads schema, instances and queries as JSON from stdin; writes facts, by query, to stdout."""
    given = json.loads(sys.stdin.buffer.read())
    checked = []
    for query in given["queries"]:
        try:
            checked.append((check_query(query), list_iris(query)))
        except InputError:  # the gate says what is wrong with it
            checked.append(("", set()))
    shut_doors(_MEMORY + _BYTES_OF_A_STORE * len(given["instances"]))
    tracer = _Tracer(given["schema"], given["instances"])
    found = [tracer.trace(query, named) if query else [] for query, named in checked]
    sys.stdout.write("\n" + json.dumps(found) + "\n")


_Solution = tuple[tuple[str, str], ...]


class _Tracer:
    """Finds the facts by which a query has a solution, by leaving out facts until it has none."""

    def __init__(self, schema_turtle: str, instances_nt: str) -> None:
        self._all = load_store(schema_turtle, instances_nt)
        self._part = load_store(schema_turtle, "")
        self._facts: defaultdict[object, list[ox.Triple]] = defaultdict(list)
        for quad in ox.parse(instances_nt, format=ox.RdfFormat.N_TRIPLES):
            self._facts[quad.subject].append(quad.triple)
            if isinstance(quad.object, ox.NamedNode) and quad.predicate.value != n.RDF_TYPE:
                self._facts[quad.object].append(quad.triple)

    def trace(self, query: str, named: set[str]) -> list[list[str]]:
        """The facts of each solution as N-Triples, each set once, sorted."""
        try:
            solutions = sorted(_solve(self._all, query))
        except InputError:
            return []
        found = {tuple(self._explain(query, named, s)) for s in solutions[:_MOST_EXPLAINED]}
        return [list(lines) for lines in sorted(found) if lines]

    def _explain(self, query: str, named: set[str], solution: _Solution) -> list[str]:
        """A smallest set of facts that gives the solution, each as a line; empty without any."""

        def gives(facts: Iterable[ox.Triple]) -> bool:
            quads = [ox.Quad(t.subject, t.predicate, t.object) for t in facts]
            quads = [quad for quad in quads if quad not in self._part]
            self._part.extend(quads)
            try:
                return solution in _solve(self._part, query)
            finally:
                for quad in quads:
                    self._part.remove(quad)

        def find_first(parts: Iterable[Part]) -> int | None:
            return next((i for i, (_, facts) in enumerate(parts) if gives(facts)), None)

        for near in self._list_candidates(named, solution):
            if gives(near):
                return sorted(f"{item} .\n" for item in shrink(near, find_first))
        return []

    def _list_candidates(
        self, named: set[str], solution: _Solution
    ) -> Iterator[Sequence[ox.Triple]]:
        """Facts around the solution's nodes, step by step; at the end all facts.

        First only those with a property that the query names.
        """
        nodes = [ox.NamedNode(term[1:-1]) for _, term in solution if term.startswith("<")]
        for wanted in (named, None):
            near: dict[ox.Triple, None] = {}
            reached: set[object] = set(nodes)
            queue: list[object] = list(nodes)
            while queue:
                before = len(near)
                for node in queue:
                    for fact in self._facts.get(node, ()):
                        if wanted is None or fact.predicate.value in wanted:
                            near[fact] = None
                if len(near) > before:
                    yield list(near)
                ends: set[object] = {t for fact in near for t in (fact.subject, fact.object)}
                queue = sorted((ends & self._facts.keys()) - reached, key=str)
                reached.update(queue)
        yield sorted({fact for facts in self._facts.values() for fact in facts}, key=str)


def _solve(store: ox.Store, query: str) -> set[_Solution]:
    """Solutions as names with terms in N-Triples; ASK has an empty one if it is true."""
    try:
        found = store.query(query)
    except (SyntaxError, OSError, RuntimeError, ValueError) as e:
        raise InputError(f"SPARQL query: {e}") from e
    if isinstance(found, ox.QueryBoolean):
        return {()} if found else set()
    assert isinstance(found, ox.QuerySolutions)
    names = [variable.value for variable in found.variables]
    return {
        tuple((name, str(solution[name])) for name in names if solution[name] is not None)
        for solution in found
    }


def run_questions(
    questions: Sequence[Question],
    store: OntologyStore,
    prefixes: Mapping[str, str],
    known: frozenset[str],
    base: str,
) -> list[Answered]:
    """The rows of each competency question; one with a term of `base` not in `known` fails."""
    answers = []
    for question in questions:
        limit = max(_MOST_COUNTED, question.least)
        found = _run(question.text, question.sparql, store, prefixes, limit=limit)
        if not found.problem:
            used = list_iris(complete_query(question.sparql, prefixes))
            strange = sorted(iri for iri in used if iri.startswith(base) and iri not in known)
            if strange:
                problem = f"<{strange[0]}> is not in the ontology"
                found = Answered(question.text, (), 0, problem)
        answers.append(found)
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
    """The rows with labels for the IRIs that have one."""

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
    """Passes when the questions and checks beside an ontology can be read and may be run.

    Raises:
        InputError: names the file and what is wrong with it.
    """
    prefixes = read_prefixes(files.turtle.read_text("utf-8-sig"))
    queries = {str(path): path.read_text("utf-8-sig") for path in files.checks}
    if files.questions:
        questions = read_questions(files.questions)
        queries |= {f"{files.questions}, “{q.text}”": q.sparql for q in questions}
    for place, query in queries.items():
        try:
            check_query(complete_query(query, prefixes))
        except InputError as e:
            raise InputError(f"{place}: {e}") from e


def judge_checks(found: Sequence[Answered]) -> str:
    """`pass` when the checks found nothing, else what they found.

    `not run: why` when one was stopped and the others do not fail.
    """
    told = []
    for check in found:
        if check.problem:
            told.append(f"{check.text}: {check.problem}")
        elif check.count:
            rows = "; ".join(", ".join(row.values()) for row in check.rows)
            left = check.count - len(check.rows)
            rest = f" and {left} {'or more others' if check.more else 'more'}" if left else ""
            told.append(f"{check.text} ({rows}{rest})")
    said = "; ".join(told)
    if any(check.count for check in found):
        return f"fail: {said}; correct the text"
    return f"{_choose_verdict(found)}: {said}" if told else "pass"


def _choose_verdict(found: Iterable[Answered]) -> str:
    """For queries of which some have problems: to be stopped is not to fail."""
    return "fail" if any(a.problem and not a.stopped for a in found) else "not run"


def judge_questions(
    questions: Sequence[Question], found: Sequence[Answered], *, strict: bool
) -> str:
    """`pass` when all questions run and, if `strict`, have the rows they must have.

    `not run: why` when one was stopped and the others do not fail.
    """
    told = [f"“{answered.text}”: {answered.problem}" for answered in found if answered.problem]
    short = []
    if strict:
        short = [
            f"“{question.text}” has {answered.count} rows, not {question.least}"
            for question, answered in zip(questions, found, strict=True)
            if not answered.problem and answered.count < question.least
        ]
    if not told and not short:
        return "pass"
    verdict = "fail" if short else _choose_verdict(found)
    return f"{verdict}: {'; '.join([*told, *short])}"
