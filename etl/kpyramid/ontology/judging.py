"""All judgements on an ontology, alone or with the instances of a snapshot, gate by gate."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from kpyramid.declared import OntologyFiles
from kpyramid.ontology import names as n
from kpyramid.ontology.checks import (
    Answered,
    Question,
    judge_checks,
    judge_questions,
    read_prefixes,
    read_questions,
    run_checks,
    run_questions,
)
from kpyramid.ontology.consistency import judge_consistency
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.ontology.shapes import derive_shapes, judge_shapes
from kpyramid.ontology.store import OntologyStore


@dataclass(slots=True)
class Judgement:
    """Verdicts by gate, `pass`, `fail: why` or `not run: why`; what the queries found."""

    gates: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    checks: Sequence[Answered] = ()
    questions: Sequence[tuple[Question, Answered]] = ()

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
    `seconds` bound HermiT and pyshacl each. Competency questions have to run, and, if `strict`, to
    give the rows that they must.

    Raises:
        InputError: the schema or a companion file cannot be read.
    """
    judged = Judgement()
    schema = parse_schema(schema_turtle, source="the schema")
    questions = read_questions(files.questions) if files.questions else []
    shapes = {"the shapes of the schema": derive_shapes(schema)}
    if files.shapes:
        shapes[files.shapes.name] = files.shapes.read_text("utf-8")
    started = time.monotonic()

    def note(gate: str, verdict: str) -> None:
        judged.gates[gate] = verdict
        judged.seconds[gate] = round(time.monotonic() - started, 3)

    with ThreadPoolExecutor(1) as pool:  # each waits for a process of its own
        shaped = pool.submit(judge_shapes, schema_turtle, instances_nt, shapes, seconds=seconds)
        verdict = judge_consistency(
            schema_turtle, instances_nt, seconds=seconds, provenance_nt=provenance_nt
        )
        note("consistent", verdict)
        note("shapes", shaped.result())
    prefixes = read_prefixes(files.turtle.read_text("utf-8"))
    with OntologyStore(schema_turtle, instances_nt) as store:
        if files.checks:
            judged.checks = run_checks(files.checks, store, prefixes)
        beside = f"beside {files.turtle.name}"
        note(
            "checks",
            judge_checks(judged.checks)
            if files.checks
            else f"not run: there is no {files.turtle.stem}-*-violation.rq {beside}",
        )
        answered = run_questions(questions, store, prefixes, _list_terms(schema), schema.base)
        judged.questions = list(zip(questions, answered, strict=True))
        note(
            "questions",
            judge_questions(questions, answered, strict=strict)
            if questions
            else f"not run: there is no {files.turtle.stem}.questions.toml {beside}",
        )
    return judged


def _list_terms(schema: Schema) -> frozenset[str]:
    """The classes and properties, and what else the schema's axioms name."""
    named = {word for line in schema.axioms for word in line.split(" ") if word.startswith("<")}
    terms = {iri.strip("<>") for iri in named}
    return frozenset({*schema.class_by_iri, *schema.property_by_iri, *terms, n.THING})
