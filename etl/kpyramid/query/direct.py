"""No context: what a model answers from what it has learnt, and what rules cannot."""

from kpyramid.query.analysis import QuestionAnalysis
from kpyramid.query.decisions import Decisions
from kpyramid.query.types import Answer, Outcome, Step


def ask_direct(asked: QuestionAnalysis, decisions: Decisions) -> Answer:
    """The answer without anything to read.

    Rules have learnt nothing: they have no answer to an open question, and of candidates they
    guess the one nearest to the question, with the confidence of a guess.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    reading = decisions.recall(asked)
    known = bool(reading.text or reading.choices)
    outcome = Outcome.ANSWERED if known else Outcome.EMPTY
    return Answer(
        text=reading.text,
        choices=reading.choices,
        context=(),
        layer="model" if known else None,
        evidence=(),
        trace=(Step("model", outcome, reading.reason, confidence=reading.confidence),),
        confidence=reading.confidence,
        calls=reading.calls,
        tokens=reading.tokens,
        logprobs=reading.logprobs,
    )
