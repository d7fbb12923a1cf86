"""A snapshot of which scopes hide documents: its visible rows, names, tables and schema."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from typing import Any, TypeVar
from weakref import proxy

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.documents.qualifiers import (
    CORRECTED,
    DOCUMENT,
    MORE,
    Qualifiers,
    cite_document,
    list_values,
    read_qualifiers,
    unite_qualifiers,
    write_qualifiers,
)
from kpyramid.documents.validity import date_fact
from kpyramid.documents.words import word_relation
from kpyramid.errors import InputError
from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.ontology.schema import (
    OntologyClass,
    OntologyProperty,
    Schema,
    parse_schema,
    write_schema,
)
from kpyramid.ontology.store import Quotation, state_row, write_instances
from kpyramid.snapshot.mapped import MappedRows, to_mask
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.store import SEED, Store
from kpyramid.snapshot.view import EntityTexts, Scope, View
from kpyramid.storage.contracts import (
    NO,
    Column,
    Contract,
    combine_column,
    load_contracts,
    map_column,
)

Row = dict[str, Any]
_INDEXED = frozenset({"documents", "chunks", "condensed", "entities", "relations", "instances"})
"""Tables whose rows are also in the index, in the same order."""


class _Forms:
    """The names of entities, or the wordings of relations, that visible documents use."""

    def __init__(self, rows: MappedRows, seen: Mask, count: int) -> None:
        self._rows, self._seen = rows, seen
        self._owner = rows.numbers("owner")
        self.owners: Mask = np.zeros(count, dtype=np.bool_)
        """The rows that have any."""
        self.owners[self._owner[seen]] = True

    def list_of(self, owner: int) -> tuple[str, ...]:
        """The forms of a row, sorted."""
        first, last = map(int, np.searchsorted(self._owner, [owner, owner + 1]))
        listed = self._rows.column("form")[first:last].to_pylist()
        return tuple(f for f, seen in zip(listed, self._seen[first:last], strict=True) if seen)

    def choose(self, owner: int, canonical: str) -> str:
        """The canonical form if it is visible, else the longest visible one; else empty."""
        forms = self.list_of(owner)
        return (
            canonical if canonical in forms else max(forms, key=lambda f: (len(f), f), default="")
        )


class DividedView(View):
    """The view of a store some of whose documents are hidden.

    The contracts define the visible rows: a row is visible if a document that states all of it is
    (for a fact, not the documents of broader facts merged into it), and so are the entities and
    relations that visible documents name. Their names are those that visible documents use; a term
    that completion added is visible if such a wording names it. Numbers computed over the whole
    corpus, such as confidence and the rarity of words, are unchanged.
    """

    def __init__(self, store: Store, documents: Mask) -> None:
        super().__init__(store)
        self._masks: dict[str, Mask] = {"documents": documents}
        self._documents = documents
        self.whole = View(store)
        self._terms = _SeenTerms(store, proxy(self))  # no cycle: see `Finder`
        self._keys: dict[str, frozenset[str]] = {}
        self._pairs: dict[str, Mapping[str, list[tuple[str, str]]]] = {}
        self._tables: dict[str, pa.Table] = {}

    # -- which rows are seen ------------------------------------------------------------------

    def describe(self) -> str:
        """See `View`."""
        return f"{int(self._documents.sum()):,} of {len(self._documents):,} documents"

    def mask(self, table: str) -> Mask:
        """See `View`; of any table that can be divided by documents."""
        if table not in self._masks:
            contract = load_contracts()[table]
            seen = self._mark_stated(table)
            for name in contract.needs if table != "statements" else ():
                seen = seen & self._meets(table, contract.column(name))
            self._masks[table] = seen
        return self._masks[table]

    def _mark_stated(self, table: str) -> Mask:
        """The visible rows by `visible_by`, from the index where it has each row's documents."""
        if table == "proposals":
            return self._terms.mark_named()
        if table == "statements":
            shown = map(self.shows_statement, range(len(self.rows(table))))
            return np.fromiter(shown, np.bool_, len(self.rows(table)))
        if table == "contradictions":  # where all sides are seen, in all their words
            rows = self._store.table(table).select(["condensed_ids", "anchor"]).to_pylist()
            sides = ([self.find("condensed", key) for key in r["condensed_ids"]] for r in rows)
            whole = (self._shows_all(f, r["anchor"]) for f, r in zip(sides, rows, strict=True))
            return np.fromiter(whole, np.bool_)
        if table == "chunks":
            return np.asarray(self._documents[self.rows(table).numbers("document")], np.bool_)
        if table in _NAMED:
            return self._forms[table].owners
        if table in _INDEXED:
            return self._rest_on_seen(table)
        seen = np.zeros(len(self._list_keys(table)), np.bool_)
        for name in load_contracts()[table].visible_by:
            owners, refers = self._follow(table, name)
            seen[owners[refers]] = True
        return seen

    def _follow(self, table: str, name: str) -> tuple[Integers, Mask]:
        """The referring row of each reference of a column, and whether its target is visible."""
        column = load_contracts()[table].column(name)
        values = combine_column(self._store.table(table)[name])
        owners: Integers = np.arange(len(values))
        if pa.types.is_list(values.type):
            owners = pc.list_parent_indices(values).to_numpy(zero_copy_only=False)
            values = pc.list_flatten(values)
        return owners, to_mask(pc.is_in(values, value_set=self._keys_of(str(column.target))))

    def _keys_of(self, table: str) -> pa.Array:
        """The keys of the visible rows."""
        return self._list_keys(table).filter(pa.array(self.mask(table)))

    def _list_keys(self, table: str) -> pa.Array:
        """The keys of all rows of a table."""
        return self._read_column(table, load_contracts()[table].key[0])

    def _read_column(self, table: str, name: str) -> pa.Array:
        """A column of all rows, from the index where that has them."""
        if table in _INDEXED:
            return self.rows(table).column(name)
        return combine_column(self._store.table(table)[name])

    def _rest_on_seen(self, name: str) -> Mask:
        """The rows of a file of the index that rest on a visible document."""
        starts, documents = self.rows(name).lists("documents")
        before = np.concatenate([[0], np.cumsum(self._documents[documents])])
        return np.asarray(before[starts[1:]] > before[starts[:-1]], dtype=np.bool_)

    def _meets(self, table: str, column: Column) -> Mask:
        """The rows that refer to a visible row, or to none, by a column that they need."""
        if column.term:
            values = self._read_column(table, column.name)
            hidden = pa.array(sorted(self._terms.hidden), pa.string())
            return ~to_mask(pc.is_in(values, value_set=hidden))
        if table == "instances":
            places = self._locate_entities(self.rows(table).column(column.name))
        else:
            places = self.rows(table).numbers(column.name.removesuffix("_id"))
        return np.append(self.mask(str(column.target)), True)[places]  # -1: to nothing

    def _locate_entities(self, keys: pa.Array) -> Integers:
        """The row of the entity of each key; -1 for null."""
        rows = pc.index_in(keys, value_set=self.rows("entities").column("entity_id"))
        return np.asarray(pc.fill_null(rows, -1).to_numpy(zero_copy_only=False), dtype=np.int64)

    def searched(self, table: str) -> Mask:
        """See `View`: an entity that only hidden texts call by its name is not searched."""
        return self._called if table == "entities" else self.mask(table)

    @cached_property
    def _called(self) -> Mask:
        """The entities that a visible text calls by their name."""
        forms, seen = self.rows("entity_forms"), self._rest_on_seen("entity_forms")
        owners = forms.numbers("owner")
        names = self.rows("entities").column("name").take(pa.array(owners))
        named = owners[seen & to_mask(pc.equal(forms.column("form"), names))]
        return np.isin(np.arange(len(self.rows("entities"))), named)

    @cached_property
    def whole_triples(self) -> frozenset[str]:
        """The triples of which all statements are visible."""
        owners, seen = self._follow("triples", "raw_triple_ids")
        keys = self._list_keys("triples")
        hidden = np.zeros(len(keys), np.bool_)
        hidden[owners[~seen]] = True
        return frozenset(keys.filter(pa.array(~hidden)).to_pylist())

    def list_seen(self, table: str) -> frozenset[str]:
        """The keys of the visible rows."""
        if table not in self._keys:
            self._keys[table] = frozenset(self._keys_of(table).to_pylist())
        return self._keys[table]

    # -- rows in words ------------------------------------------------------------------------

    @cached_property
    def _forms(self) -> Mapping[str, _Forms]:
        return {
            table: _Forms(self.rows(name), self._rest_on_seen(name), len(self.rows(table)))
            for table, name in (*_NAMED.items(), ("condensed", "qualifiers"))
        }

    def forms_of(self, entity: int) -> tuple[str, ...]:
        """See `View`."""
        return self._forms["entities"].list_of(entity)

    def name_of(self, entity: int) -> str:
        """See `View`: the canonical name, unless only hidden texts use it."""
        return self._forms["entities"].choose(entity, super().name_of(entity))

    def wordings_of(self, relation: int) -> tuple[str, ...]:
        """The visible phrases of a relation, sorted."""
        return self._forms["relations"].list_of(relation)

    def wording_of(self, relation: int) -> str:
        """See `View`: the canonical phrase, unless only hidden texts use it.

        This holds also for a fact that stands for others with different wordings.
        """
        return self._forms["relations"].choose(relation, super().wording_of(relation))

    def select_called(
        self, rows: Sequence[int], has: Callable[[tuple[str, ...]], bool]
    ) -> list[int]:
        """See `View`."""
        seen = self.select("entities", rows)
        return [row for row in seen if has(tuple(map(join_words, self.forms_of(row))))]

    def qualify_fact(self, row: int) -> tuple[str, ...]:
        """See `View`; the qualifiers by visible documents."""
        stated, whole = self._forms["condensed"].list_of(row), super().qualify_fact(row)
        united = unite_qualifiers(read_qualifiers(stated), self._cite(read_qualifiers(whole)))
        return tuple(write_qualifiers(united))

    @cached_property
    def _cited(self) -> frozenset[str | None]:
        """The citations of the visible documents."""
        documents, seen = self.rows("documents"), np.flatnonzero(self._documents).tolist()
        return frozenset(
            cite_document(documents.value("title", row), documents.value("text", row))
            for row in seen
        )

    def _cite(self, whole: Qualifiers) -> list[tuple[str, str]]:
        """The pairs of a fact's qualifiers without citations of hidden documents.

        A correction is shown without its words, which may come from hidden documents.
        """
        values = list_values(whole, DOCUMENT)
        corrected = [(CORRECTED, MORE)] if dict(whole).get(CORRECTED) else []
        return [*corrected, *((DOCUMENT, value) for value in values if value in self._cited)]

    def shows_statement(self, row: int) -> bool:
        """See `View`: if all facts that it cites are visible, in their original words."""
        rows = self.rows("statements")
        return row >= 0 and self._shows_all(rows.list_of("facts", row), rows.value("anchor", row))

    def _shows_all(self, facts: Iterable[int | None], anchor: str | None) -> bool:
        """Whether some facts are visible in all their words, with their anchor."""
        seen = self.mask("condensed")
        whole = (f is not None and seen[f] and self._words_whole(int(f)) for f in facts)
        return anchor not in self._terms.hidden and all(whole)

    def _words_whole(self, fact: int) -> bool:
        """Whether a visible fact has the same words in this view as in the whole snapshot."""
        same = self.state_fact(fact) == self.whole.state_fact(fact)
        return same and self.qualify_fact(fact) == self.whole.qualify_fact(fact)

    def find_detailed(self, row: int) -> str:
        """See `View`; if both are visible in all their words."""
        detailed = int(self.rows("condensed").numbers("detailed")[row])
        whole = detailed >= 0 and self._words_whole(row) and self._words_whole(detailed)
        return super().find_detailed(row) if whole else ""

    def name_standard(self, row: int) -> str:
        """See `View`."""
        return super().name_standard(row) if self._shows_standard(row) else ""

    def _shows_standard(self, row: int) -> bool:
        """Whether the standard relation of a fact and its ends are visible."""
        facts, seen = self.rows("condensed"), self.mask("entities")
        ends = (int(facts.numbers(f"standard_{end}")[row]) for end in ("head", "tail"))
        named = all(end < 0 or seen[end] for end in ends)
        return named and facts.value("standard", row) in self._standards

    @cached_property
    def _standards(self) -> frozenset[str]:
        """The visible standard relations: properties, and wordings of visible texts."""
        wordings = map(self.wording_of, self.select("relations"))
        return frozenset(p.label for p in self.schema.properties) | {*wordings}

    def count_support(self, row: int) -> int:
        """See `View`."""
        return int(self._documents[self.rows("condensed").list_of("documents", row)].sum())

    def text_of(self, table: str, row: int) -> str:
        """See `View`; for a fact only its visible names and wordings."""
        if table == "chunks":
            return super().text_of(table, row)
        if table == "entities":
            return self.name_of(row)
        _, head, _, relation, _, tail, _ = self.state_fact(row)
        return f"{head} {relation} {tail}"

    def read_instance(self, row: int) -> Row:
        """See `View`."""
        values = super().read_instance(row)
        return self._cut_row(load_contracts()["instances"], row, values)

    # -- tables and the ontology --------------------------------------------------------------

    def table(self, name: str) -> pa.Table:
        """A whole table: the visible rows, with the visible part of each.

        Raises:
            InputError: there is no table of that name, the snapshot is gone, or the table cannot
                be divided by documents.
            IntegrityError: the file is damaged.
        """
        whole, contract = super().table(name), load_contracts()[name]
        if not contract.visible_by:
            raise InputError(
                f"table {name!r} cannot be divided by documents: it is read by whoever sees all "
                "of them only, with scope = EVERYTHING"
            )
        if name not in self._tables:
            self._tables[name] = self._cut_table(contract, whole)
        return self._tables[name]

    def _cut_table(self, contract: Contract, whole: pa.Table) -> pa.Table:
        name, mask = contract.table, self.mask(contract.table)
        rows = whole.filter(pa.array(mask))
        if not _list_beside(contract) and name not in _NAMED:
            return contract.finish(rows)
        numbers = np.flatnonzero(mask).tolist()
        return contract.build(
            self._cut_row(contract, number, row)
            for number, row in zip(numbers, rows.to_pylist(), strict=True)
        )

    def read_ontology(self) -> tuple[str, str]:
        """See `View`; with the visible places of statements."""
        names = EntityTexts(self, self.name_of)
        statements = [
            state_row(row, names, self._quote(row["places"]))
            for row in map(self.read_instance, self.select("instances"))
        ]
        return write_schema(self.schema), write_instances(statements)

    def _quote(self, places: Iterable[Row]) -> Iterator[Quotation]:
        documents, chunks = self.rows("documents"), self.rows("chunks")
        for place in places:
            row = int(chunks.numbers("document")[self.locate("chunks", place["chunk_id"])])
            start, end = place["start"], place["end"]
            text, source, title = (documents.value(n, row) for n in ("text", "source", "title"))
            yield Quotation(documents.keys[row], start, end, text[start:end], source, title)

    def _cut_row(self, contract: Contract, number: int, row: Row) -> Row:
        """A row without its references to hidden rows; `number`: its index in the table."""
        cut = row | {c.name: self._cut_value(contract, c, row) for c in _list_beside(contract)}
        match contract.table:
            case "entities":
                cut |= {"name": self.name_of(number), "surface_forms": self.forms_of(number)}
            case "relations":
                cut |= {"name": self.wording_of(number), "surface_forms": self.wordings_of(number)}
            case "condensed":
                cut |= self._replace_standard(contract, number, row)
                if any(cut[name] != row[name] for name in ("anchor", "anchor_class")):
                    cut |= {"anchor": None, "anchor_class": None}
                cut["more_detailed_id"] = self.find_detailed(number) or None
            case "instances":  # its place becomes the strongest visible one
                strongest = cut["places"][0]
                if strongest != row["places"][0]:
                    cut |= {name: strongest[name] for name in ("chunk_id", "start", "end")}
                    cut |= {"subject_span": None, "object_span": None}
            case "proposals":
                words = self._terms.words[row["proposal_id"]]
                cut["phrases"] = [phrase for phrase in row["phrases"] if phrase in words]
                cut["support"] = len(cut["triple_ids"])
                if not self.whole_triples.issuperset(row["triple_ids"]):
                    cut |= {"definition": "", "note": ""}
        if "valid_from" in cut:
            wording = self.wording_of(self.locate("relations", row["relation_id"]))
            stated = word_relation(wording, row["negated"])
            cut["valid_from"], cut["valid_to"] = date_fact(cut["qualifiers"], stated)
        return cut

    def _cut_value(self, contract: Contract, column: Column, row: Row) -> Any:
        value = row[column.name]
        if column.along:
            seen = self.list_seen(str(contract.column(column.along).target))
            return [v for key, v in zip(row[column.along], value, strict=True) if key in seen]
        if column.united_from:
            return self._unite(contract, column, row)
        if column.term:
            return None if value in self._terms.hidden else value
        seen = self.list_seen(str(column.target))
        if isinstance(value, list):  # of keys, or of places
            return [v for v in value if (v["chunk_id"] if isinstance(v, dict) else v) in seen]
        return value if value in seen else None

    def _unite(self, contract: Contract, column: Column, row: Row) -> list[tuple[str, str]]:
        """The pairs of the visible rows on which a row rests, without weaker ones."""
        source = str(column.united_from)
        target = str(contract.column(source).target)
        pairs, keys = self._list_pairs(target, column.name), row[source]
        for marks in (c for c in contract.columns if c.along == source and c.weaker):
            both = zip(keys, row[marks.name], strict=True)
            keys = [key for key, mark in both if mark != marks.weaker]
        # Qualifiers from titles are in triples and later tables, not in raw triples.
        whole = row[column.name] if target == "raw_triples" else ()
        stated = (pair for key in keys for pair in pairs.get(key, ()))
        return unite_qualifiers(stated, self._cite(whole))

    def _list_pairs(self, table: str, column: str) -> Mapping[str, list[tuple[str, str]]]:
        """The pairs in a column of a table, by key, of the visible rows."""
        if table not in self._pairs:
            self._pairs[table] = map_column(
                self.table(table), load_contracts()[table].key[0], column
            )
        return self._pairs[table]

    def _replace_standard(self, contract: Contract, number: int, row: Row) -> Row:
        """The replacements of values that would reveal a fact's hidden standard relation."""
        if self._shows_standard(number):
            return {}
        values: Row = {}
        for column in (c for c in contract.columns if c.instead):
            name, _, of = str(column.instead).partition(".")
            value: Any = False if name == NO else row[name]
            values[column.name] = self.wording_of(self.locate("relations", value)) if of else value
        return values

    @property
    def schema(self) -> Schema:
        """See `View`; of the terms that completion added, the visible ones."""
        return self._terms.schema


_NAMED = {"entities": "entity_forms", "relations": "relation_forms"}
"""Tables with names, and the files of the index with the documents that use each name."""


def _list_beside(contract: Contract) -> list[Column]:
    """The columns by which a visible row may refer to a hidden one."""
    return [
        c
        for c in contract.columns
        if c.name not in contract.needs and not c.instead
        if c.along
        or c.united_from
        or ((c.nullable or c.type.startswith("list")) and (c.target or c.term))
    ]


# The visible schema.

_TermT = TypeVar("_TermT", OntologyClass, OntologyProperty)
_ADDED = ("accepted", "alias")
"""States of proposals whose words are in the schema."""


class _SeenTerms:
    """The visible terms of the ontology, with their visible words.

    Terms of the seed ontology are always visible: people wrote it for all readers. A term that
    completion added is visible if a visible wording names it, with its visible alternative labels;
    its definition is visible if all its support is.
    """

    def __init__(self, store: Store, view: DividedView) -> None:
        self._store = store
        self._view = view

    @cached_property
    def schema(self) -> Schema:
        """The visible part of the ontology's schema."""
        whole, seed, hidden = self._view.whole.schema, self._seed, self.hidden
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
        """A term with its visible words, including all of the seed ontology's."""
        rows = [row for row in self._proposals if row["iri"] == term.iri]
        words = set(seed.alt_labels) if seed else set()
        for row in rows:
            words |= self.words[row["proposal_id"]] if row["state"] in _ADDED else set()
        defined = seed is not None or any(map(self._is_whole, rows))
        return replace(
            term,
            alt_labels=tuple(word for word in term.alt_labels if word in words),
            comment=term.comment if defined else "",
        )

    @cached_property
    def hidden(self) -> frozenset[str]:
        """IRIs of classes and properties that were added or proposed, and are hidden."""
        whole, seed = self._view.whole.schema, self._seed
        terms: dict[str, tuple[str | None, ...]] = {
            **{c.iri: c.parents for c in whole.classes if c.iri not in seed.class_by_iri},
            **{
                p.iri: (p.domain, p.range)
                for p in whole.properties
                if p.iri not in seed.property_by_iri
            },
        }
        rows = [row for row in self._proposals if row["state"] != "alias"]
        terms |= {row["iri"]: (row["domain"], row["range"]) for row in rows}
        seen = {row["iri"] for row in rows if row["label"] in self.words[row["proposal_id"]]}
        hidden = terms.keys() - seen
        while more := {iri for iri in terms.keys() - hidden if hidden & {*terms[iri]}}:
            hidden |= more
        return frozenset(hidden)

    def mark_named(self) -> Mask:
        """The rows of the proposals with a visible label."""
        named = (row["label"] in self.words[row["proposal_id"]] for row in self._proposals)
        return np.fromiter(named, np.bool_, len(self._proposals))

    @cached_property
    def words(self) -> dict[str, frozenset[str]]:
        """The visible wordings of each proposal, its label included.

        A label that is none of the wordings was chosen in view of all facts; it is visible if all
        of them are.
        """
        ids = {key for row in self._proposals for key in row["triple_ids"]}
        facts = self._store.table("triples")
        near = pc.is_in(facts["triple_id"], value_set=pa.array(sorted(ids), pa.string()))
        triples = {row["triple_id"]: row for row in facts.filter(near).to_pylist()}
        return {
            row["proposal_id"]: self._list_words(row, [triples[key] for key in row["triple_ids"]])
            for row in self._proposals
        }

    def _list_words(self, row: Row, triples: Iterable[Row]) -> frozenset[str]:
        words = {row["label"], *row["phrases"]}
        if self._is_whole(row):
            return frozenset(words)
        seen = [t for t in triples if t["triple_id"] in self._view.list_seen("triples")]
        if row["kind"] == "property":
            stated = {form for triple in seen for form in self._list_wordings(triple)}
            return frozenset(words & stated)
        ends = {end.casefold() for triple in seen for end in self._list_tails(triple)}
        return frozenset(w for w in words if any(w.casefold() in end for end in ends))

    def _list_wordings(self, triple: Row) -> tuple[str, ...]:
        row = self._view.rows("relations").find(triple["relation_id"])
        return () if row is None else self._view.wordings_of(row)

    def _list_tails(self, triple: Row) -> tuple[str, ...]:
        if triple["tail_id"] is None:
            return (triple["literal"],)
        row = self._view.rows("entities").find(triple["tail_id"])
        return () if row is None else self._view.forms_of(row)

    def _is_whole(self, row: Row) -> bool:
        """Whether all the support of a proposal is visible."""
        return self._view.whole_triples.issuperset(row["triple_ids"])

    @cached_property
    def _seed(self) -> Schema:
        return parse_schema(self._store.read_text(SEED), source=f"seed of {self._store.id}")

    @cached_property
    def _proposals(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._store.table("proposals").to_pylist()
        return rows


# The view of scopes.


def open_view(store: Store, scopes: Sequence[Scope]) -> View:
    """The view of a store that satisfies all of some scopes.

    Raises:
        InputError: a scope names an unknown document or value, or one that others hide.
    """
    documents = find_documents(store, scopes)
    return View(store) if documents.all() else DividedView(store, documents)


# Documents: by labels, by their ids or sources, by their metadata.


def find_documents(store: Store, scopes: Sequence[Scope]) -> Mask:
    """The documents that are visible in all scopes.

    Raises:
        InputError: no document visible by its labels has an id, source or metadata that a scope
            names; the message is the same if a hidden document has.
    """
    documents = store.rows("documents")
    reach = np.ones(len(documents), dtype=np.bool_)
    for scope in scopes:
        if scope.access is not None:
            reach &= _open_by_label(documents.column("access"), scope.access)
        if scope.hidden:
            wanted = pa.array(sorted(scope.hidden), pa.string())
            reach &= ~to_mask(pc.is_in(documents.column("document_id"), wanted))
    seen = reach.copy()
    for scope in scopes:
        if scope.documents:
            seen &= _find_named(documents, scope.documents, reach)
        seen &= _find_described(documents, scope.metadata, reach)
    return seen


def _open_by_label(labels: pa.Array, access: frozenset[str]) -> Mask:
    """The documents that are visible by their labels."""
    mine = pc.is_in(pc.list_flatten(labels), pa.array(sorted(access), pa.string()))
    return to_mask(pc.equal(pc.list_value_length(labels), 0)) | _have(labels, to_mask(mine))


def _have(lists: pa.Array, wanted: Mask) -> Mask:
    """The rows whose lists have a wanted value."""
    having = np.zeros(len(lists), np.bool_)
    having[pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)[wanted]] = True
    return having


def _find_named(documents: MappedRows, names: Collection[str], reach: Mask) -> Mask:
    sources = documents.column("source")
    files = pc.list_element(pc.split_pattern(sources, "#", max_splits=1), 0)
    seen = np.zeros(len(documents), dtype=np.bool_)
    for wanted in sorted(names):
        columns = (documents.column("document_id"), sources, files)
        matching = np.any([to_mask(pc.equal(c, wanted)) for c in columns], axis=0) & reach
        if not matching.any():
            known = files.filter(pa.array(reach)).unique().to_pylist()
            near = get_close_matches(wanted, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"no document has the id or source {wanted!r}{hint}")
        seen |= matching
    return seen


def _find_described(documents: MappedRows, pairs: Collection[tuple[str, str]], reach: Mask) -> Mask:
    described = documents.column("metadata")
    seen = np.ones(len(documents), dtype=np.bool_)
    for field, value in sorted(pairs):
        equal = pc.equal(pc.list_flatten(described), f"{field}={value}")
        having = _have(described, to_mask(equal))
        if not (having & reach).any():
            raise InputError(f"no document has {field} = {value!r} in its metadata")
        seen &= having
    return seen
