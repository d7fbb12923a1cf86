"""Contracts hold what they promise, on rows in memory and on files."""

import random
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.errors import IntegrityError, PyramidError
from kpyramid.keys import hash_bytes
from kpyramid.storage import contracts
from kpyramid.storage.contracts import (
    Contract,
    encode_table,
    load_contracts,
    parse_contract,
    read_table,
    write_table,
)
from kpyramid.storage.memory import map_table
from tests.processes import run_python
from tests.rows import read_text

TABLES = {
    *("documents", "chunks", "claims", "mentions", "raw_triples", "entities", "relations"),
    *("triples", "instances", "additions", "phrases", "layers", "priorities", "proposals"),
    *("condensed", "contradictions", "statements", "vectors", "rejects"),
}


def make_chunk(number: int, **changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "chunk_id": f"chunk-{number:04}",
        "document_id": "doc-1",
        "start": number,
        "end": number + 5,
        "text": "words",
        "tokens": 1,
    }
    return row | changes


def make_triple(number: int, **changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        "triple_id": f"triple-{number}",
        "head_id": "entity-1",
        "relation_id": "relation-1",
        "tail_id": "entity-1",
        "literal": None,
        "qualifiers": [("time", "2019")],
        "confidence": 0.5,
        "raw_triple_ids": ["raw-1"],
    }
    return row | changes


def make_vectors(kind: pa.DataType) -> pa.Table:
    vectors = pa.array([[0.0, 1.0]], pa.list_(kind, 2))
    names = ("owner_table", "owner_id", "text", "model")
    fields = [pa.field(name, pa.string(), False) for name in names]
    schema = pa.schema([*fields, pa.field("vector", vectors.type, False)])
    return pa.table([*([["x"]] * 4), vectors], schema=schema)


def contract(name: str) -> Contract:
    return load_contracts()[name]


def test_every_promised_table_has_a_contract() -> None:
    assert load_contracts().keys() == TABLES


@pytest.mark.parametrize("name", sorted(TABLES))
def test_contract_is_complete(name: str) -> None:
    table = contract(name)
    columns = [column.name for column in table.columns]
    assert len(columns) == len(set(columns))
    assert tuple(columns[: len(table.key)]) == table.key, "the key comes first"
    assert {column for group in table.exactly_one for column in group} <= set(columns)
    assert table.about.endswith(".")
    for column in table.columns:
        assert column.about.endswith("."), column.name
        if column.references is not None:
            target, target_column = column.references.split(".")
            assert contract(target).key == (target_column,), column.name


@pytest.mark.parametrize("name", sorted(TABLES - {"vectors"}))
def test_empty_table_keeps_the_contract_through_a_file(name: str, tmp_path: Path) -> None:
    empty = contract(name).build([])
    path = tmp_path / f"{name}.parquet"
    path.write_bytes(encode_table(empty))
    assert read_table(path, contract(name)).equals(empty)


SPAN = r"a span needs 0 <= start < end.*chunk-0001"
ONE = r"exactly one of tail_id, literal.*triple-1"


@pytest.mark.parametrize(
    ("table", "rows", "problem"),
    [
        ("chunks", [make_chunk(1, start="one")], "table chunks: a value does not fit"),
        ("chunks", [make_chunk(1), make_chunk(1, text="b")], "chunk-0001.* in more than one row"),
        *(("chunks", [make_chunk(1, start=a, end=b)], SPAN) for a, b in [(5, 5), (6, 5), (-1, 5)]),
        ("triples", [make_triple(1, tail_id=None)], ONE),
        ("triples", [make_triple(1, literal="1628")], ONE),
    ],
)
def test_rows_that_break_a_promise_are_refused(table: str, rows: list[Any], problem: str) -> None:
    with pytest.raises(IntegrityError, match=problem):
        contract(table).build(rows)
    contract("triples").build([make_triple(1), make_triple(2, tail_id=None, literal="1628")])


def test_other_columns_than_promised_are_refused() -> None:
    table = contract("chunks").build([make_chunk(1)])
    names, place = table.column_names, table.column_names.index("tokens")
    narrow = table.set_column(place, "tokens", table["tokens"].cast(pa.int32()))
    for name, changed, problem in [
        ("chunks", table.drop_columns(["tokens"]), "table chunks: has columns"),
        ("chunks", table.append_column("more", pa.array(["x"])), "table chunks: has columns"),
        ("chunks", table.select([names[1], names[0], *names[2:]]), "table chunks: has columns"),
        ("chunks", narrow, "column tokens is int32, its contract says int64"),
        ("vectors", make_vectors(pa.float64()), "column vector is .*, its contract says vector"),
    ]:
        with pytest.raises(IntegrityError, match=problem):
            contract(name).check(changed)
    contract("vectors").check(make_vectors(pa.float32()))


def test_null_where_none_may_be_is_refused_with_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [make_chunk(number) for number in range(5)] + [make_chunk(5, text=None)]
    problem = "table chunks: text must not be null, broken by .*chunk-0005"
    with pytest.raises(IntegrityError, match=problem):
        contract("chunks").build(rows)

    good = contract("chunks").build([make_chunk(number) for number in range(6)])
    texts = pa.array([*good["text"].to_pylist()[:-1], None], pa.string())
    bad = good.set_column(good.column_names.index("text"), "text", texts)
    write_table(bad, tmp_path / "chunks.parquet")
    monkeypatch.setattr("kpyramid.storage.contracts._ROW_GROUP", 4)
    with pytest.raises(IntegrityError, match=problem):
        contract("chunks").check_file(tmp_path / "chunks.parquet")


def test_a_reference_that_leads_nowhere_is_refused() -> None:
    """Of one value, of every element of a list, and into the same table."""
    row = {"name": "founded", "surface_forms": [], "support": 1}
    both = [
        {**row, "relation_id": "relation-1", "inverse_of": "relation-2"},
        {**row, "relation_id": "relation-2", "inverse_of": None},
    ]
    known = pa.table({"raw_triple_id": ["raw-1", "raw-2"]})
    for name, rows, others, fewer, problem in [
        ("chunks", [make_chunk(1)], {}, {"documents": pa.table({"document_id": ["doc-2"]})},
         "document_id 'doc-1' does not exist in documents"),
        ("triples", [make_triple(1, raw_triple_ids=["raw-1", "raw-2"])], {"raw_triples": known},
         {"raw_triples": known.slice(0, 1)}, "raw_triple_ids 'raw-2' does not exist"),
        ("relations", both, {}, {}, "inverse_of 'relation-2' does not exist"),
    ]:  # fmt: skip
        table = contract(name).build(rows)
        contract(name).check_references(table, others)
        with pytest.raises(IntegrityError, match=problem):
            contract(name).check_references(table.slice(0, 1), fewer)


@given(
    st.lists(
        st.tuples(st.text(st.characters(codec="utf-8")), st.integers(0, 2**40)),
        max_size=20,
        unique_by=lambda pair: pair[0],
    ),
    st.randoms(use_true_random=False),
)
def test_bytes_do_not_depend_on_row_order(
    pairs: list[tuple[str, int]], shuffler: random.Random
) -> None:
    rows = [make_chunk(1, chunk_id=key, start=at, end=at + 1) for key, at in pairs]
    expected = encode_table(contract("chunks").build(rows))
    shuffler.shuffle(rows)
    assert encode_table(contract("chunks").build(rows)) == expected


def test_columns_hash_alike_whatever_stands_in_those_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contracts, "_ROW_GROUP", 100)
    texts = [f"text {n}" for n in range(1000)]
    written: dict[str, tuple[list[Any], ...]] = {
        "one": (texts, [["a"]] * 1000, texts),
        "labels": (texts, [[], ["b", "c"]] * 500, texts),
        "text": ([*texts[:-1], "?"], [["a"]] * 1000, texts),
        "names": (texts, [["a"]] * 1000, [*texts[:-1], None]),
    }
    hashes = {}
    for name, columns in written.items():
        table = pa.table(dict(zip(("text", "access", "title"), columns, strict=True)))
        contracts.write_table(table, tmp_path / name)
        hashes[name] = contracts.hash_columns(tmp_path / name, ["access"])
    assert hashes["one"] == hashes["labels"]
    assert len({*hashes.values()}) == 3


def test_large_table_lies_in_nameless_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = contract("chunks").build(make_chunk(number) for number in range(20_000))
    assert map_table(table, tmp_path / "staging") is table
    monkeypatch.setattr("kpyramid.storage.memory._LARGE", 1000)
    before = pa.total_allocated_bytes()
    mapped = map_table(table, tmp_path / "staging")
    assert pa.total_allocated_bytes() - before < table.nbytes / 10
    assert mapped.equals(table, check_metadata=True)
    assert not [*(tmp_path / "staging").iterdir()]
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))  # as if the disk were full
    try:
        with pytest.raises(OSError, match=r"File too large|large"):
            map_table(table, tmp_path / "staging")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_flipped_bit_is_found_by_the_hash_wherever_it_is(tmp_path: Path) -> None:
    data = encode_table(contract("chunks").build([make_chunk(1), make_chunk(2)]))
    path = tmp_path / "chunks.parquet"
    for place in range(0, len(data), 97):
        damaged = bytearray(data)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(IntegrityError, match=r"chunks\.parquet is damaged"):
            read_table(path, contract("chunks"), hash_bytes(data))


def test_files_that_are_missing_torn_or_of_another_table_are_named(tmp_path: Path) -> None:
    data = encode_table(contract("chunks").build([make_chunk(1)]))
    for name, held, problem in [
        ("chunks", None, r"chunks\.parquet cannot be read"),
        ("chunks", data[: len(data) // 2], r"chunks\.parquet is damaged"),
        ("triples", data, r"triples\.parquet: table triples: has columns"),
    ]:
        path = tmp_path / f"{name}.parquet"
        if held is not None:
            path.write_bytes(held)
        with pytest.raises(IntegrityError, match=problem):
            read_table(path, contract(name))


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_reading_leaves_no_thread_behind(tmp_path: Path) -> None:
    """A reader thread that outlives the read can abort the process while it exits."""
    (tmp_path / "chunks.parquet").write_bytes(
        encode_table(contract("chunks").build([make_chunk(n) for n in range(5000)]))
    )
    code = """
import os
from pathlib import Path
from kpyramid.storage.contracts import load_contracts, read_table
before = len(os.listdir("/proc/self/task"))
assert len(read_table(Path("chunks.parquet"), load_contracts()["chunks"])) == 5000
assert len(os.listdir("/proc/self/task")) == before
"""
    run_python(code, cwd=tmp_path)


GOOD = read_text("contracts_things.toml")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (GOOD.replace('"string"', '"strings"'), r"unknown types \['strings'\]"),
        (GOOD + 'colour = "red"\n', "colour"),
        (GOOD.replace("version = 1", "version = 1\nowner = 1"), "owner"),
        (GOOD.replace("version = 1", ""), "version"),
        (GOOD.replace('"things"', '"others"'), "others"),
        (GOOD + "[[columns", "Expected"),
    ],
    ids=["unknown type", "unknown column key", "unknown key", "missing key", "name", "no TOML"],
)
def test_broken_contract_file_is_refused_by_name(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "things.toml"
    path.write_text(text, "utf-8")
    with pytest.raises(PyramidError, match=r"contract things\.toml") as caught:
        parse_contract(path)
    caught.match(problem)


@pytest.mark.parametrize("cuts", [(0, 0), (1, 3), (40, 41)])
def test_parts_in_files_are_merged_to_the_bytes_of_one_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: tuple[int, int]
) -> None:
    monkeypatch.setattr("kpyramid.storage.contracts._ROW_GROUP", 7)
    rows = [make_chunk(number) for number in range(41)]
    random.Random(0).shuffle(rows)
    parts = [contract("chunks").build(rows[a:b]) for a, b in pairwise((0, *cuts, 41))]
    paths = [tmp_path / f"{number}.parquet" for number in range(len(parts))]
    for part, path in zip(parts, paths, strict=True):
        write_table(part, path)
    whole = tmp_path / "whole.parquet"

    assert write_table(contract("chunks").merge(paths), whole) == 41
    assert whole.read_bytes() == encode_table(contract("chunks").build(rows))
    with pytest.raises(IntegrityError, match="stands in more than one row"):
        list(contract("chunks").merge([whole, whole]))


def test_who_reads_row_makes_no_table_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = 'table = "things"\nversion = 1\nabout = "."\nkey = ["thing_id"]\n'
    column = '[[columns]]\nname = "thing_id"\ntype = "string"\nabout = "."\n'
    texts = [
        plain + column,
        plain + 'visible_by = ["thing_id"]\n' + column + "compared = true\nterm = true\n",
        plain + column + 'unit = "things"\n',
    ]
    path = tmp_path / "things.toml"
    monkeypatch.setattr(contracts, "locate_declarations", lambda _: {"things": path})
    monkeypatch.setattr(contracts, "load_contracts", lambda: {"things": parse_contract(path)})
    hashes = []
    for text in texts:
        path.write_text(text)
        hashes.append(contracts.hash_contract.__wrapped__("things"))
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_column_that_is_not_given_is_what_stands_instead_of_it() -> None:
    contract = load_contracts()["condensed"]
    given = {"condensed_id": ["a"], "head_id": ["h"], "relation_id": ["r"], "literal": ["v"]}
    given |= {"standard_relation": ["r"], "qualifiers": [[]], "derived_from": [["t"]]}
    (row,) = contract.fill(given | {"how": [["kept"]]}).to_pylist()
    assert row["standard_head_id"] == "h"
    assert row["standard_tail_id"] is row["anchor"] is None
    assert row["standard_turned"] is False
    with pytest.raises(IntegrityError, match="how must not be null"):
        contract.fill(given)
