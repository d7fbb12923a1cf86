"""The corpus folder: its files, their hashes, and their bytes one file at a time."""

import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kpyramid.errors import InputError
from kpyramid.keys import hash_bytes, hash_file, hash_value


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of the corpus: its path below the folder, then its bytes or the reason for none."""

    path: str
    data: bytes
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """A listing of files with the sha256 of each; a file or folder that cannot be read has none.

    `problems`: the reason why a folder or a link is not read, by path.
    """

    root: Path
    files: Sequence[tuple[str, str | None]]
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """The hash of all paths and contents, the same wherever the folder lies."""
        return hash_value([[path, digest, self.problems.get(path)] for path, digest in self.files])

    def read_files(self) -> Iterator[SourceFile]:
        """The files in order of their paths, each read when it is asked for.

        Raises:
            InputError: a file changed since it was listed.
        """
        for path, digest in self.files:
            if digest is None:
                problem = "no regular file, not readable, or its name is not UTF-8"
                yield SourceFile(path, b"", self.problems.get(path, problem))
            else:
                yield SourceFile(path, _read_unchanged(self.root / path, digest))


@dataclass(frozen=True, slots=True)
class Unread:
    """Files or records of one ending that were refused for one reason, each with its detail."""

    reason: str
    ending: str
    refused: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        named = ", ".join(source for source, _ in self.refused[:_MOST_NAMED])
        more = f" and {rest} more" if (rest := len(self.refused) - _MOST_NAMED) > 0 else ""
        reason = self.reason.replace("_", " ")
        kind = f"{len(self.refused)} {self.ending or 'without ending'}, {reason}"
        return f"{kind}: {named}{more}. {self.refused[0][1]}"


_MOST_NAMED = 3


def list_corpus(location: Path, *, leave_out: Sequence[Path] = ()) -> Corpus:
    """The files of a folder, or the given file; hidden files and folders are skipped.

    Links are followed within the folder, and not read where they lead out of it. `leave_out`: the
    warehouse's folders; a corpus may contain them, but their files are no part of it.

    Raises:
        InputError: it does not exist, holds no file, or lies in the warehouse.
    """
    excluded = [Path(os.path.realpath(folder)) for folder in leave_out]
    if _lies_in(location, excluded):
        raise InputError(f"corpus {location} is inside the warehouse; move it to another folder")
    if location.is_file():
        return Corpus(location.parent, [_list_file(location.parent, location.name)])
    if not location.is_dir():
        raise InputError(f"corpus {location} does not exist; give a folder of text or one file")
    paths, unread = _walk_folders(location, excluded)
    if "" in unread:
        raise InputError(f"corpus {location}: {unread['']}")
    if not paths and not unread:
        raise InputError(f"corpus {location} has no file in it; docs/build.md lists the formats")
    files = [
        (_escape_name(path), None) if path in unread else _list_file(location, path)
        for path in sorted([*paths, *unread])
    ]
    return Corpus(location, files, {_escape_name(path): why for path, why in unread.items()})


_LEADS_OUT = "a link that leads out of the corpus folder; copy into it what shall be read"


def _walk_folders(root: Path, excluded: Sequence[Path]) -> tuple[list[str], dict[str, str]]:
    """Paths of the files below a folder, and the paths that are not read, with the reason.

    A folder is read once: links back to it would make the corpus endless. Links are followed
    last, so that a folder is listed by its real path.
    """
    paths: list[str] = []
    unread: dict[str, str] = {}
    seen: dict[tuple[int, int], str] = {}
    folders, links = [""], deque[str]()
    real = Path(os.path.realpath(root))
    while folders or links:
        folder = folders.pop() if folders else links.popleft()
        try:
            status = (root / folder).stat()
            with os.scandir(root / folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as e:
            unread[folder] = f"folder not readable: {e.strerror}"
            continue
        first = seen.setdefault((status.st_dev, status.st_ino), folder)
        if first != folder:
            where = _escape_name(first) or "the corpus folder itself"
            unread[folder] = f"a loop or a second way: it is {where}, whose files are read there"
            continue
        for entry in entries:
            leads_away = entry.is_symlink() or _is_folder(entry)
            if entry.name.startswith(".") or (leads_away and _lies_in(Path(entry.path), excluded)):
                continue
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink() and not _lies_in(Path(entry.path), [real]):
                unread[path] = _LEADS_OUT
            elif not _is_folder(entry):
                paths.append(path)
            elif entry.is_symlink():
                links.append(path)
            else:
                folders.append(path)
    return paths, unread


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # listed as a file that cannot be read, so that it is not passed over


def _lies_in(path: Path, folders: Sequence[Path]) -> bool:
    """Whether the path, its links followed, is one of the folders or below one."""
    if not folders:
        return False
    real = Path(os.path.realpath(path))  # Path.resolve raises at a link to itself
    return any(real.is_relative_to(folder) for folder in folders)


def name_former(path: Path, digest: str) -> Path:
    """The path for the former content of a replaced corpus file, for builds that listed it.

    The file is hidden, so that it is no part of the corpus.
    """
    return path.with_name(f".{path.name}.{digest[:16]}")


def _read_unchanged(path: Path, digest: str) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as e:
        raise InputError(f"{path} went away while the build read the corpus; build again") from e
    if hash_bytes(data) != digest:
        former = name_former(path, digest)
        data = former.read_bytes() if former.is_file() else data
    if hash_bytes(data) != digest:
        raise InputError(f"{path} changed while the build read the corpus; build again")
    return data


def _list_file(root: Path, path: str) -> tuple[str, str | None]:
    """A file's name and hash; a name that is not UTF-8 is escaped, and the file is not read."""
    name, file = _escape_name(path), root / path
    try:
        return name, hash_file(file) if name == path and file.is_file() else None
    except OSError:
        return name, None


def _escape_name(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode("utf-8")
