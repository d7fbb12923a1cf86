"""Other processors, a worker that dies: the same bytes, or a clear end."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import run_json
from tests.corpora import DEMO, ROOT, write_corpus

FEW = 30
"""Passages: more than the 24 texts from which several processes read."""


def build(
    corpus: Path, warehouse: Path, *options: str, workers: int = 2, **variables: str
) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "kpyramid", "build", str(corpus), "--json", "--workers"]
    return subprocess.Popen(
        [*command, str(workers), "--warehouse", str(warehouse), *options],
        env=os.environ | {"PYTHONPATH": str(ROOT / "etl")} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: "subprocess.Popen[str]") -> dict[str, object]:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    report: dict[str, object] = json.loads(out)
    return report


def write_passages(folder: Path, count: int) -> Path:
    """A corpus of the first passages of the demo."""
    lines = DEMO.read_text("utf-8").splitlines()[:count]
    return write_corpus(folder / "corpus", {"passages.jsonl": "\n".join(lines)})


def find_children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(child) for child in text.split()]


def is_extracting(process: int) -> bool:
    """Whether it is a worker (the resource tracker is a child too) that has loaded the parser."""
    command = Path(f"/proc/{process}/cmdline").read_text()
    return "spawn_main" in command and "blis" in Path(f"/proc/{process}/maps").read_text()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's /proc")
def test_killed_worker_ends_build_and_what_is_done_is_kept(tmp_path: Path) -> None:
    corpus = write_passages(tmp_path, FEW + 10)
    process = build(corpus, tmp_path / "w")
    deadline = time.monotonic() + 120
    workers: list[int] = []
    while len(workers) < 2:
        assert time.monotonic() < deadline and process.poll() is None
        workers = [child for child in find_children(process.pid) if is_extracting(child)]
        time.sleep(0.05)
    os.kill(workers[0], signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "a worker process died" in err and "run the command again" in err
    assert not list((tmp_path / "w" / "staging").glob("*"))
    assert run_json("build", corpus, "--warehouse", tmp_path / "w")["committed"] == "yes"


@pytest.mark.slow
def test_threads_and_processor_kernels_of_blas_change_nothing(tmp_path: Path) -> None:
    """From the same vectors on, for these are the model's: the numbers after them are ours."""
    corpus = write_passages(tmp_path, FEW)
    built = run_json("build", corpus, "--warehouse", tmp_path / "built")
    for name, variables in {
        "one": {"OPENBLAS_NUM_THREADS": "1"},
        "old": {"OPENBLAS_CORETYPE": "Nehalem"},
    }.items():
        shutil.copytree(tmp_path / "built/cache/rows", tmp_path / name / "cache/rows")
        again = finish(build(corpus, tmp_path / name, **variables))
        assert again["snapshot"] == built["snapshot"], name
        assert again["recomputed"]["complete"] > 0  # type: ignore[index]
