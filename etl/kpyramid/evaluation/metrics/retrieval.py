"""Measures of the ranked documents that an answer's context comes from.

A document counts once, at its best rank, whatever number of its chunks or facts were found.
"""

from collections.abc import Callable, Sequence
from math import log2

from kpyramid.evaluation.metrics.types import Metric, Response
from kpyramid.evaluation.questions import EvalQuestion

RANKS = (2, 5, 8, 10)


def score_recall_at(gold: Sequence[str], documents: Sequence[str], k: int) -> float:
    """The share of the gold documents among the first k; 0 without gold."""
    wanted = set(gold)
    return len(wanted & set(rank_documents(gold, documents)[:k])) / len(wanted) if wanted else 0.0


def score_all_at(gold: Sequence[str], documents: Sequence[str], k: int) -> float:
    """1 when all gold documents are among the first k, else 0."""
    return float(bool(gold) and set(gold) <= set(rank_documents(gold, documents)[:k]))


def score_ndcg_at(gold: Sequence[str], documents: Sequence[str], k: int) -> float:
    """Discounted gain of the first k over the best there can be, gains 0 and 1.

    Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques", TOIS 2002, with
    the discount 1 / log2(rank + 1) of trec_eval.
    """
    wanted = set(gold)
    found = rank_documents(gold, documents)[:k]
    gain = sum(1 / log2(rank + 1) for rank, name in enumerate(found, 1) if name in wanted)
    best = sum(1 / log2(rank + 1) for rank in range(1, min(len(wanted), k) + 1))
    return gain / best if best else 0.0


def score_reciprocal_rank(gold: Sequence[str], documents: Sequence[str]) -> float:
    """1 / the rank of the first gold document; 0 when none was found."""
    wanted = set(gold)
    ranked = enumerate(rank_documents(gold, documents), 1)
    return next((1 / rank for rank, name in ranked if name in wanted), 0.0)


def rank_documents(gold: Sequence[str], documents: Sequence[str]) -> list[str]:
    """The documents, each once at its best rank, gold ones under the names that `gold` has."""
    wanted = set(gold)
    return list(dict.fromkeys(_name_document(source, wanted) for source in documents))


def _name_document(source: str, wanted: set[str]) -> str:
    """The gold name of a source: the source itself, or what stands after one of its '#'."""
    name = source
    while name not in wanted:
        _, mark, name = name.partition("#")
        if not mark:
            return source
    return name


def _has_gold(question: EvalQuestion) -> bool:
    return bool(question.gold_documents)


def _at(
    score: Callable[[Sequence[str], Sequence[str], int], float], k: int
) -> Callable[[EvalQuestion, Response], float]:
    return lambda question, response: score(question.gold_documents, response.documents, k)


RETRIEVAL_METRICS = (
    *(
        Metric(
            f"recall_at_{k}",
            f"share of the gold documents in the top {k}",
            _has_gold,
            _at(score_recall_at, k),
        )
        for k in RANKS
    ),
    *(
        Metric(
            f"all_gold_at_{k}",
            f"all gold documents in the top {k}",
            _has_gold,
            _at(score_all_at, k),
        )
        for k in RANKS
    ),
    Metric(
        "ndcg_at_10", "discounted gain of the top 10, binary", _has_gold, _at(score_ndcg_at, 10)
    ),
    Metric(
        "mrr",
        "1 / rank of the first gold document",
        _has_gold,
        lambda question, response: score_reciprocal_rank(
            question.gold_documents, response.documents
        ),
    ),
)
