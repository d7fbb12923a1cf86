"""Erased documents, which later builds leave out for ever."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from kpyramid.errors import OvertakenError
from kpyramid.keys import JsonValue, content_id
from kpyramid.storage.layout import Warehouse, explain_damage

TOMBSTONES = "erased"

# A tombstone holds hashes only: the name of a file may be a person's, as its text may.


@dataclass(frozen=True, slots=True)
class Erased:
    """The erased sources, as hashes, and texts, by sha256."""

    sources: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    def holds(self, source: str, sha256: str) -> bool:
        """Whether a document of that source, or with that text, was erased."""
        return sha256 in self.texts or hash_source(source) in self.sources

    def require_none(self, sources: Sequence[str], texts: Sequence[str]) -> None:
        """Passes when none of these documents was erased since a run read the corpus.

        Raises:
            OvertakenError: one was.
        """
        if any(map(self.holds, sources, texts)):
            raise OvertakenError(
                "a document was erased since this run read the corpus, and is in its tables: "
                "nothing was published. Build again as a new run, then `kpyramid erase` it again, "
                "for what this run stored"
            )

    @property
    def digest(self) -> str | None:
        """The hash of all that was erased; None for nothing."""
        listed: list[JsonValue] = [*sorted(self.sources), *sorted(self.texts)]
        return content_id("erased", listed) if listed else None

    def mark(self, corpus: str) -> str:
        """The fingerprint of a corpus without the erased documents."""
        return content_id("corpus", corpus, self.digest) if self.texts else corpus


def hash_source(source: str) -> str:
    """The hash of a source in a tombstone."""
    return content_id("source", source)


def load_erased(warehouse: Warehouse) -> Erased:
    """The tombstones of a warehouse.

    Raises:
        IntegrityError: one cannot be read; a build would take in what it stands for.
    """
    rows = []
    for name in [blob.name for blob in warehouse.store.list(TOMBSTONES)]:
        with explain_damage(
            f"tombstone {warehouse.locate(name)}",
            ", so what was erased could come back and nothing was built; restore it, or erase the "
            "document again",
        ):
            row = json.loads(warehouse.store.read(name) or b"")
            rows.append((str(row["source"]), str(row["text"])))
    return Erased(frozenset(row[0] for row in rows), frozenset(row[1] for row in rows))


def keep_tombstone(warehouse: Warehouse, document_id: str, source: str, sha256: str) -> None:
    """Writes a tombstone, so that every later build leaves out a source and a text."""
    row = {"document_id": document_id, "source": hash_source(source), "text": sha256}
    warehouse.store.replace(_name(document_id), json.dumps(row, indent=1).encode())


def has_tombstone(warehouse: Warehouse, document_id: str) -> bool:
    """Whether the erasure of a document was begun."""
    return warehouse.store.read(_name(document_id)) is not None


def _name(document_id: str) -> str:
    return f"{TOMBSTONES}/{document_id}.json"
