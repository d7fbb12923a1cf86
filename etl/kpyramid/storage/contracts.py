"""Table contracts: `schemas/*.toml` as Arrow schemas, checks and Parquet files."""

import hashlib
import io
import json
import mmap
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, reduce
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from kpyramid.errors import IntegrityError, PyramidError
from kpyramid.keys import hash_bytes
from kpyramid.numerics.arrays import Integers
from kpyramid.storage.declarations import locate_declarations

# Table contracts: `schemas/*.toml` as Arrow schemas and as checks.

_STRICT = ConfigDict(extra="forbid")

SPAN = pa.struct([pa.field("start", pa.int64()), pa.field("end", pa.int64())])
ARGUMENT = pa.struct(
    [pa.field("role", pa.string()), pa.field("text", pa.string()), pa.field("span", SPAN)]
)
BLOCK = pa.struct(
    [
        pa.field("kind", pa.string()),
        *SPAN,
        *(pa.field(name, pa.int64()) for name in ("level", "row", "column", "page")),
    ]
)
PLACE = pa.struct([pa.field("chunk_id", pa.string()), *SPAN])
_TYPES = {
    "string": pa.string(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "list<string>": pa.list_(pa.string()),
    "list<float64>": pa.list_(pa.float64()),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "span": SPAN,
    "list<span>": pa.list_(SPAN),
    "list<argument>": pa.list_(ARGUMENT),
    "list<block>": pa.list_(BLOCK),
    "list<place>": pa.list_(PLACE),
}
_VECTOR = "vector"
NO = "false"
_FORM, _VECTOR_FORM = b"2\n", b"4\n"
"""Raised when the same rows are written as other bytes: 2 descriptions of the columns, 3 smaller
row groups where there are vectors, 4 vectors byte by byte and without a dictionary."""


@dataclass(frozen=True, config=_STRICT)
class Column:
    """One column; `references` is `table.column`, for a list it holds for every element.

    `unit`: of its numbers. `term`: it holds IRIs of the ontology. `along`: a list beside another
    one, whose references do not make the row visible where this has `weaker`. `united_from`: its
    pairs are those of the rows that another column refers to. `instead`: the replacement of a
    missing or hidden value: a column, `column.name` of the row it refers to, or `NO`. `compared`: a
    different value makes a row of two snapshots changed. `default`: the value in rows made before
    the column existed; null for a nullable column. `values`: all allowed values.
    """

    name: str
    type: str
    about: str
    nullable: bool = False
    references: str | None = None
    unit: str | None = None
    term: bool = False
    along: str | None = None
    weaker: str | None = None
    united_from: str | None = None
    instead: str | None = None
    compared: bool = False
    default: bool | str | None = None
    values: tuple[str, ...] = ()

    @property
    def target(self) -> str | None:
        """The table that its values refer to."""
        if self.type == "list<place>":
            return "chunks"
        return self.references.split(".")[0] if self.references else None

    def describe(self) -> dict[str, str]:
        """Its metadata in Parquet files: description, unit and reference, if any."""
        entries = {"description": self.about, "unit": self.unit, "references": self.references}
        return {name: text for name, text in entries.items() if text}


@dataclass(frozen=True, config=_STRICT)
class Contract:
    """One table: its columns, its key and the groups of columns of which exactly one is set.

    A row is visible if a row is that it refers to by a column of `visible_by` (`table.column`: a
    row that refers to it), and all that it refers to by `needs` are. Without `visible_by` the table
    is for readers of all documents.
    """

    table: str
    version: int
    about: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    exactly_one: tuple[tuple[str, ...], ...] = ()
    visible_by: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    def column(self, name: str) -> Column:
        """The column of a name."""
        return next(column for column in self.columns if column.name == name)

    @property
    def labels(self) -> list[str]:
        """Columns of access labels; no stage reads them."""
        return [c.name for c in self.columns if c.name in self.visible_by and not c.target]

    def build(self, rows: Iterable[Mapping[str, object]]) -> pa.Table:
        """A checked table of these rows, sorted by key; not for tables with a vector column.

        Raises:
            IntegrityError: a row breaks the contract.
        """
        schema, rest, blocks = self._make_schema(), iter(rows), []
        try:
            while block := pa.Table.from_pylist(list(islice(rest, _BLOCK)), schema=schema):
                blocks.append(self.complete(block))
            table = pa.concat_tables([*blocks, block])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as e:
            raise IntegrityError(f"table {self.table}: a value does not fit its column: {e}") from e
        return self.finish(table)

    def fill(self, columns: Mapping[str, Any]) -> pa.Table:
        """A checked table of these columns, lists or arrays of equal length, sorted by key.

        A missing column gets the values of its `instead`, else null.

        Raises:
            IntegrityError: a column breaks the contract.
        """
        rows = len(columns[self.key[0]])
        blank = pa.nulls(rows, pa.null())
        given = {
            c.name: pa.repeat(c.default or False, rows)
            if c.name not in columns and (c.instead == NO or c.default is not None)
            else columns.get(c.name, columns.get(c.instead or "", blank))
            for c in self.columns
        }
        try:
            table = pa.Table.from_pydict(given, schema=self._make_schema())
        except (pa.ArrowInvalid, pa.ArrowTypeError, KeyError) as e:
            raise IntegrityError(f"table {self.table}: a column does not fit: {e}") from e
        return self.finish(table)

    def _make_schema(self) -> pa.Schema:
        return pa.schema([pa.field(c.name, _TYPES[c.type], c.nullable) for c in self.columns])

    def finish(self, table: pa.Table) -> pa.Table:
        """The table sorted by its key and checked.

        Raises:
            IntegrityError: the table breaks the contract.
        """
        self.check(table)
        if not _ascends(table, self.key):  # a copy, with the vectors of what may be a million rows
            table = table.sort_by([(name, "ascending") for name in self.key])
        columns = [  # vectors in one piece would be a copy, too
            column if c.type == _VECTOR else combine_column(column)
            for c, column in zip(self.columns, table.columns, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=self._describe(table.schema))

    def _describe(self, schema: pa.Schema) -> pa.Schema:
        """The schema with the contract as metadata: by field for Arrow, as JSON for others."""
        about = {column.name: column.describe() for column in self.columns}
        fields = [field.with_metadata(about[field.name]) for field in schema]
        plain = {"description": self.about, "contract": str(self.version)}
        columns = json.dumps(about, ensure_ascii=False)
        return pa.schema(fields, metadata={**plain, "key": ",".join(self.key), "columns": columns})

    def unite(self, parts: Sequence[pa.Table]) -> pa.Table:
        """One table of at least one part, sorted by its key.

        Raises:
            IntegrityError: a row stands in two parts.
        """
        filled = [part for part in parts if part.num_rows] or parts[:1]
        return self.finish(pa.concat_tables(filled))

    def merge(self, paths: Sequence[Path]) -> Iterator[pa.Table]:
        """The blocks of the table that `unite` makes of the parts in files; the files are sorted.

        Raises:
            IntegrityError: a row stands in two parts.
        """
        files = [open_table(path) for path in paths]
        files = [file for file in files if file.metadata.num_rows] or files[:1]
        keys = [file.read(columns=self.key, use_threads=False) for file in files]
        part = np.repeat(np.arange(len(keys)), [len(k) for k in keys])
        known = pa.concat_tables(keys)
        order = pc.sort_indices(known, sort_keys=[(name, "ascending") for name in self.key])
        self.check_key(known.take(order))
        part = part[order.to_numpy()]
        del keys, known, order
        rows = [_Rows(file) for file in files]
        for start in range(0, max(len(part), 1), _BLOCK):
            block = part[start : start + _BLOCK]
            taken = [r.take(int((block == number).sum())) for number, r in enumerate(rows)]
            united = pa.concat_tables(taken).take(np.argsort(np.argsort(block, kind="stable")))
            yield united.cast(self._describe(united.schema))

    def complete(self, table: pa.Table) -> pa.Table:
        """The table with the defaults of missing columns, and in place of nulls."""
        for index, column in enumerate(self.columns):
            if column.default is None and not column.nullable:
                continue
            if column.name not in table.column_names:
                blank = pa.repeat(pa.scalar(column.default, _TYPES[column.type]), len(table))
                table = table.add_column(index, self._make_schema().field(index), blank)
            elif column.default is not None and table[column.name].null_count:
                whole = pc.fill_null(table[column.name], column.default)
                table = table.set_column(index, self._make_schema().field(index), whole)
        return table

    def check(self, table: pa.Table) -> None:
        """Passes when columns, types, nulls, keys, alternatives and spans are as declared.

        Raises:
            IntegrityError: names the table, the column and the key of the first bad row.
        """
        self._check_rows(table)
        self.check_key(table)

    def check_file(self, path: Path) -> None:
        """Passes when the table in a file is as declared, except its key; read block by block.

        Raises:
            IntegrityError: names the file too; it is damaged, or as `check` says.
        """
        try:
            for block in read_blocks(path):
                self._check_rows(self.complete(block))
        except IntegrityError as e:
            raise IntegrityError(f"{path}: {e}") from e
        except (pa.ArrowException, OSError) as e:
            raise IntegrityError(f"table file {path} is damaged: {e}") from e

    def _check_rows(self, table: pa.Table) -> None:
        expected = [c.name for c in self.columns]
        if table.column_names != expected:
            raise IntegrityError(
                f"table {self.table}: has columns {table.column_names}, "
                f"its contract (version {self.version}) has {expected}"
            )
        for column in self.columns:
            self._check_column(table, column)
        for group in self.exactly_one:
            is_set = [pc.cast(pc.is_valid(table[name]), pa.int8()) for name in group]
            bad = pc.not_equal(reduce(pc.add, is_set), 1)
            self._refuse_rows(table, bad, f"exactly one of {', '.join(group)} must be set")
        if {"start", "end"} <= set(expected):
            bad = pc.or_(pc.less(table["start"], 0), pc.greater_equal(table["start"], table["end"]))
            self._refuse_rows(table, bad, "a span needs 0 <= start < end")

    def check_references(self, table: pa.Table, tables: Mapping[str, pa.Table]) -> None:
        """Passes when every reference into one of `tables` finds its row.

        Raises:
            IntegrityError: names the column and the first value that leads nowhere.
        """
        for column in self.columns:
            if column.references is None:
                continue
            target, target_column = column.references.split(".")
            source = table if target == self.table else tables.get(target)
            if source is None:
                continue
            values = pc.drop_null(flatten(table[column.name]))
            known = pc.is_in(values, value_set=source[target_column].combine_chunks())
            if not pc.all(known, min_count=0).as_py():
                missing = values.filter(pc.invert(known))[0].as_py()
                raise IntegrityError(
                    f"table {self.table}: {column.name} {missing!r} "
                    f"does not exist in {column.references}"
                )

    def _check_column(self, table: pa.Table, column: Column) -> None:
        values = table[column.name]
        if column.type == _VECTOR:
            fits = (
                pa.types.is_fixed_size_list(values.type) and values.type.value_type == pa.float32()
            )
        else:
            fits = values.type == _TYPES[column.type]
        if not fits:
            raise IntegrityError(
                f"table {self.table}: column {column.name} is {values.type}, "
                f"its contract says {column.type}"
            )
        if not column.nullable and values.null_count:
            self._refuse_rows(table, pc.is_null(values), f"{column.name} must not be null")
        if column.values:
            strange = pc.invert(pc.is_in(values, value_set=pa.array(column.values)))
            self._refuse_rows(table, strange, f"{column.name} is none of {column.values}")

    def check_key(self, table: pa.Table) -> None:
        """Passes when each key occurs in one row.

        Raises:
            IntegrityError: names one that does not.
        """
        if _ascends(table, self.key):
            return
        counts = (
            table.select(self.key)
            .group_by(list(self.key), use_threads=False)
            .aggregate([([], "count_all")])
        )
        if counts.num_rows != table.num_rows:
            twice = counts.filter(pc.greater(counts["count_all"], 1)).slice(0, 1).to_pylist()[0]
            del twice["count_all"]
            raise IntegrityError(f"table {self.table}: key {twice} stands in more than one row")

    def _refuse_rows(self, table: pa.Table, bad: pa.ChunkedArray, rule: str) -> None:
        if pc.any(bad, min_count=0).as_py():
            row = table.filter(bad).slice(0, 1).select(self.key).to_pylist()[0]
            raise IntegrityError(f"table {self.table}: {rule}, broken by {row}")


class _Rows:
    """The rows of a Parquet file, read in order."""

    def __init__(self, file: pq.ParquetFile) -> None:
        self._blocks = _walk(file, _BLOCK)
        self._left = file.schema_arrow.empty_table()

    def take(self, count: int) -> pa.Table:
        """The next rows, as many as asked for."""
        while len(self._left) < count:
            self._left = pa.concat_tables([self._left, next(self._blocks)])
        taken, self._left = self._left.slice(0, count), self._left.slice(count)
        return taken


def combine_column(values: pa.ChunkedArray) -> pa.Array:
    """A column in one chunk, without a copy where it is one."""
    return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()


def _ascends(table: pa.Table, key: Sequence[str]) -> bool:
    """Whether the rows are in strictly ascending order of their key."""
    more, last = pa.scalar(False), max(table.num_rows - 1, 0)
    for name in reversed(key):
        before, after = table[name].slice(0, last), table[name].slice(1)
        more = pc.or_(pc.less(before, after), pc.and_(pc.equal(before, after), more))
    return bool(pc.all(more, min_count=0).as_py())


def flatten(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """The elements of a column of lists; another column as it is."""
    return pc.list_flatten(values) if pa.types.is_list(values.type) else values


def find_rows(values: pa.ChunkedArray | pa.Array, keys: pa.ChunkedArray | pa.Array) -> Integers:
    """The index of each value among the keys, -1 for null and for unknown values."""
    held = combine_column(keys) if isinstance(keys, pa.ChunkedArray) else keys
    indices = pc.fill_null(pc.index_in(values, value_set=held), -1)
    return np.asarray(indices.to_numpy(), dtype=np.int64)


def map_column(table: pa.Table, key: str, value: str) -> dict[Any, Any]:
    """The values of one column by those of another."""
    return dict(zip(table[key].to_pylist(), table[value].to_pylist(), strict=True))


def parse_contract(path: Path) -> Contract:
    """The contract in one file.

    Raises:
        PyramidError: the file is no valid contract; names the file and every problem.
    """
    try:
        contract = TypeAdapter(Contract).validate_python(tomllib.loads(path.read_text("utf-8")))
    except (ValidationError, tomllib.TOMLDecodeError) as e:
        raise PyramidError(f"contract {path.name}: {e}") from e
    unknown = sorted({c.type for c in contract.columns} - _TYPES.keys() - {_VECTOR})
    if unknown or contract.table != path.stem:
        raise PyramidError(
            f"contract {path.name}: table is {contract.table!r}, unknown types {unknown}; "
            f"the table is named as its file, types are {sorted(_TYPES)} and {_VECTOR}"
        )
    named = {n for n in (*contract.visible_by, *contract.needs) if "." not in n}
    for column in contract.columns:
        named |= {name for name in (column.along, column.united_from) if name}
    if lost := sorted(named - {c.name for c in contract.columns}):
        raise PyramidError(f"contract {path.name}: it has no columns {', '.join(lost)}")
    return contract


@cache
def load_contracts() -> Mapping[str, Contract]:
    """All contracts by table name."""
    return {name: parse_contract(path) for name, path in locate_declarations("schemas").items()}


_FOR_READERS = re.compile(
    rb"^(?:visible_by|needs|term|along|weaker|united_from|instead|compared) = .*\n", re.MULTILINE
)
"""Lines of a contract that control who reads a row, not its content."""


@cache
def hash_contract(table: str) -> str:
    """The hash of a contract: an ingredient of every key that depends on the table.

    Lines on visibility are left out: no table is made anew for them.
    """
    has_vectors = any(column.type == _VECTOR for column in load_contracts()[table].columns)
    form = _VECTOR_FORM if has_vectors else _FORM
    data = locate_declarations("schemas")[table].read_bytes()
    return hash_bytes(form + _FOR_READERS.sub(b"", data))


# Tables as Parquet files whose bytes are a function of their rows.

_ROW_GROUP = 131_072
"""Rows that are written at a time."""
_VECTORS, _FEW_VECTORS = 16_384, 512
"""Rows of vectors that are written, and read, at a time: 25 MB of 384 numbers each, of which a
writer holds four times as much, and under a megabyte, which is used again and not asked for anew.
"""
_BLOCK = 8192
"""Rows that are objects, or read or copied, at a time."""


def encode_table(table: pa.Table) -> bytes:
    """The Parquet file of a table: zstd, a checksum per page, the same bytes in every run."""
    buffer = io.BytesIO()
    write_table(table, buffer)
    return buffer.getvalue()


def write_table(rows: pa.Table | Iterable[pa.Table], target: Path | BinaryIO) -> int:
    """Writes the file of a table, or of its blocks, as `encode_table`; returns the row count."""
    groups = _regroup([rows] if isinstance(rows, pa.Table) else rows)
    due = [next(groups)]
    count, schema = 0, due[0].schema
    vectors = [f.name for f in schema if pa.types.is_fixed_size_list(f.type)]
    with pq.ParquetWriter(
        target,
        schema,
        compression="zstd",
        write_page_checksum=True,
        data_page_version="2.0",
        # A dictionary of numbers that never repeat takes five times as long, and a third more room.
        use_dictionary=[name for name in schema.names if name not in vectors] if vectors else True,
        use_byte_stream_split=[f"{name}.list.element" for name in vectors] or False,
    ) as writer:
        while due:
            count += len(due[0])
            writer.write_table(due.pop(), row_group_size=_ROW_GROUP)
            due += islice(groups, 1)  # when the last is gone
    return count


def _regroup(blocks: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The rows of the blocks, in blocks of a row group's size; at least one."""
    held: list[pa.Table] = []
    most = room = 0
    for block in blocks:
        left = block
        if not most:
            most = room = _size_blocks(block.schema)[0]
        while len(left) > room:
            parts = [*held, left.slice(0, room)]
            left, held, room = left.slice(room), [], most  # before what takes it goes on
            yield pa.concat_tables(parts).combine_chunks()
        held.append(left)
        room -= len(left)
    yield pa.concat_tables(held).combine_chunks()


def _size_blocks(schema: pa.Schema) -> tuple[int, int]:
    """The rows that are written at a time, and read."""
    has_vectors = any(pa.types.is_fixed_size_list(kind) for kind in schema.types)
    return (_VECTORS, _FEW_VECTORS) if has_vectors else (_ROW_GROUP, _BLOCK)


def decode_table(data: bytes | Path) -> pa.Table:
    """The table of a Parquet file, or of its bytes, read on the calling thread.

    Arrow's parallel reader releases bytes on a thread of its own, possibly after it returned; if
    the interpreter ends in that moment, the process aborts with its work done.

    Raises:
        ArrowException, OSError: not a Parquet file, or a page differs from its checksum.
    """
    return open_table(data).read(use_threads=False)


def read_blocks(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Rows of a Parquet file, or some of its columns, in blocks; at least one block.

    Raises:
        ArrowException, OSError: as `decode_table`.
    """
    file = open_table(path)
    return _walk(file, _size_blocks(file.schema_arrow)[1], columns)


def _walk(
    file: pq.ParquetFile, rows: int, columns: Sequence[str] | None = None
) -> Iterator[pa.Table]:
    if not file.metadata.num_rows:
        yield file.read(columns=columns, use_threads=False)
    for batch in file.iter_batches(rows, columns=columns, use_threads=False):
        yield pa.Table.from_batches([batch])


def open_table(data: bytes | Path) -> pq.ParquetFile:
    """A Parquet file, or its bytes, for reading on the calling thread only.

    A file is mapped: Arrow reads others on a thread of its own. It reserves room for as many rows
    as the file states.

    Raises:
        ArrowException, OSError: not a Parquet file, or it states more rows than it has bytes.
    """
    buffer: bytes | mmap.mmap = b""
    if isinstance(data, bytes):
        buffer = data
    elif data.stat().st_size:
        with data.open("rb") as file:
            buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    table = pq.ParquetFile(pa.BufferReader(pa.py_buffer(buffer)), page_checksum_verification=True)
    groups = map(table.metadata.row_group, range(table.metadata.num_row_groups))
    if (rows := sum(abs(group.num_rows) for group in groups)) > len(buffer):
        raise pa.ArrowInvalid(f"it states {rows:,} rows in {len(buffer):,} bytes")
    return table


def hash_columns(path: Path, without: Collection[str]) -> str:
    """The sha256 of the stored bytes of all columns of a file but some.

    Nothing is unpacked: a column's bytes are a function of its own rows.
    """
    with path.open("rb") as file:
        held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    data, digest = pa.py_buffer(held), hashlib.sha256()
    footer = pq.read_metadata(pa.BufferReader(data))
    for group in map(footer.row_group, range(footer.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            name, size = column.path_in_schema, column.total_compressed_size
            if name.partition(".")[0] not in without:
                start = column.dictionary_page_offset or column.data_page_offset
                digest.update(f"{name} {column.physical_type} {size}\n".encode())
                digest.update(data.slice(start, size))
    return digest.hexdigest()


def read_table(path: Path, contract: Contract, sha256: str | None = None) -> pa.Table:
    """The table in a file, checked against its hash (when known) and its contract.

    Raises:
        IntegrityError: the file is missing, damaged, or breaks the contract; names the file.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest() if sha256 else None
    except OSError as e:
        raise IntegrityError(f"table file {path} cannot be read: {e.strerror}") from e
    if digest != sha256:
        raise IntegrityError(f"table file {path} is damaged: its sha256 is not {sha256}")
    try:
        table = contract.complete(decode_table(path))
    except (pa.ArrowException, OSError) as e:
        raise IntegrityError(f"table file {path} is damaged: {e}") from e
    try:
        contract.check(table)
    except IntegrityError as e:
        raise IntegrityError(f"{path}: {e}") from e
    return table
