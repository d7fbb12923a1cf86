"""Measures of ranked documents against formulas and scikit-learn."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.evaluation.metrics import (
    METRICS,
    RANKS,
    Response,
    rank_documents,
    score_all_at,
    score_ranking,
)
from kpyramid.evaluation.questions import EvalQuestion

NAMES = st.sampled_from("abcdefghijklmno")
LISTS = st.lists(NAMES, max_size=20)
GOLD = st.lists(NAMES, min_size=1, max_size=5)


def score(name: str, gold: str, documents: tuple[str, ...]) -> float | None:
    question = EvalQuestion("q", "What?", "retrieval", gold_documents=tuple(gold))
    return METRICS[name].measure(question, Response(documents=documents))


def test_recall_counts_the_gold_among_the_first() -> None:
    documents = ("x", "a", "y", "z", "b", "c")
    assert score("recall_at_2", "abc", documents) == pytest.approx(1 / 3)
    assert score("recall_at_5", "abc", documents) == pytest.approx(2 / 3)
    assert score("recall_at_8", "abc", documents) == 1.0
    assert score("all_gold_at_5", "abc", documents) == 0.0
    assert score("all_gold_at_8", "abc", documents) == 1.0
    assert score("mrr", "abc", documents) == 0.5


def test_discounted_gain_is_that_of_the_formula() -> None:
    gain = 1 / math.log2(3) + 1 / math.log2(6)
    best = 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert score("ndcg_at_10", "abc", ("x", "a", "y", "z", "b")) == pytest.approx(gain / best)


def test_discounted_gain_is_that_of_scikit_learn() -> None:
    import numpy as np
    from sklearn.metrics import ndcg_score

    generator = np.random.default_rng(1)
    names = [f"d{n}" for n in range(30)]
    for _ in range(20):
        ranked = [names[at] for at in generator.permutation(30)]
        gold = [names[at] for at in generator.choice(30, size=14, replace=False)]
        truth = [[float(name in gold) for name in ranked]]
        theirs = ndcg_score(truth, [[-float(rank) for rank in range(30)]], k=10)
        assert score_ranking(gold, ranked, "nDCG@10") == pytest.approx(theirs)


def test_document_counts_once_at_its_best_rank() -> None:
    documents = ("x", "x", "x", "a", "a", "b")
    assert rank_documents("ab", documents) == ["x", "a", "b"]
    assert score("recall_at_2", "ab", documents) == 0.5
    assert score("mrr", "b", documents) == pytest.approx(1 / 3)


def test_source_is_known_by_what_stands_after_its_hash() -> None:
    documents = ("corpus.jsonl#7", "a#b.jsonl#x#1", "3", "corpus.jsonl#3")
    assert rank_documents(("3", "x#1", "7"), documents) == ["7", "x#1", "3"]
    assert rank_documents(("corpus.jsonl#7",), documents)[0] == "corpus.jsonl#7"
    assert rank_documents(("17",), documents) == list(documents)


def test_hash_at_the_end_of_a_source_ends_the_search() -> None:
    assert rank_documents(("a",), ("#", "a#", "##")) == ["#", "a#", "##"]


def test_nothing_found_scores_nothing_and_no_gold_does_not_apply() -> None:
    names = [f"{name}_at_{k}" for name in ("recall", "all_gold") for k in RANKS]
    for name in (*names, "ndcg_at_10", "mrr"):
        assert score(name, "ab", ()) == 0.0
        open_question = EvalQuestion("q", "What?", "open", (("a",),))
        assert METRICS[name].measure(open_question, Response(documents=("a",))) is None
    for measure in ("R@5", "nDCG@5", "RR"):
        assert score_ranking((), ("a",), measure) == score_ranking(("a",), (), measure) == 0.0
    assert score_all_at((), ("a",), "R@5") == 0.0


@given(GOLD, LISTS)
def test_scores_are_bounded_and_grow_with_the_rank(gold: list[str], documents: list[str]) -> None:
    recalls = [score_ranking(gold, documents, f"R@{k}") for k in range(1, 21)]
    assert recalls == sorted(recalls) and 0 <= recalls[0] <= recalls[-1] <= 1
    for k in (1, 5, 10):
        recall = score_ranking(gold, documents, f"R@{k}")
        assert score_all_at(gold, documents, f"R@{k}") == (recall == 1)
        assert 0 <= score_ranking(gold, documents, f"nDCG@{k}") <= 1 + 1e-12
    assert (score_ranking(gold, documents, "RR") > 0) == bool(set(gold) & set(documents))


@given(GOLD, LISTS, st.randoms(use_true_random=False))
def test_order_of_the_gold_documents_does_not_matter(gold, documents, shuffle) -> None:  # type: ignore[no-untyped-def]
    other = [*shuffle.sample(gold, len(gold)), gold[0]]
    for measure in ("nDCG@10", "R@5"):
        assert score_ranking(gold, documents, measure) == score_ranking(other, documents, measure)


@given(GOLD, LISTS)
def test_moving_gold_to_the_front_never_lowers_a_score(gold: list[str], rest: list[str]) -> None:
    front = [*gold, *rest]
    assert score_ranking(gold, front, "nDCG@10") == pytest.approx(1.0)
    assert score_ranking(gold, front, "RR") == 1.0
