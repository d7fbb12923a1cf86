"""Building the index of a snapshot from its tables and its ontology."""

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import PyramidError
from kpyramid.keys import JsonValue, canonical_json, hash_bytes, hash_file, hash_value
from kpyramid.ontology import names as n
from kpyramid.settings import IndexSettings
from kpyramid.snapshot.clusters import write_clusters
from kpyramid.snapshot.columns import list_columns
from kpyramid.snapshot.links import list_numbers
from kpyramid.snapshot.mapped import write_rows
from kpyramid.snapshot.parts import (
    count_parts,
    group_rows,
    read_vectors,
    split_vectors,
    write_matrices,
)
from kpyramid.snapshot.search import weigh_words
from kpyramid.snapshot.store import GRAPH, META, SEARCHED, STATEMENTS, VECTORS
from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.identity import library_version
from kpyramid.storage.layout import Warehouse, stage_folder
from kpyramid.storage.leases import hold
from kpyramid.storage.results import TableFile, read_result
from kpyramid.storage.snapshots import list_folders, read_manifest

log = logging.getLogger(__name__)

VERSION = 14
"""Raised when the same tables give other files."""
READS = (
    *("documents", "chunks", "claims", "mentions", "raw_triples"),
    *("entities", "relations", "triples", "instances", "condensed"),
    "statements",
)
"""Tables that are read whole; of `vectors` the rows of what is searched."""
_SAYS_WHERE = frozenset(
    f"<{iri}>" for iri in (n.DERIVED_FROM, n.QUOTED_FROM, n.PROV_VALUE, n.SOURCE, n.DCT + "title")
)
_LIBRARIES = ("duckdb", "faiss-cpu", "numpy", "pyarrow", "PyStemmer", "simplemma")


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
    columns = list_columns(tables)
    parts = {table: columns.pop(table) for table in SEARCHED}
    for name, values in columns.items():
        write_rows(folder / f"index/{name}.arrow", values)
    with (folder / STATEMENTS).open("w", encoding="utf-8") as file:
        file.writelines(strip_provenance(instances_nt))
    keys = {table: next(iter(values.values())) for table, values in parts.items()}
    embedded = read_vectors(vectors, keys, folder)
    count = count_parts(sum(len(matrix) for _, matrix in embedded.values()))
    groups = {table: found % count for table, found in group_rows(tables).items()}
    orders = {table: np.argsort(groups[table], kind="stable") for table in parts}
    sizes = np.stack([np.bincount(groups[table], minlength=count) for table in parts])
    meta: dict[str, JsonValue] = {}
    for table, values in parts.items():
        placed = {**values, "place": np.argsort(orders[table]).astype(np.int32)}
        meta[table] = _write_part(folder, table, placed, *embedded[table], settings)
    matrices = {table: matrix for table, (_, matrix) in embedded.items()}
    write_matrices(folder, matrices, orders, sizes)
    found: dict[str, JsonValue] = dict(zip(parts, sizes.tolist(), strict=True))
    (folder / META).write_bytes(canonical_json({"parts": found, "tables": meta}))
    made = sorted(path for path in (folder / "index").rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in made}


def strip_provenance(instances_nt: str) -> Iterator[str]:
    """The lines that say what is, without those that say where it was read: two in three.

    Questions are answered from these, so that a store of them is there in a third of the time.
    """
    lines = (found[0] for found in re.finditer(r".*\n", instances_nt))
    return (line for line in lines if line.split(" ", 2)[1] not in _SAYS_WHERE)


def _write_part(
    folder: Path,
    table: str,
    columns: Mapping[str, Any],
    texts: pa.Array,
    matrix: Matrix,
    settings: IndexSettings,
) -> dict[str, JsonValue]:
    """Writes what a searched table is searched by; gives what the reader must know of it."""
    write_rows(folder / f"index/{table}.arrow", {**columns, "text": texts})
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
    count, width = matrix.shape
    if count <= settings.exact_up_to:
        return {"rows": count, "dimensions": width, "search": "exact", "recall_at_10": 1.0}
    log.info("index of %s: finding lists for %d vectors", table, count)
    plan = write_clusters(
        folder / f"index/{table}.faiss", matrix, settings.min_recall, settings.seed
    )
    log.info("index of %s: %s", table, plan)
    return {"rows": count, "dimensions": width, "search": "approximate", **asdict(plan)}


# The index of a run's tables: a published snapshot's, when it is of the same, else made anew.


@dataclass(frozen=True, slots=True)
class PreparedIndex:
    """The files of an index, the vectors in parts and the graph in RDF, by their names.

    `key`: of all that shapes them.
    """

    key: str
    files: Mapping[str, Path]
    is_new: bool


@contextmanager
def prepare_index(
    warehouse: Warehouse,
    tables: Mapping[str, TableFile],
    instances_nt: str,
    settings: IndexSettings,
) -> Iterator[PreparedIndex]:
    """The index of some tables, and their graph; the files are there as long as the `with` lasts.

    Snapshots are their own cache: the index of one whose tables were the same gets other names, so
    that nothing is stored twice; it is made when there is none.

    Raises:
        IntegrityError: a table is damaged, or tables and vectors do not fit together.
    """
    key = key_index({name: file.sha256 for name, file in tables.items()}, instances_nt, settings)
    made = _find_made(warehouse, key)
    if made is not None:
        name, held = made
        with hold(Warehouse(warehouse.root), name):  # this machine's copy, of a bucket
            yield PreparedIndex(key, held, is_new=False)
        return
    from kpyramid.snapshot.graph import write_graph  # DuckDB: who only reads has none

    contracts = load_contracts()
    with stage_folder(warehouse) as folder:
        read = {name: read_result(tables[name], contracts[name], folder) for name in READS}
        files = build_index(folder, read, tables["vectors"].path, instances_nt, settings)
        files |= split_vectors(read, tables["vectors"].path, folder)
        del read
        write_graph({name: file.path for name, file in tables.items()}, folder / GRAPH)
        yield PreparedIndex(key, {**files, GRAPH: folder / GRAPH}, is_new=True)


_SHAPED = ("index/", f"tables/{VECTORS}/", GRAPH)
"""How the names begin of what is made beside the tables."""


def _find_made(warehouse: Warehouse, key: str) -> tuple[str, dict[str, Path]] | None:
    """A snapshot whose index has this key and is whole, and the files of that index."""
    for folder in list_folders(warehouse):
        try:
            manifest = read_manifest(folder)
        except PyramidError:  # damaged: `verify` says so
            continue
        index, files = manifest.get("index"), manifest.get("files")
        if not isinstance(index, dict) or index.get("key") != key or not isinstance(files, dict):
            continue
        listed: dict[str, Any] = {n: e for n, e in files.items() if n.startswith(_SHAPED)}
        damaged = [name for name in listed if not _is_whole(folder / name, listed[name])]
        if not damaged:
            return folder.name, {name: folder / name for name in listed}
        log.warning("%s is damaged: %s; the index is made anew", folder, ", ".join(damaged))
    return None


def _is_whole(path: Path, entry: Mapping[str, JsonValue]) -> bool:
    try:
        return hash_file(path) == entry["sha256"]
    except OSError:
        return False
