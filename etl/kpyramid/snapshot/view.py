"""What of a snapshot may be read: a scope says it, and a view is all that reads the store."""

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

# What reads the ontology is loaded when it is read: passages and facts do without it.
if TYPE_CHECKING:
    from kpyramid.ontology.schema import Schema

LITERAL = "LITERAL"

Statement = tuple[str, str, str, str, str | None, str, str]
"""Id, name and type of the head, relation, id, name and type of the tail."""


@dataclass(frozen=True, slots=True)
class NearFact:
    """A condensed fact in words, its sides' ids and types, its cosine with a question if one asks.

    `confidence` says how surely it was read, `qualifiers` when, where and how it holds, `support`
    how many documents that are seen state it. `standard` is its standard relation, empty where
    hidden; `turned` where that is read from tail to head. `negated`: the text denies it; its
    relation says so, and no value of it answers anything. `modality`: how the text holds it;
    `ended`: it lasted until a known day. A statement of the ontology (`is_instance`) is a fact
    whose relation is a property's label.
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
        """The fact in words with what qualifies it."""
        held = f" ({'; '.join(self.qualifiers)})" if self.qualifiers else ""
        return f"{w.word_fact(self.head, self.relation, self.tail)}{held}"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a reader may see and wants to see.

    `access`: the labels that the reader has. Documents without labels are everybody's, of those
    with labels one that the reader has is enough; None stands for whoever may see everything.
    `documents`: ids or sources; a source stands for all records of its file. `metadata`: pairs of
    field and value, all of which a document must have. Empty: all. `hidden`: ids of documents that
    are not seen whatever their labels.
    """

    access: frozenset[str] | None = frozenset()
    documents: frozenset[str] = frozenset()
    metadata: frozenset[tuple[str, str]] = frozenset()
    hidden: frozenset[str] = frozenset()

    @property
    def narrows(self) -> bool:
        """Whether it asks for less than its labels let be seen."""
        return bool(self.documents or self.metadata or self.hidden)


PUBLIC = Scope()
"""What everybody may see."""
EVERYTHING = Scope(access=None)


class View:
    """A store of which everything is seen; `DividedView` hides rows of it.

    The only reader of the store. A row's number comes from `find`, `locate`, `select` or `mask`,
    which know what is hidden, and its words from the methods below.
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
        """How many documents are seen, of how many; empty when all are."""
        return ""

    def mask(self, table: str) -> Mask | None:
        """The rows of `documents`, `chunks`, `condensed`, `instances` or `entities` that are seen.

        None: all.
        """
        return None

    def searched(self, table: str) -> Mask | None:
        """The rows of `chunks`, `condensed` or `entities` whose embedded words are seen."""
        return self.mask(table)

    def holds(self, table: str) -> bool:
        """Whether the snapshot has rows of a table, be they seen or not; no table is opened."""
        said: Any = self._store.manifest.get("tables", {})
        return bool(said.get(table, {}).get("rows"))

    def count(self, table: str) -> int:
        """How many rows of such a table are seen."""
        mask = self.mask(table)
        return len(self.rows(table)) if mask is None else int(mask.sum())

    def find(self, table: str, key: str) -> int | None:
        """The row of a key; None for one that is hidden as for one that there is not."""
        row = self.rows(table).find(key)
        mask = self.mask(table)
        return row if row is None or mask is None or mask[row] else None

    def find_all(self, table: str, keys: Iterable[str]) -> dict[str, int]:
        """The rows of those of some keys that are seen, in their order."""
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

    def select(self, table: str, rows: Any) -> list[int]:
        """Those of some rows that are seen."""
        mask = self.mask(table)
        return [int(row) for row in rows if mask is None or mask[row]]

    def keys(self, table: str) -> Iterator[str]:
        """The keys of the rows that are seen, in their order."""
        keys = self.rows(table).keys
        return (keys[row] for row in self.select(table, range(len(keys))))

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
        """The entities that are seen and among whose names, in the form of `join_words`, is one."""
        return list(rows)

    def state_entity(self, row: int) -> tuple[str, str, str]:
        """Id, name and type of an entity."""
        return self.rows("entities").keys[row], self.name_of(row), self.type_of(row)

    def state_fact(self, row: int) -> Statement:
        """A condensed fact in words, a denial as such; a literal tail has no id, type `LITERAL`."""
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
        said, schema = self.rows("instances").read(row), self.schema
        ends = (said["subject_id"], said["object_id"])
        head, *tail = (self.state_entity(self.locate("entities", end)) for end in ends if end)
        if said["property_iri"] is None:
            return *head, "is a", None, schema.class_by_iri[said["class_iri"]].label, LITERAL
        value = tail[0] if tail else (None, said["literal"], LITERAL)
        return *head, schema.property_by_iri[said["property_iri"]].label, *value

    def read_fact(self, row: int, cosine: float = 0.0) -> NearFact:
        """A condensed fact with all that a question asks of it."""
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
        """A condensed fact's standard relation; empty where it may not be seen."""
        return str(self.rows("condensed").value("standard", row))

    def state_standard(self, row: int) -> tuple[str, str, str, str | None, str]:
        """Ids and names of a fact's ends around its standard relation; its own words if hidden."""
        if not (standard := self.name_standard(row)):
            key, name, _, relation, own_key, own, _ = self.state_fact(row)
            return key, name, relation, own_key, own
        facts, keys = self.rows("condensed"), self.rows("entities").keys
        head, tail = (int(facts.numbers(f"standard_{end}")[row]) for end in ("head", "tail"))
        value = (
            (keys[tail], self.name_of(tail)) if tail >= 0 else (None, facts.value("literal", row))
        )
        return keys[head], self.name_of(head), standard, *value

    def standardise_fact(self, row: int) -> str:
        """The standard relation, with ends where others or turned; empty if its own or denied."""
        if self.rows("condensed").value("negated", row):
            return ""
        key, name, standard, end, value = self.state_standard(row)
        own_key, own_name, _, relation, own_end, own, _ = self.state_fact(row)
        standard = w.split_label(standard)
        said = [
            [word for word in w.list_plain_words(text) if word not in w.ARTICLES | w.BE]
            for text in (f"{name} {standard} {value}", f"{own_name} {relation} {own}")
        ]
        if said[0] == said[1]:
            return ""
        return standard if (key, end) == (own_key, own_end) else f"{name} {standard} {value}"

    def list_standard(self) -> Iterator[tuple[str, str, str, str | None, str]]:
        """The facts that are seen by their standard relations, without those that are denied."""
        denied = self.rows("condensed").column("negated")
        rows = self.select("condensed", range(len(denied)))
        return (self.state_standard(row) for row in rows if not denied[row].as_py())

    def find_detailed(self, row: int) -> str:
        """The key of a seen fact that says all of a condensed fact and more; empty without one."""
        facts = self.rows("condensed")
        at = self.select("condensed", [int(facts.numbers("detailed")[row])])
        return str(facts.keys[at[0]]) if at and at[0] >= 0 else ""

    def summarise_fact(self, row: int) -> str:
        """The statement that cites a condensed fact; empty where none does."""
        at = int(self.rows("condensed").numbers("statement")[row])
        return str(self.rows("statements").value("text", at)) if self.shows_statement(at) else ""

    def shows_statement(self, row: int) -> bool:
        """Whether a statement is seen; -1 is none."""
        return row >= 0

    def qualify_fact(self, row: int) -> tuple[str, ...]:
        """What qualifies a condensed fact, as `time: 2019`."""
        return tuple(self.rows("condensed").value("qualifiers", row))

    def date_fact(self, row: int) -> Validity:
        """From when to when a condensed fact is known to hold."""
        return date_fact(read_qualifiers(self.qualify_fact(row)))

    def read_value(self, row: int) -> NearFact:
        """A statement of the ontology as a fact."""
        key = self.rows("instances").keys[row]
        facts = self.list_facts(key)
        ended = bool(facts) and all(map(self.has_ended, facts))
        return NearFact(key, *self.state_instance(row), is_instance=True, ended=ended)

    def list_facts(self, key: str) -> list[int]:
        """The row of a fact, or of the facts that are seen of those a value rests on."""
        if not key.startswith("instance-"):
            return [self.locate("condensed", key)]
        row, rows = self.locate("instances", key), self.rows("instances")  # some have no column
        return self.select("condensed", rows.list_of("facts", row) if rows.has("facts") else ())

    def has_ended(self, row: int) -> bool:
        """Whether a condensed fact is told in the past and lasted until a known day."""
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
        """Which condensed facts the text neither denies nor holds for less than a fact."""
        facts = self.rows("condensed")
        held = pc.equal(facts.column("modality"), "fact") if facts.has("modality") else None
        plain = ~to_mask(facts.column("hedged")) if held is None else to_mask(held)
        return plain & ~to_mask(facts.column("negated"))

    def count_support(self, row: int) -> int:
        """How many documents that are seen state a condensed fact."""
        return len(self.rows("condensed").list_of("documents", row))

    def text_of(self, table: str, row: int) -> str:
        """The words that a row was embedded by."""
        return str(self.part(table).rows.value("text", row))

    def read_instance(self, row: int) -> dict[str, Any]:
        """A row of the table `instances`."""
        values = self.rows("instances").read(row)
        for name in ("documents", "facts"):  # rows of the index
            values.pop(name, None)
        return values

    def evidence(self, key: str) -> list[Evidence]:
        """The places that support the row of a key, in their order; none for an unknown key."""
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
        """Schema as Turtle, and instances as N-Triples with where they are said."""
        return self._store.read_text(SCHEMA), self._store.read_text(INSTANCES)


class EntityTexts(Mapping[str, str]):
    """What `read` gives of every entity by its id; nothing is read before it is asked for."""

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
    """The ids of the entities that have a name, in their order.

    Names are in the form of `join_words`. A name that no text uses which is seen is none.
    """

    def __init__(self, view: View) -> None:
        self._view = view

    def __getitem__(self, name: str) -> tuple[str, ...]:
        rows, hashes = self._view.rows("names"), self._view.rows("names").numbers("hash")
        wanted = np.uint64(hash_name(name))
        at = int(hashes.searchsorted(wanted))
        while at < len(hashes) and hashes[at] == wanted:
            if rows.value("name", at) == name and (found := self._list_called(name, at)):
                return self._name_rows(found)
            at += 1
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        rows = self._view.rows("names")
        for at in range(len(rows)):
            name = rows.value("name", at)
            if self._list_called(name, at):
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def with_word(self, word: str) -> tuple[str, ...]:
        """The entities with a word in one of their names; none for one that too many share."""
        row = self._view.rows("name_words").find(word)
        if row is None:
            return ()
        listed = self._view.rows("name_words").list_of("entities", row).tolist()

        def has(names: tuple[str, ...]) -> bool:
            return any(word in name.split() for name in names)

        return self._name_rows(self._view.select_called(listed, has))

    def _list_called(self, name: str, at: int) -> list[int]:
        rows = self._view.rows("names").list_of("entities", at).tolist()
        return self._view.select_called(rows, lambda names: name in names)

    def _name_rows(self, rows: list[int]) -> tuple[str, ...]:
        keys = self._view.rows("entities").keys
        return tuple(keys[row] for row in rows)
