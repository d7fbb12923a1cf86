"""Estimates of tokens and cost between low and high, calibrated by earlier runs."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kpyramid.keys import canonical_json
from kpyramid.llm.ledger import LEDGER, Line, cost_of, read_lines
from kpyramid.llm.task import Expected, Request, Task, Usage
from kpyramid.settings import ModelPrice

FEW = 5
"""Items below which their spread is not estimated."""
_MISFIT = 0.08
"""Deviation of a rate between corpora, besides the spread between items."""
_ENOUGH = 5_000
"""Calls used for calibration, the latest first."""
_CALLS, _CALLS_BEFORE = 1.15, 1.25
"""Most calls per expected call: repeats vary, and more so before calibration."""

# Tokens per character before anything was asked, between low, expected and high. Nothing is
# downloaded to count them.

_PROMPT_RATE = (1 / 4.7, 1 / 3.8, 1 / 3.0)
"""Of our prompts about English prose: 1/3.7 measured with a vocabulary of 50,000, 1/3.85 with
150,000; prose alone has 1/4.2."""
_FOREIGN_RATE = (0.3, 0.7, 2.0)
"""Outside ASCII: from accents in large vocabularies to Chinese in small ones."""
_REPLY_RATE = (0.4 / 3.7, 1 / 3.7, 2.5 / 3.7)
"""Of replies: 1/3.3 measured for bare triples, 1/4 with sentences between."""


@dataclass(frozen=True, slots=True)
class Range:
    """An amount that is likely between `low` and `high`."""

    low: float = 0.0
    expected: float = 0.0
    high: float = 0.0

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.expected + other.expected, self.high + other.high)

    def __mul__(self, factors: tuple[float, float, float]) -> "Range":
        low, expected, high = factors
        return Range(self.low * low, self.expected * expected, self.high * high)

    def cap(self, most: float) -> "Range":
        """The range with no bound above `most`."""
        return Range(min(self.low, most), min(self.expected, most), min(self.high, most))


@dataclass(frozen=True, slots=True)
class Estimate:
    """Expected calls and tokens of requests."""

    calls: Range = Range()
    prompt: Range = Range()
    completion: Range = Range()

    def __add__(self, other: "Estimate") -> "Estimate":
        return Estimate(
            self.calls + other.calls,
            self.prompt + other.prompt,
            self.completion + other.completion,
        )

    def scale(self, low: float, expected: float, high: float) -> "Estimate":
        """The estimate with each bound times its factor."""
        by = (low, expected, high)
        return Estimate(self.calls * by, self.prompt * by, self.completion * by)

    def at_least(self, other: "Estimate") -> "Estimate":
        """The estimate with more calls: of a known part, or of the expected whole."""
        return max(self, other, key=lambda estimate: estimate.calls.expected)

    @property
    def tokens(self) -> Range:
        """Tokens of prompts and replies together."""
        return self.prompt + self.completion

    def price(self, price: ModelPrice, *, batch: bool = False) -> Range:
        """Dollars; the lowest bound with all prompts cached by the server, the others with none."""

        def pay(bound: str, share: int) -> float:
            prompt, completion = (round(getattr(n, bound)) for n in (self.prompt, self.completion))
            return cost_of(Usage(prompt, completion, cached=prompt * share), price, batch=batch)

        return Range(pay("low", 1), pay("expected", 0), pay("high", 0))


@dataclass(slots=True)
class Rate:
    """y per x over items, with the variance that predictions of sums need."""

    items: list[tuple[float, float]] = field(default_factory=list)

    @property
    def x(self) -> float:
        """The sum of x over the items."""
        return sum(x for x, _ in self.items)

    def predict(self, count: int, x: float) -> Range:
        """The sum of y over `count` further items whose x add up to `x`.

        A ratio estimate: items scatter around the rate with variance s², so their sum does with
        count * s²; the rate itself was measured on n items and is off by s / sqrt(n) per mean
        item; and the corpus may differ by the misfit.
        """
        n, total = len(self.items), self.x
        rate = sum(y for _, y in self.items) / total
        variance = sum((y - rate * each) ** 2 for each, y in self.items) / max(n - 1, 1)
        spread = math.sqrt(variance * (count + (x * n / total) ** 2 / n))
        width = 2 * spread + _MISFIT * (1 if n >= FEW else 4) * rate * x
        return Range(max(0.0, rate * x - width), rate * x, rate * x + width)


@dataclass(slots=True)
class _Task:
    """The ledgers' data on a model's calls for one task.

    `prompt`: tokens per character of all messages. `completion`: tokens per character of the
    subject, over the calls that have one.
    """

    prompt: Rate = field(default_factory=Rate)
    completion: Rate = field(default_factory=Rate)
    calls: int = 0
    keys: set[str] = field(default_factory=set)


class Estimator:
    """Estimates for one model: calibrated for tasks in its ledgers, else as `expected`."""

    def __init__(
        self, lines: Iterable[Line], model: str, expected: Mapping[str, Expected] | None = None
    ) -> None:
        self._expected = expected or {}
        self._tasks: dict[str, _Task] = defaultdict(_Task)
        for line in lines:
            if line["model"] == model and line["event"] == "settled":
                self._learn(line)

    @property
    def seen(self) -> dict[str, int]:
        """Calls used for calibration, by task."""
        counts = {name: len(task.prompt.items) for name, task in sorted(self._tasks.items())}
        return {name: count for name, count in counts.items() if count}

    def compare_tasks(self, task: str, base: Sequence[str]) -> tuple[float, int] | None:
        """Requests of a task per request of those before it, and their number; None if too few."""
        counted = sum(len(self._tasks[name].keys) for name in base)
        mine = len(self._tasks[task].keys)
        return (mine / counted, mine) if mine and counted >= FEW else None

    def mean_subject(self, task: str) -> float | None:
        """Mean characters of the subject of a task's requests; None without data."""
        seen = self._tasks[task].completion
        return seen.x / len(seen.items) if seen.items else None

    def estimate(self, requests: Iterable[Request]) -> dict[str, Estimate]:
        """The estimate of known requests, by task."""
        tasks: dict[str, list[Request]] = defaultdict(list)
        for request in requests:
            tasks[request.task].append(request)
        estimates: dict[str, Estimate] = {}
        for task, asked in sorted(tasks.items()):
            texts = [message.content for request in asked for message in request.messages]
            foreign = sum(len(text) - len(text.encode("ascii", "ignore")) for text in texts)
            schema = sum(len(canonical_json(request.schema)) for request in asked)
            subject = sum(len(request.subject) for request in asked)
            most = max(request.max_tokens for request in asked)
            prompt = self._predict_prompt(task, len(asked), sum(map(len, texts)), schema, foreign)
            estimates[task] = self._combine(task, len(asked), prompt, subject, most)
        return estimates

    def foresee(
        self, task: Task, static: str, subjects: Iterable[int], max_tokens: int
    ) -> Estimate:
        """The estimate of requests whose prompts are not known yet.

        `static`: the message that all of them share. `subjects`: the characters of each one's
        subject.
        """
        lengths = list(subjects)
        count, subject, material = len(lengths), sum(lengths), task.expected.material
        seen = self._tasks[task.name]
        if seen.completion.items:
            known = seen.prompt.x - len(seen.prompt.items) * len(static)
            material = max(known, 0.0) / seen.completion.x
        shown = count * len(static) + material * subject
        schema = len(canonical_json(task.schema)) * count
        prompt = self._predict_prompt(task.name, count, shown, schema)
        return self._combine(task.name, count, prompt, subject, max_tokens)

    def foresee_texts(self, calls: float, characters: float) -> Estimate:
        """The estimate of embedding texts of so many characters."""
        prompt = self._predict_prompt("embed", round(calls), characters, 0)
        return Estimate(Range(calls, calls, calls * _CALLS_BEFORE), prompt)

    def _combine(
        self, task: str, count: int, prompt: Range, subject: float, max_tokens: int
    ) -> Estimate:
        seen = self._tasks[task]
        if seen.completion.items:
            completion = seen.completion.predict(count, subject)
            again = seen.calls / len(seen.keys)
            factors = (1.0, again, again * _CALLS)
        else:
            expected = subject * self._expected.get(task, Expected()).reply
            completion = Range(expected, expected, expected) * _REPLY_RATE
            factors = (1.0, 1.0, _CALLS_BEFORE)
        most = float(count * max_tokens)
        calls = Range(count, count, count) * factors
        return Estimate(calls, prompt * factors, completion.cap(most) * factors)

    def _predict_prompt(
        self, task: str, count: int, characters: float, schema: int, foreign: int = 0
    ) -> Range:
        seen = self._tasks[task].prompt
        if seen.items:
            return seen.predict(count, characters)
        plain = characters - foreign
        counted = Range(plain, plain + schema / 2, plain + schema) * _PROMPT_RATE
        return counted + Range(foreign, foreign, foreign) * _FOREIGN_RATE

    def _learn(self, line: Line) -> None:
        task = self._tasks[str(line["task"])]
        task.calls += 1
        task.keys.add(str(line["key"]))
        names = ("prompt", "prompt_characters", "completion", "subject_characters")
        prompt, characters, completion, subject = (_number(line, name) for name in names)
        if line["outcome"] != "answered" or line["assumed"] or not prompt or not characters:
            return
        task.prompt.items.append((characters, prompt))
        if subject:
            task.completion.items.append((subject, completion))


def calibrate(runs: Path, model: str, expected: Mapping[str, Expected] | None = None) -> Estimator:
    """An estimator calibrated by the ledgers of a warehouse's latest runs."""
    ledgers = [(path.stat().st_mtime_ns, path) for path in runs.glob(f"*/{LEDGER}")]
    lines: list[Line] = []
    for _, path in sorted(ledgers, reverse=True):
        lines.extend(read_lines(path)[0])
        if len(lines) >= 2 * _ENOUGH:  # a call has two lines
            break
    return Estimator(lines, model, expected)


def _number(line: Line, name: str) -> float:
    value = line.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
