"""The corpus folder: which files it has, their hashes, their bytes one at a time."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kpyramid.errors import InputError
from kpyramid.keys import hash_bytes, hash_value


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of the corpus: its path below the folder, then bytes or why there are none."""

    path: str
    data: bytes
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """A listing of files with the sha256 of each; a file that cannot be read has none."""

    root: Path
    files: Sequence[tuple[str, str | None]]

    @property
    def fingerprint(self) -> str:
        """The hash of all paths and contents, the same wherever the folder lies."""
        return hash_value([list(file) for file in self.files])

    def read_files(self) -> Iterator[SourceFile]:
        """The files in order of their paths, each read when it is asked for.

        Raises:
            InputError: a file changed since it was listed.
        """
        for path, digest in self.files:
            if digest is None:
                yield SourceFile(
                    path, b"", "no regular file, not readable, or its name is not UTF-8"
                )
                continue
            data = (self.root / path).read_bytes()
            if hash_bytes(data) != digest:
                raise InputError(
                    f"{self.root / path} changed while the build read the corpus; build again"
                )
            yield SourceFile(path, data)


def list_corpus(location: Path) -> Corpus:
    """The files of a folder, or the one file given; hidden files and folders are left aside.

    Raises:
        InputError: it does not exist, or holds no file.
    """
    if location.is_file():
        return Corpus(location.parent, [_list_file(location.parent, location.name)])
    if not location.is_dir():
        raise InputError(f"corpus {location} does not exist; give a folder of text or one file")
    paths = sorted(
        path.relative_to(location).as_posix()
        for path in location.rglob("*")
        if not path.is_dir() and not _is_hidden(path.relative_to(location))
    )
    if not paths:
        raise InputError(f"corpus {location} has no file in it; README.md lists the formats")
    return Corpus(location, [_list_file(location, path) for path in paths])


def _list_file(root: Path, path: str) -> tuple[str, str | None]:
    """Its name and hash; a name that is not UTF-8 is escaped, and its file not read."""
    name = path.encode("utf-8", "backslashreplace").decode("utf-8")
    return name, _hash_file(root / path) if name == path else None


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _hash_file(path: Path) -> str | None:
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
