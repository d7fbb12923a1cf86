"""Language models opened for stages, batches and questions: cache, locks, ledger, endpoint."""

import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from kpyramid.errors import ConflictError, SettingsError
from kpyramid.extraction.cascade.recorded import open_recording
from kpyramid.keys import JsonValue, hash_value
from kpyramid.llm.cache import ReplayTransport, ReplyCache, describe_source
from kpyramid.llm.caller import AfterBatches, Caller, Collector, KeyLocks, hold_file
from kpyramid.llm.endpoint import Endpoint, Pay, open_transport, read_key
from kpyramid.llm.ledger import LEDGER, Call, Ledger, Siblings, merge_books
from kpyramid.llm.task import Request, Transport, describe_model
from kpyramid.pipeline.stage import UnknownError
from kpyramid.query.types import DECISIONS, Backends
from kpyramid.settings import Settings, check_settings, load_settings
from kpyramid.storage.bucket import open_blobs
from kpyramid.storage.layout import Warehouse, name_place, open_warehouse
from kpyramid.storage.refs import read_head
from kpyramid.storage.runs import Run, start_run
from kpyramid.storage.store import BlobStore, FolderStore
from kpyramid.storage.writing import write_durably

# Opening language models for stages: cache, locks, ledger and endpoint, in one place.

PROBE = "endpoint.json"
_SIBLINGS = ("run.json", "plan.json", "stages/publish.json")
"""Files of a run, besides its ledger, that tell its expected cost and whether it goes on."""
_BOOKS = LEDGER.removesuffix(".jsonl")
ASKING = "asking.lock"
"""Lock shared by all who ask online, and exclusive for who submits batches."""


@dataclass(frozen=True, slots=True)
class Model:
    """A caller with the source of its replies: an endpoint, or a collector that asks nobody."""

    caller: Caller
    source: Endpoint | Collector

    @property
    def pending(self) -> Mapping[str, Request]:
        """The requests that a collector noted, by key."""
        return self.source.pending if isinstance(self.source, Collector) else {}

    def describe(self) -> dict[str, JsonValue]:
        """The counts of requests, for a stage's mark."""
        counts = self.caller.counts
        endpoint = self.source if isinstance(self.source, Endpoint) else None
        failures: dict[str, JsonValue] = dict(sorted(counts.failures.items()))
        return {
            "asked": counts.asked,
            "hits": counts.hits,
            "calls": endpoint.calls if endpoint else 0,
            "answered_by": dict(sorted(endpoint.answered_by.items())) if endpoint else {},
            "failures": failures,
        }


def open_replies(warehouse: Warehouse, settings: Settings, *, read_only: bool = False) -> BlobStore:
    """The store of replies, failures and batches: in the warehouse, or where `llm.cache` says.

    Raises:
        SettingsError: the place cannot be used.
        EndpointError: it cannot be reached.
    """
    return open_blobs(settings.llm.cache or warehouse.locate("cache/llm"), read_only=read_only)


def locate_locks(warehouse: Warehouse, settings: Settings) -> Path:
    """The folder of locks: beside the replies, or in the warehouse if they are in a bucket.

    So warehouses with a common folder of replies have common locks; machines with a common bucket
    may both pay for one reply, of which the first is stored.
    """
    place = settings.llm.cache
    return Path(place) if place and "://" not in place else warehouse.cache / "llm"


@contextmanager
def hold_asking(warehouse: Warehouse, settings: Settings) -> Iterator[None]:
    """Stops builds from asking while batches are submitted, so that no request is sent twice.

    Raises:
        ConflictError: a build is asking.
    """
    path = locate_locks(warehouse, settings) / ASKING
    try:
        with hold_file(path, alone=True):
            yield
    except BlockingIOError as e:
        raise ConflictError(
            "a build, or another submit, is asking the model just now; nothing was submitted. "
            "Call again when it is done"
        ) from e


def open_ledger(warehouse: Warehouse, settings: Settings, run: Path, ref: str) -> Ledger:
    """The ledger of a run, with the spending since the ref's last finished build."""
    if settings.asks_model or settings.embed.is_served:
        fetch_books(warehouse)
    return Ledger(run / LEDGER, settings.llm, Siblings(warehouse.runs, ref, run.name))


def fetch_books(warehouse: Warehouse) -> None:
    """Copies the ledgers of other machines from a bucket into the local runs.

    Machines upload them at the end of each task, see `put_run`.
    """
    bucket = warehouse.bucket
    if bucket is None:
        return
    for blob in bucket.list("runs"):
        run, _, file = blob.name.removeprefix("runs/").partition("/")
        path = warehouse.runs / run / file
        is_book = file.startswith(f"{_BOOKS}.") and file != _name_books(warehouse)
        if not is_book and file not in _SIBLINGS:
            continue
        if (path.stat().st_size if path.exists() else None) != blob.size:
            data = bucket.read(blob.name) or b""
            if is_book:
                merge_books(warehouse.runs, run, data)
            write_durably(path, data)


def put_run(run: Run) -> None:
    """Copies a task's files in the run's folder to the bucket: ledger, plan, report.

    The ledger's name contains this machine's, for others add to the same run.
    """
    bucket = run.warehouse.bucket
    if bucket is None or not run.folder.is_dir():
        return
    for path in sorted(run.folder.iterdir()):
        mine = _name_books(run.warehouse) if path.name == LEDGER else path.name
        others = path.name.startswith(f"{_BOOKS}.") and path.name != LEDGER
        is_ours = path.is_file() and not path.name.startswith(".") and path.name != "run.json"
        if is_ours and not others:
            bucket.replace(f"runs/{run.name}/{mine}", path.read_bytes())


def _name_books(warehouse: Warehouse) -> str:
    """The name of this machine's ledger in a bucket."""
    name = FolderStore(warehouse.root).put_once("machine", uuid.uuid4().hex[:12].encode())
    return f"{_BOOKS}.{name.decode()}.jsonl"


@dataclass(eq=False)
class Opener:
    """Opens the models of one run; nothing is asked before the first request.

    A `collecting` one opens no language model but notes its requests. While a context that opened
    one is open, no batch is submitted from this cache.
    """

    warehouse: Warehouse
    settings: Settings
    run: Path
    ref: str
    collecting: bool = False

    def __post_init__(self) -> None:
        self._ledger = open_ledger(self.warehouse, self.settings, self.run, self.ref)
        self._held = ExitStack()

    def __enter__(self) -> "Opener":
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def open_model(self) -> Model:
        """The language model that the settings name."""
        if self.collecting:
            return open_collector(self.warehouse, self.settings, read_only=False)
        places = locate_locks(self.warehouse, self.settings)
        self._held.enter_context(hold_file(places / ASKING, alone=False))
        endpoint = self.connect(_prepare_transport(self.settings, self.run))
        blobs = open_replies(self.warehouse, self.settings)
        from kpyramid.llm.batch.jobs import list_open_keys  # loads openai

        source = AfterBatches(endpoint, list_open_keys(blobs))
        model = describe_source(self.settings.llm)
        locks = KeyLocks(places / "held")
        spent = self._ledger.by_thread
        return Model(Caller(model, source, ReplyCache(blobs), locks, spent), endpoint)

    def connect(
        self,
        open_transport: Callable[[Pay], Transport],
        describe: Callable[[Request, str], Call] | None = None,
    ) -> Endpoint:
        """An endpoint with the run's ledger; `describe` makes its entries."""
        most = self.settings.llm.max_wait
        return Endpoint(open_transport, self._ledger, max_wait=most, describe=describe)


@dataclass(frozen=True, slots=True)
class Looker:
    """Opens models for a plan: the given language model, and no embedding model."""

    model: Model

    def open_model(self) -> Model:
        """The language model, which asks nobody."""
        return self.model

    @staticmethod
    def connect(*_: object) -> NoReturn:
        """Opens no endpoint.

        Raises:
            UnknownError: always; a vector was needed that is not stored.
        """
        raise UnknownError


def open_collector(
    warehouse: Warehouse,
    settings: Settings,
    *,
    read_only: bool,
    in_batches: Collection[str] = (),
) -> Model:
    """A model that asks nobody and notes its requests, except those `in_batches`.

    `read_only` writes nothing.
    """
    source = Collector()
    blobs = open_replies(warehouse, settings, read_only=read_only)
    cache = ReplyCache(blobs, read_only=read_only)
    asked = AfterBatches(source, in_batches)
    return Model(Caller(describe_source(settings.llm), asked, cache, KeyLocks(None)), source)


def _prepare_transport(settings: Settings, run: Path) -> Callable[[Pay], Transport]:
    llm = settings.llm
    if llm.provider == "replay":
        answer = open_recording(Path(str(llm.recording)), describe_model(llm))
        return lambda pay: ReplayTransport(answer)
    return partial(open_transport, llm, run / PROBE)


# Who decides about questions, for a command, a service or a script.


@contextmanager
def open_backends(
    settings: Settings | str | Path | None = None,
    *,
    warehouse: str | Path | None = None,
    books: str | Path | None = None,
    patience: float = 30.0,
    **llm: object,
) -> Iterator[Backends]:
    """The backends of `answer` with a model; threads may share them until the context ends.

    Models are opened at first use. `settings`, or a file of them: decisions are taken as [query]
    says; if it leaves all to the rules, the model takes all. `llm`: values that replace fields of
    [llm], such as `model`, `base_url`, `api_key_env`, `budget`.
    Replies are stored in the `warehouse` or at `llm.cache`, else until the end. The budget covers
    all requests until the end, or those of all who share the folder `books`. `patience`: seconds
    that a call waits for an endpoint that is busy or failing, `llm.max_wait` at most; one call that
    hangs takes `llm.timeout` on top.

    Raises:
        SettingsError: a setting is wrong, or there is no model, or no key for it.
    """
    chosen = settings if isinstance(settings, Settings) else load_settings(settings)
    if patience <= 0:
        raise SettingsError(f"patience is {patience}: pass the seconds to wait, more than 0")
    if llm:
        values = {**asdict(chosen.llm), **llm}
        if "provider" not in llm and chosen.llm.provider == "none":
            values["provider"] = "openai"
        chosen = replace(chosen, llm=check_settings({"llm": values}, {"file": "open_backends"}).llm)
    require_model(chosen, "a question asks")
    most = min(patience, chosen.llm.max_wait)
    chosen = replace(chosen, llm=replace(chosen.llm, max_wait=most))
    decided = {name: getattr(chosen.query, name) for name in DECISIONS}
    if not chosen.query.asks_model:
        decided = dict.fromkeys(DECISIONS, "llm")
    with ExitStack() as held:
        scratch = Path(held.enter_context(TemporaryDirectory(prefix="kpyramid-")))
        place = open_warehouse(warehouse or scratch)
        folder = Path(books or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        opener = held.enter_context(Opener(place, chosen, folder, ""))  # no ref's budget
        yield Backends(**decided, asker=opener.open_model().caller)


def require_model(settings: Settings, what: str) -> None:
    """Passes when there is a model and a key for it; `what` names the caller.

    Raises:
        SettingsError: there is none.
    """
    if settings.llm.provider == "none":
        raise SettingsError(
            f"{what} a model, and llm.provider is 'none'; name one in [llm] of the settings, or "
            "leave all decisions to the rules"
        )
    if settings.llm.is_served:
        read_key(settings.llm)


# Where batches are prepared and booked: a run of their own.


def open_batch_run(corpus: str | Path, warehouse: Warehouse, settings: Settings, ref: str) -> Run:
    """The run in which batches of a ref are prepared, the same until the ref moves.

    The endpoint, its limits, prices and the budget may change meanwhile.
    """
    head = read_head(warehouse, ref)
    llm = {**describe_source(settings.llm), "max_tokens": settings.llm.max_tokens}
    shape: JsonValue = {**asdict(settings), "llm": llm}
    parts: list[JsonValue] = [name_place(corpus), shape, head.order if head else ""]
    name = f"batch-{ref[:60]}-{hash_value(parts)[:12]}"
    return start_run(warehouse, corpus, settings, ref=ref, name=name)
