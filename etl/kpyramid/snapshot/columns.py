"""The columns of the index, from the tables of a snapshot; `index.sql` joins them."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pyarrow as pa

from kpyramid.documents.qualifiers import write_qualifiers
from kpyramid.documents.words import FUNCTION, WORD
from kpyramid.numerics.arrays import Integers
from kpyramid.snapshot import search
from kpyramid.snapshot.graph import open_database, read_sql
from kpyramid.storage.columns import TextColumn
from kpyramid.storage.contracts import combine_column, load_contracts

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection as Database

Tables = Mapping[str, pa.Table]
_SQL = read_sql("index.sql")
_FILE = "file_"
"""Prefix of the names of queries that make a file of the index."""
EMBEDDED = ("chunks", "condensed", "entities", "triples", "instances")
"""Tables whose rows have vectors."""
_ROWS, _TEXTS = pa.list_(pa.int32()), pa.list_(pa.string())


@contextmanager
def join_rows(tables: Tables) -> "Iterator[Database]":
    """A database with the tables of a snapshot, row numbers, and the rows on which rows rest."""
    weaker = load_contracts()["condensed"].column("how").weaker
    shaped = {
        ("documents", "metadata"): _write_fields,
        ("condensed", "qualifiers"): write_qualifiers,
        ("raw_triples", "qualifiers"): write_qualifiers,
    }
    with open_database() as database:
        for name, table in tables.items():
            for (owner, column), write in shaped.items():
                if owner == name:
                    words = pa.array(map(write, table[column].to_pylist()), _TEXTS)
                    table = table.set_column(table.schema.get_field_index(column), column, words)
            table = table.append_column("row", pa.array(np.arange(len(table))))
            database.register(name, table)
        database.create_function("join_words", search.join_words, ["VARCHAR"], "VARCHAR")
        database.create_function("hash_name", search.hash_name, ["VARCHAR"], "UBIGINT")
        database.create_function("crc32", lambda k: crc32(k.encode()), ["VARCHAR"], "BIGINT")
        database.execute(_SQL["rests"].replace("$weaker", str(weaker)))
        yield database


def join_tables(tables: Tables) -> tuple[dict[str, dict[str, pa.Array]], dict[str, Integers]]:
    """The columns of `list_columns`, and the hashes of `group_rows`.

    Raises:
        IntegrityError: a row refers to a missing one.
    """
    with join_rows(tables) as database:
        return list_columns(database, tables), group_rows(database, tables)


def list_columns(database: "Database", tables: Tables) -> dict[str, dict[str, pa.Array]]:
    """The columns of all files of the index, except those of vectors and words, by file.

    Raises:
        IntegrityError: a row refers to a missing one, and joins would drop it; names both.
    """
    for name, table in tables.items():
        load_contracts()[name].check_references(table, tables)
    titled = _find_titles(tables)
    database.execute(_SQL["names"])
    files = {
        name.removeprefix(_FILE): _read(database, query)
        for name, query in _SQL.items()
        if name.startswith(_FILE)
    }
    texts = tables["documents"]["text"].cast(pa.large_string())
    files["documents"]["text"] = combine_column(texts)  # DuckDB sorts in its memory, as whole rows
    files["chunks"]["titles"] = _link_titles(tables, titled)
    return files | {"titles": _list_titles(titled)}


def group_rows(database: "Database", tables: Tables) -> dict[str, Integers]:
    """The least hash of the documents on which each row of an embedded table rests."""
    database.execute(_SQL["groups"])
    groups = {name: np.zeros(tables[name].num_rows, np.int64) for name in EMBEDDED}
    for name, hashes in groups.items():
        query = "SELECT row, hash FROM of_row WHERE name = ?"
        result = database.execute(query, [name]).fetchnumpy()
        hashes[result["row"]] = result["hash"]
    return groups


def _read(database: "Database", query: str) -> dict[str, pa.Array]:
    table = database.sql(query.replace("$most", str(search.MOST_SHARED))).to_arrow_table()
    return {name: combine_column(table[name]) for name in table.column_names}


def _write_fields(pairs: Iterable[tuple[str, str]]) -> list[str]:
    return sorted(f"{field}={value}" for field, value in pairs)


# Titles by which texts can name documents.

_BRACKETS = re.compile(r"\([^()]*\)")


def _find_titles(tables: Tables) -> dict[str, list[int]]:
    """The rows of the documents with each title that texts can name, without text in brackets.

    In the order of the titles' hashes.
    """
    titled: defaultdict[str, list[int]] = defaultdict(list)
    for row, title in enumerate(tables["documents"]["title"].to_pylist()):
        words = WORD.findall(_BRACKETS.sub(" ", title or ""))
        if 1 < len(words) <= search.MOST_TITLE or (len(words) == 1 and _is_name(words[0])):
            titled[search.fold_title(words)].append(row)
    return {
        title: titled[title] for title in sorted(titled, key=lambda t: (search.hash_name(t), t))
    }


def _is_name(word: str) -> bool:
    """Whether a single word may be a title that texts name: capitalised, and no function word."""
    return word[0].isupper() and word.casefold() not in FUNCTION


def _list_titles(titled: Mapping[str, list[int]]) -> dict[str, Any]:
    """Columns of the titles in the order of their hashes: hash, title, rows of the documents."""
    return {
        "hash": pa.array([search.hash_name(title) for title in titled], pa.uint64()),
        "title": pa.array([*titled], pa.string()),
        "documents": pa.array([*titled.values()], _ROWS),
    }


def _link_titles(tables: Tables, titled: Mapping[str, list[int]]) -> pa.Array:
    """The rows of the titles that each chunk's text contains, however many documents share one.

    The documents that a title names depend on those that a reader may see.
    """
    sizes: defaultdict[str, set[int]] = defaultdict(set)
    for title in titled:
        sizes[" ".join(title.split()[:2])].add(len(title.split()))
    linked, places = [], {title: row for row, title in enumerate(titled)}
    for text in TextColumn(tables["chunks"]["text"]):
        words = WORD.findall(text)
        pairs = map(" ".join, zip(map(str.casefold, words), words[1:], strict=False))
        runs = {
            search.fold_title(words[i : i + size])
            for i, pair in enumerate(pairs)
            if pair in sizes
            for size in sizes[pair]
        }
        linked.append(sorted(places[run] for run in places.keys() & runs.union(words)))
    return pa.array(linked, _ROWS)
