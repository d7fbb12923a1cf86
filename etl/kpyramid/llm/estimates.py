"""Estimates of tokens and cost between low and high, learned from earlier runs."""

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
"""Items below which their spread says nothing yet."""
SIGMAS = 2.0
_MISFIT = 0.08
"""What a rate may be off from one corpus to the next, besides the spread between items."""


@dataclass(frozen=True, slots=True)
class Range:
    """An amount that is likely between `low` and `high`."""

    low: float = 0.0
    expected: float = 0.0
    high: float = 0.0

    def __add__(self, other: "Range") -> "Range":
        return Range(self.low + other.low, self.expected + other.expected, self.high + other.high)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What requests will take; `cached`: share of the prompts that the server may have kept."""

    calls: Range = Range()
    prompt: Range = Range()
    completion: Range = Range()
    cached: float = 0.0

    def __add__(self, other: "Estimate") -> "Estimate":
        prompt = self.prompt + other.prompt
        kept = self.cached * self.prompt.expected + other.cached * other.prompt.expected
        return Estimate(
            self.calls + other.calls,
            prompt,
            self.completion + other.completion,
            kept / prompt.expected if prompt.expected else 0.0,
        )

    def scale(self, low: float, expected: float, high: float) -> "Estimate":
        """Every amount times a factor of its own per bound."""

        def multiply(amount: Range) -> Range:
            return Range(amount.low * low, amount.expected * expected, amount.high * high)

        return Estimate(
            multiply(self.calls), multiply(self.prompt), multiply(self.completion), self.cached
        )

    def at_least(self, other: "Estimate") -> "Estimate":
        """The one of more calls: what is known of something, and what is expected of all of it."""
        return max(self, other, key=lambda estimate: estimate.calls.expected)

    @property
    def tokens(self) -> Range:
        """Prompts and replies together."""
        return self.prompt + self.completion

    def price(self, price: ModelPrice, *, batch: bool = False) -> Range:
        """Dollars; the highest counts on nothing that the server keeps."""

        def pay(prompt: float, completion: float, cached: float) -> float:
            usage = Usage(round(prompt), round(completion), cached=round(prompt * cached))
            return cost_of(usage, price, batch=batch)

        return Range(
            pay(self.prompt.low, self.completion.low, self.cached),
            pay(self.prompt.expected, self.completion.expected, self.cached),
            pay(self.prompt.high, self.completion.high, 0.0),
        )


@dataclass(slots=True)
class Rate:
    """y per x over items, with what is needed for the spread of a sum of further items."""

    n: int = 0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    yy: float = 0.0

    def add(self, x: float, y: float) -> None:
        self.n += 1
        self.x += x
        self.y += y
        self.xx += x * x
        self.xy += x * y
        self.yy += y * y

    def predict(self, count: int, x: float) -> Range:
        """The sum of y over `count` further items whose x add up to `x`.

        A ratio estimate: items scatter around the rate with variance s², so their sum does with
        count * s²; the rate itself was measured on n items and is off by s / sqrt(n) per mean
        item; and the corpus may differ by the misfit.
        """
        rate = self.y / self.x
        expected = rate * x
        residuals = self.yy - 2 * rate * self.xy + rate * rate * self.xx
        variance = max(residuals, 0.0) / max(self.n - 1, 1)
        mean = self.x / self.n
        spread = math.sqrt(variance * (count + (x / mean) ** 2 / self.n))
        misfit = _MISFIT * (1 if self.n >= FEW else 4)
        width = SIGMAS * spread + misfit * expected
        return Range(max(0.0, expected - width), expected, expected + width)


# How many tokens requests will take. Nothing is downloaded: tokens follow from characters, at
# rates that are measured per model and task on the usage that servers reported, or at stated
# defaults before anything was asked.

_ENOUGH = 5_000
"""Calls that a calibration looks back on, the latest first."""

_PROMPT_RATE = (1 / 4.7, 1 / 3.8, 1 / 3.0)
"""Tokens per character of our prompts about English prose: 1/3.7 measured with a vocabulary of
50,000, 1/3.85 with 150,000; prose alone has 1/4.2."""
_FOREIGN_RATE = (0.3, 0.7, 2.0)
"""Tokens per character outside of ASCII: from accents in large vocabularies to Chinese in small."""
_REPLY_RATE = 1 / 3.7
"""Tokens per character of replies: 1/3.3 measured for bare triples, 1/4 with sentences between."""
_REPLY_SPREAD = (0.4, 2.5)
"""How far a reply's length may be from the default, as factors."""
_SCHEMA_SHARE = (0.0, 0.5, 1.0)
"""How much of the schema servers count as prompt: none (a grammar) to all of it."""
_CALL_SPREAD = (1.0, 1.0, 1.25)
"""Calls per request before any experience: up to one in four is asked again."""

_UNKNOWN = Expected()
"""Of a task that nobody described."""


@dataclass(slots=True)
class _Task:
    """What the books say of a model's calls for one task.

    `prompt`: tokens per character of all messages. `completion`: tokens per character of the
    subject, over the calls that have one.
    """

    prompt: Rate = field(default_factory=Rate)
    completion: Rate = field(default_factory=Rate)
    cached_tokens: float = 0.0
    calls: int = 0
    keys: set[str] = field(default_factory=set)


class Estimator:
    """Estimates for one model: of tasks in its books by experience, of others as `expected`."""

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
        """Calls that were learned from, by task."""
        return {name: t.prompt.n for name, t in sorted(self._tasks.items()) if t.prompt.n}

    def compare_tasks(self, task: str, base: Sequence[str]) -> tuple[float, int] | None:
        """Requests of a task per request of those it follows, and how many; None without any."""
        counted = sum(len(self._tasks[name].keys) for name in base if name in self._tasks)
        mine = len(self._tasks[task].keys) if task in self._tasks else 0
        return (mine / counted, mine) if mine and counted >= FEW else None

    def mean_subject(self, task: str) -> float | None:
        """Characters that a request of the task is about; None without experience."""
        seen = self._tasks.get(task)
        return seen.completion.x / seen.completion.n if seen and seen.completion.n else None

    def estimate(self, requests: Iterable[Request]) -> Estimate:
        """What requests that are known will take."""
        tasks: dict[str, list[Request]] = defaultdict(list)
        for request in requests:
            tasks[request.task].append(request)
        parts = (self._estimate_task(name, tasks[name]) for name in sorted(tasks))
        return sum(parts, Estimate())

    def foresee(
        self, task: Task, static: str, subjects: Iterable[int], max_tokens: int
    ) -> Estimate:
        """What requests will take whose prompts are not known yet.

        `static`: the message that all of them share. `subjects`: the characters of the text that
        each is about.
        """
        lengths, schema = list(subjects), len(canonical_json(task.schema))
        material = task.expected.material
        seen = self._tasks.get(task.name)
        if seen is not None and seen.completion.x:
            known = seen.prompt.x - seen.prompt.n * len(static)
            material = max(known, 0.0) / seen.completion.x
        shown = len(lengths) * len(static) + material * sum(lengths)
        return self._combine(
            task.name,
            count=len(lengths),
            prompt=self._predict_prompt(task.name, len(lengths), shown, 0, schema * len(lengths)),
            subject=sum(lengths),
            max_tokens=max_tokens,
            static=len(static) * len(lengths) / shown if shown else 0.0,
        )

    def foresee_texts(self, calls: float, characters: float) -> Estimate:
        """What it takes to embed texts of so many characters."""
        prompt = self._predict_prompt("embed", round(calls), characters, 0, 0)
        return Estimate(Range(calls, calls, calls * _CALL_SPREAD[2]), prompt)

    def _estimate_task(self, task: str, requests: list[Request]) -> Estimate:
        characters = foreign = schema = static = 0
        for request in requests:
            for message in request.messages:
                characters += len(message.content)
                foreign += len(message.content) - len(message.content.encode("ascii", "ignore"))
            static += len(request.messages[0].content) if len(request.messages) > 1 else 0
            schema += len(canonical_json(request.schema))
        return self._combine(
            task,
            count=len(requests),
            prompt=self._predict_prompt(task, len(requests), characters, foreign, schema),
            subject=sum(len(request.subject) for request in requests),
            max_tokens=max(request.max_tokens for request in requests),
            static=static / max(characters, 1),
        )

    def _combine(
        self,
        task: str,
        *,
        count: int,
        prompt: Range,
        subject: float,
        max_tokens: int,
        static: float,
    ) -> Estimate:
        seen = self._tasks.get(task)
        calls = Range(*(count * factor for factor in _CALL_SPREAD))
        cached = 0.0
        if seen is not None and seen.completion.x:
            completion = seen.completion.predict(count, subject)
            calls = _expect_calls(count, seen)
            cached = min(static, seen.cached_tokens / max(seen.prompt.y, 1))
        else:
            expected = subject * self._expected.get(task, _UNKNOWN).reply * _REPLY_RATE
            completion = Range(expected * _REPLY_SPREAD[0], expected, expected * _REPLY_SPREAD[1])
        factor = calls.expected / count if count else 1.0
        top = calls.high / count if count else 1.0
        most = float(count * max_tokens)
        completion = Range(
            min(completion.low, most),
            min(completion.expected, most) * factor,
            min(completion.high, most) * top,
        )
        prompt = Range(prompt.low, prompt.expected * factor, prompt.high * top)
        return Estimate(calls, prompt, completion, cached)

    def _predict_prompt(
        self, task: str, count: int, characters: float, foreign: int, schema: int
    ) -> Range:
        seen = self._tasks.get(task)
        if seen is not None and seen.prompt.x:
            return seen.prompt.predict(count, characters)
        pairs = zip(_PROMPT_RATE, _FOREIGN_RATE, _SCHEMA_SHARE, strict=True)
        low, expected, high = (
            (characters - foreign) * rate + foreign * abroad + schema * share * rate
            for rate, abroad, share in pairs
        )
        return Range(low, expected, high)

    def _learn(self, line: Line) -> None:
        task = self._tasks[str(line["task"])]
        task.calls += 1
        task.keys.add(str(line["key"]))
        if line["outcome"] != "answered" or line["assumed"]:
            return
        prompt, characters = _number(line, "prompt"), _number(line, "prompt_characters")
        subject = _number(line, "subject_characters")
        if not prompt or not characters:
            return
        task.prompt.add(characters, prompt)
        task.cached_tokens += _number(line, "cached")
        if subject:
            task.completion.add(subject, _number(line, "completion"))


def calibrate(runs: Path, model: str, expected: Mapping[str, Expected] | None = None) -> Estimator:
    """An estimator that knows what the latest runs of a warehouse paid."""
    found = [(path.stat().st_mtime_ns, path) for path in runs.glob(f"*/{LEDGER}")]
    lines: list[Line] = []
    for _, path in sorted(found, reverse=True):
        lines.extend(read_lines(path)[0])
        if len(lines) >= 2 * _ENOUGH:  # a call has two lines
            break
    return Estimator(lines, model, expected)


def _expect_calls(count: int, seen: _Task) -> Range:
    """Requests and those that are asked again, at the share that was seen.

    Both the number of them and the share itself scatter as counts do; the share as if ten more
    requests had been seen, so that few do not make it look wild.
    """
    n = len(seen.keys)
    again = seen.calls / n - 1
    rare, seen_of = max(again, 1 / (n + 10)), n + 10
    spread = SIGMAS * math.sqrt(rare * count + count * count * rare / seen_of)
    return Range(count, count * (1 + again), count * (1 + again) + spread)


def _number(line: Line, name: str) -> float:
    value = line.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
