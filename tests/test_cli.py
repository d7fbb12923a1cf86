"""The command line keeps its word: exit codes, one JSON object, one error, nothing half-written."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kpyramid.pipeline.stage import PIPELINE
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.refs import list_entries, resolve_ref
from tests.commands import fails, fails_json, run, run_json, show
from tests.corpora import TEXTS, copy_shared_build, shared_corpus, write_corpus
from tests.rows import read_rows

VARIABLES = {"KPYRAMID_CHUNK__MAX_TOKENS": "24", "KPYRAMID_CHUNK__OVERLAP_TOKENS": "6"}
"""The settings of the shared build."""


@pytest.fixture(autouse=True)
def _quick_models(quick_models: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)


def check_nothing_published(warehouse: Path) -> None:
    for place in ("snapshots", "staging", "refs"):
        assert not [*(warehouse / place).glob("*")], place


def test_a_missing_or_empty_corpus_and_a_bad_warehouse_or_ref_end_with_3(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    options = ("--warehouse", tmp_path / "w")
    for corpus in ("nowhere", "empty"):
        for command in ("build", "plan"):
            fails(3, [f"corpus {tmp_path / corpus}"], command, tmp_path / corpus, *options)
    check_nothing_published(tmp_path / "w")
    for name in ("../x", "a/b", ""):
        fails(3, ["use letters"], "build", shared_corpus(), *options, "--ref", name)
    for words in (("verify", "nightly"), ("ask", "Who?", "--ref", "nightly")):
        fails(3, ["unknown ref 'nightly'", "refs there: none"], *words, *options)
    assert not (tmp_path / "w" / "refs").exists() and not (tmp_path / "x").exists()
    (tmp_path / "file").write_text("x")
    fails(3, ["is a file"], "build", shared_corpus(), "--warehouse", tmp_path / "file")
    below = ("--warehouse", tmp_path / "file" / "w")
    assert "Not a directory" in fails_json(8, "build", shared_corpus(), *below)


def test_wrong_settings_end_with_2_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "s.toml"
    file.write_text("[chunk]\nmax = 1\n[more]\n")
    command = ("build", shared_corpus(), "--warehouse", tmp_path / "w")
    with monkeypatch.context() as patch:
        patch.setenv("KPYRAMID_PUBLISH__REASONER_SECONDS", "x")
        said = ["problems in the settings: 3", "chunk.max", "more", "REASONER_SECONDS"]
        fails(2, said, *command, "--settings", file)
    assert not (tmp_path / "w").exists()
    monkeypatch.setenv("KPYRAMID_INDUCE__ONTOLOGY", "klingon")
    fails(2, ["klingon", "general"], *command)
    check_nothing_published(tmp_path / "w")


@pytest.mark.slow
def test_a_far_smaller_corpus_ends_with_4_unless_it_is_meant(tmp_path: Path) -> None:
    warehouse, old = copy_shared_build(tmp_path / "w")
    corpus = write_corpus(tmp_path / "corpus", {"batt.txt": TEXTS["batt.txt"]})
    command = ("build", corpus, "--warehouse", warehouse.root)

    said = fails(4, ["is kept but ref 'main' was not moved", "size: fail: 1 documents"], *command)

    assert "--allow-shrink" in said
    assert resolve_ref(warehouse, "main") == old
    kept = {path.name for path in warehouse.snapshots.iterdir()} - {old}
    assert len(kept) == 1
    assert run_json(*command, "--allow-shrink")["snapshot"] in kept
    assert {resolve_ref(warehouse, "main")} == kept


def test_a_corpus_without_any_document_ends_with_4(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", {"a.txt": "", "b.txt": " \n", "c.doc": "x"})

    fails(4, ["no document is left"], "build", corpus, "--warehouse", tmp_path / "w")

    assert not [*(tmp_path / "w" / "refs").rglob("*.json")]
    report = json.loads(next((tmp_path / "w" / "runs").glob("*/report.json")).read_bytes())
    assert report["rejects"]["ingest"] == {"empty": 2, "unknown_format": 1}


def test_a_damaged_snapshot_ends_with_6_and_names_the_file(tmp_path: Path) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    options = ("--warehouse", warehouse.root)
    assert run_json("verify", *options)["snapshots"] == {snapshot: []}
    assert run_json("verify", snapshot, *options)["ok"] is True
    os.truncate(warehouse.snapshots / snapshot / "tables" / "triples.parquet", 100)

    report = run_json("verify", *options, code=6)
    assert report["ok"] is False
    assert "triples.parquet" in report["problems"][0]
    assert run("verify", *options).exit_code == 6
    fails(6, ["triples.parquet"], "build", shared_corpus(), *options)


def test_damaged_refs_end_verify_with_6_and_are_named(tmp_path: Path) -> None:
    warehouse, snapshot = copy_shared_build(tmp_path / "w")
    entry = warehouse.refs / "nightly" / "0000000001.json"
    entry.parent.mkdir()
    entry.write_text("{}")
    found = run_json("verify", "--warehouse", warehouse.root, code=6)
    assert (found["ok"], found["snapshots"]) == (False, {snapshot: []})
    assert "nightly/0000000001.json" in found["problems"][0]
    said = run("verify", "--warehouse", warehouse.root).stdout
    assert f"Snapshot {snapshot} is whole" in said and "nightly/0000000001.json" in said


def test_a_build_older_than_head_ends_with_7(tmp_path: Path) -> None:
    warehouse, head = copy_shared_build(tmp_path / "w")
    corpus = write_corpus(tmp_path / "corpus", dict(list(TEXTS.items())[:4]))

    command = ("build", corpus, "--warehouse", warehouse.root, "--order", "2025-12-31")
    fails(7, ["HEAD never moves back", "2025-12-31"], *command)

    assert resolve_ref(warehouse, "main") == head
    assert len(list_entries(warehouse, "main")) == 1
    assert [*warehouse.staging.iterdir()] == []


def test_a_build_says_everything_in_one_object(tmp_path: Path) -> None:
    command = ("build", shared_corpus(), "--warehouse", tmp_path / "w")

    first = run_json(*command)
    again = run_json(*command)

    fields = "snapshot ref run rows rejects recomputed calls tokens cost seconds gates committed"
    assert set(fields.split()) <= first.keys()
    stages = {stage.name for stage in PIPELINE}
    assert first["recomputed"].keys() == first["seconds"].keys() == stages
    gates = (
        "traceable kept size standing readable consistent shapes checks questions contradictions"
    )
    assert first["gates"].keys() == set(gates.split())
    assert not [said for said in first["gates"].values() if said.startswith("fail")]
    assert (first["committed"], again["committed"]) == ("yes", "unchanged")
    assert first["snapshot"] == again["snapshot"]
    assert set(again["recomputed"].values()) == {0}
    assert first["rows"]["documents"] == len(TEXTS)
    (listed,) = run_json("snapshots", "--warehouse", tmp_path / "w")["snapshots"]
    assert (listed["id"], listed["refs"]) == (first["snapshot"], ["main"])
    assert listed["rows"] == first["rows"]
    for row in run_json("plan", shared_corpus(), "--warehouse", tmp_path / "w")["stages"]:
        assert {"stage", "rows", "cached", "calls", "tokens", "cost"} <= row.keys()
        assert row["rows"] == row["cached"]
        assert row["cost"].keys() == {"low", "expected", "high"}


@pytest.mark.slow
def test_stage_by_stage_makes_the_same_snapshot(tmp_path: Path) -> None:
    _, expected = copy_shared_build(tmp_path / "reference")
    options = ("--warehouse", tmp_path / "w", "--run", "nightly-1")
    for stage in PIPELINE:
        corpus = ("--corpus", shared_corpus()) if stage.name == "ingest" else ()
        shown = run_json("stage", stage.name, *options, *corpus)
        assert {"stage", "shard", "rows", "rejects", "recomputed", "seconds"} <= shown.keys()

    assert shown["snapshot"] == expected
    assert resolve_ref(Warehouse(tmp_path / "w"), "main") == expected


def test_a_stage_called_wrongly_says_how(tmp_path: Path) -> None:
    for arguments, code, said in read_rows("cli.a_stage_called_wrongly_says_how"):
        fails(code, [said], *arguments, "--warehouse", tmp_path / "w")
        assert not (tmp_path / "w").exists()


@pytest.mark.slow
def test_people_are_told_the_same_in_words(tmp_path: Path) -> None:
    lines = show("build", shared_corpus(), "--warehouse", tmp_path / "w").splitlines()

    snapshot = resolve_ref(Warehouse(tmp_path / "w"), "main")
    assert lines[0] == f"Published: main is now at {snapshot}, 5 documents."
    assert len(lines) <= 25
    heads = [line.partition(":")[0].strip() for line in lines[1:4]]
    assert heads == ["Contents", "Classes", "Most facts"]
    assert "Changed: all, this is the first snapshot of its ref." in lines
    (said,) = run("build", shared_corpus(), "--warehouse", tmp_path / "w").stdout.splitlines()
    assert said.startswith(f"Nothing changed: main stays at {snapshot}, 5 documents")
    assert f"Snapshot {snapshot} is whole" in run("verify", "--warehouse", tmp_path / "w").stdout
    assert snapshot in run("snapshots", "--warehouse", tmp_path / "w").stdout
    assert "condense" in run("plan", shared_corpus(), "--warehouse", tmp_path / "w").stdout


def test_an_operator_undoes_last_night_with_one_command(tmp_path: Path) -> None:
    warehouse, last = copy_shared_build(tmp_path / "w")
    place = ("--warehouse", warehouse.root)
    less = write_corpus(tmp_path / "less", dict(list(TEXTS.items())[:4]))
    older = run_json("build", less, *place, "--ref", "trial", "--order", "2025-01-01")["snapshot"]
    run_json("promote", "live", "trial", *place)
    assert run_json("promote", "live", last, *place)["before"] == older

    assert f"kpyramid promote live {last}" in show("rollback", "live", *place)
    logged = run_json("log", "live", *place)["entries"]
    assert [(row["name"], row["action"], row["snapshot"]) for row in logged] == [
        ("live", "rollback", older),
        ("live@1", "promote", last),
        ("live@2", "promote", older),
    ]
    assert "rollback" in run("log", "live", *place).stdout
    assert [*run_json("verify", "live@1", *place)["snapshots"]] == [last]
    assert run_json("tag", "release", "live", *place)["names"] == {"release": older}
    fails(3, ["is a tag"], "promote", "release", "main", *place)
    assert run_json("tag", "release", "--remove", *place)["removed"]
    fails(3, ["use letters, digits"], "rollback", "../main", *place)
    fails(3, ["no snapshot before"], "rollback", "live", *place)
    listed = run_json("runs", *place)["runs"]
    assert [row["snapshot"] for row in listed] == [older, last]
    assert [row["status"] for row in listed] == ["done", "done"]


@pytest.mark.slow
def test_runs_remember_how_they_ended(tmp_path: Path) -> None:
    """Refused by a gate, failed, killed, waiting: each with its end, its error and figures."""
    warehouse, _ = copy_shared_build(tmp_path / "w")
    place = ("--warehouse", warehouse.root)
    less = write_corpus(tmp_path / "less", {"batt.txt": TEXTS["batt.txt"]})
    assert run("build", less, *place).exit_code == 4
    for name, corpus, code in (("night", tmp_path / "no", 3), ("half", less, 0)):
        done = run("stage", "ingest", "--run", name, "--corpus", corpus, *place)
        assert done.exit_code == code
    rows = {row["run"]: row for row in run_json("runs", *place)["runs"]}
    half, night = rows["half"], rows["night"]
    (refused,) = (row for row in rows.values() if row["status"] == "refused")
    assert (half["status"], half["stages"], half["error"]) == ("waiting", 1, None)
    assert (night["status"], night["exit_code"]) == ("failed", 3)
    assert str(tmp_path / "no") in night["error"]
    assert (refused["refused_by"], refused["exit_code"]) == (["size"], 4)
    assert refused["figures"]["documents"] == 1
    assert all(row["ended"] >= row["started"] and row["host"] for row in (half, night, refused))

    record = warehouse.runs / "half" / "run.json"
    process = subprocess.check_output([sys.executable, "-c", _NAME_PROCESS], text=True).strip()
    said = {"status": "running", "process": process}
    record.write_text(json.dumps(json.loads(record.read_bytes()) | said))
    (warehouse.runs / "night" / "run.json").write_text("[")
    (warehouse.runs / "odd").mkdir()
    report = warehouse.runs / str(refused["run"]) / "report.json"
    told = run("runs", str(refused["run"]), *place).stdout
    assert "refused by size" in told and "Gate size: fail" in told and "gate kept: pass" in told
    report.write_text('{"run": 3, "content": []}')
    assert "refused by size" in run("runs", str(refused["run"]), *place).stdout
    report.write_text("[")
    assert "extract" in run("runs", str(refused["run"]), *place).stdout
    listed = show("runs", *place)
    assert re.search(r"^half +killed .*ended after 1 of its stages$", listed, re.M)
    assert "killed" in run("runs", "half", *place).stdout
    fails(3, ["there is no run 'x'"], "runs", "x", *place)


_NAME_PROCESS = "from kpyramid.storage.layout import name_process; print(name_process())"


def test_the_version_is_that_of_the_installed_package() -> None:
    assert show("--version") == f"kpyramid {importlib.metadata.version('kpyramid')}\n"
