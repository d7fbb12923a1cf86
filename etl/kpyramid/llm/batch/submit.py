"""Submitting pending requests as batches, each once, after one probe of the endpoint."""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import openai

from kpyramid.errors import BudgetError, EndpointError
from kpyramid.keys import JsonValue
from kpyramid.llm.batch import jobs
from kpyramid.llm.batch.jobs import ENDPOINT, Asked, Desk, Record, write_line
from kpyramid.llm.caller import is_due
from kpyramid.llm.endpoint import HttpTransport, Raw, open_transport
from kpyramid.llm.ledger import Call, Ledger, batch_ticket, describe_call
from kpyramid.llm.task import Request, TransientError
from kpyramid.settings import LLMSettings
from kpyramid.storage.items import do_at_once, split_by_size

# Submitting what is pending as batches, each once, wherever a process dies. The order is:
# requests, then the intent, then the money in the books, then the file, then the
# batch. A batch is paid for when it is created, so before a creation that might be a second one
# the server's list is searched for the first.

ShapeRequest = Callable[[Request], Mapping[str, JsonValue]]
"""Makes the body of a request for the endpoint; see `HttpTransport.shape_request`."""

_UNSURE = frozenset({408, 409})
"""HTTP statuses below 500 after which the batch may exist."""


@dataclass(slots=True)
class Submission:
    """The outcome of a call: batches submitted or found, and numbers of requests.

    `waiting`: held back until another batch of the model makes room. `refused`: over budget.
    `unfinished`: in batches whose submission ended recently without confirmation.
    """

    batches: list[Record] = field(default_factory=list)
    pending: int = 0
    open: int = 0
    unfinished: int = 0
    answered: int = 0
    failed: int = 0
    waiting: int = 0
    refused: int = 0
    refusal: BudgetError | None = None

    @property
    def submitted(self) -> int:
        """Requests sent by this call."""
        return sum(record.requests for record in self.batches)


def submit(
    pending: Mapping[str, Request], desk: Desk, ledger: Ledger, run: str, shape: ShapeRequest
) -> Submission:
    """Sends the requests without answer or open batch, as far as the budget allows.

    `ledger`: that of the run. One machine at a time submits for a cache.

    Raises:
        ConflictError: another does.
        EndpointError: the server refused or failed; the next call goes on from there.
    """
    done = Submission(jobs.find_orphans(desk))
    for record in jobs.read_records(desk.blobs):
        if record.state == "intent" and _is_stale(record, desk):
            _drop(record, jobs.read_asked(desk.blobs, record), desk)
    # First the records, then the replies: what a batch that ends meanwhile asked is in one of them.
    records = jobs.read_records(desk.blobs)
    todo = _choose(pending, jobs.list_open_keys(desk.blobs, records), desk, done)
    fitting, done.refusal = ledger.count_fitting(_describe(todo, desk.settings.model))
    done.refused = len(todo) - fitting
    asked = [replace(item, body=shape(item.request)) for item in todo[:fitting]]
    number = records[-1].number if records else 0
    for part in _plan_parts(asked, records, run, desk, done):
        number += 1
        _reserve_and_send(_note_intent(part, number, run, desk), part, ledger, desk, done)
    records = jobs.read_records(desk.blobs)
    done.open = sum(r.requests for r in records if r.state in jobs.OPEN)
    done.unfinished = sum(r.requests for r in records if r.state == "intent")
    done.pending = done.waiting + done.refused
    return done


def _describe(asked: Iterable[Asked], model: str) -> list[Call]:
    """The ledger's descriptions of requests in a batch."""
    return [describe_call(item.request, item.key, model, batch=True) for item in asked]


def _choose(
    pending: Mapping[str, Request], taken: set[str], desk: Desk, done: Submission
) -> list[Asked]:
    """The requests without a reply or a final failure, in the given order."""
    keys = [key for key in pending if key not in taken]
    counts = do_at_once(lambda key: _count_attempts(key, desk), keys, desk.settings.concurrency)
    attempts = dict(zip(keys, counts, strict=True))
    done.answered = sum(count is None for count in attempts.values())
    done.failed = sum(count is not None and count < 0 for count in attempts.values())
    return [
        Asked(key, pending[key], {}, count)
        for key, count in attempts.items()
        if count is not None and count >= 0
    ]


def _count_attempts(key: str, desk: Desk) -> int | None:
    """The number of runs that tried a request; None if it has an answer, -1 if it is given up."""
    if desk.cache.read_reply(key) is not None:
        return None
    failure = desk.cache.read_failure(key)
    if failure is None:
        return 0
    return failure.attempts if is_due(failure) else -1


def _plan_parts(
    todo: Sequence[Asked], records: Iterable[Record], run: str, desk: Desk, done: Submission
) -> list[list[Asked]]:
    """The requests of each batch.

    Once the endpoint refused a batch of this run because too much was queued, batches have half of
    its requests, and each waits until nothing else of the model is queued.
    """
    ours = [r for r in records if r.model == desk.settings.model]
    refused = [r.requests for r in ours if r.state == "limited" and r.run == run]
    count = min([desk.limits.requests, *(max(1, number // 2) for number in refused)])
    lines = split_by_size(
        todo, lambda item: len(write_line(item)), count=count, weight=desk.limits.bytes
    )
    parts = [*lines]
    if refused:
        first = 0 if any(record.state in jobs.OPEN for record in ours) else 1
        done.waiting = sum(map(len, parts[first:]))
        return parts[:first]
    return parts


def _note_intent(part: Sequence[Asked], number: int, run: str, desk: Desk) -> Record:
    intent = jobs.name_intent((item.key for item in part), number)
    record = Record(
        number=number,
        id=intent,
        model=desk.settings.model,
        endpoint=jobs.name_endpoint(desk.settings),
        run=run,
        requests=len(part),
        source=jobs.keep_asked(desk.blobs, intent, part),
        state="intent",
        at=desk.now(),
        owner=uuid.uuid4().hex,
    )
    jobs.claim_record(desk.blobs, record)
    return record


def _is_stale(record: Record, desk: Desk) -> bool:
    """Whether a submitter is dead; its batch does not exist, or it would have been found.

    A batch at another endpoint cannot be looked up: there it has to time out.
    """
    limits = desk.limits
    elsewhere = record.endpoint != jobs.name_endpoint(desk.settings)
    stale = limits.window + limits.margin if elsewhere else limits.stale
    return desk.now() - record.at >= stale


def _drop(record: Record, asked: Sequence[Asked], desk: Desk) -> None:
    """Drops an intent without a batch, and releases its reservation in the ledger."""
    if ledger := desk.open_ledger(record.run):
        for call in _describe(asked, record.model):
            ledger.settle(batch_ticket(record.id, call), None, "dropped", billed=False)
    jobs.save_record(desk.blobs, replace(record, state="dropped"))
    jobs.drop_asked(desk.blobs, record)


def _reserve_and_send(
    record: Record, asked: Sequence[Asked], ledger: Ledger, desk: Desk, done: Submission
) -> None:
    try:
        ledger.reserve_batch(record.id, _describe(asked, record.model))
    except BudgetError as e:
        _drop(record, asked, desk)
        done.refused += len(asked)
        done.refusal = done.refusal or e
        return
    data = b"".join(map(write_line, asked))
    try:
        with jobs.name_faults(desk, "upload a batch's requests"):
            named = (f"kpyramid-{record.id}.jsonl", data)
            file = desk.client.files.create(file=named, purpose="batch").id
    except EndpointError:
        _drop(record, asked, desk)
        raise
    done.batches.append(_create(record, file, asked, desk))


def _create(record: Record, file: str, asked: Sequence[Asked], desk: Desk) -> Record:
    """Creates the batch; returns its record."""
    record = jobs.save_record(desk.blobs, replace(record, at=desk.now()))
    try:
        batch = desk.client.batches.create(
            input_file_id=file,
            endpoint=ENDPOINT,
            completion_window="24h",
            metadata={jobs.METADATA: record.id},
        )
        noted = replace(record, state="submitted", batch=batch.id, status=batch.status)
    except jobs.FAULTS as e:
        fault = jobs.describe_fault(desk, "create a batch", e)
        refused = isinstance(e, openai.APIStatusError) and is_refusal(e.status_code)
    else:
        return jobs.save_record(desk.blobs, replace(noted, submitted=desk.now()))
    if refused:
        _drop(record, asked, desk)
        raise fault
    orphans = [orphan for orphan in jobs.find_orphans(desk) if orphan.id == record.id]
    if not orphans:
        raise fault
    return orphans[0]


def is_refusal(status: int) -> bool:
    """Whether a status proves that nothing was created."""
    return 400 <= status < 500 and status not in _UNSURE


# The endpoint's dialect, probed before the first request is written into a file.


def prepare_shape(settings: LLMSettings, ledger: Ledger, path: Path) -> ShapeRequest:
    """The function that makes a request's body; its first call probes the endpoint, booked.

    `path`: the run's record of the probe, which is not repeated for the same endpoint.
    """

    def pay(probe: Request, call: Callable[[], Raw]) -> Raw:
        return ledger.pay(ledger.describe(probe, probe.task), probe, call)

    @cache
    def open_once() -> HttpTransport:
        try:
            return open_transport(settings, path, pay)
        except TransientError as e:
            raise EndpointError(
                f"{jobs.name_endpoint(settings)} fails: {e}. Nothing was submitted: run "
                "the same command later"
            ) from None

    return lambda request: open_once().shape_request(request)
