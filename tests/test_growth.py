"""The measurement of growth: made graphs keep the contracts, exponents and limits are right."""

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kpyramid.storage.contracts import load_contracts, read_table

ROOT = Path(__file__).parent.parent
FACTS = 2000


@pytest.fixture(scope="module")
def growth() -> ModuleType:
    return __import__("growth")


@pytest.fixture(scope="module")
def synthetic(growth: ModuleType) -> ModuleType:
    return __import__("synthetic")


@pytest.fixture(scope="module")
def tables(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("graph")
    synthetic.write_graph(folder, FACTS, 0)
    return {
        path.stem: read_table(path, load_contracts()[path.stem])
        for path in sorted(folder.glob("*.parquet"))
    }


def test_memory_of_a_phrase_of_condensation_does_not_grow_with_its_anchors() -> None:
    """Phrases share the set of their anchors: a million of them had 216 MB of empty ones."""
    from kpyramid.condensation.graph import Graph
    from kpyramid.condensation.merging import Linked
    from kpyramid.condensation.standard import _list_phrases
    from kpyramid.graph.synonyms.comparison import Comparer

    count = 50
    rows, none = np.arange(count), np.full(count, -1)
    words = [f"saw {at}" for at in range(count)]
    graph = Graph(
        *(rows * 0, rows, rows * 0 + 1, none, [], ["Ada", "Ben"], ["PERSON", "PERSON"]),
        *(words, [1] * count, {}, {}),
    )
    linked = Linked([(word, None, None) for word in words], [()] * count, rows)
    phrases, _ = _list_phrases(graph, linked, Comparer(None))  # type: ignore[arg-type]
    assert len(phrases) == count
    assert len({id(phrase.anchors) for phrase in phrases}) == 1
