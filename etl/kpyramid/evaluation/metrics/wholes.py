"""Measures of all responses together that are no mean over questions."""

from collections.abc import Callable, Sequence
from math import exp, fsum, inf

import numpy as np

from kpyramid.evaluation.metrics.answers import has_verdict, score_right
from kpyramid.evaluation.metrics.choice import read_gold_verdicts, read_verdict
from kpyramid.evaluation.metrics.overlap import CORPUS_BLEUS
from kpyramid.evaluation.metrics.types import Pair, Response, SetMetric

BINS = 10


def score_macro_f1(pairs: Sequence[Pair]) -> float | None:
    """The mean over yes, no and maybe of the F1 of that verdict.

    PubMedQA's second measure (Jin et al., EMNLP 2019), over the verdicts that are given or right
    for some question. An unanswered question is a miss of its verdict. Of a question with several
    right verdicts the one given counts, else the first by the alphabet. None without a question
    of that kind.
    """
    verdicts = [
        (read_verdict(response), sorted(gold))
        for question, response in pairs
        if question.kind == "yesno" and (gold := read_gold_verdicts(question))
    ]
    decided = [(said, said if said in gold else gold[0]) for said, gold in verdicts]
    classes = sorted({name for pair in decided for name in pair if name is not None})
    if not classes:
        return None
    scores = []
    for name in classes:
        hits = sum(said == right == name for said, right in decided)
        scores.append(2 * hits / sum((said == name) + (right == name) for said, right in decided))
    return fsum(scores) / len(scores)


def score_calibration(pairs: Sequence[Pair], bins: int = BINS) -> float | None:
    """The expected calibration error: how far confidence is from the share that is right.

    Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, Eq. 3: over `bins` equal
    ranges of confidence, the distance of mean confidence and share right, weighted by the answers
    in each. Of answered questions only: silence states no confidence. None when there are none.
    """
    stated: list[tuple[float, float]] = []
    for question, response in pairs:
        right = score_right(question, response) if has_verdict(question) else None
        if right is not None and response.answered:
            stated.append((response.confidence, right))
    if not stated:
        return None
    gaps: dict[int, list[float]] = {}
    for confidence, right in sorted(stated):
        place = min(max(int(confidence * bins), 0), bins - 1)
        gaps.setdefault(place, []).append(confidence - right)
    return fsum(abs(fsum(gap)) for gap in gaps.values()) / len(stated)


def score_corpus_perplexity(pairs: Sequence[Pair]) -> float | None:
    """The exponential of minus the mean log-probability of all answers' tokens together.

    None where the endpoint gave none; answers without log-probabilities are left out.
    """
    logs = [value for _, response in pairs for value in response.logprobs or ()]
    if not logs:
        return None
    mean = fsum(logs) / len(logs)
    return exp(-mean) if mean > -700 else inf  # exp(710) overflows


def find_percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of the values do not exceed: one that was measured."""
    return float(np.percentile(values, percent, method="inverted_cdf"))


def _percentile(percent: float) -> Callable[[Sequence[Pair]], float | None]:
    def score(pairs: Sequence[Pair]) -> float | None:
        return find_percentile([r.seconds for _, r in pairs], percent) if pairs else None

    return score


def _total(read: Callable[[Response], float | None]) -> Callable[[Sequence[Pair]], float | None]:
    """A sum; None when a part of it is unknown, for it would be too small."""

    def score(pairs: Sequence[Pair]) -> float | None:
        values = [read(response) for _, response in pairs]
        known = [value for value in values if value is not None]
        return fsum(known) if known and len(known) == len(values) else None

    return score


ANSWER_TOTALS = (
    *CORPUS_BLEUS,
    SetMetric("macro_f1", "mean F1 of the verdicts yes, no and maybe", score_macro_f1),
    SetMetric("calibration_error", "confidence against share right", score_calibration, "lower"),
    SetMetric(
        "corpus_perplexity",
        "of all answers' tokens under the model that gave them",
        score_corpus_perplexity,
        "lower",
    ),
)
EXPENSE_TOTALS = (
    SetMetric("calls", "model calls in all", _total(lambda r: r.calls), "lower"),
    SetMetric("tokens", "tokens in all", _total(lambda r: r.tokens), "lower"),
    SetMetric("cost", "cost in all", _total(lambda r: r.cost), "lower"),
    SetMetric("seconds_p50", "median wall time", _percentile(50), "lower"),
    SetMetric("seconds_p99", "99th percentile of wall time", _percentile(99), "lower"),
)
