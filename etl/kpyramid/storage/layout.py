"""The folders of a warehouse."""

from dataclasses import dataclass
from pathlib import Path

from kpyramid.errors import InputError


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A folder with everything that builds make; `README.md` of `warehouse/` draws it."""

    root: Path

    @property
    def cache(self) -> Path:
        return self.root / "cache"

    @property
    def snapshots(self) -> Path:
        return self.root / "snapshots"

    @property
    def refs(self) -> Path:
        return self.root / "refs"

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def staging(self) -> Path:
        return self.root / "staging"

    @property
    def leases(self) -> Path:
        return self.root / "leases"

    @property
    def trash(self) -> Path:
        return self.root / "trash"

    @property
    def folders(self) -> tuple[Path, ...]:
        """All folders that hold the warehouse's own files."""
        places = (self.cache, self.snapshots, self.refs, self.runs)
        return (*places, self.staging, self.leases, self.trash)


def open_warehouse(location: str | Path) -> Warehouse:
    """The warehouse in a local folder, which need not exist yet.

    Raises:
        InputError: the location is a URL or a file.
    """
    if "://" in str(location):
        raise InputError(f"warehouse {location}: only local folders are supported; give a path")
    root = Path(location).absolute()
    if root.exists() and not root.is_dir():
        raise InputError(f"warehouse {root} is a file; give a folder")
    return Warehouse(root)
