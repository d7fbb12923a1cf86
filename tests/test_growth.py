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


def test_nearly_every_fact_has_a_phrase_of_its_own(tables: dict[str, Any]) -> None:
    said = {row["relation_id"]: row["name"] for row in tables["relations"].to_pylist()}
    assert len(set(said.values())) == len(said) == FACTS / 4
    facts = tables["triples"].to_pylist()
    assert len({(row["head_id"], row["relation_id"]) for row in facts}) > 0.99 * FACTS


def test_planted_relations_join_two_types_and_are_alike_in_words(
    tables: dict[str, Any], synthetic: ModuleType
) -> None:
    kinds = {row["entity_id"]: row["type"] for row in tables["entities"].to_pylist()}
    said = {row["relation_id"]: row["name"] for row in tables["relations"].to_pylist()}
    ends: dict[str, set[tuple[str, str]]] = {}
    wordings: dict[str, list[str]] = {}
    for row in tables["triples"].to_pylist():
        wording = said[row["relation_id"]]
        if " their " in wording:
            first = wording.partition(" their ")[0]
            tail = kinds.get(row["tail_id"], "LITERAL")
            ends.setdefault(first, set()).add((kinds[row["head_id"]], tail))
            wordings.setdefault(first, []).append(wording)
    assert len(ends) == 20
    for first, found in ends.items():
        assert len(found) == 1, first
        vectors = synthetic.WordVectors().embed(sorted(set(wordings[first])))
        assert (vectors @ vectors.T).min() > 0.6


def test_some_facts_share_head_and_tail(tables: dict[str, Any]) -> None:
    facts = tables["triples"].to_pylist()
    pairs = {(row["head_id"], row["tail_id"] or row["literal"]) for row in facts}
    assert 0.6 * FACTS < len(pairs) < 0.8 * FACTS


def test_spans_lead_to_the_words_of_each_statement(tables: dict[str, Any]) -> None:
    texts = {row["chunk_id"]: row["text"] for row in tables["chunks"].to_pylist()}
    for row in tables["raw_triples"].to_pylist():
        for part in ("head", "relation", "tail"):
            span = row[f"{part}_span"]
            assert texts[row["chunk_id"]][span["start"] : span["end"]] == row[part]


def test_values_of_the_ontology_fit_the_types_of_their_ends(
    tables: dict[str, Any], synthetic: ModuleType
) -> None:
    kinds = {row["entity_id"]: row["type"] for row in tables["entities"].to_pylist()}
    ends = {label: (head, tail) for label, head, tail in synthetic.PROPERTIES}
    values = tables["instances"].to_pylist()
    assert len(values) > FACTS / 20
    for row in values:
        head, tail = ends[row["property_iri"].partition("#")[2]]
        assert kinds[row["subject_id"]] == synthetic.TYPES[head]
        assert kinds[row["object_id"]] == synthetic.TYPES[tail]


def test_vectors_depend_on_the_text_alone_and_have_unit_length(synthetic: ModuleType) -> None:
    texts = ["Aria 4 sold large map of", "Brook 5 bought boat for", "", "sold map of"]
    vectors = synthetic.WordVectors().embed(texts)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    np.testing.assert_array_equal(vectors[3:], synthetic.WordVectors().embed(texts[3:]))
    assert vectors[0] @ vectors[3] > 0.6 > vectors[0] @ vectors[1]


def test_exponent_is_the_slope_between_the_two_largest_sizes(growth: ModuleType) -> None:
    assert growth.fit_exponent([10, 100, 1000], [5.0, 1.0, 100.0]) == 2.0
    assert growth.fit_exponent([10], [5.0]) is None


def test_limits_judge_time_at_a_million_and_growth_at_every_size(growth: ModuleType) -> None:
    def find(seconds: float) -> dict[str, Any]:
        return {"complete": {"seconds": seconds, "peak_mb": 9000.0, "own_mb": 2 * seconds}}

    small = growth.summarise({1000: find(1.0), 10_000: find(100.0)}, ["complete"])
    assert small["worst_exponent"] == 2.0
    assert not small["limits"]["complete exponent"]["holds"]
    assert not small["limits"]["complete peak_mb"]["holds"]
    assert "complete seconds" not in small["limits"]
    large = growth.summarise({100_000: find(100.0), 1_000_000: find(901.0)}, ["complete"])
    assert large["limits"]["complete exponent"]["holds"]
    assert not large["limits"]["complete seconds"]["holds"]


@pytest.mark.parametrize(("own_mb", "holds"), [(500.0, True), (1000.0, False)])
def test_memory_is_judged_at_ten_million_facts_by_its_line(
    growth: ModuleType, own_mb: float, holds: bool
) -> None:
    sizes = {
        size: {"resolve": {"seconds": 1.0, "peak_mb": own, "own_mb": own}}
        for size, own in ((500_000, 400.0), (1_000_000, own_mb))
    }
    found = growth.summarise(sizes, ["resolve"])
    assert found["stages"]["resolve"]["own_bytes_per_fact"] == round((own_mb - 400) * 2.097152)
    limit = found["limits"]["resolve own_mb_of_10_million"]
    assert limit["value"] == own_mb + 18 * (own_mb - 400)
    assert limit["holds"] is holds


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
