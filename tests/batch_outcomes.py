"""Batches from outside: a desk in its own process; what store, books and server hold afterwards."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from kpyramid.llm.batch_collect import Collection, collect
from kpyramid.llm.batches import Record, read_records
from kpyramid.llm.books import read_lines
from kpyramid.llm.cache import ReplyCache
from kpyramid.llm.stores import FolderStore
from kpyramid.model_settings import LLMSettings
from tests.batch_desk import RUN, open_till
from tests.loopback import Loopback

DAY = 86_400.0
NOW = 1_000_000.0


def run_child(verb: str, server: Loopback, folder: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.batch_desk", verb, server.base_url, str(folder), *more]
    return subprocess.Popen(command, cwd=Path(__file__).parent.parent)


def list_records(folder: Path) -> list[Record]:
    return read_records(FolderStore(folder / "store"))


def list_replies(folder: Path) -> set[str]:
    return {key for key, _ in ReplyCache(FolderStore(folder / "store")).list_replies()}


def collect_twice(settings: LLMSettings, folder: Path) -> Collection:
    """The first look only sees the batch in progress."""
    collect(open_till(settings, folder))
    return collect(open_till(settings, folder))


def list_asked(server: Loopback) -> list[str]:
    """The custom_ids of all batches that were created, with repetitions."""
    used = [batch["input_file_id"] for batch in server.batches.batches.values()]
    lines = [line for file in used for line in server.batches.contents[file].splitlines()]
    return [json.loads(line)["custom_id"] for line in lines]


def count_booked(folder: Path) -> Counter[str]:
    """Settled and billed lines per name."""
    lines, torn = read_lines(folder / "runs" / RUN / "ledger.jsonl")
    assert torn == 0
    return Counter(
        str(line["name"]) for line in lines if line["event"] == "settled" and line["billed"]
    )
