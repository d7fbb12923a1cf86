"""A pyramid of a few sentences, built once for all tests of the query module that share it."""

from pathlib import Path

import pytest

from kpyramid.build import build
from kpyramid.query import Snapshot, open_snapshot
from kpyramid.settings import Settings
from kpyramid.warehouse.layout import open_warehouse

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


def open_tiny(folders: pytest.TempPathFactory) -> Snapshot:
    """The snapshot of `TEXTS`; the first call builds it."""
    if not _built:
        corpus = folders.mktemp("tiny")
        for name, text in TEXTS.items():
            (corpus / name).write_text(text)
        warehouse = open_warehouse(Path(folders.mktemp("tiny-warehouse")))
        build(corpus, warehouse, Settings())
        _built.append(open_snapshot("main", warehouse.root))
    return _built[0]
