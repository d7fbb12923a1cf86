"""Opening what stages ask of a language model: cache, locks, books and endpoint, in one place."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kpyramid.extraction.cascade.recorded import open_recording
from kpyramid.keys import JsonValue
from kpyramid.llm.batches import list_open_keys
from kpyramid.llm.books import LEDGER, Call
from kpyramid.llm.cache import ReplyCache
from kpyramid.llm.caller import AfterBatches, Caller, Collector
from kpyramid.llm.endpoint import Endpoint
from kpyramid.llm.ledger import Ledger
from kpyramid.llm.limiter import Limiter
from kpyramid.llm.locks import KeyLocks
from kpyramid.llm.replay import ReplayTransport
from kpyramid.llm.stores import BlobStore, open_blobs
from kpyramid.llm.tally import Siblings
from kpyramid.llm.transport import Pay, open_transport
from kpyramid.llm.types import Request, Transport, describe_model
from kpyramid.settings import Settings
from kpyramid.warehouse.layout import Warehouse, write_durably

PROBE = "endpoint.json"


@dataclass(frozen=True, slots=True)
class Model:
    """A caller and where its replies come from: an endpoint, or a collector that asks nobody."""

    caller: Caller
    source: Endpoint | Collector

    @property
    def pending(self) -> Mapping[str, Request]:
        """What a collector noted, by key."""
        return self.source.pending if isinstance(self.source, Collector) else {}

    def describe(self) -> dict[str, JsonValue]:
        """What happened, as a stage's mark says it."""
        counts = self.caller.counts
        calls = self.source.calls if isinstance(self.source, Endpoint) else 0
        failures: dict[str, JsonValue] = dict(sorted(counts.failures.items()))
        return {"asked": counts.asked, "hits": counts.hits, "calls": calls, "failures": failures}


def open_replies(warehouse: Warehouse, settings: Settings, *, read_only: bool = False) -> BlobStore:
    """The store of replies, failures and batches: in the warehouse, or where `llm.cache` says.

    Raises:
        SettingsError: the place cannot be used.
        EndpointError: it cannot be reached.
    """
    return open_blobs(settings.llm.cache or str(warehouse.cache / "llm"), read_only=read_only)


def open_ledger(warehouse: Warehouse, settings: Settings, run: Path, ref: str) -> Ledger:
    """The books of a run, with what was spent since the ref's last finished build."""
    return Ledger(run / LEDGER, settings.llm, Siblings(warehouse.runs, ref, run.name))


class Opener:
    """Opens the models of one run; nothing is asked before the first request.

    A `collecting` one opens no language model but notes what it would be asked.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        settings: Settings,
        run: Path,
        ref: str,
        *,
        collecting: bool = False,
    ) -> None:
        self._warehouse = warehouse
        self._settings = settings
        self._run = run
        self._collecting = collecting
        self._ledger = open_ledger(warehouse, settings, run, ref)

    def open_model(self) -> Model:
        """The language model that the settings name."""
        if self._collecting:
            return open_collector(self._warehouse, self._settings, read_only=False)
        endpoint = self.connect(_prepare_transport(self._settings, self._run))
        blobs = open_replies(self._warehouse, self._settings)
        source = AfterBatches(endpoint, list_open_keys(blobs))
        locks = KeyLocks(self._warehouse.cache / "llm" / "locks")
        model = describe_model(self._settings.llm)
        return Model(Caller(model, source, ReplyCache(blobs), locks), endpoint)

    def connect(
        self,
        open_transport: Callable[[Pay], Transport],
        describe: Callable[[Request, str], Call] | None = None,
    ) -> Endpoint:
        """An endpoint with the limits and the books of the run; `describe` makes book lines."""
        llm = self._settings.llm
        limiter = Limiter(
            self._warehouse.cache / "llm" / "limits.json",
            llm.requests_per_minute,
            llm.tokens_per_minute,
        )
        return Endpoint(
            open_transport, self._ledger, limiter, max_wait=llm.max_wait, describe=describe
        )


def open_collector(warehouse: Warehouse, settings: Settings, *, read_only: bool) -> Model:
    """A model that asks nobody and notes what would be asked; `read_only` writes nothing."""
    source = Collector()
    blobs = open_replies(warehouse, settings, read_only=read_only)
    cache = ReplyCache(blobs, read_only=read_only)
    return Model(Caller(describe_model(settings.llm), source, cache, KeyLocks(None)), source)


def _prepare_transport(settings: Settings, run: Path) -> Callable[[Pay], Transport]:
    llm = settings.llm
    if llm.provider == "replay":
        answer = open_recording(Path(str(llm.recording)), describe_model(llm))
        return lambda pay: ReplayTransport(answer)

    def note(probe: Mapping[str, JsonValue]) -> None:
        write_durably(run / PROBE, json.dumps(probe, indent=1).encode())

    return lambda pay: open_transport(llm, note, pay, _read_probe(run))


def _read_probe(run: Path) -> dict[str, JsonValue] | None:
    """What an earlier stage of the run, perhaps in another process, found the endpoint to be."""
    try:
        record = json.loads((run / PROBE).read_bytes())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) else None
