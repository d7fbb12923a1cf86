"""A snapshot of which scopes hide a part: what is seen of its rows, names, tables and schema."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.documents.qualifiers import read_qualifiers, unite_qualifiers, write_qualifiers
from kpyramid.errors import InputError
from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.ontology.schema import (
    OntologyClass,
    OntologyProperty,
    Schema,
    parse_schema,
    write_schema,
)
from kpyramid.ontology.store import InstanceStatement, entity_iri, write_instances
from kpyramid.snapshot.evidence import Evidence, find_evidence
from kpyramid.snapshot.indexing import Links
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.store import SEED, MappedRows, Store
from kpyramid.snapshot.view import Scope, View
from kpyramid.storage.contracts import load_contracts, map_column

_TermT = TypeVar("_TermT", OntologyClass, OntologyProperty)


def open_view(store: Store, scopes: Sequence[Scope]) -> View:
    """What all of some scopes let be seen of a store.

    Raises:
        InputError: a scope names what is not there, or what others hide.
    """
    documents = find_documents(store, scopes)
    if documents.all() and not any(scope.classes for scope in scopes):
        return View(store)
    return ScopedView(store, scopes, documents)


# Documents: by labels, by their ids or sources, by their metadata.


def find_documents(store: Store, scopes: Sequence[Scope]) -> Mask:
    """The documents that all scopes let be seen.

    Raises:
        InputError: none of those that the labels let be seen has an id, source or metadata
            that a scope names; the message is the same where a hidden one has.
    """
    documents = store.rows("documents")
    reach = np.ones(len(documents), dtype=np.bool_)
    for scope in scopes:
        if scope.access is not None:
            reach &= _open_by_label(documents.column("access"), scope.access)
        if scope.hidden:
            wanted = pa.array(sorted(scope.hidden), pa.string())
            reach &= ~_to_mask(pc.is_in(documents.column("document_id"), wanted))
    seen = reach.copy()
    for scope in scopes:
        if scope.documents:
            seen &= _find_named(documents, scope.documents, reach)
        seen &= _find_described(documents, scope.metadata, reach)
    return seen


def _open_by_label(labels: pa.Array, access: frozenset[str]) -> Mask:
    """The documents whose labels let them be seen."""
    seen = pc.list_value_length(labels).to_numpy(zero_copy_only=False) == 0
    owners = pc.list_parent_indices(labels).to_numpy(zero_copy_only=False)
    mine = pc.is_in(pc.list_flatten(labels), pa.array(sorted(access), pa.string()))
    seen[owners[_to_mask(mine)]] = True
    return np.asarray(seen, dtype=np.bool_)


def _find_named(documents: MappedRows, names: Collection[str], reach: Mask) -> Mask:
    sources = documents.column("source")
    files = pc.list_element(pc.split_pattern(sources, "#", max_splits=1), 0)
    seen = np.zeros(len(documents), dtype=np.bool_)
    for wanted in sorted(names):
        columns = (documents.column("document_id"), sources, files)
        found = np.any([_to_mask(pc.equal(c, wanted)) for c in columns], axis=0) & reach
        if not found.any():
            hint = _suggest(wanted, files.filter(pa.array(reach)).unique().to_pylist())
            raise InputError(f"no document has the id or source {wanted!r}{hint}")
        seen |= found
    return seen


def _find_described(documents: MappedRows, pairs: Collection[tuple[str, str]], reach: Mask) -> Mask:
    described = documents.column("metadata")
    owners = pc.list_parent_indices(described).to_numpy(zero_copy_only=False)
    seen = np.ones(len(documents), dtype=np.bool_)
    for field, value in sorted(pairs):
        having = np.zeros(len(documents), dtype=np.bool_)
        having[owners[_to_mask(pc.equal(pc.list_flatten(described), f"{field}={value}"))]] = True
        if not (having & reach).any():
            raise InputError(f"no document has {field} = {value!r} in its metadata")
        seen &= having
    return seen


def _find_class(name: str, schema: Schema) -> str:
    """The IRI of a class by IRI or label.

    Raises:
        InputError: there is no such class.
    """
    if name in schema.class_by_iri:
        return name
    labels = {c.label.casefold(): c.iri for c in schema.classes}
    if name.casefold() not in labels:
        hint = _suggest(name.casefold(), labels)
        raise InputError(f"the ontology has no class {name!r}{hint}")
    return labels[name.casefold()]


def _suggest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""


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


@dataclass(frozen=True, slots=True)
class _Triples:
    """Rows of the triples that are seen; keys of those, and of those that are seen whole."""

    mask: Mask
    seen: frozenset[str]
    whole: frozenset[str]


class ScopedView(View):
    """What all of some scopes let be seen of a store.

    A row is seen when a document that states as much is: of a fact not those of what was merged
    into it because it says less. A name of an entity and a wording of a relation are seen when a
    document that is seen uses them, and a term that completion added when such a wording names
    it. What cannot be divided by documents is seen by whoever sees all of them. Numbers that were
    computed over the whole corpus, such as confidence and the rarity of words, stay as they are.
    """

    def __init__(self, store: Store, scopes: Sequence[Scope], documents: Mask) -> None:
        super().__init__(store)
        self._classes = [scope.classes for scope in scopes if scope.classes]
        self._documents = documents
        self._divides = not documents.all()
        """Whether documents are hidden, and not only facts of other classes."""
        self._tables: dict[str, pa.Table] = {}

    # -- which rows are seen ------------------------------------------------------------------

    def describe(self) -> str:
        """See `View`."""
        if not self._divides:
            return ""
        return f"{int(self._documents.sum()):,} of {len(self._documents):,} documents"

    def mask(self, table: str) -> Mask:
        """See `View`."""
        masks: Mapping[str, Callable[[], Mask]] = {
            "documents": lambda: self._documents,
            "chunks": lambda: self._chunks,
            "condensed": lambda: self._facts,
            "instances": lambda: self._instances,
            "entities": lambda: self._entities,
        }
        return masks[table]()

    def searched(self, table: str) -> Mask:
        """See `View`: an entity that only hidden texts call by its name is found by no vector."""
        return self._named if table == "entities" and self._divides else self.mask(table)

    @cached_property
    def _named(self) -> Mask:
        """The entities that are seen and that a text which is seen calls by their name."""
        forms, seen = self.rows("entity_forms"), self._rows_of("entity_forms")
        owners = forms.numbers("owner")
        names = self.rows("entities").column("name").take(pa.array(owners))
        called = np.zeros(len(self.rows("entities")), dtype=np.bool_)
        called[owners[seen & _to_mask(pc.equal(forms.column("form"), names))]] = True
        return called & self._entities

    @cached_property
    def _chunks(self) -> Mask:
        """The chunks of the documents; with classes those that state something of them."""
        seen = self._rows_of("chunks")
        if not self._members:
            return seen
        stating = np.zeros(len(seen), dtype=np.bool_)
        starts, chunks = self.rows("condensed").lists("place_chunks")
        stating[chunks[np.repeat(self._facts, starts[1:] - starts[:-1])]] = True
        return stating & seen

    @cached_property
    def _facts(self) -> Mask:
        """The condensed facts that they state; with classes those about their individuals."""
        rows = self.rows("condensed")
        heads, tails = rows.numbers("head"), rows.numbers("tail")
        seen = self._stated
        for members in self._members:
            seen = seen & (members[heads] | _at(members, tails))
        return seen

    @cached_property
    def _instances(self) -> Mask:
        """The statements of the ontology that they hold; with classes those about them."""
        rows = self.rows("instances")
        seen = self._held
        for members in self._members:
            ends = (self._pick(members, rows.column(n)) for n in ("subject_id", "object_id"))
            seen = seen & np.any(list(ends), axis=0)
        return seen

    @cached_property
    def _entities(self) -> Mask:
        """The entities of which something seen says something, whatever their class.

        An entity of which no condensed fact is, as its facts were merged, is seen with its name.
        """
        rows, instances = self.rows("condensed"), self.rows("instances")
        found = np.full(len(self.rows("entities")), not self._divides)
        heads, tails = rows.numbers("head"), rows.numbers("tail")
        if self._divides:
            found |= self._entity_forms.owners
            found[heads] = False
            found[tails[tails >= 0]] = False
        found[heads[self._stated]] = True
        tails = tails[self._stated]
        found[tails[tails >= 0]] = True
        for name in ("subject_id", "object_id"):
            found[self._locate(instances.column(name).filter(pa.array(self._held)))] = True
        return found

    def _rows_of(self, table: str) -> Mask:
        """The rows of a table that a document supports that is seen."""
        rows = self.rows(table)
        if table == "chunks":
            return np.asarray(self._documents[rows.numbers("document")], dtype=np.bool_)
        starts, documents = rows.lists("documents")
        before = np.concatenate([[0], np.cumsum(self._documents[documents])])
        return np.asarray(before[starts[1:]] > before[starts[:-1]], dtype=np.bool_)

    @cached_property
    def _stated(self) -> Mask:
        """The facts that are seen whatever their class; what has no name to tell is not."""
        rows = self.rows("condensed")
        if not self._divides:
            return np.ones(len(rows), dtype=np.bool_)
        tails = rows.numbers("tail")
        named, worded = self._entity_forms.owners, self._relation_forms.owners
        tail_named = (tails < 0) | _at(named, tails)
        told: Mask = named[rows.numbers("head")] & worded[rows.numbers("relation")]
        return self._rows_of("condensed") & tail_named & told

    @cached_property
    def _held(self) -> Mask:
        """The statements of the ontology that are seen whatever their class."""
        rows = self.rows("instances")
        if not self._divides:
            return np.ones(len(rows), dtype=np.bool_)
        seen, named = self._rows_of("instances"), self._entity_forms.owners
        objects = rows.column("object_id")
        terms = pa.array(sorted(self._hidden_terms), pa.string())
        for name in ("class_iri", "property_iri"):
            seen = seen & ~_to_mask(pc.is_in(rows.column(name), value_set=terms))
        object_named = _to_mask(pc.is_null(objects)) | self._pick(named, objects)
        return seen & self._pick(named, rows.column("subject_id")) & object_named

    @cached_property
    def _members(self) -> list[Mask]:
        """For each scope with classes the entities that are of one of them or of one below."""
        found = []
        instances = self.rows("instances")
        for names in self._classes:
            wanted = {_find_class(name, self.schema) for name in names}
            below = [
                c.iri
                for c in self.schema.classes
                if any(self.schema.is_subclass(c.iri, iri) for iri in wanted)
            ]
            of_class = pc.is_in(instances.column("class_iri"), pa.array(sorted(below)))
            seen = pa.array(_to_mask(of_class) & self._held)
            members = np.zeros(len(self.rows("entities")), dtype=np.bool_)
            members[self._locate(instances.column("subject_id").filter(seen))] = True
            found.append(members)
        return found

    def _locate(self, keys: pa.Array) -> Integers:
        """The rows of the entities that some keys name; nulls are left out."""
        held = self.rows("entities").column("entity_id")
        rows = pc.index_in(keys.drop_null(), value_set=held)
        return np.asarray(rows.to_numpy(zero_copy_only=False), dtype=np.int64)

    def _pick(self, mask: Mask, keys: pa.Array) -> Mask:
        """For each key whether it names an entity of a mask; false for null."""
        held = self.rows("entities").column("entity_id")
        return _to_mask(pc.is_in(keys, value_set=held.filter(pa.array(mask))))

    # -- rows in words ------------------------------------------------------------------------

    @cached_property
    def _entity_forms(self) -> _Forms:
        rows = self.rows("entity_forms")
        return _Forms(rows, self._rows_of("entity_forms"), len(self.rows("entities")))

    @cached_property
    def _relation_forms(self) -> _Forms:
        rows = self.rows("relation_forms")
        return _Forms(rows, self._rows_of("relation_forms"), len(self.rows("relations")))

    def forms_of(self, entity: int) -> tuple[str, ...]:
        """See `View`."""
        return self._entity_forms.list_of(entity) if self._divides else super().forms_of(entity)

    def names_of(self, entity: int) -> tuple[str, ...]:
        """See `View`."""
        if not self._divides:
            return super().names_of(entity)
        return tuple(sorted({join_words(form) for form in self.forms_of(entity)} - {""}))

    def name_of(self, entity: int) -> str:
        """The name of an entity by its row: the canonical one, unless only hidden texts use it."""
        name = super().name_of(entity)
        return self._entity_forms.choose(entity, name) if self._divides else name

    def wording_of(self, relation: int) -> str:
        """The phrase of a relation by its row: the canonical one, unless only hidden texts use it.

        So too for the relation of a fact that stands for others which are worded otherwise.
        """
        name = super().wording_of(relation)
        return self._relation_forms.choose(relation, name) if self._divides else name

    def select_called(
        self, rows: Sequence[int], has: Callable[[tuple[str, ...]], bool]
    ) -> list[int]:
        """See `View`."""
        return [row for row in self.select("entities", rows) if has(self.names_of(row))]

    @cached_property
    def _qualifiers(self) -> _Forms:
        return _Forms(
            self.rows("qualifiers"), self._rows_of("qualifiers"), len(self.rows("condensed"))
        )

    def qualify_fact(self, row: int) -> tuple[str, ...]:
        """See `View`; of the documents that are seen."""
        if not self._divides:
            return super().qualify_fact(row)
        own, whole = self._qualifiers.list_of(row), super().qualify_fact(row)
        united = unite_qualifiers(read_qualifiers(own), read_qualifiers(whole))
        return tuple(write_qualifiers(united))

    def shows_statement(self, row: int) -> bool:
        """See `View`: when all facts that it cites are seen, in the words that it was made of."""
        if row < 0:
            return False
        cited = self.rows("statements").list_of("facts", row).tolist()
        if not self.mask("condensed")[cited].all():
            return False
        hidden = self.rows("statements").value("anchor", row) in self._hidden_terms
        return not hidden and all(self._tells_whole(fact) for fact in cited)

    def _tells_whole(self, fact: int) -> bool:
        """Whether a fact that is seen has the words that it has for who sees everything."""
        whole = View(self._store)
        same = self.state_fact(fact) == whole.state_fact(fact)
        return same and self.qualify_fact(fact) == whole.qualify_fact(fact)

    def count_support(self, row: int) -> int:
        """See `View`."""
        return int(self._documents[self.rows("condensed").list_of("documents", row)].sum())

    def text_of(self, table: str, row: int) -> str:
        """See `View`; of a fact only those words that its names and wordings let be seen."""
        if table == "chunks" or not self._divides:
            return super().text_of(table, row)
        if table == "entities":
            return self.name_of(row)
        _, head, _, relation, _, tail, _ = self.state_fact(row)
        return f"{head} {relation} {tail}"

    def read_instance(self, row: int) -> dict[str, Any]:
        """See `View`."""
        values = super().read_instance(row)
        return self._cut_instance(values) if self._divides else values

    def _cut_instance(self, row: dict[str, Any]) -> dict[str, Any]:
        """A row of `instances` with the places that are seen, the strongest of them its own."""
        chunks, documents = self.rows("chunks"), self.rows("chunks").numbers("document")
        places = [
            place
            for place in row["places"]
            if (at := chunks.find(place["chunk_id"])) is not None and self._documents[documents[at]]
        ]
        if places[0] != row["places"][0]:
            own = {name: places[0][name] for name in ("chunk_id", "start", "end")}
            row = row | own | {"subject_span": None, "object_span": None}
        ids = _keep(row["triple_ids"], self._triples.seen)
        return row | {"places": places, "triple_ids": ids}

    def evidence(self, key: str) -> list[Evidence]:
        """See `View`; only places in documents that are seen."""
        masks = {"condensed": ("condensed", self._stated), "instance": ("instances", self._held)}
        if (kind := key.partition("-")[0]) in masks:
            table, mask = masks[kind]
            at = self.rows(table).find(key)
            if at is None or not mask[at]:
                return []
        return find_evidence(self._store, self.table, key, self._documents)

    # -- tables -------------------------------------------------------------------------------

    def table(self, name: str) -> pa.Table:
        """One table, read whole: the rows that are seen, with what is seen of each.

        Raises:
            InputError: there is no table of that name, the snapshot is gone, or the table cannot
                be divided by documents.
            IntegrityError: the file is damaged.
        """
        whole = super().table(name)
        if name not in _FILTERS:
            raise InputError(
                f"table {name!r} cannot be divided by documents: it is read by whoever sees all "
                "of them only, with scope = EVERYTHING"
            )
        if name not in self._tables:
            cut = whole
            if self._divides or name in _BY_CLASS:
                cut = _FILTERS[name](self, whole)
            self._tables[name] = load_contracts()[name].finish(cut)
        return self._tables[name]

    def _keep_seen(self, whole: pa.Table) -> pa.Table:
        """The rows of a table that the index has too."""
        table = whole.column_names[0].removesuffix("_id") + "s"
        return whole.filter(pa.array(self.mask(table)))

    def _keep_in_chunks(self, whole: pa.Table) -> pa.Table:
        return whole.filter(pa.array(self._in_seen(whole)))

    def _in_seen(self, table: pa.Table) -> Mask:
        """The rows of a table whose chunk is one of a document that is seen."""
        mask = pa.array(self._rows_of("chunks"))
        chunks = self.rows("chunks").column("chunk_id").filter(mask)
        return _to_mask(pc.is_in(table["chunk_id"].combine_chunks(), value_set=chunks))

    @cached_property
    def _triples(self) -> _Triples:
        """Which triples some statement that is seen supports."""
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
        )

    def _filter_triples(self, whole: pa.Table) -> pa.Table:
        rows = whole.filter(pa.array(self._triples.mask)).to_pylist()
        raw = self.table("raw_triples")
        said = map_column(raw, "raw_triple_id", "qualifiers")
        for row in rows:
            row["raw_triple_ids"] = _keep(row["raw_triple_ids"], said)
            pairs = (pair for key in row["raw_triple_ids"] for pair in said[key])
            row["qualifiers"] = unite_qualifiers(pairs, row["qualifiers"])
        return _build("triples", rows)

    def _filter_entities(self, whole: pa.Table) -> pa.Table:
        mentions = frozenset(self.table("mentions")["mention_id"].to_pylist())
        seen = self._entities
        rows = whole.filter(pa.array(seen)).to_pylist()
        for at, row in zip(np.flatnonzero(seen).tolist(), rows, strict=True):
            row["name"], row["surface_forms"] = self.name_of(at), list(self.forms_of(at))
            row["mentions"] = _keep(row["mentions"], mentions)
        return _build("entities", rows)

    @cached_property
    def _said(self) -> Mapping[str, list[tuple[str, str]]]:
        """What qualifies the triples that are seen."""
        return map_column(self.table("triples"), "triple_id", "qualifiers")

    @cached_property
    def _wordings(self) -> Mapping[str, str]:
        """The relations that are seen, by their ids."""
        return map_column(self.table("relations"), "relation_id", "name")

    @cached_property
    def _standards(self) -> frozenset[str]:
        """The standard relations that may be seen: properties, and wordings of texts."""
        return frozenset(p.label for p in self.schema.properties) | {*self._wordings.values()}

    def _shows_standard(self, row: int) -> bool:
        """Whether the standard relation of a fact and its ends may be seen."""
        facts, seen = self.rows("condensed"), self.mask("entities")
        ends = (int(facts.numbers(f"standard_{end}")[row]) for end in ("head", "tail"))
        named = all(at < 0 or (seen[at] and self.name_of(at)) for at in ends)
        return named and facts.value("standard", row) in self._standards

    def find_detailed(self, row: int) -> str:
        """See `View`; where both are seen in all their words."""
        at = int(self.rows("condensed").numbers("detailed")[row])
        whole = not self._divides or (self._tells_whole(row) and at >= 0 and self._tells_whole(at))
        return super().find_detailed(row) if whole else ""

    def name_standard(self, row: int) -> str:
        """See `View`."""
        hidden = self._divides and not self._shows_standard(row)
        return "" if hidden else super().name_standard(row)

    def _filter_relations(self, whole: pa.Table) -> pa.Table:
        forms = self._relation_forms
        rows = whole.filter(pa.array(forms.owners)).to_pylist()
        known = {row["relation_id"] for row in rows}
        for at, row in zip(np.flatnonzero(forms.owners).tolist(), rows, strict=True):
            row["name"], row["surface_forms"] = self.wording_of(at), list(forms.list_of(at))
            row["inverse_of"] = row["inverse_of"] if row["inverse_of"] in known else None
        return _build("relations", rows)

    def _filter_condensed(self, whole: pa.Table) -> pa.Table:
        rows = whole.filter(pa.array(self._facts))
        if self._divides:
            return _build("condensed", map(self._cut_fact, rows.to_pylist()))
        at, seen = rows.column_names.index("more_detailed_id"), rows["condensed_id"]
        linked = rows["more_detailed_id"]
        linked = pc.if_else(pc.is_in(linked, value_set=seen.combine_chunks()), linked, None)
        return rows.set_column(at, rows.schema.field(at), linked)

    def _cut_fact(self, row: dict[str, Any]) -> dict[str, Any]:
        pairs = zip(row["derived_from"], row["how"], strict=True)
        kept = [pair for pair in pairs if pair[0] in self._triples.seen]
        hidden = {row["anchor"], row["anchor_class"]} & self._hidden_terms
        same = (key for key, how in kept if how != "broader")
        at = self.rows("condensed").find(row["condensed_id"]) or 0
        if not self._shows_standard(at):
            own = {name: row[name.removeprefix("standard_")] for name in _STANDARD_ENDS}
            said = self._wordings[row["relation_id"]]
            row |= {"standard_relation": said, "standard_turned": False, **own}
        return row | {
            "qualifiers": unite_qualifiers(pair for key in same for pair in self._said[key]),
            "derived_from": [key for key, _ in kept],
            "how": [how for _, how in kept],
            "more_detailed_id": self.find_detailed(at) or None,
            "anchor": None if hidden else row["anchor"],
            "anchor_class": None if hidden else row["anchor_class"],
        }

    def _filter_statements(self, whole: pa.Table) -> pa.Table:
        return whole.filter(
            pa.array([self.shows_statement(row) for row in range(whole.num_rows)], pa.bool_())
        )

    def _filter_instances(self, whole: pa.Table) -> pa.Table:
        rows = whole.filter(pa.array(self._instances))
        if not self._divides:
            return rows
        return _build("instances", map(self._cut_instance, rows.to_pylist()))

    def _filter_additions(self, whole: pa.Table) -> pa.Table:
        seen = pa.array(list(self.keys("instances")), pa.string())
        return whole.filter(pc.is_in(whole["instance_id"], value_set=seen))

    def _filter_proposals(self, whole: pa.Table) -> pa.Table:
        """The proposals that are seen, with what is seen of each."""
        found = []
        for row in whole.to_pylist():
            words, hidden = self._words[row["proposal_id"]], self._hidden_terms
            named = {row["iri"], row["domain"], row["range"]}
            if row["label"] not in words or named & hidden:
                continue
            all_seen = self._triples.whole.issuperset(row["triple_ids"])
            ids = _keep(row["triple_ids"], self._triples.seen)
            found.append(
                row
                | {name: None for name in ("inverse_of", "splits") if row[name] in hidden}
                | {"phrases": _keep(row["phrases"], words), "triple_ids": ids, "support": len(ids)}
                | ({} if all_seen else {"definition": "", "note": ""})
            )
        return _build("proposals", found)

    # -- schema -------------------------------------------------------------------------------

    @cached_property
    def schema(self) -> Schema:
        """The ontology's schema, with what completion added of what is seen.

        A term that it added is there when a wording that is seen names it, with its alternative
        labels of that kind; with its definition when all that supports it is seen.
        """
        whole = self._whole_schema
        if not self._divides:
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
        return Schema(whole.base, tuple(classes), tuple(properties), tuple(axioms))

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
        """See `View`; never with where statements are said."""
        entities, instances = self.rows("entities"), self.rows("instances")

        def name(key: str) -> str:
            at = entities.find(key)
            return key if at is None else self.name_of(at)

        statements = (
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
            for row in map(instances.read, self.select("instances", range(len(instances))))
        )
        return write_schema(self.schema), write_instances(statements)

    @cached_property
    def _whole_schema(self) -> Schema:
        return View(self._store).schema

    @cached_property
    def _seed(self) -> Schema:
        return parse_schema(self._store.read_text(SEED), source=f"seed of {self._store.id}")

    @cached_property
    def _all_proposals(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._store.table("proposals").to_pylist()
        return rows

    @cached_property
    def _hidden_terms(self) -> frozenset[str]:
        """IRIs of classes and properties that were added or proposed, and are not seen.

        None of them says anything of a seed ontology: that is written by people for all to read.
        """
        if not self._divides:
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
        rows = [row for row in self._all_proposals if row["state"] != "alias"]
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
        ids = {key for row in self._all_proposals for key in row["triple_ids"]}
        facts = self._store.table("triples")
        near = pc.is_in(facts["triple_id"], value_set=pa.array(sorted(ids), pa.string()))
        triples = {row["triple_id"]: row for row in facts.filter(near).to_pylist()}
        return {
            row["proposal_id"]: self._list_words(row, [triples[key] for key in row["triple_ids"]])
            for row in self._all_proposals
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
        row = self.rows("relations").find(triple["relation_id"])
        return () if row is None else self._relation_forms.list_of(row)

    def _list_tails(self, triple: Mapping[str, Any]) -> tuple[str, ...]:
        if triple["tail_id"] is None:
            return (triple["literal"],)
        row = self.rows("entities").find(triple["tail_id"])
        return () if row is None else self.forms_of(row)

    @cached_property
    def _words_of(self) -> Mapping[str, frozenset[str]]:
        """By IRI the words of the schema that are seen, of what completion added or widened."""
        found: dict[str, frozenset[str]] = {}
        for row in self._all_proposals:
            if row["state"] in ("accepted", "alias"):
                words = self._words[row["proposal_id"]]
                found[row["iri"]] = found.get(row["iri"], frozenset()) | words
        return found

    @cached_property
    def _wholly_seen(self) -> frozenset[str]:
        """IRIs of the added terms of which all that supports them is seen."""
        return frozenset(
            row["iri"]
            for row in self._all_proposals
            if self._triples.whole.issuperset(row["triple_ids"])
        )


_STANDARD_ENDS = ("standard_head_id", "standard_tail_id")
_FILTERS: Mapping[str, Callable[[ScopedView, pa.Table], pa.Table]] = {
    "documents": ScopedView._keep_seen,
    "chunks": ScopedView._keep_seen,
    "claims": ScopedView._keep_in_chunks,
    "mentions": ScopedView._keep_in_chunks,
    "raw_triples": ScopedView._keep_in_chunks,
    "triples": ScopedView._filter_triples,
    "entities": ScopedView._filter_entities,
    "relations": ScopedView._filter_relations,
    "condensed": ScopedView._filter_condensed,
    "statements": ScopedView._filter_statements,
    "instances": ScopedView._filter_instances,
    "additions": ScopedView._filter_additions,
    "proposals": ScopedView._filter_proposals,
}
"""How a table is divided. One that is not here is read by whoever sees everything."""
_BY_CLASS = frozenset({"chunks", "condensed", "statements", "instances", "additions"})
"""Tables that are divided by classes as well."""


def _build(name: str, rows: Iterable[Mapping[str, object]]) -> pa.Table:
    return load_contracts()[name].build(rows)


def _keep(keys: Iterable[str], seen: Collection[str]) -> list[str]:
    return [key for key in keys if key in seen]


def _to_mask(values: pa.Array) -> Mask:
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _at(mask: Mask, rows: npt.NDArray[Any]) -> Mask:
    """For each row whether it is in a mask; a negative one is in none."""
    return (rows >= 0) & mask[rows] if len(mask) else np.zeros(len(rows), dtype=np.bool_)
