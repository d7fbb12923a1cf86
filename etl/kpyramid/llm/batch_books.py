"""What a batch cost, kept beside its record, and booked once by whichever process has its run."""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from kpyramid.llm.batches import Asked, Record
from kpyramid.llm.books import Call, batch_ticket, describe_call
from kpyramid.llm.cache import dump_json
from kpyramid.llm.ledger import Ledger
from kpyramid.llm.prices import cost_of
from kpyramid.llm.stores import BlobStore
from kpyramid.llm.types import Usage
from kpyramid.model_settings import ModelPrice

_BOOKS = "batches/books"

OpenLedger = Callable[[str], Ledger | None]
"""The books of a run by its name; None when the run is not in this warehouse."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What one request cost; without a usage nothing was billed."""

    call: Call
    outcome: str
    usage: Usage | None = None


def describe_asked(one: Asked, model: str) -> Call:
    """What the books say of a request in a batch."""
    return describe_call(one.request, one.key, model, batch=True)


def keep_books(blobs: BlobStore, record: Record, entries: Iterable[Entry]) -> list[Entry]:
    """Stores what a batch cost, once for all; returns what stands."""
    values = [asdict(entry) for entry in entries]
    won = blobs.put_once(f"{_BOOKS}/{record.id}.json", dump_json(values))
    return [_read_entry(entry) for entry in json.loads(won)]


def settle_books(blobs: BlobStore, records: Iterable[Record], open_ledger: OpenLedger) -> int:
    """Books the ended batches that runs of this warehouse set money aside for; returns the lines.

    A batch is booked where it was submitted, whoever collected it.
    """
    by_run: dict[str, list[Record]] = {}
    for record in records:
        by_run.setdefault(record.run, []).append(record)
    written = 0
    for run, ended in by_run.items():
        ledger = open_ledger(run)
        if ledger is None:
            continue
        owed = ledger.list_owed()
        for record in ended:
            data = blobs.read(f"{_BOOKS}/{record.id}.json") if record.id in owed else None
            for entry in map(_read_entry, json.loads(data or b"[]")):
                ticket = batch_ticket(record.id, entry.call)
                billed = entry.usage is not None
                written += ledger.settle(ticket, entry.usage, entry.outcome, billed=billed)
    return written


def sum_entries(entries: Iterable[Entry], price: ModelPrice | None) -> tuple[int, float | None]:
    """Tokens, and dollars where the price is known."""
    used = [entry.usage for entry in entries if entry.usage is not None]
    tokens = sum(usage.prompt + usage.completion for usage in used)
    if price is None:
        return tokens, None
    return tokens, sum(cost_of(usage, price, batch=True) for usage in used)


def _read_entry(values: dict[str, Any]) -> Entry:
    usage = values["usage"]
    return Entry(
        Call(**values["call"]), values["outcome"], None if usage is None else Usage(**usage)
    )
