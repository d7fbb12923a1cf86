"""One decision of a model behind a real server: scripted replies by task, items to read."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kpyramid.llm.caller import Caller
from kpyramid.pipeline.models import Opener
from kpyramid.query.types import Item
from kpyramid.snapshot.evidence import Evidence
from kpyramid.storage.layout import Warehouse
from tests.corpora import make_settings
from tests.loopback import Answer, Loopback, answer_by_schema, serve

Reply = Mapping[str, Any] | str | Answer
Script = Callable[[dict[str, Any]], Reply] | Reply
PATIENCE = 0.4
"""Seconds: a test waits for nobody."""


def script(**replies: Script) -> Callable[[dict[str, Any]], str | Answer]:
    """A model that replies by task, and to a probe as its schema says."""

    def answer(body: dict[str, Any]) -> str | Answer:
        task = body["response_format"]["json_schema"]["name"]
        if task not in replies:
            return answer_by_schema(body)
        reply = replies[task]
        made = reply(body) if callable(reply) else reply
        return made if isinstance(made, str | Answer) else json.dumps(made, ensure_ascii=False)

    return answer


def write_llm(folder: Path, url: str, more: str = "", model: str = "m") -> Path:
    """A file of settings with a model's endpoint, and further lines of its table or of others."""
    path = folder / "settings.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'[llm]\nprovider = "openai"\nmodel = "{model}"\nbase_url = "{url}"\n{more}', "utf-8"
    )
    return path


@contextmanager
def open_caller(server: Loopback | str, folder: Path, **llm: object) -> Iterator[Caller]:
    """What asks the server; its replies are kept below the folder."""
    url = server if isinstance(server, str) else server.base_url
    settings = make_settings(
        llm={"provider": "openai", "model": "m", "base_url": url, "max_wait": PATIENCE, **llm}
    )
    books = folder / "books"
    books.mkdir(parents=True, exist_ok=True)
    with Opener(Warehouse(folder / "w"), settings, books, "") as opener:
        yield opener.open_model().caller


@contextmanager
def ask_scripted(folder: Path, **replies: Script) -> Iterator[tuple[Loopback, Caller]]:
    """A server with these replies, and what asks it."""
    with serve(script(**replies)) as server, open_caller(server, folder) as caller:
        yield server, caller


def list_prompts(server: Loopback, task: str) -> list[tuple[str, str]]:
    """System and user message of each call of a task."""
    bodies = [entry["body"] for entry in server.log if entry["schema"] == task]
    return [(b["messages"][0]["content"], b["messages"][1]["content"]) for b in bodies]


def make_item(number: int, text: str, layer: str = "text") -> Item:
    """A piece of context whose place is a document of its own."""
    place = Evidence(f"d{number}", f"c{number}", 0, len(text), text, f"{number}.txt")
    return Item(f"c{number}", text, layer, 1.0 / number, (place,))
