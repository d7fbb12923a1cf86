"""Rows of the text layer by their keys: embedded words, vectors, the names in them."""

import re
from collections import defaultdict
from collections.abc import Sequence
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.embeddings.port import Matrix
from kpyramid.query.snapshot import Snapshot

_NO_NAMES = frozenset(
    "NOUN DATE TIME CARDINAL ORDINAL PERCENT QUANTITY MONEY LANGUAGE NORP".split()
)
_WORD = re.compile(r"\w+")
_ARTICLES = frozenset({"a", "an", "the"})


class ReachedChunks:
    """The chunks of a snapshot by key."""

    def __init__(self, snapshot: Snapshot) -> None:
        vectors = snapshot.table("vectors")
        part = vectors.filter(pc.equal(vectors["owner_table"], "chunks")).combine_chunks()
        self._rows = {key: row for row, key in enumerate(part["owner_id"].to_pylist())}
        self._texts = part["text"].to_pylist()
        if self._rows:
            column = part["vector"].combine_chunks()
            flat = column.flatten().to_numpy(zero_copy_only=False)
            self._vectors = flat.reshape(-1, column.type.list_size)
        else:
            self._vectors = np.zeros((0, 0), np.float32)
        mentions = snapshot.table("mentions")
        named = mentions.filter(
            pc.invert(pc.is_in(mentions["type"], pa.array(sorted(_NO_NAMES), pa.string())))
        )
        self._names: dict[str, dict[str, int]] = defaultdict(dict)
        columns = (named[name].to_pylist() for name in ("chunk_id", "text", "start"))
        for chunk, text, start in zip(*columns, strict=True):
            name = join_name(text)
            places = self._names[chunk]
            if name:
                places[name] = min(start, places.get(name, start))

    def texts_of(self, keys: Sequence[str]) -> list[str]:
        """Title and text of chunks, as they were embedded."""
        return [self._texts[self._rows[key]] for key in keys]

    def vectors_of(self, keys: Sequence[str]) -> Matrix:
        """The vectors of chunks, a row each."""
        rows: Matrix = self._vectors[[self._rows[key] for key in keys]]
        return rows

    def names_in(self, key: str) -> list[str]:
        """The names in a chunk in the form of `join_name`, first place first."""
        places = self._names.get(key, {})
        return sorted(places, key=lambda name: (places[name], name))


_REACHED: "WeakKeyDictionary[Snapshot, ReachedChunks]" = WeakKeyDictionary()


def reach_chunks(snapshot: Snapshot) -> ReachedChunks:
    """The chunks of a snapshot, read once."""
    if snapshot not in _REACHED:
        _REACHED[snapshot] = ReachedChunks(snapshot)
    return _REACHED[snapshot]


def join_name(text: str) -> str:
    """The words of a name in small letters, without an article before them."""
    words = _WORD.findall(text.casefold())
    while words and words[0] in _ARTICLES:
        words = words[1:]
    return " ".join(words)
