"""A pyramid of a few sentences, built once for all tests of the query module that share it."""

from pathlib import Path

import pytest

from kpyramid.pipeline.build import build
from kpyramid.query import Snapshot, open_snapshot
from kpyramid.settings import Settings
from kpyramid.storage.layout import open_warehouse
from tests.corpora import pass_gates, share, write_corpus

TEXTS = {
    "ada.txt": "Ada Lovelace was born in London on 10 December 1815. She was a mathematician.",
    "mill.txt": "The Harlow Brewing Company was founded by John Harlow in 1871. "
    "It owns a mill for barley.",
    "hill.txt": "Brent Tor is a hill in Devon. Its elevation is 330 metres. "
    "Granite crosses mark the path that pilgrims took to the chapel on its summit.",
    "song.txt": "John Harlow was the uncle of Mary Stone. Mary Stone wrote the novel Grey Water. "
    "Grey Water did not please Peter Ash.",
}


_built: list[Snapshot] = []


def open_tiny() -> Snapshot:
    """The snapshot of `TEXTS`; the first call of a test run builds it."""
    if not _built:
        _built.append(open_snapshot("main", share("tiny", _build) / "warehouse"))
    return _built[0]


def _build(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        pass_gates(monkeypatch)
        corpus = write_corpus(folder / "corpus", TEXTS)
        build(corpus, open_warehouse(folder / "warehouse"), Settings())
