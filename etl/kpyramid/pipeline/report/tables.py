"""Tables of a run as rows of words and numbers for its report."""

import re
from collections.abc import Collection, Iterable
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jinja2 import Environment, PackageLoader, Template

from kpyramid.documents.qualifiers import write_qualifiers
from kpyramid.documents.sentences import Span
from kpyramid.documents.words import normalise_relation
from kpyramid.errors import IntegrityError
from kpyramid.numerics.arrays import Integers
from kpyramid.ontology.names import THING, XSD
from kpyramid.ontology.population.checking import Sentences
from kpyramid.ontology.schema import Schema

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

    def pick(
        self, name: str, key: str, wanted: Iterable[str], columns: Collection[str]
    ) -> list[Row]:
        """The rows whose `key` is among the wanted, in the table's order."""
        table = self.read(name, [key, *columns])
        return list(
            table.filter(pc.is_in(table[key], pa.array(sorted(wanted), pa.string()))).to_pylist()
        )

    def name_all(self, name: str, key: str, wanted: Iterable[str]) -> dict[str, str]:
        """The names of some rows by their keys."""
        return {row[key]: row["name"] for row in self.pick(name, key, wanted, ["name"])}


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


def state_rows(tables: SnapshotTables, rows: Collection[Row]) -> list[tuple[str, str, str]]:
    """Head, relation and tail in words, of rows with their ids, in the order of the rows."""
    ends = {row[end] for row in rows for end in ("head_id", "tail_id") if row[end]}
    name = tables.name_all("entities", "entity_id", ends)
    verb = tables.name_all("relations", "relation_id", {row["relation_id"] for row in rows})
    return [
        (
            name[row["head_id"]],
            verb[row["relation_id"]],
            name[row["tail_id"]] if row["tail_id"] else row["literal"],
        )
        for row in rows
    ]


def find_evidence(tables: SnapshotTables, triple_ids: Collection[str]) -> dict[str, Evidence]:
    """Each of these triples in words with the sentence of its surest statement."""
    facts = (
        *("head_id", "relation_id", "tail_id", "literal"),
        *("qualifiers", "confidence", "raw_triple_ids"),
    )
    triples = tables.pick("triples", "triple_id", triple_ids, facts)
    stated = state_rows(tables, triples)
    wanted = {key for row in triples for key in row["raw_triple_ids"]}
    spans = [f"{part}_span" for part in ("head", "relation", "tail")]
    columns = ("claim_id", "chunk_id", "confidence", *spans)
    raw = {
        row["raw_triple_id"]: row
        for row in tables.pick("raw_triples", "raw_triple_id", wanted, columns)
    }
    best = {
        row["triple_id"]: min(
            (raw[key] for key in row["raw_triple_ids"]),
            key=lambda r: (-r["confidence"], r["raw_triple_id"]),
        )
        for row in triples
    }
    quoted = _quote(tables, best)
    return {
        row["triple_id"]: Evidence(
            fact=list(words),
            qualifiers=write_qualifiers(row["qualifiers"]),
            confidence=row["confidence"],
            sentence=quoted[row["triple_id"]][0],
            source=quoted[row["triple_id"]][1],
            places=len(row["raw_triple_ids"]),
        )
        for row, words in zip(triples, stated, strict=True)
    }


def _quote(tables: SnapshotTables, stated: dict[str, Row]) -> dict[str, tuple[str, str]]:
    """Sentence and source of each statement."""
    keys = {row["chunk_id"] for row in stated.values()}
    chunks = {
        row["chunk_id"]: row["document_id"]
        for row in tables.pick("chunks", "chunk_id", keys, ["document_id"])
    }
    documents = {
        row["document_id"]: row
        for row in tables.pick("documents", "document_id", set(chunks.values()), ["source", "text"])
    }
    claims = {
        row["claim_id"]: row["spans"]
        for row in tables.pick(
            "claims", "claim_id", {row["claim_id"] for row in stated.values()}, ["spans"]
        )
    }
    sentences = Sentences({key: row["text"] for key, row in documents.items()})
    quoted = {}
    for key, row in stated.items():
        document_id = chunks[row["chunk_id"]]
        own = [row[f"{part}_span"] for part in ("head", "relation", "tail")]
        found = [span for span in own if span] or claims[row["claim_id"]][:1]
        around = sentences.cover(document_id, [Span(s["start"], s["end"]) for s in found])
        document = documents[document_id]
        words = " ".join(document["text"][around.start : around.end].split())
        quoted[key] = shorten(words), document["source"]
    return quoted


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
