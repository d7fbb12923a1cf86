"""A snapshot of which scopes hide documents: what is seen of its rows, names, tables and schema."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.documents.qualifiers import read_qualifiers, unite_qualifiers, write_qualifiers
from kpyramid.numerics.arrays import Mask
from kpyramid.ontology.schema import Schema
from kpyramid.snapshot.evidence import Evidence, find_evidence, name_table
from kpyramid.snapshot.mapped import MappedRows
from kpyramid.snapshot.narrowed import INDEXED, NarrowedView, look_up, to_mask
from kpyramid.snapshot.search import join_words
from kpyramid.snapshot.store import Store
from kpyramid.snapshot.terms import SeenTerms
from kpyramid.snapshot.view import View
from kpyramid.storage.contracts import NO, Column, Contract, load_contracts, map_column

Row = dict[str, Any]


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


class DividedView(NarrowedView):
    """What is seen of a store some of whose documents are hidden.

    The contracts say which rows that leaves: a row is seen when a document that states as much is,
    of a fact not those of what was merged into it because it says less, and with it the entities
    and relations that seen documents name. Their names are those that seen documents use; a term
    that completion added is seen when such a wording names it. Numbers that were computed over the
    whole corpus, such as confidence and the rarity of words, stay as they are.
    """

    def __init__(self, store: Store, classes: Sequence[frozenset[str]], documents: Mask) -> None:
        super().__init__(store, classes)
        self._open: dict[str, Mask] = {"documents": documents}
        self._documents = documents
        self._whole = View(store)
        self._terms = SeenTerms(store, self)
        self._keys: dict[str, frozenset[str]] = {}
        self._said: dict[str, Mapping[str, list[tuple[str, str]]]] = {}

    # -- which rows are seen ------------------------------------------------------------------

    def describe(self) -> str:
        """See `View`."""
        return f"{int(self._documents.sum()):,} of {len(self._documents):,} documents"

    def open(self, table: str) -> Mask:
        """See `NarrowedView`."""
        if table not in self._open:
            contract = load_contracts()[table]
            seen = self._find_stated(table)
            for name in contract.needs:
                seen = seen & self._meets(table, contract.column(name))
            self._open[table] = seen
        return self._open[table]

    def _find_stated(self, table: str) -> Mask:
        """What `visible_by` says: from the index where that has the documents of each row."""
        if table == "proposals":
            return self._terms.mark_named()
        if table == "chunks":
            return np.asarray(self._documents[self.rows(table).numbers("document")], np.bool_)
        if table in _NAMED:
            return self._forms[table].owners
        if table in INDEXED:
            return self._rest_on_seen(table)
        return self.find_supported(table, self.open)

    def _rest_on_seen(self, name: str) -> Mask:
        """The rows of a file of the index that rest on a document that is seen."""
        starts, documents = self.rows(name).lists("documents")
        before = np.concatenate([[0], np.cumsum(self._documents[documents])])
        return np.asarray(before[starts[1:]] > before[starts[:-1]], dtype=np.bool_)

    def _meets(self, table: str, column: Column) -> Mask:
        """The rows that refer to what is seen, or to nothing, by a column that they need."""
        if column.term:
            hidden = pa.array(sorted(self._terms.hidden), pa.string())
            values = self._store.table(table)[column.name]
            if table in INDEXED:
                values = self.rows(table).column(column.name)
            return ~to_mask(pc.is_in(values, value_set=hidden))
        if column.type == "list<string>":
            return self._are_all_open(table, column.name)
        if table == "instances":
            places = self.locate_entities(self.rows(table).column(column.name))
        else:
            places = self.rows(table).numbers(column.name.removesuffix("_id"))
        return (places < 0) | look_up(self.open(str(column.target)), places)

    def searched(self, table: str) -> Mask:
        """See `View`: an entity that only hidden texts call by its name is found by no vector."""
        return self._called if table == "entities" else self.mask(table)

    @cached_property
    def _called(self) -> Mask:
        """The entities that a text which is seen calls by their name."""
        forms, seen = self.rows("entity_forms"), self._rest_on_seen("entity_forms")
        owners = forms.numbers("owner")
        names = self.rows("entities").column("name").take(pa.array(owners))
        called = np.zeros(len(self.rows("entities")), dtype=np.bool_)
        called[owners[seen & to_mask(pc.equal(forms.column("form"), names))]] = True
        return called

    @cached_property
    def whole_triples(self) -> frozenset[str]:
        """The triples of which all statements are seen."""
        return self._list_keys("triples", self._are_all_open("triples", "raw_triple_ids"))

    def _are_all_open(self, table: str, name: str) -> Mask:
        """The rows of which all is seen that a column of lists refers to."""
        links, count = self.link(table, name), self.count_rows(table)
        target = self.open(str(load_contracts()[table].column(name).target))
        seen = np.bincount(links.owners, target[links.targets], minlength=count)
        return np.asarray(seen == links.count(count))

    def list_open(self, table: str) -> frozenset[str]:
        """The keys of the rows that are seen."""
        if table not in self._keys:
            self._keys[table] = self._list_keys(table, self.open(table))
        return self._keys[table]

    def _list_keys(self, table: str, mask: Mask) -> frozenset[str]:
        return frozenset(self.keys_of(table).filter(pa.array(mask)).to_pylist())

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

    def names_of(self, entity: int) -> tuple[str, ...]:
        """See `View`."""
        return tuple(sorted({join_words(form) for form in self.forms_of(entity)} - {""}))

    def name_of(self, entity: int) -> str:
        """See `View`: the canonical one, unless only hidden texts use it."""
        return self._forms["entities"].choose(entity, super().name_of(entity))

    def wordings_of(self, relation: int) -> tuple[str, ...]:
        """All phrases of a relation that are seen, sorted."""
        return self._forms["relations"].list_of(relation)

    def wording_of(self, relation: int) -> str:
        """See `View`: the canonical one, unless only hidden texts use it.

        So too for the relation of a fact that stands for others which are worded otherwise.
        """
        return self._forms["relations"].choose(relation, super().wording_of(relation))

    def select_called(
        self, rows: Sequence[int], has: Callable[[tuple[str, ...]], bool]
    ) -> list[int]:
        """See `View`."""
        return [row for row in self.select("entities", rows) if has(self.names_of(row))]

    def qualify_fact(self, row: int) -> tuple[str, ...]:
        """See `View`; of the documents that are seen."""
        stated, whole = self._forms["condensed"].list_of(row), super().qualify_fact(row)
        united = unite_qualifiers(read_qualifiers(stated), read_qualifiers(whole))
        return tuple(write_qualifiers(united))

    def shows_statement(self, row: int) -> bool:
        """See `View`: when all facts that it cites are seen, in the words that it was made of."""
        if not super().shows_statement(row):
            return False
        rows = self.rows("statements")
        hidden = rows.value("anchor", row) in self._terms.hidden
        return not hidden and all(map(self._tells_whole, rows.list_of("facts", row).tolist()))

    def _tells_whole(self, fact: int) -> bool:
        """Whether a fact that is seen has the words that it has for who sees everything."""
        same = self.state_fact(fact) == self._whole.state_fact(fact)
        return same and self.qualify_fact(fact) == self._whole.qualify_fact(fact)

    def find_detailed(self, row: int) -> str:
        """See `View`; where both are seen in all their words."""
        detailed = int(self.rows("condensed").numbers("detailed")[row])
        whole = detailed >= 0 and self._tells_whole(row) and self._tells_whole(detailed)
        return super().find_detailed(row) if whole else ""

    def name_standard(self, row: int) -> str:
        """See `View`."""
        return super().name_standard(row) if self._shows_standard(row) else ""

    def _shows_standard(self, row: int) -> bool:
        """Whether the standard relation of a fact and its ends may be seen."""
        facts, seen = self.rows("condensed"), self.mask("entities")
        ends = (int(facts.numbers(f"standard_{end}")[row]) for end in ("head", "tail"))
        named = all(end < 0 or seen[end] for end in ends)
        return named and facts.value("standard", row) in self._standards

    @cached_property
    def _standards(self) -> frozenset[str]:
        """The standard relations that may be seen: properties, and wordings of texts."""
        wordings = map(
            self.wording_of, self.select("relations", range(self.count_rows("relations")))
        )
        return frozenset(p.label for p in self.schema.properties) | {*wordings}

    def count_support(self, row: int) -> int:
        """See `View`."""
        return int(self._documents[self.rows("condensed").list_of("documents", row)].sum())

    def text_of(self, table: str, row: int) -> str:
        """See `View`; of a fact only those words that its names and wordings let be seen."""
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

    def evidence(self, key: str) -> list[Evidence]:
        """See `View`; only places in documents that are seen."""
        table = name_table(key)
        if table in ("condensed", "instances"):
            row = self.rows(table).find(key)
            if row is None or not self.open(table)[row]:
                return []
        return find_evidence(self._store, self.table, key, self._documents)

    # -- tables -------------------------------------------------------------------------------

    def cut_table(self, name: str, whole: pa.Table) -> pa.Table:
        """The rows of a table that are seen, with what is seen of each."""
        mask, contract = self.mask(name), load_contracts()[name]
        rows = whole.filter(pa.array(mask))
        if not any(map(_refers_beside(contract), contract.columns)) and name not in _CUTS:
            return rows
        cut = map(
            self._cut_row, [contract] * len(rows), np.flatnonzero(mask).tolist(), rows.to_pylist()
        )
        return contract.build(cut)

    def _cut_row(self, contract: Contract, number: int, row: Row) -> Row:
        """A row without what it says of hidden ones; `number` is where it stands in its table."""
        cut = dict(row)
        for column in filter(_refers_beside(contract), contract.columns):
            cut[column.name] = self._cut_value(contract, column, row)
        special = _CUTS.get(contract.table)
        return special(self, number, row, cut) if special else cut

    def _cut_value(self, contract: Contract, column: Column, row: Row) -> Any:
        value = row[column.name]
        if column.along:
            seen = self.list_open(str(contract.column(column.along).target))
            return [v for key, v in zip(row[column.along], value, strict=True) if key in seen]
        if column.united_from:
            return self._unite(contract, column, row)
        if column.term:
            return None if value in self._terms.hidden else value
        seen = self.list_open(str(column.target))
        if column.type == "list<place>":
            return [place for place in value if place["chunk_id"] in seen]
        if column.type == "list<string>":
            return [key for key in value if key in seen]
        return value if value in seen else None

    def _unite(self, contract: Contract, column: Column, row: Row) -> list[tuple[str, str]]:
        """The pairs of the seen rows that a row rests on, but for weaker ones."""
        source = str(column.united_from)
        target = str(contract.column(source).target)
        said, keys = self._pairs(target, column.name), row[source]
        for marks in (c for c in contract.columns if c.along == source and c.weaker):
            both = zip(keys, row[marks.name], strict=True)
            keys = [key for key, mark in both if mark != marks.weaker]
        # What a title adds is said of triples first, and of no raw triple.
        whole = row[column.name] if target == "raw_triples" else ()
        return unite_qualifiers((pair for key in keys for pair in said.get(key, ())), whole)

    def _pairs(self, table: str, column: str) -> Mapping[str, list[tuple[str, str]]]:
        """What a column of a table says, by key, of the rows that are seen."""
        if table not in self._said:
            self._said[table] = map_column(
                self.table(table), load_contracts()[table].key[0], column
            )
        return self._said[table]

    def _cut_entity(self, number: int, row: Row, cut: Row) -> Row:
        return cut | {"name": self.name_of(number), "surface_forms": self.forms_of(number)}

    def _cut_relation(self, number: int, row: Row, cut: Row) -> Row:
        return cut | {"name": self.wording_of(number), "surface_forms": self.wordings_of(number)}

    def _cut_fact(self, number: int, row: Row, cut: Row) -> Row:
        if not self._shows_standard(number):
            contract = load_contracts()["condensed"]
            cut |= {c.name: self._replace(c, row) for c in contract.columns if c.instead}
        if cut["anchor"] != row["anchor"] or cut["anchor_class"] != row["anchor_class"]:
            cut |= {"anchor": None, "anchor_class": None}
        return cut | {"more_detailed_id": self.find_detailed(number) or None}

    def _replace(self, column: Column, row: Row) -> Any:
        """What stands for a value that may not be told."""
        if column.instead == NO:
            return False
        name, _, of = str(column.instead).partition(".")
        return self.wording_of(self.rows("relations").find(row[name]) or 0) if of else row[name]

    def _cut_instance(self, number: int, row: Row, cut: Row) -> Row:
        """The strongest of the places that are seen is its own."""
        strongest = cut["places"][0]
        if strongest != row["places"][0]:
            place = {name: strongest[name] for name in ("chunk_id", "start", "end")}
            cut |= place | {"subject_span": None, "object_span": None}
        return cut

    def _cut_proposal(self, number: int, row: Row, cut: Row) -> Row:
        words = self._terms.words[row["proposal_id"]]
        cut["phrases"] = [phrase for phrase in row["phrases"] if phrase in words]
        cut["support"] = len(cut["triple_ids"])
        if not self.whole_triples.issuperset(row["triple_ids"]):
            cut |= {"definition": "", "note": ""}
        return cut

    @property
    def schema(self) -> Schema:
        """See `View`; of what completion added what is seen."""
        return self._terms.schema


_NAMED = {"entities": "entity_forms", "relations": "relation_forms"}
"""Tables of what has names, and the files of the index that say which document uses which."""
_Cut = Callable[[DividedView, int, Row, Row], Row]
_CUTS: Mapping[str, _Cut] = {
    "entities": DividedView._cut_entity,
    "relations": DividedView._cut_relation,
    "condensed": DividedView._cut_fact,
    "instances": DividedView._cut_instance,
    "proposals": DividedView._cut_proposal,
}
"""What is cut of a row besides what its contract says."""


def _refers_beside(contract: Contract) -> Callable[[Column], bool]:
    """Whether a row that is seen may refer to a hidden one by a column."""

    def check(column: Column) -> bool:
        if column.name in contract.needs or column.instead:
            return False
        free = column.nullable or column.type.startswith("list")
        return bool(column.along or column.united_from or (free and (column.target or column.term)))

    return check
