"""Every numbered statement of `docs/priority.md`, by the test of its number."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from kpyramid.numerics.gaussian import PRIORITIES, Gaussian, Priority, score_priority

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "priority.md").read_text("utf-8")
STATEMENTS = {
    int(number): " ".join(text.split())
    for number, text in re.findall(
        r"^(\d+)\. (.*?)(?=^\d+\. |^\n|^#|\Z)", PAGE, re.MULTILINE | re.DOTALL
    )
}
LOG = st.floats(-6.0, 6.0).map(lambda value: round(value, 4))


def rate(log_graph: float, log_ontology: float) -> float:
    """Eq. 7 as it is printed, with plain numbers."""
    graph, ontology = np.exp(log_graph), np.exp(log_ontology)
    return float(-ontology * np.log(graph) - (-graph * np.log(ontology)))


def find_sign(kind: Priority, log_graph: float, log_ontology: float) -> int:
    found = score_priority(kind, np.array([log_graph]), np.array([log_ontology]))
    return int(found.sign[0])


def rank(kind: Priority, log_graph: list[float], log_ontology: list[float]) -> list[int]:
    return score_priority(kind, np.array(log_graph), np.array(log_ontology)).order().tolist()


def divide_log(density: float) -> float:
    return float(np.log(density) / density)


def test_every_statement_has_its_test_and_every_test_its_statement() -> None:
    held = {int(match[1]) for name in globals() if (match := re.match(r"test_(\d\d)_", name))}
    assert sorted(STATEMENTS) == sorted(held) == list(range(1, len(held) + 1))


@given(LOG, LOG)
def test_01_priority_is_the_difference_of_g_times_both_densities(u: float, v: float) -> None:
    ontology, graph = float(np.exp(u)), float(np.exp(v))
    expected = ontology * graph * (divide_log(ontology) - divide_log(graph))
    assert rate(v, u) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_02_g_rises_to_its_peak_at_e_and_falls_after() -> None:
    densities = np.exp(np.linspace(-5.0, 9.0, 2801))
    values = np.log(densities) / densities
    peak = int(np.argmax(values))
    assert densities[peak] == pytest.approx(np.e)
    assert values[peak] == pytest.approx(1.0 / np.e)
    assert (np.diff(values[: peak + 1]) > 0).all()
    assert (np.diff(values[peak:]) < 0).all()
    assert (values[densities < 1.0 - 1e-9] < 0).all()


@given(st.floats(-6.0, 0.999), st.floats(-6.0, 0.999))
def test_03_below_one_it_is_negative_exactly_where_the_graph_is_denser(u: float, v: float) -> None:
    assume(abs(u - v) > 1e-6)
    assert find_sign("cross_entropy", v, u) == (-1 if v > u else 1)


@given(st.floats(1.001, 6.0), st.floats(1.001, 6.0))
def test_04_above_one_it_is_positive_exactly_where_the_graph_is_denser(u: float, v: float) -> None:
    assume(abs(u - v) > 1e-6)
    assert find_sign("cross_entropy", v, u) == (1 if v > u else -1)


@given(st.floats(-500.0, -1e-6), st.floats(0.0, 500.0))
def test_05_it_is_negative_where_the_ontology_is_below_and_the_graph_above_nought(
    u: float, v: float
) -> None:
    assert find_sign("cross_entropy", v, u) == -1
    assert find_sign("log_ratio", v, u) == 1


@given(st.floats(1.01, 50.0))
def test_06_it_is_nought_on_a_curve_off_the_diagonal(ratio: float) -> None:
    low = float(np.log(ratio) / (ratio - 1.0))
    high = low + float(np.log(ratio))
    assert rate(high, low) == pytest.approx(0.0, abs=1e-9)
    assert find_sign("cross_entropy", high + 1e-4, low + 1e-4) == 1
    assert find_sign("cross_entropy", high - 1e-4, low - 1e-4) == -1
    assert rate(np.log(4.0), np.log(2.0)) == pytest.approx(0.0, abs=1e-12)


@given(st.floats(0.1, 30.0), st.floats(-30.0, 30.0))
def test_07_it_rises_with_the_ontologys_density_where_the_graph_is_far_denser(
    v: float, u: float
) -> None:
    assume(u + 1e-3 < v and v - u > np.log(v) + 1e-2)
    assert np.exp(v) > v * np.exp(u)
    assert rate(v, u + 1e-3) > rate(v, u)
    assert rank("cross_entropy", [20.0, 20.0], [5.0, 15.0]) == [1, 0]
    assert rank("log_ratio", [20.0, 20.0], [5.0, 15.0]) == [0, 1]


def test_08_lengths_times_s_divide_densities_by_s_to_the_k() -> None:
    points = np.random.default_rng(0).normal(size=(20, 5))
    factor = np.linalg.cholesky(np.cov(points.T))
    plain = Gaussian(np.zeros(5), factor, 0.0).log_density(points)
    scaled = Gaussian(np.zeros(5), 3.0 * factor, 0.0).log_density(3.0 * points)
    np.testing.assert_allclose(scaled, plain - 5 * np.log(3.0), rtol=1e-12)


@given(LOG, LOG, st.floats(-4.0, 4.0))
def test_09_densities_times_c_add_a_multiple_of_their_difference(
    u: float, v: float, log_c: float
) -> None:
    c = float(np.exp(log_c))
    expected = c * (rate(v, u) + log_c * (np.exp(v) - np.exp(u)))
    assert rate(v + log_c, u + log_c) == pytest.approx(expected, rel=1e-9, abs=1e-7)


@given(LOG, LOG)
def test_10_some_unit_makes_it_positive_and_another_negative(u: float, v: float) -> None:
    assume(abs(u - v) > 1e-3)
    signs = {find_sign("cross_entropy", v + shift, u + shift) for shift in (-20.0, 20.0)}
    assert signs == {-1, 1}


def test_11_in_extreme_units_the_order_is_that_of_the_difference_or_its_reverse() -> None:
    draw = np.random.default_rng(1)
    log_graph, log_ontology = draw.normal(size=(2, 200))
    order = np.argsort(-(np.exp(log_graph) - np.exp(log_ontology))).tolist()
    shift = 1e6
    for log_c, expected in ((shift, order), (-shift, order[::-1])):
        exact = np.exp(log_graph) * (log_ontology + log_c) - np.exp(log_ontology) * (
            log_graph + log_c
        )
        assert np.argsort(-exact).tolist() == expected


def test_12_on_a_line_the_highest_place_moves_from_the_ontology_to_the_graph() -> None:
    places = np.round(np.arange(-3.0, 5.0, 0.01), 2)
    log_graph, log_ontology = norm(2, 1).logpdf(places), norm(0, 1).logpdf(places)
    for unit, highest in ((1.0, -0.62), (100.0, 1.78)):
        shift = float(np.log(unit))  # in one dimension a longer unit multiplies the densities
        found = [rate(v + shift, u + shift) for v, u in zip(log_graph, log_ontology, strict=True)]
        assert places[int(np.argmax(found))] == highest
        assert f"{highest:.2f}" in STATEMENTS[12]


def test_13_in_a_space_of_unit_vectors_log_densities_at_the_centre_are_above_one() -> None:
    axes, deviation = 16, 0.13
    layer = Gaussian(np.zeros(axes), deviation * np.eye(axes), 0.0)
    centre = float(layer.log_density(np.zeros((1, axes)))[0])
    distance = float(np.sqrt(2.0 * centre))
    assert f"{centre:.1f}" == "17.9" in STATEMENTS[13]
    assert f"more than {distance:.1f} standard deviations" in STATEMENTS[13]
    for factor, sign in ((0.99, 1), (1.01, -1)):
        place = np.zeros((1, axes))
        place[0, 0] = factor * distance * deviation
        log_ontology = float(layer.log_density(place)[0])
        assert np.sign(log_ontology) == sign
        assert find_sign("cross_entropy", centre, log_ontology) == sign


def test_14_the_integrals_are_cross_entropies() -> None:
    ontology, graph = norm(0.0, 1.0), norm(2.0, 2.0)

    def integrate(one: norm, other: norm) -> float:
        return float(quad(lambda x: -one.pdf(x) * other.logpdf(x), -30, 30, limit=200)[0])

    def diverge(one: norm, other: norm) -> float:
        variances = one.var() / other.var()
        shift = (one.mean() - other.mean()) ** 2 / other.var()
        return float(0.5 * (variances + shift - 1.0 - np.log(variances)))

    for one, other in ((ontology, graph), (graph, ontology)):
        assert integrate(one, other) == pytest.approx(diverge(one, other) + one.entropy(), abs=1e-9)
    total = integrate(ontology, graph) - integrate(graph, ontology)
    divergences = diverge(ontology, graph) - diverge(graph, ontology)
    assert total != pytest.approx(divergences)
    assert f"{total:.4f}, the difference of the divergences {divergences:.4f}" in STATEMENTS[14]


@given(LOG, LOG)
def test_15_with_the_divergences_it_is_negative_wherever_the_graph_is_denser(
    u: float, v: float
) -> None:
    ontology, graph = np.exp(u), np.exp(v)
    true = ontology * (u - v) - graph * (v - u)
    assert true == pytest.approx((ontology + graph) * (u - v), rel=1e-9, abs=1e-12)
    assert np.sign(true) == -find_sign("kl_difference", v, u)
    assert {find_sign("kl_difference", v + shift, u + shift) for shift in (-64.0, 0.0, 64.0)} == {
        int(np.sign(v - u))
    }


def test_16_plain_numbers_are_equal_where_sign_and_magnitude_keep_the_order() -> None:
    log_graph, log_ontology = [-800.0, -810.0, -820.0], [-900.0, -900.0, -900.0]
    plain = [rate_terms(v, u) for v, u in zip(log_graph, log_ontology, strict=True)]
    assert plain == [(0.0, 0.0)] * 3
    found = score_priority("cross_entropy", np.array(log_graph), np.array(log_ontology))
    assert found.order().tolist() == [2, 1, 0]
    assert len(set(found.log_magnitude.tolist())) == 3


def rate_terms(log_graph: float, log_ontology: float) -> tuple[float, float]:
    """Both terms of Eq. 7 as plain numbers, without their signs."""
    return float(np.exp(log_ontology) * -log_graph), float(np.exp(log_graph) * -log_ontology)


@pytest.mark.parametrize("kind", PRIORITIES)
def test_17_the_table_says_what_sign_and_unit_do_to_each(kind: Priority) -> None:
    (row,) = re.findall(rf"^\| `{kind}` \|.*$", PAGE, re.MULTILINE)
    signs, unit = row.strip("| ").split(" | ")[2:]
    draw = np.random.default_rng(2)
    log_graph, log_ontology = draw.normal(0.0, 3.0, size=(2, 400))
    plain = score_priority(kind, log_graph, log_ontology)
    scaled = score_priority(kind, log_graph + 4.0, log_ontology + 4.0)
    right = np.array_equal(plain.sign, np.sign(log_graph - log_ontology))
    assert right == (signs == "yes")
    same = np.array_equal(plain.order(), scaled.order())
    assert same == (unit != "another order")
    shift = scaled.log_magnitude - plain.log_magnitude
    if same:
        expected = {"times c": 4.0, "the same": 0.0}[unit]
        np.testing.assert_allclose(shift, expected, atol=1e-4)


@given(LOG, LOG)
def test_18_cross_entropy_is_equation_seven_to_the_letter(u: float, v: float) -> None:
    expected = rate(v, u)
    assume(abs(expected) > 1e-9)
    found = score_priority("cross_entropy", np.array([v]), np.array([u]))
    number = float(found.sign[0] * np.exp(found.log_magnitude[0]))
    assert number == pytest.approx(expected, rel=1e-4)


def test_19_log_ratio_does_not_ask_how_dense_the_graph_is() -> None:
    assert rank("log_ratio", [-20.0, 10.0], [-60.0, 0.0]) == [0, 1]
    assert rank("pointwise_kl", [-20.0, 10.0], [-60.0, 0.0]) == [1, 0]


@given(st.floats(-6.0, 6.0), st.floats(20.0, 60.0))
def test_20_where_the_ontology_is_far_denser_only_kl_difference_is_far_from_nought(
    u: float, gap: float
) -> None:
    place = np.array([u - gap]), np.array([u])
    near, far = (score_priority(kind, *place) for kind in ("pointwise_kl", "kl_difference"))
    assert near.sign.tolist() == far.sign.tolist() == [-1]
    assert near.log_magnitude[0] < u - 15.0
    assert far.log_magnitude[0] > u + np.log(gap) - 1e-3


def test_figure_draws_the_border_and_the_line_that_the_statements_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.delitem(sys.modules, "draw_priority", raising=False)
    import draw_priority

    for ratio in (1.5, 2.0, 30.0):
        low, high = draw_priority.find_border(ratio)
        assert high - low == pytest.approx(np.log(ratio))
        assert rate(high, low) == pytest.approx(0.0, abs=1e-9)
    for place in (-1.0, 0.5, 3.0):
        for factor in draw_priority.UNITS:
            logs = [law.logpdf(place) + np.log(factor) for law in (norm(2, 1), norm(0, 1))]
            assert draw_priority.score_line(place, factor) == pytest.approx(rate(*logs))
    assert draw_priority.divide_log(1.0) == pytest.approx(1.0 / np.e)
    assert (DOCS / "priority.svg").read_text("utf-8") == draw_priority.draw_priority()
