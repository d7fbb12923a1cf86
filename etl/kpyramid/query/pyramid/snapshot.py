"""A published snapshot, opened for reading: tables, ontology, neighbours, evidence."""

import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.contracts import load_contracts
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.errors import InputError, IntegrityError
from kpyramid.indexing.mapped import FORMAT, SEARCHED, STATEMENTS, ValueByKey
from kpyramid.indexing.words import Mask
from kpyramid.keys import JsonValue
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.ontology.store import OntologyStore
from kpyramid.query.pyramid.embedding import KeptVectors, open_recorded
from kpyramid.query.pyramid.evidence import find_evidence
from kpyramid.query.pyramid.held import HeldTable
from kpyramid.query.pyramid.index import Index, Part
from kpyramid.query.pyramid.names import EntitiesByName
from kpyramid.query.pyramid.order import Rows
from kpyramid.query.pyramid.scopes import PUBLIC, Scope, View
from kpyramid.query.pyramid.statements import (
    LITERAL,
    Statement,
    Weight,
    list_facts,
    list_instances,
    list_mentions,
    read_by_key,
    state_condensed,
    state_instance,
    weigh_condensed,
)
from kpyramid.query.types import Evidence
from kpyramid.settings import EmbedSettings
from kpyramid.warehouse.layout import open_warehouse
from kpyramid.warehouse.refs import resolve_ref
from kpyramid.warehouse.snapshots import read_manifest
from kpyramid.warehouse.tables import read_table

__all__ = ["LITERAL", "Snapshot", "open_snapshot"]

DEFAULT_WAREHOUSE = "warehouse/data"
_SHARED = ("schema", "embedder", "_tables", "_held")
"""What is the same whatever the scope."""


def open_snapshot(
    ref: str = "main",
    warehouse: str | Path | None = None,
    *,
    model: str | EmbedSettings | None = None,
    scope: Scope = PUBLIC,
) -> "Snapshot":
    """The snapshot that a ref or an id names; the ref is resolved once, here.

    `warehouse` is by default `$KPYRAMID_WAREHOUSE`, else `warehouse/data`. `model` is the
    folder of the embedding model or the section [embed] of the settings, needed when the snapshot
    was built with a model of one's own or a served one. `scope` is what is seen of it, by default
    the documents without access labels.

    Raises:
        InputError: no such warehouse, ref or snapshot, or one of an earlier version.
    """
    place = warehouse or os.environ.get("KPYRAMID_WAREHOUSE") or DEFAULT_WAREHOUSE
    opened = open_warehouse(place)
    return Snapshot(opened.snapshots / resolve_ref(opened, ref), model, scope)


class Snapshot:
    """One snapshot; everything is opened when it is first asked for, and kept.

    What questions need is mapped from the folder `index/`, and is of the scope; `table`, which
    reads a whole table, and `schema` are not.
    """

    def __init__(
        self, folder: Path, model: str | EmbedSettings | None = None, scope: Scope = PUBLIC
    ) -> None:
        self.folder = folder
        self.id = folder.name
        self.manifest: dict[str, JsonValue] = read_manifest(folder)
        if self.manifest.get("format") != FORMAT:
            raise InputError(
                f"snapshot {self.id} was built by another version (its format is "
                f"{self.manifest.get('format')}, this version reads {FORMAT}); build again: "
                "what is in the warehouse's caches costs nothing"
            )
        self.model = model
        self.scope = scope
        self.index = Index(folder, self.manifest)
        self.view = View(self.index, lambda: self.schema, scope)
        self._tables: dict[str, pa.Table] = {}
        self._held: dict[str, HeldTable] = {}
        self._vectors = KeptVectors(lambda texts: self.embedder.embed(texts))

    def scoped(self, scope: Scope) -> "Snapshot":
        """The same snapshot with another scope; keep it for the questions of that scope.

        Raises:
            InputError: when it is asked, if the scope names what is not there.
        """
        other = Snapshot(self.folder, self.model, scope)
        other.index, other.view = self.index, View(self.index, lambda: self.schema, scope)
        other.__dict__.update({n: self.__dict__[n] for n in _SHARED if n in self.__dict__})
        return other

    def __repr__(self) -> str:
        return f"Snapshot({self.id!r})"

    def describe_scope(self) -> str:
        """How many documents are seen, of how many; empty when all are."""
        return self.view.describe()

    def count(self, table: str) -> int:
        """How many rows of a searched table there are."""
        return len(self.index.rows(table))

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

    @cached_property
    def schema(self) -> Schema:
        """The ontology's schema, with what completion added."""
        return parse_schema(self._read_text("ontology/schema.ttl"), source=f"snapshot {self.id}")

    @cached_property
    def ontology(self) -> OntologyStore:
        """Schema and instances, ready for SPARQL, without where they were read."""
        if self.view.instances is None:
            statements = self.index.locate(STATEMENTS).read_text("utf-8")
        else:
            statements = self.view.write_statements()
        return OntologyStore(self._read_text("ontology/schema.ttl"), statements)

    @cached_property
    def _sources(self) -> OntologyStore:
        instances = self._read_text("ontology/instances.nt")
        return OntologyStore(self._read_text("ontology/schema.ttl"), instances)

    def sparql(self, query: str, *, limit: int = 1000) -> list[dict[str, str]]:
        """The rows of a SELECT or ASK over the ontology layer, run apart with limits.

        Each individual has the sentences it was derived from (`prov:wasDerivedFrom`), unless the
        scope hides some.

        Raises:
            InputError: the query is no SPARQL, wants more than to read, or takes too long.
        """
        store = self._sources if self.view.instances is None else self.ontology
        return store.select(query, limit=limit)

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
        return open_recorded(made, self.model, self.id)

    def embed(self, text: str) -> Matrix:
        """The vector of a text."""
        return np.asarray(self.embed_all([text])[0])

    def embed_all(self, texts: Sequence[str]) -> Matrix:
        """The vectors of texts, a row each; the last are kept, so a question is embedded once."""
        return self._vectors.look_up(texts)

    def neighbours(
        self, text: str, k: int, table: str = "condensed"
    ) -> list[tuple[str, str, float]]:
        """The k rows of a table nearest to a text: key, embedded words, cosine; best first."""
        part = self._part(table)
        if not len(part):
            return []
        vector = self.embed(text)
        if len(vector) != part.matrix.shape[1]:
            raise InputError(
                f"snapshot {self.id} has vectors of {part.matrix.shape[1]} numbers, and "
                f"{self.embedder.name!r} at embed.base_url makes {len(vector)}: it is another "
                "model; name the endpoint that the snapshot was built with"
            )
        found = part.nearest(vector, k, self._seen(table))
        return [(part.keys[row], part.text_of(row), cosine) for row, cosine in found]

    def words(self, text: str, k: int, table: str = "chunks") -> list[tuple[str, float]]:
        """The k rows of a table with the best BM25 score for a text: key, score; best first.

        Rows without a word of the text are left out.
        """
        part = self._part(table)
        return [(part.keys[row], score) for row, score in part.words(text, k, self._seen(table))]

    def vectors_of(self, keys: Sequence[str], table: str = "condensed") -> Matrix:
        """The vectors of some rows of a table, in the order given.

        Raises:
            KeyError: a key is unknown.
        """
        part = self._part(table)
        return np.asarray(part.matrix[[part.locate(key) for key in keys]])

    def place_vectors(self, chunk_ids: Sequence[str]) -> tuple[Matrix, Rows]:
        """The vectors of chunks in their places (`ReadingOrder`), and their documents' rows."""
        part, order = self.index.part("chunks"), self.index.reading_order
        rows = np.array([part.locate(key) for key in chunk_ids], np.int64)
        return order.place_vectors(rows, self._seen("chunks")), order.documents[rows]

    def texts_of(self, keys: Sequence[str], table: str = "condensed") -> list[str]:
        """The words that some rows of a table were embedded by, in the order given.

        Raises:
            KeyError: a key is unknown.
        """
        part = self._part(table)
        return [part.text_of(part.locate(key)) for key in keys]

    def facts_about(
        self, entity_ids: Collection[str], table: str = "condensed", most: int | None = None
    ) -> list[str]:
        """The keys of the first `most` facts whose head or tail is one of some entities.

        In key order.
        """
        if table == "condensed":
            return list_facts(self.index, entity_ids, most, self.view.facts)
        self._seen(table)
        facts = self.table(table)
        known = pa.array(sorted(entity_ids), pa.string())
        about = pc.or_kleene(pc.is_in(facts["head_id"], known), pc.is_in(facts["tail_id"], known))
        return sorted(facts.filter(about)[facts.column_names[0]].to_pylist())[:most]

    def entities_by_name(self, prefix: str = "") -> EntitiesByName:
        """The ids of entities by their names in the form of `join_words`, a prefix before each."""
        self.index.require_whole()
        return EntitiesByName(self.index, prefix, self.view.entities)

    @property
    def names(self) -> Mapping[str, str]:
        """The name of every entity by its id."""
        return ValueByKey(self.index.rows("entities"), "name")

    @property
    def types(self) -> Mapping[str, str]:
        """The type of every entity by its id."""
        return ValueByKey(self.index.rows("entities"), "type")

    def surface_forms(self, entity_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        """All names of some entities as written; unknown ids are left out."""
        forms = read_by_key(self.index.rows("entities"), "surface_forms", entity_ids)
        return {key: tuple(own) for key, own in forms.items()}

    def titles(self, document_ids: Collection[str]) -> dict[str, str]:
        """The titles of those of some documents that have one."""
        titles = read_by_key(self.index.rows("documents"), "title", document_ids)
        return {key: title for key, title in titles.items() if title}

    def mentions_in(self, chunk_ids: Sequence[str]) -> list[dict[str, Any]]:
        """The mentions in some chunks, in key order: chunk_id, text, type, start, end."""
        return list_mentions(self.index, chunk_ids)

    def state_condensed(self, condensed_id: str) -> Statement:
        """Id, name and type of the head, relation, and those of the tail.

        A literal tail has no id and the type `LITERAL`.
        """
        return state_condensed(self.index, condensed_id)

    def state_condensed_all(self, keys: Sequence[str]) -> list[Statement]:
        """What `state_condensed` gives for each of some facts."""
        return [state_condensed(self.index, key) for key in keys]

    def weigh_condensed(self, keys: Sequence[str]) -> list[Weight]:
        """For each of some facts how well it is supported.

        Confidence of the best triple it stands for, number of statements that support it,
        whether any is negated, whether any has a modality or an attribution.
        """
        return [weigh_condensed(self.index, key) for key in keys]

    def state_instance(self, instance_id: str) -> Statement:
        """Id, name and type of an individual, label of its property, and those of its value.

        A membership has the label `is a` and the class's label as a literal value.
        """
        return state_instance(self.index, self.schema, instance_id)

    def find_instances(self, facts: Collection[tuple[str, str, str]]) -> list[dict[str, Any]]:
        """The instances that state some facts: subject, property, and object or literal.

        Entities are given by their ids; a property's inverse states its facts as well.
        """
        inverse = {p.iri: p.inverse_of for p in self.schema.properties if p.inverse_of}
        wanted = {*facts} | {(o, inverse[p], s) for s, p, o in facts if p in inverse}
        return [
            row
            for row in list_instances(self.index, {s for s, _, _ in wanted}, self.view.instances)
            if (row["subject_id"], row["property_iri"], row["object_id"] or row["literal"])
            in wanted
        ]

    def list_derived(self, condensed_id: str) -> list[tuple[str, str]]:
        """The triples that a condensed fact stands for, and why; empty for an unknown id."""
        table = self.table("condensed")
        rows = table.filter(pc.equal(table["condensed_id"], condensed_id)).to_pylist()
        return [pair for row in rows for pair in zip(row["derived_from"], row["how"], strict=True)]

    def find_condensed(self, triple_id: str) -> str | None:
        """The condensed fact that stands for a triple; None for an unknown id."""
        return self._condensed_by_triple.get(triple_id)

    @cached_property
    def _condensed_by_triple(self) -> dict[str, str]:
        rows = self.table("condensed").select(["condensed_id", "derived_from"]).to_pylist()
        return {key: row["condensed_id"] for row in rows for key in row["derived_from"]}

    def evidence(self, fact_id: str) -> list[Evidence]:
        """The places in the documents that support a fact; empty for an unknown id.

        `fact_id` is the key of a condensed triple, triple, raw triple, instance, proposal,
        claim, mention or chunk.
        """
        return find_evidence(self.index, self.table, fact_id, self.view.documents)

    def _part(self, table: str) -> Part | HeldTable:
        """What a table is searched by: its index, or for the ablations' tables their vectors."""
        if table in SEARCHED:
            self.index.require_whole()
            return self.index.part(table)
        if table not in self._held:
            self._held[table] = HeldTable(self.table("vectors"), table)
        return self._held[table]

    def _seen(self, table: str) -> Mask | None:
        """The rows of a table that the scope lets be seen.

        Raises:
            InputError: the table is searched in ablations only, and the scope hides something.
        """
        if table in SEARCHED:
            return self.view.chunks if table == "chunks" else self.view.facts
        if self.view.chunks is not None:
            raise InputError(f"table {table!r} is searched as a whole only; open it unscoped")
        return None

    def _read_text(self, name: str) -> str:
        self._require_folder()
        try:
            return (self.folder / name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as e:
            raise IntegrityError(f"snapshot {self.id}: {name} cannot be read: {e}") from e

    def _require_folder(self) -> None:
        if not self.folder.is_dir():
            gone = f"snapshot {self.id} is no longer in {self.folder.parent}"
            raise InputError(f"{gone}; it was removed while it was open. Open the ref again")
