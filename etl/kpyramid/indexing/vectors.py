"""The vectors and texts of searched tables, in the order of their rows."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kpyramid.errors import IntegrityError

_COLUMNS = ["owner_table", "owner_id", "text", "vector"]


def read_vectors(path: Path, keys: Mapping[str, pa.Array]) -> dict[str, tuple[pa.Array, pa.Array]]:
    """Texts and vectors of some tables, whose `keys` are given; what else there is is passed over.

    Raises:
        IntegrityError: rows and vectors are not one to one.
    """
    file = pq.ParquetFile(path, page_checksum_verification=True)
    parts: defaultdict[str, list[pa.Table]] = defaultdict(list)
    for group in range(file.num_row_groups):
        about = file.metadata.row_group(group).column(0).statistics
        known = about is not None and about.has_min_max
        held = [t for t in keys if not known or about.min <= t <= about.max]
        if not held:
            continue
        part = file.read_row_group(group, columns=_COLUMNS, use_threads=False)
        for table in held:
            rows = part.filter(pc.equal(part["owner_table"], table))
            parts[table].append(rows.set_column(2, "text", rows["text"].cast(pa.large_string())))
    kind = file.schema_arrow.field("vector").type
    found = {}
    for table, wanted in keys.items():
        joined = pa.concat_tables(parts.pop(table)) if parts[table] else None
        owners = pa.array([], pa.string()) if joined is None else _combine(joined["owner_id"])
        if not owners.equals(wanted):
            raise IntegrityError(
                f"{path}: table {table} has {len(wanted)} rows and {len(owners)} vectors, or "
                "others; build again"
            )
        if joined is None:
            found[table] = (pa.array([], pa.large_string()), pa.array([], kind))
        else:
            found[table] = (_combine(joined["text"]), _combine(joined["vector"]))
    return found


def _combine(values: pa.ChunkedArray) -> pa.Array:
    joined = values.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)
