"""Scopes and views: a scope defines what may be seen, and all reading goes through a view."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.documents import words as w
from kpyramid.documents.qualifiers import read_qualifiers
from kpyramid.documents.validity import Validity, date_fact
from kpyramid.numerics.arrays import Mask
from kpyramid.snapshot.evidence import Evidence, find_evidence, name_table
from kpyramid.snapshot.mapped import to_mask
from kpyramid.snapshot.search import hash_name
from kpyramid.snapshot.store import INSTANCES, SCHEMA, Part, Store

# The ontology's modules are loaded when it is read: passages and facts do not need them.
if TYPE_CHECKING:
    from kpyramid.ontology.schema import Schema

LITERAL = "LITERAL"

Statement = tuple[str, str, str, str, str | None, str, str]
"""Id, name and type of the head, relation, id, name and type of the tail."""


@dataclass(frozen=True, slots=True)
class NearFact:
    """A condensed fact in words, with ids and types of its ends, and its cosine with a question.

    `confidence`: probability that it was read correctly; `qualifiers`: when, where and how it
    holds; `support`: number of visible documents that state it. `standard`: its standard relation,
    empty if hidden; `turned`: whether that reads from tail to head. `negated`: the text denies it,
    as its relation shows, and it has no value that answers. `modality`: of the statement in the
    text; `ended`: it lasted until a known day. A statement of the ontology (`is_instance`) is a
    fact whose relation is a property's label.
    """

    condensed_id: str
    head_id: str
    head: str
    head_type: str
    relation: str
    tail_id: str | None
    tail: str
    tail_type: str
    cosine: float = 0.0
    confidence: float = 1.0
    qualifiers: tuple[str, ...] = ()
    standard: str = ""
    turned: bool = False
    is_instance: bool = False
    negated: bool = False
    modality: str = "fact"
    ended: bool = False
    support: int = 1

    @property
    def statement(self) -> str:
        """The fact in words with its qualifiers."""
        held = f" ({'; '.join(self.qualifiers)})" if self.qualifiers else ""
        return f"{w.word_fact(self.head, self.relation, self.tail)}{held}"


@dataclass(frozen=True, slots=True)
class Scope:
    """The documents that a reader may see and wants to see.

    `access`: the reader's labels. Documents without labels are visible to everybody, others to
    readers with one of their labels; None: everything is visible. `documents`: ids or sources; a
    source stands for all records of its file. `metadata`: pairs of field and value, all of which a
    document must have. Empty: all. `hidden`: ids of documents that are hidden whatever their
    labels.
    """

    access: frozenset[str] | None = frozenset()
    documents: frozenset[str] = frozenset()
    metadata: frozenset[tuple[str, str]] = frozenset()
    hidden: frozenset[str] = frozenset()

    @property
    def narrows(self) -> bool:
        """Whether it shows less than its labels permit."""
        return bool(self.documents or self.metadata or self.hidden)


PUBLIC = Scope()
"""The scope of a reader without labels."""
EVERYTHING = Scope(access=None)


class View:
    """A view of a whole store; `DividedView` hides rows of it.

    The only reader of the store. Row numbers come from `find`, `locate`, `select` or `mask`, which
    respect hidden rows, and words of rows from the methods below.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rows = store.rows
        self._parts: dict[str, Part] = {}
        self.require_whole = store.require_whole

    def part(self, table: str) -> Part:
        """See `Store.part`."""
        part = self._parts[table] = self._store.part(table)
        return part

    def describe(self) -> str:
        """The number of visible documents out of all, in words; empty if all are visible."""
        return ""

    def mask(self, table: str) -> Mask | None:
        """The visible rows of `documents`, `chunks`, `condensed`, `instances` or `entities`.

        None: all.
        """
        return None

    def searched(self, table: str) -> Mask | None:
        """The rows of `chunks`, `condensed` or `entities` whose embedded words are visible."""
        return self.mask(table)

    def holds(self, table: str) -> bool:
        """Whether the snapshot has rows of a table, visible or not; opens no table."""
        tables: Any = self._store.manifest.get("tables", {})
        return bool(tables.get(table, {}).get("rows"))

    def count(self, table: str) -> int:
        """The number of visible rows of such a table."""
        mask = self.mask(table)
        return len(self.rows(table)) if mask is None else int(mask.sum())

    def find(self, table: str, key: str) -> int | None:
        """The row of a key; None if it is hidden or unknown."""
        row = self.rows(table).find(key)
        mask = self.mask(table)
        return row if row is None or mask is None or mask[row] else None

    def find_all(self, table: str, keys: Iterable[str]) -> dict[str, int]:
        """The rows of the visible keys among some, in order."""
        rows = {key: self.find(table, key) for key in keys}
        return {key: row for key, row in rows.items() if row is not None}

    def locate(self, table: str, key: str) -> int:
        """The row of a key.

        Raises:
            KeyError: the key is unknown, or hidden.
        """
        row = self.find(table, key)
        if row is None:
            raise KeyError(key)
        return row

    def select(self, table: str, rows: Any = None) -> list[int]:
        """The visible rows among some, by default among all."""
        mask = self.mask(table)
        among = range(len(self.rows(table))) if rows is None else rows
        return [int(row) for row in among if mask is None or mask[row]]

    def keys(self, table: str) -> Iterator[str]:
        """The keys of the visible rows, in order."""
        keys = self.rows(table).keys
        return (keys[row] for row in self.select(table))

    def forms_of(self, entity: int) -> tuple[str, ...]:
        """All names of an entity as written, by its row."""
        return tuple(self.rows("entities").value("surface_forms", entity))

    def name_of(self, entity: int) -> str:
        """The name of an entity by its row."""
        return str(self.rows("entities").value("name", entity))

    def type_of(self, entity: int) -> str:
        """The type of an entity by its row."""
        return str(self.rows("entities").value("type", entity))

    def wording_of(self, relation: int) -> str:
        """The phrase of a relation by its row."""
        return str(self.rows("relations").value("name", relation))

    def select_called(
        self, rows: Sequence[int], has: Callable[[tuple[str, ...]], bool]
    ) -> list[int]:
        """The visible entities of which `has` accepts the names, in the form of `join_words`."""
        return list(rows)

    def state_entity(self, row: int) -> tuple[str, str, str]:
        """Id, name and type of an entity."""
        return self.rows("entities").keys[row], self.name_of(row), self.type_of(row)

    def state_fact(self, row: int) -> Statement:
        """A condensed fact in words, denials included; a literal tail has no id, type `LITERAL`."""
        facts = self.rows("condensed")
        relation = self.wording_of(int(facts.numbers("relation")[row]))
        relation = w.word_relation(relation, facts.value("negated", row))
        tail = int(facts.numbers("tail")[row])
        value: tuple[str | None, str, str] = (None, facts.value("literal", row), LITERAL)
        if tail >= 0:
            value = self.state_entity(tail)
        return *self.state_entity(int(facts.numbers("head")[row])), relation, *value

    def state_instance(self, row: int) -> Statement:
        """A value of the ontology by its property's label; a membership as `is a` its class."""
        row_values, schema = self.rows("instances").read(row), self.schema
        ends = (row_values["subject_id"], row_values["object_id"])
        head, *tail = (self.state_entity(self.locate("entities", end)) for end in ends if end)
        if row_values["property_iri"] is None:
            return *head, "is a", None, schema.class_by_iri[row_values["class_iri"]].label, LITERAL
        value = tail[0] if tail else (None, row_values["literal"], LITERAL)
        return *head, schema.property_by_iri[row_values["property_iri"]].label, *value

    def read_fact(self, row: int, cosine: float = 0.0) -> NearFact:
        """A condensed fact with all fields that questions need."""
        facts, standard = self.rows("condensed"), self.name_standard(row)
        return NearFact(
            facts.keys[row],
            *self.state_fact(row),
            cosine,
            float(facts.numbers("confidence")[row]),
            self.qualify_fact(row),
            standard,
            bool(standard and facts.numbers("standard_head")[row] != facts.numbers("head")[row]),
            negated=bool(facts.value("negated", row)),
            modality=self.hold_fact(row),
            ended=self.has_ended(row),
            support=self.count_support(row),
        )

    def name_standard(self, row: int) -> str:
        """A condensed fact's standard relation; empty if hidden."""
        return str(self.rows("condensed").value("standard", row))

    def state_standard(self, row: int) -> tuple[str, str, str, str | None, str]:
        """Ids and names of a fact's ends around its standard relation; its wording if hidden."""
        if not (standard := self.name_standard(row)):
            key, name, _, relation, tail_key, tail_name, _ = self.state_fact(row)
            return key, name, relation, tail_key, tail_name
        facts, keys = self.rows("condensed"), self.rows("entities").keys
        head, tail = (int(facts.numbers(f"standard_{end}")[row]) for end in ("head", "tail"))
        value = (
            (keys[tail], self.name_of(tail)) if tail >= 0 else (None, facts.value("literal", row))
        )
        return keys[head], self.name_of(head), standard, *value

    def standardise_fact(self, row: int) -> str:
        """The standard relation, with ends if these differ; empty if equal or denied."""
        if self.rows("condensed").value("negated", row):
            return ""
        key, name, standard, end, value = self.state_standard(row)
        head_key, head_name, _, relation, tail_key, tail_name, _ = self.state_fact(row)
        standard = w.split_label(standard)
        word_lists = [
            [word for word in w.list_plain_words(text) if word not in w.ARTICLES | w.BE]
            for text in (f"{name} {standard} {value}", f"{head_name} {relation} {tail_name}")
        ]
        if word_lists[0] == word_lists[1]:
            return ""
        return standard if (key, end) == (head_key, tail_key) else f"{name} {standard} {value}"

    def list_standard(self) -> Iterator[tuple[str, str, str, str | None, str]]:
        """The visible facts by their standard relations, without denied ones."""
        denied, rows = self.rows("condensed").column("negated"), self.select("condensed")
        return (self.state_standard(row) for row in rows if not denied[row].as_py())

    def find_detailed(self, row: int) -> str:
        """The key of the visible fact that is more detailed than a fact; empty without one."""
        facts = self.rows("condensed")
        rows = self.select("condensed", [int(facts.numbers("detailed")[row])])
        return str(facts.keys[rows[0]]) if rows and rows[0] >= 0 else ""

    def summarise_fact(self, row: int) -> str:
        """The statement that cites a condensed fact; empty where none does."""
        i = int(self.rows("condensed").numbers("statement")[row])
        return str(self.rows("statements").value("text", i)) if self.shows_statement(i) else ""

    def shows_statement(self, row: int) -> bool:
        """Whether a statement is visible; -1 is none."""
        return row >= 0

    def qualify_fact(self, row: int) -> tuple[str, ...]:
        """The qualifiers of a condensed fact, as `time: 2019`."""
        return tuple(self.rows("condensed").value("qualifiers", row))

    def date_fact(self, row: int) -> Validity:
        """The first and last day on which a condensed fact is known to hold."""
        return date_fact(read_qualifiers(self.qualify_fact(row)), self.state_fact(row)[3])

    def read_value(self, row: int) -> NearFact:
        """A statement of the ontology as a fact."""
        key = self.rows("instances").keys[row]
        facts = self.list_facts(key)
        ended = bool(facts) and all(map(self.has_ended, facts))
        return NearFact(key, *self.state_instance(row), is_instance=True, ended=ended)

    def list_facts(self, key: str) -> list[int]:
        """The row of a fact, or the rows of the visible facts on which a value rests."""
        if not key.startswith("instance-"):
            return [self.locate("condensed", key)]
        row, rows = self.locate("instances", key), self.rows("instances")  # some have no column
        return self.select("condensed", rows.list_of("facts", row) if rows.has("facts") else ())

    def has_ended(self, row: int) -> bool:
        """Whether a condensed fact is in the past tense and lasted until a known day."""
        first, last = self.date_fact(row)
        return last not in (None, first) and w.is_past(self.state_fact(row)[3])

    def hold_fact(self, row: int) -> str:
        """The modality of a condensed fact."""
        facts = self.rows("condensed")
        if facts.has("modality"):
            return str(facts.value("modality", row))
        return "possible" if facts.value("hedged", row) else "fact"  # of the last format

    @cached_property
    def plain(self) -> Mask:
        """Which condensed facts the text neither denies nor hedges, shape (n,)."""
        facts = self.rows("condensed")
        held = pc.equal(facts.column("modality"), "fact") if facts.has("modality") else None
        plain = ~to_mask(facts.column("hedged")) if held is None else to_mask(held)
        return plain & ~to_mask(facts.column("negated"))

    def count_support(self, row: int) -> int:
        """The number of visible documents that state a condensed fact."""
        return len(self.rows("condensed").list_of("documents", row))

    def text_of(self, table: str, row: int) -> str:
        """The embedded words of a row."""
        return str(self.part(table).rows.value("text", row))

    def read_instance(self, row: int) -> dict[str, Any]:
        """A row of the table `instances`."""
        values = self.rows("instances").read(row)
        for name in ("documents", "facts"):  # rows of the index
            values.pop(name, None)
        return values

    def evidence(self, key: str) -> list[Evidence]:
        """The places that support the row of a key, in order; none for an unknown key."""
        table = name_table(key)
        row = self.find(table, key) if table else None
        if table is None or row is None:
            return []
        return find_evidence(self.rows, table, row, self.mask("documents"))

    def table(self, name: str) -> pa.Table:
        """One table, read whole.

        Raises:
            InputError: there is no table of that name, or the snapshot is gone.
            IntegrityError: the file is damaged.
        """
        return self._store.table(name)

    @cached_property
    def schema(self) -> "Schema":
        """The ontology's schema."""
        from kpyramid.ontology.schema import parse_schema

        return parse_schema(self._store.read_text(SCHEMA), source=f"snapshot {self._store.id}")

    def read_ontology(self) -> tuple[str, str]:
        """Schema as Turtle, and instances as N-Triples with their sentences."""
        return self._store.read_text(SCHEMA), self._store.read_text(INSTANCES)


class EntityTexts(Mapping[str, str]):
    """The text that `read` returns for each entity, by its id; read when needed."""

    def __init__(self, view: View, read: Callable[[int], str]) -> None:
        self._view = view
        self._read = read

    def __getitem__(self, key: str) -> str:
        return self._read(self._view.locate("entities", key))

    def __iter__(self) -> Iterator[str]:
        return self._view.keys("entities")

    def __len__(self) -> int:
        return self._view.count("entities")


class EntitiesByName(Mapping[str, tuple[str, ...]]):
    """The ids of the entities with a name, in order.

    Names are in the form of `join_words`. A name that only hidden texts use is absent.
    """

    def __init__(self, view: View) -> None:
        self._view = view

    def __getitem__(self, name: str) -> tuple[str, ...]:
        rows, hashes = self._view.rows("names"), self._view.rows("names").numbers("hash")
        wanted = np.uint64(hash_name(name))
        index = int(hashes.searchsorted(wanted))
        while index < len(hashes) and hashes[index] == wanted:
            if rows.value("name", index) == name and (called := self._list_called(name, index)):
                return self._name_rows(called)
            index += 1
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        rows = self._view.rows("names")
        for index in range(len(rows)):
            name = rows.value("name", index)
            if self._list_called(name, index):
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def with_word(self, word: str) -> tuple[str, ...]:
        """The entities with a word in one of their names; none for a word that too many share."""
        row = self._view.rows("name_words").find(word)
        if row is None:
            return ()
        listed = self._view.rows("name_words").list_of("entities", row).tolist()

        def has(names: tuple[str, ...]) -> bool:
            return any(word in name.split() for name in names)

        return self._name_rows(self._view.select_called(listed, has))

    def _list_called(self, name: str, index: int) -> list[int]:
        rows = self._view.rows("names").list_of("entities", index).tolist()
        return self._view.select_called(rows, lambda names: name in names)

    def _name_rows(self, rows: list[int]) -> tuple[str, ...]:
        keys = self._view.rows("entities").keys
        return tuple(keys[row] for row in rows)
