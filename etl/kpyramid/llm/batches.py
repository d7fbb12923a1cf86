"""The records of batches, in the store of the replies, so that every machine sees the same ones.

`batches/records/<number>.json` is one batch: small, replaced as the batch moves on. Whoever creates
the next number (the store lets one) may ask for its requests; so no request is in two batches.
`batches/requests/` holds what is asked, `batches/books/` what it cost.
"""

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from kpyramid.errors import IntegrityError
from kpyramid.keys import JsonValue, canonical_json, hash_bytes, hash_value
from kpyramid.llm.cache import dump_json
from kpyramid.llm.stores import BlobStore
from kpyramid.llm.types import Message, Request
from kpyramid.model_settings import LLMSettings

State = Literal[
    "intent", "uploaded", "submitted", "collected", "limited", "split", "lost", "gone", "dropped"
]
"""intent: noted, nothing sent. uploaded: the file is there, the batch perhaps. submitted: its id is
known. collected: all it gave is stored. limited: refused for its size, to be asked in halves;
split: done. lost: its requests are pending again, what still comes of it is kept. gone: given up.
dropped: never created."""

UNFINISHED: frozenset[State] = frozenset({"intent", "uploaded"})
OPEN: frozenset[State] = UNFINISHED | {"submitted"}
"""States whose requests are not asked elsewhere."""

_RECORDS, _REQUESTS, _TURNS = "batches/records", "batches/requests", "batches/turns"
_NUMBER = re.compile(r"batches/records/(\d{8})\.json")


@dataclass(frozen=True, slots=True)
class Limits:
    """The API's limits (platform.openai.com/docs/guides/batch), and how long is waited; seconds.

    `window`: what the API promises; `margin`: beyond it a batch is lost. `doubt`: how long
    what is missing must be missing before it is believed. `stale`: after that long, whoever began
    to submit is dead. `look_again`: how long results of lost batches are looked for: files live
    30 days.
    """

    requests: int = 50_000
    bytes: int = 200_000_000
    window: float = 24 * 3600.0
    margin: float = 6 * 3600.0
    doubt: float = 3600.0
    stale: float = 600.0
    look_again: float = 30 * 86_400.0


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Record:
    """One batch; `id` is that of the intent, `batch` and `file` are the server's.

    `at`: when the last process took its turn at submitting; `submitted`: when the batch's id became
    known; `doubt`: since when the server denies what should be there.
    `owner`: that process. `run`: whose books it is in. `source`: the sha256 of what is asked.
    `status` and `errors`: what the server said last.
    `counts`: what became of the requests, see `batch_files.Outcome`.
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
    owner: str
    turn: int = 0
    file: str | None = None
    batch: str | None = None
    submitted: float | None = None
    doubt: float | None = None
    status: str = ""
    errors: tuple[str, ...] = ()
    counts: Mapping[str, int] | None = None

    @property
    def file_name(self) -> str:
        """What the input file is called at the server."""
        return f"kpyramid-{self.id}.jsonl"


@dataclass(frozen=True, slots=True)
class Asked:
    """One request of a batch; `attempts`: runs that tried it before."""

    key: str
    request: Request
    body: Mapping[str, JsonValue]
    attempts: int = 0


def read_records(blobs: BlobStore) -> list[Record]:
    """All batches, the oldest first."""
    found = [blob.name for blob in blobs.list(_RECORDS) if _NUMBER.fullmatch(blob.name)]
    return [record for record in (_read(blobs, name) for name in found) if record is not None]


def read_record(blobs: BlobStore, number: int) -> Record | None:
    """A batch's present record."""
    return _read(blobs, _name(number))


def save_record(blobs: BlobStore, record: Record) -> Record:
    """Puts a record in place of its former state; returns it."""
    blobs.replace(_name(record.number), dump_json(asdict(record)))
    return record


def claim_record(blobs: BlobStore, record: Record) -> Record | None:
    """The record when its number was free; None when another process was first."""
    data = dump_json(asdict(record))
    return record if blobs.put_once(_name(record.number), data) == data else None


def claim_turn(
    blobs: BlobStore, record: Record, owner: str, now: float, stale: float
) -> Record | None:
    """The present record, from now on the owner's to submit; None while another may be at it.

    None, too, when another has submitted or dropped it since `record` was read.
    """
    present = read_record(blobs, record.number)
    if present is None or present.state not in UNFINISHED:
        return None
    turn, at = present.turn, present.at
    while now - at >= stale:
        turn, data = turn + 1, canonical_json({"at": now, "owner": owner})
        won = blobs.put_once(f"{_TURNS}/{record.id}.{turn}.json", data)
        if won == data:
            present = read_record(blobs, record.number)
            if present is None or present.state not in UNFINISHED or present.turn >= turn:
                return None
            return save_record(blobs, replace(present, turn=turn, at=now, owner=owner))
        at = float(json.loads(won)["at"])
    return None


def name_endpoint(settings: LLMSettings) -> str:
    """Where batches live."""
    return settings.base_url or "default"


def name_intent(keys: Iterable[str], number: int) -> str:
    """The id of the intent to ask for these keys as the batch of this number."""
    return hash_value([sorted(keys), number])[:32]


def keep_asked(blobs: BlobStore, intent: str, asked: Iterable[Asked]) -> str:
    """Stores what a batch asks; returns its sha256."""
    data = b"".join(dump_json(_list_values(one)) + b"\n" for one in asked)
    source = hash_bytes(data)
    blobs.put_once(_name_asked(intent, source), gzip.compress(data, mtime=0))
    return source


def read_asked(blobs: BlobStore, record: Record) -> list[Asked]:
    """What a batch asks, in the order of its file.

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
    """Forgets what a finished batch asked: replies and failures say it."""
    blobs.delete(_name_asked(record.id, record.source))


def list_open_keys(blobs: BlobStore, records: Iterable[Record] | None = None) -> set[str]:
    """The requests that are in a batch whose results are still to come."""
    keys: set[str] = set()
    for record in read_records(blobs) if records is None else records:
        if record.state not in OPEN:
            continue
        try:
            keys.update(one.key for one in read_asked(blobs, record))
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


def _list_values(one: Asked) -> dict[str, JsonValue]:
    request = one.request
    return {
        "key": one.key,
        "attempts": one.attempts,
        "request": {
            "task": request.task,
            "version": request.version,
            "messages": [[message.role, message.content] for message in request.messages],
            "schema": request.schema,
            "max_tokens": request.max_tokens,
            "stage": request.stage,
            "document": request.document,
            "subject": request.subject,
        },
        "body": one.body,
    }


def _read_values(values: Mapping[str, Any]) -> Asked:
    facts = dict(values["request"])
    messages = tuple(Message(role, content) for role, content in facts.pop("messages"))
    request = Request(messages=messages, **facts)
    return Asked(values["key"], request, values["body"], values["attempts"])
