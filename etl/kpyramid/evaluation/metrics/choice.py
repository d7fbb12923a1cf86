"""Measures of what was chosen: options, single values, yes or no.

Precision, recall and F1 are taken per question and averaged, as PolyRAG's Table II does: F1 is
the mean of the questions' F1, not that of the mean precision and recall (its row of GPT-4 with
naive RAG has .5032, .5094 and .4651, where the harmonic mean of the first two is .5063).
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Set

from kpyramid.evaluation.metrics.types import Metric, Response
from kpyramid.evaluation.metrics.words import fold, fold_value, list_chosen, state_same
from kpyramid.evaluation.questions import EvalQuestion

_VERDICTS = {"yes": "yes", "no": "no", "maybe": "maybe", "true": "yes", "false": "no"}
_FIRST_WORD = re.compile(r"[^\W\d_]+")


def score_precision(question: EvalQuestion, response: Response) -> float:
    """The share of what was chosen that is right; 0 without an answer."""
    chosen, gold = _match(question, response)
    return len(chosen & gold) / len(chosen) if chosen else 0.0


def score_recall(question: EvalQuestion, response: Response) -> float:
    """The share of what is right that was chosen; 0 without an answer."""
    chosen, gold = _match(question, response)
    return len(chosen & gold) / len(gold)


def score_f1(question: EvalQuestion, response: Response) -> float:
    """The harmonic mean of precision and recall; 0 without an answer."""
    chosen, gold = _match(question, response)
    return 2 * len(chosen & gold) / (len(chosen) + len(gold))


def score_set(question: EvalQuestion, response: Response) -> float:
    """1 when exactly what is right was chosen, else 0."""
    chosen, gold = _match(question, response)
    return float(chosen == gold)


def score_partial(question: EvalQuestion, response: Response) -> float:
    """1 when nothing wrong was chosen and something right, else 0: HyKGE's PCR (§5.1.5).

    "In comparison to EM, if there is a missing answer without any incorrect ones, PCR classifies
    it as correct." To choose nothing is no partial answer.
    """
    chosen, gold = _match(question, response)
    return float(bool(chosen) and chosen <= gold)


def score_accuracy(question: EvalQuestion, response: Response) -> float:
    """1 for exactly the right options, or the right one of yes, no and maybe; else 0."""
    if question.kind != "yesno":
        return score_set(question, response)
    return float(read_verdict(response) in read_gold_verdicts(question))


def read_verdict(response: Response) -> str | None:
    """`yes`, `no` or `maybe`; None when the answer begins with none of them."""
    chosen = list_chosen(response)
    if len(chosen) != 1:
        return None
    word = _FIRST_WORD.search(fold(chosen[0]))
    return _VERDICTS.get(word.group()) if word else None


def read_gold_verdicts(question: EvalQuestion) -> frozenset[str]:
    """The right ones of `yes`, `no` and `maybe`; one as a rule."""
    found = (_VERDICTS.get(fold(name)) for value in question.answers for name in value)
    return frozenset(verdict for verdict in found if verdict)


def _match(question: EvalQuestion, response: Response) -> tuple[Set[str], Set[str]]:
    """What was chosen and what is right, each under the first spelling of a right value."""
    form = _choose_form(question)
    usual = {form(name): form(value[0]) for value in question.answers for name in value}
    usual |= {form(value[0]): form(value[0]) for value in question.answers}
    chosen = {form(name) for name in list_chosen(response)}
    if question.kind == "choice":
        return {usual.get(name, name) for name in chosen}, set(usual.values())
    return {_find_usual(name, usual) for name in chosen}, set(usual.values())


def _find_usual(said: str, usual: Mapping[str, str]) -> str:
    """The first spelling of the right value that was said; what was said if it is none."""
    if said in usual:
        return usual[said]
    return next((right for name, right in usual.items() if state_same(name, said)), said)


def _choose_form(question: EvalQuestion) -> Callable[[str], str]:
    """Options are compared as they are written, in one form of Unicode."""
    return _write_plainly if question.kind == "choice" else fold_value


def _write_plainly(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _is_choice(question: EvalQuestion) -> bool:
    return question.kind == "choice" and bool(question.answers)


def _has_values(question: EvalQuestion) -> bool:
    return question.kind in {"choice", "values"} and bool(question.answers)


def _is_decided(question: EvalQuestion) -> bool:
    if question.kind == "yesno":
        return bool(read_gold_verdicts(question))
    return _has_values(question)


CHOICE_METRICS = (
    Metric("precision", "share of the chosen values that are right", _has_values, score_precision),
    Metric("recall", "share of the right values that are chosen", _has_values, score_recall),
    Metric("f1", "harmonic mean of the two, per question", _has_values, score_f1),
    Metric(
        "accuracy", "exactly the right values, or the right verdict", _is_decided, score_accuracy
    ),
    Metric("pcr", "some right options and no wrong one (HyKGE)", _is_choice, score_partial),
)
