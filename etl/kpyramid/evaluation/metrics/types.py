"""What a metric takes and gives, words compared, scores aggregated."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import isnan
from string import punctuation
from typing import Literal

from kpyramid.documents.values import agree, find_values, read_value
from kpyramid.evaluation.questions import EvalQuestion
from kpyramid.evaluation.statistics import SAMPLES, Interval, bootstrap

# --------------------
# What was answered, and what a measure of it is.

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class Response:
    """What one arm made of one question, as plain values.

    `choices` are the single values the answer consists of, of a question with candidates those
    chosen. `context` is what the reader was given and `documents` its sources, both best first,
    a source as in `documents.source` or only what stands after its '#'. `confidence` is the
    probability that the answer is right; `cost` is in the currency of the prices, None where there
    are none; `seconds` is wall time; `logprobs` are natural logarithms, one for each token of the
    answer.
    """

    text: str = ""
    choices: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    layer: str | None = None
    calls: int = 0
    tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    confidence: float = 0.0
    logprobs: tuple[float, ...] | None = None

    @property
    def answered(self) -> bool:
        """Whether there is an answer, right or wrong."""
        return bool(self.text.strip()) or any(choice.strip() for choice in self.choices)


@dataclass(frozen=True, slots=True)
class Metric:
    """A measure of one response to one question.

    `applies` says for which questions it is defined. `score` is None where it does not apply,
    which no mean counts, and 0 where it applies and there is no answer: who stays silent is not
    right. `better` says which way is good.
    """

    name: str
    about: str
    applies: Callable[[EvalQuestion], bool]
    score: Callable[[EvalQuestion, Response], float | None]
    better: Better = "higher"

    def measure(self, question: EvalQuestion, response: Response) -> float | None:
        """The score, or None where the measure does not apply."""
        return self.score(question, response) if self.applies(question) else None


Pair = tuple[EvalQuestion, Response]


@dataclass(frozen=True, slots=True)
class SetMetric:
    """A measure of all responses together that is no mean over questions: a percentile, BLEU.

    `score` is None when it applies to none of the pairs, and does not depend on their order.
    """

    name: str
    about: str
    score: Callable[[Sequence[Pair]], float | None]
    better: Better = "higher"


# --------------------
# When two answers are the same, and when a text names a value.

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?")
_SAME = 0.85
"""How far a date has to say the gold one: a finer one does, a year does not say a day in it."""
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Thai, Lao, Khmer, Japanese and Chinese: words without spaces between them."""


def fold(text: str) -> str:
    """The text in one form of Unicode, small letters, single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).lower().split())


def fold_value(text: str) -> str:
    """As `fold`, and a plain number in its shortest form: 1.50 is 1.5."""
    folded = fold(text)
    if _NUMBER.fullmatch(folded):
        number = format(Decimal(folded), "f")
        number = number.rstrip("0").rstrip(".") if "." in number else number
        return "0" if number in {"-0", ""} else number
    return folded


def normalise_answer(text: str) -> str:
    """SQuAD's normal form: small letters, no punctuation, no articles, single spaces.

    The same as the official script's (Rajpurkar et al., "SQuAD: 100,000+ Questions for Machine
    Comprehension of Text", EMNLP 2016) for ASCII; here the punctuation of all Unicode goes. What
    consists of nothing else ("A", "?") stays as `fold` leaves it: it would equal every other.
    """
    folded = fold(text)
    kept = "".join(c for c in folded if not _is_punctuation(c))
    return " ".join(_ARTICLES.sub(" ", kept).split()) or folded


def list_tokens(text: str) -> list[str]:
    """The words of the normal form."""
    return normalise_answer(text).split()


def names_value(text: str, value: str) -> bool:
    """Whether the value stands in the text as a run of whole words, both in normal form.

    A value in a script without spaces counts wherever it stands.
    """
    wanted, said = normalise_answer(value), normalise_answer(text)
    if UNSPACED.search(wanted):
        return wanted in said
    return bool(wanted) and f" {wanted} " in f" {said} "


def state_same(gold: str, said: str) -> bool:
    """Whether both are a date or a number, and the one that was said says the gold one.

    28 November 1953 is 1953-11-28, and 12,000 is 12000. Units that both state have to be the same
    word: 91 metres are not 91 feet. What has a unit is no year: 1953 metres are not in 1953.
    """
    wanted, stated = read_value(gold), read_value(said)
    if wanted is None or stated is None or agree(wanted, stated) < _SAME:
        return False
    one, other = _read_unit(gold), _read_unit(said)
    return one == other or (isinstance(wanted, Decimal) and not (one and other))


def names_any(text: str, names: Iterable[str]) -> bool:
    """Whether the text names one of them."""
    return any(names_value(text, name) for name in names)


def list_chosen(response: Response) -> tuple[str, ...]:
    """The single values of the answer; of an answer without any, its text."""
    return tuple(c for c in response.choices if c.strip()) or (
        (response.text,) if response.text.strip() else ()
    )


def word_answer(response: Response) -> str:
    """The answer in words; of an answer without text, its values."""
    return response.text if response.text.strip() else "; ".join(list_chosen(response))


def is_open(question: EvalQuestion) -> bool:
    """Whether the question is answered in words and there is an answer to compare with."""
    return question.kind == "open" and bool(question.answers)


def list_references(question: EvalQuestion) -> list[str]:
    """All right answers in all their spellings, each once."""
    return list(dict.fromkeys(name for value in question.answers for name in value))


def _read_unit(text: str) -> str:
    """What stands behind the value that a text consists of."""
    plain = text.strip().strip("\"'")
    return fold(plain[find_values(plain)[0].end :])


def _is_punctuation(character: str) -> bool:
    return character in punctuation or unicodedata.category(character).startswith("P")


# --------------------
# From scores to a figure with its interval.


def aggregate(
    metric: Metric, values: Sequence[float | None], seed: int = 0, samples: int = SAMPLES
) -> Interval | None:
    """The mean of the scores that apply, with its interval; None when none applies.

    None is left out and never counted as 0; an unanswered question was scored 0 by the metric.

    Raises:
        ValueError: a score is not a number.
    """
    known = [value for value in values if value is not None]
    if any(isnan(value) for value in known):
        raise ValueError(f"{metric.name}: a score is not a number; a metric gives None instead")
    return bootstrap(known, seed, samples) if known else None


def measure_all(
    metric: Metric, pairs: Sequence[Pair], seed: int = 0, samples: int = SAMPLES
) -> Interval | None:
    """The metric's figure over questions and responses; None when it applies to none.

    Raises:
        ValueError: a score is not a number.
    """
    return aggregate(metric, [metric.measure(q, r) for q, r in pairs], seed, samples)
