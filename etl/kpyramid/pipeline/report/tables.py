"""Tables of a run as rows of words and numbers for its report."""

import re
from collections.abc import Collection
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jinja2 import Environment, PackageLoader, Template

from kpyramid.documents.qualifiers import write_qualifiers
from kpyramid.documents.words import normalise_relation
from kpyramid.errors import IntegrityError
from kpyramid.numerics.arrays import Integers
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.schema import Schema
from kpyramid.pipeline.stages.instances import Places, list_facts
from kpyramid.storage.contracts import map_column

# A schema in words: labels of its IRIs, classes of types, wordings that state a property.

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class Words:
    """Labels of a schema's classes and properties; what it lacks is read from the IRI."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._labels = {c.iri: c.label for c in schema.classes} | {
            p.iri: p.label for p in schema.properties
        }

    def name(self, iri: str) -> str:
        """The label, else the words that the IRI ends with: `birthPlace` is `birth place`.

        The class of all things is `anything`, a datatype `xsd:gYear`.
        """
        if iri == THING:
            return "anything"
        if iri.startswith(XSD):
            return f"xsd:{iri.removeprefix(XSD)}"
        local = re.split(r"[#/]", iri)[-1]
        return self._labels.get(iri) or _CAMEL.sub(" ", local)

    def name_type(self, entity_type: str) -> str:
        """The label of the class whose instances carry an entity type, else `thing`."""
        iri = self._schema.class_for_type(entity_type)
        return self.name(iri) if iri else "thing"

    def states_property(self, form: str) -> bool:
        """Whether a relation's normal form is that of a property's label or phrase."""
        return form in self._forms

    @cached_property
    def _forms(self) -> frozenset[str]:
        return frozenset(
            normalise_relation(phrase).key
            for prop in self._schema.properties
            for phrase in (prop.label, *prop.alt_labels)
        )


# Columns of a snapshot's tables, and its facts in words with the sentences that state them.

Row: TypeAlias = dict[str, Any]

_LONGEST = 320
"""Characters of a sentence that are shown."""


class SnapshotTables:
    """The tables below a snapshot's folder; nothing is read but what is asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "tables"

    def read(self, name: str, columns: Collection[str]) -> pa.Table:
        """Some columns of one table.

        Raises:
            IntegrityError: the file is missing or damaged, or lacks a column.
        """
        path = self._folder / f"{name}.parquet"
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                table = file.read(columns=list(columns), use_threads=False)
        except (pa.ArrowException, OSError) as e:
            raise IntegrityError(f"table file {path} cannot be read: {e}") from e
        return table.select(list(columns))

    def pick(self, name: str, wanted: pa.ChunkedArray, columns: Collection[str]) -> pa.Table:
        """The rows whose first column is among the wanted, in the table's order."""
        table = self.read(name, columns)
        return table.filter(pc.is_in(table.column(0), value_set=wanted.combine_chunks()))


class Evidence(TypedDict):
    """A fact in words, the sentence that states it best, its document's source, and how often.

    `qualifiers` say when, where and how it holds; `confidence`, how surely it was read.
    """

    fact: list[str]
    qualifiers: list[str]
    confidence: float
    sentence: str
    source: str
    places: int


def find_evidence(tables: SnapshotTables, triple_ids: Collection[str]) -> dict[str, Evidence]:
    """Each of these triples in words with the sentence of its surest statement."""
    spans = [f"{part}_span" for part in ("head", "relation", "tail")]
    ids = pa.chunked_array([sorted(triple_ids)], pa.string())
    triples = tables.pick(
        "triples",
        ids,
        (
            *("triple_id", "head_id", "relation_id", "tail_id", "literal"),
            *("qualifiers", "confidence", "raw_triple_ids"),
        ),
    )
    raw = tables.pick(
        "raw_triples",
        pc.list_flatten(triples["raw_triple_ids"]),
        ("raw_triple_id", "claim_id", "chunk_id", "confidence", "producer", *spans),
    )
    claims = tables.pick("claims", raw["claim_id"], ("claim_id", "spans"))
    chunks = tables.pick("chunks", raw["chunk_id"], ("chunk_id", "document_id"))
    columns = ("document_id", "source", "text", "blocks")
    documents = tables.pick("documents", chunks["document_id"], columns)
    ends = pa.chunked_array([*triples["head_id"].chunks, *triples["tail_id"].chunks], pa.string())
    entities = tables.pick("entities", ends, ("entity_id", "name", "type"))
    relations = tables.pick("relations", triples["relation_id"], ("relation_id", "name"))
    source = map_column(documents, "document_id", "source")
    stated = {row["triple_id"]: row for row in triples.to_pylist()}
    places = Places(documents, chunks)
    return {
        fact.triple_id: Evidence(
            fact=[fact.head, fact.phrase, fact.tail],
            qualifiers=write_qualifiers(stated[fact.triple_id]["qualifiers"]),
            confidence=fact.confidence,
            sentence=shorten(" ".join(fact.places[0].text.split())),
            source=source[fact.places[0].document_id],
            places=len(stated[fact.triple_id]["raw_triple_ids"]),
        )
        for fact in list_facts(places, claims, raw, entities, relations, triples)
    }


def shorten(text: str) -> str:
    """The text, cut at a word with an ellipsis where it is long."""
    if len(text) <= _LONGEST:
        return text
    return text[:_LONGEST].rpartition(" ")[0] + " …"


def to_numpy(values: pa.Array) -> Integers:
    """Whole numbers without nulls."""
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype=np.int64)


def load_template(name: str) -> Template:
    """A page, or a part of one, of the report."""
    return _open_templates().get_template(name)


@cache
def _open_templates() -> Environment:
    loader = PackageLoader("kpyramid.pipeline.report")
    return Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
