"""A worker that dies: a clear end, and what is done is kept."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.commands import run_json
from tests.corpora import DEMO, ROOT, write_corpus


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
    # More than the 24 texts from which several processes read.
    passages = "\n".join(DEMO.read_text("utf-8").splitlines()[:40])
    corpus = write_corpus(tmp_path / "corpus", {"passages.jsonl": passages})
    command = [sys.executable, "-m", "kpyramid", "build", str(corpus), "--workers", "2"]
    process = subprocess.Popen(
        [*command, "--warehouse", str(tmp_path / "w")],
        env=os.environ | {"PYTHONPATH": str(ROOT / "etl")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
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
