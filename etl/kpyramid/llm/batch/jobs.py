"""Batches: their records, files, ledgers, and the faults of the Batch API."""

import gzip
import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Final, Literal, cast

import openai

from kpyramid.errors import ConflictError, EndpointError, IntegrityError, RefusedError
from kpyramid.keys import JsonValue, hash_bytes, hash_value
from kpyramid.llm.cache import ReplyCache, dump_json
from kpyramid.llm.endpoint import find_place, raise_complaint, read_complaint
from kpyramid.llm.ledger import Ledger
from kpyramid.llm.task import Message, ReplyError, Request, TransientError, load_json, quote_text
from kpyramid.settings import LLMSettings
from kpyramid.storage.store import BlobStore

# The records of batches, in the store of the replies, so that every machine sees the same ones.
# `batches/records/<number>.json` is one batch: small, replaced as the batch moves on. Whoever
# creates the next number (the store lets one) may ask for its requests; so no request is in two
# batches. `batches/requests/` holds what is asked. What a batch costs is in the books of its run.

State = Literal["intent", "submitted", "collected", "limited", "gone", "dropped"]
"""intent: recorded; the batch may exist. submitted: its id is known. collected: all its results are
stored. limited: refused for its size. gone: given up, so its requests are pending again. dropped:
never created."""

OPEN: frozenset[State] = frozenset({"intent", "submitted"})
"""States whose requests are not sent elsewhere."""

_RECORDS, _REQUESTS = "batches/records", "batches/requests"
_NUMBER = re.compile(r"batches/records/(\d{8})\.json")


@dataclass(frozen=True, slots=True)
class Limits:
    """The API's limits (platform.openai.com/docs/guides/batch), and waiting times in seconds.

    `window`: promised by the API; `margin`: beyond it a batch is cancelled. `doubt`: how long
    something must be missing to count as missing. `stale`: after that long, a process that began to
    submit counts as dead.
    """

    requests: int = 50_000
    bytes: int = 200_000_000
    window: float = 24 * 3600.0
    margin: float = 6 * 3600.0
    doubt: float = 3600.0
    stale: float = 1800.0


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Record:
    """One batch; `id` is that of the intent, `batch` is the server's.

    `at`: when its process last worked on submitting it; `submitted`: when the batch's id became
    known; `doubt`: since when the server does not have it. `run`: whose ledger it is in. `source`:
    the sha256 of its requests. `status` and `errors`: the server's last. `counts`: requests by
    `Outcome`. `owner`: tells two submitters of the same requests apart, of whom one may claim the
    number.
    """

    number: int
    id: str
    model: str
    endpoint: str
    run: str
    requests: int
    source: str
    state: State
    at: float
    batch: str | None = None
    submitted: float | None = None
    doubt: float | None = None
    status: str = ""
    errors: tuple[str, ...] = ()
    counts: Mapping[str, int] | None = None
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a batch; `attempts`: number of earlier runs that tried it."""

    key: str
    request: Request
    body: Mapping[str, JsonValue]
    attempts: int = 0


def read_records(blobs: BlobStore) -> list[Record]:
    """All batches, the oldest first."""
    names = [blob.name for blob in blobs.list(_RECORDS) if _NUMBER.fullmatch(blob.name)]
    return [record for record in (_read(blobs, name) for name in names) if record is not None]


def read_record(blobs: BlobStore, number: int) -> Record | None:
    """The present record of a batch."""
    return _read(blobs, _name(number))


def save_record(blobs: BlobStore, record: Record) -> Record:
    """Replaces the record of a batch; returns it."""
    blobs.replace(_name(record.number), dump_json(asdict(record)))
    return record


def claim_record(blobs: BlobStore, record: Record) -> None:
    """Creates a new record.

    Raises:
        ConflictError: another machine took its number just now.
    """
    data = dump_json(asdict(record))
    if blobs.put_once(_name(record.number), data) != data:
        drop_asked(blobs, record)
        raise ConflictError(
            "another machine submits batches into this cache; one at a time does. Call again when "
            "it is done"
        )


def name_endpoint(settings: LLMSettings) -> str:
    """The address of the endpoint of batches, from the settings or a variable.

    Raises:
        SettingsError: there is none that can be used.
    """
    return find_place(settings).base_url


def name_intent(keys: Iterable[str], number: int) -> str:
    """The id of the intent to send these keys as the batch of this number."""
    return hash_value([sorted(keys), number])[:32]


def keep_asked(blobs: BlobStore, intent: str, asked: Iterable[Asked]) -> str:
    """Stores the requests of a batch; returns their sha256."""
    data = b"".join(dump_json(_list_values(item)) + b"\n" for item in asked)
    source = hash_bytes(data)
    blobs.put_once(_name_asked(intent, source), gzip.compress(data, mtime=0))
    return source


def read_asked(blobs: BlobStore, record: Record) -> list[Asked]:
    """The requests of a batch, in the order of its file.

    Raises:
        IntegrityError: it is not what was stored.
    """
    name = _name_asked(record.id, record.source)
    packed = blobs.read(name)
    try:
        data = gzip.decompress(packed) if packed is not None else b""
    except (OSError, EOFError, ValueError) as e:
        raise _name_damage(name, record) from e
    if hash_bytes(data) != record.source:
        raise _name_damage(name, record)
    return [_read_values(json.loads(line)) for line in data.splitlines()]


def drop_asked(blobs: BlobStore, record: Record) -> None:
    """Deletes the requests of a finished batch, which replies and failures contain."""
    blobs.delete(_name_asked(record.id, record.source))


def list_open_keys(blobs: BlobStore, records: Iterable[Record] | None = None) -> set[str]:
    """The keys of requests in batches without results yet."""
    keys: set[str] = set()
    for record in read_records(blobs) if records is None else records:
        if record.state not in OPEN:
            continue
        try:
            keys.update(item.key for item in read_asked(blobs, record))
        except IntegrityError:
            present = read_record(blobs, record.number)
            if present is None or present.state in OPEN:
                raise  # else it ended meanwhile
    return keys


def _name(number: int) -> str:
    return f"{_RECORDS}/{number:08d}.json"


def _name_asked(intent: str, source: str) -> str:
    return f"{_REQUESTS}/{intent}-{source[:16]}.gz"


def _read(blobs: BlobStore, name: str) -> Record | None:
    data = blobs.read(name)
    if data is None:
        return None
    try:
        values = json.loads(data)
        return Record(**{**values, "errors": tuple(values["errors"])})
    except (ValueError, TypeError, KeyError) as e:
        raise IntegrityError(
            f"the record {name} of a batch in the cache cannot be read: {e!r}; the batch may be "
            "open and paid for, so restore the record rather than remove it"
        ) from e


def _name_damage(name: str, record: Record) -> IntegrityError:
    return IntegrityError(
        f"{name}, the requests of batch {record.batch or record.id}, is missing or damaged in the "
        "cache: restore it, or remove the batch's record "
        f"({_name(record.number)}) to have its requests asked again and paid again"
    )


def _list_values(asked: Asked) -> dict[str, JsonValue]:
    request = {field.name: getattr(asked.request, field.name) for field in fields(Request)}
    request["messages"] = [[message.role, message.content] for message in asked.request.messages]
    return {"key": asked.key, "attempts": asked.attempts, "request": request, "body": asked.body}


def _read_values(values: Mapping[str, Any]) -> Asked:
    facts = dict(values["request"])
    messages = tuple(Message(role, content) for role, content in facts.pop("messages"))
    request = Request(messages=messages, **facts)
    return Asked(values["key"], request, values["body"], values["attempts"])


@dataclass(frozen=True)
class Desk:
    """The resources of submitting and collecting.

    `open_ledger` opens the ledger of a run by its name; None if the run is not in this warehouse.
    Batches of another warehouse that shares the replies stay at their highest cost in its ledger.
    """

    client: openai.OpenAI
    cache: ReplyCache
    blobs: BlobStore
    settings: LLMSettings
    open_ledger: Callable[[str], Ledger | None]
    limits: Limits = LIMITS
    now: Callable[[], float] = time.time


# The files of a batch: its requests as lines, and their outcomes, read from its results.

ENDPOINT: Final = "/v1/chat/completions"
_TAKEN = 200
_LONGEST_DETAIL = 300


class Outcome(StrEnum):
    """The outcome of one request of a batch; each has exactly one."""

    SUCCESS = "success"
    ERROR = "error"
    """The endpoint refused or failed this request, or the batch as a whole."""
    INVALID = "invalid"
    """The line is no reply."""
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    MISSING = "missing"
    """The batch ended without a line."""


@dataclass(frozen=True, slots=True)
class Result:
    """The content of a request's line; `status` is 0 without an answer over HTTP."""

    outcome: Outcome
    status: int = 0
    body: Mapping[str, JsonValue] | None = None
    detail: str = ""


@dataclass(slots=True)
class Results:
    """All results of a batch: one per request, and the lines that fit none."""

    by_key: dict[str, Result]
    strays: Counter[str] = field(default_factory=Counter)
    """Lines that are `duplicate`, `foreign` (of an unknown request) or `malformed`."""

    def count(self) -> dict[str, int]:
        """Number of requests by outcome, which add up, and of strays."""
        outcomes = Counter(result.outcome.value for result in self.by_key.values())
        counts = {outcome.value: outcomes[outcome.value] for outcome in Outcome}
        return {**counts, **{name: self.strays[name] for name in _STRAYS}}


_STRAYS = ("duplicate", "foreign", "malformed")


def write_line(asked: Asked) -> bytes:
    """A request's line in the input file; equal requests give equal bytes."""
    line: dict[str, JsonValue]
    line = {"custom_id": asked.key, "method": "POST", "url": ENDPOINT, "body": asked.body}
    return dump_json(line) + b"\n"


def read_results(keys: Iterable[str], files: Iterable[bytes], status: str) -> Results:
    """The result of each request, from the output and the error file of an ended batch.

    A reply takes precedence over an error of the same request, and the first reply over later ones.
    """
    by_key: dict[str, Result] = {}
    wanted = set(keys)
    results = Results({})
    for line in (line for data in files for line in data.splitlines() if line.strip()):
        try:
            row = load_json(line)
            key = row["custom_id"]
            if not isinstance(key, str):
                raise TypeError("custom_id is no text")
        except (ValueError, KeyError, TypeError, RecursionError):
            results.strays["malformed"] += 1
            continue
        if key not in wanted:
            results.strays["foreign"] += 1
            continue
        result = _read_row(row)
        if key in by_key:
            results.strays["duplicate"] += 1
            if by_key[key].outcome is Outcome.SUCCESS or result.outcome is not Outcome.SUCCESS:
                continue
        by_key[key] = result
    absent = _name_absence(status)
    results.by_key = {key: by_key.get(key, absent) for key in sorted(wanted)}
    return results


def _read_row(row: Mapping[str, JsonValue]) -> Result:
    """The result on one line."""
    error, response = row.get("error"), row.get("response")
    if isinstance(response, Mapping):
        status, body = response.get("status_code"), response.get("body")
        held = body if isinstance(body, Mapping) else None
        if not isinstance(status, int):
            return Result(Outcome.INVALID, 0, held, "the line has no status")
        if status != _TAKEN:
            return Result(Outcome.ERROR, status, held, _read_message(held and held.get("error")))
        if held is None or not isinstance(held.get("choices"), list):
            return Result(Outcome.INVALID, status, held, "the line's body is no completion")
        return Result(Outcome.SUCCESS, status, held)
    if isinstance(error, Mapping):
        code = error.get("code")
        outcome = {"batch_expired": Outcome.EXPIRED, "batch_cancelled": Outcome.CANCELLED}
        return Result(outcome.get(str(code), Outcome.ERROR), 0, None, _read_message(error))
    return Result(Outcome.INVALID, 0, None, "the line has neither response nor error")


def _name_absence(status: str) -> Result:
    """The result of a request without a line, by how the batch ended."""
    outcome = {
        "expired": Outcome.EXPIRED,
        "cancelled": Outcome.CANCELLED,
        "failed": Outcome.ERROR,
    }.get(status, Outcome.MISSING)
    return Result(outcome, detail=f"the batch is {status} and has no line for it")


def _read_message(error: object) -> str:
    message = error.get("message") if isinstance(error, Mapping) else error
    return " ".join(str(message or "no reason given").split())[:_LONGEST_DETAIL]


# The Batch API: the meaning of its faults, and finding a batch whose id was not recorded.

METADATA = "kpyramid_intent"
"""Metadata by which a batch is found if its creator died before it knew the id."""

FAULTS = (openai.OpenAIError, ValueError, TypeError, AttributeError)
"""Exceptions of the client; the last three for web pages with status 200, taken for JSON."""


def find_orphans(desk: Desk) -> list[Record]:
    """Finds batches whose ids were not recorded; returns their updated records."""
    missing = {r.id: r for r in read_records(desk.blobs) if r.state == "intent"}
    orphans: list[Record] = []
    if not missing:
        return orphans
    with name_faults(desk, "list the batches"):
        for batch in desk.client.with_options(max_retries=2).batches.list(limit=100):
            record = missing.pop((batch.metadata or {}).get(METADATA, ""), None)
            if record is not None:
                noted = replace(record, state="submitted", batch=batch.id, submitted=desk.now())
                orphans.append(save_record(desk.blobs, noted))
            if not missing:
                break
    return orphans


@contextmanager
def name_faults(desk: Desk, act: str) -> Iterator[None]:
    """Turns the client's exceptions into an error with advice.

    Raises:
        EndpointError: the server refused or failed.
    """
    try:
        yield
    except FAULTS as e:
        raise describe_fault(desk, act, e) from None


def describe_fault(desk: Desk, act: str, fault: Exception) -> EndpointError:
    """The client's exception as an error with advice; the key is removed if it is echoed."""
    place, key = find_place(desk.settings), desk.client.api_key
    cannot, again = f"cannot {act}: ", "nothing is lost: run the same command again later"
    error, text = EndpointError, quote_text(f"{type(fault).__name__} {fault}")
    text = f"{place.base_url}: {cannot}{text}; {again}, or mend {place.decided_by}"
    if isinstance(fault, openai.APIStatusError):
        try:
            body = cast("JsonValue", fault.body)
            raise_complaint(read_complaint(fault.status_code, body, fault.message), place)
        except RefusedError as e:
            error, text = RefusedError, f"{cannot}{e}"
        except (TransientError, ReplyError) as e:
            text = f"{place.base_url}: {cannot}{e}; {again}"
        if fault.status_code == 404:
            text += ". Or it has no Batch API: `kpyramid build` asks it directly"
    return error(text.replace(key, "[key]") if len(key) > 7 else text)
