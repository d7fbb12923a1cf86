"""Metrics of answers and choices, of layers and expense, over questions and whole sets."""

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from math import exp, fsum, inf

import numpy as np

from kpyramid.documents.words import LETTERS
from kpyramid.evaluation.metrics.overlap import CORPUS_BLEUS
from kpyramid.evaluation.metrics.types import (
    Metric,
    Pair,
    Response,
    SetMetric,
    fold,
    fold_value,
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

# --------------------
# Measures of what was chosen: options, single values, yes or no.
#
# Precision, recall and F1 are taken per question and averaged, as PolyRAG's Table II does: F1 is
# the mean of the questions' F1, not that of the mean precision and recall (its row of GPT-4 with
# naive RAG has .5032, .5094 and .4651, where the harmonic mean of the first two is .5063).

_VERDICTS = {"yes": "yes", "no": "no", "maybe": "maybe", "true": "yes", "false": "no"}


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
    word = LETTERS.search(fold(chosen[0]))
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


# --------------------
# Measures of answers in words against short gold values.

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


# --------------------
# Measures of the way to an answer: layers, confidence, calls, tokens, cost, time.

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


# --------------------
# Measures of all responses together that are no mean over questions.

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
