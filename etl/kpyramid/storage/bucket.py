"""Buckets: stores at `s3://`, `gs://` and `az://` addresses, and copying folders to and from them.

Credentials, region and endpoint come from the usual variables of each service (`AWS_*`,
`GOOGLE_*`, `AZURE_STORAGE_*`), never from an address or a file of ours.
"""

import contextlib
import os
import re
import socket
import time
import uuid
from collections.abc import Iterable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from kpyramid.errors import EndpointError, IntegrityError, RefusedError, SettingsError
from kpyramid.keys import hash_bytes
from kpyramid.storage.items import do_at_once
from kpyramid.storage.store import Blob, BlobStore, FolderStore
from kpyramid.storage.writing import replace_file, sync_folder

_TIMEOUT = timedelta(seconds=30)
"""For one request to a bucket; the client retries as long again when the server fails."""
_CONFLICT_TRIES, _CONFLICT_WAIT = 8, 0.05
"""Tries, and seconds between them, after a 409: others write, and nobody has won yet."""
_PIECE = 2**23
"""Bytes per request: on a slow line they arrive within the time of a request."""
_WRITER = "writer"
"""Attribute of blobs that are created once: their writer."""
_PROBES = [f"writer {number}".encode() for number in range(8)]
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_KINDS = {"s3": "S3Store", "gs": "GCSStore", "az": "AzureStore"}
_VARIABLES = {
    "s3": "AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}

_SKEWED = "RequestTimeTooSkewed"
"""S3's error for requests signed more than a quarter of an hour from its own time."""
_S3_FAULT = re.compile(r"<Code>([^<]{1,100})</Code>\s*<Message>([^<]{1,300})</Message>")

T = TypeVar("T")


class BucketStore(BlobStore):
    """A `BlobStore` in a bucket that supports conditional writes.

    It is probed once, before the first write. A forked process opens its own.

    Raises:
        SettingsError: the address is none, or the extra s3 is not installed.
        EndpointError: a credential cannot be used.
    """

    def __init__(self, location: str) -> None:
        parts = urlsplit(location)
        if parts.username or parts.password or parts.query or parts.fragment:
            raise SettingsError(
                f"store {parts.scheme}://{parts.hostname}: a credential or parameter stands in the "
                "address; credentials and endpoint come from the AWS_* variables"
            )
        if parts.scheme not in _KINDS or not _BUCKET.fullmatch(parts.netloc):
            raise SettingsError(
                f"store {location}: give a folder, or s3://bucket/prefix (or gs://, az://)"
            )
        self._obstore = _import_obstore()
        prefix = parts.path.strip("/")
        self.place = f"{parts.scheme}://{parts.netloc}/{prefix}".rstrip("/")
        self._is_probed = False
        self.complete: set[str] = set()
        """Names that this process uploaded, or found complete."""
        options: dict[str, object] = {"timeout": _TIMEOUT, "connect_timeout": timedelta(seconds=5)}
        if find_endpoint().startswith("http://"):
            options["allow_http"] = True
        with self._name_faults("open"):
            self._store = getattr(self._obstore.store, _KINDS[parts.scheme])(
                parts.netloc,
                prefix=prefix or None,
                client_options=options,
                retry_config={"max_retries": 6, "retry_timeout": _TIMEOUT},
            )

    def read(self, name: str) -> bytes | None:
        with self._name_faults("read"):
            try:
                return bytes(self._store.get(name).bytes())
            except FileNotFoundError:
                return None

    def create(self, name: str, data: bytes) -> bool:
        """See `BlobStore.create`; a 409 is retried, a 412 has a winner.

        A server that wrote the blob may still answer with a failure, after which the client retries
        and finds it there: the blob names its writer.
        """
        self.probe()
        writer = uuid.uuid4().hex
        for number in range(_CONFLICT_TRIES):
            if self._create(name, data, writer):
                return True
            with self._name_faults("read"), contextlib.suppress(FileNotFoundError):
                return bool(self._store.get(name).attributes.get(_WRITER) == writer)
            time.sleep(_CONFLICT_WAIT * 2**number)
        raise EndpointError(
            f"store {self.place}: {name} is neither there nor can it be created; another writer "
            "may be stuck. Run the same command again"
        )

    def replace(self, name: str, data: bytes) -> None:
        self.probe()
        with self._name_faults("write"):
            self._store.put(name, data, mode="overwrite", use_multipart=False)

    def delete(self, name: str) -> None:
        with self._name_faults("delete"), contextlib.suppress(FileNotFoundError):
            self._store.delete(name)

    def list(self, prefix: str = "") -> Iterator[Blob]:
        with self._name_faults("list"):
            blobs = [
                Blob(meta["path"], meta["size"], meta["last_modified"].timestamp())
                for page in self._store.list(prefix or None, chunk_size=1000)
                for meta in page
            ]
        yield from sorted(blobs, key=lambda blob: blob.name)

    def find(self, name: str) -> Blob | None:
        """A blob by its name, without its bytes."""
        with self._name_faults("read"):
            try:
                meta = self._store.head(name)
            except FileNotFoundError:
                return None
        return Blob(name, meta["size"], meta["last_modified"].timestamp())

    def send(self, path: Path, name: str) -> None:
        """Uploads a file as a whole, replacing any blob of that name."""
        with self._name_faults("write"):
            self._store.put(name, path, mode="overwrite", chunk_size=_PIECE)

    def upload(self, folder: Path, name: str, *, last: str) -> None:
        """Uploads a folder's files below a name, `last` after all others.

        The copy is complete once it has `last`; then only missing files are sent, and `last` again:
        its time is that of the last use.
        """
        self.probe()
        there = {blob.name: blob.size for blob in self.list(name)}
        files = {
            f"{name}/{path.relative_to(folder).as_posix()}": path
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        mark = f"{name}/{last}"
        is_whole = mark in there  # else who began it was killed, and nothing of it is trusted
        missing = [
            target
            for target, path in files.items()
            if target != mark and not (is_whole and there.get(target) == path.stat().st_size)
        ]
        do_at_once(lambda target: self.send(files[target], target), missing)
        self.replace(mark, files[mark].read_bytes())

    def download(self, blobs: Iterable[Blob], name: str, folder: Path) -> None:
        """Downloads blobs from below a name into a folder, under their names there.

        Raises:
            FileNotFoundError: one was removed meanwhile.
        """

        def fetch(blob: Blob) -> None:
            path = folder / blob.name.removeprefix(f"{name}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            with replace_file(path) as file:
                for start in range(0, blob.size, _PIECE):
                    length = min(_PIECE, blob.size - start)
                    file.write(self._read_piece(blob.name, start, length))

        do_at_once(fetch, blobs)
        for path in [*folder.rglob("*"), folder]:
            if path.is_dir():
                sync_folder(path)

    def look(self) -> None:
        """Fails for a bucket that does not exist, which would read as empty."""
        with self._name_faults("read"):
            self._store.list_with_delimiter(None)

    def probe(self) -> None:
        """Refuses a server that ignores conditional writes: writers would overwrite each other.

        Several threads try to create one blob: a server may keep to the condition only while nobody
        else writes.

        Raises:
            EndpointError: it does, or it cannot be written to.
        """
        if self._is_probed:
            return
        for _ in range(_CONFLICT_TRIES):
            name = f"probes/{uuid.uuid4().hex}"
            try:
                created = do_at_once(partial(self._create, name), _PROBES)
            finally:
                with contextlib.suppress(EndpointError):
                    self.delete(name)
            if any(created):  # else each met another (409), and nobody has won
                break
        if sum(created) != 1:
            raise EndpointError(
                f"store {self.place}: of {len(created)} writers that create an object at once "
                f"{sum(created)} were told that they did. The server does not hold to conditional "
                "writes (If-None-Match), so writers would overwrite each other; use one that does, "
                "such as AWS S3, or a folder"
            )
        self._is_probed = True

    def _create(self, name: str, data: bytes, writer: str = "probe") -> bool:
        given = {"mode": "create", "use_multipart": False, "attributes": {_WRITER: writer}}
        with self._name_faults("write"):
            try:
                self._store.put(name, data, **given)
            except self._obstore.exceptions.AlreadyExistsError:
                return False
        return True

    def _read_piece(self, name: str, start: int, length: int) -> bytes:
        try:
            with self._name_faults("read", missing=False):
                piece = bytes(self._store.get_range(name, start=start, length=length))
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.place}/{name} was removed while it was read") from None
        if len(piece) != length:
            raise IntegrityError(
                f"{self.place}/{name}: {len(piece)} bytes came where {length} were asked for; "
                "run the command again"
            )
        return piece

    @contextlib.contextmanager
    def _name_faults(self, act: str, *, missing: bool = True) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, ValueError, self._obstore.exceptions.BaseError) as e:
            if isinstance(e, FileNotFoundError) and not missing:
                raise
            known = self._obstore.exceptions
            denied = isinstance(e, (known.PermissionDeniedError, known.UnauthenticatedError))
            reason = _summarise(str(e))
            check = f"Check that the bucket exists and {_VARIABLES[self.place[:2]]}"
            if reason.startswith(_SKEWED):
                check = f"Set the clock of {socket.gethostname()}: it is not the bucket's"
            raise (RefusedError if denied else EndpointError)(
                f"store {self.place}: cannot {act}: {reason}. {check}; what was kept is not lost"
            ) from e


def open_blobs(location: str | Path, *, read_only: bool = False) -> BlobStore:
    """The store in a local folder, which need not exist yet, or in a bucket.

    A bucket that will be written to is probed: it must not create a blob twice.

    Raises:
        SettingsError: it is neither, or the extra for buckets is not installed.
        EndpointError: the bucket cannot be used.
    """
    if "://" not in str(location):
        root = Path(location).absolute()
        if root.exists() and not root.is_dir():
            raise SettingsError(f"store {root} is a file; give a folder or s3://bucket/prefix")
        return FolderStore(root)
    bucket = BucketStore(str(location))
    if read_only:
        bucket.look()
    else:
        bucket.probe()
    return bucket


def find_endpoint() -> str:
    """The server that the variables name instead of S3's own; empty for none."""
    return os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""


def name_area(location: str) -> str:
    """The name of the local folder for a place; it differs by server."""
    place = location.rstrip("/")
    digest = hash_bytes(f"{find_endpoint()} {place}".encode())[:12]
    return f"{re.sub('[^a-z0-9.-]+', '-', place.partition('://')[2].lower())[:60]}-{digest}"


def _summarise(text: str) -> str:
    """The code and message of the server, else the client's message."""
    given = _S3_FAULT.search(text)
    if given:
        return f"{given[1]}: {given[2]}".rstrip(".")
    return " ".join(text.split("Debug source")[0].split())[:300]


def _import_obstore() -> Any:
    try:
        import obstore.exceptions
        import obstore.store
    except ImportError as e:
        raise SettingsError(
            "a store in a bucket needs the extra s3: pip install 'kpyramid[s3]', or give a folder"
        ) from e
    return obstore
