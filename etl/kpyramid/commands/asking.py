"""What `kpyramid ask` does: opens a snapshot and, when a model writes the query, the model."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kpyramid.errors import SettingsError
from kpyramid.llm.connection import read_key
from kpyramid.llm.totals import read_totals
from kpyramid.models import Opener
from kpyramid.query import Answer, Makers, answer, open_snapshot
from kpyramid.settings import Settings
from kpyramid.warehouse.layout import open_warehouse

_NO_REF = ""
"""No run is of this ref, so no build's spending counts against a question's budget."""


def ask_pyramid(
    question: str, warehouse: str | Path, ref: str, strategy: str, settings: Settings, sparql: str
) -> Answer:
    """The answer to a question; with `sparql` = `llm` the model of [llm] writes polyrag's query.

    The budget of [llm] bounds this one question; `tokens` are all that were spent on it, those
    of trying the endpoint out included.

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
    with TemporaryDirectory(prefix="kpyramid-ask-") as folder:
        books = Path(folder)
        with Opener(place, settings, books, _NO_REF) as opener:
            asker = opener.open_model().caller
            found = answer(question, snapshot, strategy, makers=Makers("llm", asker=asker))
        return replace(found, tokens=read_totals(books).run.tokens)
