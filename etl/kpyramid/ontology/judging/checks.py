"""The gates `checks` and `questions`: queries that must find nothing, and those that must run."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyoxigraph as ox
from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as checked

from kpyramid.declared import OntologyFiles
from kpyramid.errors import InputError
from kpyramid.ontology import names as n
from kpyramid.ontology.sparql import check_query, list_iris
from kpyramid.ontology.store import OntologyStore, QueryStoppedError

_MOST_NAMED = 3
_MOST_COUNTED = 1000
_PREFIXES = {
    "kp": n.KP, "owl": n.OWL, "prov": n.PROV, "rdf": n.RDF, "rdfs": n.RDFS, "skos": n.SKOS,
    "xsd": n.XSD,
}  # fmt: skip


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
    """What a question or a check found: its first rows, or why it failed.

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
        found = tomllib.loads(path.read_text("utf-8")).get("questions", [])
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


def read_prefixes(turtle: str) -> dict[str, str]:
    """The prefixes that queries may use undeclared: those of the ontology and of the standards."""
    parsed = ox.parse(turtle, format=ox.RdfFormat.TURTLE)
    for _ in parsed:  # a prefix may be declared on any line
        continue
    return _PREFIXES | parsed.prefixes


def complete_query(query: str, prefixes: Mapping[str, str]) -> str:
    """The query with the prefixes in front; one that it declares itself comes later and wins."""
    return "".join(f"PREFIX {name}: <{iri}>\n" for name, iri in sorted(prefixes.items())) + query


def run_checks(
    paths: Sequence[Path], store: OntologyStore, prefixes: Mapping[str, str], *, most: int = 0
) -> list[Answered]:
    """What each violation query finds, with labels for IRIs, counted beyond `most`.

    Its text is the file's first comment line.
    """
    found = []
    for path in paths:
        query = path.read_text("utf-8")
        first = query.lstrip().partition("\n")[0]
        text = first.lstrip("# ").strip() if first.startswith("#") else path.name
        answered = _run(text, query, store, prefixes, limit=max(_MOST_COUNTED, most + 1))
        found.append(replace(answered, rows=label_rows(answered.rows, store)))
    return found


def run_questions(
    questions: Sequence[Question],
    store: OntologyStore,
    prefixes: Mapping[str, str],
    known: frozenset[str],
    base: str,
) -> list[Answered]:
    """What each competency question finds; one with a term of `base` that is not `known` fails."""
    return [_ask(question, store, prefixes, known, base) for question in questions]


def _ask(
    question: Question,
    store: OntologyStore,
    prefixes: Mapping[str, str],
    known: frozenset[str],
    base: str,
) -> Answered:
    limit = max(_MOST_COUNTED, question.least)
    found = _run(question.text, question.sparql, store, prefixes, limit=limit)
    if found.problem:
        return found
    used = list_iris(complete_query(question.sparql, prefixes))
    strange = sorted(iri for iri in used if iri.startswith(base) and iri not in known)
    if strange:
        return Answered(question.text, (), 0, f"<{strange[0]}> is not in the ontology")
    return found


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
    return [_label(row, store) for row in rows]


def _label(row: Mapping[str, str], store: OntologyStore) -> dict[str, str]:
    named = {}
    for name, value in row.items():
        labels = []
        if value.startswith(("http://", "https://", "urn:")):
            try:
                iri = ox.NamedNode(value)
                labels = store.select_trusted(f"SELECT ?l {{ {iri} <{n.LABEL}> ?l }}", limit=1)
            except ValueError:  # a literal that only begins like an IRI
                labels = []
        named[name] = labels[0]["l"] if labels else value
    return named


def check_queries(files: OntologyFiles) -> None:
    """Passes when the questions and checks beside an ontology can be read and may be run.

    Raises:
        InputError: names the file and what is wrong with it.
    """
    prefixes = read_prefixes(files.turtle.read_text("utf-8"))
    queries = {str(path): path.read_text("utf-8") for path in files.checks}
    if files.questions:
        questions = read_questions(files.questions)
        queries |= {f"{files.questions}, “{q.text}”": q.sparql for q in questions}
    for place, query in queries.items():
        try:
            check_query(complete_query(query, prefixes))
        except InputError as e:
            raise InputError(f"{place}: {e}") from e


def judge_checks(found: Sequence[Answered], *, most: int = 0) -> str:
    """`pass` when the checks found at most so many violations, else what they found.

    `not run: why` when one was stopped and the others do not fail.
    """
    told = []
    total = sum(check.count for check in found)
    for check in found:
        if check.problem:
            told.append(f"{check.text}: {check.problem}")
        elif check.count:
            rows = "; ".join(", ".join(row.values()) for row in check.rows)
            left = check.count - len(check.rows)
            rest = f" and {left} {'or more others' if check.more else 'more'}" if left else ""
            told.append(f"{check.text} ({rows}{rest})")
    said = "; ".join(told)
    if total > most or any(check.more for check in found):
        return f"fail: {said}; correct the text, or allow so many with publish.max_violations"
    if any(check.problem for check in found):
        return f"{_choose_verdict(found)}: {said}"
    return f"pass: {total} found, publish.max_violations = {most}: {said}" if told else "pass"


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
