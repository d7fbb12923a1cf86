"""A published snapshot, opened for reading: tables, ontology, neighbours, evidence."""

import os
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Any

import bm25s
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import Stemmer

from kpyramid.contracts import load_contracts, map_column
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.errors import InputError, IntegrityError
from kpyramid.keys import JsonValue
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.ontology.store import OntologyStore
from kpyramid.query.embedding import open_recorded
from kpyramid.query.linking import LinkedQuestion, join_words, link_question
from kpyramid.query.questions.comparing import PhraseComparer
from kpyramid.query.questions.lexicon import Lexicon
from kpyramid.query.questions.pyramids import read_snapshot_lexicon
from kpyramid.query.types import Evidence
from kpyramid.settings import EmbedSettings
from kpyramid.warehouse.layout import open_warehouse
from kpyramid.warehouse.refs import resolve_ref
from kpyramid.warehouse.snapshots import read_manifest
from kpyramid.warehouse.tables import read_table

DEFAULT_WAREHOUSE = "warehouse/data"
LITERAL = "LITERAL"
_MOST_ROWS = 100_000
"""Rows by which readings of a question are told apart."""


def open_snapshot(
    ref: str = "main",
    warehouse: str | Path | None = None,
    *,
    model: str | EmbedSettings | None = None,
) -> "Snapshot":
    """The snapshot that a ref or an id names; the ref is resolved once, here.

    `warehouse` is by default `$KPYRAMID_WAREHOUSE`, else `warehouse/data`. `model` is the
    folder of the embedding model or the section [embed] of the settings, needed when the snapshot
    was built with a model of one's own or a served one.

    Raises:
        InputError: no such warehouse, ref or snapshot.
    """
    place = warehouse or os.environ.get("KPYRAMID_WAREHOUSE") or DEFAULT_WAREHOUSE
    opened = open_warehouse(place)
    return Snapshot(opened.snapshots / resolve_ref(opened, ref), model)


class Snapshot:
    """One snapshot; everything is read when it is first asked for, and kept."""

    def __init__(self, folder: Path, model: str | EmbedSettings | None = None) -> None:
        self.folder = folder
        self.id = folder.name
        self.manifest: dict[str, JsonValue] = read_manifest(folder)
        self._model = model
        self._tables: dict[str, pa.Table] = {}
        self._indexes: dict[str, tuple[list[str], list[str], Matrix]] = {}
        self._words: dict[str, tuple[list[str], Any, Any]] = {}

    def table(self, name: str) -> pa.Table:
        """One table.

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

    @cached_property
    def schema(self) -> Schema:
        """The ontology's schema, with what completion added."""
        return parse_schema(self._read_text("ontology/schema.ttl"), source=f"snapshot {self.id}")

    @cached_property
    def ontology(self) -> OntologyStore:
        """Schema and instances, ready for SPARQL."""
        instances = self._read_text("ontology/instances.nt")
        return OntologyStore(self._read_text("ontology/schema.ttl"), instances)

    def sparql(self, query: str, *, limit: int = 1000) -> list[dict[str, str]]:
        """The rows of a SELECT or ASK over the ontology layer, run apart with limits.

        Raises:
            InputError: the query is no SPARQL, wants more than to read, or takes too long.
        """
        return self.ontology.select(query, limit=limit)

    @cached_property
    def embedder(self) -> Embedder:
        """The model that the snapshot's vectors were made with.

        Raises:
            InputError: it is not here, or has other files: its vectors could not be compared.
            SettingsError: there is no key for the endpoint that serves it.
        """
        resources = self.manifest["resources"]
        made = resources["embedding"] if isinstance(resources, dict) else None
        if not isinstance(made, dict):
            raise IntegrityError(f"snapshot {self.id}: its manifest names no embedding model")
        return open_recorded(made, self._model, self.id)

    def neighbours(
        self, text: str, k: int, table: str = "condensed"
    ) -> list[tuple[str, str, float]]:
        """The k rows of a table nearest to a text: key, embedded words, cosine; best first."""
        ids, texts, matrix = self._load_index(table)
        if not ids:
            return []
        vector = self.embedder.embed([text])[0]
        if len(vector) != matrix.shape[1]:
            raise InputError(
                f"snapshot {self.id} has vectors of {matrix.shape[1]} numbers, and "
                f"{self.embedder.name!r} at embed.base_url makes {len(vector)}: it is another "
                "model; name the endpoint that the snapshot was built with"
            )
        cosines = matrix @ vector
        order = np.argsort(-cosines, kind="stable")[:k]
        return [(ids[index], texts[index], float(cosines[index])) for index in order]

    def words(self, text: str, k: int, table: str = "chunks") -> list[tuple[str, float]]:
        """The k rows of a table with the best BM25 score for a text: key, score; best first.

        Rows without a word of the text are left out.
        """
        if table not in self._words:
            ids, texts, _ = self._load_index(table)
            stemmer = Stemmer.Stemmer("english")
            ranker = bm25s.BM25()
            ranker.index(
                bm25s.tokenize(texts, stemmer=stemmer, show_progress=False), show_progress=False
            )
            self._words[table] = (ids, ranker, stemmer)
        ids, ranker, stemmer = self._words[table]
        if not ids:
            return []
        asked = bm25s.tokenize([text], stemmer=stemmer, show_progress=False)
        rows, scores = ranker.retrieve(asked, k=min(k, len(ids)), show_progress=False)
        found = zip(rows[0].tolist(), scores[0].tolist(), strict=True)
        return [(ids[row], score) for row, score in found if score > 0]

    def facts_about(self, entity_ids: Collection[str], table: str = "condensed") -> list[str]:
        """The keys of the facts whose head or tail is one of some entities, in key order."""
        facts = self.table(table)
        known = pa.array(sorted(entity_ids), pa.string())
        about = pc.or_kleene(pc.is_in(facts["head_id"], known), pc.is_in(facts["tail_id"], known))
        return sorted(facts.filter(about)[facts.column_names[0]].to_pylist())

    def link(self, question: str) -> LinkedQuestion:
        """The entities that a question names, and the words that are left."""
        return link_question(question, self._entities_by_name)

    @cached_property
    def lexicon(self) -> Lexicon:
        """What the words of a question can mean in the ontology layer."""

        def run(query: str) -> list[dict[str, str]]:
            return self.ontology.select_trusted(query, limit=_MOST_ROWS)

        comparer = PhraseComparer(lambda texts: self.embedder.embed(texts))
        return read_snapshot_lexicon(self.schema, self._entities_by_name, run, comparer.compare)

    @cached_property
    def names(self) -> dict[str, str]:
        """The name of every entity by its id."""
        table = self.table("entities")
        return map_column(table, "entity_id", "name")

    @cached_property
    def types(self) -> dict[str, str]:
        """The type of every entity by its id."""
        table = self.table("entities")
        return map_column(table, "entity_id", "type")

    def state_condensed(self, condensed_id: str) -> tuple[str, str, str, str, str | None, str, str]:
        """Id, name and type of the head, relation, and those of the tail.

        A literal tail has no id and the type `LITERAL`.
        """
        (row,) = self._pick("condensed", {condensed_id})
        (relation,) = self._pick("relations", {row["relation_id"]})
        head, tail = row["head_id"], row["tail_id"]
        value = (self.names[tail], self.types[tail]) if tail else (row["literal"], LITERAL)
        return head, self.names[head], self.types[head], relation["name"], tail, *value

    def list_derived(self, condensed_id: str) -> list[tuple[str, str]]:
        """The triples that a condensed fact stands for, and why; empty for an unknown id."""
        return [
            pair
            for row in self._pick("condensed", {condensed_id})
            for pair in zip(row["derived_from"], row["how"], strict=True)
        ]

    def find_condensed(self, triple_id: str) -> str | None:
        """The condensed fact that stands for a triple; None for an unknown id."""
        return self._condensed_by_triple.get(triple_id)

    def find_instances(self, facts: Collection[tuple[str, str, str]]) -> list[dict[str, Any]]:
        """The instances that state some facts: subject, property, and object or literal.

        Entities are given by their ids; a property's inverse states its facts as well.
        """
        inverse = {p.iri: p.inverse_of for p in self.schema.properties if p.inverse_of}
        wanted = {*facts} | {(o, inverse[p], s) for s, p, o in facts if p in inverse}
        table = self.table("instances")
        known = pa.array(sorted({s for s, _, _ in wanted}), pa.string())
        rows = table.filter(pc.is_in(table["subject_id"], known)).to_pylist()
        return [
            row
            for row in rows
            if (row["subject_id"], row["property_iri"], row["object_id"] or row["literal"])
            in wanted
        ]

    def evidence(self, fact_id: str) -> list[Evidence]:
        """The places in the documents that support a fact; empty for an unknown id.

        `fact_id` is the key of a condensed triple, triple, raw triple, instance, proposal,
        claim, mention or chunk.
        """
        spans = self._find_spans(fact_id)
        documents = {
            row["document_id"]: row
            for row in self._pick("documents", {document for document, *_ in spans})
        }
        return [
            Evidence(
                document,
                chunk,
                start,
                end,
                documents[document]["text"][start:end],
                documents[document]["source"],
            )
            for document, chunk, start, end in sorted(spans)
        ]

    def _find_spans(self, fact_id: str) -> set[tuple[str, str, int, int]]:
        kind = fact_id.partition("-")[0]
        if kind == "condensed":
            ids = {i for row in self._pick("condensed", {fact_id}) for i in row["derived_from"]}
            return self._cover_triples(ids)
        if kind == "proposal":
            ids = {i for row in self._pick("proposals", {fact_id}) for i in row["triple_ids"]}
            return self._cover_triples(ids)
        if kind == "triple":
            return self._cover_triples({fact_id})
        if kind == "raw":
            return self._cover_raw({fact_id})
        if kind == "claim":
            return {
                (self._document_of(row["chunk_id"]), row["chunk_id"], span["start"], span["end"])
                for row in self._pick("claims", {fact_id})
                for span in row["spans"]
            }
        if kind == "instance":
            rows = self._pick("instances", {fact_id})
            return self._own_spans([place for row in rows for place in row["places"]])
        if kind == "mention":
            return self._own_spans(self._pick("mentions", {fact_id}))
        if kind == "chunk":
            return self._own_spans(self._pick("chunks", {fact_id}))
        return set()

    def _own_spans(self, rows: list[dict[str, Any]]) -> set[tuple[str, str, int, int]]:
        return {
            (self._document_of(r["chunk_id"]), r["chunk_id"], int(r["start"]), int(r["end"]))
            for r in rows
        }

    def _cover_triples(self, ids: Collection[str]) -> set[tuple[str, str, int, int]]:
        raw = {i for row in self._pick("triples", ids) for i in row["raw_triple_ids"]}
        return self._cover_raw(raw)

    def _cover_raw(self, ids: Collection[str]) -> set[tuple[str, str, int, int]]:
        """Per raw triple the spans of the claim it was read from."""
        rows = self._pick("raw_triples", ids)
        claims = self._pick("claims", {row["claim_id"] for row in rows})
        return {
            (self._document_of(row["chunk_id"]), row["chunk_id"], span["start"], span["end"])
            for row in claims
            for span in row["spans"]
        }

    @cached_property
    def _entities_by_name(self) -> dict[str, tuple[str, ...]]:
        index: dict[str, list[str]] = {}
        table = self.table("entities")
        for row in table.select(["entity_id", "surface_forms"]).to_pylist():
            for name in {join_words(form) for form in row["surface_forms"]}:
                index.setdefault(name, []).append(row["entity_id"])
        return {name: tuple(sorted(ids)) for name, ids in index.items()}

    @cached_property
    def _condensed_by_triple(self) -> dict[str, str]:
        rows = self.table("condensed").select(["condensed_id", "derived_from"]).to_pylist()
        return {key: row["condensed_id"] for row in rows for key in row["derived_from"]}

    @cached_property
    def _documents_by_chunk(self) -> dict[str, str]:
        chunks = self.table("chunks")
        return map_column(chunks, "chunk_id", "document_id")

    def _document_of(self, chunk_id: str) -> str:
        return self._documents_by_chunk[chunk_id]

    def _pick(self, name: str, keys: Collection[str]) -> list[dict[str, Any]]:
        table = self.table(name)
        wanted = pa.array(sorted(keys), pa.string())
        return list(table.filter(pc.is_in(table[table.column_names[0]], wanted)).to_pylist())

    def _load_index(self, table: str) -> tuple[list[str], list[str], Matrix]:
        if table not in self._indexes:
            vectors = self.table("vectors")
            part = vectors.filter(pc.equal(vectors["owner_table"], table)).combine_chunks()
            column = part["vector"].combine_chunks()
            size = column.type.list_size
            flat = column.flatten().to_numpy(zero_copy_only=False)
            self._indexes[table] = (
                part["owner_id"].to_pylist(),
                part["text"].to_pylist(),
                flat.reshape(-1, size),
            )
        return self._indexes[table]

    def _read_text(self, name: str) -> str:
        self._require_folder()
        try:
            return (self.folder / name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as e:
            raise IntegrityError(f"snapshot {self.id}: {name} cannot be read: {e}") from e

    def _require_folder(self) -> None:
        if not self.folder.is_dir():
            raise InputError(
                f"snapshot {self.id} is no longer in {self.folder.parent}; it was removed while "
                "it was open. Open the ref again"
            )
