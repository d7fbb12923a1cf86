"""Where replies are kept: named blobs in a folder or in a bucket, written once or replaced."""

import contextlib
import importlib
import os
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Protocol
from urllib.parse import urlsplit

from kpyramid.errors import EndpointError, SettingsError
from kpyramid.storage.writing import sync_folder, write_and_sync, write_durably

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
        """See `BlobStore.read`."""
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
        """See `BlobStore.replace`."""
        write_durably(self._root / name, data)

    def delete(self, name: str) -> None:
        """See `BlobStore.delete`."""
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
        """See `BlobStore.read`."""
        with self._name_faults("read"):
            try:
                return bytes(self._store.get(name).bytes())
            except FileNotFoundError:
                return None

    def put_once(self, name: str, data: bytes) -> bytes:
        """See `BlobStore.put_once`."""
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
        """See `BlobStore.replace`."""
        with self._name_faults("write"):
            self._store.put(name, data, mode="overwrite", use_multipart=False)

    def delete(self, name: str) -> None:
        """See `BlobStore.delete`."""
        with self._name_faults("delete"), contextlib.suppress(FileNotFoundError):
            self._store.delete(name)

    def list(self, prefix: str = "") -> Iterator[Blob]:
        """See `BlobStore.list`."""
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
