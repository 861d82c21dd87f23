"""Intervals over rounds say what they may."""

import math
import random
from statistics import fmean

import pytest
from hypothesis import given, strategies as st

from loaderbench.records import Interval
from loaderbench.records.words import out_of_range
from loaderbench.statistics.intervals import (
    WIDEST_LOG,
    at_another_time,
    excludes_one,
    mean_interval,
    rate_interval,
    ratio_interval,
    share_interval,
    welch_interval,
)


def test_one_round_has_an_estimate_and_no_interval() -> None:
    assert rate_interval([7.0]) == Interval(pytest.approx(7.0), None, None)
    assert share_interval([0.25]) == Interval(0.25, None, None)


def test_no_round_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one"):
        rate_interval([])


def test_three_rounds_use_student_s_t_on_logarithms() -> None:
    found = rate_interval([1 / math.e, 1.0, math.e])
    half = 4.302653 / math.sqrt(3)  # t(0.975, 2) from Student's table; the standard deviation of the logs is 1
    assert found.est == pytest.approx(1.0)
    assert (math.log(found.lo or 0), math.log(found.hi or 0)) == (pytest.approx(-half), pytest.approx(half))


@pytest.mark.parametrize("values", [[1.0, 1e6], [1e-3, 1e9]])
def test_the_bounds_of_two_rates_with_nothing_in_common_can_be_saved(values: list[float]) -> None:
    for level in (0.95, 0.999):
        found = rate_interval(values, level)
        later = at_another_time(found, 2, 0.03)
        for one in (found, later):
            assert one.lo == pytest.approx(one.est / math.exp(WIDEST_LOG))
            assert one.hi == pytest.approx(one.est * math.exp(WIDEST_LOG))
            assert not any(map(out_of_range, (one.lo or 0.0, one.hi or 0.0, *vars(one.scaled(1e4)).values())))


def test_a_share_s_interval_stays_within_0_and_1() -> None:
    found = share_interval([0.0, 0.02, 0.3])
    assert found.lo == 0
    assert share_interval([0.7, 0.99, 1.0]).hi == 1


def test_a_ratio_is_paired_by_round_and_ignores_rounds_that_one_lacks() -> None:
    found = ratio_interval({1: 20.0, 2: 40.0, 3: 10.0, 4: 99.0}, {1: 10.0, 2: 20.0, 3: 5.0})
    assert found == Interval(pytest.approx(2.0), pytest.approx(2.0), pytest.approx(2.0))
    assert ratio_interval({1: 1.0}, {2: 1.0}) is None


def test_a_difference_needs_an_interval_that_excludes_one() -> None:
    assert excludes_one(Interval(1.2, 1.1, 1.3))
    assert excludes_one(Interval(0.8, 0.7, 0.9))
    assert not excludes_one(Interval(1.2, 0.9, 1.6))
    assert not excludes_one(Interval(1.2, None, None))


def test_an_interval_that_reaches_one_does_not_exclude_it() -> None:
    assert not excludes_one(Interval(1.1, 1.0, 1.2))
    assert not excludes_one(Interval(0.9, 0.8, 1.0))
    assert not excludes_one(Interval(1.2, 1.1, None))


def test_a_surer_interval_is_wider_by_student_s_t() -> None:
    """t(0.995, 2) and t(0.975, 2) from Student's table."""
    values = [1 / math.e, 1.0, math.e]
    usual, sure = rate_interval(values), rate_interval(values, 0.99)
    assert math.log(sure.hi or 0) / math.log(usual.hi or 0) == pytest.approx(9.924843 / 4.302653)
    paired = ratio_interval(dict(enumerate(values)), dict(enumerate([1.0] * 3)), 0.99)
    assert paired == Interval(pytest.approx(sure.est), pytest.approx(sure.lo), pytest.approx(sure.hi))


def test_a_mean_of_differences_may_be_negative() -> None:
    half = 4.302653 * 2 / math.sqrt(3)  # the standard deviation is 2
    assert mean_interval([-3.0, -1.0, 1.0]) == Interval(-1.0, pytest.approx(-1 - half), pytest.approx(-1 + half))
    assert mean_interval([-3.0]) == Interval(-3.0, None, None)


def test_a_share_s_interval_is_that_of_its_mean_where_it_fits() -> None:
    half = 4.302653 * 0.01 / math.sqrt(3)
    assert share_interval([0.49, 0.5, 0.51]) == Interval(
        pytest.approx(0.5), pytest.approx(0.5 - half), pytest.approx(0.5 + half)
    )


values = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)


@given(values, values)
def test_a_difference_the_other_way_round_is_its_negative(before: list[float], after: list[float]) -> None:
    there, back = welch_interval(before, after), welch_interval(after, before)
    assert there.est == pytest.approx(-back.est)
    assert there.lo is not None
    assert back.hi is not None
    assert there.lo == pytest.approx(-back.hi)


@given(values, values, st.floats(-1e3, 1e3))
def test_what_is_added_to_both_sides_changes_no_difference(
    before: list[float], after: list[float], added: float
) -> None:
    plain = welch_interval(before, after)
    moved = welch_interval([value + added for value in before], [value + added for value in after])
    assert moved.est == pytest.approx(plain.est, abs=1e-6)
    assert (moved.hi or 0) - (moved.lo or 0) == pytest.approx((plain.hi or 0) - (plain.lo or 0), rel=1e-3, abs=1e-3)


@given(st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6)), min_size=2, max_size=12))
def test_a_ratio_the_other_way_round_is_its_inverse(pairs: list[tuple[float, float]]) -> None:
    one, other = ({n: pair[side] for n, pair in enumerate(pairs)} for side in (0, 1))
    there, back = ratio_interval(one, other), ratio_interval(other, one)
    assert there is not None
    assert back is not None
    assert math.log(there.est) == pytest.approx(-math.log(back.est), abs=1e-9)


@given(st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=20))
def test_the_estimate_lies_within_its_interval(values: list[float]) -> None:
    found = rate_interval(values)
    assert found.lo is not None
    assert found.hi is not None
    assert found.lo <= found.est * (1 + 1e-9)
    assert found.est <= found.hi * (1 + 1e-9)


def test_an_interval_for_another_time_adds_the_variation_between_times() -> None:
    sure = at_another_time(Interval(2.0, 2.0, 2.0), 5, 0.03)
    assert (sure.lo, sure.hi) == pytest.approx((2 * math.exp(-1.96 * 0.03), 2 * math.exp(1.96 * 0.03)), rel=1e-4)
    wide = at_another_time(Interval(2.0, 1.0, 3.0), 3, 0.03)
    assert wide.lo == pytest.approx(2 * 0.5 ** math.sqrt(2), rel=0.005)
    assert wide.hi == pytest.approx(2 * 1.5 ** math.sqrt(2), rel=0.005)
    assert wide.lo is not None
    assert wide.lo < 2 * 0.5 ** math.sqrt(2)
    assert at_another_time(Interval(2.0, None, None), 1, 0.03) == Interval(2.0, None, None)


def test_it_covers_what_the_same_comparison_gives_later() -> None:
    draw, hits = random.Random(0), 0
    for _ in range(2000):
        found = at_another_time(rate_interval([math.exp(draw.gauss(0, 0.1)) for _ in range(5)]), 5, 0.03)
        later = fmean(draw.gauss(0, 0.1) for _ in range(3)) + draw.gauss(0, 0.03)
        hits += (found.lo or 0) <= math.exp(later) <= (found.hi or 0)
    assert hits / 2000 == pytest.approx(0.95, abs=0.015)


def test_the_interval_of_three_rounds_covers_what_it_says() -> None:
    draw = random.Random(0)
    hits = 0
    for _ in range(4000):
        found = rate_interval([math.exp(draw.gauss(0, 0.1)) for _ in range(3)])
        hits += (found.lo or 0) <= 1 <= (found.hi or 0)
    assert hits / 4000 == pytest.approx(0.95, abs=0.012)
