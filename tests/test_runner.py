"""The runner trusts nobody: not the stages, not the disk, not the order it is called in."""

import importlib
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from kpyramid.errors import InputError, IntegrityError
from kpyramid.pipeline.runner import Shard, run_stage
from kpyramid.pipeline.stage import PIPELINE, Progress
from kpyramid.storage import results
from kpyramid.storage.layout import Warehouse, stage_folder
from kpyramid.storage.results import RowCache
from kpyramid.storage.runs import Run, StageMark, start_run
from tests.corpora import (
    SETTINGS,
    build_corpus,
    copy_shared_build,
    count_recomputed,
    list_marks,
    shared_corpus,
    write_corpus,
)

Tables = dict[str, pa.Table]


pytestmark = pytest.mark.usefixtures("quick_models")


def start(warehouse: Warehouse, name: str = "test") -> Run:
    return start_run(warehouse, shared_corpus(), SETTINGS, ref="main", name=name)


def call(run: Run, stage: str, shard: Shard | None = None) -> StageMark:
    return run_stage(run, stage, workers=1, progress=Progress(), shard=shard)


def run_until(run: Run, last: str) -> None:
    for stage in PIPELINE:
        call(run, stage.name)
        if stage.name == last:
            return


def spoil(monkeypatch: pytest.MonkeyPatch, stage: str, change: Callable[[Tables], object]) -> None:
    """Makes a stage return its tables with something changed in place."""
    module = importlib.import_module(f"kpyramid.pipeline.stages.{stage}")
    real = module.run

    def run(*tables: pa.Table, **ports: object) -> Tables:
        made = dict(real(*tables, **ports))
        change(made)
        return made

    monkeypatch.setattr(module, "run", run)


def drop_first(table: str, column: str) -> Callable[[Tables], object]:
    """Removes all rows that share the first row's value, without a reject."""

    def change(made: Tables) -> None:
        values = made[table][column]
        gone = values[0].as_py()
        keep = pa.array([value != gone for value in values.to_pylist()])
        made[table] = made[table].filter(keep)

    return change


def repoint(table: str, column: str) -> Callable[[Tables], object]:
    def change(made: Tables) -> None:
        index = made[table].column_names.index(column)
        values = ["nowhere", *made[table][column].to_pylist()[1:]]
        field = made[table].schema.field(index)
        made[table] = made[table].set_column(index, field, pa.array(values, field.type))

    return change


@pytest.mark.parametrize(
    ("before", "stage", "change", "message"),
    [
        ("ingest", "chunk", drop_first("chunks", "document_id"), r"chunk lost rows.*'doc-\w+'"),
        ("chunk", "extract", drop_first("raw_triples", "chunk_id"), r"extract lost rows.*'chunk-"),
        ("ingest", "chunk", repoint("chunks", "document_id"), r"document_id 'nowhere' does not"),
        ("chunk", "extract", repoint("raw_triples", "claim_id"), r"claim_id 'nowhere' does not"),
        ("ingest", "chunk", lambda made: made.pop("rejects"), r"chunk made \['chunks'\], declared"),
        (
            "ingest",
            "chunk",
            lambda made: made.update(extra=made["chunks"]),
            r"chunk made .*'extra'.*declared",
        ),
        (
            "ingest",
            "chunk",
            lambda made: made.update(chunks=made["chunks"].drop_columns(["tokens"])),
            r"table chunks: has columns",
        ),
        (
            "ingest",
            "chunk",
            lambda made: made.update(chunks=pa.concat_tables([made["chunks"]] * 2)),
            r"table chunks: key .* more than one row",
        ),
    ],
)
def test_a_stage_that_breaks_its_promise_is_stopped_and_nothing_is_kept(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: str,
    stage: str,
    change: Callable[[Tables], object],
    message: str,
) -> None:
    run = start(Warehouse(tmp_path))
    run_until(run, before)
    spoil(monkeypatch, stage, change)

    with pytest.raises(IntegrityError, match=message):
        call(run, stage)

    assert not (tmp_path / "cache" / "results" / stage).exists()
    assert not (run.folder / "stages" / f"{stage}.json").exists()


def test_a_row_lost_with_a_reject_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(Warehouse(tmp_path))
    call(run, "ingest")

    def reject(made: Tables) -> None:
        gone = made["chunks"]["document_id"][0].as_py()
        drop_first("chunks", "document_id")(made)
        row = {"reject_id": "r", "stage": "chunk", "reason": "x", "row_key": gone, "detail": "y"}
        empty = {"document_id": None, "chunk_id": None}
        made["rejects"] = pa.Table.from_pylist([row | empty], schema=made["rejects"].schema)

    spoil(monkeypatch, "chunk", reject)

    assert call(run, "chunk").rejects == {"x": 1}


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def empty(path: Path) -> None:
    path.write_bytes(b"")


DAMAGES = {"resolve": flip, "induce": truncate, "complete": empty, "condense": Path.unlink}


@pytest.mark.parametrize("ending", [".parquet", ".json"])
def test_damaged_results_are_named_and_they_alone_computed_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, ending: str
) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    for stage, damage in DAMAGES.items():
        path, *_ = sorted((warehouse.cache / "results" / stage).glob(f"*/*{ending}"))
        if damage is flip and ending == ".json":
            path.write_bytes(path.read_bytes().replace(b'"sha256": "', b'"sha256": "0', 1))
        else:
            damage(path)

    with caplog.at_level(logging.WARNING):
        outcome = build_corpus(shared_corpus(), warehouse)

    told = [record.getMessage() for record in caplog.records if "damaged" in record.getMessage()]
    assert all(any(stage in line for line in told) for stage in DAMAGES), told
    assert outcome.snapshot == snapshot
    assert {name for name, count in count_recomputed(outcome).items() if count} == {*DAMAGES}


def test_a_result_damaged_between_two_stages_is_an_error_that_says_what_to_run(
    tmp_path: Path,
) -> None:
    run = start(Warehouse(tmp_path))
    run_until(run, "chunk")
    (path,) = (tmp_path / "cache" / "results").glob("chunk/*/chunks.parquet")
    flip(path)

    with pytest.raises(IntegrityError, match=r"stage chunk is damaged.*`kpyramid stage chunk"):
        call(run, "extract")
    call(run, "chunk")
    assert call(run, "extract").rows["raw_triples"] > 0


@pytest.mark.parametrize("damage", [flip, truncate, empty])
def test_a_damaged_cache_segment_costs_exactly_its_rows(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], object]
) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    cache = next((warehouse.cache / "rows" / "extractor").iterdir())
    for segment in cache.iterdir():  # one segment becomes one per row
        store = RowCache(warehouse, "extractor", cache.name)
        table = pa.parquet.read_table(segment)
        segment.unlink()
        for row in table.to_pylist():
            store.store({row["key"]: row["payload"]})
    segments = sorted(cache.iterdir())
    assert len(segments) > 3
    damage(segments[1])
    shutil.rmtree(warehouse.cache / "results" / "extract")

    with caplog.at_level(logging.WARNING):
        outcome = build_corpus(shared_corpus(), warehouse)

    assert str(segments[1]) in caplog.text
    assert outcome.snapshot == snapshot
    assert count_recomputed(outcome)["extract"] == 1


def test_only_what_dead_processes_left_in_staging_is_removed(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with stage_folder(Warehouse(tmp_path)) as own:
        host = own.name.rpartition(".")[0].rpartition(".")[0]
    dead = tmp_path / "staging" / f"{host}.{gone.pid}.abc"
    living = tmp_path / "staging" / f"{host}.{os.getpid()}.abc"
    foreign = tmp_path / "staging" / f"not-{host}.{gone.pid}.abc"
    for folder in (dead, living, foreign):
        folder.mkdir(parents=True)
        (folder / "part.parquet").write_bytes(b"half")

    call(start(Warehouse(tmp_path)), "ingest")

    assert not dead.exists()
    assert living.exists()
    assert foreign.exists()


NAMES = [stage.name for stage in PIPELINE]


@pytest.mark.parametrize("stage", NAMES[1:])
def test_a_stage_before_its_turn_says_which_one_is_missing(tmp_path: Path, stage: str) -> None:
    run = start(Warehouse(tmp_path))

    with pytest.raises(InputError) as e:
        call(run, stage)

    said = re.search(
        r"stage (\w+) is not done; run `kpyramid stage \1 --run test` first", str(e.value)
    )
    assert said
    assert NAMES.index(said[1]) < NAMES.index(stage)


@pytest.mark.slow
def test_shards_fill_the_caches_so_that_the_stage_computes_nothing(tmp_path: Path) -> None:
    run = start(Warehouse(tmp_path))
    sharded = {stage.name for stage in PIPELINE if stage.shards}
    assert sharded == {"chunk", "extract", "embed"}
    reference = list_marks(build_corpus(shared_corpus(), Warehouse(tmp_path / "other")))

    for stage in PIPELINE:
        if stage.name in sharded:
            parts = [call(run, stage.name, Shard(index, 3)) for index in range(3)]
            assert sum(part.recomputed for part in parts) >= reference[stage.name].recomputed
            assert sum(part.recomputed > 0 for part in parts) > 1
            assert not (run.folder / "stages" / f"{stage.name}.json").exists()
            assert call(run, stage.name).recomputed == 0
        else:
            call(run, stage.name)

    mark = json.loads((run.folder / "stages" / "publish.json").read_bytes())
    assert mark["key"] == reference["publish"].key


@pytest.mark.parametrize(
    ("stage", "shard"),
    [("chunk", Shard(2, 2)), ("chunk", Shard(0, 0)), ("resolve", Shard(0, 2))],
)
def test_a_shard_that_is_none_is_refused(tmp_path: Path, stage: str, shard: Shard) -> None:
    run = start(Warehouse(tmp_path))
    run_until(run, "ingest")

    with pytest.raises(InputError, match=r"0/N to N-1/N and exist for chunk, extract, embed"):
        call(run, stage, shard)


def test_many_writers_of_one_row_leave_one_whole_row(tmp_path: Path) -> None:
    rows = {f"key-{n}": bytes([n]) * 5000 for n in range(40)}
    cache = RowCache(Warehouse(tmp_path), "extractor", "f" * 64)

    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            list(pool.map(lambda key: cache.store({key: rows[key]}), [*rows] * 2))
            assert cache.load([*rows, "unknown"]) == rows

    assert len(list(cache.folder.iterdir())) == len(rows)


def test_the_segment_that_was_not_read_for_longest_leaves_memory_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "_recent", results._Recent())
    monkeypatch.setattr(results, "_MOST_RECENT", 2500)
    caches = [RowCache(Warehouse(tmp_path), "extractor", letter * 64) for letter in "abc"]
    for cache in caches:
        cache.store({"key": bytes(1000)})
    for cache in [*caches[:2], caches[0], caches[2]]:
        cache.load(["key"])
    held = [path.parent for path in results._recent.segments]
    assert held == [caches[0].folder, caches[2].folder]


def test_a_run_of_the_same_name_with_another_ref_order_or_shrinking_is_refused(
    tmp_path: Path,
) -> None:
    place, same = (Warehouse(tmp_path), shared_corpus(), SETTINGS), {"ref": "main", "name": "test"}
    run = start(place[0])
    assert start_run(*place, **same, order=run.order) == run
    for other in ({"ref": "other"}, {"order": "2001-01-01"}, {"allow_shrink": True}):
        with pytest.raises(InputError, match="another corpus, ref, settings, order"):
            start_run(*place, **{**same, **other})  # type: ignore[arg-type]


def test_a_stage_that_makes_something_new_undoes_the_stages_after_it(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    warehouse = Warehouse(tmp_path / "w")
    run = start_run(warehouse, corpus, SETTINGS, ref="main", name="test")
    run_until(run, "condense")
    call(run, "ingest")  # nothing new: all stays done
    assert call(run, "resolve").recomputed == 0
    (corpus / "new.txt").write_text("Ida Moor was born in Bergen.")
    call(run, "ingest")
    with pytest.raises(InputError, match="stage chunk is not done"):
        call(run, "publish")
