"""A whole build: every stage in order, then the report. What the command line and DAGs call."""

import json
import logging
import socket
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kpyramid.errors import GateError, InputError
from kpyramid.pipeline.gates import require_floor
from kpyramid.pipeline.models import put_run, require_key
from kpyramid.pipeline.plan import plan_build
from kpyramid.pipeline.report.report import PLAN, write_report
from kpyramid.pipeline.runner import Shard, run_stage
from kpyramid.pipeline.stage import PIPELINE, Progress
from kpyramid.pipeline.wiring import require_ontology
from kpyramid.settings import Settings, load_settings
from kpyramid.storage.layout import Warehouse, open_warehouse
from kpyramid.storage.runs import Run, StageMark, open_run, start_run
from kpyramid.storage.writing import write_durably

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BuildOutcome:
    """A finished build: its run and every stage's mark, publish last."""

    run: Run
    marks: tuple[StageMark, ...]

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
    """Builds a pyramid from a corpus and publishes it; what is known already is not recomputed.

    Raises:
        GateError: a gate refused; the snapshot is kept and the ref stays.
        PyramidError: any other expected failure; run again to go on where it stopped.
    """
    _require_all(settings)
    run = start_run(warehouse, corpus, settings, ref=ref, order=order, allow_shrink=allow_shrink)
    _write_plan(run, workers)
    marks = tuple(
        run_stage(run, stage.name, workers=workers, progress=progress or Progress())
        for stage in PIPELINE
    )
    _finish(run, marks)
    return BuildOutcome(run, marks)


def call_stage(
    name: str,
    *,
    run: str,
    warehouse: str,
    corpus: str | None = None,
    settings_file: str | None = None,
    ref: str = "main",
    order: str | None = None,
    allow_shrink: bool = False,
    workers: int = 1,
    shard: Shard | None = None,
    progress: Progress | None = None,
) -> StageMark:
    """One stage of the run of that name; the first stage starts the run.

    Raises:
        InputError: the first stage has no corpus, or a later one no run.
        GateError: publish was refused by a gate.
        PyramidError: whatever else the stage found wrong.
    """
    place = open_warehouse(warehouse)
    if name == PIPELINE[0].name:
        if corpus is None:
            raise InputError(f"stage {name} starts a run: give it --corpus FOLDER")
        settings = load_settings(Path(settings_file) if settings_file else None)
        _require_all(settings)
        current = start_run(
            place,
            corpus,
            settings,
            ref=ref,
            name=run,
            order=order,
            allow_shrink=allow_shrink,
        )
        _write_plan(current, workers)
    else:
        current = open_run(place, run)
        if settings_file:
            now = load_settings(Path(settings_file))
            current = replace(current, settings=current.settings.with_operations(now))
            if current.settings != now:
                log.warning(
                    "%s is not what run %s began with; the run goes on with what it began with, "
                    "not with %s of %s",
                    settings_file,
                    run,
                    ", ".join(_list_changed(current.settings, now)),
                    socket.gethostname(),
                )
    mark = run_stage(current, name, workers=workers, progress=progress or Progress(), shard=shard)
    if name == PIPELINE[-1].name:
        _finish(current, None)
    return mark


def _list_changed(began: Settings, now: Settings) -> list[str]:
    """The keys whose values differ, such as `chunk.max_tokens`."""
    old, new = asdict(began), asdict(now)
    return [
        f"{part}.{key}" for part in old for key in old[part] if old[part][key] != new[part][key]
    ]


def _require_all(settings: Settings) -> None:
    """Passes when the settings name what a build can use: said before any work."""
    require_key(settings)
    require_ontology(settings)
    require_floor(settings)


def _write_plan(run: Run, workers: int) -> None:
    """Notes what the run is expected to pay, before it pays anything."""
    settings, path = run.settings, run.folder / PLAN
    asks = settings.asks_model and settings.llm.is_served
    if (asks or settings.embed.is_served) and not path.exists():
        plan = plan_build(
            run.corpus, run.warehouse, settings, ref=run.ref, keep=True, workers=workers
        )
        write_durably(path, json.dumps(plan, indent=1).encode())


def _finish(run: Run, marks: tuple[StageMark, ...] | None) -> None:
    """Writes the report, then says whether a gate refused."""
    publish = write_report(run, marks)
    put_run(run)
    failed = {
        name: verdict for name, verdict in publish.gates.items() if verdict.startswith("fail")
    }
    if failed:
        verdicts = "; ".join(f"{name}: {verdict}" for name, verdict in failed.items())
        raise GateError(
            f"snapshot {publish.details['snapshot']} is kept but ref {run.ref!r} was not moved: "
            f"{verdicts}. The report is {run.folder / 'report.html'}",
            json.loads((run.folder / "report.json").read_bytes()),
        )
