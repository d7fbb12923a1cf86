"""A published snapshot, opened for reading: tables, ontology, neighbours, evidence."""

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kpyramid.documents.words import WORD, lemmatise
from kpyramid.embeddings.opening import open_embedder
from kpyramid.embeddings.port import Embedder, Matrix
from kpyramid.errors import InputError, IntegrityError, SettingsError
from kpyramid.keys import JsonValue
from kpyramid.snapshot import search
from kpyramid.snapshot.conflicts import Conflicts
from kpyramid.snapshot.evidence import Evidence, name_table
from kpyramid.snapshot.relabelled import hide, list_guarded_since
from kpyramid.snapshot.store import VECTORS, Rows, Store
from kpyramid.snapshot.view import PUBLIC, EntitiesByName, EntityTexts, NearFact, Scope, View
from kpyramid.storage.identity import PACKAGED, identify_model
from kpyramid.storage.layout import open_warehouse
from kpyramid.storage.refs import resolve_ref

if TYPE_CHECKING:
    from kpyramid.ontology.schema import Schema
    from kpyramid.ontology.store import OntologyStore
    from kpyramid.settings import EmbedSettings
    from kpyramid.snapshot.typed import Comparison, Finder, Members, Paths, Where

# The embedding model of a snapshot, reopened for questions.

_PATIENCE = 30.0
"""Seconds that a question waits for its vector."""
_MOST_CACHED = 5_000
"""Vectors in memory: 8 MB of 384 dimensions."""


def open_recorded(
    made: Mapping[str, JsonValue], given: "str | EmbedSettings | None", snapshot: str
) -> Embedder:
    """The model that a manifest records, with the instruction for its vectors.

    `given` locates it: its folder, or the section [embed] of the settings, of which only the
    folder, the endpoint and the key's variable are used.

    Raises:
        InputError: it is missing, or has other files, so that vectors could not be compared.
        SettingsError: there is no key for the endpoint.
    """
    if made.get("provider") == "openai":
        return _open_served(made, given, snapshot)
    name, provider = str(made["name"]), str(made.get("provider", "onnx"))
    model, instruction = name, str(made.get("instruction", ""))
    if isinstance(given, str):
        model = given or name
    elif given and given.provider == provider and given.model not in PACKAGED:
        model = given.model
    try:
        here = identify_model(provider, model, instruction)
    except SettingsError as e:
        raise InputError(
            f"snapshot {snapshot} was embedded with {name!r}, which is not found here; name its "
            f"folder: embed.model with --settings, or open_snapshot(model=...). {e}"
        ) from e
    if here.sha256 != made["sha256"]:
        raise InputError(
            f"snapshot {snapshot} was embedded with {name} of sha256 "
            f"{str(made['sha256'])[:12]}…, here it is {here.sha256[:12]}…; install that "
            "version, or build again"
        )
    return open_embedder(here.name, here.files, provider, instruction)


def _open_served(
    made: Mapping[str, JsonValue], given: "str | EmbedSettings | None", snapshot: str
) -> Embedder:
    # Never OpenAI by default: a user who built with a private server would send questions to
    # another company.
    if given is None or isinstance(given, str) or not given.is_served:
        raise InputError(
            f"snapshot {snapshot} was embedded by an endpoint with {made['name']!r}, and a "
            'question needs the same: give [embed] with provider = "openai", model, and base_url '
            "unless it is OpenAI's, with --settings, open_snapshot(model=load_settings(...).embed) "
            "or as variables KPYRAMID_EMBED__PROVIDER, __MODEL and __BASE_URL"
        )
    # A snapshot with a local model is read without settings and endpoint clients.
    from kpyramid.embeddings.served import SingleCall, open_served
    from kpyramid.settings import LLMSettings

    size = made.get("dimensions")
    settings = replace(
        given,
        model=str(made["name"]),
        instruction=str(made.get("instruction", "")),
        dimensions=size if isinstance(size, int) else None,
    )
    return open_served(
        settings,
        LLMSettings(timeout=_PATIENCE),
        lambda open_transport, _: SingleCall(open_transport(lambda _, call: call())),
    )


DEFAULT_WAREHOUSE = "warehouse/data"
_MOST_LISTED = 200
"""Most chunks of a document to which a title leads."""
_MENTION = ("text", "type", "start", "end")


def open_snapshot(
    ref: str | Path = "main",
    warehouse: str | Path | None = None,
    *,
    model: "str | EmbedSettings | None" = None,
    scope: Scope = PUBLIC,
) -> "Snapshot":
    """The snapshot of a ref or an id, or in a folder anywhere, such as a copy.

    A `Path`, or a string with a slash (`./`), names a folder. A ref is resolved once, here.
    `warehouse` is by default `$KPYRAMID_WAREHOUSE`, else `warehouse/data`; from a bucket the
    snapshot is first copied to this machine, and the copy stays. `model`: folder of the embedding
    model or section [embed] of the settings, needed if the snapshot was built with a custom or a
    served model. `scope`: the visible part, by default the documents without access labels; labels
    that documents got in later snapshots of a ref that was at this one hold here too.

    Raises:
        InputError: no such warehouse, ref or snapshot, or one of an earlier version.
    """
    folder = locate_snapshot(ref, warehouse)
    if is_path(ref):
        return Snapshot(folder, model, scope)
    opened = open_warehouse(name_warehouse(warehouse))
    return Snapshot(folder, model, scope, partial(list_guarded_since, opened, folder.name))


def locate_snapshot(ref: str | Path, warehouse: str | Path | None = None) -> Path:
    """The folder of the snapshot that `open_snapshot` opens.

    Raises:
        InputError: no such warehouse, ref or snapshot.
    """
    if is_path(ref):
        return Path(ref).absolute()
    opened = open_warehouse(name_warehouse(warehouse))
    folder = opened.snapshots / resolve_ref(opened, str(ref))
    if opened.bucket:
        from kpyramid.storage import copies  # readers of a folder do not need it

        folder = copies.locate_snapshot(opened, folder.name)
    return folder


def name_warehouse(warehouse: str | Path | None) -> str | Path:
    """The given warehouse, else the default one."""
    return warehouse or os.environ.get("KPYRAMID_WAREHOUSE") or DEFAULT_WAREHOUSE


def is_path(ref: str | Path) -> bool:
    """Whether a snapshot is named by its folder rather than by a ref or an id."""
    return isinstance(ref, Path) or os.sep in ref or ref in (os.curdir, os.pardir)


@contextmanager
def hold_snapshot(
    ref: str = "main",
    warehouse: str | Path | None = None,
    *,
    model: "str | EmbedSettings | None" = None,
    scope: Scope = PUBLIC,
) -> "Iterator[Snapshot]":
    """As `open_snapshot`; `kpyramid gc` leaves the snapshot in its place until the block ends.

    For readers with a long-lived snapshot. The warehouse must be writable.

    Raises:
        ConflictError: gc removed it just now.
        InputError: as `open_snapshot`, or a path is given: gc does not touch a copy.
    """
    if is_path(ref):
        raise InputError(f"{ref}: name a ref or an id; gc leaves alone what is in no warehouse")
    snapshot = open_snapshot(ref, warehouse, model=model, scope=scope)
    from kpyramid.storage.leases import explain_loss, hold  # other readers do not need it

    place = open_warehouse(snapshot.folder.parent.parent)
    with hold(place, snapshot.id), explain_loss(place, snapshot.id):
        yield snapshot


class Snapshot:
    """A snapshot within its scopes; files once opened stay open.

    Everything is read through a view, so that no result contains hidden content, and hidden rows
    behave as if they did not exist. `folder` and `manifest` describe where the snapshot is and how
    it was built, and contain nothing of its texts. Methods that take the id of a fact raise
    KeyError if it is unknown or hidden.
    """

    def __init__(
        self,
        folder: Path,
        model: "str | EmbedSettings | None" = None,
        scope: Scope = PUBLIC,
        list_guarded: Callable[[Sequence[Scope]], Collection[str]] = lambda _: (),
    ) -> None:
        self._store = Store(folder)
        self.folder = folder
        self.id = self._store.id
        self.manifest = self._store.manifest
        self.model = model
        self.scopes: tuple[Scope, ...] = (scope,)
        self._list_guarded = list_guarded
        self._vectors: dict[str, Matrix] = {}

    def scoped(self, scope: Scope) -> "Snapshot":
        """This snapshot narrowed by a further scope.

        Reuse it for all questions of that scope.

        Raises:
            InputError: on its first use, if the scope names an unknown document or value.
        """
        narrowed = copy(self)
        for name in ("_view", "_finder", "conflicts", "_ontology", "_layers"):
            narrowed.__dict__.pop(name, None)
        narrowed.scopes, narrowed._vectors = (*self.scopes, scope), {}
        return narrowed

    @cached_property
    def _view(self) -> View:
        """The view of the scopes, opened on first use."""
        scopes = self.scopes
        if any(s.access is not None for s in scopes):
            relabelled = hide(self.folder, self._list_guarded(scopes))
            scopes = (*scopes, relabelled) if relabelled else scopes
        if not any(s.narrows for s in scopes):
            labelled = self._store.rows("documents").column("access").flatten()
            if not len(labelled) or all(s.access is None for s in scopes):
                return View(self._store)
        # Loaded only if something may be hidden: it is larger than the reader of whole snapshots.
        from kpyramid.snapshot.divided import open_view

        return open_view(self._store, scopes)

    def __repr__(self) -> str:
        return f"Snapshot({self.id!r})"

    def warm(self) -> int:
        """Reads the whole index once; returns the bytes read.

        Otherwise the first questions read it from disk page by page, which takes seconds for a
        large snapshot.

        Raises:
            InputError: the snapshot is gone.
            IntegrityError: a file cannot be read.
        """
        return self._store.warm()

    def describe_scope(self) -> str:
        """The number of visible documents out of all, in words; empty if all are visible."""
        return self._view.describe()

    def count(self, table: str) -> int:
        """The number of visible documents, chunks, condensed facts, instances or entities."""
        return self._view.count(table)

    def table(self, name: str) -> pa.Table:
        """A whole table: the visible rows, with the visible part of each.

        Raises:
            InputError: there is no table of that name, the snapshot is gone, or the scope hides
                something and the table cannot be divided by documents.
            IntegrityError: the file is damaged.
        """
        return self._view.table(name)

    def locate_table(self, name: str) -> Path | pa.Table:
        """The file of a table, for readers out of core; its visible rows if some are hidden.

        Raises:
            InputError: rows are hidden, and the table cannot be divided by documents.
            IntegrityError: the file differs from the manifest.
        """
        if self.describe_scope() or name == VECTORS:  # vectors are stored in parts
            return self.table(name)
        return self._store.locate(f"tables/{name}.parquet", most_hashed=None)

    @cached_property
    def conflicts(self) -> Conflicts:
        """The visible facts of which at most one holds."""
        return Conflicts(self._view)

    @property
    def schema(self) -> "Schema":
        """The ontology's schema, with the visible terms that completion added."""
        return self._view.schema

    @cached_property
    def _ontology(self) -> "OntologyStore":
        from kpyramid.ontology.store import OntologyStore  # questions in words do not need it

        return OntologyStore(*self._view.read_ontology())

    @cached_property
    def _layers(self) -> "OntologyStore":
        from kpyramid.ontology.store import OntologyStore, write_facts

        facts = write_facts(self._view.list_standard())
        return OntologyStore(*self._view.read_ontology(), facts)

    def sparql(self, query: str, *, limit: int = 1000) -> list[dict[str, str]]:
        """The rows of a SELECT or ASK over the ontology layer, run in its own process with limits.

        Each individual has its visible sentences (`prov:wasDerivedFrom`). `GRAPH kp:graph { ... }`,
        built for the first query with GRAPH, contains the facts by their standard relations, each
        `rel:` and its name, percent-encoded. Denied facts are not in it.

        Raises:
            InputError: the query is no SPARQL, does more than read, or takes too long.
        """
        layers = self._layers if re.search(r"\bgraph\b", query, re.IGNORECASE) else self._ontology
        return layers.select(query, limit=limit)

    @cached_property
    def embedder(self) -> Embedder:
        """The model of the snapshot's vectors.

        Raises:
            InputError: it is missing, or has other files, so that vectors could not be compared.
            SettingsError: there is no key for the endpoint that serves it.
        """
        resources = self.manifest["resources"]
        made = resources["embedding"] if isinstance(resources, dict) else None
        if not isinstance(made, dict):
            raise IntegrityError(f"snapshot {self.id}: its manifest names no embedding model")
        # A question's words are looked up next; their dictionary is read (.15 s) in parallel.
        beside = Thread(target=lemmatise, args=("words",))
        beside.start()
        try:
            return open_recorded(made, self.model, self.id)
        finally:
            beside.join()

    def embed(self, text: str) -> Matrix:
        """The vector of a text, shape (d,)."""
        return np.asarray(self.embed_all([text])[0])

    def embed_all(self, texts: Sequence[str]) -> Matrix:
        """The vectors of texts, shape (n, d); cached, so that a question is embedded once."""
        vectors = {text: row for text in texts if (row := self._vectors.get(text)) is not None}
        if new := [text for text in dict.fromkeys(texts) if text not in vectors]:
            vectors |= zip(new, self.embedder.embed(new), strict=True)
            if len(self._vectors) + len(new) > _MOST_CACHED:
                self._vectors.clear()
            self._vectors.update(vectors)
        return np.stack([vectors[text] for text in texts])

    def neighbours(
        self, text: str, k: int, table: str = "condensed"
    ) -> list[tuple[str, str, float]]:
        """The k rows nearest to a text: key, embedded words, cosine; best first."""
        rows, read = self._view.part(table).rows, self._view.text_of
        return [(rows.keys[row], read(table, row), cos) for row, cos in self._rank(text, k, table)]

    def nearest(self, text: str, k: int, table: str = "condensed") -> dict[str, float]:
        """The cosines of the k rows nearest to a text, by key; best first."""
        keys = self._view.part(table).rows.keys
        return {keys[row]: cosine for row, cosine in self._rank(text, k, table)}

    def _rank(self, text: str, k: int, table: str) -> list[tuple[int, float]]:
        part = self._view.part(table)
        if not len(part):
            return []
        vector, width = self.embed(text), part.matrix.shape[1]
        if len(vector) != width:
            raise InputError(
                f"snapshot {self.id} has vectors of {width} numbers, and "
                f"{self.embedder.name!r} at embed.base_url makes {len(vector)}: it is another "
                "model; name the endpoint that the snapshot was built with"
            )
        return part.nearest(vector, k, self._view.searched(table))

    def words(self, text: str, k: int, table: str = "chunks") -> list[tuple[str, float]]:
        """The k rows with the best BM25 score for a text: key, score; best first.

        Rows without a word of the text are left out.
        """
        part = self._view.part(table)
        ranked = search.rank_words(text, part, len(part), k, self._view.searched(table))
        return [(part.rows.keys[row], score) for row, score in ranked]

    def words_holding(
        self, name: str, beside: str, k: int, table: str = "chunks"
    ) -> list[tuple[str, float]]:
        """The k rows that contain the words of a name, by BM25 for these and for `beside`."""
        part = self._view.part(table)
        ranked = search.rank_holding(name, beside, part, k, self._view.searched(table))
        return [(part.rows.keys[row], score) for row, score in ranked]

    def vectors_of(self, keys: Sequence[str], table: str = "condensed") -> Matrix:
        """The vectors of some facts or chunks, in the order given, shape (n, d).

        Raises:
            KeyError: a key is unknown.
        """
        part = self._view.part(table)
        return np.asarray(part.matrix[[self._view.locate(table, key) for key in keys]])

    def place_vectors(self, chunk_ids: Sequence[str]) -> tuple[Matrix, Rows]:
        """The vectors of chunks with surroundings (`ReadingOrder`), and their documents' rows.

        Raises:
            KeyError: a key is unknown.
        """
        order = self._store.reading_order
        rows = np.array([self._view.locate("chunks", key) for key in chunk_ids], np.int64)
        return order.place_vectors(rows, self._view.mask("chunks")), order.documents[rows]

    def link_titles(self, chunk_id: str) -> list[list[str]]:
        """The chunks, in reading order, of each other document whose title a chunk's text contains.

        Raises:
            KeyError: the chunk is unknown.
        """
        row, chunks = self._view.locate("chunks", chunk_id), self._view.rows("chunks")
        named = {d for title in chunks.list_of("titles", row) for d in self._name_documents(title)}
        return self._list_chunks(sorted(named - {int(chunks.numbers("document")[row])}))

    def _name_documents(self, title: int) -> list[int]:
        """The rows of the visible documents with a title; none if too many share it."""
        rows = self._view.rows("titles").list_of("documents", title)
        seen = self._view.select("documents", rows)
        return seen if len(seen) <= search.MOST_TITLED else []

    def find_titled(self, text: str) -> list[list[str]]:
        """The chunks, in reading order, of each document whose title a text contains.

        A title within a longer one is ignored.
        """
        titles, words = self._view.rows("titles"), WORD.findall(text)
        runs = [
            (first, first + size)
            for size in range(min(search.MOST_TITLE, len(words)), 0, -1)
            for first in range(len(words) - size + 1)
        ]
        folded = [search.fold_title(words[first:last]) for first, last in runs]
        hashes = np.array([search.hash_name(title) for title in folded], np.uint64)
        places = np.searchsorted(titles.numbers("hash"), hashes).tolist()
        taken: set[int] = set()
        named: dict[int, None] = {}
        for (first, last), title, row in zip(runs, folded, places, strict=True):
            if row == len(titles) or titles.value("title", row) != title:
                continue
            documents = self._name_documents(row)
            if documents and taken.isdisjoint(range(first, last)):
                taken.update(range(first, last))
                named.update(dict.fromkeys(documents))
        return self._list_chunks(named)

    def _list_chunks(self, documents: Any) -> list[list[str]]:
        """The keys of the first `_MOST_LISTED` chunks of each document, by its row."""
        keys, order = self._view.rows("chunks").keys, self._store.reading_order
        listed = (order.list_chunks(row)[:_MOST_LISTED].tolist() for row in documents)
        return [[keys[row] for row in rows] for rows in listed if rows]

    def texts_of(self, keys: Sequence[str], table: str = "condensed") -> list[str]:
        """The embedded words of some facts or chunks, in the order given.

        Raises:
            KeyError: a key is unknown.
        """
        view = self._view
        return [view.text_of(table, view.locate(table, key)) for key in keys]

    def facts_about(
        self, entity_ids: Collection[str], most: int | None = None, *, denied: bool = False
    ) -> list[str]:
        """The keys of the first `most` facts whose head or tail is one of some entities.

        In key order; either the plain facts or the denied ones.
        """
        entities, facts = self._view.rows("entities"), self._view.rows("condensed")
        rows = self._view.find_all("entities", entity_ids).values()
        name = "denials" if denied else "facts"
        if not rows:
            return []
        stated = np.unique(np.concatenate([entities.list_of(name, row) for row in rows]))
        return [facts.keys[row] for row in self._view.select("condensed", stated)[:most]]

    def entities_by_name(self) -> EntitiesByName:
        """The ids of entities by their names in the form of `join_words`."""
        self._store.require_whole()
        return EntitiesByName(self._view)

    @cached_property
    def _finder(self) -> "Finder":
        return self._make_finder()

    def _make_finder(self, at: str | None = None) -> "Finder":
        from kpyramid.snapshot.typed import Finder  # questions in words do not need it

        return Finder(self._view, self.entities_by_name(), at)

    def find(
        self,
        class_name: str,
        where: "Where" = (),
        order_by: str | None = None,
        limit: int | None = None,
        at: str | None = None,
    ) -> "Members":
        """The members of a class that meet all conditions, and how many there are at least.

        A class, subclasses included, and a property are named by label or IRI, or as in the texts
        ("is a" facts, relations); the class `thing` is everything. `where` has a condition by
        property: a name or text (a place stands for all within it), a number or date, a range
        (from, to) of which one may be None, None if no value is stated, or {"not": value}: a value
        is stated, and none is this value.
        `^property` reads from the other end. `order_by` is a property or `count(property)`,
        descending with a leading `-`; things without a value come last. All members without
        `limit`. `at`, a year, month or day, leaves out statements that held only at other times.

        Raises:
            InputError: a class or property is unknown (names the nearest), or a condition is not
                valid.
        """
        finder = self._finder if at is None else self._make_finder(at)
        return finder.find(class_name, where, order_by, limit)

    def compare(self, first: str, second: str, name: str) -> "Comparison":
        """Two things by a property or `count(property)`, each by the value that most places state.

        Raises:
            InputError: a thing or the property is unknown; names the nearest.
        """
        return self._finder.compare(first, second, name)

    def paths(self, first: str, second: str, hops: int = 3) -> "Paths":
        """The shortest paths of at most `hops` facts of the graph between two things.

        Raises:
            InputError: a thing is unknown (names the nearest), or `hops` is not 1 to 4.
        """
        return self._finder.paths(first, second, hops)

    @property
    def names(self) -> Mapping[str, str]:
        """The name of every entity by its id."""
        return EntityTexts(self._view, self._view.name_of)

    @property
    def types(self) -> Mapping[str, str]:
        """The type of every entity by its id."""
        return EntityTexts(self._view, self._view.type_of)

    def surface_forms(self, entity_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
        """All names of some entities as written; without unknown ids."""
        rows = self._view.find_all("entities", entity_ids)
        return {key: self._view.forms_of(row) for key, row in rows.items()}

    def titles(self, document_ids: Collection[str]) -> dict[str, str]:
        """The titles of some documents, by id; without documents that have none."""
        documents = self._view.rows("documents")
        rows = self._view.find_all("documents", document_ids)
        titles = {key: documents.value("title", row) for key, row in rows.items()}
        return {key: title for key, title in titles.items() if title}

    def mentions_in(self, chunk_ids: Sequence[str]) -> list[dict[str, Any]]:
        """The mentions in some chunks, in key order: chunk_id, text, type, start, end."""
        mentions = self._view.rows("mentions")
        mentions_by_key: list[tuple[str, dict[str, Any]]] = []
        for key, row in self._view.find_all("chunks", sorted(set(chunk_ids))).items():
            first, last = map(int, np.searchsorted(mentions.numbers("chunk"), [row, row + 1]))
            names, *columns = (
                mentions.column(name)[first:last].to_pylist() for name in ("mention_id", *_MENTION)
            )
            mentions_by_key += [
                (name, {"chunk_id": key, **dict(zip(_MENTION, values, strict=True))})
                for name, *values in zip(names, *columns, strict=True)
            ]
        return [mention for _, mention in sorted(mentions_by_key, key=lambda pair: pair[0])]

    def read_fact(self, key: str, cosine: float = 0.0) -> NearFact:
        """A fact, or a value of the ontology, in words, with its support and modality."""
        if name_table(key) == "instances":
            return self._view.read_value(self._view.locate("instances", key))
        return self._view.read_fact(self._view.locate("condensed", key), cosine)

    def standardise_condensed(self, condensed_id: str) -> str:
        """The standard relation of a fact, with its ends if they differ or are turned.

        Empty if its wording equals it, apart from articles and `be`.
        """
        return self._view.standardise_fact(self._view.locate("condensed", condensed_id))

    def find_detailed(self, condensed_id: str) -> str:
        """The id of a more detailed fact; empty without one."""
        return self._view.find_detailed(self._view.locate("condensed", condensed_id))

    def summarise_condensed(self, condensed_id: str) -> str:
        """The statement that cites a fact with others of its subject; empty without one."""
        return self._view.summarise_fact(self._view.locate("condensed", condensed_id))

    def evidence(self, fact_id: str) -> list[Evidence]:
        """The places in the documents that support a fact; empty for an unknown id.

        `fact_id` is the key of a condensed fact, an instance or a chunk.
        """
        return self._view.evidence(fact_id)
