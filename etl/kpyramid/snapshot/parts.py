"""Vectors of searched tables, in parts by documents.

So a night changes few of them, and shares the other files with the night before.
"""

from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kpyramid.embeddings.port import Matrix
from kpyramid.errors import IntegrityError
from kpyramid.numerics.arrays import Integers
from kpyramid.snapshot.columns import Tables, find_documents, link_column
from kpyramid.snapshot.links import Links, find_places
from kpyramid.snapshot.mapped import write_rows
from kpyramid.snapshot.store import VECTORS, name_part
from kpyramid.storage.contracts import combine_column, encode_table, open_table
from kpyramid.storage.memory import allocate_matrix

MOST_PARTS = 64
"""Of 200 documents two changed ones touch three parts of 64, with one vector in twenty."""
_LEAST_ROWS = 32
"""Rows that a part has on average at least."""


def group_rows(tables: Tables) -> dict[str, Integers]:
    """For each row of a table that is embedded the least hash of the documents it rests on."""
    of_document = np.array(
        [crc32(key.encode()) for key in tables["documents"]["document_id"].to_pylist()], np.int64
    )
    size = {table: whole.num_rows for table, whole in tables.items()}
    of_triple = _find_least(
        link_column(tables, "triples", "raw_triple_ids"),
        of_document[find_documents(tables, "raw_triples")],
        size["triples"],
    )
    derived = link_column(tables, "condensed", "derived_from")
    of_fact = _find_least(derived, of_triple, size["condensed"])
    heads, tails = (link_column(tables, "condensed", end).turn() for end in ("head_id", "tail_id"))
    return {
        "chunks": of_document[find_documents(tables, "chunks")],
        "condensed": of_fact,
        "entities": _find_least(heads.unite(tails), of_fact, size["entities"]),
        "triples": of_triple,
        "instances": of_document[find_documents(tables, "instances")],
    }


def _find_least(links: Links, values: Integers, rows: int) -> Integers:
    """For each row the least value of those it leads to; 0 where there is none."""
    found = np.full(rows, 2**32)
    np.minimum.at(found, links.owners, values[links.targets])
    return found % 2**32


def count_parts(rows: int) -> int:
    """Into how many parts so many rows go: a power of two, so that growth moves few of them."""
    return int(min(MOST_PARTS, 2 ** (max(rows // _LEAST_ROWS, 1).bit_length() - 1)))


def split_vectors(tables: Tables, vectors: Path, folder: Path) -> dict[str, Path]:
    """Writes the table of vectors in parts below a folder; gives them by their names there.

    Raises:
        IntegrityError: a row belongs to none of the tables.
    """
    whole, matrix = open_vectors(vectors, folder)
    count, owners = count_parts(len(whole)), whole["owner_table"]
    at = np.empty(len(whole), np.int64)
    for table, groups in group_rows(tables).items():
        mine = np.asarray(pc.equal(owners, table).to_numpy(), np.bool_)
        keys = whole["owner_id"].filter(pa.array(mine))
        at[mine] = groups[find_places(keys, tables[table].column(0))] % count
    schema = pq.read_schema(vectors)
    files = {}
    for part in range(count):
        rows = np.flatnonzero(at == part)
        held = whole.take(pa.array(rows)).append_column("vector", list_vectors(matrix[rows]))
        path = folder / "tables" / VECTORS / f"{part:02}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_table(held.select(schema.names).cast(schema)))
        files[path.relative_to(folder).as_posix()] = path
    return files


def write_matrices(
    folder: Path, matrices: Mapping[str, Matrix], orders: Mapping[str, Integers], sizes: Integers
) -> None:
    """Writes the vectors of searched tables in parts; `sizes` are rows by table and part."""
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


def open_vectors(path: Path, scratch: Path) -> tuple[pa.Table, Matrix]:
    """The table of vectors without its vectors, and these, in a file of a folder if they are many.

    Raises:
        OSError: the disk is full.
    """
    file = open_table(path)
    size = file.schema_arrow.field("vector").type.list_size
    others = [name for name in file.schema_arrow.names if name != "vector"]
    matrix = allocate_matrix(file.metadata.num_rows, size, scratch)
    at = 0
    for batch in file.iter_batches(_BATCH, columns=["vector"], use_threads=False):
        matrix[at : at + len(batch)] = batch["vector"].flatten().to_numpy().reshape(-1, size)
        at += len(batch)
    return file.read(columns=others, use_threads=False), matrix


_BATCH = 8192
"""Vectors that are read at a time."""


def read_vectors(
    path: Path, keys: Mapping[str, pa.Array], scratch: Path
) -> dict[str, tuple[pa.Array, Matrix]]:
    """Texts and vectors of some tables, whose `keys` are given; what else there is is passed over.

    Raises:
        IntegrityError: rows and vectors are not one to one.
        OSError: the disk is full.
    """
    whole, matrix = open_vectors(path, scratch)
    found = {}
    for table, wanted in keys.items():
        rows = np.flatnonzero(pc.equal(whole["owner_table"], table).to_numpy())
        owners, texts = (
            combine_column(whole[name].take(pa.array(rows))) for name in ("owner_id", "text")
        )
        texts = texts.cast(pa.large_string())
        if table == "entities":
            found[table] = _spread_vectors(wanted, owners, texts, matrix, rows, scratch)
            continue
        if not owners.equals(wanted) or (np.diff(rows) != 1).any():
            raise IntegrityError(
                f"{path}: table {table} has {len(wanted)} rows and {len(owners)} vectors, or "
                "others, or in another order; build again"
            )
        start = int(rows[0]) if len(rows) else 0
        found[table] = (texts, matrix[start : start + len(rows)])
    return found


def _spread_vectors(
    wanted: pa.Array,
    owners: pa.Array,
    texts: pa.Array,
    matrix: Matrix,
    rows: Integers,
    scratch: Path,
) -> tuple[pa.Array, Matrix]:
    """Texts and vectors of all entities: one that no fact is about has neither, and zeros."""
    places = pc.index_in(wanted, value_set=owners)
    known = np.flatnonzero(pc.is_valid(places).to_numpy(zero_copy_only=False))
    of_known = rows[pc.drop_null(places).to_numpy()]
    spread = allocate_matrix(len(wanted), matrix.shape[1], scratch)
    spread[:] = 0
    for start in range(0, len(known), _BATCH):
        block = slice(start, start + _BATCH)
        spread[known[block]] = matrix[of_known[block]]
    return pc.fill_null(texts.take(places), ""), spread


def list_vectors(matrix: Matrix) -> pa.FixedSizeListArray:
    flat = pa.array(np.ascontiguousarray(matrix).ravel(), pa.float32())
    kind = pa.list_(pa.field("element", pa.float32()), matrix.shape[1])
    return pa.FixedSizeListArray.from_arrays(flat, type=kind)
