"""`kpyramid batch`: a model asked through the Batch API, at half price and within a day."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from kpyramid.cli.console import show_progress
from kpyramid.cli.options import Corpus, Ref
from kpyramid.cli.render import Result, name_values
from kpyramid.errors import EndpointError, RefusedError, SettingsError

if TYPE_CHECKING:
    from kpyramid.llm.batch.jobs import Desk, Record
    from kpyramid.llm.ledger import Ledger
    from kpyramid.settings import Settings
    from kpyramid.storage.layout import Warehouse
    from kpyramid.storage.runs import Run

_AGAIN = 3600
"""Seconds to the next call of collect: batches are promised within a day, most end in hours."""


def submit(
    corpus: Corpus,
    /,
    *,
    place: "Warehouse",
    ref: Ref = "main",
    loaded: "Settings",
    workers: int,
    quiet: bool,
) -> Result:
    """Send the requests that a build would make next and that nobody has sent yet.

    Requests that need other replies are sent by later calls, once those replies are collected.
    Requests are sent as far as the budget allows, with open batches at their highest cost. `Next`
    names the command that follows: `collect`, `submit`, or `build` when all is answered.
    """
    from kpyramid.llm.batch.jobs import LIMITS
    from kpyramid.llm.batch.submit import prepare_shape
    from kpyramid.llm.batch.submit import submit as send
    from kpyramid.pipeline.models import PROBE, hold_asking, open_batch_run, open_ledger, put_run
    from kpyramid.pipeline.runner import collect_pending

    _require_batches(loaded)
    run = open_batch_run(corpus, place, loaded, ref)
    with show_progress(quiet=quiet) as progress:
        pending = collect_pending(run, workers=workers, progress=progress)
    desk = _open_desk(place, loaded, {})
    ledger = open_ledger(place, loaded, run.folder, ref)
    shape = prepare_shape(loaded.llm, ledger, run.folder / PROBE)
    with hold_asking(place, loaded):
        done = send(pending, desk, ledger, run.name, shape)
    put_run(run)
    is_over = not (done.submitted or done.open or done.pending or done.answered)
    next_command = "build" if is_over else "collect" if done.open else "submit"
    words = "all is answered: run" if is_over else "next:"
    notes = [f"{words} `kpyramid {'' if is_over else 'batch '}{next_command}`"]
    if done.unfinished:
        notes.append(
            f"{done.unfinished} were in submission when their process ended; a call "
            f"{LIMITS.stale / 60:.0f} minutes after it takes over"
        )
    if done.failed:
        notes.append(f"{done.failed} failed for good: see `kpyramid rejects --requests`")
    names = ("submitted", "pending", "open", "unfinished", "waiting", "failed")
    return name_values(
        run=run.name,
        batches=_describe(done.batches),
        **{name: getattr(done, name) for name in names},
        over_budget=done.refused,
        answered=_count_answers(desk, run.name),
        next=next_command,
        notes=notes,
        fault=done.refusal,
    )


def collect(*, place: "Warehouse", loaded: "Settings", status: bool = False) -> Result:
    """Store the replies of batches that have ended.

    A batch that is not done is not an error: call again later.

    `status`: contact no endpoint; list all batches as of the last call.
    """
    from kpyramid.llm.batch.collect import collect as fetch
    from kpyramid.llm.batch.jobs import OPEN, read_records
    from kpyramid.pipeline.models import open_replies, put_run

    if status:
        records = read_records(open_replies(place, loaded, read_only=True))
        still = sum(record.requests for record in records if record.state in OPEN)
        return name_values(batches=_describe(records), open=still)
    _require_batches(loaded)
    used: dict[str, Run] = {}
    done = fetch(_open_desk(place, loaded, used))
    for run in used.values():
        put_run(run)
    next_call = (
        f"not all batches are done: call again in {_AGAIN // 60} minutes or so"
        if done.open
        else "no batch is open: `kpyramid batch submit` says whether anything is left"
    )
    names = ("replies", "failures", "again", "tokens", "cost", "booked", "problems")
    error = RefusedError if done.refused else EndpointError
    return name_values(
        batches=_describe(done.batches),
        open=done.open,
        **{name: getattr(done, name) for name in names},
        call_again_in=_AGAIN if done.open else None,
        notes=[*done.notes, next_call],
        fault=error("\n".join(done.problems)) if done.problems else None,
    )


def _require_batches(loaded: "Settings") -> None:
    """Passes when the settings have an endpoint for batches."""
    if not loaded.llm.is_served:
        raise SettingsError(
            f'batches need llm.provider = "openai", not "{loaded.llm.provider}": set it with '
            "llm.model, and say in [cascade], [induce], [complete] and [condense] what a model does"
        )
    if not loaded.asks_model:
        raise SettingsError(
            'no step of [cascade] says "llm", so there is nothing to ask: set paraphrase, '
            "entities, relations or disambiguation, or induce.mode, complete.naming or "
            "condense.mode, or just run `kpyramid build`"
        )


def _open_desk(place: "Warehouse", settings: "Settings", used: "dict[str, Run]") -> "Desk":
    """The resources of a warehouse's batches; `used` collects the runs of opened ledgers."""
    from kpyramid.llm.batch.jobs import Desk
    from kpyramid.llm.cache import ReplyCache
    from kpyramid.llm.endpoint import open_connection
    from kpyramid.pipeline.models import open_ledger, open_replies
    from kpyramid.storage.runs import open_run

    def find_ledger(name: str) -> "Ledger | None":
        if place.store.read(f"runs/{name}/run.json") is None:
            return None
        used[name] = run = open_run(place, name)
        return open_ledger(place, settings, run.folder, run.ref)

    blobs, client = open_replies(place, settings), open_connection(settings.llm).client
    return Desk(client, ReplyCache(blobs), blobs, settings.llm, find_ledger)


def _count_answers(desk: "Desk", run: str) -> int:
    """The number of requests that a run's batches have answered."""
    from kpyramid.llm.batch.jobs import read_records

    counts = [record.counts for record in read_records(desk.blobs) if record.run == run]
    return sum(count["success"] for count in counts if count)


def _describe(records: "Sequence[Record]") -> list[dict[str, Any]]:
    names = ("run", "model", "requests", "state", "status", "errors")
    return [
        {
            "id": record.batch,
            "intent": record.id,
            **{name: getattr(record, name) for name in names},
            "submitted": record.submitted
            and datetime.fromtimestamp(record.submitted, UTC).isoformat(timespec="seconds"),
            "counts": dict(record.counts or {}),
        }
        for record in records
    ]
