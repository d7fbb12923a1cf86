"""Exported snapshots, as a folder or a tarball: copied out, imported, and listed."""

import json
import logging
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kpyramid.errors import InputError, IntegrityError, PyramidError, RefusedError
from kpyramid.keys import content_id
from kpyramid.storage.copies import bring_corpus, find_corpus, is_there, remove
from kpyramid.storage.erasure import load_erased
from kpyramid.storage.layout import Warehouse, is_address, stage_folder
from kpyramid.storage.publication import settle
from kpyramid.storage.snapshots import (
    MANIFEST,
    SNAPSHOT_ID,
    SUMS,
    identify_folder,
    list_table,
    read_manifest,
    require_format,
)
from kpyramid.storage.verification import check_bytes, check_tables, require_whole

_MOST_MEMBERS = 1_000
"""Most files and folders; a snapshot has some two hundred."""
_MOST_LISTED = 2**24
"""Most bytes of a manifest or of a list of sums; those of a snapshot have some 10,000."""
_MEMBER = re.compile(r"\w[\w.-]*(/\w[\w.-]*){0,3}", re.ASCII)
_ZSTD = b"\x28\xb5\x2f\xfd"

log = logging.getLogger(__name__)


def _list_members(folder: Path) -> dict[str, int]:
    """The files of a snapshot by its manifest, with their sizes; the manifest is first.

    Raises:
        InputError: the folder is no snapshot.
        IntegrityError: the manifest is damaged, or names what no snapshot has.
    """
    try:
        if (folder / MANIFEST).is_file() and (folder / MANIFEST).stat().st_size > _MOST_LISTED:
            raise IntegrityError(f"{MANIFEST} has more than {_MOST_LISTED:,} bytes")
        files: Any = read_manifest(folder).get("files")
        sizes = {name: entry["bytes"] for name, entry in sorted(files.items())}
        wrong = [
            name
            for name, size in sizes.items()
            if not _MEMBER.fullmatch(name) or name in (MANIFEST, SUMS) or int(size) < 0
        ]
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as e:
        raise IntegrityError(f"{MANIFEST} is damaged: it lists no files") from e
    if wrong or len(sizes) > _MOST_MEMBERS:
        raise IntegrityError(f"{MANIFEST} lists {wrong[0] if wrong else len(sizes)!r} as files")
    return {MANIFEST: _MOST_LISTED, SUMS: _MOST_LISTED, **sizes}


def copy_folder(folder: Path, target: Path) -> None:
    """Copies a snapshot's files, and checks every byte of the copy; the caller syncs it.

    Raises:
        IntegrityError: the snapshot is damaged.
    """
    for name in _list_members(folder):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(folder / name, target / name)
        except FileNotFoundError as e:
            raise IntegrityError(f"{name} is missing") from e
    require_whole(target, "", folder)


def write_tarball(folder: Path, target: Path) -> None:
    """Writes a snapshot as `.tar.zst`, the same bytes each time: no times, no owners, sorted.

    The manifest is first, so that whoever unpacks it knows the files that follow and their sizes.

    Raises:
        IntegrityError: the snapshot is damaged.
    """
    require_whole(folder, "")
    top = identify_folder(folder)
    with (
        pa.CompressedOutputStream(str(target), "zstd") as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.GNU_FORMAT) as tar,
    ):
        for name in _list_members(folder):
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = (folder / name).stat().st_size
            with (folder / name).open("rb") as file:
                tar.addfile(member, file)


def import_snapshot(warehouse: Warehouse, place: str | Path) -> tuple[str, bool]:
    """Imports an exported folder or tarball; returns its id, and whether it is new.

    It is here, or at an address, from which it is copied first. All of it is checked: names, bytes,
    contracts, references, spans. Only the files that its manifest names are written, below
    `staging/`, each no longer than the manifest says. The checks prove that it is unaltered, not
    who made it: for that compare the id.

    Raises:
        InputError: there is no snapshot there, no room for it, it is of a newer format, or it has a
            document that was erased from the warehouse.
        IntegrityError: something in it is altered, missing, too much, or no plain file.
    """
    with ExitStack() as stack:
        if is_address(place):
            _, blobs = find_corpus(str(place), what="snapshot")
            if not {MANIFEST, PurePosixPath(str(place)).name} & {blob.name for blob in blobs}:
                raise InputError(
                    f"{place} holds no {MANIFEST}: name a snapshot's folder or tarball"
                )
            path = stack.enter_context(bring_corpus(warehouse, str(place), "snapshot"))
        else:
            path = Path(place)
        folder = stack.enter_context(stage_folder(warehouse))
        try:
            named = (_copy if path.is_dir() else _unpack)(path, folder)
            if is_address(place) and path.is_dir():
                named = PurePosixPath(str(place)).name
            require_format(read_manifest(folder), PurePosixPath(str(place)).name)
            identifier, problems = identify_folder(folder), check_bytes(folder)
            if SNAPSHOT_ID.fullmatch(named) and named != identifier:
                problems = [f"its name is {named}, and its id {identifier}", *problems]
            if problems := problems or check_tables(folder):
                raise IntegrityError(f"altered or damaged: {'; '.join(problems[:5])}")
        except IntegrityError as e:
            raise IntegrityError(f"{place}: {e}. Nothing was imported") from e
        _refuse_erased(warehouse, folder, str(place))
        return identifier, settle(warehouse, folder, identifier)


def _refuse_erased(warehouse: Warehouse, folder: Path, place: str) -> None:
    erased = load_erased(warehouse)
    for file in list_table(folder, "documents"):
        documents = pq.read_table(file, columns=["source", "sha256"]).to_pylist()
        if any(erased.holds(row["source"], row["sha256"]) for row in documents):
            raise InputError(
                f"{place} has a document that was erased from {warehouse.locate()}, and would "
                "bring it back. Nothing was imported; import a snapshot that was built without it"
            )


def _copy(source: Path, folder: Path) -> str:
    """Copies the files that a folder's manifest names, if there are no others; returns its name."""
    for number, path in enumerate(source.rglob("*")):
        if number >= _MOST_MEMBERS:
            raise IntegrityError(f"holds more than {_MOST_MEMBERS} files and folders")
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise IntegrityError(f"{path.relative_to(source)} is a link or no regular file")
    members = _list_members(source)
    _require_room(folder, members)
    if more := [p for p in source.rglob("*") if p.is_file() and _name(p, source) not in members]:
        raise IntegrityError(f"{_name(more[0], source)} is not listed in {MANIFEST}")
    copy_folder(source, folder)
    return source.resolve().name


def _name(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _require_room(folder: Path, members: dict[str, int]) -> None:
    size, free = sum(members.values()) - 2 * _MOST_LISTED, shutil.disk_usage(folder).free
    if size > free:
        raise InputError(f"the snapshot has {size:,} bytes; {folder.parent} has room for {free:,}")


class _Bounded:
    """A stream of which at most `left` bytes may be read, whatever a header asks for."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.left = 2 * _MOST_LISTED

    def read(self, size: int) -> bytes:
        try:
            data: bytes = self._stream.read(min(size, self.left + 1))
        except (pa.ArrowException, OSError) as e:
            raise IntegrityError(f"cannot be unpacked: {e}") from e
        self.left -= len(data)
        if self.left < 0:
            raise IntegrityError("unpacks to more than its manifest says")
        return data


@contextmanager
def _open_stream(path: Path) -> Iterator[Any]:
    """A `_Bounded` stream of a file's unpacked bytes."""
    if not path.is_file():  # opening a pipe would wait
        raise InputError(f"{path} is no file; name a snapshot's folder or tarball")
    with path.open("rb") as file:
        is_packed = file.read(len(_ZSTD)) == _ZSTD
        file.seek(0)
        if is_packed:
            with pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd") as stream:
                yield _Bounded(stream)
        else:
            yield _Bounded(file)


def _unpack(path: Path, folder: Path) -> str:
    """Writes a tarball's files in order, if the manifest names them; returns the folder's name."""
    members: dict[str, int] = {}
    top: str | None = None
    try:
        with _open_stream(path) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            for number, member in enumerate(tar):
                if number >= _MOST_MEMBERS:
                    raise IntegrityError(f"holds more than {_MOST_MEMBERS} members")
                if member.isdir():
                    continue
                if not member.isreg() or member.issparse():
                    raise IntegrityError(f"{member.name!r} is a link, a device or no plain file")
                if top is None:
                    top, members = _find_top(member.name), {MANIFEST: _MOST_LISTED}
                name = member.name.removeprefix(top)
                if not member.name.startswith(top) or member.size > members.pop(name, -1):
                    raise IntegrityError(
                        f"{member.name!r} is not in its manifest, comes twice, or is too long"
                    )
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                held = tar.extractfile(member)
                assert held is not None, "it is a regular file"
                with (folder / name).open("xb") as file:
                    shutil.copyfileobj(held, file)
                if name == MANIFEST:
                    members = _list_members(folder)
                    _require_room(folder, members)
                    del members[MANIFEST]
                    stream.left += sum(members.values())
    except (tarfile.TarError, ValueError, OverflowError) as e:
        raise IntegrityError(f"is no tarball of a snapshot: {e}") from e
    return PurePosixPath(top or "").name


def _find_top(name: str) -> str:
    """The prefix of all file names, from the name of the first file, which is the manifest."""
    top, manifest, after = name.rpartition(MANIFEST)
    if not manifest or after or (top and not top.endswith("/")):
        raise IntegrityError(
            f"begins with {name!r} and not with {MANIFEST}; `kpyramid export --to tar` writes it "
            "first. A tarball made otherwise: unpack it, and import the folder"
        )
    return top


# Exports are noted in the warehouse, so that an erasure can name the copies of a document.

_EXPORTS = "exports"


@dataclass(frozen=True, slots=True)
class Exported:
    """An export of a snapshot: its form, and its path or address.

    `corpus` and `ref`: those of an export that Airflow repeats when the ref moves, else empty.
    `is_whole`: set once all of it is there. `fault`: why it cannot be made, until that is fixed.
    """

    snapshot: str
    form: str
    place: str
    corpus: str = ""
    ref: str = ""
    is_whole: bool = False
    fault: str = ""

    @property
    def note(self) -> str:
        """The note's name in the warehouse's store."""
        return f"{_EXPORTS}/{self.snapshot}-{content_id('export', self.place)}.json"


@contextmanager
def note_export(warehouse: Warehouse, exported: Exported) -> Iterator[None]:
    """Notes an export before it is made, and again when it is whole; a failed one leaves no note.

    If the warehouse is read-only, a warning says that nothing was noted.
    """
    try:
        keep_note(warehouse, exported)
        yield
    except BaseException:
        with suppress(PyramidError, OSError):
            if not is_there(exported.place):
                warehouse.store.delete(exported.note)
        raise
    keep_note(warehouse, replace(exported, is_whole=True))


def keep_note(warehouse: Warehouse, exported: Exported) -> None:
    """Replaces the note of an export."""
    try:
        warehouse.store.replace(exported.note, json.dumps(asdict(exported)).encode())
    except (RefusedError, OSError) as e:
        log.warning("%s is not noted, so `erase` will not name it: %s", exported.place, e)


def list_exports(warehouse: Warehouse) -> list[Exported]:
    """The noted exports; unreadable notes are logged as warnings."""
    names, exports = [blob.name for blob in warehouse.store.list(_EXPORTS)], []
    for name, data in zip(names, warehouse.read_all(names), strict=True):
        try:
            exports += [Exported(**json.loads(data))] if data else []
        except (ValueError, TypeError) as e:
            log.warning("note of an export %s cannot be read: %s", warehouse.locate(name), e)
    return exports


def remove_export(warehouse: Warehouse, exported: Exported) -> None:
    """Removes an export and its note."""
    remove(exported.place)
    warehouse.store.delete(exported.note)
