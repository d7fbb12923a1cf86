"""The expensive functions of the stages, each behind its cache: what is known is not computed.

A result is a pure function of one text, so neither the number of workers nor the order nor an
earlier crash can change it.
"""

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from kpyramid.cached import CachedEmbedder, CachedFunction
from kpyramid.cached import Progress as Progress
from kpyramid.cached import Silence as Silence
from kpyramid.declared import OntologyFiles, locate_ontology
from kpyramid.errors import PyramidError
from kpyramid.extraction.cascade.reading import Cascade
from kpyramid.extraction.text.splitter import Piece, split_text
from kpyramid.extraction.types import Extraction, Extractor
from kpyramid.fingerprints import identify_resource
from kpyramid.llm.caller import Asker
from kpyramid.models import Model, Opener
from kpyramid.ontology.schema import Schema, parse_schema
from kpyramid.pipeline import Stage
from kpyramid.resolution.confirming import Disambiguator
from kpyramid.settings import Settings
from kpyramid.warehouse.layout import Warehouse

_FEW = 24
"""Texts below which starting worker processes costs more than it saves."""

_BATCH_CHARACTERS = 20_000
"""Characters that a worker process extracts at a time: a few seconds of work."""

_EXTRACTION = TypeAdapter(Extraction)
_PIECES = TypeAdapter(tuple[Piece, ...])


def open_splitter(
    warehouse: Warehouse, settings: Settings, progress: Progress
) -> CachedFunction[tuple[Piece, ...]]:
    """Cuts texts into chunks."""

    def compute(texts: Sequence[str]) -> Iterator[bytes]:
        for text in texts:
            yield _PIECES.dump_json(tuple(split_text(text, settings.chunk)))

    return CachedFunction("splitter", warehouse, settings, compute, _PIECES.validate_json, progress)


def open_extractor(
    warehouse: Warehouse, settings: Settings, workers: int, progress: Progress
) -> CachedFunction[Extraction]:
    """Finds the facts in texts, on several processes when there is enough to do."""
    chosen = (settings.extract.parser, settings.extract.language)

    def compute(texts: Sequence[str]) -> Iterator[bytes]:
        if not texts:
            return
        if workers == 1 or len(texts) < _FEW:
            _load_extractor(*chosen)
            yield from _extract(texts)
            return
        context = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(workers, context, _load_extractor, chosen)
        try:
            for payloads in pool.map(_extract_all, _make_batches(texts)):
                yield from payloads
        except BrokenProcessPool as e:
            raise PyramidError(
                "a worker process died while extracting, killed or out of memory. What was "
                "finished is kept: run the command again, with fewer --workers if memory is short"
            ) from e
        finally:
            pool.shutdown(cancel_futures=True)

    return CachedFunction(
        "extractor", warehouse, settings, compute, _EXTRACTION.validate_json, progress
    )


@dataclass(frozen=True, slots=True)
class Ports:
    """What a stage's `run` gets by keyword, and the cached functions among it."""

    calls: dict[str, object]
    functions: tuple[CachedFunction[Any], ...]
    model: Model | None = None

    def count_computed(self) -> int:
        """The rows that no cache had."""
        return sum(function.computed for function in self.functions)


def open_ports(
    warehouse: Warehouse,
    settings: Settings,
    stage: Stage,
    workers: int,
    progress: Progress,
    opener: Opener,
) -> Ports:
    """The ports that a stage declares, except the corpus, which is the runner's to read.

    `opener` opens the models that are asked over a network, where the settings name one.

    Raises:
        SettingsError: a model or an ontology that the settings name is not there.
    """
    calls: dict[str, object] = {}
    functions: list[CachedFunction[Any]] = []
    model = None
    if "settings" in stage.ports:
        calls["settings"] = getattr(settings, stage.name)
    if "schema" in stage.ports:
        calls["schema"] = load_schema(settings)
    if "splitter" in stage.ports:
        functions.append(open_splitter(warehouse, settings, progress))
        calls["splitter"] = functions[-1]
    if "extractor" in stage.ports:
        functions.append(open_extractor(warehouse, settings, workers, progress))
        calls["extractor"] = functions[-1]
    if "embedder" in stage.ports:
        embedder = CachedEmbedder(
            warehouse, settings, workers, progress, opener.connect, stage.name
        )
        functions.append(embedder.function)
        calls["embedder"] = embedder
    if "cascade" in stage.ports:
        model = opener.open_model() if settings.cascade.reads_chunks else None
        calls["cascade"] = model and open_cascade(settings, model.caller, progress)
    if "disambiguator" in stage.ports:
        model = opener.open_model() if settings.cascade.confirms_duplicates else None
        calls["disambiguator"] = model and open_disambiguator(settings, model.caller)
    return Ports(calls, tuple(functions), model)


def open_cascade(settings: Settings, asker: Asker, progress: Progress) -> Cascade:
    """f_par, f_ent and f_rel by a language model, chunk by chunk."""
    llm = settings.llm
    return Cascade(
        asker,
        settings.cascade,
        model=llm.model or llm.provider,
        max_tokens=llm.max_tokens,
        concurrency=llm.concurrency,
        progress=progress,
    )


def open_disambiguator(settings: Settings, asker: Asker) -> Disambiguator:
    """f_dis by a language model, batch by batch of near duplicates."""
    llm, cascade = settings.llm, settings.cascade
    return Disambiguator(asker, cascade.domain, cascade.language, llm.max_tokens, llm.concurrency)


def load_schema(settings: Settings) -> Schema:
    """The seed ontology that the settings name.

    Raises:
        SettingsError: there is none of that name.
        InputError: it is no valid ontology.
    """
    path = locate_files(settings).turtle
    return parse_schema(path.read_text("utf-8"), source=str(path))


def locate_files(settings: Settings) -> OntologyFiles:
    """The files of the seed ontology that the settings name.

    Raises:
        SettingsError: there is none of that name.
    """
    identify_resource("ontology", settings)
    files = locate_ontology(settings.induce.ontology)
    assert files is not None  # it was identified
    return files


_extractors: list[Extractor] = []


def _load_extractor(parser: str, language: str) -> None:
    from kpyramid.extraction.openie import DependencyExtractor

    _extractors[:] = [DependencyExtractor(parser, language)]


def _extract(texts: Iterable[str]) -> Iterator[bytes]:
    return map(_EXTRACTION.dump_json, _extractors[0].extract_all(texts))


def _extract_all(texts: Sequence[str]) -> list[bytes]:
    return list(_extract(texts))


def _make_batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Lists of texts of about equal length, so that no worker waits long for another."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
