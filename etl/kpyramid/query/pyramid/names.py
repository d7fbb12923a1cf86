"""The entities that names and words of names stand for, found in files of any size."""

from collections.abc import Iterator, Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt

from kpyramid.indexing.wording import MOST_SHARED, hash_name
from kpyramid.indexing.words import Mask
from kpyramid.query.pyramid.index import Index


class EntitiesByName(Mapping[str, tuple[str, ...]]):
    """The ids of the entities that have a name, in their order; `prefix` is put before each.

    A name of entities that are not `seen` is known and stands for none.
    """

    def __init__(self, index: Index, prefix: str = "", seen: Mask | None = None) -> None:
        self._index = index
        self._prefix = prefix
        self._seen = seen

    def __getitem__(self, name: str) -> tuple[str, ...]:
        rows, hashes = self._index.rows("names"), self._hashes
        wanted = np.uint64(hash_name(name))
        at = int(hashes.searchsorted(wanted))
        while at < len(hashes) and hashes[at] == wanted:
            if rows.value("name", at) == name:
                return self.name_rows(rows.list_of("entities", at).tolist())
            at += 1
        raise KeyError(name)

    @cached_property
    def _hashes(self) -> npt.NDArray[np.uint64]:
        return self._index.rows("names").numbers("hash")

    def __iter__(self) -> Iterator[str]:
        rows = self._index.rows("names")
        return (rows.value("name", at) for at in range(len(rows)))

    def __len__(self) -> int:
        return len(self._index.rows("names"))

    def name_rows(self, rows: list[int]) -> tuple[str, ...]:
        """The ids of rows of the entities."""
        keys = self._index.rows("entities").keys
        seen = rows if self._seen is None else [row for row in rows if self._seen[row]]
        return tuple(self._prefix + keys[row] for row in seen)

    def with_word(self, word: str) -> tuple[str, ...]:
        """The entities with a word in one of their names; none for one that too many share."""
        words = self._index.rows("name_words")
        at = words.find(word)
        return () if at is None else self.name_rows(words.list_of("entities", at).tolist())

    def with_start(self, start: str) -> tuple[str, ...]:
        """The entities with a word in one of their names that begins so."""
        words = self._index.rows("name_words")
        found: set[int] = set()
        for at in words.keys.starting(start):
            found.update(words.list_of("entities", at).tolist())
            if len(found) > MOST_SHARED:
                return ()
        return self.name_rows(sorted(found))

    def list_names(self, entity_id: str) -> tuple[str, ...]:
        """The names of an entity in the form of `join_words`; none for an unknown id."""
        entities = self._index.rows("entities")
        row = entities.find(entity_id.removeprefix(self._prefix))
        return () if row is None else tuple(entities.value("names", row))
