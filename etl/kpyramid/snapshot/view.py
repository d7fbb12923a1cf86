"""A snapshot as its scopes let it be seen: the one reader of its store."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import InputError
from kpyramid.snapshot.evidence import Evidence, find_evidence
from kpyramid.snapshot.index import Part, Rows
from kpyramid.snapshot.indexing import Links
from kpyramid.snapshot.mapped import SEARCHED, STATEMENTS, MappedRows
from kpyramid.snapshot.scopes import Scope
from kpyramid.snapshot.store import INSTANCES, SCHEMA, SEED, HeldTable, Store
from kpyramid.snapshot.words import MOST_SHARED, Mask, hash_name, join_words
from kpyramid.storage.contracts import load_contracts

# What reads the ontology is loaded when it is read: passages and facts do without it.
if TYPE_CHECKING:
    from kpyramid.ontology.schema import OntologyClass, OntologyProperty, Schema

LITERAL = "LITERAL"
_MENTION = ("text", "type", "start", "end")
_TermT = TypeVar("_TermT", "OntologyClass", "OntologyProperty")

Statement = tuple[str, str, str, str, str | None, str, str]
"""Id, name and type of the head, relation, id, name and type of the tail."""
Weight = tuple[float, int, bool, bool]
"""Confidence of the best triple, statements, whether one is negated, whether one is hedged."""


class View:
    """What all of some scopes let be seen of a store; a further scope only narrows it.

    A row is seen when a document that states as much is: of a fact not those of what was merged
    into it because it says less. A name of an entity and a wording of a relation are seen when a
    document that is seen uses them, and a term that completion added when such a wording names
    it. What cannot be divided by documents is seen by whoever sees all of them. A mask is None
    where it hides no row. Numbers that were computed over the whole corpus, such as confidence
    and the rarity of words, stay as they are.
    """

    def __init__(self, store: Store, scopes: Sequence[Scope]) -> None:
        self._store = store
        self._index = store.index
        self.scopes = tuple(scopes)
        self._tables: dict[str, pa.Table] = {}

    def narrow(self, scope: Scope) -> "View":
        """What is left of this view in another scope."""
        return View(self._store, (*self.scopes, scope))

    # -- which rows are seen ------------------------------------------------------------------

    @cached_property
    def documents(self) -> Mask | None:
        """The documents that are seen.

        Raises:
            InputError: none of those that the labels let be seen has an id, source or metadata
                that a scope names; the message is the same where a hidden one has.
        """
        reach = np.ones(len(self._index.rows("documents")), dtype=np.bool_)
        for scope in self.scopes:
            reach &= self._open_by_label(scope.access)
        seen = reach.copy()
        for scope in self.scopes:
            if scope.documents:
                seen &= self._named_documents(scope.documents, reach)
            seen &= self._described_documents(scope.metadata, reach)
        return None if seen.all() else seen

    @cached_property
    def chunks(self) -> Mask | None:
        """The chunks of those documents; with classes those that state something of them."""
        seen = self._rows_of("chunks")
        if not self._members:
            return seen
        stating = np.zeros(len(self._index.rows("chunks")), dtype=np.bool_)
        starts, chunks = self._index.rows("condensed").lists("place_chunks")
        facts = self.facts
        assert facts is not None  # classes are named
        stating[chunks[np.repeat(facts, starts[1:] - starts[:-1])]] = True
        return stating if seen is None else stating & seen

    @cached_property
    def facts(self) -> Mask | None:
        """The condensed facts that they state; with classes those about their individuals."""
        rows = self._index.rows("condensed")
        heads, tails = rows.numbers("head"), rows.numbers("tail")
        return _join(
            self._stated, *(members[heads] | _at(members, tails) for members in self._members)
        )

    @cached_property
    def instances(self) -> Mask | None:
        """The statements of the ontology that they hold; with classes those about them."""
        rows = self._index.rows("instances")
        about = (
            self._pick(members, rows.column("subject_id"))
            | self._pick(members, rows.column("object_id"))
            for members in self._members
        )
        return _join(self._held, *about)

    @cached_property
    def entities(self) -> Mask | None:
        """The entities of which something seen says something, whatever their class."""
        if self._stated is None or self._held is None:
            return None
        rows, said = self._index.rows("condensed"), self._index.rows("instances")
        found = np.zeros(len(self._index.rows("entities")), dtype=np.bool_)
        found[rows.numbers("head")[self._stated]] = True
        tails = rows.numbers("tail")[self._stated]
        found[tails[tails >= 0]] = True
        for name in ("subject_id", "object_id"):
            found[self._locate(said.column(name).filter(pa.array(self._held)))] = True
        return found

    def describe(self) -> str:
        """How many documents are seen, of how many; empty when all are."""
        if self.documents is None:
            return ""
        return f"{int(self.documents.sum()):,} of {len(self.documents):,} documents"

    def count(self, table: str) -> int:
        """How many rows of `documents`, `chunks`, `condensed`, `instances`, `entities` are seen."""
        mask = self._mask_of(table)
        return len(self._index.rows(table)) if mask is None else int(mask.sum())

    def key_of(self, row: int) -> str:
        """The id of an entity by its row."""
        return str(self._index.rows("entities").keys[row])

    def type_of(self, row: int) -> str:
        """The type of an entity by its row."""
        return str(self._index.rows("entities").value("type", row))

    def _mask_of(self, table: str) -> Mask | None:
        masks: Mapping[str, Callable[[], Mask | None]] = {
            "documents": lambda: self.documents,
            "chunks": lambda: self.chunks,
            "condensed": lambda: self.facts,
            "instances": lambda: self.instances,
            "entities": lambda: self.entities,
        }
        return masks[table]()

    def find(self, table: str, key: str) -> int | None:
        """The row of a key; None for one that is hidden as for one that there is not."""
        row = self._index.rows(table).find(key)
        mask = self._mask_of(table)
        return row if row is None or mask is None or mask[row] else None

    def locate(self, table: str, key: str) -> int:
        """The same.

        Raises:
            KeyError: the key is unknown, or hidden.
        """
        row = self.find(table, key)
        if row is None:
            raise KeyError(key)
        return row

    def keys(self, table: str) -> Iterator[str]:
        """The keys of the rows that are seen, in their order."""
        keys, mask = self._index.rows(table).keys, self._mask_of(table)
        rows = range(len(keys)) if mask is None else np.flatnonzero(mask)
        return (keys[int(row)] for row in rows)

    def _open_by_label(self, access: frozenset[str] | None) -> Mask:
        """The documents whose labels let them be seen."""
        labels = self._index.rows("documents").column("access")
        if access is None:
            return np.ones(len(labels), dtype=np.bool_)
        seen = pc.list_value_length(labels).to_numpy(zero_copy_only=False) == 0
        owners = pc.list_parent_indices(labels).to_numpy(zero_copy_only=False)
        mine = pc.is_in(pc.list_flatten(labels), pa.array(sorted(access), pa.string()))
        seen[owners[mine.to_numpy(zero_copy_only=False)]] = True
        return np.asarray(seen, dtype=np.bool_)

    def _named_documents(self, names: Collection[str], reach: Mask) -> Mask:
        rows = self._index.rows("documents")
        sources = rows.column("source")
        files = pc.list_element(pc.split_pattern(sources, "#", max_splits=1), 0)
        seen = np.zeros(len(rows), dtype=np.bool_)
        for wanted in sorted(names):
            same = [pc.equal(c, wanted) for c in (rows.column("document_id"), sources, files)]
            found = np.any([mask.to_numpy(zero_copy_only=False) for mask in same], axis=0) & reach
            if not found.any():
                open_ones = files.filter(pa.array(reach)).unique().to_pylist()
                near = get_close_matches(wanted, open_ones, 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise InputError(f"no document has the id or source {wanted!r}{hint}")
            seen |= found
        return seen

    def _described_documents(self, pairs: Collection[tuple[str, str]], reach: Mask) -> Mask:
        rows = self._index.rows("documents")
        described = rows.column("metadata")
        owners = pc.list_parent_indices(described).to_numpy(zero_copy_only=False)
        flat = pc.list_flatten(described)
        seen = np.ones(len(rows), dtype=np.bool_)
        for field, value in sorted(pairs):
            same = pc.equal(flat, f"{field}={value}").to_numpy(zero_copy_only=False)
            having = np.zeros(len(rows), dtype=np.bool_)
            having[owners[same]] = True
            if not (having & reach).any():
                raise InputError(f"no document has {field} = {value!r} in its metadata")
            seen &= having
        return seen

    def _rows_of(self, table: str) -> Mask | None:
        """The rows of a table that a document supports that is seen."""
        if self.documents is None:
            return None
        return np.asarray(self._index.mask_documents(self.documents, table), np.bool_)

    @cached_property
    def _stated(self) -> Mask | None:
        """The facts that are seen whatever their class; what has no name to tell is not."""
        seen = self._rows_of("condensed")
        if seen is None or self._entity_forms is None or self._relation_forms is None:
            return None
        rows = self._index.rows("condensed")
        tails = rows.numbers("tail")
        named, worded = self._entity_forms.owners, self._relation_forms.owners
        tail_named = (tails < 0) | _at(named, tails)
        told: Mask = named[rows.numbers("head")] & worded[rows.numbers("relation")]
        return seen & tail_named & told

    @cached_property
    def _held(self) -> Mask | None:
        """The statements of the ontology that are seen whatever their class."""
        seen = self._rows_of("instances")
        if seen is None or self._entity_forms is None:
            return None
        rows, named = self._index.rows("instances"), self._entity_forms.owners
        objects = rows.column("object_id")
        terms = pa.array(sorted(self._hidden_terms), pa.string())
        for name in ("class_iri", "property_iri"):
            seen = seen & ~_tell(pc.is_in(rows.column(name), value_set=terms))
        object_named = _tell(pc.is_null(objects)) | self._pick(named, objects)
        return seen & self._pick(named, rows.column("subject_id")) & object_named

    @cached_property
    def _members(self) -> list[Mask]:
        """For each scope with classes the entities that are of one of them or of one below."""
        found = []
        said = self._index.rows("instances")
        for scope in self.scopes:
            if not scope.classes:
                continue
            wanted = {_find_class(name, self.schema) for name in scope.classes}
            below = [
                c.iri
                for c in self.schema.classes
                if any(self.schema.is_subclass(c.iri, iri) for iri in wanted)
            ]
            of_class = _tell(pc.is_in(said.column("class_iri"), pa.array(sorted(below))))
            if self._held is not None:
                of_class = of_class & self._held
            members = np.zeros(len(self._index.rows("entities")), dtype=np.bool_)
            members[self._locate(said.column("subject_id").filter(pa.array(of_class)))] = True
            found.append(members)
        return found

    def _locate(self, keys: pa.Array) -> npt.NDArray[np.int64]:
        """The rows of the entities that some keys name; nulls are left out."""
        held = self._index.rows("entities").column("entity_id")
        rows = pc.index_in(keys.drop_null(), value_set=held)
        return np.asarray(rows.to_numpy(zero_copy_only=False), dtype=np.int64)

    def _pick(self, mask: Mask, keys: pa.Array) -> Mask:
        """For each key whether it names an entity of a mask; false for null."""
        held = self._index.rows("entities").column("entity_id")
        return _tell(pc.is_in(keys, value_set=held.filter(pa.array(mask))))

    # -- what things are called ---------------------------------------------------------------

    @cached_property
    def _entity_forms(self) -> "_Forms | None":
        return self._open_forms("entity_forms", "entities")

    @cached_property
    def _relation_forms(self) -> "_Forms | None":
        return self._open_forms("relation_forms", "relations")

    def _open_forms(self, name: str, owners: str) -> "_Forms | None":
        seen = self._rows_of(name) if self._knows(name) else None
        if seen is None:
            return None
        return _Forms(self._index.rows(name), seen, len(self._index.rows(owners)))

    def _knows(self, name: str) -> bool:
        if self.documents is None:
            return False
        if not self._store.holds(f"index/{name}.arrow"):
            raise InputError(
                f"snapshot {self._store.id} was built by an earlier version, which did not keep "
                "which document uses which name; so it is read as a whole only. `kpyramid build "
                "CORPUS` makes it anew: what is in the warehouse's caches costs nothing"
            )
        return True

    def forms_of(self, entity: int) -> tuple[str, ...]:
        """All names of an entity as written, by its row."""
        if self._entity_forms is None:
            return tuple(self._index.rows("entities").value("surface_forms", entity))
        return self._entity_forms.list_of(entity)

    def names_of(self, entity: int) -> tuple[str, ...]:
        """The same in the form of `join_words`, sorted."""
        if self._entity_forms is None:
            return tuple(self._index.rows("entities").value("names", entity))
        return tuple(sorted({join_words(form) for form in self.forms_of(entity)} - {""}))

    def name_of(self, entity: int) -> str:
        """The name of an entity by its row: the canonical one, unless only hidden texts use it."""
        name = str(self._index.rows("entities").value("name", entity))
        return name if self._entity_forms is None else self._entity_forms.choose(entity, name)

    def wording_of(self, relation: int) -> str:
        """The phrase of a relation by its row: the canonical one, unless only hidden texts use it.

        So too for the relation of a fact that stands for others which are worded otherwise.
        """
        name = str(self._index.rows("relations").value("name", relation))
        return name if self._relation_forms is None else self._relation_forms.choose(relation, name)

    def state_entity(self, row: int) -> tuple[str, str, str]:
        """Id, name and type of an entity."""
        return self.key_of(row), self.name_of(row), self.type_of(row)

    def find_named(self, name: str) -> list[int] | None:
        """The rows of the entities that have a name in the form of `join_words`; None of none."""
        rows, hashes = self._index.rows("names"), self._index.rows("names").numbers("hash")
        wanted = np.uint64(hash_name(name))
        at = int(hashes.searchsorted(wanted))
        while at < len(hashes) and hashes[at] == wanted:
            if rows.value("name", at) == name:
                return self._with_name(name, at) or None
            at += 1
        return None

    def list_all_names(self) -> Iterator[str]:
        """Every name that an entity has, in the form of `join_words`."""
        rows = self._index.rows("names")
        for at in range(len(rows)):
            name = rows.value("name", at)
            if self._entity_forms is None or self._with_name(name, at):
                yield name

    def find_with_word(self, word: str) -> list[int]:
        """The rows of the entities with a word in a name; none for one that too many share."""
        words = self._index.rows("name_words")
        at = words.find(word)
        return [] if at is None else self._with_word(word, at)

    def find_with_start(self, start: str) -> list[int]:
        """The rows of the entities with a word in a name that begins so; none for too many."""
        words = self._index.rows("name_words")
        found: set[int] = set()
        for at in words.keys.starting(start):
            found.update(self._with_word(words.keys[at], at))
            if len(found) > MOST_SHARED:
                return []
        return sorted(found)

    def _with_name(self, name: str, at: int) -> list[int]:
        rows = self._index.rows("names").list_of("entities", at).tolist()
        return [row for row in rows if self._is_called(row, lambda names: name in names)]

    def _with_word(self, word: str, at: int) -> list[int]:
        rows = self._index.rows("name_words").list_of("entities", at).tolist()
        return [
            row
            for row in rows
            if self._is_called(row, lambda names: any(word in name.split() for name in names))
        ]

    def _is_called(self, row: int, has: Callable[[tuple[str, ...]], bool]) -> bool:
        if self.entities is None:
            return True
        return bool(self.entities[row]) and has(self.names_of(row))

    # -- rows in words ------------------------------------------------------------------------

    def state_condensed(self, key: str) -> Statement:
        """A condensed fact in words; a literal tail has no id and the type `LITERAL`.

        Raises:
            KeyError: there is no such fact.
        """
        return self._state_fact(self.locate("condensed", key))

    def _state_fact(self, row: int) -> Statement:
        facts = self._index.rows("condensed")
        relation = self.wording_of(int(facts.numbers("relation")[row]))
        tail = int(facts.numbers("tail")[row])
        value: tuple[str | None, str, str] = (None, facts.value("literal", row), LITERAL)
        if tail >= 0:
            value = self.state_entity(tail)
        return *self.state_entity(int(facts.numbers("head")[row])), relation, *value

    def weigh_condensed(self, key: str) -> Weight:
        """How well a condensed fact is supported, by no more statements than are seen.

        Raises:
            KeyError: there is no such fact.
        """
        facts = self._index.rows("condensed")
        row = self.locate("condensed", key)
        support = int(facts.numbers("support")[row])
        if self.documents is not None:
            chunks = facts.list_of("place_chunks", row)
            documents = self._index.rows("chunks").numbers("document")[chunks]
            support = min(support, int(self.documents[documents].sum()))
        return (
            float(facts.numbers("confidence")[row]),
            support,
            bool(facts.value("negated", row)),
            bool(facts.value("hedged", row)),
        )

    def list_facts(self, entity_ids: Collection[str], most: int | None) -> list[str]:
        """The keys of the first `most` condensed facts about entities, in key order."""
        entities, facts = self._index.rows("entities"), self._index.rows("condensed")
        rows = [row for key in entity_ids if (row := self.find("entities", key)) is not None]
        if not rows:
            return []
        found = np.unique(np.concatenate([entities.list_of("facts", row) for row in rows]))
        found = found if self.facts is None else found[self.facts[found]]
        return [facts.keys[int(row)] for row in found[:most]]

    def list_instances(self, subject_ids: Collection[str]) -> list[dict[str, Any]]:
        """The rows of the table `instances` about some individuals, in key order."""
        entities = self._index.rows("entities")
        rows = [row for key in subject_ids if (row := self.find("entities", key)) is not None]
        found = sorted({int(at) for row in rows for at in entities.list_of("instances", row)})
        mask = self.instances
        return [self._read_instance(row) for row in found if mask is None or mask[row]]

    def _read_instance(self, row: int) -> dict[str, Any]:
        said = self._index.rows("instances").read(row)
        del said["documents"]  # rows of the index
        return said if self.documents is None else self._filter_instance(said)

    def _filter_instance(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row of `instances` with the places that are seen, the strongest of them its own."""
        places = [place for place in row["places"] if self._sees_chunk(place["chunk_id"])]
        if places[0] != row["places"][0]:
            own = {name: places[0][name] for name in ("chunk_id", "start", "end")}
            row = row | own | {"subject_span": None, "object_span": None}
        ids = [key for key in row["triple_ids"] if key in self._triples.seen]
        return row | {"places": places, "triple_ids": ids}

    def state_instance(self, key: str) -> Statement:
        """A statement of the ontology: subject with name and type, label of the property, value.

        Of a membership the label is `is a` and the value the class's label.

        Raises:
            KeyError: there is no such instance.
        """
        said = self._index.rows("instances").read(self.locate("instances", key))
        subject = self._state_entity_of(said["subject_id"])
        if said["property_iri"] is None:
            label = self.schema.class_by_iri[said["class_iri"]].label
            return *subject, "is a", None, label, LITERAL
        label = self.schema.property_by_iri[said["property_iri"]].label
        if said["object_id"] is None:
            return *subject, label, None, said["literal"], LITERAL
        return *subject, label, *self._state_entity_of(said["object_id"])

    def _state_entity_of(self, key: str) -> tuple[str, str, str]:
        row = self._index.rows("entities").find(key)
        if row is None:
            raise KeyError(key)
        return self.state_entity(row)

    def list_mentions(self, chunk_ids: Sequence[str]) -> list[dict[str, Any]]:
        """The mentions in some chunks, in key order: chunk_id, text, type, start, end."""
        mentions = self._index.rows("mentions")
        found: list[tuple[str, dict[str, Any]]] = []
        for key in sorted(set(chunk_ids)):
            row = self.find("chunks", key)
            if row is None:
                continue
            first, last = map(int, np.searchsorted(mentions.numbers("chunk"), [row, row + 1]))
            names, *columns = (
                mentions.column(name)[first:last].to_pylist() for name in ("mention_id", *_MENTION)
            )
            found += [
                (name, {"chunk_id": key, **dict(zip(_MENTION, said, strict=True))})
                for name, *said in zip(names, *columns, strict=True)
            ]
        return [mention for _, mention in sorted(found, key=lambda pair: pair[0])]

    def titles(self, document_ids: Collection[str]) -> dict[str, str]:
        """The titles of those of some documents that have one."""
        rows = {key: self.find("documents", key) for key in document_ids}
        documents = self._index.rows("documents")
        titles = {k: documents.value("title", at) for k, at in rows.items() if at is not None}
        return {key: title for key, title in titles.items() if title}

    def evidence(self, key: str) -> list[Evidence]:
        """The places that support the row of a key, in their order; none for an unknown key."""
        kind = key.partition("-")[0]
        masks = {"condensed": self._stated, "instance": self._held}
        mask, rows = masks.get(kind), self._index.rows
        if mask is not None:
            at = rows("condensed" if kind == "condensed" else "instances").find(key)
            if at is None or not mask[at]:
                return []
        return find_evidence(self._index, self.table, key, self.documents)

    def require_whole(self) -> None:
        """Passes unless a file that is open was cut short; see `Index.require_whole`."""
        self._index.require_whole()

    # -- search -------------------------------------------------------------------------------

    def neighbours(self, table: str, vector: Matrix, k: int) -> list[tuple[str, str, float]]:
        """The k rows of a table nearest to a vector: key, embedded words, cosine; best first."""
        part = self._part(table)
        found = part.nearest(vector, k, self._searched(table))
        return [(part.keys[row], self._text_of(part, table, row), at) for row, at in found]

    def words(self, table: str, text: str, k: int) -> list[tuple[str, float]]:
        """The k rows of a table with the best BM25 score for a text: key, score; best first."""
        part = self._part(table)
        return [(part.keys[row], at) for row, at in part.words(text, k, self._searched(table))]

    def width(self, table: str) -> int | None:
        """The length of a table's vectors; None where it has none."""
        part = self._part(table)
        return part.matrix.shape[1] if len(part) else None

    def vectors_of(self, table: str, keys: Sequence[str]) -> Matrix:
        """The vectors of some rows of a table, in the order given.

        Raises:
            KeyError: a key is unknown.
        """
        part = self._part(table)
        return np.asarray(part.matrix[[self._locate_in(part, table, key) for key in keys]])

    def texts_of(self, table: str, keys: Sequence[str]) -> list[str]:
        """The words that some rows of a table were embedded by, in the order given.

        Raises:
            KeyError: a key is unknown.
        """
        part = self._part(table)
        rows = (self._locate_in(part, table, key) for key in keys)
        return [self._text_of(part, table, row) for row in rows]

    def place_vectors(self, chunk_ids: Sequence[str]) -> tuple[Matrix, Rows]:
        """The vectors of chunks in their places (`ReadingOrder`), and their documents' rows.

        Raises:
            KeyError: a key is unknown.
        """
        order = self._index.reading_order
        rows = np.array([self.locate("chunks", key) for key in chunk_ids], np.int64)
        return order.place_vectors(rows, self.chunks), order.documents[rows]

    def _part(self, table: str) -> Part | HeldTable:
        """What a table is searched by.

        Raises:
            InputError: the table is searched in ablations only, and something is hidden.
        """
        if table not in SEARCHED and self._hides:
            raise InputError(f"table {table!r} is searched as a whole only; open it unscoped")
        return self._store.part(table)

    def _searched(self, table: str) -> Mask | None:
        return self._mask_of(table) if table in SEARCHED else None

    def _locate_in(self, part: Part | HeldTable, table: str, key: str) -> int:
        return self.locate(table, key) if table in SEARCHED else part.locate(key)

    def _text_of(self, part: Part | HeldTable, table: str, row: int) -> str:
        """The words of a row; of a fact only those that its names and wordings let be seen."""
        if table != "condensed" or self.documents is None:
            return part.text_of(row)
        _, head, _, relation, _, tail, _ = self._state_fact(row)
        return f"{head} {relation} {tail}"

    # -- tables -------------------------------------------------------------------------------

    @property
    def _hides(self) -> bool:
        return self.documents is not None or bool(self._members)

    def table(self, name: str) -> pa.Table:
        """One table, read whole: the rows that are seen, with what is seen of each.

        Raises:
            InputError: there is no table of that name, the snapshot is gone, or something is
                hidden and the table cannot be divided by documents.
            IntegrityError: the file is damaged.
        """
        whole = self._store.table(name)
        if not self._hides:
            return whole
        if name not in _FILTERS:
            raise InputError(
                f"table {name!r} cannot be divided by documents: it is read by whoever sees all "
                "of them only, with scope = EVERYTHING"
            )
        if name not in self._tables:
            self._tables[name] = load_contracts()[name].finish(_FILTERS[name](self, whole))
        return self._tables[name]

    def _keep_seen(self, whole: pa.Table) -> pa.Table:
        """The rows of a table that the index has too."""
        name = whole.column_names[0].removesuffix("_id")
        masks = {"document": "documents", "chunk": "chunks"}
        mask = self._mask_of(masks[name])
        return whole if mask is None else whole.filter(pa.array(mask))

    def _keep_in_chunks(self, whole: pa.Table) -> pa.Table:
        return whole if self.documents is None else whole.filter(pa.array(self._in_seen(whole)))

    def _in_seen(self, table: pa.Table) -> Mask:
        """The rows of a table whose chunk is one of a document that is seen."""
        mask = self._rows_of("chunks")
        assert mask is not None  # some documents are hidden
        chunks = self._index.rows("chunks").column("chunk_id").filter(pa.array(mask))
        return _tell(pc.is_in(table["chunk_id"].combine_chunks(), value_set=chunks))

    def _sees_chunk(self, chunk_id: str) -> bool:
        row = self._index.rows("chunks").find(chunk_id)
        documents = self._index.rows("chunks").numbers("document")
        return row is not None and (self.documents is None or bool(self.documents[documents[row]]))

    @cached_property
    def _triples(self) -> "_Triples":
        """Which triples some statement that is seen supports; asked where something is hidden."""
        triples, raw = self._store.table("triples"), self._store.table("raw_triples")
        links = Links.from_column(triples["raw_triple_ids"], raw["raw_triple_id"])
        read = self._in_seen(raw)
        count = np.bincount(links.owners, read[links.targets], minlength=triples.num_rows)
        keys = triples["triple_id"].combine_chunks()
        whole = count == links.count(triples.num_rows)
        return _Triples(
            np.asarray(count > 0),
            frozenset(keys.filter(pa.array(count > 0)).to_pylist()),
            frozenset(keys.filter(pa.array(whole)).to_pylist()),
            raw["raw_triple_id"].combine_chunks().filter(pa.array(read)),
        )

    def _filter_triples(self, whole: pa.Table) -> pa.Table:
        if self.documents is None:
            return whole
        rows = whole.filter(pa.array(self._triples.mask)).to_pylist()
        read = frozenset(self._triples.raw.to_pylist())
        return _build("triples", ({**r, "raw_triple_ids": _keep(r["raw_triple_ids"], read)}
                                  for r in rows))  # fmt: skip

    def _filter_entities(self, whole: pa.Table) -> pa.Table:
        if self.entities is None:
            return whole
        mentions = frozenset(self.table("mentions")["mention_id"].to_pylist())
        rows = []
        for at in np.flatnonzero(self.entities).tolist():
            row = whole.slice(at, 1).to_pylist()[0]
            row["name"], row["surface_forms"] = self.name_of(at), list(self.forms_of(at))
            rows.append(row | {"mentions": _keep(row["mentions"], mentions)})
        return _build("entities", rows)

    def _filter_relations(self, whole: pa.Table) -> pa.Table:
        forms = self._relation_forms
        if forms is None:
            return whole
        used = whole.filter(pa.array(forms.owners))
        known = frozenset(used["relation_id"].to_pylist())
        rows = []
        for at, row in zip(np.flatnonzero(forms.owners).tolist(), used.to_pylist(), strict=True):
            row["name"], row["surface_forms"] = self.wording_of(at), list(forms.list_of(at))
            row["inverse_of"] = row["inverse_of"] if row["inverse_of"] in known else None
            rows.append(row)
        return _build("relations", rows)

    def _filter_condensed(self, whole: pa.Table) -> pa.Table:
        rows = whole if self.facts is None else whole.filter(pa.array(self.facts))
        return rows if self.documents is None else _build(
            "condensed", map(self._filter_fact, rows.to_pylist())
        )  # fmt: skip

    def _filter_fact(self, row: dict[str, Any]) -> dict[str, Any]:
        pairs = zip(row["derived_from"], row["how"], strict=True)
        kept = [pair for pair in pairs if pair[0] in self._triples.seen]
        hidden = {row["anchor"], row["anchor_class"]} & self._hidden_terms
        return row | {
            "derived_from": [key for key, _ in kept],
            "how": [how for _, how in kept],
            "anchor": None if hidden else row["anchor"],
            "anchor_class": None if hidden else row["anchor_class"],
        }

    def _filter_instances(self, whole: pa.Table) -> pa.Table:
        rows = whole if self.instances is None else whole.filter(pa.array(self.instances))
        return rows if self.documents is None else _build(
            "instances", map(self._filter_instance, rows.to_pylist())
        )  # fmt: skip

    def _filter_additions(self, whole: pa.Table) -> pa.Table:
        seen = pa.array(list(self.keys("instances")), pa.string())
        return whole.filter(pc.is_in(whole["instance_id"], value_set=seen))

    def _filter_proposals(self, whole: pa.Table) -> pa.Table:
        return whole if self.documents is None else _build("proposals", self._proposals)

    # -- schema -------------------------------------------------------------------------------

    @cached_property
    def schema(self) -> "Schema":
        """The ontology's schema, with what completion added of what is seen.

        A term that it added is there when a wording that is seen names it, with its alternative
        labels of that kind; with its definition when all that supports it is seen.
        """
        whole = self._whole_schema
        if self.documents is None:
            return whole
        seed, hidden = self._seed, self._hidden_terms
        classes = [
            self._cut(c, seed.class_by_iri.get(c.iri)) for c in whole.classes if c.iri not in hidden
        ]
        properties = [
            replace(
                self._cut(p, seed.property_by_iri.get(p.iri)),
                inverse_of=None if p.inverse_of in hidden else p.inverse_of,
            )
            for p in whole.properties
            if p.iri not in hidden
        ]
        named = [f"<{iri}>" for iri in hidden]
        axioms = (line for line in whole.axioms if not any(name in line for name in named))
        return type(whole)(whole.base, tuple(classes), tuple(properties), tuple(axioms))

    def _cut(self, term: _TermT, seed: _TermT | None) -> _TermT:
        """A term with what is seen of its words: all that the seed ontology says of it."""
        own = frozenset(seed.alt_labels) if seed else frozenset[str]()
        words = own | self._words_of.get(term.iri, frozenset())
        defined = seed is not None or term.iri in self._wholly_seen
        return replace(
            term,
            alt_labels=tuple(word for word in term.alt_labels if word in words),
            comment=term.comment if defined else "",
        )

    def read_ontology(self, *, sources: bool = False) -> tuple[str, str]:
        """Schema as Turtle and instances as N-Triples, with where they are said if all is seen."""
        if not self._hides:
            if sources:
                return self._store.read_text(SCHEMA), self._store.read_text(INSTANCES)
            stated = self._index.locate(STATEMENTS).read_text("utf-8")
            return self._store.read_text(SCHEMA), stated
        from kpyramid.ontology.schema import write_schema

        return write_schema(self.schema), self._write_statements()

    def _write_statements(self) -> str:
        """The ontology's statements that are seen, as N-Triples without where they are said."""
        entities = self._index.rows("entities")

        def name(key: str) -> str:
            at = entities.find(key)
            return key if at is None else self.name_of(at)

        rows = self._index.rows("instances")
        seen = range(len(rows)) if self.instances is None else np.flatnonzero(self.instances)
        said = (rows.read(int(row)) for row in seen)
        from kpyramid.ontology.store import InstanceStatement, entity_iri, write_instances

        return write_instances(
            InstanceStatement(
                subject_iri=entity_iri(row["subject_id"]),
                property_iri=row["property_iri"],
                class_iri=row["class_iri"],
                object_iri=entity_iri(row["object_id"]) if row["object_id"] else None,
                literal=row["literal"],
                datatype=row["datatype"],
                subject_label=name(row["subject_id"]),
                object_label=name(row["object_id"]) if row["object_id"] else None,
            )
            for row in said
        )

    @cached_property
    def _whole_schema(self) -> "Schema":
        from kpyramid.ontology.schema import parse_schema

        return parse_schema(self._store.read_text(SCHEMA), source=f"snapshot {self._store.id}")

    @cached_property
    def _seed(self) -> "Schema":
        from kpyramid.ontology.schema import parse_schema

        return parse_schema(self._store.read_text(SEED), source=f"seed of {self._store.id}")

    @cached_property
    def _hidden_terms(self) -> frozenset[str]:
        """IRIs of classes and properties that were added or proposed, and are not seen.

        None of them says anything of a seed ontology: that is written by people for all to read.
        """
        if self.documents is None:
            return frozenset()
        whole, seed = self._whole_schema, self._seed
        terms: dict[str, tuple[str | None, ...]] = {
            **{c.iri: c.parents for c in whole.classes if c.iri not in seed.class_by_iri},
            **{
                p.iri: (p.domain, p.range)
                for p in whole.properties
                if p.iri not in seed.property_by_iri
            },
        }
        rows = [
            row for row in self._store.table("proposals").to_pylist() if row["state"] != "alias"
        ]
        terms |= {row["iri"]: (row["domain"], row["range"]) for row in rows}
        seen = {r["iri"] for r in rows if r["label"] in self._words[r["proposal_id"]]}
        hidden = terms.keys() - seen
        while more := {iri for iri in terms.keys() - hidden if hidden & {*terms[iri]}}:
            hidden |= more
        return frozenset(hidden)

    @cached_property
    def _words(self) -> dict[str, frozenset[str]]:
        """By proposal those of its wordings, its label among them, that are seen.

        A label that is none of the wordings was chosen by who saw all facts, so it is seen where
        all of them are.
        """
        table = self._store.table("proposals")
        ids = {key for keys in table["triple_ids"].to_pylist() for key in keys}
        facts = self._store.table("triples")
        near = pc.is_in(facts["triple_id"], value_set=pa.array(sorted(ids), pa.string()))
        triples = {row["triple_id"]: row for row in facts.filter(near).to_pylist()}
        return {
            row["proposal_id"]: self._list_words(row, [triples[key] for key in row["triple_ids"]])
            for row in table.to_pylist()
        }

    def _list_words(
        self, row: Mapping[str, Any], triples: Iterable[Mapping[str, Any]]
    ) -> frozenset[str]:
        words = {row["label"], *row["phrases"]}
        if self._triples.whole.issuperset(row["triple_ids"]):
            return frozenset(words)
        seen = [triple for triple in triples if triple["triple_id"] in self._triples.seen]
        if row["kind"] == "property":
            said = {form for triple in seen for form in self._list_wordings(triple)}
            return frozenset(words & said)
        ends = {end.casefold() for triple in seen for end in self._list_tails(triple)}
        return frozenset(w for w in words if any(w.casefold() in end for end in ends))

    def _list_wordings(self, triple: Mapping[str, Any]) -> tuple[str, ...]:
        row = self._index.rows("relations").find(triple["relation_id"])
        return () if row is None or not self._relation_forms else self._relation_forms.list_of(row)

    def _list_tails(self, triple: Mapping[str, Any]) -> tuple[str, ...]:
        if triple["tail_id"] is None:
            return (triple["literal"],)
        row = self._index.rows("entities").find(triple["tail_id"])
        return () if row is None else self.forms_of(row)

    @cached_property
    def _words_of(self) -> Mapping[str, frozenset[str]]:
        """By IRI the words of the schema that are seen, of what completion added or widened."""
        found: dict[str, frozenset[str]] = {}
        for row in self._store.table("proposals").to_pylist():
            if row["state"] in ("accepted", "alias"):
                words = self._words[row["proposal_id"]]
                found[row["iri"]] = found.get(row["iri"], frozenset()) | words
        return found

    @cached_property
    def _wholly_seen(self) -> frozenset[str]:
        """IRIs of the added terms of which all that supports them is seen."""
        return frozenset(
            row["iri"]
            for row in self._store.table("proposals").to_pylist()
            if self._triples.whole.issuperset(row["triple_ids"])
        )

    @cached_property
    def _proposals(self) -> list[dict[str, Any]]:
        """The proposals that are seen, with what is seen of each."""
        found = []
        for row in self._store.table("proposals").to_pylist():
            words, hidden = self._words[row["proposal_id"]], self._hidden_terms
            named = {row["iri"], row["domain"], row["range"]}
            if row["label"] not in words or named & hidden:
                continue
            whole = self._triples.whole.issuperset(row["triple_ids"])
            ids = _keep(row["triple_ids"], self._triples.seen)
            found.append(
                row
                | {name: None for name in ("inverse_of", "splits") if row[name] in hidden}
                | {"phrases": _keep(row["phrases"], words), "triple_ids": ids, "support": len(ids)}
                | ({} if whole else {"definition": "", "note": ""})
            )
        return found


class _Forms:
    """The names of entities, or the wordings of relations, that documents use which are seen."""

    def __init__(self, rows: MappedRows, seen: Mask, count: int) -> None:
        self._rows, self._seen = rows, seen
        self._owner = rows.numbers("owner")
        self.owners: Mask = np.zeros(count, dtype=np.bool_)
        """The rows of what has any."""
        self.owners[self._owner[seen]] = True

    def list_of(self, owner: int) -> tuple[str, ...]:
        """Those of one row, sorted."""
        first, last = map(int, np.searchsorted(self._owner, [owner, owner + 1]))
        listed = self._rows.column("form")[first:last].to_pylist()
        return tuple(form for form, own in zip(listed, self._seen[first:last], strict=True) if own)

    def choose(self, owner: int, canonical: str) -> str:
        """The canonical one if it is seen, else the longest that is; empty where none is."""
        forms = self.list_of(owner)
        return (
            canonical if canonical in forms else max(forms, key=lambda f: (len(f), f), default="")
        )


@dataclass(frozen=True)
class _Triples:
    """Rows of the triples that are seen; keys of those, and of those all of whose statements are.

    `raw`: keys of the statements that are seen.
    """

    mask: Mask
    seen: frozenset[str]
    whole: frozenset[str]
    raw: pa.Array


_FILTERS: Mapping[str, Callable[[View, pa.Table], pa.Table]] = {
    "documents": View._keep_seen,
    "chunks": View._keep_seen,
    "claims": View._keep_in_chunks,
    "mentions": View._keep_in_chunks,
    "raw_triples": View._keep_in_chunks,
    "triples": View._filter_triples,
    "entities": View._filter_entities,
    "relations": View._filter_relations,
    "condensed": View._filter_condensed,
    "instances": View._filter_instances,
    "additions": View._filter_additions,
    "proposals": View._filter_proposals,
}
"""How a table is divided. One that is not here is read by whoever sees everything."""


def _build(name: str, rows: Iterable[Mapping[str, object]]) -> pa.Table:
    return load_contracts()[name].build(rows)


def _keep(keys: Iterable[str], seen: Collection[str]) -> list[str]:
    return [key for key in keys if key in seen]


def _tell(values: pa.Array) -> Mask:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _at(mask: Mask, rows: npt.NDArray[Any]) -> Mask:
    """For each row whether it is in a mask; a negative one is in none."""
    return (rows >= 0) & mask[rows] if len(mask) else np.zeros(len(rows), dtype=np.bool_)


def _join(*masks: Mask | None) -> Mask | None:
    """The rows that all masks hold."""
    found: Mask | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found & mask
    return found


def _find_class(name: str, schema: "Schema") -> str:
    """The IRI of a class by IRI or label.

    Raises:
        InputError: there is no such class.
    """
    if name in schema.class_by_iri:
        return name
    labels = {c.label.casefold(): c.iri for c in schema.classes}
    if name.casefold() not in labels:
        near = get_close_matches(name.casefold(), labels, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"the ontology has no class {name!r}{hint}")
    return labels[name.casefold()]
