"""Building the index of a snapshot from its tables and its ontology."""

import json
import logging
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from kpyramid.contracts import load_contracts
from kpyramid.identity import library_version
from kpyramid.indexing.chains import combine, list_numbers
from kpyramid.indexing.clusters import write_clusters
from kpyramid.indexing.entities import (
    list_entities,
    list_forms,
    list_name_words,
    list_names,
    normalise_names,
)
from kpyramid.indexing.facts import (
    list_chunks,
    list_documents,
    list_facts,
    list_instances,
    list_mentions,
)
from kpyramid.indexing.mapped import FORMAT, META, STATEMENTS
from kpyramid.indexing.vectors import read_vectors
from kpyramid.indexing.words import weigh_words
from kpyramid.indexing.writing import write_rows
from kpyramid.keys import JsonValue, canonical_json, hash_bytes, hash_value
from kpyramid.ontology import names as n
from kpyramid.settings import IndexSettings
from kpyramid.warehouse.snapshots import MANIFEST, read_manifest
from kpyramid.warehouse.tables import read_table

log = logging.getLogger(__name__)

VERSION = 4
"""Raised when the same tables give other files."""
READS = (
    *("documents", "chunks", "claims", "mentions", "raw_triples"),
    *("entities", "relations", "triples", "instances", "condensed"),
)
"""Tables that are read whole; of `vectors` the rows of what is searched."""
_SAYS_WHERE = frozenset(
    f"<{iri}>" for iri in (n.DERIVED_FROM, n.QUOTED_FROM, n.PROV_VALUE, n.SOURCE, n.DCT + "title")
)
_LIBRARIES = ("faiss-cpu", "numpy", "pyarrow", "PyStemmer", "simplemma")


def key_index(sums: Mapping[str, str], instances_nt: str, settings: IndexSettings) -> str:
    """The key of an index: everything that shapes it. `sums` are the sha256 of its tables."""
    libraries: dict[str, JsonValue] = {name: library_version(name) for name in _LIBRARIES}
    shaping: dict[str, JsonValue] = asdict(settings)
    tables: dict[str, JsonValue] = {name: sums[name] for name in (*READS, "vectors")}
    ontology = hash_bytes(instances_nt.encode())
    return hash_value([VERSION, tables, ontology, shaping, libraries])


def build_index(
    folder: Path,
    tables: Mapping[str, pa.Table],
    vectors: Path,
    instances_nt: str,
    settings: IndexSettings,
) -> dict[str, Path]:
    """Writes the files of an index below a folder; gives them by their names in the snapshot.

    `vectors` is the file of that table, `instances_nt` the snapshot's `ontology/instances.nt`.

    Raises:
        IntegrityError: tables and vectors do not fit together.
    """
    names = normalise_names(tables)
    relations = tables["relations"]
    files: dict[str, Mapping[str, Any]] = {
        "documents": list_documents(tables),
        "mentions": list_mentions(tables),
        "entities": list_entities(tables, names),
        "names": list_names(names),
        "name_words": list_name_words(names),
        "relations": {n: combine(relations[n]) for n in ("relation_id", "name")},
        "instances": list_instances(tables),
        **list_forms(tables),
    }
    for name, columns in files.items():
        write_rows(folder / f"index/{name}.arrow", columns)
    (folder / STATEMENTS).write_text(strip_provenance(instances_nt), "utf-8")
    parts = {"chunks": list_chunks(tables), "condensed": list_facts(tables)}
    embedded = read_vectors(vectors, {t: next(iter(c.values())) for t, c in parts.items()})
    meta: dict[str, JsonValue] = {}
    for table, columns in parts.items():
        meta[table] = _write_part(folder, table, columns, *embedded.pop(table), settings)
    (folder / META).write_bytes(canonical_json({"tables": meta}))
    return {
        path.relative_to(folder).as_posix(): path for path in sorted((folder / "index").iterdir())
    }


def strip_provenance(instances_nt: str) -> str:
    """The lines that say what is, without those that say where it was read: two in three.

    Questions are answered from these, so that a store of them is there in a third of the time.
    """
    return "".join(
        line
        for line in instances_nt.splitlines(keepends=True)
        if line.split(" ", 2)[1] not in _SAYS_WHERE
    )


def _write_part(
    folder: Path,
    table: str,
    columns: Mapping[str, Any],
    texts: pa.Array,
    matrix: pa.Array,
    settings: IndexSettings,
) -> dict[str, JsonValue]:
    """Writes what a searched table is searched by; gives what the reader must know of it."""
    write_rows(folder / f"index/{table}.arrow", {**columns, "text": texts, "vector": matrix})
    stems, starts, rows, parts = weigh_words(text.as_py() for text in texts)
    sizes = starts[1:] - starts[:-1]
    write_rows(
        folder / f"index/{table}.words.arrow",
        {
            "stem": pa.array(stems, pa.string()),
            "rows": list_numbers(rows, sizes, pa.int32()),
            "parts": list_numbers(parts, sizes, pa.float32()),
        },
    )
    count, width = len(matrix), matrix.type.list_size
    if count <= settings.exact_up_to:
        return {"rows": count, "dimensions": width, "search": "exact", "recall_at_10": 1.0}
    log.info("index of %s: finding lists for %d vectors", table, count)
    held = matrix.values.to_numpy().reshape(-1, width)
    plan = write_clusters(folder / f"index/{table}.faiss", held, settings.min_recall, settings.seed)
    log.info("index of %s: %s", table, plan)
    return {"rows": count, "dimensions": width, "search": "approximate", **asdict(plan)}


def add_index(folder: Path, settings: IndexSettings | None = None) -> None:
    """Gives a folder with tables and a manifest of a snapshot the index of its tables.

    For copies that are measured and not published: the manifest is written anew.

    Raises:
        InputError: the folder has no manifest.
        IntegrityError: a table is damaged.
    """
    manifest = read_manifest(folder)
    contracts = load_contracts()
    tables = {n: read_table(folder / f"tables/{n}.parquet", contracts[n]) for n in READS}
    shutil.rmtree(folder / "index", ignore_errors=True)
    made = build_index(
        folder,
        tables,
        folder / "tables" / "vectors.parquet",
        (folder / "ontology" / "instances.nt").read_text("utf-8"),
        settings or IndexSettings(),
    )
    files = manifest.get("files")
    listed: dict[str, JsonValue] = {**files} if isinstance(files, dict) else {}
    for name, path in made.items():
        data = path.read_bytes()
        listed[name] = {"sha256": hash_bytes(data), "bytes": len(data)}
    changed = {**manifest, "format": FORMAT, "files": listed}
    path = folder / MANIFEST
    path.unlink()  # it may be a link to another snapshot's
    path.write_bytes(json.dumps(changed, sort_keys=True).encode())
