"""The gates: what a snapshot must pass before its ref moves."""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.errors import SettingsError
from kpyramid.keys import JsonValue
from kpyramid.ontology import names as n
from kpyramid.ontology.sandbox import end_running
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.ontology.sparql import read_prefixes
from kpyramid.ontology.store import InstanceStatement, OntologyStore
from kpyramid.ontology.validation.checks import (
    Answered,
    Question,
    judge_checks,
    judge_questions,
    read_questions,
    run_checks,
    run_questions,
    trace_violations,
)
from kpyramid.ontology.validation.consistency import add_modules, find_java, judge_consistency
from kpyramid.ontology.validation.owl import judge_reading
from kpyramid.ontology.validation.parts import Keyed, Passed, Unjudged, list_parts
from kpyramid.ontology.validation.repair import Repair, Withdrawal
from kpyramid.ontology.validation.shapes import (
    Broken,
    Shaped,
    derive_shapes,
    judge_shapes,
    trace_broken,
)
from kpyramid.settings import Settings
from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.declarations import OntologyFiles
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import list_entries, list_undone
from kpyramid.storage.results import TableFile, read_result
from kpyramid.storage.runs import Run
from kpyramid.storage.snapshots import find_manifest
from kpyramid.storage.verification import check_tables

if TYPE_CHECKING:
    from kpyramid.evaluation.harness import Answers, Arm
    from kpyramid.evaluation.metrics import Metric
    from kpyramid.evaluation.questions import EvalQuestion
    from kpyramid.pipeline.checks import Measured

_MEANT = "If that is meant, build with --allow-shrink (a DAG's run with allow_shrink)"


# The tables: gates `traceable`, `size`, `standing`, `kept`, `contradictions` and `answered`.


def judge_traces(warehouse: Warehouse, snapshot: str) -> str:
    """Passes when contracts and references hold, and every span lies in its document."""
    problems = check_tables(locate_snapshot(warehouse, snapshot))
    return f"fail: {'; '.join(problems[:5])}" if problems else "pass"


def judge_size(run: Run, rows: Mapping[str, int], head: str | None) -> str:
    """Passes when the corpus and its triples are not far smaller than those of HEAD."""
    if run.allow_shrink:
        return "pass"
    if rows["documents"] == 0:
        advice = "the build says first which files were not read, and why"
        return f"fail: no document is left; {advice}. {_MEANT}"
    if head is None:
        return "pass"
    tables = find_manifest(run.warehouse, head)["tables"]
    publish = run.settings.publish
    shares = {"documents": publish.min_document_share, "triples": publish.min_triple_share}
    comparisons = []
    for table, share in shares.items():
        before: int = tables[table]["rows"]  # type: ignore[index,call-overload,assignment]
        comparisons.append(f"{rows[table]:,} {table}, HEAD has {before:,}")
        if rows[table] < share * before:
            return (
                f"fail: {rows[table]} {table}, HEAD has {before}: fewer than {share:.0%} of "
                f"them. {_MEANT}"
            )
    return f"pass: {'; '.join(comparisons)}"


def judge_standing(run: Run, snapshot: str) -> str:
    """Passes unless the ref was rolled back from this snapshot: a build does not restore it."""
    if snapshot in list_undone(list_entries(run.warehouse, run.ref)):
        return (
            f"fail: ref {run.ref!r} was rolled back from this snapshot. To have it back: "
            f"`kpyramid promote {run.ref} {snapshot}`"
        )
    return "pass"


def judge_kept(run: Run, tables: Mapping[str, TableFile]) -> str:
    """Passes when the condensed facts say what the triples say, compared anew from both tables."""
    # Loaded here, as a check of an ontology alone needs none of it and would wait for it.
    from kpyramid.condensation.detail import list_lost
    from kpyramid.condensation.graph import unfold_nouns
    from kpyramid.condensation.merging import guard_comparer
    from kpyramid.graph.synonyms.comparison import Comparer
    from kpyramid.pipeline.cache import CachedEmbedder, Context
    from kpyramid.pipeline.models import Opener
    from kpyramid.pipeline.stages.condense import read_derivations, read_graph

    names = ("entities", "relations", "triples", "condensed")
    entities, relations, triples, condensed = (
        read_result(tables[name], load_contracts()[name], run.warehouse.staging) for name in names
    )
    stated, standing = (
        unfold_nouns(read_graph(entities, relations, table)) for table in (triples, condensed)
    )
    stands, how = read_derivations(triples, condensed)
    by_model = run.settings.condense.mode == "llm"
    with Opener(run.warehouse, run.settings, run.folder, run.ref) as opener:
        context = Context(run.warehouse, run.settings)
        embedder = CachedEmbedder(context, opener.connect, "publish")
        compare = guard_comparer(Comparer(embedder))
        trusted = [by_model and why == "llm" for why in how]
        lost = list(list_lost(stated, standing, stands, trusted, compare))
    least = run.settings.publish.min_kept_share
    if len(stated) - len(lost) >= least * len(stated):
        return f"pass: {len(stated) - len(lost):,} of {len(stated):,} triples are said"
    row, reason = lost[0]
    return (
        f"fail: {len(lost)} of {len(stated)} triples are not said by the condensed fact they stand "
        f"in, where {1.0 - least:.0%} are allowed; the first is "
        f"{triples['triple_id'][row]} ({how[row]}): {reason}. HEAD stays as it was. "
        "The snapshot's view `derivations` shows what was merged and why; report the wordings"
    )


def judge_withdrawn(run: Run, withdrawn: pa.Table, given: TableFile) -> str:
    """Passes when few enough individuals have a withdrawn statement."""
    if not withdrawn.num_rows:
        return "pass"
    instances = read_result(given, load_contracts()["instances"])
    gone = pc.is_in(instances["instance_id"], value_set=withdrawn["row_key"])
    individuals = pc.count_distinct(instances["subject_id"]).as_py()
    faulty = pc.count_distinct(instances.filter(gone)["subject_id"]).as_py()
    most = run.settings.publish.max_violation_share
    summary = (
        f"{withdrawn.num_rows} contradicting statements about {faulty} of {individuals} "
        "individuals were withdrawn"
    )
    if faulty <= math.ceil(most * individuals):
        return f"pass: {summary}; the report names them"
    return (
        f"fail: {summary}, more than publish.max_violation_share = {most} allows; the first is "
        f"{withdrawn['detail'][0].as_py()}. Correct the text, or raise the setting"
    )


def judge_answers(run: Run, rejects: pa.Table, chunks: int) -> str:
    """Passes when the language model answered for nearly all chunks."""
    missing: dict[str, set[str]] = {}
    for row in rejects.select(["stage", "reason", "chunk_id"]).to_pylist():
        if row["stage"] in ("extract", "induce") and row["reason"].startswith("llm_"):
            missing.setdefault(row["reason"], set()).add(row["chunk_id"])
    count = len(set().union(*missing.values()))
    share = run.settings.publish.max_unanswered_share
    if count <= share * chunks:
        return f"pass: {chunks - count:,} of {chunks:,} chunks"
    reasons = ", ".join(f"{reason} {len(ids)}" for reason, ids in sorted(missing.items()))
    advice = "build again: only they are asked"
    if missing.keys() <= {"llm_refused"}:
        advice = (
            "a refusal is asked again only after `kpyramid rejects --retry`, or of another model"
        )
    elif "llm_deferred" in missing:
        advice = "`kpyramid batch collect` fetches what is in a batch; then build again"
    return (
        f"fail: {count} of {chunks} chunks have no answer of the model ({reasons}), more than "
        f"{share:.0%}. `kpyramid rejects --requests` says why; {advice}"
    )


# The ontology: gates `readable`, `consistent`, `shapes`, `checks` and `questions`.

MOST_ROUNDS = 5
"""Repairs after which remaining contradictions fail their gates."""


@dataclass(slots=True)
class Judgement:
    """Verdicts by gate, `pass`, `fail: why` or `not run: why`; the rows of queries and shapes.

    `parts`: those of the instances. `store`: answers queries on them.
    """

    gates: dict[str, str] = field(default_factory=dict)
    checks: Sequence[Answered] = ()
    questions: Sequence[tuple[Question, Answered]] = ()
    broken: Sequence[Broken] = ()
    parts: Sequence[Keyed] | None = None
    store: OntologyStore | None = None

    @property
    def failed(self) -> bool:
        """Whether a gate fails; one that was not run does not."""
        return any(verdict.startswith("fail") for verdict in self.gates.values())


def judge_ontology(
    files: OntologyFiles,
    texts: Mapping[str, str],
    *,
    seconds: float,
    strict: bool = False,
    passed: Passed | None = None,
    before: Judgement | None = None,
) -> Judgement:
    """The verdicts of HermiT, SHACL, the ontology's checks and competency questions.

    `texts`: the files of a snapshot's `ontology/` folder. Their schema, which completion may have
    extended, is judged, not the Turtle of `files`. `seconds` limits each judge and each query.
    Competency questions have to run, and, if `strict`, to return enough rows. What HermiT and SHACL
    `passed` before is not judged again. `before`: the judgement of the same schema with more
    statements: what HermiT accepted there is consistent with fewer.

    Raises:
        InputError: the schema or a companion file cannot be read.
    """
    schema_turtle, instances_nt = texts["ontology/schema.ttl"], texts["ontology/instances.nt"]
    provenance_nt = texts.get("ontology/provenance.nt", "")
    schema = parse_schema(schema_turtle, source="the schema")
    shapes = {"the shapes of the schema": derive_shapes(schema)}
    if files.shapes:
        shapes[files.shapes.name] = files.shapes.read_text("utf-8-sig")
    questions = read_questions(files.questions) if files.questions else []
    judged, has_java = Judgement(), find_java() is not None
    parts = list_parts(schema_turtle, instances_nt, shapes.values())
    judged.parts = add_modules(schema_turtle, parts)
    given: list[JsonValue] = ["judged", [*shapes.values()][1:], has_java]
    left = Unjudged(given, judged.parts, passed)
    prefixes, terms = read_prefixes(files.turtle.read_text("utf-8-sig")), _list_terms(schema)
    if before is not None and before.store is not None:
        store = before.store
        store.drop({*store.instances_nt.split("\n")} - {*instances_nt.split("\n")})
    else:
        store = OntologyStore(schema_turtle, instances_nt, seconds=seconds)
    judged.store = store

    def query() -> tuple[list[Answered], list[Answered]]:
        checked = run_checks(files.checks, store, prefixes)
        return checked, run_questions(questions, store, prefixes, terms, schema.base)

    def shape() -> Shaped:
        shaping = schema_turtle, left.text, shapes
        return judge_shapes(*shaping, seconds=seconds) if left.left else Shaped("pass")

    with ThreadPoolExecutor(2) as pool:  # each waits for a process of its own
        shaped, queried = pool.submit(shape), pool.submit(query)
        try:
            if before is not None and before.gates["consistent"] == "pass":
                judged.gates["consistent"] = "pass"
            else:
                judged.gates["consistent"] = judge_consistency(
                    schema_turtle,
                    left.text,
                    seconds=seconds,
                    provenance_nt=provenance_nt,
                    passed=passed,
                )
            outcome = shaped.result()
            judged.gates["shapes"], judged.broken = outcome.verdict, outcome.broken
            judged.checks, answered = queried.result()
            if outcome.verdict == "pass" and (judged.gates["consistent"] == "pass" or not has_java):
                left.keep(dict.fromkeys(left.left, b""))
        except BaseException:  # Ctrl-C too: the pool ends only when its processes do
            store.stop()
            while not (shaped.done() and queried.done()):
                end_running()  # again and again: one may be about to start
                time.sleep(0.1)
            raise
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


def judge_readable(
    texts: Mapping[str, str], judged: Judgement, *, seconds: float, passed: Passed
) -> str:
    """The verdict of owlready2, whose process holds as much as those of `judge_ontology`."""
    if judged.store is not None:
        judged.store.close()
    parts = judged.parts or [("", texts["ontology/instances.nt"].split("\n"))]
    left = Unjudged("readable", parts, passed)
    return judge_reading(texts["ontology/ontology.nt"], left, seconds=seconds)


def repair_ontology(
    files: OntologyFiles,
    texts: Mapping[str, str],
    statements: Iterable[InstanceStatement],
    judged: Judgement,
    *,
    seconds: float,
) -> list[Withdrawal]:
    """The statements to withdraw for failed checks and shapes, by key of their row.

    Of contradicting statements those with the most evidence stay. What remains is checked again
    until no check fails, since a path between two places may have a second way. Empty where no
    statement is at fault, or none could be identified in `seconds`.
    """
    schema_turtle, standing = texts["ontology/schema.ttl"], texts["ontology/instances.nt"]
    schema = parse_schema(schema_turtle, source="the schema")
    store = judged.store or OntologyStore(schema_turtle, standing, seconds=seconds)
    labels = {each.iri: each.label for each in schema.classes}
    labels |= {prop.iri: prop.label for prop in schema.properties}
    repair = Repair(statements, labels)
    asked = zip(files.checks, judged.checks, strict=True)
    files = replace(files, checks=tuple(path for path, check in asked if check.count))
    faults = trace_broken(judged.broken, standing) if judged.broken else []
    for _ in range(MOST_ROUNDS):
        if files.checks:
            faults += trace_violations(files, store)
        gone = {f"{fact} ." for fact in repair.settle(faults)}
        if not gone:
            break
        store.drop(gone)
        faults = []
    return [withdrawal for _, withdrawal in sorted(repair.withdrawn.items())]


def _list_terms(schema: Schema) -> frozenset[str]:
    """The IRIs of classes and properties, and all others in the schema's axioms."""
    named = {word for line in schema.axioms for word in line.split(" ") if word.startswith("<")}
    terms = {iri.strip("<>") for iri in named}
    return frozenset({*schema.class_by_iri, *schema.property_by_iri, *terms, n.THING})


# Gate `floor`: questions that a snapshot must answer well enough to become HEAD.

GATE = "floor"
_NAMED = 5
"""Questions named in a verdict."""


def require_floor(settings: Settings) -> None:
    """Passes when the questions of [evaluate] can be read, and its strategy and metrics exist.

    Called at a build's start, so that it does not fail at its end.

    Raises:
        InputError: the file cannot be read, or the strategy is unknown.
        SettingsError: a metric is unknown or applies to none of the questions.
    """
    if settings.evaluate.questions is None:
        return
    questions, _ = _read_floor(settings)
    metrics = _open_metrics()
    for name in settings.evaluate.floor:
        if name not in metrics:
            raise SettingsError(
                f"evaluate.floor: there is no metric {name!r}; there are {', '.join(metrics)}"
            )
        if not any(metrics[name].applies(question) for question in questions):
            raise SettingsError(
                f"evaluate.floor: {name} applies to none of the questions in "
                f"{settings.evaluate.questions}; take another metric, or other questions"
            )


def judge_floor(settings: Settings, warehouse: Warehouse, snapshot: str) -> dict[str, str]:
    """The verdict on a snapshot that is written and not yet HEAD; empty without questions.

    Rules answer them: no language model is called while publishing. A failure names each metric
    that is too low, and the questions below its floor.

    Raises:
        InputError: as `require_floor`, or not one of the questions could be answered.
    """
    floor = settings.evaluate.floor
    if settings.evaluate.questions is None:
        return {}
    answers = _answer(settings, warehouse, snapshot)
    means = {
        name: fmean(row.scores[name] for row in answers.rows if name in row.scores)
        for name in sorted(floor)
    }
    refused = [name for name, mean in means.items() if _is_worse(name, mean, floor[name])]
    if not refused:
        figures = ", ".join(f"{name} = {mean:.4g}" for name, mean in means.items())
        return {GATE: f"pass: {figures}, of {len(answers.rows)} questions"}
    figures = ", ".join(
        f"{name} = {means[name]:.4g} is {'above' if _falls(name) else 'below'} "
        f"evaluate.floor {floor[name]}"
        for name in refused
    )
    weak = [
        f"{row.question.id} ({' '.join(row.question.text.split())})"
        for row in answers.rows
        if any(n in row.scores and _is_worse(n, row.scores[n], floor[n]) for n in refused)
    ]
    more = f" and {len(weak) - _NAMED} more" if len(weak) > _NAMED else ""
    asked = f"{len(answers.rows)} questions of {settings.evaluate.questions}"
    return {GATE: f"fail: {figures}, of {asked}; it fails on {', '.join(weak[:_NAMED])}{more}"}


def _read_floor(settings: Settings) -> "tuple[list[EvalQuestion], Arm]":
    """The questions of [evaluate], and the strategy that answers them."""
    from kpyramid.evaluation.harness import parse_arm
    from kpyramid.evaluation.questions import read_questions

    arm = parse_arm(settings.evaluate.strategy)
    return read_questions(Path(str(settings.evaluate.questions))), arm


@cache
def _open_metrics() -> "Mapping[str, Metric]":
    from kpyramid.evaluation.harness import open_measures

    return open_measures()


def _answer(settings: Settings, warehouse: Warehouse, snapshot: str) -> "Answers":
    from kpyramid.evaluation.harness import answer_all
    from kpyramid.query import Snapshot

    questions, arm = _read_floor(settings)
    opened = Snapshot(locate_snapshot(warehouse, snapshot), settings.embed)
    wanted = {name: _open_metrics()[name] for name in settings.evaluate.floor}
    answers = answer_all(questions, opened, [arm], metrics=wanted)
    if answers.stopped is not None:
        raise answers.stopped
    return answers


def _is_worse(metric: str, score: float, floor: float) -> bool:
    return score > floor if _falls(metric) else score < floor


def _falls(metric: str) -> bool:
    """Whether lower values of a metric are better; its floor is then an upper bound."""
    return _open_metrics()[metric].better == "lower"


# Gate `expected`: checks of one's own.


def judge_expected(run: Run, snapshot: str) -> "list[Measured]":
    """The outcomes of the settings' checks on a snapshot that is written."""
    from kpyramid.pipeline.checks import load_checks, measure_checks
    from kpyramid.query import EVERYTHING, Snapshot

    if run.settings.publish.checks is None:
        return []
    opened = Snapshot(locate_snapshot(run.warehouse, snapshot), run.settings.embed, EVERYTHING)
    return measure_checks(
        load_checks(run.settings.publish.checks, opened.schema), opened, run.order
    )
