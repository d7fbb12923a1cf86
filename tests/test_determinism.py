"""The same corpus gives the same bytes: whatever the machine, the workers, the place, the clock."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kpyramid.settings import Settings
from kpyramid.storage.layout import Warehouse
from kpyramid.storage.verification import check_bytes
from tests.corpora import DEMO, ROOT, build_corpus, hash_tree, write_corpus

DOCUMENTS = 32
"""More than the 24 texts from which the extractor uses several processes."""


def write_first_sentences(path: Path) -> Path:
    """The titles and two first sentences of the demo corpus: few facts, many documents."""
    rows = [json.loads(line) for line in DEMO.read_text("utf-8").splitlines()[:DOCUMENTS]]
    path.parent.mkdir(parents=True)
    texts = (". ".join(row["text"].split(". ")[:2]) + "." for row in rows)
    short = [{**row, "text": text} for row, text in zip(rows, texts, strict=True)]
    path.write_text("\n".join(map(json.dumps, short)))
    return path


@pytest.mark.slow
def test_workers_places_seeds_zones_threads_and_processor_kernels_give_the_same_bytes(
    tmp_path: Path,
) -> None:
    """One build here with one worker, one by `python -m kpyramid` with two, elsewhere."""
    here = write_first_sentences(tmp_path / "here" / "corpus.jsonl")
    there = write_first_sentences(tmp_path / "there" / "deeper" / "corpus.jsonl")
    other = tmp_path / "other"
    command = [sys.executable, "-m", "kpyramid", "build", str(there.parent), "--json"]
    options = ["--warehouse", str(other), "--workers", "2"]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "etl"),
        "PYTHONHASHSEED": "7",
        "TZ": "Pacific/Auckland",
        "LC_ALL": "C",
        "OMP_NUM_THREADS": "2",
        "OPENBLAS_NUM_THREADS": "2",
        "OPENBLAS_CORETYPE": "Nehalem",
    }

    done = subprocess.run(
        [*command, *options], env=environment, cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    warehouse = Warehouse(tmp_path / "w")
    outcome = build_corpus(here.parent, warehouse, Settings(), workers=1)

    assert report["rows"]["chunks"] >= DOCUMENTS
    assert report["rows"]["proposals"] and report["recomputed"]["complete"] > 0
    assert hash_tree(other / "snapshots" / report["snapshot"]) == hash_tree(
        warehouse.snapshots / outcome.snapshot
    )
    assert report["snapshot"] == outcome.snapshot
    assert check_bytes(warehouse.snapshots / outcome.snapshot) == []


@pytest.mark.slow
@pytest.mark.usefixtures("quick_models")
def test_the_order_in_which_texts_were_computed_changes_nothing(tmp_path: Path) -> None:
    """Half the corpus first, then all, gives what all at once gives."""
    all_at_once = build_corpus(write_corpus(tmp_path / "c"), Warehouse(tmp_path / "one"))
    step = Warehouse(tmp_path / "two")
    for name in ("zorblax.txt", "lake.txt"):
        part = tmp_path / name.removesuffix(".txt")
        part.mkdir()
        (part / name).write_bytes((tmp_path / "c" / name).read_bytes())
        build_corpus(part, step, ref=part.name)

    assert build_corpus(tmp_path / "c", step).snapshot == all_at_once.snapshot
    assert hash_tree(step.snapshots / all_at_once.snapshot) == hash_tree(
        tmp_path / "one" / "snapshots" / all_at_once.snapshot
    )
