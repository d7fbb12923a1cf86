"""Build the knowledge pyramid every night: one task per stage, in the order the text flows.

The corpus folder becomes a snapshot in the warehouse, and the ref moves to it when the quality
gates pass. Every task does what `kpyramid stage NAME` does; tables pass through the warehouse,
XCom carries names and counts only. A night on which nothing changed costs seconds: results are
kept under the hash of all that shaped them.

Corpus, warehouse, ref and the rest are parameters of a run, so that a backfill or a trial needs no
change here. The nightly run's come from the DAG processor's environment: `KPYRAMID_CORPUS`,
`KPYRAMID_WAREHOUSE`, `KPYRAMID_REF`, `KPYRAMID_SETTINGS`. Every worker must see the same folders
under the same paths.

A ref moves forward only, by the run's logical date: a backfill that finishes out of order keeps its
snapshot, fails at `publish` and leaves the newer one where it is. Wrong settings, unusable input,
a refused gate and a lost race fail at once; everything else is tried again twice.
"""

import hashlib
import os
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from airflow.sdk import (
    ExceptionRetryPolicy,
    Param,
    RetryAction,
    RetryRule,
    dag,
    get_current_context,
    task,
)

from kpyramid.errors import BudgetError, ConflictError, GateError, InputError, SettingsError
from kpyramid.pipeline.stage import PIPELINE

# Absolute, without `..` and control characters. Relative paths differ from worker to worker.
PATH = r"^/(?!(.*/)?\.\.(/|$))[^\x00-\x1f]+$"
REF = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"

PARAMS = {
    "corpus": Param(
        os.environ.get("KPYRAMID_CORPUS", "/corpus"),
        "Folder with the documents",
        type="string",
        pattern=PATH,
    ),
    "warehouse": Param(
        os.environ.get("KPYRAMID_WAREHOUSE", "/warehouse"),
        "Folder that keeps caches, runs, snapshots and refs",
        type="string",
        pattern=PATH,
    ),
    "ref": Param(
        os.environ.get("KPYRAMID_REF", "main"),
        "Name that moves to the new snapshot",
        type="string",
        pattern=REF,
    ),
    "settings": Param(
        os.environ.get("KPYRAMID_SETTINGS"),
        "Settings file (TOML), or nothing for the defaults",
        type=["null", "string"],
        pattern=PATH,
    ),
    "allow_shrink": Param(
        False, "Publish a corpus that is empty or far smaller than the last one", type="boolean"
    ),
    "workers": Param(2, "Processes that a task may use", type="integer", minimum=1, maximum=256),
}

RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(
            exception=[SettingsError, InputError, GateError, ConflictError, BudgetError],
            action=RetryAction.FAIL,
            reason="the same again would fail the same way; the message says what to do",
        )
    ]
)


class DagRun(Protocol):
    """What a run is named and ordered by."""

    dag_id: str
    run_id: str
    logical_date: datetime | None
    run_after: datetime


def key_run(dag_run: DagRun) -> tuple[str, str]:
    """The kpyramid run's name and the order its ref moves by; the same for all tasks and retries.

    A run that an asset or a person started may have no logical date; `run_after` is always there.
    Airflow's run id may hold any character, so the name carries its hash.
    """
    moment = (dag_run.logical_date or dag_run.run_after).astimezone(UTC)
    digest = hashlib.sha256(f"{dag_run.dag_id}\n{dag_run.run_id}".encode()).hexdigest()
    name = f"airflow-{moment:%Y%m%dT%H%M%SZ}-{digest[:12]}"
    return name, moment.isoformat(timespec="microseconds")


@task
def run_stage(stage: str) -> dict[str, Any]:
    """Runs one stage and returns its counts."""
    from kpyramid.pipeline.build import call_stage  # here, not above: parsing must stay cheap

    context = get_current_context()
    params = context["params"]
    name, order = key_run(context["dag_run"])
    mark = call_stage(
        stage,
        run=name,
        warehouse=params["warehouse"],
        corpus=params["corpus"],
        settings_file=params["settings"],
        ref=params["ref"],
        order=order,
        allow_shrink=params["allow_shrink"],
        workers=params["workers"],
    )
    return {
        "run": name,
        "rows": dict(mark.rows),
        "rejects": dict(mark.rejects),
        "recomputed": mark.recomputed,
        **mark.details,
    }


@dag(
    dag_id="build_pyramid",
    schedule="0 2 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    params=PARAMS,
    default_args={
        "retries": 2,
        "retry_delay": timedelta(minutes=5),
        "retry_policy": RETRY_POLICY,
    },
    tags=["kpyramid"],
    doc_md=__doc__,
)
def build_pyramid() -> None:
    """Chains the stages of `kpyramid.pipeline.stage`."""
    # The stages form a line, although some could run side by side: each finds the marks of those
    # before it, and the long ones use all their workers anyway.
    previous = None
    for stage in PIPELINE:
        current = run_stage.override(task_id=stage.name)(stage.name)
        if previous is not None:
            previous >> current
        previous = current


build_pyramid()
