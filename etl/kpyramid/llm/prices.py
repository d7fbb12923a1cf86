"""Money: what tokens cost, and sums of it that are exact."""

from dataclasses import dataclass

from kpyramid.llm.types import Usage
from kpyramid.model_settings import ModelPrice

_MILLION = 1_000_000
_PICO = 10**12
"""Sums are kept in whole picodollars: a millionth of a cent per million tokens is one of them."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and money, added without rounding."""

    tokens: int = 0
    picodollars: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.tokens + other.tokens, self.picodollars + other.picodollars)

    @property
    def dollars(self) -> float:
        return self.picodollars / _PICO


NOTHING = Spent()


def count_picodollars(dollars: float) -> int:
    """An amount as a whole number."""
    return round(dollars * _PICO)


def cost_of(usage: Usage, price: ModelPrice, *, batch: bool = False) -> float:
    """US dollars of one call; input that the server had cached has a price of its own."""
    cached = min(usage.cached, usage.prompt)
    cached_price = price.input if price.cached_input is None else price.cached_input
    dollars = (
        (usage.prompt - cached) * price.input
        + cached * cached_price
        + usage.completion * price.output
    ) / _MILLION
    return dollars * (price.batch if batch else 1.0)


def bound_cost(prompt: int, completion: int, price: ModelPrice, *, batch: bool = False) -> float:
    """The most that a call of so many tokens can cost, whatever of it the server had cached."""
    cached = prompt if (price.cached_input or 0.0) > price.input else 0
    return cost_of(Usage(prompt, completion, cached=cached), price, batch=batch)
