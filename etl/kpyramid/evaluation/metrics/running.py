"""Measures of the way to an answer: layers, confidence, calls, tokens, cost, time."""

from collections.abc import Callable
from math import exp, fsum, inf

from kpyramid.evaluation.metrics.answers import has_verdict, score_right
from kpyramid.evaluation.metrics.types import Metric, Response
from kpyramid.evaluation.questions import EvalQuestion

LAYERS = ("ontology", "graph", "text", "model")
CONFIDENT = 0.5
"""From here on an answer is stated as more likely right than not."""


def score_wrong_confident(
    question: EvalQuestion, response: Response, level: float = CONFIDENT
) -> float | None:
    """1 for a wrong answer whose confidence is `level` or more, else 0.

    The mean is a share of all questions, not of those answered. None where no verdict can be had.
    """
    right = score_right(question, response)
    if right is None:
        return None
    return float(response.answered and right < 1 and response.confidence >= level)


def score_perplexity(_question: EvalQuestion, response: Response) -> float | None:
    """The exponential of minus the mean log-probability of the answer's tokens.

    None where the endpoint gave no log-probabilities; infinite when a token was impossible.
    """
    if not response.logprobs:
        return None
    mean = fsum(response.logprobs) / len(response.logprobs)
    return exp(-mean) if mean > -700 else inf  # exp(710) overflows


def _is_answer(question: EvalQuestion) -> bool:
    return question.kind != "retrieval"


def _is_any(_question: EvalQuestion) -> bool:
    return True


def _ends_at(layer: str) -> Callable[[EvalQuestion, Response], float]:
    return lambda _question, response: float(response.answered and response.layer == layer)


RUNNING_METRICS = (
    Metric(
        "answered",
        "share of the questions with an answer",
        _is_answer,
        lambda _, r: float(r.answered),
        "neither",
    ),
    Metric(
        "wrong_confident",
        f"wrong with a confidence of {CONFIDENT} or more",
        has_verdict,
        score_wrong_confident,
        "lower",
    ),
    Metric(
        "perplexity",
        "of the answer's tokens under the model that gave it",
        _is_answer,
        score_perplexity,
        "lower",
    ),
)
LAYER_METRICS = tuple(
    Metric(
        f"layer_{layer}",
        f"share answered at the {layer} layer",
        _is_answer,
        _ends_at(layer),
        "neither",
    )
    for layer in LAYERS
)
EXPENSE_METRICS = (
    Metric("calls", "model calls per question", _is_any, lambda _, r: float(r.calls), "lower"),
    Metric("tokens", "tokens per question", _is_any, lambda _, r: float(r.tokens), "lower"),
    Metric("cost", "cost per question", _is_any, lambda _, r: r.cost, "lower"),
    Metric("seconds", "wall time per question", _is_any, lambda _, r: r.seconds, "lower"),
)
