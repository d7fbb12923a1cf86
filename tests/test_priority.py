"""Priorities against exact arithmetic, in the range where plain numbers underflow."""

from decimal import Decimal, localcontext
from itertools import pairwise
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.numerics.gaussian import Priority, Signed, fit_gaussian, fit_space, score_priority
from kpyramid.numerics.moments import Moments

PRIORITIES = get_args(Priority)
LOGS = st.floats(-3000, 3000).map(lambda value: round(value, 6))


def compute_exactly(kind: Priority, log_graph: float, log_ontology: float) -> Decimal:
    """The priority as a plain number, to 80 digits."""
    graph, ontology = Decimal(log_graph), Decimal(log_ontology)
    return {
        "cross_entropy": lambda: graph.exp() * ontology - ontology.exp() * graph,
        "kl_difference": lambda: (graph.exp() + ontology.exp()) * (graph - ontology),
        "pointwise_kl": lambda: graph.exp() * (graph - ontology),
        "log_ratio": lambda: graph - ontology,
    }[kind]()


def score_one(kind: Priority, log_graph: float, log_ontology: float) -> Signed:
    return score_priority(kind, np.array([log_graph]), np.array([log_ontology]))


@pytest.mark.parametrize("kind", PRIORITIES)
@given(log_graph=LOGS, log_ontology=LOGS)
def test_sign_and_magnitude_are_those_of_exact_arithmetic(
    kind: Priority, log_graph: float, log_ontology: float
) -> None:
    with localcontext() as context:
        context.prec = 80
        exact = compute_exactly(kind, log_graph, log_ontology)
        magnitude = float(abs(exact).ln()) if exact else 0.0
        sign = int(exact > 0) - int(exact < 0)
    found = score_one(kind, log_graph, log_ontology)
    assert found.sign.tolist() == [sign]
    assert found.log_magnitude[0] == pytest.approx(magnitude, rel=6e-6, abs=6e-7)


@pytest.mark.parametrize("kind", PRIORITIES)
def test_priorities_that_plain_numbers_lose_are_still_ranked(kind: Priority) -> None:
    log_graph = np.array([-2000.0, -1990.0, -1980.0])
    log_ontology = np.array([-2500.0, -2600.0, -2700.0])
    found = score_priority(kind, log_graph, log_ontology)
    assert (np.exp(log_graph) == 0.0).all()
    assert len(set(found.log_magnitude.tolist())) == 3


def test_order_goes_from_the_largest_positive_to_the_largest_negative() -> None:
    numbers = [0.0, -2.0, 5.0, 1e-3, -1e-3, 0.0, 5.0, -7.0]
    signs = np.sign(numbers).astype(np.int8)
    logs = np.log(np.abs([number or 1.0 for number in numbers]))
    assert Signed(signs, logs).order().tolist() == [2, 6, 3, 0, 5, 4, 1, 7]


@given(st.lists(st.tuples(LOGS, LOGS), min_size=1, max_size=30))
def test_order_is_that_of_the_exact_numbers(pairs: list[tuple[float, float]]) -> None:
    log_graph, log_ontology = np.array(pairs).T
    for kind in PRIORITIES:
        found = score_priority(kind, log_graph, log_ontology)
        with localcontext() as context:
            context.prec = 80
            exact = [compute_exactly(kind, *pair) for pair in pairs]
            ranked = [exact[index] for index in found.order()]
            for higher, lower in pairwise(ranked):
                # Equal to six digits of the log counts as equal.
                slack = abs(lower) * Decimal("0.05")
                assert higher >= lower - slack


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_log_density_that_is_not_finite_is_refused(wrong: float) -> None:
    for kind in PRIORITIES:
        with pytest.raises(ValueError, match="not finite"):
            score_one(kind, wrong, 0.0)
        with pytest.raises(ValueError, match="not finite"):
            score_one(kind, 0.0, wrong)


@pytest.mark.parametrize("kind", PRIORITIES)
@pytest.mark.parametrize("digit", [1e-12, -1e-12])
def test_last_digits_of_a_processor_change_nothing(kind: Priority, digit: float) -> None:
    draw = np.random.default_rng(5)
    log_graph, log_ontology = draw.normal(-20, 9, size=(2, 300))
    one = score_priority(kind, log_graph, log_ontology)
    other = score_priority(kind, log_graph * (1 + digit), log_ontology)
    assert one.order().tolist() == other.order().tolist()
    assert one.log_magnitude.tolist() == other.log_magnitude.tolist()


@pytest.mark.parametrize("kind", ["kl_difference", "pointwise_kl", "log_ratio"])
def test_points_dense_in_the_graph_and_thin_in_the_ontology_come_first(kind: Priority) -> None:
    draw = np.random.default_rng(2)
    shared, missing = draw.normal(size=(300, 4)), draw.normal(size=(200, 4)) + 6.0
    graph, ontology = np.concatenate([shared, missing]), draw.normal(size=(300, 4))
    layers = Moments.of(graph), Moments.of(ontology)
    space = fit_space(layers[0] + layers[1], 4)
    places = space.transform(graph)
    log_graph, log_ontology = (
        fit_gaussian(space.project(layer), space.floor).log_density(places) for layer in layers
    )
    found = score_priority(kind, log_graph, log_ontology)
    assert (found.order()[:100] >= 300).all()
    assert (found.sign[300:] == 1).all()
