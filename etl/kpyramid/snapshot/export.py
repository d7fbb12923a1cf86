"""Exports of a snapshot to the formats of other programs; each appears whole or not at all."""

import logging
import re
import shutil
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial, reduce
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import Environment, StrictUndefined

from kpyramid.errors import InputError
from kpyramid.numerics.arrays import Integers
from kpyramid.ontology.schema import Schema
from kpyramid.ontology.store import write_json_ld, write_ontology, write_sorted
from kpyramid.ontology.turtle import parse_turtle
from kpyramid.snapshot.graph import (
    ATTRIBUTION,
    QUOTED,
    RDF_FACTS,
    READS,
    SQL,
    VALID,
    name_source,
    open_database,
    open_graph,
    write_lines,
    write_quads,
    write_turtle,
)
from kpyramid.snapshot.site import write_site
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.store import GRAPH, SEARCHED, VECTORS
from kpyramid.snapshot.view import EVERYTHING
from kpyramid.storage.archive import Exported, copy_folder, note_export, write_tarball
from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.copies import discard, is_there, write_at
from kpyramid.storage.declarations import locate_declarations
from kpyramid.storage.layout import Warehouse, name_place
from kpyramid.storage.refs import list_entries
from kpyramid.storage.writing import sync_folder, sync_tree

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database

log = logging.getLogger(__name__)

_BATCH = 8_192
"""Rows of vectors that are written at a time."""
_PIECE = 2**20
"""Bytes that are copied at a time."""


@dataclass(frozen=True, slots=True)
class Export:
    """The files and bytes written, and the tables left out because of the scope."""

    bytes: int
    files: tuple[str, ...]
    left_out: tuple[str, ...]


def export(
    snapshot: Snapshot,
    form: str,
    place: str | Path,
    warehouse: Warehouse | None = None,
    corpus: str = "",
    ref: str = "",
) -> Export:
    """Writes the visible part of a snapshot in one of `FORMS`.

    It includes each document's source, title, licence, attribution and access labels. For an
    address it is written here, then sent. `warehouse` records the export, with `corpus` and `ref`
    if it is declared: see `Exported`. A site shows the changes since `ref` was elsewhere.

    Raises:
        EndpointError: it cannot be sent.
        InputError: there is no such form, the place exists, or the scope hides documents and the
            form is a copy of the whole snapshot.
        IntegrityError: the snapshot is damaged.
    """
    if form not in FORMS:
        raise InputError(f"--to {form!r}: it is one of {', '.join(FORMS)}")
    if is_there(place):
        raise InputError(f"{place} is there already; nothing was written. Name another place")
    log.info("exporting snapshot %s as %s to %s", snapshot.id, form, place)
    noted = Exported(snapshot.id, form, name_place(place), corpus, ref if corpus else "")
    write = FORMS[form]
    if form == "site":
        write = partial(write_site, former=_open_former(snapshot, warehouse, ref))
    with note_export(warehouse, noted) if warehouse else nullcontext(), write_at(place) as path:
        made = _write(snapshot, write, path)
    return made


def _open_former(snapshot: Snapshot, warehouse: Warehouse | None, ref: str) -> Snapshot | None:
    """The snapshot of a ref before it last moved to the given one; None if it is gone."""
    entries = list_entries(warehouse, ref) if warehouse and ref else []
    ids = [identifier for identifier, _ in groupby(entry.snapshot for entry in entries)]
    if warehouse is None or snapshot.id not in ids[1:]:
        return None
    folder = warehouse.snapshots / ids[len(ids) - 2 - ids[::-1].index(snapshot.id)]
    former = Snapshot(folder, scope=EVERYTHING) if folder.is_dir() else None
    return former and reduce(Snapshot.scoped, snapshot.scopes, former)


def _write(snapshot: Snapshot, write: "_Form", path: Path) -> Export:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    discard(part)
    try:
        left_out = write(snapshot, part) or ()
        sync_tree(part)
        part.rename(path)
    finally:
        discard(part)
    sync_folder(path.parent)
    files = sorted(p for p in (path.rglob("*") if path.is_dir() else [path]) if p.is_file())
    names = tuple(p.relative_to(path).as_posix() for p in files) if path.is_dir() else (path.name,)
    return Export(sum(p.stat().st_size for p in files), names, tuple(left_out))


@contextmanager
def _open(snapshot: Snapshot, facts: Sequence[str]) -> "Iterator[Database]":
    tables = {name: snapshot.locate_table(name) for name in READS}
    with open_graph(tables, facts) as database:
        for name, table in _list_terms(snapshot.schema).items():
            database.register(name, table)
        database.execute(SQL["ontology"])
        yield database


def _list_terms(schema: Schema) -> dict[str, pa.Table]:
    """The classes of an ontology and the labels of its properties."""
    rows = sorted(
        (c.iri, c.label, _name_label(c.label), c.comment, list(c.parents)) for c in schema.classes
    )
    fields = dict.fromkeys(("iri", "label", "name", "comment"), pa.string())
    kinds = pa.schema({**fields, "parents": pa.list_(pa.string())})
    classes = [dict(zip(kinds.names, row, strict=True)) for row in rows]
    labels = sorted({entry.label for entry in schema.properties})
    return {
        "ontology_class": pa.Table.from_pylist(classes, kinds),
        "ontology_property": pa.table({"label": pa.array(labels, pa.string())}),
    }


_KINDS = frozenset({"Document", "Chunk", "Entity", "Class", "Value"})
"""Labels of the nodes of Neo4j that are for any ontology."""


def _name_label(label: str) -> str:
    """A label as an identifier: `PopulatedPlace`; `Document_`, as a node for a text is another."""
    name = "".join(word[:1].upper() + word[1:] for word in re.findall(r"\w+", label)) or "Thing"
    return f"{name}_" if name in _KINDS else name


# The whole snapshot.


def _write_whole(write: Callable[[Path, Path], None], snapshot: Snapshot, path: Path) -> None:
    if seen := snapshot.describe_scope():
        raise InputError(
            f"this form is a copy of the whole snapshot, and {seen} may be seen: give "
            "--everything, or choose a form that leaves the others out, such as duckdb or nquads"
        )
    write(snapshot.folder, path)


_VOCABULARY = Path(__file__).parent / "vocabulary.ttl"
"""Definitions of the terms of `kp:`."""


# RDF: the ontology, its individuals and where they are said, then the graph.


def _write_turtle(snapshot: Snapshot, path: Path) -> None:
    files: Any = snapshot.manifest["files"]
    if snapshot.describe_scope() or GRAPH not in files:  # it is of all documents
        _write_rdf(write_turtle, snapshot, path)
        return
    made = snapshot._store.locate(GRAPH, most_hashed=None)
    with path.open("wb") as sink, made.open("rb") as graph:
        sink.write(_state_ontology(snapshot))
        shutil.copyfileobj(graph, sink, _PIECE)


def _write_rdf(
    write: "Callable[[Database, BinaryIO], None]", snapshot: Snapshot, path: Path
) -> None:
    with _open(snapshot, RDF_FACTS) as database, path.open("wb") as sink:
        sink.write(_state_ontology(snapshot))
        write(database, sink)


def _state_ontology(snapshot: Snapshot) -> bytes:
    stated = write_ontology(*snapshot._view.read_ontology())
    vocabulary = parse_turtle(_VOCABULARY.read_text("utf-8"), source="the vocabulary")
    return (stated + write_sorted(vocabulary)).encode()


def _write_json_ld(snapshot: Snapshot, path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="kpyramid-") as folder:
        graph = Path(folder) / "graph.ttl"
        _write_turtle(snapshot, graph)
        write_json_ld(graph, path)


# Property graphs: entities and values are nodes, facts are edges.

_ENDS = ("id", "head", "tail", "literal")
_PLAIN = (
    *("relation", "relation_id", "wording", "negated", "modality", *VALID),
    *("more_detailed_id", "confidence", *QUOTED),
)
_LISTS = ("qualifiers", "documents", "sources", "licences", "attributions")
"""Qualifiers of a fact, the documents that state it, and whom to credit."""


def _write_graphml(snapshot: Snapshot, path: Path) -> None:
    fields = {"node": ("label", "type", "forms", "classes"), "edge": ("kind", *_PLAIN, *_LISTS)}
    kinds = {"confidence": "double", "negated": "boolean", "start": "long", "end": "long"}
    keys = "".join(
        f'<key id="{name}" for="{kind}" attr.name="{name}" '
        f'attr.type="{kinds.get(name, "string")}"/>\n'
        for kind, names in fields.items()
        for name in names
    )
    about = "".join(f""" || data('{name}', "{name}"::VARCHAR)""" for name in _PLAIN)
    about += "".join(f" || listed('{name}', {name})" for name in _LISTS)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    facts = (*_ENDS, *_PLAIN, *_LISTS)
    with _open(snapshot, facts) as database, path.open("wb") as sink:
        database.execute(SQL["xml"])
        sink.write(f'{head}{keys}<graph id="{snapshot.id}" edgedefault="directed">\n'.encode())
        for name, query in SQL.items():
            if name.startswith("graphml_"):
                write_lines(database, query.replace("$about", about), sink)
        sink.write(b"</graph>\n</graphml>\n")


_NEO4J = tomllib.loads(Path(__file__).with_name("neo4j.toml").read_text("utf-8"))
_NEO4J_COMMAND: str = _NEO4J.pop("command")


def _write_neo4j(snapshot: Snapshot, path: Path) -> None:
    files = {}
    for name, file in _NEO4J.items():
        cells = []
        for column, value in file["columns"].items():
            text = f"array_to_string({value}, chr(31))" if column.endswith("[]") else value
            quoted = f"'\"' || replace({text}, '\"', '\"\"') || '\"'"
            plain = column.endswith((":double", ":long", ":boolean"))
            cells.append(f"coalesce({f'{value}::VARCHAR' if plain else quoted}, '')")
        line = " || ',' || ".join(cells)
        head = f"{','.join(file['columns'])}\n"
        files[f"{name}.csv"] = (head, f"SELECT {line} || chr(10) FROM {file['from']}")
    _write_files(snapshot, path, (*_ENDS, *_PLAIN, "chunks", *_LISTS), files)
    (path / "import.sh").write_text(_NEO4J_COMMAND, "utf-8")


def _write_files(
    snapshot: Snapshot, path: Path, facts: Sequence[str], files: Mapping[str, tuple[str, str]]
) -> None:
    """Writes a folder of files, each with a head and the lines of a query."""
    path.mkdir()
    with _open(snapshot, facts) as database:
        for name, (head, query) in files.items():
            with (path / name).open("wb") as sink:
                sink.write(head.encode())
                write_lines(database, query, sink)


# JSON lines, and one DuckDB file.

_JSON_FACTS = (
    *("id", "head", "head_name", "relation", "relation_id", "tail", "tail_name", "literal"),
    *("wording", "negated", "more_detailed_id", "qualifiers", "confidence", "modality", *VALID),
    "places",
)


def _write_jsonl(snapshot: Snapshot, path: Path) -> None:
    line = "SELECT to_json(row_of)::VARCHAR || chr(10) FROM ({}) AS row_of"
    files = {
        name.replace("_", "."): ("", line.format(query))
        for name, query in SQL.items()
        if name.endswith("_jsonl")
    }
    _write_files(snapshot, path, _JSON_FACTS, files)


def _write_duckdb(snapshot: Snapshot, path: Path) -> Sequence[str]:
    with open_database(path) as database:
        tables = _locate_tables(snapshot, load_contracts())
        for name, table in tables.items():
            # Vectors hardly get smaller, and packing them is most of the time.
            packing = "uncompressed" if name == VECTORS else "auto"
            database.execute(f"SET force_compression = '{packing}'")
            database.execute(f"CREATE TABLE {name} AS FROM {name_source(database, name, table)}")
        left_out = [name for name in load_contracts() if name not in tables]
        database.execute("\n".join(["BEGIN;", *list_views(left_out, kind="TABLE"), "COMMIT;"]))
    return left_out


def _locate_tables(snapshot: Snapshot, names: Iterable[str]) -> dict[str, Path | pa.Table]:
    """The tables among some that exist where the scope hides documents."""
    tables = {}
    for name in names:
        with suppress(InputError):  # it cannot be divided by documents
            tables[name] = snapshot.locate_table(name)
    return tables


# Vectors.


_PLACED = ("relation", "relation_id", "negated", "modality", *VALID, "more_detailed_id")


def _write_lance(snapshot: Snapshot, path: Path) -> None:
    import lancedb  # in an extra of its own

    held = lancedb.connect(path)
    with _open(snapshot, ("id", "first_document", *_PLACED, *QUOTED)) as database:
        for name in SEARCHED:
            if snapshot._view.part(name).rows:
                held.create_table(name, data=_read_vectors(snapshot, name, database))
        held.create_table("documents", data=database.sql("FROM document").to_arrow_table())


def _read_vectors(snapshot: Snapshot, name: str, database: "Database") -> pa.RecordBatchReader:
    """The visible rows of a searched table: id, words, vector, and columns joined by SQL."""
    view = snapshot._view
    part, mask = view.part(name), view.searched(name)
    rows = np.arange(len(part)) if mask is None else np.flatnonzero(mask)

    def read(some: Integers) -> pa.RecordBatch:
        vectors = part.matrix[some]
        block = {
            "id": part.rows.column(load_contracts()[name].key[0]).take(pa.array(some)),
            "text": pa.array([view.text_of(name, row) for row in some.tolist()], pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(vectors.reshape(-1), vectors.shape[1]),
        }
        database.register("block", pa.table(block))
        return database.sql(SQL[f"lance_{name}"]).to_arrow_table().combine_chunks()

    blocks = (read(rows[start : start + _BATCH]) for start in range(0, len(rows), _BATCH))
    schema = read(rows[:0]).schema
    return pa.RecordBatchReader.from_batches(schema, (b for t in blocks for b in t.to_batches()))


_Form = Callable[[Snapshot, Path], Sequence[str] | None]
"""Writes a form; may return the tables that the scope leaves out."""
FORMS: Mapping[str, _Form] = {
    "folder": partial(_write_whole, copy_folder),
    "tar": partial(_write_whole, write_tarball),
    "site": write_site,
    "turtle": _write_turtle,
    "jsonld": _write_json_ld,
    "nquads": partial(_write_rdf, write_quads),
    "graphml": _write_graphml,
    "neo4j": _write_neo4j,
    "jsonl": _write_jsonl,
    "duckdb": _write_duckdb,
    "lance": _write_lance,
}
"""The forms of export by name."""


# Description of a snapshot's folder for its recipients: its README and its views.

_LONGEST = 200
"""Characters of a licence or a file's name in the README."""
_README = Path(__file__).parent / "readme.jinja"


def describe_folder(manifest: Mapping[str, Any], documents: Path) -> dict[str, bytes]:
    """The files that describe a snapshot, by name.

    `documents`: the file of that table. They do not depend on the run, but on the release that made
    the snapshot.
    """
    views = [
        *(
            f"CREATE OR REPLACE VIEW {n} AS FROM 'tables/{n}{'/*' * (n == VECTORS)}.parquet';"
            for n in load_contracts()
        ),
        *list_views(),
    ]
    first = (
        "-- The tables as views, with what their columns mean, and views over them. For DuckDB,\n"
        "-- from within this folder, or after SET file_search_path = '/path/to/this/folder'.\n"
    )
    return {
        "README.md": _write_readme(manifest, documents).encode(),
        "vocabulary.ttl": _VOCABULARY.read_bytes(),
        "views.sql": (first + "\n".join(views) + "\n").encode(),
    }


def list_views(without: Collection[str] = (), *, kind: str = "VIEW") -> Iterator[str]:
    """SQL that comments tables and columns, then creates the views over them.

    `without`: missing tables; `kind`: SQL kind of the others in the database.
    """
    for name, contract in load_contracts().items():
        if name in without:
            continue
        yield f"COMMENT ON {kind} {name} IS {_quote(contract.about)};"
        for column in contract.columns:
            unit = f" Unit: {column.unit}." if column.unit else ""
            yield f'COMMENT ON COLUMN {name}."{column.name}" IS {_quote(column.about + unit)};'
    absent = [*without]
    for name, path in locate_declarations("views").items():
        text = path.read_text("utf-8").strip()
        if any(re.search(rf"\b(FROM|JOIN) {absentee}\b", text) for absentee in absent):
            absent.append(name)
            continue
        about = text.partition("\n")[0].removeprefix("-- ")
        yield f"{text}\nCOMMENT ON VIEW {name} IS {_quote(about)};"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _write_readme(manifest: Mapping[str, Any], documents: Path) -> str:
    table = pq.read_table(documents, columns=["source", "licence", "access", "metadata"])
    files = Counter(_plain(source.partition("#")[0]) for source in table["source"].to_pylist())
    licences = Counter(_plain(licence or "none stated") for licence in table["licence"].to_pylist())
    credited = [any(k in ATTRIBUTION for k, _ in pairs) for pairs in table["metadata"].to_pylist()]
    template = Environment(undefined=StrictUndefined, autoescape=False).from_string(  # noqa: S701
        _README.read_text("utf-8")
    )
    return template.render(
        {k: manifest[k] for k in ("corpus", "software", "format", "resources")},
        rows={name: entry["rows"] for name, entry in manifest["tables"].items()},
        files=sorted(files.items()),
        licences=sorted(licences.items(), key=lambda pair: (-pair[1], pair[0])),
        attribution=", ".join(f"`{name}`" for name in ATTRIBUTION),
        attributed=sum(credited),
        labelled=sum(map(bool, table["access"].to_pylist())),
        tables=[(name, contract.about) for name, contract in load_contracts().items()],
        count=lambda number, noun: f"{number:,} {noun}{'' if number == 1 else 's'}",
    )


def _plain(text: str) -> str:
    """A document's own text as a line that Markdown shows literally."""
    return " ".join(re.sub(r"[`|<>\[\]]", " ", text).split())[:_LONGEST]


# SQL over the tables and views, as the scope lets them be seen, and over no file.


def run_sql(snapshot: Snapshot, query: str) -> list[dict[str, Any]]:
    """The rows of a SELECT by DuckDB, each by the names of its columns.

    The database is in memory, and reads no file but the tables of the snapshot; SET and ATTACH are
    refused. Tables that cannot be divided by documents, and views over them, are missing if the
    scope hides rows. `vectors` exists if the query contains that word.

    Raises:
        InputError: the query is empty, is more than one SELECT, or does not run; states why.
        IntegrityError: a table of the snapshot is damaged.
    """
    import duckdb

    asked = [n for n in load_contracts() if n != VECTORS or n in query.casefold()]
    with open_database() as database:
        tables = _locate_tables(snapshot, asked)
        for name, table in tables.items():
            database.execute(f"CREATE VIEW {name} AS FROM {name_source(database, name, table)}")
        left_out = [name for name in load_contracts() if name not in tables]
        paths = [str(table) for table in tables.values() if isinstance(table, Path)]
        database.execute("\n".join(list_views(left_out)))
        database.execute("SET allowed_paths = $paths", {"paths": paths})
        database.execute("SET python_enable_replacements = false")
        database.execute("SET enable_external_access = false; SET lock_configuration = true")
        try:
            statements = database.extract_statements(query)
            if [statement.type for statement in statements] != [duckdb.StatementType.SELECT]:
                raise InputError("the SQL is not one SELECT; write one, without a word before it")
            rows: list[dict[str, Any]] = database.sql(query).to_arrow_table().to_pylist()
            return rows
        except duckdb.Error as e:
            hidden = ", ".join(name for name in left_out if name != VECTORS)
            why = f" Not here, as the scope hides documents: {hidden}." if hidden else ""
            raise InputError(f"the SQL does not run: {e}.{why}") from e
