"""`kpyramid batch`: a model asked through the Batch API, at half price and within a day."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import typer

from kpyramid.cli.options import (
    WORKERS,
    CorpusArgument,
    QuietOption,
    RefOption,
    WorkersOption,
    command,
    print_found,
)
from kpyramid.errors import EndpointError, RefusedError, SettingsError

if TYPE_CHECKING:
    from kpyramid.keys import JsonValue
    from kpyramid.llm.batch.jobs import Record
    from kpyramid.llm.batch.submit import Desk
    from kpyramid.llm.ledger import Ledger
    from kpyramid.settings import Settings
    from kpyramid.storage.layout import Warehouse
    from kpyramid.storage.runs import Run

app = typer.Typer(
    name="batch",
    no_args_is_help=True,
    help="Ask a model through the Batch API: half the price, answers within a day.\n\n"
    "Call submit and collect in turn, as often as you like and from any machine that shares the "
    "cache (setting llm.cache), until submit says that all is answered; then build. Each request "
    "is in one batch at most, and what was paid for is kept.",
)

_AGAIN = 3600
"""Seconds to the next call of collect: batches are promised within a day, most end in hours."""


@command(app)
def submit(
    corpus: CorpusArgument,
    place: "Warehouse",
    ref: RefOption = "main",
    *,
    loaded: "Settings",
    workers: WorkersOption = WORKERS,
    quiet: QuietOption = False,
) -> None:
    """Send what a build would ask next and nobody has asked yet.

    Steps that need the answers of others are sent by later calls, when those are collected. A
    budget lets through what fits, open batches counted at their highest.
    """
    from kpyramid.cli.console import show_progress
    from kpyramid.llm.batch import submit
    from kpyramid.llm.batch.jobs import LIMITS
    from kpyramid.pipeline.models import hold_asking, open_batch_run, put_run
    from kpyramid.pipeline.runner import collect_pending

    _require_batches(loaded)
    run = open_batch_run(corpus, place, loaded, ref)
    with show_progress(quiet=quiet) as progress:
        pending = collect_pending(run, workers=workers, progress=progress)
    desk = _open_desk(run)
    with hold_asking(run.warehouse, loaded):
        done = submit.submit(pending, desk)
    put_run(run)
    answered = _count_answers(desk, run.name)
    is_over = not (done.submitted or done.open or done.pending or done.answered)
    next_command = "build" if is_over else "batch collect" if done.open else "batch submit"
    found = {
        "run": run.name,
        "batches": _describe(done.batches),
        "submitted": done.submitted,
        "pending": done.pending,
        "open": done.open,
        "unfinished": done.unfinished,
        "waiting": done.waiting,
        "over_budget": done.refused,
        "answered": answered,
        "failed": done.failed,
        "next": next_command.removeprefix("batch "),
    }
    lines = [
        *_name_batches(done.batches),
        f"{done.submitted} requests submitted, {done.open} open, {done.pending} pending, "
        f"{answered} answered",
    ]
    if done.waiting:
        lines.append(f"{done.waiting} wait until the endpoint has room for them")
    if done.unfinished:
        lines.append(
            f"{done.unfinished} are being submitted by another process; should it have "
            f"died, a call {LIMITS.stale / 60:.0f} minutes after it takes over"
        )
    if done.failed:
        lines.append(f"{done.failed} failed for good: see `kpyramid rejects requests`")
    lines.append(f"{'all is answered: run' if is_over else 'next:'} `kpyramid {next_command}`")
    print_found(found, lines)
    if done.refusal is not None:
        raise done.refusal


@command(app)
def collect(
    place: "Warehouse",
    loaded: "Settings",
) -> None:
    """Keep what the batches gave that have ended since.

    Batches that are not done are no error: call again later.
    """
    from kpyramid.llm.batch import collect
    from kpyramid.llm.cache import ReplyCache
    from kpyramid.llm.endpoint import open_connection
    from kpyramid.pipeline.models import open_replies, put_run

    _require_batches(loaded)
    used: dict[str, Run] = {}
    blobs = open_replies(place, loaded)
    done = collect.collect(
        collect.Till(
            open_connection(loaded.llm).client,
            ReplyCache(blobs),
            blobs,
            partial(_find_ledger, place, loaded, used=used),
            loaded.llm,
        )
    )
    for run in used.values():
        put_run(run)
    again = _AGAIN if done.open else None
    found = {**asdict(done), "batches": _describe(done.batches), "call_again_in": again}
    cost = "" if done.cost is None else f", {done.cost:.4f} dollars"
    lines = [
        *_name_batches(done.batches),
        f"{done.replies} replies ({done.tokens} tokens{cost}), {done.failures} failures, "
        f"{done.again} to be asked again, {done.open} open",
        *done.notes,
        f"not all are done: call again in {_AGAIN // 60} minutes or so"
        if done.open
        else "no batch is open: `kpyramid batch submit` says whether anything is left",
    ]
    print_found(found, lines)
    if done.problems:
        raise (RefusedError if done.refused else EndpointError)("\n".join(done.problems))


@command(app)
def status(
    place: "Warehouse",
    loaded: "Settings",
) -> None:
    """List all batches as the last call left them; nothing is asked."""
    from kpyramid.llm.batch.jobs import OPEN, read_records
    from kpyramid.pipeline.models import open_replies

    records = read_records(open_replies(place, loaded, read_only=True))
    still = sum(record.requests for record in records if record.state in OPEN)
    lines = [*_name_batches(records), f"{len(records)} batches, {still} requests open"]
    print_found({"batches": _describe(records), "open": still}, lines)


def _require_batches(loaded: "Settings") -> None:
    """That there is something in the settings that batches are for."""
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


def _open_desk(run: "Run") -> "Desk":
    from kpyramid.llm.batch.submit import Desk, prepare_shape
    from kpyramid.llm.cache import ReplyCache
    from kpyramid.llm.endpoint import open_connection
    from kpyramid.pipeline.models import PROBE, open_ledger, open_replies

    place, llm = (run.warehouse, run.settings), run.settings.llm
    blobs, ledger = open_replies(*place), open_ledger(*place, run.folder, run.ref)
    shape = prepare_shape(llm, ledger, run.folder / PROBE)
    books = (ReplyCache(blobs), blobs, ledger)
    client = open_connection(llm).client
    return Desk(client, shape, *books, run.name, llm, partial(_find_ledger, *place))


def _find_ledger(
    place: "Warehouse", settings: "Settings", run: str, used: "dict[str, Run] | None" = None
) -> "Ledger | None":
    """The books of a run, if it is one of this warehouse; `used` notes whose were opened."""
    from kpyramid.pipeline.models import open_ledger
    from kpyramid.storage.runs import open_run

    if place.store.read(f"runs/{run}/run.json") is None:
        return None
    found = open_run(place, run)
    if used is not None:
        used[run] = found
    return open_ledger(place, settings, found.folder, found.ref)


def _count_answers(desk: "Desk", run: str) -> int:
    """The requests that batches of a run have answered so far."""
    from kpyramid.llm.batch.jobs import read_records

    counts = [record.counts for record in read_records(desk.blobs) if record.run == run]
    return sum(count["success"] for count in counts if count)


def _describe(records: "Sequence[Record]") -> "list[JsonValue]":
    return [
        {
            "id": record.batch,
            "intent": record.id,
            "run": record.run,
            "model": record.model,
            "requests": record.requests,
            "state": record.state,
            "status": record.status,
            "submitted": datetime.fromtimestamp(record.submitted, UTC).isoformat(timespec="seconds")
            if record.submitted
            else None,
            "counts": dict(record.counts or {}),
            "errors": list(record.errors),
        }
        for record in records
    ]


def _name_batches(records: "Sequence[Record]") -> Iterator[str]:
    for record in records:
        counts = ", ".join(f"{n} {name}" for name, n in (record.counts or {}).items() if n)
        name = record.batch or f"intent {record.id}"
        yield f"{name}: {record.requests} requests, {record.state}" + (counts and f": {counts}")
