"""Estimates recover planted rates, and say how sure they are; prices are exact."""

import random
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.extraction.cascade.tasks import RELATIONS
from kpyramid.llm.estimates import Estimator, Range, calibrate
from kpyramid.llm.ledger import LEDGER, Ledger, bound_cost, cost_of, read_lines
from kpyramid.llm.task import Message, Request, Usage
from kpyramid.settings import LLMSettings, ModelPrice

SETTINGS = LLMSettings(provider="openai", model="m")
PRICE = ModelPrice(input=2.0, output=8.0, cached_input=0.5)
STATIC = "Rules for the model. " * 60


def make_request(subject: str, task: str = "merged", max_tokens: int = 2000) -> Request:
    messages = (Message("system", STATIC), Message("user", subject))
    return Request(task, 1, messages, {}, max_tokens, "extract", "d", subject)


def make_requests(draw: random.Random, count: int) -> list[Request]:
    return [make_request("Some words. " * draw.randint(20, 80)) for _ in range(count)]


def use(request: Request, draw: random.Random) -> Usage:
    """A server's count: 0.24 tokens per character, replies of 0.9 tokens per character or so."""
    prompt = 60 + request.prompt_characters * 0.24
    completion = len(request.subject) * 0.9 * draw.uniform(0.6, 1.4)
    return Usage(round(prompt), round(completion))


def learn(requests: list[Request], draw: random.Random, again: int = 0) -> Estimator:
    """An estimator that saw these; every `again`-th was asked twice."""
    with TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / LEDGER, SETTINGS)
        for number, request in enumerate(requests):
            for _ in range(2 if again and number % again == 0 else 1):
                ticket = ledger.reserve(ledger.describe(request, f"k{number}"))
                ledger.settle(ticket, use(request, draw), "answered", billed=True)
        return Estimator(read_lines(Path(folder) / LEDGER)[0], "m")


def test_planted_rates_are_recovered_and_the_actual_lies_in_the_range() -> None:
    inside, runs = 0, 40
    for seed in range(runs):
        draw = random.Random(seed)
        estimator = learn(make_requests(draw, 20), draw)
        coming = make_requests(draw, 300)
        (estimate,) = estimator.estimate(coming).values()
        used = [use(request, draw) for request in coming]
        actual = sum(usage.prompt + usage.completion for usage in used)
        assert estimate.tokens.expected == pytest.approx(actual, rel=0.2)
        inside += estimate.tokens.low <= actual <= estimate.tokens.high
    assert inside >= 0.95 * runs


def test_without_experience_calls_are_requests_and_the_range_is_wide() -> None:
    draw = random.Random(2)
    coming = make_requests(draw, 100)
    (estimate,) = Estimator([], "m").estimate(coming).values()
    assert estimate.calls == Range(100, 100, 125)
    actual = sum(use(request, draw).prompt for request in coming)
    assert estimate.prompt.low < actual < estimate.prompt.high
    assert estimate.prompt.expected == pytest.approx(actual, rel=0.2)


def test_what_is_asked_again_is_expected_again() -> None:
    draw = random.Random(3)
    learned = learn(make_requests(draw, 50), draw, again=5)
    (estimate,) = learned.estimate(make_requests(draw, 100)).values()
    assert estimate.calls.expected == pytest.approx(120)
    assert estimate.calls.low == 100
    assert 125 < estimate.calls.high < 150


def test_only_what_a_server_counted_for_this_model_teaches(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / LEDGER, SETTINGS)
    request = make_request("Some words. " * 30)
    for outcome, usage in (("answered", Usage()), ("transient", None)):
        ledger.settle(
            ledger.reserve(ledger.describe(request, outcome)), usage, outcome, billed=True
        )
    assert Estimator(read_lines(tmp_path / LEDGER)[0], "m").seen == {}
    ledger.settle(
        ledger.reserve(ledger.describe(request, "k")), Usage(9, 9), "answered", billed=True
    )
    assert Estimator(read_lines(tmp_path / LEDGER)[0], "m").seen == {"merged": 1}
    assert Estimator(read_lines(tmp_path / LEDGER)[0], "other").seen == {}


def test_a_later_step_is_foreseen_by_what_it_was_shown_before(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / LEDGER, SETTINGS)
    for number in range(20):
        messages = (Message("system", STATIC), Message("user", "x" * 900))
        request = Request("relations", 1, messages, {}, 2000, "extract", "d", "x" * 300)
        used = Usage(round(request.prompt_characters * 0.25), 150)
        ledger.settle(
            ledger.reserve(ledger.describe(request, f"k{number}")), used, "answered", billed=True
        )
    later = Estimator(read_lines(tmp_path / LEDGER)[0], "m").foresee(
        RELATIONS, STATIC, [600] * 10, 2000
    )
    assert later.prompt.expected == pytest.approx(10 * (len(STATIC) + 1800) * 0.25, rel=0.05)
    assert later.completion.expected == pytest.approx(10 * 300, rel=0.05)
    assert later.calls.expected == 10


def test_the_books_of_the_latest_runs_are_read(tmp_path: Path) -> None:
    assert calibrate(tmp_path / "none", "m").seen == {}
    for run in ("a", "b"):
        ledger = Ledger(tmp_path / run / "ledger.jsonl", SETTINGS)
        ticket = ledger.reserve(ledger.describe(make_request("Some words. " * 30), f"{run}1"))
        ledger.settle(ticket, Usage(300, 200), "answered", billed=True)
    assert calibrate(tmp_path, "m").seen == {"merged": 2}


def test_prices_count_kept_input_and_the_batch_share() -> None:
    usage = Usage(prompt=1_000_000, completion=500_000, reasoning=400_000, cached=600_000)
    assert cost_of(usage, PRICE) == pytest.approx(0.4 * 2 + 0.6 * 0.5 + 0.5 * 8)
    assert cost_of(usage, PRICE, batch=True) == pytest.approx(cost_of(usage, PRICE) / 2)
    plain = ModelPrice(input=2.0, output=8.0, batch=1.0)
    assert cost_of(usage, plain, batch=True) == pytest.approx(2 + 4)


prices = st.floats(0, 100)


@given(
    prompt=st.integers(0, 10**6),
    completion=st.integers(0, 10**6),
    share=st.floats(0, 1),
    price=st.builds(ModelPrice, prices, prices, st.none() | prices, st.floats(0, 1)),
    batch=st.booleans(),
)
def test_no_call_costs_more_than_its_bound(
    prompt: int, completion: int, share: float, price: ModelPrice, *, batch: bool
) -> None:
    usage = Usage(prompt, completion, cached=round(prompt * share))
    most = bound_cost(Usage(prompt, completion), price, batch=batch)
    assert cost_of(usage, price, batch=batch) <= most * (1 + 1e-12)
