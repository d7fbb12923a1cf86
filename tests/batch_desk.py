"""Submitting and collecting on a loopback server; as a program, for tests that kill it.

python -m tests.batch_desk submit|collect BASE_URL FOLDER [REPLIES]   # dies after REPLIES replies
"""

import functools
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import openai

from kpyramid.keys import JsonValue
from kpyramid.llm.batch_collect import Till, collect
from kpyramid.llm.batch_submit import Desk, submit
from kpyramid.llm.batches import LIMITS, Limits
from kpyramid.llm.cache import ReplyCache
from kpyramid.llm.ledger import Ledger
from kpyramid.llm.probe import Dialect
from kpyramid.llm.stores import FolderStore
from kpyramid.llm.transport import open_client, shape_request
from kpyramid.llm.types import Message, Request, describe_model, key_request
from kpyramid.model_settings import LLMSettings, ModelPrice

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


def make_settings(base_url: str, **values: object) -> LLMSettings:
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
    return open_client(make_settings(base_url))


def find_client(settings: LLMSettings) -> openai.OpenAI:
    return _share_client(str(settings.base_url), os.environ.get(settings.api_key_env, ""))


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
    return Desk(
        find_client(settings),
        lambda request: shape_request(request, Dialect("max_tokens"), settings),
        ReplyCache(blobs),
        blobs,
        open_books(folder, settings),
        RUN,
        settings,
        lambda run: None,
        limits,
        now,
    )


def open_till(
    settings: LLMSettings,
    folder: Path,
    *,
    limits: Limits = HASTY,
    now: Callable[[], float] = lambda: 1_000_000.0,
) -> Till:
    blobs = FolderStore(folder / "store")
    ledger = open_books(folder, settings)
    return Till(
        find_client(settings),
        ReplyCache(blobs),
        blobs,
        {RUN: ledger}.get,
        settings,
        limits,
        now,
    )


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
    till = open_till(settings, folder)
    cache = DyingCache(till.blobs)
    cache.left = int(sys.argv[4])
    collect(replace(till, cache=cache))


if __name__ == "__main__":
    main()
