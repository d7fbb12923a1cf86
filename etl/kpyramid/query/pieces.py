"""Context cut into what a reader weighs: sentences of passages, and facts with their two sides."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.extraction.text.sentences import split_sentences
from kpyramid.query.matching import Word, split_words
from kpyramid.query.snapshot import LITERAL, Snapshot
from kpyramid.query.types import Evidence, Item
from kpyramid.query.values import Value, find_values


@dataclass(frozen=True, slots=True)
class Side:
    """What a fact speaks of at one end; a literal has no id."""

    entity: str | None
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Mention:
    """A name or noun phrase in a piece, by its characters there, with its entity type."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Piece:
    """A sentence or a fact in words, with its places.

    `sides` are a fact's head and tail and `relation` what joins them. `around` is the text that
    a sentence stands in, its title first; `rank` is the item's place in the context, from 0.
    """

    text: str
    evidence: tuple[Evidence, ...]
    rank: int
    layer: str
    sides: tuple[Side, Side] | None = None
    relation: str = ""
    around: tuple[Word, ...] = ()
    mentions: tuple[Mention, ...] = ()

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """Its words."""
        return split_words(self.text)

    @cached_property
    def values(self) -> list[Value]:
        """Its dates and numbers."""
        return find_values(self.text)

    def cite(self, start: int, end: int) -> tuple[Evidence, ...]:
        """Its places; `start` and `end` are of what it is cited for, kept for a sentence whole."""
        return self.evidence


def cut_items(items: Sequence[Item], snapshot: Snapshot) -> list[Piece]:
    """The pieces of a context in its order; passages that overlap give a sentence once."""
    places = [place for item in items if item.layer == "text" for place in item.evidence]
    titles = _read_titles({place.document_id for place in places}, snapshot)
    mentions = _read_mentions({place.chunk_id for place in places}, snapshot)
    pieces: list[Piece] = []
    seen: set[tuple[str, int, int]] = set()
    for rank, item in enumerate(items):
        if item.layer == "text" and item.evidence:
            for place in item.evidence:
                title = titles.get(place.document_id, "")
                around = split_words(f"{title}\n{place.text}")
                for sentence in _split(place):
                    key = (sentence.document_id, sentence.start, sentence.end)
                    if key in seen:
                        continue
                    seen.add(key)
                    inside = _find_inside(sentence, mentions.get(place.chunk_id, []))
                    pieces.append(
                        Piece(
                            sentence.text,
                            (sentence,),
                            rank,
                            item.layer,
                            around=around,
                            mentions=inside,
                        )
                    )
        else:
            pieces.append(_read_fact(item, rank, snapshot))
    return pieces


def _read_fact(item: Item, rank: int, snapshot: Snapshot) -> Piece:
    sides, relation = None, ""
    if item.key.startswith("condensed-"):
        head_id, head, head_type, relation, tail_id, tail, kind = snapshot.state_condensed(item.key)
        sides = (Side(head_id, head, head_type), Side(tail_id, tail, kind))
    elif item.key.startswith("instance-"):
        sides, relation = _read_instance(item.key, snapshot)
    return Piece(item.text, item.evidence, rank, item.layer, sides, relation)


def _read_instance(key: str, snapshot: Snapshot) -> tuple[tuple[Side, Side] | None, str]:
    table = snapshot.table("instances")
    rows = table.filter(pc.equal(table["instance_id"], key)).to_pylist()
    if not rows or not rows[0]["property_iri"]:
        return None, ""
    row = rows[0]
    subject, value = row["subject_id"], row["object_id"]
    tail = (
        Side(value, snapshot.names[value], snapshot.types[value])
        if value
        else Side(None, row["literal"], LITERAL)
    )
    relation = snapshot.schema.property_by_iri[row["property_iri"]].label
    return (Side(subject, snapshot.names[subject], snapshot.types[subject]), tail), relation


def _split(place: Evidence) -> list[Evidence]:
    return [
        Evidence(
            place.document_id,
            place.chunk_id,
            place.start + span.start,
            place.start + span.end,
            place.text[span.start : span.end],
            place.source,
        )
        for span in split_sentences(place.text)
    ]


def _find_inside(sentence: Evidence, rows: Sequence[Any]) -> tuple[Mention, ...]:
    return tuple(
        Mention(start - sentence.start, end - sentence.start, kind)
        for start, end, kind in rows
        if sentence.start <= start and end <= sentence.end
    )


def _read_mentions(chunks: set[str], snapshot: Snapshot) -> dict[str, list[tuple[int, int, str]]]:
    table = snapshot.table("mentions")
    known = pa.array(sorted(chunks), pa.string())
    rows = table.filter(pc.is_in(table["chunk_id"], known)).select(
        ["chunk_id", "start", "end", "type"]
    )
    found: dict[str, set[tuple[int, int, str]]] = {}
    for row in rows.to_pylist():
        found.setdefault(row["chunk_id"], set()).add((row["start"], row["end"], row["type"]))
    return {chunk: sorted(spans) for chunk, spans in found.items()}


def _read_titles(documents: set[str], snapshot: Snapshot) -> dict[str, str]:
    table = snapshot.table("documents").select(["document_id", "title"])
    known = pa.array(sorted(documents), pa.string())
    rows = table.filter(pc.is_in(table["document_id"], known)).to_pylist()
    return {row["document_id"]: row["title"] or "" for row in rows}


def read_surface_forms(entities: Sequence[str], snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """All names of some entities, by their ids."""
    table = snapshot.table("entities").select(["entity_id", "surface_forms"])
    known = pa.array(sorted(set(entities)), pa.string())
    rows = table.filter(pc.is_in(table["entity_id"], known)).to_pylist()
    return {row["entity_id"]: tuple(row["surface_forms"]) for row in rows}
