"""A snapshot of which a scope shows what is about individuals of some classes."""

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.errors import InputError
from kpyramid.numerics.arrays import Integers, Mask
from kpyramid.ontology.schema import Schema, write_schema
from kpyramid.ontology.store import state_row, write_instances
from kpyramid.snapshot.links import Links
from kpyramid.snapshot.store import Store
from kpyramid.snapshot.view import EntityTexts, View
from kpyramid.storage.contracts import combine_column, load_contracts

_BY_CLASS = frozenset({"chunks", "condensed", "statements", "instances", "additions"})
"""Tables of which classes leave a part."""


class NarrowedView(View):
    """What is seen of a store whose facts are those about individuals of some classes.

    `classes` are sets of names; an individual is of one class of each set, or of one below it. Of
    the text the chunks are seen that state such a fact; names and other tables are whole.
    """

    def __init__(self, store: Store, classes: Sequence[frozenset[str]]) -> None:
        super().__init__(store)
        self._classes = classes
        self._masks: dict[str, Mask] = {}
        self._tables: dict[str, pa.Table] = {}

    def open(self, table: str) -> Mask:
        """The rows of a table that are seen whatever their class."""
        return np.ones(self.count_rows(table), np.bool_)

    def mask(self, table: str) -> Mask:
        """See `View`; of any table that can be divided by documents."""
        if table not in self._masks:
            narrow: Callable[[], Mask] | None = {
                "chunks": self._narrow_chunks,
                "condensed": self._narrow_facts,
                "instances": self._narrow_instances,
                "statements": self._narrow_statements,
                "additions": lambda: self.find_supported("additions", self.mask),
            }.get(table)
            self._masks[table] = narrow() if narrow else self.open(table)
        return self._masks[table]

    def find_supported(self, table: str, see: Callable[[str], Mask]) -> Mask:
        """The rows that a row supports that `see` lets be seen, as their contract says."""
        seen = np.zeros(self.count_rows(table), np.bool_)
        for name in load_contracts()[table].visible_by:
            owner, _, column = name.rpartition(".")
            links = self.link(owner or table, column)
            target = owner or load_contracts()[table].column(column).target
            links = links.turn() if owner else links
            seen[links.owners[see(str(target))[links.targets]]] = True
        return seen

    def link(self, table: str, name: str) -> Links:
        """From the rows of a table to those that a column refers to."""
        column = load_contracts()[table].column(name)
        return Links.from_column(self._store.table(table)[name], self.keys_of(str(column.target)))

    def keys_of(self, table: str) -> pa.Array:
        """The keys of all rows of a table."""
        if table in INDEXED:
            return self.rows(table).column(load_contracts()[table].key[0])
        return combine_column(self._store.table(table)[load_contracts()[table].key[0]])

    def count_rows(self, table: str) -> int:
        """How many rows a table has, hidden ones too."""
        return len(self.keys_of(table))

    def _narrow_chunks(self) -> Mask:
        seen = self.open("chunks")
        if not self._members:
            return seen
        stating = np.zeros(len(seen), dtype=np.bool_)
        starts, chunks = self.rows("condensed").lists("place_chunks")
        stating[chunks[np.repeat(self.mask("condensed"), starts[1:] - starts[:-1])]] = True
        return stating & seen

    def _narrow_facts(self) -> Mask:
        rows, seen = self.rows("condensed"), self.open("condensed")
        for members in self._members:
            ends = (look_up(members, rows.numbers(end)) for end in ("head", "tail"))
            seen = seen & np.any(list(ends), axis=0)
        return seen

    def _narrow_instances(self) -> Mask:
        rows, seen = self.rows("instances"), self.open("instances")
        for members in self._members:
            ends = (self.locate_entities(rows.column(n)) for n in ("subject_id", "object_id"))
            seen = seen & np.any([look_up(members, end) for end in ends], axis=0)
        return seen

    def _narrow_statements(self) -> Mask:
        rows = range(self.count_rows("statements"))
        return np.fromiter(map(self.shows_statement, rows), np.bool_, len(rows))

    def shows_statement(self, row: int) -> bool:
        """See `View`: when all facts that it cites are seen."""
        if row < 0:
            return False
        cited = self.rows("statements").list_of("facts", row).tolist()
        return bool(self.mask("condensed")[cited].all())

    @cached_property
    def _members(self) -> list[Mask]:
        """For each set of classes the entities that are of one of them or of one below."""
        found = []
        instances = self.rows("instances")
        for names in self._classes:
            wanted = {_find_class(name, self.schema) for name in names}
            below = [
                c.iri
                for c in self.schema.classes
                if any(self.schema.is_subclass(c.iri, iri) for iri in wanted)
            ]
            of_class = to_mask(pc.is_in(instances.column("class_iri"), pa.array(sorted(below))))
            subjects = self.locate_entities(instances.column("subject_id"))
            members = np.zeros(len(self.rows("entities")), dtype=np.bool_)
            members[subjects[of_class & self.open("instances")]] = True
            found.append(members)
        return found

    def locate_entities(self, keys: pa.Array) -> Integers:
        """The row of the entity of each key; -1 for null."""
        rows = pc.index_in(keys, value_set=self.rows("entities").column("entity_id"))
        return np.asarray(pc.fill_null(rows, -1).to_numpy(zero_copy_only=False), dtype=np.int64)

    def table(self, name: str) -> pa.Table:
        """One table, read whole: the rows that are seen, with what is seen of each.

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
            self._tables[name] = contract.finish(self.cut_table(name, whole))
        return self._tables[name]

    def read_ontology(self, *, sources: bool = False) -> tuple[str, str]:
        """See `View`; never with where statements are said."""
        instances = self.select("instances", range(len(self.rows("instances"))))
        rows, names = self.rows("instances"), EntityTexts(self, self.name_of)
        statements = (state_row(rows.read(row), names) for row in instances)
        return write_schema(self.schema), write_instances(statements)

    def cut_table(self, name: str, whole: pa.Table) -> pa.Table:
        """The rows of a table that are seen; one of them refers to none that is not."""
        if name not in _BY_CLASS:
            return whole
        rows = whole.filter(pa.array(self.mask(name)))
        key = rows[load_contracts()[name].key[0]].combine_chunks()
        for at, column in enumerate(load_contracts()[name].columns):
            if column.target == name:
                linked = rows[column.name]
                linked = pc.if_else(pc.is_in(linked, value_set=key), linked, None)
                rows = rows.set_column(at, rows.schema.field(at), linked)
        return rows


INDEXED = frozenset({"documents", "chunks", "condensed", "entities", "relations", "instances"})
"""Tables whose rows the index has too, in their order."""


def look_up(mask: Mask, rows: npt.NDArray[Any]) -> Mask:
    """For each row whether it is in a mask; a negative one is in none."""
    return (rows >= 0) & mask[rows] if len(mask) else np.zeros(len(rows), dtype=np.bool_)


def to_mask(values: pa.Array) -> Mask:
    """A column of truth values."""
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _find_class(name: str, schema: Schema) -> str:
    """The IRI of a class by IRI or label.

    Raises:
        InputError: there is no such class.
    """
    if name in schema.class_by_iri:
        return name
    labels = {c.label.casefold(): c.iri for c in schema.classes}
    if name.casefold() not in labels:
        hint = suggest(name.casefold(), labels)
        raise InputError(f"the ontology has no class {name!r}{hint}")
    return labels[name.casefold()]


def suggest(name: str, known: Iterable[str]) -> str:
    """Names the nearest that is known, if there is a near one."""
    near = get_close_matches(name, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else ""
