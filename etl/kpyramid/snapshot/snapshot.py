"""A published snapshot, opened for reading: tables, ontology, neighbours, evidence."""

import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.errors import InputError, IntegrityError
from kpyramid.settings import EmbedSettings
from kpyramid.snapshot.embedding import KeptVectors, open_recorded
from kpyramid.snapshot.evidence import Evidence
from kpyramid.snapshot.index import Rows
from kpyramid.snapshot.names import EntitiesByName, EntityTexts
from kpyramid.snapshot.scopes import PUBLIC, Scope
from kpyramid.snapshot.store import Store
from kpyramid.snapshot.view import LITERAL, Statement, View, Weight
from kpyramid.storage.layout import open_warehouse
from kpyramid.storage.refs import resolve_ref

if TYPE_CHECKING:
    from kpyramid.ontology.schema import Schema
    from kpyramid.ontology.store import OntologyStore

__all__ = ["LITERAL", "Snapshot", "open_snapshot"]

DEFAULT_WAREHOUSE = "warehouse/data"
_SHARED = ("folder", "id", "manifest", "model", "embedder")
"""What is the same whatever the scope."""


def open_snapshot(
    ref: str | Path = "main",
    warehouse: str | Path | None = None,
    *,
    model: str | EmbedSettings | None = None,
    scope: Scope = PUBLIC,
) -> "Snapshot":
    """The snapshot of a ref, of an id, or in a folder that may lie anywhere, such as a copy.

    A `Path`, and a text with a slash, is such a folder. A ref is resolved once, here.
    `warehouse` is by default `$KPYRAMID_WAREHOUSE`, else `warehouse/data`. `model` is the
    folder of the embedding model or the section [embed] of the settings, needed when the snapshot
    was built with a model of one's own or a served one. `scope` is what is seen of it, by default
    the documents without access labels.

    Raises:
        InputError: no such warehouse, ref or snapshot, or one of an earlier version.
    """
    if isinstance(ref, Path) or os.sep in ref:
        return Snapshot(Path(ref).absolute(), model, scope)
    place = warehouse or os.environ.get("KPYRAMID_WAREHOUSE") or DEFAULT_WAREHOUSE
    opened = open_warehouse(place)
    return Snapshot(opened.snapshots / resolve_ref(opened, ref), model, scope)


class Snapshot:
    """One snapshot as a scope lets it be seen; what is opened is kept.

    Everything is read through one view of the scope, so that what is hidden is in nothing that
    is read, and is answered for like what does not exist. `folder` and `manifest` say where the
    snapshot lies and what it was built with, and nothing of its texts.
    """

    def __init__(
        self, folder: Path, model: str | EmbedSettings | None = None, scope: Scope = PUBLIC
    ) -> None:
        store = Store(folder)
        self.folder = folder
        self.id = store.id
        self.manifest = store.manifest
        self.model = model
        self._vectors = KeptVectors(lambda texts: self.embedder.embed(texts))
        self._set_view(View(store, [scope]))

    def scoped(self, scope: Scope) -> "Snapshot":
        """What is left of this snapshot in another scope: it only narrows what is seen.

        Keep it for the questions of that scope.

        Raises:
            InputError: when it is asked, if the scope names what is not there.
        """
        other = object.__new__(Snapshot)
        other.__dict__.update({n: self.__dict__[n] for n in _SHARED if n in self.__dict__})
        other._vectors = KeptVectors(lambda texts: other.embedder.embed(texts))
        other._set_view(self._view.narrow(scope))
        return other

    def _set_view(self, view: View) -> None:
        self._view = view

    def __repr__(self) -> str:
        return f"Snapshot({self.id!r})"

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that it was opened and narrowed with; what is seen is in all of them."""
        return self._view.scopes

    def describe_scope(self) -> str:
        """How many documents are seen, of how many; empty when all are."""
        return self._view.describe()

    def count(self, table: str) -> int:
        """How many documents, chunks, condensed facts, instances or entities are seen."""
        return self._view.count(table)

    def table(self, name: str) -> pa.Table:
        """One table, read whole: the rows that are seen, with what is seen of each.

        Raises:
            InputError: there is no table of that name, the snapshot is gone, or the scope hides
                something and the table cannot be divided by documents.
            IntegrityError: the file is damaged.
        """
        return self._view.table(name)

    @property
    def schema(self) -> "Schema":
        """The ontology's schema, with what completion added of what is seen."""
        return self._view.schema

    @cached_property
    def ontology(self) -> "OntologyStore":
        """Schema and instances, ready for SPARQL, without where they were read."""
        from kpyramid.ontology.store import OntologyStore

        return OntologyStore(*self._view.read_ontology())

    @cached_property
    def _sources(self) -> "OntologyStore":
        from kpyramid.ontology.store import OntologyStore

        return OntologyStore(*self._view.read_ontology(sources=True))

    def sparql(self, query: str, *, limit: int = 1000) -> list[dict[str, str]]:
        """The rows of a SELECT or ASK over the ontology layer, run apart with limits.

        Each individual has the sentences it was derived from (`prov:wasDerivedFrom`), unless the
        scope hides some.

        Raises:
            InputError: the query is no SPARQL, wants more than to read, or takes too long.
        """
        return self._sources.select(query, limit=limit)

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
        width = self._view.width(table)
        if width is None:
            return []
        vector = self.embed(text)
        if len(vector) != width:
            raise InputError(
                f"snapshot {self.id} has vectors of {width} numbers, and "
                f"{self.embedder.name!r} at embed.base_url makes {len(vector)}: it is another "
                "model; name the endpoint that the snapshot was built with"
            )
        return self._view.neighbours(table, vector, k)

    def words(self, text: str, k: int, table: str = "chunks") -> list[tuple[str, float]]:
        """The k rows of a table with the best BM25 score for a text: key, score; best first.

        Rows without a word of the text are left out.
        """
        return self._view.words(table, text, k)

    def vectors_of(self, keys: Sequence[str], table: str = "condensed") -> Matrix:
        """The vectors of some rows of a table, in the order given.

        Raises:
            KeyError: a key is unknown.
        """
        return self._view.vectors_of(table, keys)

    def place_vectors(self, chunk_ids: Sequence[str]) -> tuple[Matrix, Rows]:
        """The vectors of chunks in their places (`ReadingOrder`), and their documents' rows.

        Raises:
            KeyError: a key is unknown.
        """
        return self._view.place_vectors(chunk_ids)

    def texts_of(self, keys: Sequence[str], table: str = "condensed") -> list[str]:
        """The words that some rows of a table were embedded by, in the order given.

        Raises:
            KeyError: a key is unknown.
        """
        return self._view.texts_of(table, keys)

    def facts_about(
        self, entity_ids: Collection[str], table: str = "condensed", most: int | None = None
    ) -> list[str]:
        """The keys of the first `most` facts whose head or tail is one of some entities.

        In key order.
        """
        if table == "condensed":
            return self._view.list_facts(entity_ids, most)
        facts = self.table(table)
        known = pa.array(sorted(entity_ids), pa.string())
        about = pc.or_kleene(pc.is_in(facts["head_id"], known), pc.is_in(facts["tail_id"], known))
        return sorted(facts.filter(about)[facts.column_names[0]].to_pylist())[:most]

    def entities_by_name(self, prefix: str = "") -> EntitiesByName:
        """The ids of entities by their names in the form of `join_words`, a prefix before each."""
        self._view.require_whole()
        return EntitiesByName(self._view, prefix)

    @property
    def names(self) -> Mapping[str, str]:
        """The name of every entity by its id."""
        return EntityTexts(self._view)

    @property
    def types(self) -> Mapping[str, str]:
        """The type of every entity by its id."""
        return EntityTexts(self._view, types=True)

    def surface_forms(self, entity_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        """All names of some entities as written; unknown ids are left out."""
        rows = {key: self._view.find("entities", key) for key in entity_ids}
        return {key: self._view.forms_of(row) for key, row in rows.items() if row is not None}

    def titles(self, document_ids: Collection[str]) -> dict[str, str]:
        """The titles of those of some documents that have one."""
        return self._view.titles(document_ids)

    def mentions_in(self, chunk_ids: Sequence[str]) -> list[dict[str, Any]]:
        """The mentions in some chunks, in key order: chunk_id, text, type, start, end."""
        return self._view.list_mentions(chunk_ids)

    def state_condensed(self, condensed_id: str) -> Statement:
        """Id, name and type of the head, relation, and those of the tail.

        A literal tail has no id and the type `LITERAL`.

        Raises:
            KeyError: the id is unknown.
        """
        return self._view.state_condensed(condensed_id)

    def state_condensed_all(self, keys: Sequence[str]) -> list[Statement]:
        """What `state_condensed` gives for each of some facts."""
        return [self._view.state_condensed(key) for key in keys]

    def weigh_condensed(self, keys: Sequence[str]) -> list[Weight]:
        """For each of some facts how well it is supported.

        Confidence of the best triple it stands for, number of statements that support it,
        whether any is negated, whether any has a modality or an attribution.

        Raises:
            KeyError: a key is unknown.
        """
        return [self._view.weigh_condensed(key) for key in keys]

    def state_instance(self, instance_id: str) -> Statement:
        """Id, name and type of an individual, label of its property, and those of its value.

        A membership has the label `is a` and the class's label as a literal value.

        Raises:
            KeyError: the id is unknown.
        """
        return self._view.state_instance(instance_id)

    def find_instances(self, facts: Collection[tuple[str, str, str]]) -> list[dict[str, Any]]:
        """The instances that state some facts: subject, property, and object or literal.

        Entities are given by their ids; a property's inverse states its facts as well.
        """
        inverse = {p.iri: p.inverse_of for p in self.schema.properties if p.inverse_of}
        wanted = {*facts} | {(o, inverse[p], s) for s, p, o in facts if p in inverse}
        return [
            row
            for row in self._view.list_instances({s for s, _, _ in wanted})
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
        return self._view.evidence(fact_id)
