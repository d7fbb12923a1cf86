"""Where batches are prepared and booked: a run of their own, its replies and its ledger."""

from dataclasses import asdict
from pathlib import Path

from kpyramid.keys import JsonValue, hash_value
from kpyramid.llm.cache import ReplyCache
from kpyramid.llm.ledger import Ledger
from kpyramid.llm.replay import describe_source
from kpyramid.llm.stores import BlobStore
from kpyramid.models import open_ledger, open_replies
from kpyramid.runs import Run, start_run
from kpyramid.settings import Settings
from kpyramid.warehouse.layout import Warehouse
from kpyramid.warehouse.refs import read_head


def open_batch_run(corpus: Path, warehouse: Warehouse, settings: Settings, ref: str) -> Run:
    """The run that batches of a ref are prepared in, the same until the ref moves on.

    The endpoint, its limits, prices and the budget may change meanwhile.
    """
    head = read_head(warehouse, ref)
    llm = {**describe_source(settings.llm), "max_tokens": settings.llm.max_tokens}
    shape: JsonValue = {**asdict(settings), "llm": llm}
    parts: list[JsonValue] = [str(corpus.absolute()), shape, head.order if head else ""]
    name = f"batch-{ref[:60]}-{hash_value(parts)[:12]}"
    return start_run(warehouse, corpus, settings, ref=ref, name=name)


def open_batch_books(run: Run) -> tuple[ReplyCache, BlobStore, Ledger]:
    """Where replies are kept, where batches are noted, and the books of the run."""
    blobs = open_replies(run.warehouse, run.settings)
    ledger = open_ledger(run.warehouse, run.settings, run.folder, run.ref)
    return ReplyCache(blobs), blobs, ledger
