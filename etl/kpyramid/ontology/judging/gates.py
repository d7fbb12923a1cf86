"""All judgements on an ontology, alone or with the instances of a snapshot, gate by gate."""

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from kpyramid.declared import OntologyFiles
from kpyramid.ontology import names as n
from kpyramid.ontology.judging.checks import (
    Answered,
    Question,
    judge_checks,
    judge_questions,
    read_questions,
    run_checks,
    run_questions,
    trace_violations,
)
from kpyramid.ontology.judging.consistency import judge_consistency, repair_contradictions
from kpyramid.ontology.judging.repair import Repair, Withdrawal
from kpyramid.ontology.judging.shapes import (
    Broken,
    Shaped,
    derive_shapes,
    judge_shapes,
    trace_broken,
)
from kpyramid.ontology.limited import end_running
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.ontology.sparql import read_prefixes
from kpyramid.ontology.store import InstanceStatement, OntologyStore

_Found = TypeVar("_Found")


@dataclass(slots=True)
class Judgement:
    """Verdicts by gate, `pass`, `fail: why` or `not run: why`; what the queries and shapes found.

    `seconds` are each gate's own: they run side by side.
    """

    gates: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    checks: Sequence[Answered] = ()
    questions: Sequence[tuple[Question, Answered]] = ()
    broken: Sequence[Broken] = ()

    @property
    def failed(self) -> bool:
        """Whether a gate fails; one that was not run does not."""
        return any(verdict.startswith("fail") for verdict in self.gates.values())


def judge_ontology(
    files: OntologyFiles,
    schema_turtle: str,
    instances_nt: str,
    *,
    provenance_nt: str = "",
    seconds: float,
    strict: bool = False,
) -> Judgement:
    """What HermiT, SHACL, the ontology's own checks and its competency questions say.

    The files' Turtle is not judged but `schema_turtle`, which completion may have let grow;
    `seconds` bound HermiT, pyshacl and each query.
    Competency questions have to run, and, if `strict`, to give the rows that they must.

    Raises:
        InputError: the schema or a companion file cannot be read.
    """
    schema = parse_schema(schema_turtle, source="the schema")
    shapes = {"the shapes of the schema": derive_shapes(schema)}
    if files.shapes:
        shapes[files.shapes.name] = files.shapes.read_text("utf-8-sig")
    questions = read_questions(files.questions) if files.questions else []
    judged = Judgement()

    def ask_hermit() -> str:
        return judge_consistency(
            schema_turtle, instances_nt, seconds=seconds, provenance_nt=provenance_nt
        )

    def ask_pyshacl() -> Shaped:
        return judge_shapes(schema_turtle, instances_nt, shapes, seconds=seconds)

    store = OntologyStore(schema_turtle, instances_nt, seconds=seconds)
    with ThreadPoolExecutor(2) as pool:  # each waits for a process of its own
        shaped = pool.submit(_measure, ask_pyshacl)
        queried = pool.submit(_query, files, schema, store, questions)
        try:
            judged.gates["consistent"], judged.seconds["consistent"] = _measure(ask_hermit)
            found, judged.seconds["shapes"] = shaped.result()
            judged.gates["shapes"], judged.broken = found.verdict, found.broken
            checked, asked = queried.result()
        except BaseException:  # Ctrl-C too: the pool ends only when its processes do
            store.stop()
            while not (shaped.done() and queried.done()):
                end_running()  # again and again: one may be about to start
                time.sleep(0.1)
            raise
    judged.checks, judged.seconds["checks"] = checked
    answered, judged.seconds["questions"] = asked
    judged.questions = list(zip(questions, answered, strict=True))
    name = files.turtle.stem
    judged.gates["checks"] = (
        judge_checks(judged.checks)
        if files.checks
        else f"not run: there is no {name}-*-violation.rq beside {files.turtle.name}"
    )
    judged.gates["questions"] = (
        judge_questions(questions, answered, strict=strict)
        if questions
        else f"not run: there is no {name}.questions.toml beside {files.turtle.name}"
    )
    return judged


def repair_ontology(
    files: OntologyFiles,
    schema_turtle: str,
    instances_nt: str,
    statements: Iterable[InstanceStatement],
    judged: Judgement,
    *,
    seconds: float,
) -> list[Withdrawal]:
    """The statements that have to leave for what failed in a judgement, by key of their row.

    Of the statements that contradict each other those with the most evidence stay. Empty where no
    statement is at fault, or where it was not found in `seconds`.
    """
    schema = parse_schema(schema_turtle, source="the schema")
    labels = {one.iri: one.label for one in schema.classes}
    labels |= {prop.iri: prop.label for prop in schema.properties}
    repair = Repair(statements, labels)
    failed = {gate for gate, verdict in judged.gates.items() if verdict.startswith("fail")}
    faults = []
    if "checks" in failed:
        faults += trace_violations(files, schema_turtle, instances_nt, seconds=seconds)
    if "shapes" in failed:
        faults += trace_broken(judged.broken, instances_nt)
    repair.settle(faults)
    if "consistent" in failed and not repair.withdrawn:  # the others may have cured it
        repair_contradictions(schema_turtle, instances_nt, repair, seconds=seconds)
    return [withdrawal for _, withdrawal in sorted(repair.withdrawn.items())]


def _query(
    files: OntologyFiles,
    schema: Schema,
    store: OntologyStore,
    questions: Sequence[Question],
) -> tuple[tuple[list[Answered], float], tuple[list[Answered], float]]:
    """What the checks and the questions find, each with its seconds."""
    prefixes, terms = read_prefixes(files.turtle.read_text("utf-8-sig")), _list_terms(schema)
    with store:
        return (
            _measure(lambda: run_checks(files.checks, store, prefixes)),
            _measure(lambda: run_questions(questions, store, prefixes, terms, schema.base)),
        )


def _measure(ask: Callable[[], _Found]) -> tuple[_Found, float]:
    started = time.monotonic()
    found = ask()
    return found, round(time.monotonic() - started, 3)


def _list_terms(schema: Schema) -> frozenset[str]:
    """The classes and properties, and what else the schema's axioms name."""
    named = {word for line in schema.axioms for word in line.split(" ") if word.startswith("<")}
    terms = {iri.strip("<>") for iri in named}
    return frozenset({*schema.class_by_iri, *schema.property_by_iri, *terms, n.THING})
