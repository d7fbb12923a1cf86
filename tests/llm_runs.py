"""Runs that ask a server item by item through caller, endpoint, HTTP, cache, locks and books.

    python -m tests.llm_runs URL FOLDER ITEMS [STEP:N]     # dies as by `kill -9` at the N-th STEP
STEP: `send` (before a call), `received` (its reply not stored), `stored` (not yet read).
"""

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from kpyramid.errors import PyramidError
from kpyramid.keys import JsonValue
from kpyramid.llm.cache import FailureEntry, ReplyCache
from kpyramid.llm.caller import Caller, KeyLocks
from kpyramid.llm.endpoint import Endpoint, HttpTransport, open_transport
from kpyramid.llm.ledger import Ledger, Totals, read_totals
from kpyramid.llm.task import (
    Failure,
    FailureKind,
    Message,
    ReplyError,
    Request,
    describe_model,
    parse_json,
)
from kpyramid.settings import LLMSettings
from kpyramid.storage.store import FolderStore
from tests.loopback import Loopback
from tests.loopback_replies import answer_by_schema

TASK = "item"


class Item(BaseModel):
    """What the reply to an item looks like."""

    model_config = ConfigDict(extra="forbid")

    name: str
    colour: str


class Time:
    """A clock that sleeping moves; nobody waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept = 0.0
        self._guard = threading.Lock()

    def read(self) -> float:
        """Seconds."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Moves the clock."""
        with self._guard:
            self.now += seconds
            self.slept += seconds


@dataclass
class Run:
    """What a run did: an outcome per item that was asked, calls, and what ended it early."""

    outcomes: dict[int, Item | Failure] = field(default_factory=dict)
    error: PyramidError | None = None
    probe: Mapping[str, JsonValue] = field(default_factory=dict)
    calls: int = 0
    slept: float = 0.0
    totals: Totals = field(default_factory=Totals)

    @property
    def answered(self) -> set[int]:
        """The items that have an answer."""
        return {n for n, outcome in self.outcomes.items() if isinstance(outcome, Item)}

    @property
    def failures(self) -> dict[int, FailureKind]:
        """The items that have none, and why."""
        return {n: o.kind for n, o in self.outcomes.items() if isinstance(o, Failure)}


def make_request(number: int, max_tokens: int = 64) -> Request:
    """The request for an item; its text names the item."""
    return Request(
        task=TASK,
        version=1,
        messages=(Message("system", "Name it."), Message("user", f"Item {number:03d}.")),
        schema={
            "type": "object",
            "properties": {"name": {"type": "string"}, "colour": {"enum": ["teal", "ochre"]}},
            "required": ["name", "colour"],
            "additionalProperties": False,
        },
        max_tokens=max_tokens,
        stage="extract",
        document=f"doc-{number}",
        subject=f"Item {number:03d}.",
    )


def answer_item(body: dict[str, Any]) -> str:
    """The good reply to an item, or to the probe."""
    text = body["messages"][-1]["content"]
    if not text.startswith("Item "):
        return answer_by_schema(body)
    return json.dumps({"name": text, "colour": "teal"})


def parse_item(number: int) -> Callable[[str], Item]:
    """A parser that takes the reply to this very item only."""

    def parse(content: str) -> Item:
        item = parse_json(content, Item)
        if item.name != f"Item {number:03d}.":
            raise ReplyError(FailureKind.INVALID, f"about {item.name!r}")
        return item

    return parse


def count_items(server: Loopback) -> Counter[int]:
    """How often each item was asked."""
    texts = [e["body"]["messages"][-1]["content"] for e in server.log if e["schema"] == TASK]
    return Counter(int(text[5:8]) for text in texts)


def open_cache(folder: Path) -> ReplyCache:
    """The cache of the runs in a folder."""
    return ReplyCache(FolderStore(folder / "cache"))


def run_items(
    base_url: str,
    folder: Path,
    items: int = 6,
    *,
    concurrency: int = 4,
    max_tokens: int = 64,
    clock: Time | None = None,
    name: str = "run",
    **llm: Any,
) -> Run:
    """Asks for all items; threads stop at the first error. Without a clock it really waits."""
    settings = LLMSettings(
        **{
            "provider": "openai",
            "model": "loopback",
            "base_url": base_url,
            "concurrency": concurrency,
            "timeout": 5.0,
            **llm,
        }
    )
    run = Run()
    sleep = clock.sleep if clock else time.sleep
    ledger = Ledger(folder / name / "ledger.jsonl", settings)
    read = clock.read if clock else time.time
    record = folder / name / "probe.json"
    opened: list[HttpTransport] = []

    def connect(*pay: Any) -> HttpTransport:
        opened.append(open_transport(settings, record, *pay))
        return opened[-1]

    endpoint = Endpoint(connect, ledger, max_wait=settings.max_wait, clock=read, sleep=sleep)
    caller = Caller(
        describe_model(settings), endpoint, open_cache(folder), KeyLocks(folder / "locks")
    )

    def ask(number: int) -> None:
        if run.error is None:
            try:
                request = make_request(number, max_tokens)
                run.outcomes[number] = caller.ask(request, parse_item(number))
            except PyramidError as e:
                run.error = e

    with ThreadPoolExecutor(concurrency) as pool:
        list(pool.map(ask, range(items)))
    for transport in opened:
        transport.close()
    run.calls = endpoint.calls
    run.totals = read_totals(folder / name)
    run.probe = json.loads(record.read_bytes()) if record.exists() else {}
    run.slept = clock.slept if clock else 0.0
    return run


def die_at(step: str, number: int) -> None:
    """Arranges this process's death at the n-th such step."""
    guard, count = threading.Lock(), 0

    def tick() -> None:
        nonlocal count
        with guard:
            count += 1
            if count >= number:
                os.kill(os.getpid(), signal.SIGKILL)

    def wrap(place: Any, name: str, *, after: bool) -> None:
        real = getattr(place, name)

        def function(*args: Any, **options: Any) -> Any:
            if not after:
                tick()
            result = real(*args, **options)
            if after:
                tick()
            return result

        setattr(place, name, function)

    place, name, after = {
        "send": (HttpTransport, "send", False),
        "received": (HttpTransport, "send", True),
        "stored": (ReplyCache, "keep_reply", True),
    }[step]
    wrap(place, name, after=after)


def main() -> None:
    """See the module."""
    base_url, folder, items, *death = sys.argv[1:]
    for plan in death:
        step, _, number = plan.partition(":")
        die_at(step, int(number))
    run = run_items(base_url, Path(folder), int(items), name=f"run-{os.getpid()}")
    raise SystemExit(run.error.exit_code if run.error else len(run.failures))


ITEMS = 6
SICK = 3
"""The item that faults of one item strike."""


@dataclass(frozen=True)
class Lab:
    """A server and a folder; runs of it in which nobody really waits."""

    server: Loopback
    folder: Path

    def run(self, name: str = "run", **options: Any) -> Run:
        return run_items(
            self.server.base_url, self.folder, ITEMS, name=name, clock=Time(), **options
        )

    def count_items(self) -> Counter[int]:
        return count_items(self.server)

    def check_books(self, *runs: Run) -> None:
        check_books(self.server, *runs)

    def check_healed(self, *before: Run, asked: int) -> Run:
        """The next run asks only for what is missing, and the one after it for nothing."""
        server = self.server
        server.faults.clear()
        calls = server.calls(schema=TASK)
        healed = self.run("healed")
        assert healed.error is None
        assert healed.answered == set(range(ITEMS))
        assert server.calls(schema=TASK) - calls == asked
        check_books(server, *before, healed)
        calls = server.calls()
        assert self.run("again").answered == set(range(ITEMS))
        assert server.calls() == calls, "an unchanged run asks nothing, not even whether it could"
        return healed

    def read_failed(self) -> list[FailureEntry]:
        """The failures in the cache."""
        return list(open_cache(self.folder).list_failures())


def check_books(server: Loopback, *runs: Run) -> None:
    """Every call at the server stands in the books of a run, and none that was not made."""
    assert sum(r.totals.run.calls for r in runs) == sum(r.calls for r in runs) == server.calls()
    assert all(r.totals.run.open == 0 for r in runs)


if __name__ == "__main__":
    main()
