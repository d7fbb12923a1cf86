"""What stages would ask a language model: what is known exactly, and the rest estimated.

A stage is run on what is stored, with a model that asks nobody and notes what it would be asked.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import pyarrow as pa

from kpyramid.cached import CachedEmbedder
from kpyramid.contracts import load_contracts, map_column
from kpyramid.embeddings.port import Matrix
from kpyramid.embeddings.served import MOST_TEXTS
from kpyramid.extraction.cascade.duplicates import TASK as DUPLICATES
from kpyramid.extraction.cascade.duplicates import ask_for_duplicates
from kpyramid.extraction.cascade.tasks import list_tasks, open_tasks
from kpyramid.extraction.text.splitter import Piece, split_text
from kpyramid.extraction.types import Extraction
from kpyramid.induction.asking import Passage
from kpyramid.keys import canonical_json
from kpyramid.llm.batches import list_open_keys
from kpyramid.llm.calibration import Estimator, calibrate
from kpyramid.llm.estimates import Estimate
from kpyramid.models import Model, open_collector, open_replies
from kpyramid.ports import (
    Silence,
    open_cascade,
    open_disambiguator,
    open_extractor,
    open_inducer,
    open_splitter,
)
from kpyramid.settings import Settings
from kpyramid.sources.corpus import Corpus
from kpyramid.stages import chunk, extract, ingest, resolve
from kpyramid.warehouse.layout import Warehouse
from kpyramid.warehouse.results import TableFile, read_result

_BATCHES_PER_CHUNK = 0.06
"""Batches of near duplicates per chunk. On 1,985 chunks of MuSiQue: 0.03 of what GPT-3.5 read,
0.10 of what the rules read."""
_BATCH_CHARACTERS = 2_550
_BATCH_SPREAD = (0.2, 3.0)
"""How far their number may be off before any experience, as factors."""
_EMBEDDED_CHARACTERS = {
    "resolve": 0.2,
    "embed": 2.3,
    "induce": 0.3,
    "complete": 0.9,
    "condense": 0.1,
}
"""Characters that each stage embeds first per character of the chunks; measured on the demo."""
_EMBEDDED_SPREAD = (0.4, 1.0, 2.5)
_TEXT_CHARACTERS = 60
_SKIPPED = 0.85
"""Of the chunks, those that at least reach the next step: others have no claim, or no entity."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a stage would ask: requests, those answered already, given up or in an open batch.

    `learned_from`: calls of earlier runs that the estimate rests on; 0: on defaults alone.
    `in_batches`: the Batch API takes them.
    """

    model: str
    estimate: Estimate
    asked: int = 0
    hits: int = 0
    failed: int = 0
    waiting: int = 0
    learned_from: int = 0
    in_batches: bool = True


class Forecast:
    """Looks ahead of one build; `files` are the tables that are made already, by name.

    With `keep` what the rules find, and vectors, are stored for the build that follows; else
    nothing is.
    """

    def __init__(
        self,
        warehouse: Warehouse,
        settings: Settings,
        corpus: Corpus,
        files: dict[str, TableFile],
        *,
        keep: bool = False,
        workers: int = 1,
    ) -> None:
        self._warehouse = warehouse
        self._settings = settings
        self._corpus = corpus
        self._files = files
        self._keep = keep
        self._workers = workers
        self._share_new = 1.0
        """Of the chunks, those that the model has yet to read: the others' duplicates are known."""

    @cached_property
    def documents(self) -> pa.Table:
        """The documents, stored or read from the corpus."""
        if "documents" in self._files:
            return self._read("documents")
        return ingest.run(corpus=self._corpus.read_files(), settings=self._settings.ingest)[
            "documents"
        ]

    @cached_property
    def chunks(self) -> pa.Table:
        """The chunks, stored or cut from the documents."""
        if "chunks" in self._files:
            return self._read("chunks")
        return chunk.run(self.documents, splitter=self._split)["chunks"]

    @cached_property
    def estimator(self) -> Estimator:
        """What earlier runs of the warehouse teach."""
        return calibrate(self._warehouse.runs, self._settings.llm.model)

    def look_ahead(self, stage: str) -> Outlook:
        """What `extract`, `resolve` or `induce` would ask and pay."""
        open_keys = list_open_keys(open_replies(self._warehouse, self._settings, read_only=True))
        model = open_collector(
            self._warehouse, self._settings, read_only=True, in_batches=open_keys
        )
        look = {"extract": self._extract, "resolve": self._resolve, "induce": self._induce}
        estimate = look[stage](model)
        counts = model.caller.counts
        pending = counts.failures["pending"]
        if stage == "extract" and counts.asked:
            self._share_new = len(model.pending) / counts.asked
        return Outlook(
            self._settings.llm.model,
            estimate,
            asked=counts.asked,
            hits=counts.hits,
            failed=counts.failures.total() - pending - counts.failures["deferred"],
            waiting=counts.failures["deferred"],
            learned_from=sum(self.estimator.seen.values()),
        )

    def look_ahead_of_vectors(self, stage: str) -> Outlook:
        """What a served embedding model would be asked in a stage, by the chunks that are new."""
        embedder = _StoredVectors(self._warehouse, self._settings)
        title = map_column(self.documents, "document_id", "title")
        texts = [
            f"{title[row['document_id']]}\n{row['text']}"
            if title[row["document_id"]]
            else row["text"]
            for row in self.chunks.select(["document_id", "text"]).to_pylist()
        ]
        new = sum(map(len, embedder.list_missing(texts)))
        share = _EMBEDDED_CHARACTERS.get(stage, 0.0)
        share += stage == "induce" and self._settings.induce.mode == "llm"  # routing reads it all
        characters = share * new
        estimator = calibrate(self._warehouse.runs, self._settings.embed.model)
        calls = math.ceil(characters / _TEXT_CHARACTERS / MOST_TEXTS)
        return Outlook(
            self._settings.embed.model,
            estimator.foresee_texts(calls, characters).scale(*_EMBEDDED_SPREAD),
            learned_from=sum(estimator.seen.values()),
            in_batches=False,
        )

    def _extract(self, model: Model) -> Estimate:
        settings = self._settings
        cascade = open_cascade(settings, model.caller, Silence())
        extract.run(self.documents, self.chunks, extractor=self._read_rules, cascade=cascade)
        estimate = self.estimator.estimate(model.pending.values())
        tasks = open_tasks(settings.cascade)
        order = {task.name: at for at, task in enumerate(tasks)}
        for at, task in enumerate(tasks):
            # A later step's prompt holds what the steps before it make.
            waiting = [
                len(request.subject)
                for request in model.pending.values()
                if order.get(request.task, len(tasks)) < at
            ]
            later = self.estimator.foresee(
                task.name,
                task.static,
                len(canonical_json(task.schema)),
                waiting,
                settings.llm.max_tokens,
            )
            estimate += later.scale(_SKIPPED, 1.0, 1.0)
        return estimate

    def _resolve(self, model: Model) -> Estimate:
        """All that is asked when the stored vectors suffice to find it; else by experience."""
        disambiguator = open_disambiguator(self._settings, model.caller)
        known = {"mentions", "raw_triples", "chunks"} <= self._files.keys()
        complete = False
        if known:
            tables = [self._read(name) for name in ("mentions", "raw_triples", "chunks")]
            embedder = _StoredVectors(self._warehouse, self._settings)
            try:
                resolve.run(*tables, embedder=embedder, disambiguator=disambiguator)
                complete = True
            except _UnknownError:
                pass
        found = self.estimator.estimate(model.pending.values())
        return found if complete else found.at_least(self._foresee_batches())

    def _induce(self, model: Model) -> Estimate:
        """Exact, as it follows from the chunks; all is routed where vectors have a price."""
        title = map_column(self.documents, "document_id", "title")
        passages = [
            Passage(row["text"], title[row["document_id"]], row["document_id"])
            for row in self.chunks.select(["document_id", "text"]).to_pylist()
        ]
        embedder = None
        if self._settings.embed.provider != "openai":
            place = (self._warehouse, self._settings, self._workers, Silence(), _refuse)
            embedder = CachedEmbedder(*place, read_only=not self._keep)
        open_inducer(self._settings, model.caller, embedder, Silence()).induce(passages)
        return self.estimator.estimate(model.pending.values())

    def _foresee_batches(self) -> Estimate:
        cascade = self._settings.cascade
        learned = self.estimator.compare_tasks(DUPLICATES, list_tasks(cascade)[:1])
        share, seen = learned or (_BATCHES_PER_CHUNK, 0)
        count = math.ceil(share * self._share_new * self.chunks.num_rows)
        request = ask_for_duplicates(
            "entities",
            (),
            domain=cascade.domain,
            language=cascade.language,
            max_tokens=self._settings.llm.max_tokens,
        )
        size = self.estimator.mean_subject(DUPLICATES) or _BATCH_CHARACTERS
        estimate = self.estimator.foresee(
            DUPLICATES,
            request.messages[0].content,
            len(canonical_json(request.schema)),
            [round(size)] * count,
            self._settings.llm.max_tokens,
        )
        low, high = _BATCH_SPREAD
        if seen:  # a count of n scatters by its root, and duplicates grow as the corpus does
            low = max(low, 0.7 - 2 / math.sqrt(seen))
            high = min(high, 1.5 + 2 / math.sqrt(seen))
        return estimate.scale(low, 1.0, high)

    def _split(self, texts: Sequence[str]) -> list[tuple[Piece, ...]]:
        """The splitter's pieces, stored or cut anew."""
        splitter = open_splitter(self._warehouse, self._settings, Silence())
        missing = set(splitter.list_missing(texts))
        stored = [text for text in texts if text not in missing]
        known = dict(zip(stored, splitter(stored), strict=True))
        return [
            known[text] if text in known else tuple(split_text(text, self._settings.chunk))
            for text in texts
        ]

    def _read_rules(self, texts: Sequence[str]) -> list[Extraction]:
        """What the rules find, stored or found anew where a prompt depends on it."""
        extractor = open_extractor(self._warehouse, self._settings, self._workers, Silence())
        if self._keep and self._depends_on_rules():
            return extractor(texts)
        missing = extractor.list_missing(texts)
        stored = sorted(set(texts) - set(missing))
        known = dict(zip(stored, extractor(stored), strict=True))
        if missing and self._depends_on_rules():
            from kpyramid.extraction.openie import DependencyExtractor  # loads the parser

            chosen = self._settings.extract
            parser = DependencyExtractor(chosen.parser, chosen.language)
            known.update(zip(missing, parser.extract_all(missing), strict=True))
        return [known.get(text, Extraction()) for text in texts]

    def _depends_on_rules(self) -> bool:
        """Whether the rules choose the chunks, or make what the model's first step is shown."""
        cascade = self._settings.cascade
        return cascade.hybrid or (cascade.mode == "paper" and cascade.paraphrase == "rules")

    def _read(self, table: str) -> pa.Table:
        return read_result(self._files[table], load_contracts()[table])


class _UnknownError(Exception):
    """A vector was needed that is not stored."""


class _StoredVectors:
    """An `Embedder` that computes nothing."""

    def __init__(self, warehouse: Warehouse, settings: Settings) -> None:
        self._embedder = CachedEmbedder(warehouse, settings, 1, Silence(), _refuse)
        self.name = self._embedder.name

    def list_missing(self, texts: Sequence[str]) -> list[str]:
        """The texts that an embedder would have to compute."""
        return self._embedder.function.list_missing(texts)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """See `Embedder.embed`."""
        if self.list_missing(texts):
            raise _UnknownError
        return self._embedder.embed(texts)


def _refuse(*_: object) -> NoReturn:
    raise _UnknownError
