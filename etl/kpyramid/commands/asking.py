"""What `kpyramid ask` does: opens a snapshot and, when a model writes the query, the model."""

from dataclasses import replace
from pathlib import Path

from kpyramid.errors import SettingsError
from kpyramid.llm.connection import read_key
from kpyramid.llm.totals import read_totals
from kpyramid.models import Opener
from kpyramid.query import Answer, answer, open_snapshot
from kpyramid.settings import Settings
from kpyramid.warehouse.layout import open_warehouse

_BOOKS = "asked"
"""The folder beside the replies that holds the books of questions; they belong to no run."""


def ask_pyramid(
    question: str, warehouse: str | Path, ref: str, strategy: str, settings: Settings, sparql: str
) -> Answer:
    """The answer to a question; with `sparql` = `llm` the model of [llm] writes polyrag's query.

    Raises:
        InputError: no such snapshot, or the strategy writes no query.
        SettingsError: [llm] names no model, or there is no key for it.
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    snapshot = open_snapshot(ref, warehouse, model=settings.embed)
    if sparql != "llm":
        return answer(question, snapshot, strategy)
    if settings.llm.provider == "none":
        raise SettingsError(
            "--sparql llm asks a model, and llm.provider is 'none'; name one in [llm] of --settings"
        )
    if settings.llm.provider == "openai":
        read_key(settings.llm)
    place = open_warehouse(warehouse)
    books = place.cache / "llm" / _BOOKS
    books.mkdir(parents=True, exist_ok=True)
    before = read_totals(books).run.tokens
    with Opener(place, settings, books, ref) as opener:
        asker = opener.open_model().caller
        found = answer(question, snapshot, strategy, sparql="llm", asker=asker)
    return replace(found, tokens=read_totals(books).run.tokens - before)
