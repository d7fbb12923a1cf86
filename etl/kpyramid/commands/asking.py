"""What `kpyramid ask` does: opens a snapshot and, when a decision is a model's, the model."""

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kpyramid.errors import InputError, SettingsError
from kpyramid.llm.connection import read_key
from kpyramid.llm.totals import read_totals
from kpyramid.model_settings import QuerySettings
from kpyramid.models import Opener
from kpyramid.query import STRATEGIES, Answer, Backends, Snapshot, answer, open_snapshot
from kpyramid.query.pyramid.scopes import PUBLIC, Scope
from kpyramid.settings import Settings
from kpyramid.warehouse.layout import Warehouse, open_warehouse

PATIENCE = 30.0
"""Seconds that a question waits for an endpoint that is busy or failing; a build waits
`llm.max_wait`. One call that hangs takes `llm.timeout` on top."""
_MOST_BYTES = 100_000
"""Of a question on standard input; more is no question."""
_NO_REF = ""
"""No run is of this ref, so no build's spending counts against a question's budget."""


def override(settings: Settings, **given: str | None) -> Settings:
    """The settings with the options of the command in [query]; what was not given stays.

    Raises:
        SettingsError: a decision is to be a model's and there is none.
    """
    chosen: dict[str, Any] = {n: str(value) for n, value in given.items() if value is not None}
    for name in ("sparql", "sufficiency", "reader"):
        if chosen.get(name) == "llm" and settings.llm.provider == "none":
            raise SettingsError(
                f"--{name} llm asks a model, and llm.provider is 'none'; name one in [llm] of "
                "--settings, or leave the option out: rules need no model"
            )
    return replace(settings, query=replace(settings.query, **chosen))


def read_question(text: str) -> str:
    """The question; `-` is standard input.

    Raises:
        InputError: what stands there is no text in UTF-8.
    """
    if text != "-":
        return text
    try:
        return sys.stdin.buffer.read(_MOST_BYTES).decode("utf-8")
    except UnicodeDecodeError as e:
        raise InputError(f"the question on standard input is not UTF-8: {e}") from e


def ask_pyramid(
    question: str,
    warehouse: str | Path,
    ref: str,
    settings: Settings,
    *,
    candidates: Sequence[str] = (),
    scope: Scope = PUBLIC,
) -> Answer:
    """The answer to a question, as [query] of the settings says.

    The budget of [llm] bounds this one question. `tokens` and `cost` are all that was spent on
    it, those of trying the endpoint out included.

    Raises:
        InputError: no such snapshot, or no question.
        SettingsError: there is no key for the model.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    asked = settings.query
    snapshot = open_snapshot(ref, warehouse, model=settings.embed, scope=scope)
    if not asked.asks_model:
        return replace(_answer(question, snapshot, asked, candidates, Backends()), cost=0.0)
    with TemporaryDirectory(prefix="kpyramid-ask-") as folder:
        books = Path(folder)
        with open_backends(open_warehouse(warehouse), settings, books) as backends:
            found = _answer(question, snapshot, asked, candidates, backends)
        spent = read_totals(books).run
        return replace(found, tokens=spent.tokens, cost=spent.cost)


@contextmanager
def open_backends(warehouse: Warehouse, settings: Settings, books: Path) -> Iterator[Backends]:
    """Who decides by [query], with the model of [llm] behind; nothing is asked before it is needed.

    What is spent is noted in the folder `books`.

    Raises:
        SettingsError: there is no key for the model.
    """
    if settings.llm.provider == "openai":
        read_key(settings.llm)
    query = settings.query
    with Opener(warehouse, settings, books, _NO_REF, patience=PATIENCE) as opener:
        asker = opener.open_model().caller
        yield Backends(query.sparql, query.sufficiency, query.reader, asker)


def describe_spending(found: Answer) -> str:
    """What the model took for an answer, in words; empty when it was not asked."""
    if not found.tokens and not found.calls:
        return ""
    calls = "1 call" if found.calls == 1 else f"{found.calls} calls"
    cost = "" if found.cost is None else f", ${found.cost:.6f}"
    return f"Model: {calls}, {found.tokens:,} tokens{cost}"


def _answer(
    question: str,
    snapshot: Snapshot,
    asked: QuerySettings,
    candidates: Sequence[str],
    backends: Backends,
) -> Answer:
    known = inspect.signature(STRATEGIES[asked.strategy]).parameters
    options = {n: getattr(asked, n) for n in ("mode", "triples", "chunks") if n in known}
    return answer(
        question, snapshot, asked.strategy, candidates=candidates, backends=backends, **options
    )
