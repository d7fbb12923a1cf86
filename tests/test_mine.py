"""MINE: retrieval against an oracle, the judge's measures by hand, the recorded figures."""

from pathlib import Path
from typing import Any

import mine as script
import numpy as np
import pytest
from sets.mine import FEATURES, Triple, measure_support, read_context

from tests.corpora import HashEmbedder, find_bench

MODEL = HashEmbedder("words", Path("model"), Path("tokenizer"))


def support(fact: str, *triples: tuple[str, str, str]) -> dict[str, float]:
    signs = measure_support(fact, [Triple(*words) for words in triples], MODEL)
    return dict(zip(FEATURES, map(float, signs), strict=True))


def test_recorded_context_is_cut_at_triples_and_not_at_full_stops() -> None:
    triples = [
        Triple("Fleming", "works at", "St. Mary's Hospital"),
        Triple("Fleming", "works at", "St"),
        Triple("a", "b", "c"),
    ]
    text = "Fleming works at St. Mary's Hospital. a b c. Somebody else. Fleming works at St."
    assert read_context(text, triples) == [
        triples[0],
        triples[2],
        Triple("Somebody else", "", ""),
        triples[1],
    ]
    assert read_context("", triples) == []


def test_statement_itself_has_every_sign() -> None:
    signs = support(
        "Per Lund discovered Lake Vell in 1902", ("Per Lund", "discovered", "Lake Vell")
    )
    assert signs["words"] == pytest.approx(5 / 6)
    assert signs["weakest_word"] == signs["numbers"] == 0.0
    assert signs["names"] == pytest.approx(1.0)
    whole = support(
        "Per Lund discovered Lake Vell in 1902", ("Per Lund", "discovered", "Lake Vell in 1902")
    )
    assert all(whole[sign] == pytest.approx(1.0) for sign in FEATURES if sign != "similarity")


def read_bench(limit: int | None = None) -> Any:
    return script.read_data(find_bench("mine_public"), limit)


@pytest.mark.slow
def test_recorded_verdicts_give_the_published_scores() -> None:
    data = read_bench()
    assert len(data.texts) == 53
    assert len(data.list_common()) == 44
    common = set(data.list_common())
    for system, score, score_common in (
        ("KGGen", 0.639, 0.620),
        ("GraphRAG", 0.501, 0.505),
        ("OpenIE", 0.299, 0.295),
    ):
        found = [v.found for v in data.verdicts if v.system == system]
        shared = [v.found for v in data.verdicts if v.system == system and v.essay in common]
        assert np.mean(found) == pytest.approx(score, abs=5e-4)
        assert np.mean(shared) == pytest.approx(score_common, abs=5e-4)


@pytest.mark.slow
def test_retrieval_gives_the_recorded_contexts() -> None:
    data = read_bench(limit=2)
    overlaps = script.measure_contexts(data, script.open_embedder())
    assert min(overlaps.values()) > 0.9
