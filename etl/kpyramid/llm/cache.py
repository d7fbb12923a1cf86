"""The cache of replies and failures by request key: where they are kept, exported, cleared."""

import contextlib
import gzip
import importlib
import json
import logging
import os
import re
import time
import uuid
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, TypeVar, cast
from urllib.parse import urlsplit

from kpyramid.errors import EndpointError, InputError, SettingsError
from kpyramid.keys import JsonValue, hash_bytes
from kpyramid.llm.types import Failure, FailureKind, Request
from kpyramid.storage.writing import sync_folder, write_and_sync, write_durably

# Where entries are kept: named blobs in a folder or in a bucket, written once or replaced.

_TIMEOUT = timedelta(seconds=30)
"""For one request to a bucket; the client repeats it for as long again when the server fails."""
_CONFLICT_TRIES, _CONFLICT_WAIT = 8, 0.05
"""A bucket may answer 409 while another writer is at it: then nobody has won yet."""
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")

_S3_FAULT = re.compile(r"<Code>([^<]{1,100})</Code>\s*<Message>([^<]{1,300})</Message>")


@dataclass(frozen=True, slots=True)
class Blob:
    """One stored blob; `modified` in seconds since 1970."""

    name: str
    size: int
    modified: float


class BlobStore(Protocol):
    """Bytes under names such as `replies/0f/0f12.json`; a reader never sees half of a blob.

    Raises (all methods): EndpointError or OSError: the store cannot be used.
    """

    def read(self, name: str) -> bytes | None:
        """A blob's bytes, or None."""
        ...

    def put_once(self, name: str, data: bytes) -> bytes:
        """What stands under the name afterwards: the bytes of the first writer of all."""
        ...

    def replace(self, name: str, data: bytes) -> None:
        """Writes a blob, whether or not there is one."""
        ...

    def delete(self, name: str) -> None:
        """Removes a blob, if there is one."""
        ...

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """The blobs of a folder and the folders in it, sorted by name."""
        ...


def open_blobs(location: str | Path, *, read_only: bool = False) -> BlobStore:
    """The store in a local folder, which need not exist yet, or at `s3://bucket/prefix`.

    A bucket that will be written to is probed: it must refuse to create a blob twice.

    Raises:
        SettingsError: it is neither, or the extra for buckets is not installed.
        EndpointError: the bucket cannot be used.
    """
    text = str(location)
    if "://" not in text:
        root = Path(location).absolute()
        if root.exists() and not root.is_dir():
            raise SettingsError(f"cache {root} is a file; give a folder or s3://bucket/prefix")
        return FolderStore(root)
    parts = urlsplit(text)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise SettingsError(
            f"cache {parts.scheme}://{parts.hostname}: a credential or parameter stands in the "
            "address; credentials and endpoint come from the AWS_* variables"
        )
    if parts.scheme != "s3" or not _BUCKET.fullmatch(parts.netloc):
        raise SettingsError(f"cache {text}: give a folder, or s3://bucket/prefix")
    return BucketStore(parts.netloc, parts.path.strip("/"), read_only=read_only)


class FolderStore:
    """A `BlobStore` in a local folder; a blob that was written survives a power cut."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._prefix = f"{root}{os.sep}"

    def read(self, name: str) -> bytes | None:
        try:
            with open(self._prefix + name, "rb", buffering=0) as file:  # noqa: PTH123 every hit
                return file.read()
        except FileNotFoundError:
            return None

    def put_once(self, name: str, data: bytes) -> bytes:
        """See `BlobStore.put_once`; a hard link fails when the name is taken."""
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".{os.getpid()}.{uuid.uuid4().hex}.tmp"
        try:
            write_and_sync(temporary, data)
            while True:
                try:
                    os.link(temporary, path)
                    break
                except FileExistsError:
                    won = self.read(name)
                    if won is not None:  # else it was removed meanwhile
                        return won
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)
        return data

    def replace(self, name: str, data: bytes) -> None:
        write_durably(self._root / name, data)

    def delete(self, name: str) -> None:
        (self._root / name).unlink(missing_ok=True)

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """See `BlobStore.list`; hidden files are none."""
        with contextlib.suppress(FileNotFoundError), os.scandir(self._root / prefix) as entries:
            # A folder sorts as its blobs do: with the slash that follows its name in theirs.
            found = sorted(
                ((f"{e.name}/" if e.is_dir() else e.name, e) for e in entries),
                key=lambda pair: pair[0],
            )
            for name, entry in found:
                path = f"{prefix}/{name}" if prefix else name
                if name.startswith("."):
                    continue
                if name.endswith("/"):
                    yield from self.list(path.rstrip("/"))
                    continue
                with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                    status = entry.stat()
                    yield Blob(path, status.st_size, status.st_mtime)


class BucketStore:
    """A `BlobStore` in an S3-compatible bucket that supports conditional writes.

    Credentials, region and endpoint come from the AWS_* variables. A process that was forked
    opens its own.
    """

    def __init__(self, bucket: str, prefix: str, *, read_only: bool = False) -> None:
        self._obstore = _import_obstore()
        self._place = f"s3://{bucket}/{prefix}".rstrip("/")
        endpoint = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""
        options: dict[str, object] = {"timeout": _TIMEOUT, "connect_timeout": timedelta(seconds=5)}
        if endpoint.startswith("http://"):
            options["allow_http"] = True
        with self._name_faults("open"):
            self._store = self._obstore.store.S3Store(
                bucket,
                prefix=prefix or None,
                client_options=options,
                retry_config={"max_retries": 6, "retry_timeout": _TIMEOUT},
            )
        if read_only:
            self._look()
        else:
            self._probe()

    def read(self, name: str) -> bytes | None:
        with self._name_faults("read"):
            try:
                return bytes(self._store.get(name).bytes())
            except FileNotFoundError:
                return None

    def put_once(self, name: str, data: bytes) -> bytes:
        for number in range(_CONFLICT_TRIES):
            if self._create(name, data):
                return data
            won = self.read(name)
            if won is not None:
                return won
            time.sleep(_CONFLICT_WAIT * 2**number)
        raise EndpointError(
            f"cache {self._place}: {name} is neither there nor can it be created; another writer "
            "may be stuck. Run the same command again"
        )

    def replace(self, name: str, data: bytes) -> None:
        with self._name_faults("write"):
            self._store.put(name, data, mode="overwrite", use_multipart=False)

    def delete(self, name: str) -> None:
        with self._name_faults("delete"), contextlib.suppress(FileNotFoundError):
            self._store.delete(name)

    def list(self, prefix: str = "") -> Iterator[Blob]:
        with self._name_faults("list"):
            found = [
                Blob(meta["path"], meta["size"], meta["last_modified"].timestamp())
                for page in self._store.list(prefix or None)
                for meta in page
            ]
        yield from sorted(found, key=lambda blob: blob.name)

    def _create(self, name: str, data: bytes) -> bool:
        with self._name_faults("write"):
            try:
                self._store.put(name, data, mode="create", use_multipart=False)
            except self._obstore.exceptions.AlreadyExistsError:
                return False
        return True

    def _look(self) -> None:
        """Fails for a bucket that is not there, which to a reader seems empty."""
        with self._name_faults("read"):
            self._store.list_with_delimiter(None)

    def _probe(self) -> None:
        """Refuses a server that ignores the condition: two writers would overwrite each other."""
        name = f"probes/{uuid.uuid4().hex}"
        try:
            created = [self._create(name, data) for data in (b"first", b"second")]
        finally:
            with contextlib.suppress(EndpointError):
                self.delete(name)
        if created != [True, False]:
            raise EndpointError(
                f"cache {self._place}: the server does not hold to conditional writes "
                "(If-None-Match), so writers would overwrite each other; use one that does, such "
                "as AWS S3, or a folder"
            )

    @contextlib.contextmanager
    def _name_faults(self, act: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, ValueError, self._obstore.exceptions.BaseError) as e:
            raise EndpointError(
                f"cache {self._place}: cannot {act}: {_summarise(str(e))}. Check that the bucket "
                "exists and AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY; what was kept is not lost"
            ) from e


def _summarise(text: str) -> str:
    """The code and message that the server gave, else what the client says."""
    given = _S3_FAULT.search(text)
    if given:
        return f"{given[1]}: {given[2]}".rstrip(".")
    return " ".join(text.split("Debug source")[0].split())[:300]


def _import_obstore() -> ModuleType:
    try:
        module = importlib.import_module("obstore")
        importlib.import_module("obstore.store")
        importlib.import_module("obstore.exceptions")
    except ImportError as e:
        raise SettingsError(
            "a cache in a bucket needs the extra s3: pip install 'kpyramid[s3]', or give a folder"
        ) from e
    return module


# Replies and failures by request key. A reply is written once; failures lie apart and are never
# hits. An entry carries the hash of its own bytes: a damaged one is named in a warning and counts
# as absent.

T = TypeVar("T")

log = logging.getLogger(__name__)

_REPLIES, _FAILED = "replies", "failed"
_KEY = re.compile(r"[0-9a-f]{64}")
_SUBJECT_CHARACTERS = 200
"""Of a failure's subject: enough to know it by; the messages hold it whole."""
_HEAD, _MIDDLE, _TAIL = b'{"sha256":"', b'","entry":', b"}\n"
_BODY_AT = len(_HEAD) + 64 + len(_MIDDLE)


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
    """A stored failure with what diagnosis needs; `response` is None when none came."""

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
        """The reply to a request with what is known of it, or None."""
        return self._read(_REPLIES, key, _read_reply_values)

    def keep_reply(
        self, key: str, request: Request, raw: Mapping[str, JsonValue]
    ) -> Mapping[str, JsonValue]:
        """Stores a reply; returns the one that stands: whoever was first wins."""
        model = raw.get("model")
        named = model if isinstance(model, str) else ""
        return self.keep_entry(ReplyEntry(key, request.task, request.version, named, raw)).response

    def keep_entry(self, entry: ReplyEntry) -> ReplyEntry:
        """Stores an entry; returns the one that stands: whoever was first wins."""
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
        """Makes a stored reply the one to another request as well."""
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
        """How a request failed before, or None."""
        entry = self.read_failure_entry(key)
        return None if entry is None else entry.failure

    def read_failure_entry(self, key: str) -> FailureEntry | None:
        """How a request failed before, with what diagnosis needs, or None."""
        return self._read(_FAILED, key, _read_failure_values)

    def keep_failure(
        self, failure: Failure, request: Request, raw: Mapping[str, JsonValue] | None
    ) -> None:
        """Stores a failure in place of an earlier one."""
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
        """Makes a request's failure that of another one, in place of an earlier one."""
        entry = self.read_failure_entry(source)
        if entry is None:
            return
        self._write_failure(replace(entry, failure=replace(entry.failure, key=target)))
        self.drop_failure(source)

    def drop_failure(self, key: str) -> None:
        """Forgets a failure, if there is one: the request is asked again."""
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
    """An entry's fields as plain values: its form in the store and in recordings."""
    return {field.name: getattr(entry, field.name) for field in fields(entry)}


def _read_reply_values(values: Mapping[str, JsonValue], key: str | None = None) -> ReplyEntry:
    """A reply's entry from plain values, which must be that of `key` if one is given.

    Raises:
        ValueError: says what is missing or of the wrong type.
    """
    found, task, version = (values.get(name) for name in ("key", "task", "version"))
    model, response = values.get("model"), values.get("response")
    if not isinstance(found, str) or not _KEY.fullmatch(found):
        raise ValueError("key is not 64 hex digits")
    if key is not None and found != key:
        raise ValueError(f"it is the entry of another key, {found}")
    if not isinstance(task, str) or not isinstance(model, str):
        raise ValueError("task or model is missing or no text")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ValueError("version is missing or no integer")
    if not isinstance(response, Mapping):
        raise ValueError("response is missing or no object")
    return ReplyEntry(found, task, version, model, response)


def dump_json(value: JsonValue) -> bytes:
    """One byte form per value that any reply has, also one with lone surrogates or NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode("ascii")


def _name_blob(folder: str, key: str) -> str:
    return f"{folder}/{key[:2]}/{key}.json"


def _pack(values: Mapping[str, JsonValue]) -> bytes:
    body = dump_json(values)
    return _HEAD + hash_bytes(body).encode() + _MIDDLE + body + _TAIL


def _unpack(data: bytes) -> Mapping[str, JsonValue]:
    """The values that were packed.

    Raises:
        ValueError: the bytes are not those that were written.
    """
    body = data[_BODY_AT : -len(_TAIL)]
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


# Replies as lines of JSON: what a cache exports, imports, and provider `replay` answers from.
# A line is a reply's entry (`key`, `task`, `version`, `model`, `response`) and `sha256`, the hash
# of the entry's canonical JSON; a line written by hand may lack it. A name that ends in `.gz`
# says that the file is compressed.


@dataclass(frozen=True, slots=True)
class DamagedLine:
    """A line that holds no reply; `number` counts from 1."""

    number: int
    detail: str


def write_recording(path: Path, entries: Iterable[ReplyEntry]) -> int:
    """Writes entries, sorted by key as they come, and returns their number.

    The same entries give the same bytes. The file is there whole or not at all.

    Raises:
        InputError: the file cannot be written.
    """
    temporary = path.parent / f".{path.name}.{os.getpid()}.tmp"
    count = 0
    try:
        with temporary.open("wb") as file:
            packed = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if _is_packed(path) else None
            with packed or contextlib.nullcontext(file) as out:
                for entry in entries:
                    out.write(_write_line(entry))
                    count += 1
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as e:
        raise InputError(f"recording {path} cannot be written: {e}") from e
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return count


def read_recording(path: Path) -> Iterator[ReplyEntry | DamagedLine]:
    """The replies of a recording; a line that is none comes as `DamagedLine`. Empty lines are left.

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


# Looking after a cache: what is in it, what may go, taking in a recording.

Count = Callable[[Iterable[ReplyEntry | DamagedLine]], Iterable[ReplyEntry | DamagedLine]]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a cache holds; `oldest` and `newest` reply in seconds since 1970, 0 for none."""

    replies: int
    bytes: int
    oldest: float
    newest: float
    failures: dict[str, int]


@dataclass(frozen=True, slots=True)
class Sweep:
    """Keys of the replies that may go, their bytes, and how many stay: in use, or too young."""

    removable: tuple[str, ...]
    bytes: int
    used: int
    young: int


@dataclass(frozen=True, slots=True)
class Intake:
    """How many replies of a recording were new, how many known, and its damaged lines."""

    new: int
    known: int
    damaged: tuple[DamagedLine, ...]


def describe_contents(cache: ReplyCache) -> Contents:
    """Counts what is kept."""
    blobs = [blob for _, blob in cache.list_replies()]
    times = [blob.modified for blob in blobs]
    kinds = Counter(str(entry.failure.kind) for entry in cache.list_failures())
    return Contents(
        len(blobs),
        sum(blob.size for blob in blobs),
        min(times, default=0),
        max(times, default=0),
        dict(sorted(kinds.items())),
    )


def plan_sweep(cache: ReplyCache, live: Collection[str], *, before: float) -> Sweep:
    """The replies that nothing rests on and that were written before a time."""
    removable, size, used, young = [], 0, 0, 0
    for key, blob in cache.list_replies():
        if key in live:
            used += 1
        elif blob.modified >= before:
            young += 1
        else:
            removable.append(key)
            size += blob.size
    return Sweep(tuple(removable), size, used, young)


def import_replies(cache: ReplyCache, file: Path, count: Count) -> Intake:
    """Takes the replies of a recording; one that is there stays. `count` sees each line go by.

    Raises:
        InputError: the file cannot be read.
    """
    new = known = 0
    damaged = []
    for entry in count(read_recording(file)):
        if isinstance(entry, DamagedLine):
            damaged.append(entry)
        elif cache.read_reply_entry(entry.key) is not None:
            known += 1
        else:
            cache.keep_entry(entry)
            new += 1
    return Intake(new, known, tuple(damaged))
