"""The DAGs of the declared corpora: which task when, after which, tried again how often."""

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from inspect import getdoc
from pathlib import Path
from typing import Any
from urllib.parse import quote

from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import (
    DAG,
    Asset,
    AssetAlias,
    AssetOrTimeSchedule,
    BaseOperatorLink,
    CronTriggerTimetable,
    ExceptionRetryPolicy,
    Param,
    RetryAction,
    RetryRule,
    TriggerRule,
    get_current_context,
    task,
)
from airflow.sdk.configuration import conf
from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference
from airflow.sdk.exceptions import (
    AirflowSensorTimeout,
    AirflowSkipException,
    DownstreamTasksSkipped,
)
from airflow.sdk.module_loading import import_string
from airflow.sdk.observability import stats
from croniter import croniter

from kpyramid.errors import FINAL, OvertakenError, SettingsError, name_extra
from kpyramid.pipeline.airflow.corpora import WAREHOUSE, Corpus, list_corpora, refuse_corpus

# Absolute or in a bucket, without `..` and control characters.
_PATH = r"^(/|(s3|gs|az)://)(?!(.*/)?\.\.(/|$))[^\x00-\x1f]+$"
_REF = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,59}$"
_START = datetime(2000, 1, 1, tzinfo=UTC)
"""Before any day that a backfill is for; no DAG catches up."""
_PATIENCE = timedelta(hours=20)
"""How long a person may take to approve; the next night waits, then the task fails."""
_MOST_WAITING = timedelta(days=3)
"""How long answers of batches may take: several rounds, each promised within a day."""
_MOST_LOOKS_LOST = 100
"""Tries of that waiting. A killed look costs one try and no request, as what is known lies in the
warehouse; with two, a third worker that goes away in three days would end the night."""

log = logging.getLogger(__name__)

_RETRY_POLICY = ExceptionRetryPolicy(
    rules=[
        RetryRule(
            exception=[*FINAL],
            action=RetryAction.FAIL,
            reason="the same again would fail the same way; the message says what to do",
        )
    ]
)

# A stage of the pipeline that is cut into shards, and what runs each stage when they are warmed.
_TASKS: Mapping[str, Sequence[str]] = {
    "resolve": ("extract", "resolve"),
    "induce": ("embed", "induce"),
    "complete": ("complete",),
    "condense": ("condense",),
}


def _night() -> Any:
    """What tasks do, loaded where one runs: Airflow reads the DAGs again and again."""
    from kpyramid.pipeline.airflow import night

    return night


def make_dags(folder: Path) -> dict[str, DAG]:
    """The DAGs of the corpora that a folder declares, by their ids.

    A corpus whose declaration is wrong keeps its nightly DAG, which fails and says what to mend.

    Raises:
        SettingsError: the warehouse is not the same place for all workers.
    """
    if not WAREHOUSE.startswith("/") and "://" not in WAREHOUSE:
        raise SettingsError(f"KPYRAMID_WAREHOUSE is {WAREHOUSE!r}: give an absolute path")
    place = Path(os.environ.get("KPYRAMID_CORPORA", folder))
    corpora = list_corpora(place)
    # In the log of a task that a worker does not find.
    log.info("%s declares %s", place, ", ".join(corpus.name for corpus in corpora) or "no corpus")
    dags = [dag for corpus in corpora for dag in _make_all(corpus)]
    refs = sorted({corpus.ref for corpus in corpora if not corpus.problem})
    return {dag.dag_id: dag for dag in [*dags, maintain_warehouse(refs)]}


def _make_all(corpus: Corpus) -> Iterator[DAG]:
    declared = corpus.declared
    schedules = [declared.schedule, *([declared.learn.schedule] if declared.learn else [])]
    wrong = [
        f"schedule {text!r} is no cron expression, say '0 2 * * *'"
        for text in schedules
        if not croniter.is_valid(text)
    ]
    makers: dict[str, Callable[[Corpus], object]] = {
        "deadline": _make_deadline,
        "failure": _make_notifier,
    }
    for name, try_to_make in makers.items():
        try:
            try_to_make(corpus)
        except (ImportError, AttributeError, TypeError) as e:
            wrong.append(f"{name}.notify: {e}")
    if wrong:  # Airflow would refuse the DAGs of all corpora, not only these
        corpus = refuse_corpus(corpus.file, wrong)
    yield build_pyramid(corpus)
    for wanted, make in _OTHERS.items():
        if getattr(corpus.declared, wanted):
            yield make(corpus)


def _make_deadline(corpus: Corpus) -> DeadlineAlert | None:
    """Airflow's alert of a night that is late.

    Raises:
        ImportError: there is no such notifier.
        AttributeError: it cannot be awaited, as Airflow's triggerer does.
    """
    declared = corpus.declared.deadline
    if declared is None:
        return None
    AsyncCallback.verify_callable(import_string(declared.notify))
    arguments = {"notify": declared.notify, "arguments": {**declared.arguments}}
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(minutes=declared.minutes),
        callback=AsyncCallback(tell_late, kwargs=arguments),
        name="late",
    )


def _make_notifier(corpus: Corpus) -> Callable[[Mapping[str, Any]], object] | None:
    """The notifier of a failed night.

    Raises:
        ImportError: there is no such notifier.
        TypeError: it does not take the arguments.
    """
    declared = corpus.declared.failure
    if declared is None:
        return None
    notifier: Callable[[Mapping[str, Any]], object] = import_string(declared.notify)(
        **declared.arguments
    )
    return notifier


async def tell_late(notify: str, arguments: Mapping[str, str], context: Mapping[str, Any]) -> None:
    """Has a notifier tell of a run that is late, unless a backfill waits for the days before it.

    Airflow queues all days of a backfill at once, so that the last would always be late.
    """
    if context["dag_run"]["run_type"] != "backfill":
        await import_string(notify)(**arguments, context=context)


def locate_asset(corpus: Corpus) -> Asset:
    """The asset that a ref is: each event says which snapshot it moved to."""
    uri = _name_uri(f"{WAREHOUSE}/refs/{corpus.ref}")
    owner = {"owner": corpus.declared.owner}
    return Asset(name=f"kpyramid/{corpus.ref}", uri=uri, group="kpyramid", extra=owner)


def _locate_source(corpus: Corpus) -> Asset:
    """The source of a corpus as an asset: the part of its path that is the same for all days."""
    return _locate(corpus, corpus.declared.source.partition("{{")[0] or ".")


def _locate(corpus: Corpus, path: str) -> Asset:
    """A declared path as an asset.

    Its name is its URI, so that another path is another asset: Airflow keeps a name to the URI
    that it first had, until no DAG has that any more, and fails tasks meanwhile.
    """
    place = _name_uri(corpus.place(path))
    owner = {"owner": corpus.declared.owner}
    return Asset(name=Asset(uri=place).uri, uri=place, group="places", extra=owner)


def _is_again() -> bool:
    """Whether an earlier try may have written, and ended before it reported that."""
    return int(get_current_context()["ti"].try_number) > 1


def _emit(alias: AssetAlias, asset: Asset, **extra: Any) -> None:
    """Emits the event of an asset that a task wrote: without it, none is emitted."""
    get_current_context()["outlet_events"][alias].add(asset, extra=extra)


def _name_uri(place: str) -> str:
    """A place as OpenLineage understands it: a folder, or a bucket."""
    return place if "://" in place else f"file://{quote(place)}"


def build_pyramid(corpus: Corpus) -> DAG:
    """Build the pyramid of a corpus and publish it.

    `plan` reads the corpus, cuts it into chunks, and does all stages whose results are stored: a
    night on which nothing changed goes from there to `publish`. `read` and `embed` are shards of
    what is new, when there is much of it. `resolve`, `induce`, `complete` and `condense` see all
    tables. `publish` has the gates judge the snapshot and moves the ref; it emits the asset's
    event when the ref moved.

    Where `batch` is declared, `batches` submits what the model is to be asked and collects it.
    Where `approve` is, `publish` moves the ref NAME-candidate, `approve` waits for a person, and
    `promote` moves the corpus's own ref.

    A backfill builds each day from the corpus of that day and moves a ref of that day, such as
    `main-2026-11-01`; the corpus's own ref stays. A ref never moves to an earlier run's snapshot.

    After a failure mend what the message names and clear the task: what is finished is kept. The
    log names the command that does the same by hand.
    """
    declared = corpus.declared
    pool = _name_pool(corpus)
    asset, alias = locate_asset(corpus), AssetAlias(f"kpyramid/{corpus.name}/built")

    @task(inlets=[_locate_source(corpus)], show_return_value_in_logs=False)
    def plan() -> list[str]:
        if corpus.problem:
            raise SettingsError(corpus.problem)
        night = _night()  # a worker that lacks what builds says so first of all
        context = get_current_context()
        known = {*context["dag"].params}
        unknown = sorted({*(context["dag_run"].conf or {})} - known)
        if unknown:  # Airflow takes them, and the run would build what nobody asked for
            raise SettingsError(
                f"unknown params {', '.join(unknown)}: there are {', '.join(sorted(known))}"
            )
        outcome = night.plan(corpus, context["dag_run"], context["params"], WAREHOUSE)
        _measure(corpus, outcome.counts)
        ti = context["ti"]
        for key in ("run", "ref"):
            ti.xcom_push(key=key, value=getattr(outcome, key))
        done = [name for name, stages in _TASKS.items() if {*stages} <= {*outcome.stored}]
        if done and not outcome.shards:
            ti.xcom_push(key="return_value", value=[])
            is_unchanged = declared.batch and len(done) == len(_TASKS)
            skipped = ["read", "embed", *done, *(["batches"] if is_unchanged else [])]
            raise DownstreamTasksSkipped(tasks=skipped)
        return list(outcome.shards)

    @task(map_index_template="shard {{ shard }}", trigger_rule=_GO_ON, **pool)
    def run_shard(stage: str, shard: str, run: str) -> None:
        _night().run_stages(corpus, [stage], run, WAREHOUSE, shard)

    def map_shards(name: str, stage: str) -> Any:
        shards = run_shard.override(task_id=name).partial(stage=stage, run=run)
        return shards.expand(shard=planned)

    @task(trigger_rule=_GO_ON, show_return_value_in_logs=False, **pool)
    def run_stages(stages: Sequence[str], run: str) -> dict[str, Any]:
        counts: dict[str, Any] = _night().run_stages(corpus, stages, run, WAREHOUSE)
        _measure(corpus, counts)
        return counts

    def publish_night(run: str, ref: str) -> dict[str, Any]:
        night: dict[str, Any] = _night().publish(corpus, run, ref, WAREHOUSE)
        _measure(corpus, {"publish": night})
        if night["moved"] and ref == corpus.ref:
            tell(night)
        if declared.approve and not night["waits"]:
            get_current_context()["ti"].xcom_push(key="return_value", value=night)
            raise DownstreamTasksSkipped(tasks=["approve", "promote"])
        return night

    def tell(night: Mapping[str, Any]) -> None:
        extra = {key: night[key] for key in ("snapshot", "ref", "run", "rows", "headline")}
        _emit(alias, asset, **extra)

    @task(outlets=[alias])
    def promote(night: dict[str, Any]) -> dict[str, Any]:
        moved: dict[str, Any] = _night().promote(corpus, night["run"], night["snapshot"], WAREHOUSE)
        tell({**night, **moved})
        return moved

    with _open_dag(
        "build",
        corpus,
        build_pyramid,
        schedule=CronTriggerTimetable(declared.schedule, timezone=declared.timezone),
        deadline=_make_deadline(corpus),
        params={
            "ref": Param(corpus.ref, "Name that moves to the snapshot", pattern=_REF),
            "source": Param(
                corpus.place(declared.source),
                "Folder or file of the corpus; {{ date }} is the day",
                pattern=_PATH,
            ),
            "allow_shrink": Param(
                False, "Publish a corpus that is empty or far smaller", type="boolean"
            ),
        },
    ) as dag:
        planned = plan()
        run = planned["run"]
        previous = map_shards("read", "extract")
        if declared.batch:

            @task.sensor(
                mode="reschedule",
                poke_interval=60 * declared.batch,
                timeout=_MOST_WAITING.total_seconds(),
                retries=_MOST_LOOKS_LOST,
            )
            def batches(run: str) -> bool:
                started = get_current_context()["dag_run"].start_date
                # Airflow's own clock starts anew with each try.
                if started and datetime.now(UTC) - started > _MOST_WAITING:
                    raise AirflowSensorTimeout(f"no answers in {_MOST_WAITING.days} days")
                return bool(_night().ask_in_batches(corpus, run, WAREHOUSE))

            batches(run) >> previous
        for name, stages in _TASKS.items():
            if name == "induce":
                previous = previous >> map_shards("embed", "embed")
            previous = previous >> run_stages.override(task_id=name)(stages, run)
        publish = ReportingOperator(
            task_id="publish",
            python_callable=publish_night,
            op_args=[run, planned["ref"]],
            outlets=[alias],
            trigger_rule=_GO_ON,
            show_return_value_in_logs=False,
        )
        previous >> publish
        if declared.approve:
            publish >> _ask_approval(corpus) >> promote(publish.output)
    return dag


def _name_pool(corpus: Corpus) -> dict[str, Any]:
    """The pool in which a task that may ask a model waits for its turn."""
    return {"pool": corpus.declared.pool} if corpus.declared.pool else {}


def _ask_approval(corpus: Corpus) -> Any:
    """The task that waits for a person; it fails when nobody answers for long."""
    from airflow.providers.standard.operators.hitl import ApprovalOperator

    pulled, hours = "{{ ti.xcom_pull(task_ids='publish')", corpus.declared.approve
    return ApprovalOperator(
        task_id="approve",
        subject=f"Move {corpus.ref} to {pulled}['snapshot'] }}}}?",
        body=f"{pulled}['headline'] }}}}. The task publish links to the report.",
        response_timeout=_PATIENCE if hours is True else timedelta(hours=hours),
        retries=0,
    )


def _measure(corpus: Corpus, by_stage: Mapping[str, Mapping[str, Any]]) -> None:
    """Sends the counts of stages to where Airflow's own metrics go, if anywhere."""
    for stage, counts in by_stage.items():
        name = f"{corpus.name}.{stage}"
        stats.gauge(f"kpyramid.seconds.{name}", counts["seconds"])
        # Not by reason: the gauge of one that no row has any more would stay as it was.
        stats.gauge(f"kpyramid.rejects.{name}", sum(counts["rejects"].values()))
        for table, count in counts["rows"].items():
            stats.gauge(f"kpyramid.rows.{name}.{table}", count)


_GO_ON = TriggerRule.NONE_FAILED
"""A task that had nothing to do was skipped."""


class ReportLink(BaseOperatorLink):
    """Link to the report of the night that a task published."""

    name = "Report"

    def get_link(self, operator: Any, *, ti_key: Any) -> str:
        """See `BaseOperatorLink.get_link`; asked where the task ran."""
        server = str(conf.get("api", "base_url", fallback="")).rstrip("/")
        return f"{server}/kpyramid/{ti_key.dag_id}/{quote(ti_key.run_id)}/report.html"


class ReportingOperator(PythonOperator):
    """Publishes a night, and links to its report, also when a gate refused."""

    operator_extra_links = (ReportLink(),)


def evaluate_pyramid(corpus: Corpus) -> DAG:
    """Ask each new snapshot questions whose answers are known; its page lies in the folder `to`.

    The snapshot is the one that the ref is at when the task runs, whichever event started it. For
    a ref that was moved by hand, which is no event, the task looks once a day whether there is a
    page. One that is there is written again when this DAG is started by hand, or its task cleared.
    """
    wanted, alias = corpus.declared.evaluate, AssetAlias(f"kpyramid/{corpus.name}/evaluated")
    assert wanted is not None

    @task(inlets=[locate_asset(corpus)], outlets=[alias], **_name_pool(corpus))
    def evaluate() -> dict[str, Any]:
        _require_published(corpus.ref)
        outcome: dict[str, Any] = _night().evaluate(corpus, WAREHOUSE, looks=_is_look())
        if outcome["asked"]:
            _emit(alias, _locate(corpus, wanted.to), page=outcome["page"])
        return outcome

    with _follow("evaluate", corpus, evaluate_pyramid, "0 5 * * *") as dag:
        evaluate()
    return dag


def export_pyramid(corpus: Corpus) -> DAG:
    """Export each new snapshot to where serving teams read it, a task for each declared form.

    The snapshot is the one that the ref is at when the task runs, whichever event started it.
    `newest.json` in the folder names it. A ref that was moved by hand (`kpyramid rollback`,
    `promote`, `erase`) is no event: every quarter of an hour the tasks look whether `newest.json`
    is right, and do nothing if it is. Exports but the newest few are removed.

    An export that trying again cannot mend fails once: looks skip it and say why, as does
    `kpyramid doctor`. Mend what the message names, then clear the task or start the DAG.
    """
    alias = AssetAlias(f"kpyramid/{corpus.name}/exported")

    @task(inlets=[locate_asset(corpus)], outlets=[alias])
    def export(number: int) -> dict[str, Any]:
        _require_published(corpus.ref)
        state: dict[str, Any] = _night().export(corpus, number, WAREHOUSE, looks=_is_look())
        if "fault" in state:
            raise AirflowSkipException(
                f"{state['path']} was given up: {state['fault']}. When that is mended, start this "
                "DAG, or clear the task that failed"
            )
        if state["copied"] or state["named"] or _is_again():
            to = corpus.declared.exports[number].to
            _emit(alias, _locate(corpus, to), snapshot=state["snapshot"], path=state["path"])
        return state

    with _follow("export", corpus, export_pyramid, "*/15 * * * *") as dag:
        export.expand(number=list(range(len(corpus.declared.exports))))
    return dag


def _follow(kind: str, corpus: Corpus, what: Callable[..., DAG], looks: str) -> DAG:
    """A DAG that runs when the ref moved, and on a schedule: Airflow sees no move by hand."""
    timetable = CronTriggerTimetable(looks, timezone="UTC")
    schedule = AssetOrTimeSchedule(timetable=timetable, assets=[locate_asset(corpus)])
    return _open_dag(kind, corpus, what, schedule=schedule)


def _is_look() -> bool:
    """Whether the schedule started this try: nobody started the DAG or cleared the task."""
    context = get_current_context()
    return bool(context["dag_run"].run_type != "manual" and context["ti"].try_number == 1)


def _require_published(ref: str) -> None:
    if not _night().is_published(ref, WAREHOUSE):
        raise AirflowSkipException(f"nothing is published as {ref} yet")


def learn_pyramid(corpus: Corpus) -> DAG:
    """Make documents of answered questions, which the next night reads; docs/learn.md has more."""
    declared = corpus.declared
    assert declared.learn is not None
    feedback, schedule = corpus.place(declared.learn.feedback), declared.learn.schedule
    alias = AssetAlias(f"kpyramid/{corpus.name}/learnt")

    @task(inlets=[_locate(corpus, declared.learn.feedback)], outlets=[alias])
    def learn() -> dict[str, Any]:
        corpus_of = "--corpus", corpus.place(declared.source), "--ref", corpus.ref
        outcome = _night().run_command("learn", feedback, *corpus_of, "--warehouse", WAREHOUSE)
        if outcome["written"] or _is_again():
            _emit(alias, _locate_source(corpus), rows=outcome["rows"])
        return {key: outcome[key] for key in ("rows", "written", "counts")}

    timetable = CronTriggerTimetable(schedule, timezone=declared.timezone)
    with _open_dag("learn", corpus, learn_pyramid, schedule=timetable) as dag:
        learn()
    return dag


_OTHERS: Mapping[str, Callable[[Corpus], DAG]] = {
    "evaluate": evaluate_pyramid,
    "exports": export_pyramid,
    "learn": learn_pyramid,
}
"""The DAGs that a corpus has when it declares them."""


def maintain_warehouse(refs: Sequence[str]) -> DAG:
    """Check every byte of what the refs are at, then move to trash what nothing needs any more.

    When a snapshot is damaged nothing is moved. docs/operate.md says what stays.
    """

    @task(map_index_template="{{ ref }}")
    def verify(ref: str) -> dict[str, Any]:
        _require_published(ref)
        return dict(_night().run_command("verify", ref, "--warehouse", WAREHOUSE))

    @task(trigger_rule=_GO_ON)
    def gc() -> dict[str, Any]:
        params = get_current_context()["params"]
        policy = ["--keep", str(params["keep"]), "--older-than", params["older_than"]]
        policy += ["--backfills", params["backfills"]] if params["backfills"] else []
        outcome = _night().run_command("gc", "--warehouse", WAREHOUSE, *policy)
        return {key: outcome[key] for key in ("bytes_moved", "bytes_deleted")}

    with DAG(
        "maintain_warehouse",
        schedule=CronTriggerTimetable("0 6 * * 0", timezone="UTC"),
        params={
            "keep": Param(7, "Snapshots of each ref that stay", type="integer", minimum=1),
            "older_than": Param(
                "30d", "Only what nothing needed so long", pattern=r"^\d{1,4}[dh]$"
            ),
            "backfills": Param(
                "",
                "Retire backfilled days that did not move so long",
                pattern=r"^(\d{1,4}[dh])?$",
            ),
        },
        doc_md=getdoc(maintain_warehouse),
        default_args={**_TASK_DEFAULTS, "owner": "kpyramid"},
        **_SHARED,
    ) as dag:
        verify.expand(ref=list(refs)) >> gc()
    return dag


_SHARED: Mapping[str, Any] = {
    "start_date": _START,
    "catchup": False,
    "max_active_runs": 1,
    "tags": ["kpyramid"],
}


def _tell_failure(context: Mapping[str, Any]) -> None:
    """Ends the log of a failed try with one line: what, where, and how to go on."""
    error, ti = context.get("exception"), context["ti"]
    shown = name_extra(error) if isinstance(error, ModuleNotFoundError) else error
    what = " ".join(f"{type(error).__name__}: {shown}".split())
    how = "mend it, then clear this task"
    if ti.state == "up_for_retry":
        how = "it is tried again"
    elif isinstance(error, OvertakenError):
        how = "cleared, this task would fail again"
    lines = [f"{ti.task_id} of {ti.run_id}: {what}", how, *getattr(error, "__notes__", [])]
    log.info("::endgroup::")  # Airflow folds away what runs after a task
    log.error("%s", "; ".join(lines))


_TASK_DEFAULTS: Mapping[str, Any] = {
    "retries": 2,
    "retry_policy": _RETRY_POLICY,
    "on_failure_callback": _tell_failure,
    "on_retry_callback": _tell_failure,
}


def _open_dag(kind: str, corpus: Corpus, what: Callable[..., DAG], **special: Any) -> DAG:
    declared = asdict(corpus.declared)
    table = "".join(f"\n- {key}: `{value}`" for key, value in declared.items() if value)
    doc = f"{getdoc(what)}\n\nDeclared in `{corpus.file.name}`:\n{table}\n"
    timeout = corpus.declared.execution_timeout
    defaults = {
        **_TASK_DEFAULTS,
        "owner": corpus.declared.owner,
        "execution_timeout": timedelta(minutes=timeout) if timeout else None,
    }
    if since := corpus.declared.catchup if kind == "build" else None:
        start = datetime(since.year, since.month, since.day, tzinfo=UTC)
        special |= {"catchup": True, "start_date": start}
    access = {role: {"can_read", "can_edit"} for role in corpus.declared.access}
    return DAG(
        f"{kind}_pyramid_{corpus.name}",
        doc_md=f"**{corpus.problem}**\n\n{doc}" if corpus.problem else doc,
        default_args=defaults,
        on_failure_callback=_make_notifier(corpus),
        access_control=access or None,
        **{**_SHARED, **special},
    )
