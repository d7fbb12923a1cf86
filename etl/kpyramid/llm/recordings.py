"""Replies as lines of JSON: what a cache exports, imports, and provider `replay` answers from.

A line is a reply's entry (`key`, `task`, `version`, `model`, `response`) and `sha256`, the hash of
the entry's canonical JSON; a line written by hand may lack it. A name that ends in `.gz` says that
the file is compressed.
"""

import contextlib
import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from kpyramid.errors import InputError
from kpyramid.llm.cache import ReplyEntry, dump_json, list_reply_values, read_reply_values
from kpyramid.warehouse.layout import sync_folder


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
            with _compress(path, file) as out:
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
        with path.open("rb") as file, _decompress(path, file) as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _read_line(number, line)
    except (EOFError, zlib.error, gzip.BadGzipFile) as e:
        yield DamagedLine(number + 1, f"the compressed file is damaged from here on: {e}")
    except OSError as e:
        raise InputError(f"recording {path} cannot be read: {e}") from e


def _write_line(entry: ReplyEntry) -> bytes:
    values = list_reply_values(entry)
    digest = hashlib.sha256(dump_json(values)).hexdigest()
    return dump_json({**values, "sha256": digest}) + b"\n"


def _read_line(number: int, line: bytes) -> ReplyEntry | DamagedLine:
    try:
        values = json.loads(line)
        if not isinstance(values, dict):
            raise ValueError("it is no object")
        entry = read_reply_values(values)
        digest = hashlib.sha256(dump_json(list_reply_values(entry))).hexdigest()
        if values.get("sha256", digest) != digest:
            raise ValueError("it was changed after it was written (sha256)")
    except (ValueError, RecursionError) as e:
        return DamagedLine(number, str(e))
    return entry


@contextlib.contextmanager
def _compress(path: Path, file: IO[bytes]) -> Iterator[IO[bytes]]:
    if path.suffix != ".gz":
        yield file
        return
    with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as out:
        yield cast("IO[bytes]", out)


@contextlib.contextmanager
def _decompress(path: Path, file: IO[bytes]) -> Iterator[IO[bytes]]:
    if path.suffix != ".gz":
        yield file
        return
    with gzip.GzipFile(fileobj=file) as lines:
        yield cast("IO[bytes]", lines)
