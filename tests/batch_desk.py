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
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

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

RUN = "nightly"
PRICES = {"small": ModelPrice(input=1.0, output=4.0)}
HASTY = replace(LIMITS, doubt=0.0)
"""Believes at once what the server denies."""

SCHEMA: Mapping[str, JsonValue] = {
    "type": "object",
    "properties": {"claims": {"type": "array", "items": {"type": "string"}}},
    "required": ["claims"],
    "additionalProperties": False,
}


def make_settings(base_url: str | None, **values: object) -> LLMSettings:
    options = {"provider": "openai", "model": "small", "prices": PRICES, **values}
    return LLMSettings(base_url=base_url, **options)  # type: ignore[arg-type]


def make_request(number: int) -> Request:
    messages = (Message("system", "List the claims."), Message("user", f"Text {number}."))
    return Request(
        "claims", 1, messages, SCHEMA, 100, "extract", f"document-{number}", f"Text {number}."
    )


def make_pending(settings: LLMSettings, count: int, first: int = 0) -> dict[str, Request]:
    model = describe_model(settings)
    requests = [make_request(number) for number in range(first, first + count)]
    return {key_request(request, model): request for request in requests}


@functools.cache
def _share_client(base_url: str, key: str) -> openai.OpenAI:
    """One for all desks and tills of a test: to make one takes longer than to use it."""
    return open_connection(make_settings(base_url)).client


def find_client(settings: LLMSettings) -> openai.OpenAI:
    return _share_client(find_place(settings).base_url, os.environ.get(settings.api_key_env, ""))


def open_books(folder: Path, settings: LLMSettings, run: str = RUN) -> Ledger:
    return Ledger(folder / "runs" / run / "ledger.jsonl", settings)


def open_desk(
    settings: LLMSettings,
    folder: Path,
    *,
    limits: Limits = HASTY,
    now: Callable[[], float] = lambda: 1_000_000.0,
) -> Desk:
    blobs = FolderStore(folder / "store")
    books = {RUN: open_books(folder, settings)}
    client = find_client(settings)
    return Desk(client, ReplyCache(blobs), blobs, settings, books.get, limits, now)


def submit(
    pending: Mapping[str, Request], desk: Desk, shape: ShapeRequest | None = None
) -> Submission:
    """Submits as the run does that the books of a desk are of."""
    ledger = desk.open_ledger(RUN)
    assert ledger is not None
    shape = shape or (lambda one: shape_request(one, Dialect("max_tokens"), desk.settings))
    return send(pending, desk, ledger, RUN, shape)


def count_spent(settings: LLMSettings, folder: Path) -> Spent:
    """What counts against the budget by now."""
    return open_books(folder, settings).spent()


def count_owed(folder: Path) -> int:
    """The calls that are reserved and not settled."""
    return read_totals(folder / "runs" / RUN).run.open


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
    settings = make_settings(base_url, concurrency=1)
    if verb == "submit":
        submit(make_pending(settings, 4), open_desk(settings, folder))
        return
    desk = open_desk(settings, folder)
    cache = DyingCache(desk.blobs)
    cache.left = int(sys.argv[4])
    collect(replace(desk, cache=cache))


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
    collect(open_desk(settings, folder))
    return collect(open_desk(settings, folder))


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


if __name__ == "__main__":
    main()
