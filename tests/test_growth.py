"""The measurement of growth: made graphs keep the contracts, exponents and limits are right."""

import json
import subprocess
import sys
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


def test_made_tables_keep_their_contracts_and_references(tables: dict[str, Any]) -> None:
    assert tables["triples"].num_rows == FACTS
    for name, table in tables.items():
        load_contracts()[name].check_references(table, tables)


def test_spans_lead_to_the_words_of_each_statement(tables: dict[str, Any]) -> None:
    texts = {row["chunk_id"]: row["text"] for row in tables["chunks"].to_pylist()}
    for row in tables["raw_triples"].to_pylist():
        for part in ("head", "relation", "tail"):
            span = row[f"{part}_span"]
            assert texts[row["chunk_id"]][span["start"] : span["end"]] == row[part]


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


@pytest.mark.slow
def test_script_prints_its_figures() -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/growth.py", "--sizes", "400,800", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(done.stdout)
    assert {"worst_exponent", "worst_peak_mb", "stages"} <= figures.keys()
    assert figures["stages"].keys() == {"resolve", "embed", "induce", "complete", "condense"}
    for row in figures["sizes"]:
        assert row["seconds"] > 0
        assert row["peak_mb"] > 50
    condensed = [row["made"]["condensed"] for row in figures["sizes"] if row["stage"] == "condense"]
    assert all(0 < made <= size for made, size in zip(condensed, (400, 800), strict=True))
