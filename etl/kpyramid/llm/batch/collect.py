"""Collecting the results of batches: every paid reply is stored, every result counted once.

The order is: replies, then their cost in the run's ledger, then the record. A process that finds a
step undone repeats it: replies are written once, and ledgers know their entries.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import openai
from openai.types import Batch

from kpyramid.errors import EndpointError, IntegrityError, RefusedError
from kpyramid.keys import JsonValue
from kpyramid.llm.batch import jobs
from kpyramid.llm.batch.jobs import Asked, Desk, Outcome, Record, Result, Results, read_results
from kpyramid.llm.endpoint import find_place, raise_complaint, read_complaint
from kpyramid.llm.ledger import batch_ticket, cost_of, describe_call
from kpyramid.llm.task import (
    Failure,
    FailureKind,
    ReplyError,
    TransientError,
    has_usage,
    read_usage,
)
from kpyramid.settings import LLMSettings
from kpyramid.storage.items import do_at_once

log = logging.getLogger(__name__)

_ENDED = frozenset({"completed", "failed", "expired", "cancelled"})
_NOBODY = frozenset({401, 403})
"""HTTP statuses that every batch would get."""
_SHOWN_ERRORS = 5


@dataclass(frozen=True, slots=True)
class _Remote:
    """A batch at the server and, once it has ended, its files."""

    batch: Batch
    output: bytes | None = None
    error: bytes | None = None


@dataclass(slots=True)
class Collection:
    """The outcome of a call: the batches that ended, and numbers of requests.

    `open`: in batches that have not ended. `again`: pending again, some because their batch is late
    or unknown to the server. `cost` is None where a price is missing. `notes`: what is being waited
    for; `problems`: what needs attention. `refused`: one of them is a `RefusedError`.
    """

    batches: list[Record] = field(default_factory=list)
    replies: int = 0
    failures: int = 0
    again: int = 0
    open: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    booked: int = 0
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    refused: bool = False


def collect(desk: Desk) -> Collection:
    """Stores the results of the batches that have ended; faults are added to the problems.

    Raises:
        EndpointError: a batch whose id is not known cannot be looked for, or the store is down.
    """
    done = Collection()
    jobs.find_orphans(desk)
    for record in jobs.read_records(desk.blobs):
        if record.state == "submitted" and not _look(record, desk, done):
            break
    done.open = sum(r.requests for r in jobs.read_records(desk.blobs) if r.state in jobs.OPEN)
    return done


def _look(record: Record, desk: Desk, done: Collection) -> bool:
    """Advances a batch as far as the server allows; False if the server answers no request."""
    window = desk.limits.window + desk.limits.margin
    late = desk.now() - (record.submitted or record.at) > window
    if record.endpoint != jobs.name_endpoint(desk.settings):
        if late:
            _close(record, None, desk, done, f"is late, and at {record.endpoint}")
        return True
    try:
        remote = _fetch(record, desk)
    except jobs.FAULTS as e:
        act = f"look at batch {record.batch}"
        fault = jobs.describe_fault(desk, act, e)
        done.problems.append(str(fault))
        done.refused |= isinstance(fault, RefusedError)
        return isinstance(e, openai.APIStatusError) and e.status_code not in _NOBODY
    if remote is not None and remote.batch.status in _ENDED:
        _close(record, remote, desk, done)
    else:
        _wait(record, remote, late, desk, done)
    return True


def _wait(record: Record, remote: _Remote | None, late: bool, desk: Desk, done: Collection) -> None:
    """Leaves a running batch open, unless it is unknown or late for too long."""
    status = remote.batch.status if remote else record.status
    if remote is not None and not late:
        if status != record.status or record.doubt is not None:
            jobs.save_record(desk.blobs, replace(record, status=status, doubt=None))
        return
    if remote is not None:
        _cancel(record, desk)
    if _is_long_missing(replace(record, status=status), desk):
        late_why = f"is still {status} long after its window"
        _close(record, None, desk, done, late_why if remote else "is unknown to the server")


def _fetch(record: Record, desk: Desk) -> _Remote | None:
    """The batch at the server, with its files if it has ended; None if it is unknown there."""
    client = desk.client.with_options(max_retries=2)

    def read_file(file_id: str | None) -> bytes | None:
        try:
            return client.files.content(file_id).content if file_id else None
        except openai.NotFoundError:
            return None

    try:
        batch = client.batches.retrieve(str(record.batch))
    except openai.NotFoundError:
        return None
    if batch.status not in _ENDED:
        return _Remote(batch)
    return _Remote(batch, read_file(batch.output_file_id), read_file(batch.error_file_id))


def _is_long_missing(record: Record, desk: Desk) -> bool:
    """Whether something has been missing for long enough; records since when."""
    if record.doubt is None:
        record = jobs.save_record(desk.blobs, replace(record, doubt=desk.now()))
    return desk.now() - (record.doubt or 0.0) >= desk.limits.doubt


def _cancel(record: Record, desk: Desk) -> None:
    """Cancels a batch, so that repeated requests are not paid twice."""
    try:
        desk.client.batches.cancel(str(record.batch))
    except jobs.FAULTS as e:
        log.warning("%s", jobs.describe_fault(desk, f"cancel {record.batch}", e))


def _close(
    record: Record, remote: _Remote | None, desk: Desk, done: Collection, why: str = ""
) -> None:
    """Stores the results of an ended batch; one given up, for the reason `why`, has none."""
    try:
        asked = jobs.read_asked(desk.blobs, record)
    except IntegrityError:
        present = jobs.read_record(desk.blobs, record.number)
        if present is not None and present.state == record.state:
            raise
        return  # another process closed it meanwhile
    closed, results = _reconcile(record, remote, asked)
    if why:
        done.problems.append(
            f"batch {record.batch} {why}: its {record.requests} requests are pending again"
        )
    unseen = _count_unseen(closed, remote)
    if unseen and not _is_long_missing(record, desk):
        done.notes.append(
            f"batch {record.batch} says that {unseen} more requests are done than its files hold: "
            "it stays open for a while"
        )
        return
    failed = do_at_once(
        lambda item: _keep(item, results.by_key[item.key], desk), asked, desk.settings.concurrency
    )
    _book(record, asked, results, desk, done)
    done.batches.append(jobs.save_record(desk.blobs, closed))
    jobs.drop_asked(desk.blobs, closed)
    if closed.status == "failed" and closed.state != "limited":
        why = "; ".join(closed.errors) or "it does not say why"
        done.problems.append(f"batch {record.batch} failed: {why}")
    replies = (closed.counts or {})[Outcome.SUCCESS]
    done.replies += replies
    done.failures += sum(failed)
    done.again += record.requests - replies - sum(failed)


def _count_unseen(closed: Record, remote: _Remote | None) -> int:
    """The number of replies that the server reports and its files lack."""
    promised = remote.batch.request_counts if remote else None
    counts = closed.counts or {}
    seen = counts[Outcome.SUCCESS] + counts[Outcome.INVALID]
    return max(0, (promised.completed if promised else 0) - seen)


def _reconcile(
    record: Record, remote: _Remote | None, asked: Sequence[Asked]
) -> tuple[Record, Results]:
    """The record of the ended batch, and a result for each request; the counts add up.

    Raises:
        IntegrityError: the cache holds other requests than the record says.
    """
    status = remote.batch.status if remote else "vanished"
    files = [remote.output or b"", remote.error or b""] if remote else []
    results = read_results([item.key for item in asked], files, status)
    counts = results.count()
    if sum(counts[outcome] for outcome in Outcome) != record.requests:
        raise IntegrityError(
            f"batch {record.batch} has {record.requests} requests, but the cache holds "
            f"{len(asked)} of them: restore the cache; nothing was changed"
        )
    if remote is None:
        return replace(record, state="gone", status=status, counts=counts, doubt=None), results
    batch = remote.batch
    errors = (batch.errors.data if batch.errors else None) or []
    messages = tuple(f"{error.code}: {error.message}"[:300] for error in errors[:_SHOWN_ERRORS])
    limited = status == "failed" and any(map(_is_token_limit, messages))
    closed = replace(
        record,
        state="limited" if limited else "collected",
        status=status,
        errors=messages,
        counts=counts,
        doubt=None,
    )
    return closed, results


def _keep(asked: Asked, result: Result, desk: Desk) -> bool:
    """Stores a reply, or a failure that a retry would not cure; True for such a failure."""
    if result.outcome is Outcome.SUCCESS:
        desk.cache.keep_reply(asked.key, asked.request, result.body or {})
        return False
    kind, detail = _classify(result, desk.settings)
    if kind is None or desk.cache.read_reply(asked.key) is not None:
        return False
    before = desk.cache.read_failure(asked.key)
    if before is None or before.attempts <= asked.attempts:
        failure = Failure(asked.key, kind, detail, asked.attempts + 1)
        desk.cache.keep_failure(failure, asked.request, result.body)
    return True


def _classify(result: Result, settings: LLMSettings) -> tuple[FailureKind | None, str]:
    """The kind and detail of a line without a reply; None as kind if a retry may succeed."""
    if result.outcome is Outcome.INVALID:
        return FailureKind.INVALID, result.detail
    if result.outcome is not Outcome.ERROR or not result.status:
        return None, result.detail
    complaint = read_complaint(result.status, result.body, "")
    try:
        raise_complaint(complaint, find_place(settings))
    except ReplyError as e:
        return e.kind, e.detail
    except (TransientError, EndpointError) as e:
        return None, str(e)


def _book(
    record: Record, asked: Sequence[Asked], results: Results, desk: Desk, done: Collection
) -> None:
    """Books the cost of each request: a reply always costs, other lines what their usage says."""
    ledger, price = desk.open_ledger(record.run), desk.settings.prices.get(record.model)
    for item in asked:
        result = results.by_key[item.key]
        body = cast("Mapping[str, JsonValue]", result.body or {})
        billed = result.outcome is Outcome.SUCCESS or has_usage(body)
        usage = read_usage(body, item.request) if billed else None
        if usage is not None:
            done.tokens += usage.total
            if price is None:
                done.cost = None
            elif done.cost is not None:
                done.cost += cost_of(usage, price, batch=True)
        if ledger is not None:
            call = describe_call(item.request, item.key, record.model, batch=True)
            ticket = batch_ticket(record.id, call)
            done.booked += ledger.settle(ticket, usage, result.outcome.value, billed=billed)


def _is_token_limit(error: str) -> bool:
    return error.startswith("token_limit_exceeded") or "enqueued token limit" in error.lower()
