"""A snapshot is named by its manifest, says nothing of the run, and shows every changed byte."""

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kpyramid.errors import IntegrityError
from kpyramid.storage import verification
from kpyramid.storage.contracts import encode_table, load_contracts, read_table
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.publication import write_snapshot
from kpyramid.storage.verification import check_bytes, check_tables
from tests.corpora import build_corpus, copy_shared_build, shared_corpus


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    return warehouse.snapshots / snapshot


def flip(folder: Path, name: str) -> None:
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 4
    (folder / name).write_bytes(data)


def replace_by_link(folder: Path, name: str) -> None:
    """All bytes stay readable, by way of another place."""
    elsewhere = folder.parent.parent / "elsewhere"
    (folder / name).rename(elsewhere)
    (folder / name).symlink_to(elsewhere)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "chunks.parquet: its bytes": lambda f: flip(f, "tables/chunks.parquet"),
    "schema.ttl: its bytes": lambda f: os.truncate(f / "ontology/schema.ttl", 10),
    "claims.parquet: its bytes": lambda f: os.truncate(f / "tables/claims.parquet", 0),
    "instances.nt: is missing": lambda f: (f / "ontology/instances.nt").unlink(),
    "more.parquet: is not": lambda f: (f / "tables/more.parquet").write_text("x"),
    "link: is a link": lambda f: (f / "tables/link").symlink_to("nowhere"),
    "chunks.parquet: is a link": lambda f: replace_by_link(f, "tables/chunks.parquet"),
    "index: is a link": lambda f: replace_by_link(f, "index"),
    "more/of: is an empty": lambda f: (f / "more/of").mkdir(parents=True),
    "pipe: is no regular file": lambda f: os.mkfifo(f / "tables/pipe"),
    "schema.ttl: is missing": lambda f: (f / "ontology/schema.ttl").rename(f / "ontology/o.ttl"),
    "manifest.json: its hash": lambda f: flip(f, "manifest.json"),
    "manifest.json": lambda f: (f / "manifest.json").unlink(),
    "": lambda f: flip(f, "SHA256SUMS"),
    "is not listed": lambda f: os.truncate(f / "SHA256SUMS", 0),
    "SHA256SUMS": lambda f: (f / "SHA256SUMS").unlink(),
    "its hash is not": lambda f: shutil.copytree(f, f.parent / ("0" * 16)),
}


@pytest.mark.parametrize("expected", DAMAGES)
def test_damage_is_found_and_named(folder: Path, expected: str) -> None:
    DAMAGES[expected](folder)
    renamed = folder.parent / ("0" * 16)
    problems = check_bytes(renamed if renamed.is_dir() else folder)
    assert any(expected in problem for problem in problems), problems


def test_a_file_that_lies_consistently_is_told_by_the_manifest(folder: Path) -> None:
    """Someone who changes a file and its line in SHA256SUMS has not changed the manifest."""
    before = hashlib.sha256((folder / "ontology/schema.ttl").read_bytes()).hexdigest()
    flip(folder, "ontology/schema.ttl")
    after = hashlib.sha256((folder / "ontology/schema.ttl").read_bytes()).hexdigest()
    sums = (folder / "SHA256SUMS").read_text()
    (folder / "SHA256SUMS").write_text(sums.replace(before, after))

    assert any("schema.ttl" in problem for problem in check_bytes(folder))


@pytest.mark.parametrize("offset", range(0, 100, 7))
def test_every_flipped_bit_of_a_table_is_noticed_without_its_hash(
    folder: Path, offset: int
) -> None:
    """Page checksums and contracts, for a reader that has no SHA256SUMS; footers have none."""
    path = folder / "tables" / "triples.parquet"
    contract = load_contracts()["triples"]
    whole = read_table(path, contract)
    data = bytearray(path.read_bytes())
    place = 4 + offset * (len(data) // 3) // 100  # the data pages stand in front
    data[place] ^= 16
    path.write_bytes(data)

    try:
        read = read_table(path, contract)
    except IntegrityError as e:
        assert "triples.parquet" in str(e)
    else:
        assert read == whole  # a bit that no reader looks at


def test_a_moved_span_is_found_by_the_check_of_the_tables(tmp_path: Path) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    path = warehouse.snapshots / snapshot / "tables" / "mentions.parquet"
    contract = load_contracts()["mentions"]
    rows = read_table(path, contract).to_pylist()
    rows[0] |= {"start": rows[0]["start"] + 1, "end": rows[0]["end"] + 1}
    path.write_bytes(encode_table(contract.build(rows)))

    problems = check_tables(warehouse.snapshots / snapshot)

    assert problems == [f"mentions: {rows[0]['mention_id']} does not stand at its span"]


def test_a_retry_of_the_same_content_is_a_no_op(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    first = write_snapshot(warehouse, {"a/b.txt": b"x"}, {"fact": 1})
    inode = (warehouse.snapshots / first).stat().st_ino

    assert write_snapshot(warehouse, {"a/b.txt": b"x"}, {"fact": 1}) == first
    assert (warehouse.snapshots / first).stat().st_ino == inode
    assert write_snapshot(warehouse, {"a/b.txt": b"y"}, {"fact": 1}) != first
    assert write_snapshot(warehouse, {"a/b.txt": b"x"}, {"fact": 2}) != first
    assert list(warehouse.staging.iterdir()) == []


@pytest.mark.usefixtures("quick_models")
def test_no_damaged_snapshot_is_published_again(tmp_path: Path) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    flip(warehouse.snapshots / snapshot, "tables/entities.parquet")

    with pytest.raises(
        IntegrityError, match=r"damaged: tables/entities\.parquet.*Move that folder"
    ):
        build_corpus(shared_corpus(), warehouse)

    shutil.move(warehouse.snapshots / snapshot, tmp_path / "away")
    assert build_corpus(shared_corpus(), warehouse).snapshot == snapshot
    assert check_bytes(warehouse.snapshots / snapshot) == []


def test_another_contract_is_no_damage(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = {n: replace(c, version=c.version + 1) for n, c in load_contracts().items()}
    monkeypatch.setattr(verification, "load_contracts", lambda: newer)
    problems = verification.check_tables(folder)
    assert len(problems) == len(newer)
    for line, contract in zip(problems, newer.values(), strict=True):
        made, here = contract.version - 1, contract.version
        assert f"made by contract version {made}, this release has {here}" in line


def test_equal_files_of_two_snapshots_are_one_unless_the_earlier_is_damaged(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    first = {"tables/a": b"a" * 9000, "tables/b": b"b" * 9000}
    one = warehouse.snapshots / write_snapshot(warehouse, first, {})
    (one / "tables/b").write_bytes(b"B" * 9000)
    other = warehouse.snapshots / write_snapshot(warehouse, {**first, "tables/c": b"c"}, {})
    assert (one / "tables/a").samefile(other / "tables/a")
    assert not (one / "tables/b").samefile(other / "tables/b")
    assert check_bytes(other) == []
    assert [problem.partition(":")[0] for problem in check_bytes(one)] == ["tables/b"]
