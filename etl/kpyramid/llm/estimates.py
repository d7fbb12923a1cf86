"""Estimates: amounts between a low and a high, and rates that are measured."""

import math
from dataclasses import dataclass

from kpyramid.llm.prices import cost_of
from kpyramid.llm.types import Usage
from kpyramid.model_settings import ModelPrice

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
