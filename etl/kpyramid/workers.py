"""Texts shared out to worker processes, each of which loads its model once."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial

from pydantic import TypeAdapter

from kpyramid.errors import PyramidError
from kpyramid.extraction.syntax.packing import pack_tree
from kpyramid.extraction.syntax.parsing import Parser
from kpyramid.extraction.types import Extraction, Extractor

_FEW = 24
"""Texts below which starting worker processes costs more than it saves."""

_BATCH_CHARACTERS = 20_000
"""Characters that a worker process extracts at a time: a few seconds of work."""

_EXTRACTION = TypeAdapter(Extraction)


def share_out(
    texts: Sequence[str],
    workers: int,
    load: Callable[..., None],
    chosen: tuple[str, ...],
    work: Callable[[Sequence[str]], Iterator[bytes]],
) -> Iterator[bytes]:
    """The results in order, of this process or of several, each of which loads its model once."""
    if not texts:
        return
    if workers == 1 or len(texts) < _FEW:
        load(*chosen)
        yield from work(texts)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, load, chosen)
    try:
        for payloads in pool.map(partial(_collect, work), _make_batches(texts)):
            yield from payloads
    except BrokenProcessPool as e:
        raise PyramidError(
            "a worker process died while extracting, killed or out of memory. What was "
            "finished is kept: run the command again, with fewer --workers if memory is short"
        ) from e
    finally:
        pool.shutdown(cancel_futures=True)


_extractors: list[Extractor] = []


def load_extractor(parser: str, language: str) -> None:
    """Makes this process ready for `extract_all`."""
    from kpyramid.extraction.openie import DependencyExtractor

    _extractors[:] = [DependencyExtractor(parser, language)]


def _collect(work: Callable[[Sequence[str]], Iterator[bytes]], texts: Sequence[str]) -> list[bytes]:
    return list(work(texts))


def extract_all(texts: Sequence[str]) -> Iterator[bytes]:
    """The extraction of each text as JSON."""
    return map(_EXTRACTION.dump_json, _extractors[0].extract_all(texts))


_parsers: list[Parser] = []


def load_parser(package: str) -> None:
    """Makes this process ready for `parse_all`."""
    if not _parsers or _parsers[0].package != package:
        _parsers[:] = [Parser(package)]


def parse_all(texts: Sequence[str]) -> Iterator[bytes]:
    """The parse of each text, packed."""
    return (pack_tree(tree).encode() for tree in _parsers[0].parse_all(texts))


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
