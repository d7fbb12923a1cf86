"""What of a snapshot a question may see: by access label, document, metadata and class."""

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.errors import InputError
from kpyramid.indexing.words import Mask
from kpyramid.ontology.schema import Schema
from kpyramid.ontology.store import InstanceStatement, entity_iri, write_instances
from kpyramid.query.pyramid.index import Index


@dataclass(frozen=True, slots=True)
class Scope:
    """What a reader may see and wants to see.

    `access`: the labels that the reader has. Documents without labels are everybody's, of those
    with labels one that the reader has is enough; None stands for whoever may see everything.
    `documents`: ids or sources; a source stands for all records of its file. `metadata`: pairs of
    field and value, all of which a document must have. `classes`: IRIs or labels; facts are then
    those about an individual of one of them, passages those that state such a fact. Empty: all.
    """

    access: frozenset[str] | None = frozenset()
    documents: frozenset[str] = frozenset()
    metadata: frozenset[tuple[str, str]] = frozenset()
    classes: frozenset[str] = frozenset()


PUBLIC = Scope()
"""What everybody may see."""
EVERYTHING = Scope(access=None)


class View:
    """The rows of an index that a scope lets be seen; None stands for all rows.

    A fact is seen when a document that states as much is. A fact that others were merged into
    because it says more is seen only by who may see where it is said.
    """

    def __init__(self, index: Index, read_schema: Callable[[], Schema], scope: Scope) -> None:
        self._index = index
        self._read_schema = read_schema
        self._scope = scope

    @cached_property
    def documents(self) -> Mask | None:
        """The documents that are seen.

        Raises:
            InputError: no document has an id, source or metadata that the scope names.
        """
        found: Mask | None = self._unlabelled()
        for mask in (self._named_documents(), self._described_documents()):
            if mask is not None:
                found = mask if found is None else found & mask
        return found

    @cached_property
    def chunks(self) -> Mask | None:
        """The chunks of those documents; with classes those that state something of them."""
        seen = self._rows_of("chunks")
        if self._members is None:
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
        seen, members = self._rows_of("condensed"), self._members
        if members is None:
            return seen
        rows = self._index.rows("condensed")
        tails = rows.numbers("tail")
        about: Mask = members[rows.numbers("head")] | (members[tails] & (tails >= 0))
        return about if seen is None else about & seen

    @cached_property
    def instances(self) -> Mask | None:
        """The statements of the ontology that they hold; with classes those about them."""
        seen, members = self._rows_of("instances"), self._members
        if members is None:
            return seen
        rows = self._index.rows("instances")
        about = self._pick(members, rows.column("subject_id")) | self._pick(
            members, rows.column("object_id")
        )
        return about if seen is None else about & seen

    @cached_property
    def entities(self) -> Mask | None:
        """The entities of which something seen says something, whatever their class."""
        facts, instances = self._rows_of("condensed"), self._rows_of("instances")
        if facts is None or instances is None:
            return None
        entities, rows = self._index.rows("entities"), self._index.rows("condensed")
        found = np.zeros(len(entities), dtype=np.bool_)
        found[rows.numbers("head")[facts]] = True
        tails = rows.numbers("tail")[facts]
        found[tails[tails >= 0]] = True
        said = self._index.rows("instances")
        for name in ("subject_id", "object_id"):
            found[self._locate(said.column(name).filter(pa.array(instances)))] = True
        return found

    def write_statements(self) -> str:
        """The ontology's statements that are seen, as N-Triples without where they are said."""
        rows, names = self._index.rows("instances"), self._index.rows("entities")

        def name(key: str) -> str:
            at = names.find(key)
            return key if at is None else str(names.value("name", at))

        seen = range(len(rows)) if self.instances is None else np.flatnonzero(self.instances)
        said = (rows.read(int(row)) for row in seen)
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

    def describe(self) -> str:
        """How many documents are seen, of how many; empty when all are."""
        if self.documents is None or self.documents.all():
            return ""
        return f"{int(self.documents.sum()):,} of {len(self.documents):,} documents"

    def _unlabelled(self) -> Mask | None:
        """The documents whose labels let them be seen."""
        if self._scope.access is None:
            return None
        labels = self._index.rows("documents").column("access")
        hidden = pc.list_value_length(labels).to_numpy(zero_copy_only=False) > 0
        if not hidden.any():
            return None
        owners = pc.list_parent_indices(labels).to_numpy(zero_copy_only=False)
        mine = pc.is_in(pc.list_flatten(labels), pa.array(sorted(self._scope.access), pa.string()))
        seen = ~hidden
        seen[owners[mine.to_numpy(zero_copy_only=False)]] = True
        return np.asarray(seen, dtype=np.bool_)

    def _named_documents(self) -> Mask | None:
        if not self._scope.documents:
            return None
        rows = self._index.rows("documents")
        sources = rows.column("source")
        files = pc.list_element(pc.split_pattern(sources, "#", max_splits=1), 0)
        seen = np.zeros(len(rows), dtype=np.bool_)
        for wanted in sorted(self._scope.documents):
            same = [pc.equal(c, wanted) for c in (rows.column("document_id"), sources, files)]
            found = np.any([mask.to_numpy(zero_copy_only=False) for mask in same], axis=0)
            if not found.any():
                near = get_close_matches(wanted, files.unique().to_pylist(), 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                raise InputError(f"no document has the id or source {wanted!r}{hint}")
            seen |= found
        return seen

    def _described_documents(self) -> Mask | None:
        if not self._scope.metadata:
            return None
        rows = self._index.rows("documents")
        described = rows.column("metadata")
        owners = pc.list_parent_indices(described).to_numpy(zero_copy_only=False)
        flat = pc.list_flatten(described)
        seen = np.ones(len(rows), dtype=np.bool_)
        for field, value in sorted(self._scope.metadata):
            same = pc.equal(flat, f"{field}={value}").to_numpy(zero_copy_only=False)
            having = np.zeros(len(rows), dtype=np.bool_)
            having[owners[same]] = True
            if not having.any():
                raise InputError(f"no document has {field} = {value!r} in its metadata")
            seen &= having
        return seen

    def _rows_of(self, table: str) -> Mask | None:
        if self.documents is None:
            return None
        found: Mask = self._index.mask_documents(self.documents, table)
        return found

    @cached_property
    def _members(self) -> Mask | None:
        """The entities that are of the scope's classes or of one below."""
        if not self._scope.classes:
            return None
        schema = self._read_schema()
        wanted = {_find_class(name, schema) for name in self._scope.classes}
        below = [
            c.iri for c in schema.classes if any(schema.is_subclass(c.iri, iri) for iri in wanted)
        ]
        said = self._index.rows("instances")
        of_class = pc.is_in(said.column("class_iri"), pa.array(sorted(below), pa.string()))
        found = np.zeros(len(self._index.rows("entities")), dtype=np.bool_)
        found[self._locate(said.column("subject_id").filter(of_class))] = True
        return found

    def _locate(self, keys: pa.Array) -> npt.NDArray[np.int64]:
        """The rows of the entities that some keys name; nulls are left out."""
        held = self._index.rows("entities").column("entity_id")
        rows = pc.index_in(keys.drop_null(), value_set=held)
        return np.asarray(rows.to_numpy(zero_copy_only=False), dtype=np.int64)

    def _pick(self, mask: Mask, keys: pa.Array) -> Mask:
        """For each key whether it names an entity of a mask; false for null."""
        held = self._index.rows("entities").column("entity_id")
        return np.asarray(
            pc.is_in(keys, held.filter(pa.array(mask))).to_numpy(zero_copy_only=False), np.bool_
        )


def _find_class(name: str, schema: Schema) -> str:
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
