"""Intervals over rounds say what they may."""

import math
import random

import pytest
from hypothesis import given, strategies as st

from loaderbench.records import Interval
from loaderbench.statistics.intervals import excludes_one, rate_interval, ratio_interval, share_interval


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


@given(st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=20))
def test_the_estimate_lies_within_its_interval(values: list[float]) -> None:
    found = rate_interval(values)
    assert found.lo is not None
    assert found.hi is not None
    assert found.lo <= found.est * (1 + 1e-9)
    assert found.est <= found.hi * (1 + 1e-9)


def test_the_interval_of_three_rounds_covers_what_it_says() -> None:
    draw = random.Random(0)
    hits = 0
    for _ in range(4000):
        found = rate_interval([math.exp(draw.gauss(0, 0.1)) for _ in range(3)])
        hits += (found.lo or 0) <= 1 <= (found.hi or 0)
    assert hits / 4000 == pytest.approx(0.95, abs=0.012)
