"""A table that has no index, for ablations: its vectors read whole and compared exactly."""

from bisect import bisect_left

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.embeddings.port import Matrix
from kpyramid.indexing.nearest import rank_exactly
from kpyramid.indexing.words import HeldPostings, Mask, rank_words


class HeldTable:
    """The rows of one owner table in `vectors`; searched as a `Part` of the index is."""

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
