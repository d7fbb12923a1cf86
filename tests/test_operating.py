"""What an operator asks of a warehouse: doctor, verify --deep, rejects; and bits that turn."""

import json
import os
import shutil
from pathlib import Path

import pytest
from flips import turn_bits

from kpyramid.cli import doctor
from kpyramid.cli.rejects import _find_sentence
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.snapshots import MANIFEST, SUMS
from kpyramid.storage.verification import check_bytes
from tests.asked_model import write_llm
from tests.commands import fails, run, run_json, show
from tests.corpora import copy_shared_build
from tests.loopback import serve


@pytest.fixture
def built(tmp_path: Path) -> tuple[Warehouse, str]:
    return copy_shared_build(tmp_path / "w")


def test_every_turned_bit_of_a_snapshot_is_found(built: tuple[Warehouse, str]) -> None:
    warehouse, snapshot = built
    flips = [*turn_bits(warehouse.snapshots / snapshot, 120, seed=4)]

    assert [flip for flip in flips if not flip.is_found] == []
    assert check_bytes(warehouse.snapshots / snapshot) == []


@pytest.mark.parametrize("name", [SUMS, MANIFEST])
def test_every_turned_bit_of_sums_and_manifest_is_found(
    built: tuple[Warehouse, str], name: str
) -> None:
    folder = built[0].snapshots / built[1]
    path = folder / name
    whole = path.read_bytes()
    ends = [at for at, byte in enumerate(whole) if byte in b'\n "'][-12:]
    for place in {*ends, 0, 64, 65, 66, len(whole) - 1}:
        for bit in range(8):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << bit]) + whole[place + 1 :])
            assert check_bytes(folder), (place, bit)


def test_deep_goes_on_and_says_what_is_wrong_in_each_file(built: tuple[Warehouse, str]) -> None:
    warehouse, snapshot = built
    folder = warehouse.snapshots / snapshot
    table = folder / "tables" / "condensed.parquet"
    data = bytearray(table.read_bytes())
    data[64] ^= 4  # in the first page
    table.write_bytes(data)
    with (folder / "ontology" / "instances.nt").open("a") as file:
        file.write("<no line\n")
    (folder / "ontology" / "schema.ttl").write_text("@prefix : <x#> .\n:a :b .\n")

    deep = run_json("verify", "--deep", "--warehouse", warehouse.root, code=6)
    quick = run_json("verify", "--warehouse", warehouse.root, code=6)

    (problems,) = deep["snapshots"].values()
    said = "\n".join(problems)
    assert "tables/condensed.parquet: its bytes changed" in said
    assert "condensed.parquet is damaged" in said, "the page is named by the reader"
    assert "ontology/instances.nt: " in said
    assert "line" in next(p for p in problems if p.startswith("ontology/schema.ttl: Pars"))
    assert len(quick["problems"]) < len(problems)


def diagnose(*words: object) -> tuple[int, dict[str, dict[str, str]]]:
    done = run("doctor", *words, "--json")
    said = json.loads(done.stdout)
    return done.exit_code, {one["check"]: one for one in said["checks"]}


def test_doctor_finds_a_sound_warehouse_sound(built: tuple[Warehouse, str]) -> None:
    before = sorted(built[0].root.rglob("*"))

    code, found = diagnose("--warehouse", built[0].root)

    assert (code, {one["state"] for one in found.values()} - {"warn"}) == (0, {"ok"})
    assert {"disk", "store", "refs", "java", "embedding", "endpoint"} <= found.keys()
    assert sorted(built[0].root.rglob("*")) == before, "it leaves nothing behind"
    assert "embedding" in run("doctor", "--warehouse", built[0].root).stdout


def test_doctor_says_what_is_wrong_and_what_to_do(
    built: tuple[Warehouse, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    warehouse, snapshot = built
    shutil.rmtree(warehouse.snapshots / snapshot)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(doctor, "_LEAST_BYTES", 2**60)
    more = '[condense]\nmode = "llm"\n[embed]\nmodel = "nowhere"\n'
    settings = write_llm(tmp_path, "http://127.0.0.1:9/v1", more)

    code, found = diagnose("--warehouse", warehouse.root, "--settings", settings)

    assert code == 8
    assert "not there" in found["refs"]["detail"]
    assert "gc" in found["disk"]["advice"]
    assert found["java"]["state"] == "warn"
    assert found["models"]["state"] == "fail"
    assert "base_url" in found["endpoint llm"]["advice"]


def test_doctor_looks_for_the_model_in_the_endpoints_list(tmp_path: Path) -> None:
    advice = "correct llm.model, or let the server load it; it lists good, other"
    for model, state, said in (("good", "ok", ""), ("goood", "warn", advice)):
        with serve(models=["good", "other"]) as server:
            more = '[condense]\nmode = "llm"\n'
            settings = write_llm(tmp_path, server.base_url, more, model)
            _, found = diagnose("--warehouse", tmp_path / "w", "--settings", settings)
        assert (found["endpoint llm"]["state"], found["endpoint llm"]["advice"]) == (state, said)


def test_doctor_refuses_a_store_without_links(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "link", lambda source, target: shutil.copy(source, target) and None)
    code, found = diagnose("--warehouse", tmp_path / "w")
    assert (code, found["store"]["state"]) == (8, "fail")
    assert "both win a ref" in found["store"]["advice"]


@pytest.mark.parametrize(
    ("detail", "sentence"),
    [
        ("characters 21-24: was", "It was lost."),
        ("characters 18-30: It was lost.", None),  # which it is already
        ("characters 900-903: was", None),
        ("page 3 has no text", None),
    ],
)
def test_a_reject_is_shown_in_its_sentence(detail: str, sentence: str | None) -> None:
    text = "The key is brass. It was lost. Ada Holm found it."

    assert _find_sentence({"detail": detail}, text) == sentence
    assert _find_sentence({"detail": detail}, None) is None


def test_rejects_are_listed_by_stage_reason_and_document(built: tuple[Warehouse, str]) -> None:
    place = ("--warehouse", built[0].root)
    whole = run_json("rejects", *place, "--limit", "0")
    assert whole["total"] == len(whole["rejects"]) == sum(c["rows"] for c in whole["counts"])
    first = next(row for row in whole["rejects"] if row["document_id"])

    for option, name in (("--stage", "stage"), ("--reason", "reason"), ("--document", "source")):
        rows = run_json("rejects", *place, option, first[name], "--limit", "0")["rejects"]
        assert rows == [row for row in whole["rejects"] if row[name] == first[name]]
    by_id = show("rejects", *place, "--document", first["document_id"], "--limit", "1")
    assert first["source"] in by_id
    fails(3, "there are", "rejects", *place, "--stage", "ingets")
