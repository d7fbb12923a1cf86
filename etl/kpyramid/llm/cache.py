"""The cache of replies and failures by request key: storage, export, import."""

import contextlib
import gzip
import json
import logging
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar, cast

from kpyramid.errors import InputError, SettingsError
from kpyramid.keys import JsonValue, hash_bytes, hash_value
from kpyramid.llm.task import Failure, FailureKind, ReplyError, Request, describe_model
from kpyramid.settings import LLMSettings
from kpyramid.storage.store import Blob, BlobStore
from kpyramid.storage.writing import replace_file, sync_folder

# Replies and failures by request key. A reply is written once; failures lie apart and are never
# hits. An entry carries the hash of its own bytes: a damaged one is named in a warning and counts
# as absent.

T = TypeVar("T")

log = logging.getLogger(__name__)

_REPLIES, _FAILED = "replies", "failed"
_KEY = re.compile(r"[0-9a-f]{64}")
_SUBJECT_CHARACTERS = 200
"""Characters of a failure's subject for identification; the messages have all of it."""
_HEAD, _MIDDLE, _TAIL = b'{"sha256":"', b'","entry":', b"}\n"
_BODY_START = len(_HEAD) + 64 + len(_MIDDLE)


@dataclass(frozen=True, slots=True)
class ReplyEntry:
    """A stored reply; `model` as the server named itself, `response` as it sent it."""

    key: str
    task: str
    version: int
    model: str
    response: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class FailureEntry:
    """A stored failure with its diagnosis; `response` is None if none came."""

    failure: Failure
    task: str
    version: int
    stage: str
    document: str | None
    subject: str
    max_tokens: int
    messages: tuple[tuple[str, str], ...]
    response: Mapping[str, JsonValue] | None


class ReplyCache:
    """Replies and failures in a store; `read_only` caches write nothing."""

    def __init__(self, blobs: BlobStore, *, read_only: bool = False) -> None:
        self._blobs = blobs
        self._read_only = read_only

    def read_reply(self, key: str) -> Mapping[str, JsonValue] | None:
        """The raw reply to a request, or None."""
        entry = self.read_reply_entry(key)
        return None if entry is None else entry.response

    def read_reply_entry(self, key: str) -> ReplyEntry | None:
        """The stored entry of a reply, or None."""
        return self._read(_REPLIES, key, _read_reply_values)

    def keep_reply(
        self, key: str, request: Request, raw: Mapping[str, JsonValue]
    ) -> Mapping[str, JsonValue]:
        """Stores a reply unless there is one; returns the stored one."""
        model = raw.get("model")
        named = model if isinstance(model, str) else ""
        return self.keep_entry(ReplyEntry(key, request.task, request.version, named, raw)).response

    def keep_entry(self, entry: ReplyEntry) -> ReplyEntry:
        """Stores an entry unless there is one; returns the stored one."""
        if self._read_only:
            return entry
        name, data = _name_blob(_REPLIES, entry.key), _pack(_list_values(entry))
        won = self._blobs.put_once(name, data)
        if won == data:
            return entry
        winner = self.read_reply_entry(entry.key)
        if winner is None:  # damaged: its place is free
            self._blobs.replace(name, data)
        return winner or entry

    def copy_reply(self, source: str, target: str) -> None:
        """Stores a reply for another request as well."""
        entry = self.read_reply_entry(source)
        if entry is not None:
            self.keep_entry(replace(entry, key=target))

    def drop_reply(self, key: str) -> None:
        """Removes a reply, if there is one."""
        if not self._read_only:
            self._blobs.delete(_name_blob(_REPLIES, key))

    def list_replies(self) -> Iterator[tuple[str, Blob]]:
        """The keys of all replies, sorted, each with its blob."""
        return self._list(_REPLIES)

    def read_failure(self, key: str) -> Failure | None:
        """The stored failure of a request, or None."""
        entry = self.read_failure_entry(key)
        return None if entry is None else entry.failure

    def read_failure_entry(self, key: str) -> FailureEntry | None:
        """The stored entry of a failure, or None."""
        return self._read(_FAILED, key, _read_failure_values)

    def keep_failure(
        self, failure: Failure, request: Request, raw: Mapping[str, JsonValue] | None
    ) -> None:
        """Stores a failure, replacing an earlier one."""
        self._write_failure(
            FailureEntry(
                failure,
                request.task,
                request.version,
                request.stage,
                request.document,
                request.subject[:_SUBJECT_CHARACTERS],
                request.max_tokens,
                tuple((message.role, message.content) for message in request.messages),
                raw,
            )
        )

    def move_failure(self, source: str, target: str) -> None:
        """Moves a failure to another request, replacing an earlier one."""
        entry = self.read_failure_entry(source)
        if entry is None:
            return
        self._write_failure(replace(entry, failure=replace(entry.failure, key=target)))
        self.drop_failure(source)

    def drop_failure(self, key: str) -> None:
        """Deletes a failure, if there is one, so that the request is sent again."""
        if not self._read_only:
            self._blobs.delete(_name_blob(_FAILED, key))

    def list_failures(self) -> Iterator[FailureEntry]:
        """All failures, sorted by key."""
        for key, _ in self._list(_FAILED):
            entry = self.read_failure_entry(key)
            if entry is not None:
                yield entry

    def _write_failure(self, entry: FailureEntry) -> None:
        if not self._read_only:
            name = _name_blob(_FAILED, entry.failure.key)
            values = _list_values(entry)
            del values["failure"]
            self._blobs.replace(name, _pack({**_list_values(entry.failure), **values}))

    def _read(
        self, folder: str, key: str, read_values: Callable[[Mapping[str, JsonValue], str], T]
    ) -> T | None:
        name = _name_blob(folder, key)
        data = self._blobs.read(name)
        try:
            return None if data is None else read_values(_unpack(data), key)
        except ValueError as e:
            log.warning("cache entry %s is damaged and counts as absent: %s", name, e)
            return None

    def _list(self, folder: str) -> Iterator[tuple[str, Blob]]:
        for blob in self._blobs.list(folder):
            key = blob.name.rpartition("/")[2].removesuffix(".json")
            if _KEY.fullmatch(key) and blob.name == _name_blob(folder, key):
                yield key, blob


def _list_values(entry: ReplyEntry | FailureEntry | Failure) -> dict[str, JsonValue]:
    """An entry's fields as plain values, for the store and for recordings."""
    return {field.name: getattr(entry, field.name) for field in fields(entry)}


def _read_reply_values(values: Mapping[str, JsonValue], key: str | None = None) -> ReplyEntry:
    """A reply's entry from plain values, for `key` if one is given.

    Raises:
        ValueError: says what is missing or of the wrong type.
    """
    entry = ReplyEntry(*(values.get(field.name) for field in fields(ReplyEntry)))  # type: ignore[arg-type]
    kinds = {"task": str, "version": int, "model": str, "response": Mapping}
    if not isinstance(entry.key, str) or not _KEY.fullmatch(entry.key):
        raise ValueError("key is not 64 hex digits")
    if key is not None and entry.key != key:
        raise ValueError(f"it is the entry of another key, {entry.key}")
    for name, kind in kinds.items():
        if not isinstance(value := getattr(entry, name), kind) or isinstance(value, bool):
            raise ValueError(f"{name} is missing or of another type")
    return entry


def dump_json(value: JsonValue) -> bytes:
    """The canonical bytes of any value in replies, with lone surrogates and NaN too."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def _name_blob(folder: str, key: str) -> str:
    return f"{folder}/{key[:2]}/{key}.json"


def _pack(values: Mapping[str, JsonValue]) -> bytes:
    body = dump_json(values)
    return _HEAD + hash_bytes(body).encode() + _MIDDLE + body + _TAIL


def _unpack(data: bytes) -> Mapping[str, JsonValue]:
    """The values of packed bytes.

    Raises:
        ValueError: the bytes are not those that were written.
    """
    body = data[_BODY_START : -len(_TAIL)]
    frame = _HEAD + hash_bytes(body).encode() + _MIDDLE
    if not data.startswith(frame) or not data.endswith(_TAIL):
        raise ValueError("its bytes are not those that were written")
    return cast("Mapping[str, JsonValue]", json.loads(body))


def _read_failure_values(values: Mapping[str, JsonValue], key: str) -> FailureEntry:
    if values.get("key") != key:
        raise ValueError(f"it is the entry of another key, {values.get('key')}")
    # Its hash was right, so what wrote it was this module: types are not checked.
    facts: dict[str, Any] = dict(values)
    failure = [facts.pop(field.name) for field in fields(Failure)]
    facts["messages"] = tuple((role, content) for role, content in facts["messages"])
    return FailureEntry(Failure(key, FailureKind(failure[1]), *failure[2:]), **facts)


# Replies as lines of JSON: exported, imported, and replayed by provider `replay`.
# A line is a reply's entry (`key`, `task`, `version`, `model`, `response`) and `sha256`, the hash
# of the entry's canonical JSON; a line written by hand may lack it. A name that ends in `.gz`
# says that the file is compressed.


@dataclass(frozen=True, slots=True)
class DamagedLine:
    """A line without a valid reply; `number` counts from 1."""

    number: int
    detail: str


def write_recording(path: Path, entries: Iterable[ReplyEntry]) -> int:
    """Writes entries, which come sorted by key; returns their number.

    Equal entries give equal bytes. The file is complete or not there.

    Raises:
        InputError: the file cannot be written.
    """
    count = 0
    try:
        with replace_file(path) as file:
            packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if _is_packed(path) else None
            with packed or contextlib.nullcontext(file) as out:
                for entry in entries:
                    out.write(_write_line(entry))
                    count += 1
        sync_folder(path.parent)
    except OSError as e:
        raise InputError(f"recording {path} cannot be written: {e}") from e
    return count


def read_recording(path: Path) -> Iterator[ReplyEntry | DamagedLine]:
    """The replies of a recording; invalid lines as `DamagedLine`, empty ones skipped.

    Raises:
        InputError: the file cannot be opened.
    """
    number = 0
    try:
        with gzip.open(path) if _is_packed(path) else path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _read_line(number, line)
    except (EOFError, zlib.error, gzip.BadGzipFile) as e:
        yield DamagedLine(number + 1, f"the compressed file is damaged from here on: {e}")
    except OSError as e:
        raise InputError(f"recording {path} cannot be read: {e}") from e


def _write_line(entry: ReplyEntry) -> bytes:
    values = _list_values(entry)
    return dump_json({**values, "sha256": hash_bytes(dump_json(values))}) + b"\n"


def _read_line(number: int, line: bytes) -> ReplyEntry | DamagedLine:
    try:
        values = json.loads(line)
        if not isinstance(values, dict):
            raise ValueError("it is no object")
        entry = _read_reply_values(values)
        digest = hash_bytes(dump_json(_list_values(entry)))
        if values.get("sha256", digest) != digest:
            raise ValueError("it was changed after it was written (sha256)")
    except (ValueError, RecursionError) as e:
        return DamagedLine(number, str(e))
    return entry


def _is_packed(path: Path) -> bool:
    return path.suffix == ".gz"


# Answering from a recording: no endpoint, no key, no cost.

Answer = Callable[[Request], str | Mapping[str, JsonValue] | None]
"""The text of a reply, or a whole recorded completion; None for an unrecorded request."""

_NOTHING = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens"), 0)


def describe_source(settings: LLMSettings) -> dict[str, JsonValue]:
    """The part of a reply's key for its source: the model, and a recording's content.

    So a live model of that name is never answered from a recording, nor from an older one.

    Raises:
        SettingsError: there is no such recording.
    """
    model = describe_model(settings)
    if settings.provider == "replay":
        try:
            model["recording"] = hash_bytes(Path(str(settings.recording)).read_bytes())
        except OSError as e:
            raise SettingsError(f"llm.recording cannot be read: {e}") from e
    return model


class ReplayTransport:
    """A `Transport` that replays recorded answers and calls nobody."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def send(self, request: Request) -> Mapping[str, JsonValue]:
        """See `Transport.send`; usage is zero, marked by `replayed`.

        Raises:
            ReplyError: the recording has no answer to this.
        """
        answer = self._answer(request)
        if answer is None:
            asked = request.subject or request.messages[-1].content
            raise ReplyError(
                FailureKind.UNRECORDED,
                f"the recording has no answer to task {request.task!r} for the text that begins "
                f"with {' '.join(asked.split())[:80]!r}",
            )
        if isinstance(answer, str):
            answer = _write_completion(answer)
        return {**answer, "usage": _NOTHING, "replayed": True}


def _write_completion(content: str) -> dict[str, JsonValue]:
    """A chat completion in a server's form."""
    return {
        "id": f"replay-{hash_value(content)[:20]}",
        "object": "chat.completion",
        "created": 0,
        "model": "replay",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content},
                "finish_reason": "stop",
            }
        ],
    }
