"""The knowledge graph as columns, and in words with its evidence where a stage asks for it."""

from collections.abc import Collection, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.completion.types import (
    LITERAL,
    GraphLayer,
)
from kpyramid.documents.sentences import Span
from kpyramid.documents.words import IS_A, normalise_relation
from kpyramid.numerics.arrays import Integers
from kpyramid.ontology.population.checking import Kinds, Mention
from kpyramid.pipeline.stages.instances import NamedTriple, Places, list_facts
from kpyramid.storage.columns import TextColumn
from kpyramid.storage.contracts import combine_column, find_rows, map_column

_BLOCK = 4096
"""Facts in words at a time: with what their tables say of them some 8 kB each."""


class Graph:
    """The facts of the tables, in the order of `triples`.

    Millions of them fit in memory as columns of codes; as objects, with all places where they are
    stated, they would not.
    """

    def __init__(
        self,
        documents: pa.Table,
        chunks: pa.Table,
        claims: pa.Table,
        raw_triples: pa.Table,
        entities: pa.Table,
        relations: pa.Table,
        triples: pa.Table,
    ) -> None:
        self._documents, self._chunks = documents, chunks
        self._claims, self._raw_triples = claims, raw_triples
        self._entities, self._relations, self._triples = entities, relations, triples
        self._heads = find_rows(triples["head_id"], entities["entity_id"])
        self._tails = find_rows(triples["tail_id"], entities["entity_id"])
        self._said = find_rows(triples["relation_id"], relations["relation_id"])

    @property
    def ids(self) -> pa.ChunkedArray:
        """The triples' ids."""
        return self._triples["triple_id"]

    def find_names(self, keys: Collection[str]) -> dict[str, str]:
        """The names of some entities by their ids, of those that the table has."""
        rows = find_rows(pa.array(sorted(keys), pa.string()), self._entities["entity_id"])
        named = self._entities.select(["entity_id", "name"]).take(pa.array(rows[rows >= 0]))
        return map_column(named, "entity_id", "name")

    @cached_property
    def layer(self) -> GraphLayer:
        """The facts as completion reads them: literals behind the entities."""
        literals, size = self._triples["literal"], len(self._entities)
        of_tail = np.where(self._tails >= 0, self._tails, size + np.arange(len(literals)))
        name, key, kind = (
            _append(self._entities[column], behind)
            for column, behind in (
                ("name", literals),
                ("entity_id", literals),
                ("type", pa.chunked_array([[LITERAL]], pa.string())),
            )
        )
        return GraphLayer(
            heads=TextColumn(name, self._heads),
            head_types=TextColumn(kind, self._heads),
            wordings=TextColumn(self._relations["name"], self._said),
            tails=TextColumn(name, of_tail),
            tail_types=TextColumn(kind, np.minimum(of_tail, size)),
            head_keys=TextColumn(key, self._heads),
            tail_keys=TextColumn(key, of_tail),
        )

    @cached_property
    def forms(self) -> list[str]:
        """The normal form of each relation."""
        return [normalise_relation(wording).key for wording in self.wordings]

    def find_stated(self, forms: Collection[str]) -> Integers:
        """The places of the facts whose relation has one of these normal forms."""
        chosen = np.array([form in forms for form in self.forms], dtype=bool)
        return np.flatnonzero(chosen[self._said])

    @cached_property
    def wordings(self) -> list[str]:
        """The wording of each relation."""
        return list(self._relations["name"].to_pylist())

    def find_worded(self, wordings: Collection[str]) -> Integers:
        """The places of the facts that have one of these wordings."""
        chosen = np.array([wording in wordings for wording in self.wordings], dtype=bool)
        return np.flatnonzero(chosen[self._said])

    def find_filed(self, kinds: Kinds, classes: Collection[str]) -> Integers:
        """The places of the facts `X is a …` whose noun names one of these classes."""
        places = self.find_stated({IS_A}) if classes else np.zeros(0, dtype=np.int64)
        names = self._entities["name"].to_pylist()
        literals = self._triples["literal"].take(pa.array(places)).to_pylist()
        found: dict[str, bool] = {}
        kept = []
        for place, tail, literal in zip(
            places.tolist(), self._tails[places].tolist(), literals, strict=True
        ):
            words = names[tail] if tail >= 0 else literal
            if words not in found:
                found[words] = kinds.find(words) in classes
            if found[words]:
                kept.append(place)
        return np.array(kept, dtype=np.int64)

    def walk_facts(self, places: Integers) -> Iterator[list[NamedTriple]]:
        """Some facts in words, with all places where they are stated, block by block."""
        for start in range(0, len(places), _BLOCK):
            block = places[start : start + _BLOCK]
            raw = _drop_missing(self._stated.take(pa.array(block)).flatten())
            yield list_facts(
                self.places,
                self._claims.take(_drop_missing(self._claimed[raw])),
                self._raw_triples.take(raw),
                self._entities.take(_drop_missing([self._heads[block], self._tails[block]])),
                self._relations.take(_drop_missing(self._said[block])),
                self._triples.take(pa.array(block)),
            )

    def walk_ends(self) -> Iterator[tuple[list[tuple[str, int]], list[str]]]:
        """What is said of each entity, in the order of their table.

        The normal forms of the relations of which it is the head, each with the fact's place, and
        of those of which it is the tail.
        """
        forms, rows = self.forms, np.arange(len(self._entities) + 1)
        orders = [np.argsort(ends, kind="stable") for ends in (self._heads, self._tails)]
        heads, tails = (
            np.searchsorted(ends, rows, sorter=order)
            for ends, order in zip((self._heads, self._tails), orders, strict=True)
        )
        for at in range(len(self._entities)):
            active = orders[0][heads[at] : heads[at + 1]]
            passive = orders[1][tails[at] : tails[at + 1]]
            relations = [forms[said] for said in self._said[active].tolist()]
            others = [forms[said] for said in self._said[passive].tolist()]
            yield list(zip(relations, active.tolist(), strict=True)), others

    def read_tail(self, place: int) -> str:
        """The name or the literal at the end of a fact."""
        tail = int(self._tails[place])
        found = self._entities["name"][tail] if tail >= 0 else self._triples["literal"][place]
        return str(found.as_py())

    def count_chunks(self, places: Collection[int]) -> int:
        """How many chunks state some of the facts."""
        raw = self._stated.take(pa.array(sorted(places), pa.int64())).flatten()
        claims = self._claims.take(_drop_missing(self._claimed[_drop_missing(raw)]))
        return int(pc.count_distinct(claims["chunk_id"]).as_py())

    @cached_property
    def _stated(self) -> pa.LargeListArray:
        """The rows of the raw triples of each fact."""
        own = self._triples["raw_triple_ids"]
        sizes = pc.fill_null(pc.list_value_length(own), 0).to_numpy()
        rows = find_rows(pc.list_flatten(own), self._raw_triples["raw_triple_id"])
        return pa.LargeListArray.from_arrays(
            pa.array(np.cumsum([0, *sizes]), pa.int64()), pa.array(rows)
        )

    @cached_property
    def _claimed(self) -> Integers:
        """The row of each raw triple's claim."""
        return find_rows(self._raw_triples["claim_id"], self._claims["claim_id"])

    @cached_property
    def places(self) -> Places:
        """Makes places of the documents."""
        return Places(self._documents, self._chunks)


class MentionTable:
    """The mentions of the documents as columns, found by place and by entity; see `Mentions`."""

    def __init__(self, mentions: pa.Table, chunks: pa.Table, entities: pa.Table) -> None:
        self._columns = {
            name: combine_column(mentions[name]) for name in ("mention_id", "text", "type")
        }
        self._spans = {name: mentions[name].to_numpy() for name in ("start", "end")}
        self._chunks = find_rows(mentions["chunk_id"], chunks["chunk_id"])
        self._chunk_ids = chunks["chunk_id"].to_pylist()
        documents = combine_column(chunks["document_id"]).dictionary_encode()
        self._number = {key: at for at, key in enumerate(documents.dictionary.to_pylist())}
        of_mention = documents.indices.to_numpy()[self._chunks]
        self._order = np.argsort(of_mention, kind="stable")
        count = np.arange(len(self._number) + 1)
        self._firsts = np.searchsorted(of_mention[self._order], count)
        self._own = find_rows(pc.list_flatten(entities["mentions"]), mentions["mention_id"])
        sizes = pc.list_value_length(entities["mentions"]).to_numpy()
        self._ends = np.cumsum([0, *sizes])
        self._entities = np.full(len(mentions), -1)
        self._entities[self._own] = np.repeat(np.arange(len(sizes)), sizes)  # the last of several
        self._entity_ids = combine_column(entities["entity_id"])

    def find(self, document_id: str, span: Span) -> list[Mention]:
        """Those at this very place."""
        rows = self._rows_of(document_id)
        there = (self._spans["start"][rows] == span.start) & (self._spans["end"][rows] == span.end)
        return self._read(rows[there])

    def list_document(self, document_id: str) -> list[Mention]:
        """Those of a document."""
        return self._read(self._rows_of(document_id))

    def list_entity(self, row: int) -> list[Mention]:
        """Those of the entity in that row."""
        return self._read(self._own[self._ends[row] : self._ends[row + 1]])

    def _rows_of(self, document_id: str) -> Integers:
        number = self._number.get(document_id)
        if number is None:
            return self._order[:0]
        return self._order[self._firsts[number] : self._firsts[number + 1]]

    def _read(self, rows: Integers) -> list[Mention]:
        found = []
        for row in rows.tolist():
            key, text, kind = (self._columns[name][row].as_py() for name in self._columns)
            start, end = int(self._spans["start"][row]), int(self._spans["end"][row])
            entity = int(self._entities[row])
            own = self._entity_ids[entity].as_py() if entity >= 0 else None
            chunk = self._chunk_ids[self._chunks[row]]
            found.append(Mention(key, chunk, text, kind, start, end, own))
        return found


def _append(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.Array:
    """The rows of both in one piece, which Arrow would make anew whenever some are taken."""
    return combine_column(pa.chunked_array([*one.chunks, *other.chunks], one.type))


def _drop_missing(rows: npt.ArrayLike) -> Integers:
    """Different rows in the order of their table, without those that are none."""
    found = np.unique(np.asarray(rows, dtype=np.int64))
    return found[found >= 0]
