"""Submitting and collecting on a loopback server, and what store, books and server hold afterwards.

As a program, for tests that kill it; it dies after REPLIES replies:
python -m tests.batch_desk submit|collect BASE_URL FOLDER [REPLIES]
"""

import functools
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import openai

from kpyramid.keys import JsonValue
from kpyramid.llm.batch.collect import Collection, collect
from kpyramid.llm.batch.jobs import LIMITS, Desk, Limits, Record, read_records
from kpyramid.llm.batch.submit import ShapeRequest, Submission
from kpyramid.llm.batch.submit import submit as send
from kpyramid.llm.cache import ReplyCache
from kpyramid.llm.endpoint import Dialect, find_place, open_connection, shape_request
from kpyramid.llm.ledger import Ledger, Spent, read_lines, read_totals
from kpyramid.llm.task import Message, Request, describe_model, key_request
from kpyramid.settings import LLMSettings, ModelPrice
from kpyramid.storage.store import FolderStore
from tests.loopback import Loopback
from tests.rows import read_bodies

RUN = "nightly"
PRICES = {"small": ModelPrice(input=1.0, output=4.0)}
HASTY = replace(LIMITS, doubt=0.0)
"""Believes at once what the server denies."""
DAY, NOW = 86_400.0, 1_000_000.0

SCHEMA: Mapping[str, JsonValue] = read_bodies("batch_desk.schema")


def make_settings(base_url: str | None, **values: object) -> LLMSettings:
    options = {"provider": "openai", "model": "small", "prices": PRICES, **values}
    return LLMSettings(base_url=base_url, **options)  # type: ignore[arg-type]


def make_request(number: int) -> Request:
    messages = (Message("system", "List the claims."), Message("user", f"Text {number}."))
    return Request(
        "claims", 1, messages, SCHEMA, 100, "extract", f"document-{number}", f"Text {number}."
    )


@functools.cache
def _share_client(base_url: str, key: str) -> openai.OpenAI:
    """One for all desks and tills of a test: to make one takes longer than to use it."""
    return open_connection(make_settings(base_url)).client


def find_client(settings: LLMSettings) -> openai.OpenAI:
    return _share_client(find_place(settings).base_url, os.environ.get(settings.api_key_env, ""))


def open_books(folder: Path, settings: LLMSettings, run: str = RUN) -> Ledger:
    return Ledger(folder / "runs" / run / "ledger.jsonl", settings)


def submit(
    pending: Mapping[str, Request], desk: Desk, shape: ShapeRequest | None = None
) -> Submission:
    """Submits as the run does that the books of a desk are of."""
    ledger = desk.open_ledger(RUN)
    assert ledger is not None
    shape = shape or (lambda one: shape_request(one, Dialect("max_tokens"), desk.settings))
    return send(pending, desk, ledger, RUN, shape)


@dataclass(frozen=True)
class Bench:
    """A server, settings that lead to it, and a folder with a store and the books of a run."""

    server: Loopback
    folder: Path
    settings: LLMSettings

    def open(self, *, limits: Limits = HASTY, later: float = 0.0) -> Desk:
        """A desk at some seconds after the beginning."""
        blobs = FolderStore(self.folder / "store")
        books = {RUN: open_books(self.folder, self.settings)}
        client, cache = find_client(self.settings), ReplyCache(blobs)
        return Desk(client, cache, blobs, self.settings, books.get, limits, lambda: NOW + later)

    def pend(self, count: int, first: int = 0) -> dict[str, Request]:
        model = describe_model(self.settings)
        requests = [make_request(number) for number in range(first, first + count)]
        return {key_request(request, model): request for request in requests}

    def submit(self, pending: Mapping[str, Request], **desk: Any) -> Submission:
        return submit(pending, self.open(**desk))

    def collect(self, **desk: Any) -> Collection:
        return collect(self.open(**desk))

    def collect_twice(self) -> Collection:
        """The first look only sees the batch in progress."""
        self.collect()
        return self.collect()

    def count_spent(self) -> Spent:
        """What counts against the budget by now."""
        return open_books(self.folder, self.settings).spent()

    def count_owed(self) -> int:
        """The calls that are reserved and not settled."""
        return read_totals(self.folder / "runs" / RUN).run.open

    def count_booked(self) -> Counter[str]:
        """Settled and billed lines per name."""
        lines, torn = read_lines(self.folder / "runs" / RUN / "ledger.jsonl")
        assert torn == 0
        return Counter(
            str(line["name"]) for line in lines if line["event"] == "settled" and line["billed"]
        )

    def list_records(self) -> list[Record]:
        return read_records(FolderStore(self.folder / "store"))

    @property
    def cache(self) -> ReplyCache:
        return ReplyCache(FolderStore(self.folder / "store"))

    def list_replies(self) -> set[str]:
        return {key for key, _ in self.cache.list_replies()}

    def list_asked(self) -> list[str]:
        """The custom_ids of all batches that were created, with repetitions."""
        held = self.server.batches
        used = [batch["input_file_id"] for batch in held.batches.values()]
        lines = [line for file in used for line in held.contents[file].splitlines()]
        return [json.loads(line)["custom_id"] for line in lines]

    def run_child(self, verb: str, *more: str) -> subprocess.Popen[bytes]:
        words = [verb, self.server.base_url, str(self.folder), *more]
        command = [sys.executable, "-m", "tests.batch_desk", *words]
        return subprocess.Popen(command, cwd=Path(__file__).parent.parent)


class DyingCache(ReplyCache):
    """A cache whose process is killed when it has kept so many replies."""

    left = 0

    def keep_reply(
        self, key: str, request: Request, raw: Mapping[str, JsonValue]
    ) -> Mapping[str, JsonValue]:
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        return super().keep_reply(key, request, raw)


def main() -> None:
    verb, base_url, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    server: Any = None  # in another process
    bench = Bench(server, folder, make_settings(base_url, concurrency=1))
    if verb == "submit":
        bench.submit(bench.pend(4))
        return
    cache = DyingCache(bench.open().blobs)
    cache.left = int(sys.argv[4])
    collect(replace(bench.open(), cache=cache))


if __name__ == "__main__":
    main()
