"""What was answered, and what a measure of it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from kpyramid.evaluation.questions import EvalQuestion

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
