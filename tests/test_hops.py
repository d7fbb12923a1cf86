"""The hop-fact rule, relations without meaning, and passage recall: against oracles."""

from typing import Any

import musique
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sets.musique import (
    HopFact,
    is_empty_relation,
    joins,
    list_words,
    matches,
    score_hop_facts,
    score_retrieval,
)

from tests.corpora import find_bench

HOP = HopFact("The Harlow Bridge", "John Rennie", "text")
WORDS = st.lists(st.sampled_from(["lake", "vell", "tor", "kent"]), max_size=10).map(tuple)


def test_words_are_small_and_without_articles() -> None:
    assert list_words("The  St. Mary's of a Lund") == ("st", "mary", "s", "of", "lund")


@given(WORDS, WORDS)
def test_matching_is_containment_as_whole_words(
    argument: tuple[str, ...], name: tuple[str, ...]
) -> None:
    one, other = (f" {' '.join(w)} " for w in (argument, name))
    oracle = bool(argument and name) and len(argument) <= 8 and (one in other or other in one)
    assert matches(argument, name) == oracle


@pytest.mark.parametrize(
    ("triple", "expected"),
    [
        (("Harlow Bridge", "was built by", "John Rennie"), True),
        (("engineer John Rennie", "built", "bridge"), True),
        (("engineer John Rennie", "built", "road"), False),
        (("John Rennie the Elder", "built", "the old Harlow Bridge in Kent"), True),
        (("Harlow", "was built by", "Rennie"), True),
        (("Harlow Bridges", "was built by", "John Rennie"), False),
        (("Bridge Harlow", "was built by", "John Rennie"), False),
        (("Harlow Bridge", "was built by", "one two three four five six John Rennie"), True),
        (("Harlow Bridge", "was built by", "one two three four five six seven John Rennie"), False),
        (("Harlow Bridge", "was built in", "Kent"), False),
        (("the", "was built by", "John Rennie"), False),
    ],
)
def test_hop_is_joined_by_both_names_in_either_direction(
    triple: tuple[str, str, str], expected: bool
) -> None:
    assert joins(triple, HOP) is expected


def test_hop_counts_only_in_its_own_passage() -> None:
    triple = ("Harlow Bridge", "was built by", "John Rennie")
    assert score_hop_facts([HOP], {"text": [triple]}) == (True,)
    assert score_hop_facts([HOP], {"other": [triple]}) == (False,)


@pytest.mark.parametrize(
    ("relation", "tail", "expected"),
    [
        ("is a", "bridge", False),
        ("was an", "bridge", False),
        ("is a", "Kent", True),
        ("is", "bridge", True),
        ("has", "bridge", True),
        ("had", "Kent", True),
        ("of", "Kent", True),
        ("is in", "Kent", True),
        ("has been with", "Kent", True),
        ("", "Kent", True),
        ("%", "Kent", True),
        ("is located in", "Kent", False),
        ("has capital", "Kent", False),
        ("is one of", "Kent", False),
        ("crossed", "Kent", False),
    ],
)
def test_relation_without_a_content_word_is_empty_except_before_a_kind(
    relation: str, tail: str, expected: bool
) -> None:
    assert is_empty_relation(relation, tail, {"bridge"}.__contains__) is expected


def test_recall_counts_gold_passages_among_the_nearest() -> None:
    passages = np.eye(4, dtype=np.float32)
    questions = np.array([[0.9, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.9]], dtype=np.float32)
    scores = score_retrieval(questions, passages, [frozenset({0, 2}), frozenset({1})], (1, 2, 3))
    assert scores.recall == {1: 0.25, 2: 0.25, 3: 1.0}
    assert scores.all_gold == {1: 0.0, 2: 0.0, 3: 1.0}


def test_question_without_gold_passage_is_refused() -> None:
    with pytest.raises(ValueError, match="no retrieval to score"):
        score_retrieval(
            np.eye(1, dtype=np.float32), np.eye(1, dtype=np.float32), [frozenset()], (1,)
        )


def reproduce(limit: int | None = None) -> dict[str, Any]:
    """The figures of the recorded triples."""
    return musique.measure(find_bench("musique100"), limit, True)


def test_recorded_extraction_scores_as_published() -> None:
    figures = reproduce()
    assert (figures["hops_found"], figures["hops"], figures["hop_facts"]) == (63, 97, 0.649)
    assert (figures["triples"], figures["rows_not_triples"]) == (17_234, 185)
    assert figures["empty_relations"] > 0.11


def test_limit_holds_for_recorded_extraction_too() -> None:
    figures = reproduce(5)
    assert 0 < figures["hops"] < 20
    assert 0 < figures["triples"] < 2_000
