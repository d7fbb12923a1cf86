"""Intervals and tests against planted truth, scipy and hand-computed examples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpyramid.evaluation.results import bootstrap, compare_paired, correct_holm

FLOATS = st.lists(st.floats(-100, 100), min_size=1, max_size=30)


def test_interval_holds_the_planted_mean_as_often_as_it_says() -> None:
    generator = np.random.default_rng(7)
    for draw in (
        lambda: generator.normal(2.0, 1.0, 15),
        lambda: generator.random(40) + 1.5,
        lambda: (generator.random(60) < 0.3) + 1.7,
    ):
        found = [bootstrap(draw().tolist(), 1, 1000) for _ in range(600)]
        held = np.mean([one.low <= 2.0 <= one.high for one in found])
        assert 0.92 <= held <= 0.98  # three standard errors of 600 trials at .95 are .027


@given(FLOATS, st.randoms(use_true_random=False))
def test_order_of_the_questions_does_not_matter(values: list[float], shuffle) -> None:  # type: ignore[no-untyped-def]
    other = shuffle.sample(values, len(values))
    assert bootstrap(values, 0, 100) == bootstrap(other, 0, 100)


@given(FLOATS)
def test_interval_lies_within_the_values_and_around_the_mean(values: list[float]) -> None:
    found = bootstrap(values, 0, 200)
    assert min(values) <= found.mean <= max(values)
    # A mean of a sample is rounded, so that it may pass the largest value by that.
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9
    assert found.count == len(values)


def test_equal_values_have_an_interval_of_no_width() -> None:
    found = bootstrap([0.1] * 7, 0)
    assert (found.mean, found.low, found.high) == (0.1, 0.1, 0.1)


def test_nothing_and_what_is_no_number_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one value"):
        bootstrap([], 0)
    with pytest.raises(ValueError, match="not a number"):
        bootstrap([1.0, float("nan")], 0)
    with pytest.raises(ValueError):
        compare_paired([1.0], [1.0, 2.0], 0)


def test_exact_test_is_that_of_scipy() -> None:
    from scipy.stats import permutation_test

    generator = np.random.default_rng(2)
    for count in (3, 8, 12):
        a, b = generator.random(count) + 0.2, generator.random(count)
        theirs = permutation_test(
            (a - b,),
            lambda x, axis: x.mean(axis=axis),
            permutation_type="samples",
            n_resamples=9999,
        )
        assert compare_paired(a.tolist(), b.tolist(), 0).p == pytest.approx(theirs.pvalue)


def test_questions_without_a_difference_do_not_change_the_chance() -> None:
    a, b = [0.9, 0.8, 0.7, 0.2], [0.1, 0.3, 0.2, 0.4]
    assert compare_paired(a, b, 0).p == compare_paired(a + [0.5] * 40, b + [0.5] * 40, 0).p


def test_differences_of_equal_size_on_paper_count_as_equal() -> None:
    # 0.1 + 0.2 is not 0.3 in floating point; the exact p is 6 of 8 all the same.
    assert compare_paired([0.1, 0.2, -0.3], [0.0, 0.0, 0.0], 0).p == 1.0


def test_holm_corrects_as_in_the_worked_example() -> None:
    assert correct_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert correct_holm([]) == []


def test_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    values = np.random.default_rng(0).random(20).tolist()
    assert bootstrap(values, 1, 500) == bootstrap(values, 1, 500) != bootstrap(values, 2, 500)


def test_one_difference_alone_proves_nothing() -> None:
    assert compare_paired([1.0, 0.5], [0.0, 0.5], 0).p == 1.0
