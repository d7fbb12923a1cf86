"""The hop-fact rule, relations without meaning, and passage recall: against oracles."""

from typing import Any

import musique
import numpy as np
import pytest
from sets.musique import HopFact, is_empty_relation, joins, score_retrieval

from tests.corpora import find_bench
from tests.rows import each_row

HOP = HopFact("The Harlow Bridge", "John Rennie", "text")


@each_row("triple, expected")
def test_hop_is_joined_by_both_names_either_way(
    triple: tuple[str, str, str], expected: bool
) -> None:
    assert joins(triple, HOP) is expected


@each_row("relation, tail, expected")
def test_relation_without_content_words_is_empty(relation: str, tail: str, expected: bool) -> None:
    assert is_empty_relation(relation, tail, {"bridge"}.__contains__) is expected


def test_recall_counts_gold_passages_among_the_nearest() -> None:
    passages = np.eye(4, dtype=np.float32)
    questions = np.array([[0.9, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.9]], dtype=np.float32)
    scores = score_retrieval(questions, passages, [frozenset({0, 2}), frozenset({1})], (1, 2, 3))
    assert scores.recall == {1: 0.25, 2: 0.25, 3: 1.0}
    assert scores.all_gold == {1: 0.0, 2: 0.0, 3: 1.0}


def reproduce(limit: int | None = None) -> dict[str, Any]:
    """The figures of the recorded triples."""
    return musique.measure(find_bench("musique100"), limit, True)


@pytest.mark.slow
def test_recorded_extraction_scores_as_published() -> None:
    figures = reproduce()
    assert (figures["hops_found"], figures["hops"], figures["hop_facts"]) == (63, 97, 0.649)
    assert (figures["triples"], figures["rows_not_triples"]) == (17_234, 185)
    assert figures["empty_relations"] > 0.11
