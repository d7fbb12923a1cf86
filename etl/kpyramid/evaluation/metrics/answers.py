"""Measures of answers in words against short gold values."""

from collections import Counter
from collections.abc import Iterable

from kpyramid.evaluation.metrics.choice import score_accuracy, score_set
from kpyramid.evaluation.metrics.types import Metric, Response
from kpyramid.evaluation.metrics.words import (
    is_open,
    list_chosen,
    list_references,
    list_tokens,
    names_any,
    names_value,
    normalise_answer,
    state_same,
    word_answer,
)
from kpyramid.evaluation.questions import EvalQuestion

VALUE_WORDS = 10
"""A longer gold answer is an explanation: an answer is not right or wrong by naming it."""


def score_exact(question: EvalQuestion, response: Response) -> float:
    """1 when the answer is a gold value in any spelling, else 0.

    Of open questions in SQuAD's normal form, the best over the references, where a date or number
    may be written in another way; of choice questions HyKGE's EM, exactly the right options
    (§5.1.5).
    """
    if question.kind == "choice":
        return score_set(question, response)
    said = word_answer(response)
    plain = normalise_answer(said)
    return float(
        any(
            plain == normalise_answer(name) or state_same(name, said)
            for name in list_references(question)
        )
    )


def score_token_f1(question: EvalQuestion, response: Response) -> float:
    """F1 of the words as multisets, the best over the references: SQuAD's second measure."""
    said = list_tokens(word_answer(response))
    return max(compare_tokens(said, list_tokens(name)) for name in list_references(question))


def compare_tokens(said: list[str], wanted: list[str]) -> float:
    """2 · shared / (all words of both); 0 when nothing is shared."""
    shared = sum((Counter(said) & Counter(wanted)).values())
    return 2 * shared / (len(said) + len(wanted)) if shared else 0.0


def score_hit(question: EvalQuestion, response: Response) -> float:
    """1 when the first value of the answer names a gold value, else 0.

    The sense of Hits@1 on WebQuestions in RoK (§5.1.2), where models answer in sentences.
    """
    chosen, wanted = list_chosen(response)[:1], list_references(question)
    return float(any(names_any(c, wanted) or _states_any(c, wanted) for c in chosen))


def score_hit_rate(question: EvalQuestion, response: Response) -> float:
    """The share of the gold entities that the response names: PolyRAG's HitRate (§V-B).

    The key entities of the question; where it states none, its gold values, in any spelling.
    """
    if question.entities:
        return score_key_entities(question, response)
    named = [_names_any(response, value) for value in question.answers]
    return sum(named) / len(named)


def score_key_entities(question: EvalQuestion, response: Response) -> float:
    """The share of the key entities that the response names.

    RoK's key-entity match (§5.1.2), which averages an entity hit rate; there over the parts of a
    medical answer (disease, medication, test), here over all key entities of a question at once.
    """
    named = [_names_any(response, (entity,)) for entity in dict.fromkeys(question.entities)]
    return sum(named) / len(named)


def score_right(question: EvalQuestion, response: Response) -> float | None:
    """1 when the answer counts as right, else 0, for the measures that need a verdict.

    Chosen values must be exactly the right ones; an answer in words must name a gold value. None
    where neither says it: gold answers that are explanations.
    """
    if question.kind != "open":
        return score_accuracy(question, response)
    if all(len(list_tokens(name)) > VALUE_WORDS for name in list_references(question)):
        return None
    return score_hit(question, response)


def has_verdict(question: EvalQuestion) -> bool:
    """Whether `score_right` may be asked at all."""
    return question.kind != "retrieval" and bool(question.answers)


def _names_any(response: Response, names: Iterable[str]) -> bool:
    """Whether text or values name it; each for itself, so that no name runs across a border."""
    texts = (response.text, *response.choices)
    return any(names_value(t, n) or state_same(n, t) for n in names for t in texts)


def _states_any(text: str, names: Iterable[str]) -> bool:
    return any(state_same(name, text) for name in names)


def _is_exact(question: EvalQuestion) -> bool:
    return question.kind in {"open", "choice"} and bool(question.answers)


def _has_names(question: EvalQuestion) -> bool:
    return question.kind in {"open", "values"} and bool(question.answers or question.entities)


def _has_entities(question: EvalQuestion) -> bool:
    return question.kind in {"open", "values"} and bool(question.entities)


def _is_named(question: EvalQuestion) -> bool:
    return question.kind in {"open", "values"} and bool(question.answers)


ANSWER_METRICS = (
    Metric(
        "exact_match",
        "the answer is a gold value, or exactly the right options",
        _is_exact,
        score_exact,
    ),
    Metric("token_f1", "F1 of the words of answer and gold value (SQuAD)", is_open, score_token_f1),
    Metric("hits_at_1", "the first value of the answer names a gold value", _is_named, score_hit),
    Metric("hit_rate", "share of the gold entities named (PolyRAG)", _has_names, score_hit_rate),
    Metric(
        "key_entities", "share of the key entities named (RoK)", _has_entities, score_key_entities
    ),
    Metric("right", "share of all questions answered rightly", has_verdict, score_right),
)
