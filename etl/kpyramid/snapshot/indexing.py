"""Building the index of a snapshot from its tables and its ontology, its vectors in parts."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import IntegrityError, PyramidError
from kpyramid.keys import JsonValue, canonical_json, hash_file, hash_value
from kpyramid.numerics.arrays import Integers
from kpyramid.settings import IndexSettings
from kpyramid.snapshot import graph
from kpyramid.snapshot.clusters import write_clusters
from kpyramid.snapshot.columns import Tables, join_tables
from kpyramid.snapshot.mapped import write_rows
from kpyramid.snapshot.search import weigh_words
from kpyramid.snapshot.store import GRAPH, META, SEARCHED, VECTORS, name_part
from kpyramid.storage.columns import TextColumn
from kpyramid.storage.contracts import (
    combine_column,
    find_rows,
    load_contracts,
    open_table,
    write_table,
)
from kpyramid.storage.identity import library_version
from kpyramid.storage.layout import Warehouse, stage_folder
from kpyramid.storage.leases import hold
from kpyramid.storage.memory import allocate_matrix
from kpyramid.storage.results import TableFile, read_result
from kpyramid.storage.snapshots import list_folders, read_manifest

log = logging.getLogger(__name__)

VERSION = 15
"""Version of the index, to be raised when the same tables give different files."""
READS = (*graph.READS, "mentions", "statements")
"""Tables that are read whole; of `vectors` only rows of searched tables."""
_LIBRARIES = ("duckdb", "faiss-cpu", "numpy", "pyarrow", "PyStemmer", "simplemma")


def key_index(sums: Mapping[str, str], settings: IndexSettings) -> str:
    """The key of an index, of everything that shapes it; `sums`: sha256 of its tables."""
    libraries: dict[str, JsonValue] = {name: library_version(name) for name in _LIBRARIES}
    shaping: dict[str, JsonValue] = asdict(settings)
    tables: dict[str, JsonValue] = {name: sums[name] for name in (*READS, "vectors")}
    return hash_value([VERSION, tables, shaping, libraries])


def build_index(
    folder: Path,
    columns: Mapping[str, Mapping[str, pa.Array]],
    hashed: Mapping[str, Integers],
    vectors: "Vectors",
    settings: IndexSettings,
) -> dict[str, Path]:
    """Writes the files of an index below a folder; gives them by their names in the snapshot.

    `columns`, `hashed`: see `join_tables`. `vectors`: see `open_vectors`.

    Raises:
        IntegrityError: tables and vectors do not fit together.
    """
    parts = {table: columns[table] for table in SEARCHED}
    for name in columns.keys() - parts.keys():
        write_rows(folder / f"index/{name}.arrow", columns[name])
    keys = {table: next(iter(values.values())) for table, values in parts.items()}
    embedded = read_vectors(vectors, keys, folder)
    count = count_parts(sum(len(matrix) for _, matrix in embedded.values()))
    groups = {table: hashes % count for table, hashes in hashed.items()}
    orders = {table: np.argsort(groups[table], kind="stable") for table in parts}
    sizes = np.stack([np.bincount(groups[table], minlength=count) for table in parts])
    meta: dict[str, JsonValue] = {}
    for table, values in parts.items():
        placed = {**values, "place": np.argsort(orders[table]).astype(np.int32)}
        meta[table] = _write_part(folder, table, placed, *embedded[table], settings)
    matrices = {table: matrix for table, (_, matrix) in embedded.items()}
    write_matrices(folder, matrices, orders, sizes)
    placed_sizes: dict[str, JsonValue] = dict(zip(parts, sizes.tolist(), strict=True))
    (folder / META).write_bytes(canonical_json({"parts": placed_sizes, "tables": meta}))
    made = sorted(path for path in (folder / "index").rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in made}


def _write_part(
    folder: Path,
    table: str,
    columns: Mapping[str, Any],
    texts: pa.Array,
    matrix: Matrix,
    settings: IndexSettings,
) -> dict[str, JsonValue]:
    """Writes the files for searching a table; returns its entry in the metadata."""
    write_rows(folder / f"index/{table}.arrow", {**columns, "text": texts})
    stems, starts, *numbers = weigh_words(TextColumn(texts))
    ends = pa.array(starts, pa.int32())
    rows, parts = (pa.ListArray.from_arrays(ends, pa.array(values)) for values in numbers)
    words = {"stem": pa.array(stems, pa.string()), "rows": rows, "parts": parts}
    write_rows(folder / f"index/{table}.words.arrow", words)
    count, width = matrix.shape
    if count <= settings.exact_up_to:
        return {"rows": count, "dimensions": width, "search": "exact", "recall_at_10": 1.0}
    log.info("index of %s: finding lists for %d vectors", table, count)
    plan = write_clusters(
        folder / f"index/{table}.faiss", matrix, settings.min_recall, settings.seed
    )
    log.info("index of %s: %s", table, plan)
    return {"rows": count, "dimensions": width, "search": "approximate", **asdict(plan)}


# The index of a run's tables: reused from a published snapshot with the same tables, or built.


@contextmanager
def prepare_index(
    warehouse: Warehouse,
    tables: Mapping[str, TableFile],
    vectors: Sequence[TableFile],
    settings: IndexSettings,
    gone: pa.Array,
) -> Iterator[tuple[str, Mapping[str, Path]]]:
    """The key of an index of some tables; its files, vectors in parts and graph by their names.

    The files exist until the `with` block ends.

    `vectors`: the parts of that table. `gone`: ids of rows that are in no table, but in `vectors`.

    Snapshots are the cache: the index of a snapshot with the same tables is linked under other
    names, so that nothing is stored twice; otherwise it is built.

    Raises:
        IntegrityError: a table is damaged, or tables and vectors do not fit together.
    """
    sums = {name: file.sha256 for name, file in tables.items()}
    key = key_index({**sums, VECTORS: hash_value([part.sha256 for part in vectors])}, settings)
    made = _find_made(warehouse, key)
    if made is not None:
        name, held = made
        with hold(Warehouse(warehouse.root), name):  # this machine's copy, of a bucket
            yield key, held
        return
    contracts = load_contracts()
    with stage_folder(warehouse) as folder:
        read = {name: read_result(tables[name], contracts[name], folder) for name in READS}
        columns, hashed = join_tables(read)
        opened = open_vectors([part.path for part in vectors], folder, gone)
        files = build_index(folder, columns, hashed, opened, settings)
        del columns
        files |= split_vectors(read, hashed, opened, folder)
        del read, opened
        graph.write_graph({name: file.path for name, file in tables.items()}, folder / GRAPH)
        yield key, {**files, GRAPH: folder / GRAPH}


_SHAPED = ("index/", f"tables/{VECTORS}/", GRAPH)
"""Prefixes of the names of files made beside the tables."""


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


# Vectors of searched tables, in parts by documents, so that a nightly build changes few parts and
# shares the others with the build before.

MOST_PARTS = 64
"""Of 200 documents two changed ones touch three parts of 64, with one vector in twenty."""
_LEAST_ROWS = 32
"""Least average number of rows per part."""


def count_parts(rows: int) -> int:
    """The number of parts for a number of rows: a power of two, so that growth moves few rows."""
    return int(min(MOST_PARTS, 2 ** (max(rows // _LEAST_ROWS, 1).bit_length() - 1)))


def split_vectors(
    tables: Tables, hashed: Mapping[str, Integers], vectors: "Vectors", folder: Path
) -> dict[str, Path]:
    """Writes the table of vectors in parts below a folder; returns their paths by name.

    `hashed`: see `join_tables`. `vectors`: see `open_vectors`.

    Raises:
        IntegrityError: a vector belongs to no row of the tables.
    """
    schema, whole, matrix = vectors
    count, owners = count_parts(len(whole)), whole["owner_table"]
    part_of = np.full(len(whole), -1)
    for table, hashes in hashed.items():
        mine = np.flatnonzero(pc.equal(owners, table).to_numpy())
        rows = find_rows(whole["owner_id"].take(pa.array(mine)), tables[table].column(0))
        part_of[mine] = np.where(rows < 0, -1, hashes[rows] % count) if len(hashes) else -1
    if (part_of < 0).any():
        lost = whole["owner_id"][int(np.argmin(part_of))]
        raise IntegrityError(f"table vectors: there is no row {lost} of which this is a vector")
    files = {}
    for part in range(count):
        rows = np.flatnonzero(part_of == part)
        held = whole.take(pa.array(rows)).append_column("vector", list_vectors(matrix[rows]))
        path = folder / "tables" / VECTORS / f"{part:02}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(held.select(schema.names).cast(schema), path)
        files[path.relative_to(folder).as_posix()] = path
    return files


def write_matrices(
    folder: Path, matrices: Mapping[str, Matrix], orders: Mapping[str, Integers], sizes: Integers
) -> None:
    """Writes the vectors of searched tables in parts; `sizes`: rows, shape (tables, parts)."""
    ends = np.cumsum(sizes, axis=1)
    for part in range(sizes.shape[1]):
        held = [
            matrix[orders[table][end - size : end]]
            for (table, matrix), end, size in zip(
                matrices.items(), ends[:, part], sizes[:, part], strict=True
            )
        ]
        write_rows(folder / name_part(part), {"vector": list_vectors(np.concatenate(held))})


# The vectors and texts of searched tables, in the order of their rows.


Vectors = tuple[pa.Schema, pa.Table, Matrix]
"""The columns of the table of vectors, its rows without the vectors, and these."""


def open_vectors(paths: Sequence[Path], scratch: Path, gone: pa.Array | None = None) -> Vectors:
    """The table of vectors in some files, without rows that are `gone`, sorted by its key.

    The vectors are in a file of `scratch` if they are many.

    Raises:
        IntegrityError: a row stands in two files.
        OSError: the disk is full.
    """
    contract, files = load_contracts()[VECTORS], [open_table(path) for path in paths]
    files = [file for file in files if file.metadata.num_rows] or files[:1]
    schema = files[0].schema_arrow
    size = schema.field("vector").type.list_size
    others = [name for name in schema.names if name != "vector"]
    whole = pa.concat_tables([file.read(columns=others, use_threads=False) for file in files])
    order = pc.sort_indices(whole, sort_keys=[(name, "ascending") for name in contract.key])
    if gone is not None:
        order = order.filter(pc.invert(pc.is_in(whole["owner_id"].take(order), gone)))
    place = np.full(len(whole), -1)
    place[order.to_numpy()] = np.arange(len(order))
    whole = whole.take(order)
    contract.check_key(whole)
    matrix = allocate_matrix(len(whole), size, scratch)
    del files
    start, settings = 0, {"columns": ["vector"], "use_threads": False}
    opened = map(open_table, paths)  # one is mapped at a time
    for batch in chain.from_iterable(file.iter_batches(_BATCH, **settings) for file in opened):
        rows = place[start : start + len(batch)]
        block = batch["vector"].flatten().to_numpy().reshape(-1, size)
        matrix[rows[rows >= 0]] = block[rows >= 0]
        start += len(batch)
    return schema, whole, matrix


_BATCH = 512
"""Vectors read at a time: under a megabyte, so that memory is used again and not asked for anew."""


def read_vectors(
    vectors: Vectors, keys: Mapping[str, pa.Array], scratch: Path
) -> dict[str, tuple[pa.Array, Matrix]]:
    """Texts and vectors of the tables whose `keys` are given; other tables are skipped.

    Raises:
        IntegrityError: rows and vectors are not one to one.
        OSError: the disk is full.
    """
    _, whole, matrix = vectors
    pairs = {}
    for table, wanted in keys.items():
        rows = np.flatnonzero(pc.equal(whole["owner_table"], table).to_numpy())
        owners, texts = (
            combine_column(whole[name].take(pa.array(rows))) for name in ("owner_id", "text")
        )
        texts = texts.cast(pa.large_string())
        if table == "entities":  # one without facts has no text and a zero vector
            places = pc.index_in(wanted, value_set=owners)
            known = np.flatnonzero(pc.is_valid(places).to_numpy(zero_copy_only=False))
            of_known = rows[pc.drop_null(places).to_numpy()]
            spread = allocate_matrix(len(wanted), matrix.shape[1], scratch)
            spread[:] = 0
            for start in range(0, len(known), _BATCH):
                block = slice(start, start + _BATCH)
                spread[known[block]] = matrix[of_known[block]]
            pairs[table] = (pc.fill_null(texts.take(places), ""), spread)
            continue
        if not owners.equals(wanted) or (np.diff(rows) != 1).any():
            raise IntegrityError(
                f"table {table} has {len(wanted)} rows and {len(owners)} vectors, or "
                "others, or in another order; build again"
            )
        start = int(rows[0]) if len(rows) else 0
        pairs[table] = (texts, matrix[start : start + len(rows)])
    return pairs


def list_vectors(matrix: Matrix) -> pa.FixedSizeListArray:
    flat = pa.array(np.ascontiguousarray(matrix).ravel(), pa.float32())
    kind = pa.list_(pa.field("element", pa.float32()), matrix.shape[1])
    return pa.FixedSizeListArray.from_arrays(flat, type=kind)
