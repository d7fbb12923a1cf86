"""A whole build: every stage in order, then the report. What the command line and DAGs call."""

import json
import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kpyramid.documents.corpus import list_corpus
from kpyramid.errors import GateError, InputError, PyramidError
from kpyramid.keys import JsonValue
from kpyramid.pipeline.fingerprints import INPUTS, hash_judges, key_publishing, walk_stored
from kpyramid.pipeline.report.course import (
    FIGURE,
    PLAN,
    add_trend,
    describe_course,
    list_differences,
    measure_report,
    write_pages,
)
from kpyramid.pipeline.stage import PIPELINE, Progress
from kpyramid.settings import Settings, load_settings
from kpyramid.storage.copies import locate_snapshot
from kpyramid.storage.erasure import load_erased
from kpyramid.storage.former import find_former
from kpyramid.storage.identity import library_version
from kpyramid.storage.layout import Warehouse, clean_staging, is_address, open_warehouse
from kpyramid.storage.refs import read_head
from kpyramid.storage.runs import (
    LOG,
    Run,
    StageMark,
    list_runs,
    note_state,
    open_run,
    read_git_sha,
    read_mark,
    start_run,
    write_mark,
)
from kpyramid.storage.verification import require_whole
from kpyramid.storage.writing import write_durably

# A build that would repeat its ref's snapshot: its marks and its report, at little cost.


@dataclass(frozen=True, slots=True)
class Repeat:
    """What a run that changes nothing repeats: marks and report of the run before it."""

    marks: tuple[StageMark, ...]
    report: Mapping[str, Any]
    figure: str


def find_repeat(
    corpus: str | Path, warehouse: Warehouse, settings: Settings, ref: str
) -> Repeat | None:
    """The run that a build would repeat; None where it may change something.

    It repeats the ref's last run, which made the snapshot that the ref has, when corpus, settings,
    libraries and code are as they were then, and snapshot and stored results are whole. What lacks
    a model's answer is not stored under the key of its inputs, so it is asked for again. Where a
    bucket is asked, or checks of one's own stand, stages and gates are run.
    """
    started = time.monotonic()
    here = warehouse.bucket is None and not is_address(str(corpus))
    here = here and settings.publish.checks is None  # one may be of the time of the run
    head = read_head(warehouse, ref) if here else None
    runs = list_runs(warehouse) if head else []
    latest = next((row for row in runs if row["ref"] == ref), {})
    if head is None or (latest.get("status"), latest.get("snapshot")) != ("done", head.snapshot):
        return None
    with suppress(PyramidError, OSError, ValueError, KeyError, TypeError):  # the build says it
        run = open_run(warehouse, str(latest["run"]))
        marks = [mark for stage in PIPELINE if (mark := read_mark(run, stage.name))]
        report = json.loads((run.folder / "report.json").read_bytes())
        if [report["software"], report["git_sha"]] != [library_version("kpyramid"), read_git_sha()]:
            return None
        keys, publish = [mark.key for mark in marks[:-1]], marks[-1]
        if publish.details.get(INPUTS) != key_publishing(settings, hash_judges(settings), keys):
            return None
        listed = list_corpus(Path(corpus), leave_out=warehouse.folders)
        fingerprint = load_erased(warehouse).mark(listed.fingerprint)
        former = find_former(warehouse, head)
        stored = walk_stored(warehouse, settings, fingerprint, former)
        if former is None or [result.key for _, result in stored] != keys:
            return None
        require_whole(locate_snapshot(warehouse, head.snapshot), "")
        details = {**publish.details, "committed": "unchanged"}
        marks[-1] = replace(publish, details=details, gates={})
        figure = (run.folder / FIGURE).read_text("utf-8")
        took = {PIPELINE[-1].name: round(time.monotonic() - started, 3)}
        unasked: Mapping[str, JsonValue] = {"asked": 0, "hits": 0}  # all replies were stored
        done = (
            replace(m, recomputed=0, seconds=took.get(m.stage, 0.0), model=m.model and unasked)
            for m in marks
        )
        return Repeat(tuple(done), report, figure)
    return None


def repeat_run(run: Run, repeat: Repeat) -> dict[str, Any]:
    """Writes the marks and the report of a run that changes nothing; returns the report."""
    for mark in repeat.marks:
        write_mark(run, mark)
    rows = repeat.marks[-1].rows
    report = {
        **repeat.report,
        **describe_course(run, repeat.marks),
        **{"changes": "nothing changed", "changed": {}, "before": dict(rows)},
    }
    add_trend(run, report)
    write_pages(run, report, repeat.figure)
    return report


# What computes is imported where it is used: a build that changes nothing loads none of it.

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BuildOutcome:
    """A finished build: its run, the marks of all stages (publish last), and its report."""

    run: Run
    marks: tuple[StageMark, ...]
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def snapshot(self) -> str:
        return self.marks[-1].details["snapshot"]


def build(
    corpus: str | Path,
    warehouse: Warehouse,
    settings: Settings,
    *,
    ref: str = "main",
    order: str | None = None,
    allow_shrink: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> BuildOutcome:
    """Builds a pyramid from a corpus and publishes it; stored results are not recomputed.

    Raises:
        GateError: a gate refused; the snapshot is kept and the ref stays.
        PyramidError: any other expected failure; run again to go on where it stopped.
    """
    repeat = find_repeat(corpus, warehouse, settings, ref)
    if repeat is None:
        _require_all(settings)
    run = start_run(warehouse, corpus, settings, ref=ref, order=order, allow_shrink=allow_shrink)
    with remember(run):
        if repeat is not None:
            clean_staging(warehouse)
            report = repeat_run(run, repeat)
            note_state(run, "done", figures=measure_report(report))
            return BuildOutcome(run, repeat.marks, report)
        from kpyramid.pipeline.runner import run_stage

        _write_plan(run, workers)
        marks = tuple(
            run_stage(run, stage.name, workers=workers, progress=progress or Progress())
            for stage in PIPELINE
        )
        return BuildOutcome(run, marks, _finish(run, marks))


@contextmanager
def remember(run: Run, *, shard: bool = False) -> Iterator[None]:
    """Records in the run how the block ended, and writes its warnings to the run's log.

    A shard, which runs beside others, records only a failure.
    """
    run.folder.mkdir(parents=True, exist_ok=True)
    handler = logging.FileHandler(run.folder / LOG, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger = logging.getLogger("kpyramid")
    logger.addHandler(handler)
    if not shard:
        note_state(run, "running")
    try:
        with closing(handler):
            yield
    except BaseException as e:
        note_state(run, **_describe_end(e))
        raise
    finally:
        logger.removeHandler(handler)


def _describe_end(error: BaseException) -> dict[str, Any]:
    """The fields of a run's record after an error."""
    code, state = 8 if isinstance(error, OSError) else 1, dict[str, Any](status="failed")
    text = str(error) or type(error).__name__
    if isinstance(error, KeyboardInterrupt):
        code, state, text = 130, {"status": "killed"}, "stopped by a signal"
    code = getattr(error, "exit_code", code)
    if isinstance(error, GateError):
        report = error.report
        state = {"status": "refused", "refused_by": report.get("refused_by")}
        state |= {"figures": measure_report(report)} if report else {}
    return {**state, "error": text, "exit_code": code}


def call_stage(
    name: str,
    *,
    run: str,
    warehouse: str,
    corpus: str | None = None,
    settings_file: str | Path | None = None,
    ref: str = "main",
    order: str | None = None,
    allow_shrink: bool = False,
    workers: int = 1,
    shard: str | None = None,
    progress: Progress | None = None,
    check: Callable[[], None] = lambda: None,
) -> StageMark:
    """Runs one stage of the named run; the first stage starts the run, then calls `check`.

    `shard`: the part whose caches are filled, such as 0/4, instead of the stage.

    Raises:
        InputError: the first stage has no corpus, a later one no run, or there is no such shard.
        GateError: publish was refused by a gate.
        PyramidError: whatever else the stage found wrong.
    """
    from kpyramid.pipeline.runner import read_shard, run_stage

    part = None if shard is None else read_shard(shard)
    place = open_warehouse(warehouse)
    if name == PIPELINE[0].name:
        if corpus is None:
            raise InputError(f"stage {name} starts a run: give it --corpus FOLDER")
        current = start_run(
            place,
            corpus,
            load_settings(settings_file),
            ref=ref,
            name=run,
            order=order,
            allow_shrink=allow_shrink,
        )
    else:
        current = open_run(place, run)
        if settings_file:
            now = load_settings(settings_file)
            current = replace(current, settings=current.settings.with_operations(now))
            if current.settings != now:
                log.warning(
                    "%s is not what run %s began with; the run goes on with what it began with, "
                    "not with %s of %s",
                    settings_file,
                    run,
                    ", ".join(list_differences(current.settings, now)),
                    socket.gethostname(),
                )
    with remember(current, shard=shard is not None):
        if name == PIPELINE[0].name:
            _require_all(current.settings)
            check()
            _write_plan(current, workers)
        watch = progress or Progress()
        mark = run_stage(current, name, workers=workers, progress=watch, shard=part)
        if name == PIPELINE[-1].name:
            report = _finish(current, None)
            changes = {"changes": report["changes"]} if report["changes"] else {}
            mark = replace(mark, details={**mark.details, **changes})
        elif shard is None:
            note_state(current, "waiting")
    return mark


def _require_all(settings: Settings) -> None:
    """Passes when the settings name what a build can use; runs before any work."""
    from kpyramid.pipeline.checks import load_checks
    from kpyramid.pipeline.gates import require_floor
    from kpyramid.pipeline.models import require_model
    from kpyramid.pipeline.wiring import load_schema, require_ontology

    if settings.asks_model:
        require_model(settings, "a stage asks")
    require_ontology(settings)
    require_floor(settings)
    load_checks(settings.publish.checks, load_schema(settings))


def _write_plan(run: Run, workers: int) -> None:
    """Writes what the run is expected to cost, before anything is paid."""
    settings, path = run.settings, run.folder / PLAN
    asks = settings.asks_model and settings.llm.is_served
    if (asks or settings.embed.is_served) and not path.exists():
        from kpyramid.pipeline.plan import plan_build

        plan = plan_build(
            run.corpus, run.warehouse, settings, ref=run.ref, keep=True, workers=workers
        )
        write_durably(path, json.dumps(plan, indent=1).encode())


def _finish(run: Run, marks: tuple[StageMark, ...] | None) -> dict[str, Any]:
    """Writes the report, then says whether a gate refused.

    Raises:
        GateError: one did; it has the report.
    """
    from kpyramid.pipeline.models import put_run
    from kpyramid.pipeline.report.report import write_report

    report = write_report(run, marks)
    failed = {name: report["gates"][name] for name in report["refused_by"]}
    if not failed:
        note_state(run, "done", figures=measure_report(report))
        put_run(run)
        return report
    put_run(run)
    verdicts = "; ".join(f"{name}: {verdict}" for name, verdict in failed.items())
    raise GateError(
        f"snapshot {report['snapshot']} is kept but ref {run.ref!r} was not moved: "
        f"{verdicts}. The report is {run.folder / 'report.html'}",
        report,
    )
