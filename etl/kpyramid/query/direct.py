"""No context: what a model answers from what it has learnt, and what rules cannot."""

import numpy as np

from kpyramid.query.pyramid.snapshot import Snapshot
from kpyramid.query.types import Answer, Makers, Outcome, Question, Step


def ask_direct(question: Question, snapshot: Snapshot, makers: Makers) -> Answer:
    """The answer of the model that reads, given nothing to read.

    Its twin by rules has learnt nothing: it has no answer to an open question, and of candidates
    it guesses the one nearest to the question, with the confidence of a guess.

    Raises:
        BudgetError, EndpointError: the model may not or cannot be asked.
    """
    if makers.reader == "llm":
        assert makers.asker is not None  # `Makers` demands it
        from kpyramid.query.model.reading import read_by_model  # prompts take as long as the rest

        reading = read_by_model(question, (), makers.asker, logprobs=makers.logprobs)
        known = bool(reading.text or reading.choices)
        reason = "from what the model has learnt" if known else "the model does not know"
        reason = reading.reason or reason
        return Answer(
            text=reading.text,
            choices=reading.choices,
            context=(),
            layer="model" if known else None,
            evidence=(),
            trace=(_step(known, reason, reading.confidence),),
            confidence=reading.confidence,
            calls=reading.calls,
            tokens=reading.tokens,
            logprobs=reading.logprobs,
        )
    if not question.candidates:
        step = _step(False, "rules know nothing without context", None)
        return Answer("", (), (), None, (), (step,))
    vectors = snapshot.embedder.embed([question.text, *question.candidates])
    guess = question.candidates[int(np.argmax(vectors[1:] @ vectors[0]))]
    # "None of them" is one more that can be right; one option is no surer than one of two.
    chance = 1 / (max(len(question.candidates), 2) + 1)
    step = _step(True, "a guess: the candidate nearest to the question", chance)
    return Answer(guess, (guess,), (), "model", (), (step,), confidence=chance)


def _step(known: bool, reason: str, confidence: float | None) -> Step:
    outcome = Outcome.ANSWERED if known else Outcome.EMPTY
    return Step("model", outcome, reason, confidence=confidence)
