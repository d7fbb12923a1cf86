"""What a snapshot says, or is, in the forms of other programs; each appears whole or not at all."""

import logging
import re
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import Environment, StrictUndefined

from kpyramid.errors import InputError
from kpyramid.numerics.arrays import Integers
from kpyramid.ontology.store import write_ontology
from kpyramid.snapshot.graph import (
    ATTRIBUTION,
    RDF_FACTS,
    READS,
    name_source,
    open_database,
    open_graph,
    write_lines,
    write_quads,
    write_turtle,
)
from kpyramid.snapshot.snapshot import Snapshot
from kpyramid.snapshot.store import GRAPH, SEARCHED, VECTORS
from kpyramid.storage.archive import Exported, copy_folder, note_export, write_tarball
from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.copies import discard, is_there, write_at
from kpyramid.storage.declarations import locate_declarations
from kpyramid.storage.layout import Warehouse, name_place
from kpyramid.storage.writing import sync_folder, sync_tree

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database

log = logging.getLogger(__name__)

_KEYS = {"chunks": "chunk_id", "condensed": "condensed_id", "entities": "entity_id"}
_BATCH = 8_192
"""Rows of vectors that are written at a time."""
_PIECE = 2**20
"""Bytes that are copied at a time."""


@dataclass(frozen=True, slots=True)
class Export:
    """What was written: its bytes and files, and tables that the scope kept back."""

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
    """Writes a snapshot, as far as its scope lets it be seen, in one of `FORMS`.

    Each document's source, title, licence, attribution and access labels go along. For an address
    it is written here, then sent. `warehouse` is where the export is noted, with `corpus` and `ref`
    if it is a declared one: see `Exported`.

    Raises:
        EndpointError: it cannot be sent.
        InputError: there is no such form, something is at the place, or the scope hides documents
            and the form is a copy of the whole snapshot.
        IntegrityError: the snapshot is damaged.
    """
    if form not in FORMS:
        raise InputError(f"--to {form!r}: it is one of {', '.join(FORMS)}")
    if is_there(place):
        raise InputError(f"{place} is there already; nothing was written. Name another place")
    log.info("exporting snapshot %s as %s to %s", snapshot.id, form, place)
    noted = Exported(snapshot.id, form, name_place(place), corpus, ref)
    with note_export(warehouse, noted) if warehouse else nullcontext(), write_at(place) as path:
        made = _write(snapshot, form, path)
    return made


def _write(snapshot: Snapshot, form: str, path: Path) -> Export:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    discard(part)
    try:
        left_out = FORMS[form](snapshot, part)
        sync_tree(part)
        part.rename(path)
    finally:
        discard(part)
    sync_folder(path.parent)
    found = sorted(p for p in (path.rglob("*") if path.is_dir() else [path]) if p.is_file())
    names = tuple(p.relative_to(path).as_posix() for p in found) if path.is_dir() else (path.name,)
    return Export(sum(p.stat().st_size for p in found), names, tuple(left_out))


def _open(snapshot: Snapshot, facts: Sequence[str]) -> "AbstractContextManager[Database]":
    names = READS if facts else ("documents",)
    return open_graph({name: snapshot.locate_table(name) for name in names}, facts)


# The whole snapshot.


def _write_whole(
    write: Callable[[Path, Path], None], snapshot: Snapshot, path: Path
) -> tuple[str, ...]:
    if seen := snapshot.describe_scope():
        raise InputError(
            f"this form is a copy of the whole snapshot, and {seen} may be seen: give "
            "--everything, or choose a form that leaves the others out, such as duckdb or nquads"
        )
    write(snapshot.folder, path)
    return ()


# RDF: the ontology, its individuals and where they are said, then the graph.


def _write_turtle(snapshot: Snapshot, path: Path) -> tuple[str, ...]:
    files: Any = snapshot.manifest["files"]
    if snapshot.describe_scope() or GRAPH not in files:  # it is of all documents
        return _write_rdf(write_turtle, snapshot, path)
    made = snapshot._store.locate(GRAPH, most_hashed=None)
    with path.open("wb") as sink, made.open("rb") as graph:
        sink.write(_state_ontology(snapshot))
        shutil.copyfileobj(graph, sink, _PIECE)
    return ()


def _write_rdf(
    write: "Callable[[Database, BinaryIO], None]", snapshot: Snapshot, path: Path
) -> tuple[str, ...]:
    with _open(snapshot, RDF_FACTS) as database, path.open("wb") as sink:
        sink.write(_state_ontology(snapshot))
        write(database, sink)
    return ()


def _state_ontology(snapshot: Snapshot) -> bytes:
    return write_ontology(*snapshot._view.read_ontology(sources=True)).encode()


# Property graphs: entities and values are nodes, facts are edges.

_XML = """
CREATE OR REPLACE TEMP MACRO xml(x) AS replace(replace(replace(replace(regexp_replace(x,
    '[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x{FFFE}\\x{FFFF}]', chr(65533), 'g'),
    '&', '&amp;'), '<', '&lt;'), '>', '&gt;'), '"', '&quot;');
CREATE OR REPLACE TEMP MACRO data(k, x) AS
    coalesce('<data key="' || k || '">' || xml(x) || '</data>', '');
"""
"""What XML cannot hold becomes the replacement character."""
_VALUES = "(SELECT DISTINCT literal FROM fact WHERE tail IS NULL ORDER BY literal)"
_ENDS = ("id", "head", "tail", "literal")
_PLAIN = ("relation", "wording", "negated", "more_detailed_id", "confidence")
_LISTS = ("modality", "qualifiers", "documents", "sources", "licences", "attributions")
"""Of a fact what qualifies it, the documents that state it, and whom to name."""


def _write_graphml(snapshot: Snapshot, path: Path) -> tuple[str, ...]:
    fields = {"node": ("label", "type", "forms", "classes"), "edge": (*_PLAIN, *_LISTS)}
    keys = "".join(
        f'<key id="{name}" for="{kind}" attr.name="{name}" '
        f'attr.type="{"double" if name == "confidence" else "string"}"/>\n'
        for kind, names in fields.items()
        for name in names
    )
    about = "".join(f" || data('{name}', {name}::VARCHAR)" for name in _PLAIN)
    about += "".join(f" || data('{name}', {_join(name, '; ')})" for name in _LISTS)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    facts = (*_ENDS, *_PLAIN, *_LISTS)
    with _open(snapshot, facts) as database, path.open("wb") as sink:
        database.execute(_XML)
        sink.write(f'{head}{keys}<graph id="{snapshot.id}" edgedefault="directed">\n'.encode())
        for query in (
            "SELECT '<node id=\"' || id || '\">' || data('label', name) || data('type', type) || "
            f"data('forms', {_join('forms', '; ')}) || data('classes', {_join('classes', ' ')}) || "
            "E'</node>\\n' FROM entity",
            "SELECT '<node id=\"value:' || xml(literal) || '\">' || data('label', literal) || "
            f"data('type', 'LITERAL') || E'</node>\\n' FROM {_VALUES}",
            "SELECT '<edge id=\"' || id || '\" source=\"' || head || '\" target=\"' || "
            f"coalesce(tail, 'value:' || xml(literal)) || '\">'{about} || E'</edge>\\n' FROM fact",
        ):
            write_lines(database, query, sink)
        sink.write(b"</graph>\n</graphml>\n")
    return ()


def _join(name: str, between: str) -> str:
    return f"nullif(array_to_string({name}, '{between}'), '')"


_WORDS = "trim(regexp_replace(relation, '[^\\pL\\pN]+', '_', 'g'), '_')"
_NEO4J: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "documents": (
        "document",
        {
            "id:ID": "id",
            **{name: name for name in ("source", "title", "language", "licence", "attribution")},
            "access:string[]": "access",
            ":LABEL": "'Document'",
        },
    ),
    "chunks": (
        "chunks",
        {"id:ID": "chunk_id", "text": "text", "start:long": "start", ":LABEL": "'Chunk'"},
    ),
    "entities": (
        "entity",
        {
            "id:ID": "id",
            **{name: name for name in ("name", "type")},
            **{f"{name}:string[]": name for name in ("forms", "classes")},
            ":LABEL": "concat_ws(chr(31), 'Entity', nullif(array_to_string(list_transform(classes, "
            "lambda c: regexp_extract(c, '[^/#]+$')), chr(31)), ''))",
        },
    ),
    "values": (
        _VALUES,
        {"id:ID": "'value:' || literal", "name": "literal", ":LABEL": "'Value'"},
    ),
    "facts": (
        "fact",
        {
            ":START_ID": "head",
            ":END_ID": "coalesce(tail, 'value:' || literal)",
            ":TYPE": f"coalesce(nullif(upper({_WORDS}), ''), 'RELATED_TO')",
            "id": "id",
            "relation": "relation",
            "wording": "wording",
            "negated:boolean": "negated",
            "more_detailed_id": "more_detailed_id",
            "confidence:double": "confidence",
            **{f"{name}:string[]": name for name in ("chunks", *_LISTS)},
        },
    ),
    "parts": (
        "chunks",
        {":START_ID": "chunk_id", ":END_ID": "document_id", ":TYPE": "'PART_OF'"},
    ),
    "mentions": (
        "(SELECT DISTINCT entity, unnest(chunks) AS chunk FROM (SELECT unnest([head, tail]) AS "
        "entity, chunks FROM fact) WHERE entity IS NOT NULL ORDER BY ALL)",
        {":START_ID": "entity", ":END_ID": "chunk", ":TYPE": "'MENTIONED_IN'"},
    ),
}
"""Files, their tables, and their columns: the header of `neo4j-admin database import` and SQL."""
_NEO4J_COMMAND = """\
neo4j-admin database import full neo4j --multiline-fields=true --array-delimiter=U+001F \\
    --nodes=documents.csv --nodes=chunks.csv --nodes=entities.csv --nodes=values.csv \\
    --relationships=facts.csv --relationships=parts.csv --relationships=mentions.csv
"""


def _write_neo4j(snapshot: Snapshot, path: Path) -> tuple[str, ...]:
    queries = {}
    for name, (source, columns) in _NEO4J.items():
        cells = []
        for head, value in columns.items():
            text = f"array_to_string({value}, chr(31))" if head.endswith("[]") else value
            quoted = f"'\"' || replace({text}, '\"', '\"\"') || '\"'"
            plain = head.endswith((":double", ":long", ":boolean"))
            cells.append(f"coalesce({f'{value}::VARCHAR' if plain else quoted}, '')")
        line = " || ',' || ".join(cells)
        queries[f"{name}.csv"] = f"SELECT {line} || chr(10) FROM {source}"
    heads = {f"{name}.csv": f"{','.join(columns)}\n" for name, (_, columns) in _NEO4J.items()}
    _write_files(snapshot, path, (*_ENDS, *_PLAIN, "chunks", *_LISTS), queries, heads)
    (path / "import.sh").write_text(_NEO4J_COMMAND, "utf-8")
    return ()


def _write_files(
    snapshot: Snapshot,
    path: Path,
    facts: Sequence[str],
    queries: Mapping[str, str],
    heads: Mapping[str, str],
) -> None:
    """Writes a folder of files, each of the lines of a query; `heads`: what stands before them."""
    path.mkdir()
    with _open(snapshot, facts) as database:
        for name, query in queries.items():
            with (path / name).open("wb") as sink:
                sink.write(heads.get(name, "").encode())
                write_lines(database, query, sink)


# JSON lines, and one DuckDB file.

_JSON = {
    "documents": "SELECT document.*, text, metadata FROM document JOIN documents "
    "ON documents.document_id = id ORDER BY id",
    "chunks": 'SELECT chunk_id AS id, document_id AS document, start, "end", text FROM chunks '
    "ORDER BY id",
    "entities": "FROM entity",
    "facts": """
        SELECT fact.* EXCLUDE (places), evidence FROM fact JOIN (
            SELECT fact_id, list({'document': document_id, 'start': first, 'end': last,
                'text': text, 'source': source, 'licence': licence, 'attribution': attribution}
                ORDER BY document_id, first, last) AS evidence
            FROM (SELECT id AS fact_id, unnest(places) AS spot FROM fact)
            JOIN place ON document_id = spot.document AND first = spot.first AND last = spot.last
            JOIN document ON document.id = document_id
            GROUP BY fact_id
        ) ON fact_id = id ORDER BY id""",
}


_JSON_FACTS = (
    *("id", "head", "head_name", "relation", "tail", "tail_name", "literal"),
    *("wording", "negated", "more_detailed_id", "qualifiers", "confidence", "modality", "places"),
)


def _write_jsonl(snapshot: Snapshot, path: Path) -> tuple[str, ...]:
    queries = {
        f"{name}.jsonl": f"SELECT to_json(row_of)::VARCHAR || chr(10) FROM ({query}) AS row_of"
        for name, query in _JSON.items()
    }
    _write_files(snapshot, path, _JSON_FACTS, queries, {})
    return ()


def _write_duckdb(snapshot: Snapshot, path: Path) -> tuple[str, ...]:
    left_out = []
    with open_database(path) as database:
        for name in load_contracts():
            try:
                source = name_source(database, name, snapshot.locate_table(name))
            except InputError:  # it cannot be divided by documents
                left_out.append(name)
                continue
            # Vectors hardly get smaller, and packing them is most of the time.
            packing = "uncompressed" if name == "vectors" else "auto"
            database.execute(f"SET force_compression = '{packing}'")
            database.execute(f"CREATE TABLE {name} AS FROM {source}")
        database.execute("\n".join(["BEGIN;", *list_views(left_out, kind="TABLE"), "COMMIT;"]))
    return tuple(left_out)


# Vectors.


def _write_lance(snapshot: Snapshot, path: Path) -> tuple[str, ...]:
    import lancedb  # in an extra of its own

    held = lancedb.connect(path)
    for name in SEARCHED:
        if snapshot._view.part(name).rows:
            held.create_table(name, data=_read_vectors(snapshot, name))
    with _open(snapshot, ()) as database:
        held.create_table("documents", data=database.sql("FROM document").to_arrow_table())
    return ()


def _read_vectors(snapshot: Snapshot, name: str) -> pa.RecordBatchReader:
    """The rows of a searched table that are seen: id, words, vector, and a chunk's document.

    Of a fact its standard relation, and a fact that says all of it and more.
    """
    view = snapshot._view
    part, mask = view.part(name), view.searched(name)
    rows = np.arange(len(part)) if mask is None else np.flatnonzero(mask)
    width, keys = part.matrix.shape[1], view.rows("documents").column("document_id")

    def read(some: Integers) -> pa.RecordBatch:
        at, numbers = pa.array(some), some.tolist()
        columns = {
            "id": part.rows.column(_KEYS[name]).take(at),
            "text": pa.array([view.text_of(name, row) for row in numbers], pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(part.matrix[some].reshape(-1), width),
        }
        if name == "chunks":
            owners = part.rows.numbers("document")[some]
            columns["document_id"] = keys.take(pa.array(owners))
        elif name == "condensed":
            relations = [view.state_standard(row)[2] for row in numbers]
            more = [view.find_detailed(row) or None for row in numbers]
            columns["relation"] = pa.array(relations, pa.string())
            columns["negated"] = part.rows.column("negated").take(at)
            columns["more_detailed_id"] = pa.array(more, pa.string())
        return pa.record_batch(columns)

    blocks = (read(rows[start : start + _BATCH]) for start in range(0, len(rows), _BATCH))
    return pa.RecordBatchReader.from_batches(read(rows[:0]).schema, blocks)


FORMS: Mapping[str, Callable[[Snapshot, Path], tuple[str, ...]]] = {
    "folder": partial(_write_whole, copy_folder),
    "tar": partial(_write_whole, write_tarball),
    "turtle": _write_turtle,
    "nquads": partial(_write_rdf, write_quads),
    "graphml": _write_graphml,
    "neo4j": _write_neo4j,
    "jsonl": _write_jsonl,
    "duckdb": _write_duckdb,
    "lance": _write_lance,
}
"""What a snapshot is exported to, by name."""


# A snapshot's folder described for whoever receives it: its README and its views.

_LONGEST = 200
"""Characters of a licence or a file's name in the README."""
_README = Path(__file__).parent / "readme.jinja"


def describe_folder(manifest: Mapping[str, Any], documents: Path) -> dict[str, bytes]:
    """The files of a snapshot that say what is in it, by name.

    `documents` is the file of that table. Nothing in them depends on the run; the release that
    made the snapshot does.
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
        "views.sql": (first + "\n".join(views) + "\n").encode(),
    }


def list_views(without: Collection[str] = (), *, kind: str = "VIEW") -> Iterator[str]:
    """SQL that says what tables and columns mean, then the views over them.

    `without` are tables that are not there; `kind` is what the others are in the database.
    """
    for name, contract in load_contracts().items():
        if name in without:
            continue
        yield f"COMMENT ON {kind} {name} IS {_quote(contract.about)};"
        for column in contract.columns:
            unit = f" Unit: {column.unit}." if column.unit else ""
            yield f'COMMENT ON COLUMN {name}."{column.name}" IS {_quote(column.about + unit)};'
    for path in locate_declarations("views").values():
        text = path.read_text("utf-8").strip()
        if not any(re.search(rf"\b(FROM|JOIN) {name}\b", text) for name in without):
            yield text


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _write_readme(manifest: Mapping[str, Any], documents: Path) -> str:
    table = pq.read_table(documents, columns=["source", "licence", "access", "metadata"])
    files = Counter(_plain(source.partition("#")[0]) for source in table["source"].to_pylist())
    licences = Counter(_plain(licence or "none stated") for licence in table["licence"].to_pylist())
    told = [any(k in ATTRIBUTION for k, _ in pairs) for pairs in table["metadata"].to_pylist()]
    template = Environment(undefined=StrictUndefined, autoescape=False).from_string(  # noqa: S701
        _README.read_text("utf-8")
    )
    return template.render(
        {k: manifest[k] for k in ("corpus", "software", "format", "resources")},
        rows={name: entry["rows"] for name, entry in manifest["tables"].items()},
        files=sorted(files.items()),
        licences=sorted(licences.items(), key=lambda pair: (-pair[1], pair[0])),
        attribution=", ".join(f"`{name}`" for name in ATTRIBUTION),
        attributed=sum(told),
        labelled=sum(map(bool, table["access"].to_pylist())),
        tables=[(name, contract.about) for name, contract in load_contracts().items()],
        count=lambda number, noun: f"{number:,} {noun}{'' if number == 1 else 's'}",
    )


def _plain(text: str) -> str:
    """What a document says of itself, as one line that Markdown reads as words."""
    return " ".join(re.sub(r"[`|<>\[\]]", " ", text).split())[:_LONGEST]
