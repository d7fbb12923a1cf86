"""Measures of ranked documents against formulas and scikit-learn."""

import pytest

from kpyramid.evaluation.metrics import (
    METRICS,
    RANKS,
    Response,
    rank_documents,
    score_all_at,
    score_ranking,
)
from kpyramid.evaluation.questions import EvalQuestion


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
