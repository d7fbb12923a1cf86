"""What a build would compute and pay, without writing anything or asking any model."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

import pyarrow as pa

from kpyramid.completion import naming
from kpyramid.documents.corpus import Corpus
from kpyramid.embeddings.served import MOST_TEXTS
from kpyramid.extraction.cascade.windows import WINDOWED, list_windows
from kpyramid.extraction.types import Extraction, Titled
from kpyramid.keys import JsonValue
from kpyramid.llm.endpoint import find_place
from kpyramid.llm.estimates import Estimate, Estimator, Range, calibrate
from kpyramid.llm.task import Task
from kpyramid.pipeline.cache import CachedEmbedder, Context, open_converter
from kpyramid.pipeline.fingerprints import walk_stored
from kpyramid.pipeline.models import Looker, Model, fetch_books, open_collector, open_replies
from kpyramid.pipeline.stage import PIPELINE, Progress, Stage, UnknownError, find_stage
from kpyramid.pipeline.stages import chunk, extract, ingest
from kpyramid.pipeline.stages.tables import read_chunks, title_chunks
from kpyramid.pipeline.tasks import EXPECTED, TASKS, list_tasks
from kpyramid.pipeline.wiring import (
    Ports,
    open_corpus,
    open_extractor,
    open_inducer,
    open_splitter,
    require_ontology,
)
from kpyramid.settings import Settings
from kpyramid.storage.contracts import load_contracts
from kpyramid.storage.erasure import load_erased
from kpyramid.storage.former import find_former
from kpyramid.storage.layout import Warehouse, name_place
from kpyramid.storage.refs import read_head
from kpyramid.storage.results import Result, TableFile, read_result

# What stages would ask a language model: what is known exactly, and the rest estimated.
# A stage is run on what is stored, with a model that asks nobody and notes what it would be
# asked.

_LATER_ROUNDS = 1.5
"""Largest ratio of calls for a model's names in later rounds to those for the rules' names."""
_EMBEDDED_CHARACTERS = {
    "resolve": 0.2,
    "embed": 2.3,
    "induce": 0.3,
    "complete": 0.9,
    "condense": 0.1,
}
"""Characters that each stage embeds first, per character of the chunks; measured on the demo."""
_EMBEDDED_SPREAD = (0.4, 1.0, 2.5)
_TEXT_CHARACTERS = 60
_SKIPPED = 0.85
"""Least share of chunks that reach the next step: others have no claim, or no entity."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """A stage's requests to a model: all, answered, given up, and in an open batch.

    `steps`: the estimate of each task. `learned_from`: earlier calls behind it; 0: defaults only.
    `in_batches`: whether the Batch API takes them. `endpoint`: the address and its origin.
    """

    model: str
    steps: Mapping[str, Estimate]
    asked: int = 0
    hits: int = 0
    failed: int = 0
    waiting: int = 0
    learned_from: int = 0
    in_batches: bool = True
    endpoint: str = ""

    def price(self, settings: Settings, *tasks: str, batch: bool = False) -> Range | None:
        """Dollars of one task, by default of all; None where the model has no price."""
        price = settings.llm.prices.get(self.model)
        if price is None:
            return None
        total = sum((self.steps[task] for task in tasks or self.steps), Estimate())
        return total.price(price, batch=batch and self.in_batches)


class Forecast:
    """Forecast of one build; `stored` are the results of stages that are done.

    Extractions and vectors are stored for the build that follows unless `context` is read-only.
    """

    def __init__(self, context: Context, corpus: Corpus, stored: Iterable[Result]) -> None:
        self._context = context
        self._warehouse = context.warehouse
        self._settings = context.settings
        self._files: dict[str, list[TableFile]] = defaultdict(list)
        """The parts of tables, by name."""
        for result in stored:
            for name, file in result.tables.items():
                self._files[name].append(file)
        self._foreseen: dict[str, pa.Table] = {}
        """What stages would make as far as it is known, without what a model would say."""
        if "documents" not in self._files:
            self._foreseen |= ingest.run(
                corpus=corpus.read_files(),
                converter=open_converter(context),
                erased=load_erased(context.warehouse),
                settings=context.settings.ingest,
            )
        self.documents = self._read("documents")
        self.unread = ingest.list_unread(self._read("rejects"))
        """What of the corpus is no document."""
        self._share_new = 1.0
        """Of the chunks, those that the model has yet to read: the others' duplicates are known."""

    @cached_property
    def chunks(self) -> pa.Table:
        """The chunks, stored or cut from the documents."""
        if "chunks" in self._files:
            return self._read("chunks")
        splitter = open_splitter(replace(self._context, read_only=True))
        return chunk.run(self.documents, splitter=splitter)["chunks"]

    @cached_property
    def estimator(self) -> Estimator:
        """The estimator that earlier runs of the warehouse calibrated."""
        return calibrate(self._warehouse.runs, self._settings.llm.model, EXPECTED)

    def look_ahead(self, stage: Stage) -> Iterator[Outlook]:
        """A stage's requests to the served models; recorded replies cost nothing."""
        llm, embed = self._settings.llm, self._settings.embed
        if llm.is_served and list_tasks(stage.name, self._settings):
            outlook = self._look_ahead_of_replies(stage.name)
            yield replace(outlook, endpoint=str(find_place(llm)))
        if embed.is_served and "embedder" in stage.ports:
            outlook = self._look_ahead_of_vectors(stage.name)
            yield replace(outlook, endpoint=str(find_place(embed, "embed")))

    def _look_ahead_of_replies(self, stage: str) -> Outlook:
        """A stage's requests to a language model, with their cost."""
        from kpyramid.llm.batch.jobs import list_open_keys  # loads openai

        open_keys = list_open_keys(open_replies(self._warehouse, self._settings, read_only=True))
        model = open_collector(
            self._warehouse, self._settings, read_only=True, in_batches=open_keys
        )
        steps = self.foresee(stage, model)
        counts = model.caller.counts
        pending = counts.failures["pending"]
        if stage == "extract" and counts.asked:
            self._share_new = len(model.pending) / counts.asked
        return Outlook(
            self._settings.llm.model,
            steps,
            asked=counts.asked,
            hits=counts.hits,
            failed=counts.failures.total() - pending - counts.failures["deferred"],
            waiting=counts.failures["deferred"],
            learned_from=sum(self.estimator.seen.values()),
        )

    def _look_ahead_of_vectors(self, stage: str) -> Outlook:
        """A stage's texts for a served embedding model, by the number of new chunks."""
        vectors = CachedEmbedder(self._context, Looker.connect).function
        new = sum(map(len, vectors.list_missing(title_chunks(self.documents, self.chunks))))
        share = _EMBEDDED_CHARACTERS.get(stage, 0.0)
        characters = share * new
        estimator = calibrate(self._warehouse.runs, self._settings.embed.model)
        calls = math.ceil(characters / _TEXT_CHARACTERS / MOST_TEXTS)
        return Outlook(
            self._settings.embed.model,
            {"embed": estimator.foresee_texts(calls, characters).scale(*_EMBEDDED_SPREAD)},
            learned_from=sum(estimator.seen.values()),
            in_batches=False,
        )

    def _foresee_extract(self, model: Model) -> dict[str, Estimate]:
        """Exact for the first step; later ones from the output of the steps before."""
        settings = self._settings
        cascade = self._open("extract", model).cascade
        extract.run(self.documents, self.chunks, extractor=self._read_rules, cascade=cascade)
        estimate = self.estimator.estimate(model.pending.values())
        tasks = list_tasks("extract", settings)
        order = {task.name: position for position, task in enumerate(tasks)}
        for position, task in enumerate(tasks):
            waiting = [
                task.expected.follows(settings, len(request.subject))
                for request in model.pending.values()
                if order.get(request.task, len(tasks)) < position
            ]
            later = self.estimator.foresee(
                task,
                task.system(settings),
                [size for _, size in waiting],
                settings.llm.max_tokens,
            )
            chance = sum(chance for chance, _ in waiting) / max(len(waiting), 1)
            if learned := self.estimator.compare_tasks(task.name, [tasks[0].name]):
                chance, _ = learned
            high = max(chance, min(1.0, 2 * chance))  # learned, it may be more than one of each
            later = later.scale(_SKIPPED * chance, chance, high)
            estimate[task.name] = estimate.get(task.name, Estimate()) + later
        return estimate

    def foresee(self, stage: str, model: Model) -> dict[str, Estimate]:
        """Estimates by task: exact if the stage's input is known, else from earlier runs.

        For complete the first round is exact, and later ones use the names that rules give.
        """
        if stage in ("extract", "induce"):
            known = self._foresee_extract if stage == "extract" else self._foresee_induce
            return known(model)
        if stage == "condense" and "proposals" not in self._known:
            self._run("complete", model)  # with the names that rules give proposals
        # Vectors of names are not made for a plan: they would take as long as the stage.
        is_exact = self._run(stage, model, stored=stage == "resolve")
        estimates = self.estimator.estimate(model.pending.values())
        rounds, most = self._settings.complete.rounds, math.inf
        if stage == "complete":
            estimates = {n: e.scale(1 / rounds, 1.0, _LATER_ROUNDS) for n, e in estimates.items()}
            most = rounds * naming.MOST / naming.BATCH
        if is_exact:
            return estimates
        for task in list_tasks(stage, self._settings):
            estimate = estimates.get(task.name, Estimate())
            estimates[task.name] = estimate.at_least(self._foresee_task(task, most))
        return estimates

    def _open(self, stage: str, model: Model) -> Ports:
        """The ports of a stage with a model that asks nobody."""
        return Ports(self._context, find_stage(stage), Looker(model))

    def _run(self, name: str, model: Model, *, stored: bool = False) -> bool:
        """Runs a stage with a model that asks nobody; returns whether its input is known.

        With `stored`, or where vectors have a price, no vector is made.
        """
        stage = find_stage(name)
        if not self._known >= set(stage.reads):
            return False
        ports = self._open(name, model)
        if stored or self._settings.embed.is_served:
            ports.embedder = CachedEmbedder(self._context, Looker.connect, stored_only=True)
        tables = {table: self._read(table) for table in stage.reads}
        try:
            self._foreseen |= ports.run(tables)
        except UnknownError:
            return False
        return True

    def _foresee_induce(self, model: Model) -> dict[str, Estimate]:
        """The exact requests, as they follow from the chunks."""
        passages = read_chunks(self.documents, self.chunks)
        open_inducer(self._settings, model.caller, Progress()).induce(passages)
        return self.estimator.estimate(model.pending.values())

    @property
    def _known(self) -> set[str]:
        """The tables that are stored or foreseen."""
        return {*self._files, *self._foreseen}

    def _foresee_task(self, task: Task, most: float) -> Estimate:
        base = [each.name for each in list_tasks("extract", self._settings)[:1]]
        learned = self.estimator.compare_tasks(task.name, base)
        share, seen = learned or (task.expected.per_chunk, 0)
        parts = self._count_windows() if learned else self.chunks.num_rows
        count = math.ceil(min(share * self._share_new * parts, most))
        size = self.estimator.mean_subject(task.name) or task.expected.characters
        estimate = self.estimator.foresee(
            task, task.system(self._settings), [round(size)] * count, self._settings.llm.max_tokens
        )
        low, high = task.expected.spread
        if seen:  # a count of n scatters by its root, and duplicates grow as the corpus does
            low = max(low, 0.7 - 2 / math.sqrt(seen))
            high = min(high, 1.5 + 2 / math.sqrt(seen))
        return estimate.scale(low, 1.0, high)

    def _count_windows(self) -> int:
        """The number of windows; of chunks if no windows are read."""
        cascade = self._settings.cascade
        if not cascade.reads_windows:
            return int(self.chunks.num_rows)
        rows = self.documents.select([*WINDOWED]).to_pylist()
        return sum(1 for _ in list_windows(rows, cascade.window))

    def _read_rules(self, texts: Iterable[Titled]) -> Iterable[tuple[Titled, Extraction]]:
        """The rules' extractions, stored ones, or computed where a prompt depends on them."""
        extractor = open_extractor(self._context)
        cascade = self._settings.cascade
        if cascade.mode == "paper" and cascade.paraphrase == "rules":  # its first step reads them
            return extractor.stream(texts)
        missing = set(extractor.list_missing(texts))
        known = extractor.stream(set(texts) - missing)
        return chain(known, ((text, Extraction()) for text in missing))

    def _read(self, table: str) -> pa.Table:
        """A stored or foreseen table."""
        if table not in self._files:
            return self._foreseen[table]
        contract = load_contracts()[table]
        return contract.unite([read_result(file, contract) for file in self._files[table]])


# What a build would compute and pay, without writing anything or asking any model.

Row = dict[str, JsonValue]

_FREE: Mapping[str, JsonValue] = {"calls": 0, "tokens": 0, "cost": asdict(Range())}


def plan_build(
    corpus: str | Path,
    warehouse: Warehouse,
    settings: Settings,
    *,
    ref: str = "main",
    keep: bool = False,
    workers: int = 1,
) -> list[Row]:
    """One row per stage: its rows, how many of them are stored, and its expected cost.

    `ref`: the one that the build would move.

    The input of later stages depends on what earlier ones compute: their rows are null, and they
    run unless their input comes out the same. `calls`, `tokens`: expected values; a stage that asks
    a language model has details under `model`, the first one unreadable files under `unread`. The
    cost is null where the model has no price. Nothing is written, except extractions if `keep`.

    Raises:
        InputError: there is no such corpus.
        SettingsError: a model or an ontology that the settings name is not there.
    """
    require_ontology(settings)
    fetch_books(warehouse)
    former = find_former(warehouse, read_head(warehouse, ref))
    context = Context(warehouse, settings, workers, read_only=not keep, former=former)
    with open_corpus(name_place(corpus), warehouse) as listing:
        return _plan_stages(listing, context)


def _plan_stages(listing: Corpus, context: Context) -> list[Row]:
    corpus = load_erased(context.warehouse).mark(listing.fingerprint)
    walked = walk_stored(context.warehouse, context.settings, corpus, context.former)
    stored = {stage.name: result for stage, result in walked}
    forecast = Forecast(context, listing, stored.values())
    counts = {name: (count, count) for name, count in _count_stored(stored).items()}
    if is_known := len(stored) == len(PIPELINE) - 1:
        counts[PIPELINE[-1].name] = 1, 1
    else:
        counts = _count_rows(forecast, context) | counts
    plan: list[Row] = []
    for stage in PIPELINE:
        total, cached = counts.get(stage.name, (None, None))
        row: Row = {"stage": stage.name, "rows": total, "cached": cached, **_FREE}
        outlooks = [] if is_known or stage.name in stored else [*forecast.look_ahead(stage)]
        if outlooks:
            row.update(_describe_outlooks(outlooks, context.settings))
        plan.append(row)
    plan[0]["unread"] = [asdict(kind) for kind in forecast.unread]
    return plan


def _count_stored(stored: Mapping[str, Result]) -> dict[str, int]:
    """The rows of stored results by stage, without rejects."""
    return {
        stage: sum(file.rows for name, file in result.tables.items() if name != "rejects")
        for stage, result in stored.items()
    }


def _describe_outlooks(outlooks: Sequence[Outlook], settings: Settings) -> Row:
    total = sum((e for outlook in outlooks for e in outlook.steps.values()), Estimate())
    ranges: Row = {
        name: {bound: round(amount) for bound, amount in asdict(getattr(total, name)).items()}
        for name in ("calls", "tokens", "prompt", "completion")
    }
    counts: Row = {
        name: sum(getattr(outlook, name) for outlook in outlooks)
        for name in ("asked", "hits", "failed", "waiting", "learned_from")
    }
    unpriced = sorted({outlook.model for outlook in outlooks} - set(settings.llm.prices))
    return {
        "calls": round(total.calls.expected),
        "tokens": round(total.tokens.expected),
        "cost": _sum_up(outlook.price(settings) for outlook in outlooks),
        "model": {
            **counts,
            **ranges,
            "batch_cost": _sum_up(outlook.price(settings, batch=True) for outlook in outlooks),
            "steps": [*_describe_steps(outlooks, settings)],
            "unpriced": [*unpriced],
            "endpoints": [*sorted({outlook.endpoint for outlook in outlooks})],
        },
    }


def _describe_steps(outlooks: Sequence[Outlook], settings: Settings) -> Iterator[Row]:
    """The estimate of each task, and what is lost without it."""
    without = {task.name: task.without for task in TASKS}
    for outlook in outlooks:
        for task, estimate in outlook.steps.items():
            yield {
                "task": task,
                "calls": round(estimate.calls.expected),
                "tokens": round(estimate.tokens.expected),
                "cost": _sum_up([outlook.price(settings, task)]),
                "without": without.get(task, ""),
            }


def _sum_up(costs: Iterable[Range | None]) -> JsonValue:
    """The sum of costs; null bounds when a model has no price."""
    known = [*costs]
    if None in known:
        return dict.fromkeys(asdict(Range()))
    return asdict(sum(filter(None, known), Range()))


def _count_rows(forecast: Forecast, context: Context) -> dict[str, tuple[int, int]]:
    """Rows of the stages whose input follows from the corpus alone, and how many are cached."""
    documents = forecast.documents
    texts = sorted(set(chunk.list_texts(documents)))
    passages = sorted({passage for *_, passage in extract.list_passages(documents)})
    new = open_splitter(context).list_missing(texts)
    unread = open_extractor(context).list_missing(passages)
    return {
        "ingest": (documents.num_rows, 0),
        "chunk": (len(texts), len(texts) - len(new)),
        "extract": (len(passages), len(passages) - len(unread)),
    }
