"""A snapshot's graph as lines of text, out of core: RDF, GraphML, JSON lines and CSV by DuckDB.

DuckDB joins the tables where they lie and writes each line as one string; the strings of a batch
lie one behind the other in memory, so a batch is written to the file as it is.
"""

import re
import tempfile
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kpyramid.documents.words import deny
from kpyramid.errors import IntegrityError, PyramidError
from kpyramid.ontology import names as n
from kpyramid.snapshot.evidence import stack_headings
from kpyramid.storage.contracts import load_contracts

if TYPE_CHECKING:  # plain readers do not install it
    from duckdb import DuckDBPyConnection as Database

_MEMORY = "2GB"
"""Memory of DuckDB beyond which it uses files: tables may be larger."""
READS = (
    *("documents", "chunks", "claims", "raw_triples"),
    *("triples", "condensed", "entities", "relations", "instances"),
)
"""Tables from which the graph is made."""
ATTRIBUTION = ("attribution", "author", "authors", "creator", "byline")
"""Fields of a document's metadata with its attribution; the first that exists is taken."""


@contextmanager
def open_database(path: Path | None = None) -> "Iterator[Database]":
    """A DuckDB database with bounded memory, in a file or in memory.

    Raises:
        IntegrityError: a table cannot be read.
        PyramidError: memory or disk ran out.
    """
    import duckdb

    with (
        tempfile.TemporaryDirectory(prefix="kpyramid-duckdb-") as scratch,
        duckdb.connect(str(path or ":memory:"), config={"temp_directory": scratch}) as database,
    ):
        database.execute(f"SET memory_limit = '{_MEMORY}'; SET enable_progress_bar = false")
        try:
            yield database
        except duckdb.OutOfMemoryException as e:
            why, place = str(e).splitlines()[0], tempfile.gettempdir()
            raise PyramidError(
                f"DuckDB holds {_MEMORY} and files below {place}, which are not enough: {why}. No "
                f"table is damaged. Make room in {place} or set TMPDIR to a larger disk; where "
                "there is room, cut the longest documents into several"
            ) from e
        except duckdb.Error as e:
            raise IntegrityError(
                f"{e}. `kpyramid verify` says whether the snapshot is damaged"
            ) from e


def name_source(database: "Database", name: str, table: Path | pa.Table) -> str:
    """The SQL source of a table: a Parquet file, or a table in memory under its own name."""
    if not isinstance(table, Path):
        database.register(f"held_{name}", table)
        return f"held_{name}"
    source = "read_parquet('" + str(table).replace("'", "''") + "')"
    try:
        held = pq.read_schema(table).names  # an older snapshot may lack a column
    except (pa.ArrowException, OSError):  # the reader of the table reports the damage
        return source
    lacking = [c for c in load_contracts()[name].columns if c.name not in held]
    blank = "".join(
        f", {'NULL::VARCHAR' if c.default is None else repr(c.default)} AS {c.name}"
        for c in lacking
        if c.default is not None or (c.nullable and c.type == "string")
    )
    return f"(SELECT *{blank} FROM {source})" if blank else source


# The graph: documents, chunks, entities, facts and places, each sorted by its key.

_PARTS = re.compile(r"^--- (\w+):.*\n((?:(?!^---).*\n?)*)", re.MULTILINE)


def read_sql(name: str) -> dict[str, str]:
    """The parts of a file of SQL beside this one by their names."""
    return dict(_PARTS.findall(Path(__file__).with_name(name).read_text("utf-8")))


SQL = read_sql("graph.sql")
QUOTED = ("sentence", "start", "end", "section")


@contextmanager
def open_graph(
    tables: Mapping[str, Path | pa.Table], facts: Collection[str]
) -> "Iterator[Database]":
    """A database with the graph of some tables (`READS`) in its tables.

    They are `document`, `entity`, `place`, and `fact` with the columns `facts`, in the order of
    their keys. Facts have the ends of their standard relation; `wording`: the fact in the words of
    the text; `more_detailed_id`: the more detailed fact; `places`: its places; `documents`,
    `sources`, `licences`, `attributions`: of those documents. Facts without a more detailed one are
    the distinct facts.
    """
    with open_database() as database:
        for name, table in tables.items():
            source = name_source(database, name, table)
            database.execute(f"CREATE TEMP VIEW {name} AS FROM {source}")
        fields = ", ".join(f"metadata['{name}']" for name in ATTRIBUTION)
        database.execute(SQL["documents"].replace("$attribution", fields))
        database.create_function("deny", deny, ["VARCHAR"], "VARCHAR")
        database.execute(SQL["graph"])
        source, columns = "facts", ", ".join(f'"{name}"' for name in facts)
        if not {*QUOTED}.isdisjoint(facts):
            database.register("section", _list_sections(database))
            database.execute(SQL["quoted"])
            source = "quoted"
        query = f"SELECT {columns} FROM {source} ORDER BY id"  # other columns are not computed
        database.execute(f"CREATE TEMP TABLE fact AS {query}")
        yield database


def _list_sections(database: "Database") -> pa.Table:
    """The start of each heading of a document, with the headings above it."""
    sections: list[dict[str, Any]] = []
    for batch in database.sql(SQL["headings"]).to_arrow_reader(1_024):
        for row in batch.to_pylist():
            paths = stack_headings((each["level"], each["text"]) for each in row["headings"])
            for heading, path in zip(row["headings"], paths, strict=True):
                key, start = row["document_id"], heading["start"]
                sections.append({"document_id": key, "start": start, "path": path})
    fields = {"document_id": pa.string(), "start": pa.int64(), "path": pa.string()}
    return pa.Table.from_pylist(sections, pa.schema(fields))


def write_lines(database: "Database", query: str, sink: BinaryIO) -> None:
    """Writes the one text column of a query, value behind value; nulls are nothing."""
    for batch in database.sql(query).to_arrow_reader(65_536):
        values = batch.column(0).cast(pa.large_string())
        offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset :]
        first, last = int(offsets[0]), int(offsets[len(values)])
        if last > first:
            sink.write(memoryview(values.buffers()[2])[first:last])


# RDF.

_PREFIXES = {
    "rdf": n.RDF,
    "rdfs": n.RDFS,
    "skos": n.SKOS,
    "xsd": n.XSD,
    "prov": n.PROV,
    "dct": n.DCT,
    "kp": n.KP,
}
_CURIE = re.compile(r"<(\w+:\w+)>")
_DECLARED = tomllib.loads(Path(__file__).with_name("rdf.toml").read_text("utf-8"))
_RELATION = _DECLARED["terms"]["relation"]
"""The property of a fact's relation."""
VALID = ("valid_from", "valid_to")
RDF_FACTS = (
    *("id", "head", "relation", "relation_id", "tail", "literal"),
    *("wording", "negated", "more_detailed_id", "confidence", "modality", "valid_from", "valid_to"),
    *("qualifiers", "places"),
)
"""Columns of `fact` that RDF includes."""


def _list_subjects(
    spell: Callable[[str], str],
) -> Iterator[tuple[str, str, str, list[tuple[str, str, bool]]]]:
    """For each kind of subject: its source, SQL of its IRI and of its graph, and its statements.

    These are SQL of a predicate and of its object, which is null for none, and whether that is a
    list. `spell`: SQL of a term `prefix:name`.
    """

    def fill(value: str) -> str:
        for name, term in _DECLARED["terms"].items():
            value = value.replace(f"${name}", term)
        return _CURIE.sub(lambda match: spell(match[1]), value)

    for kind in _DECLARED["subjects"]:
        says = []
        for predicate, value in kind["says"].items():
            name = predicate.removesuffix("[]")
            term = spell(name) if name else f"iri({_RELATION})"
            says.append((term, fill(value), predicate.endswith("[]")))
        yield kind["from"], fill(kind["iri"]), kind.get("in", ""), says


def write_turtle(database: "Database", sink: BinaryIO) -> None:
    """Writes the graph as Turtle, a line for each subject.

    A fact is stated by its standard relation, unless the text denies or hedges it, and described as
    an `rdf:Statement` under its id: its wording, the more detailed fact (`kp:moreDetailed`; facts
    without one are the distinct facts), confidence, qualifiers, and the places (PROV-O) that state
    it, each with its words and its document. A document has source, title, licence, attribution and
    access labels.
    """
    database.execute(SQL["terms"].replace("$base", ""))
    lines = [f"@base <{n.ENTITY}> ."]
    lines += [f"@prefix {name}: <{iri}> ." for name, iri in _PREFIXES.items()]
    sink.write("\n".join([*lines, "", ""]).encode())
    for source, subject, _, says in _list_subjects(lambda curie: f"'{curie}'"):
        parts = []
        for predicate, value, is_list in says:
            joined = f"nullif(array_to_string({value}, ', '), '')"
            parts.append(f"{predicate} || ' ' || {joined if is_list else value}")
        line = f"{subject} || ' ' || concat_ws(' ; ', {', '.join(parts)}) || E' .\\n'"
        filled = f"coalesce({', '.join(parts)}) IS NOT NULL"
        joint = " AND " if " WHERE " in source else " WHERE "
        write_lines(database, f"SELECT {line} FROM {source}{joint}{filled}", sink)


def write_quads(database: "Database", sink: BinaryIO) -> None:
    """Writes the same as N-Quads; a fact's statement is in the graph named by the fact's id."""
    database.execute(SQL["terms"].replace("$base", n.ENTITY))

    def spell(curie: str) -> str:
        prefix, _, name = curie.partition(":")
        return f"'<{_PREFIXES[prefix]}{name}>'"

    for source, subject, graph, says in _list_subjects(spell):
        parts = []
        after = f", ' ', {graph}, E' .\\n'" if graph else ", E' .\\n'"
        for predicate, value, is_list in says:
            line = f"concat({subject}, ' ', {predicate}, ' ', %s{after})"
            if is_list:
                made = f"list_transform({value}, lambda o: {line % 'o'})"
                parts.append(f"array_to_string({made}, '')")
            else:
                parts.append(f"if({value} IS NULL, NULL, {line % value})")
        write_lines(database, f"SELECT concat({', '.join(parts)}) FROM {source}", sink)


def write_graph(tables: Mapping[str, Path], path: Path) -> None:
    """Writes the graph of some tables as a Turtle file."""
    held = {name: tables[name] for name in READS}
    with open_graph(held, RDF_FACTS) as database, path.open("wb") as sink:
        write_turtle(database, sink)
