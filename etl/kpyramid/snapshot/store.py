"""The files of one snapshot, whole: what only a view of it may read.

Nothing here knows of scopes. `View` is the one reader of a store; whoever reads a store besides
it (the ablations, which make another snapshot of it) shows nothing of it to anybody.
"""

from bisect import bisect_left
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import JsonValue
from kpyramid.snapshot.index import Index, Part
from kpyramid.snapshot.mapped import FORMAT, SEARCHED
from kpyramid.snapshot.nearest import rank_exactly
from kpyramid.snapshot.words import HeldPostings, Mask, rank_words
from kpyramid.storage.contracts import load_contracts, read_table
from kpyramid.storage.snapshots import identify_folder, read_manifest

SCHEMA = "ontology/schema.ttl"
INSTANCES = "ontology/instances.nt"
SEED = "ontology/seed.ttl"
"""The schema that a snapshot's ontology grew from."""


class Store:
    """Manifest, tables, index and texts of one snapshot's folder; each is read when asked for.

    Raises:
        InputError: another version built the snapshot.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.id = identify_folder(folder)
        self.manifest: dict[str, JsonValue] = read_manifest(folder)
        if self.manifest.get("format") != FORMAT:
            raise InputError(
                f"snapshot {self.id} was built by another version (its format is "
                f"{self.manifest.get('format')}, this version reads {FORMAT}); `kpyramid build "
                "CORPUS` makes it anew: what is in the warehouse's caches costs nothing"
            )
        self.index = Index(folder, self.manifest)
        self._tables: dict[str, pa.Table] = {}
        self._held: dict[str, HeldTable] = {}

    def table(self, name: str) -> pa.Table:
        """One table, read whole.

        Raises:
            InputError: there is no table of that name, or the snapshot is gone.
            IntegrityError: the file is damaged.
        """
        if name not in load_contracts():
            raise InputError(f"no table {name!r}; there are {', '.join(load_contracts())}")
        if name not in self._tables:
            self._require_folder()
            path = self.folder / "tables" / f"{name}.parquet"
            self._tables[name] = read_table(path, load_contracts()[name])
        return self._tables[name]

    def part(self, table: str) -> "Part | HeldTable":
        """What a table is searched by: its index, or for the ablations' tables their vectors."""
        if table in SEARCHED:
            self.index.require_whole()
            return self.index.part(table)
        if table not in self._held:
            self._held[table] = HeldTable(self.table("vectors"), table)
        return self._held[table]

    def holds(self, name: str) -> bool:
        """Whether the manifest lists a file."""
        files = self.manifest.get("files")
        return isinstance(files, dict) and name in files

    def read_text(self, name: str) -> str:
        """A text file of the snapshot.

        Raises:
            InputError: the snapshot is gone.
            IntegrityError: the file cannot be read.
        """
        self._require_folder()
        try:
            return (self.folder / name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as e:
            raise IntegrityError(f"snapshot {self.id}: {name} cannot be read: {e}") from e

    def _require_folder(self) -> None:
        if not self.folder.is_dir():
            gone = f"snapshot {self.id} is no longer in {self.folder.parent}"
            raise InputError(f"{gone}; it was removed while it was open. Open the ref again")


class HeldTable:
    """A table that has no index, for ablations: its vectors read whole and compared exactly.

    The rows of one owner table in `vectors`; searched as a `Part` of the index is.
    """

    def __init__(self, vectors: pa.Table, table: str) -> None:
        part = vectors.filter(pc.equal(vectors["owner_table"], table)).combine_chunks()
        column = part["vector"].combine_chunks()
        flat = column.flatten().to_numpy(zero_copy_only=False)
        self.keys: list[str] = part["owner_id"].to_pylist()
        self.matrix: Matrix = flat.reshape(-1, column.type.list_size)
        self._texts: list[str] = part["text"].to_pylist()
        self._postings: HeldPostings | None = None

    def __len__(self) -> int:
        return len(self.keys)

    def text_of(self, row: int) -> str:
        """The words that a row was embedded by."""
        return self._texts[row]

    def locate(self, key: str) -> int:
        """The row of a key.

        Raises:
            KeyError: it is unknown.
        """
        at = bisect_left(self.keys, key)
        if at == len(self.keys) or self.keys[at] != key:
            raise KeyError(key)
        return at

    def nearest(self, vector: Matrix, k: int, mask: Mask | None = None) -> list[tuple[int, float]]:
        """See `Part.nearest`; exact at any size."""
        return rank_exactly(self.matrix, vector, k, mask) if k > 0 and len(self) else []

    def words(self, text: str, k: int, mask: Mask | None = None) -> list[tuple[int, float]]:
        """See `Part.words`."""
        if self._postings is None:
            self._postings = HeldPostings(self._texts)
        return rank_words(text, self._postings, len(self), k, mask)
