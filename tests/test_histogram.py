"""Times are counted in bins: what a bin holds, and which bins are the tail."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from loaderbench.histogram import BINS_PER_OCTAVE, FLOOR_S, Histogram, bin_of


def in_bin(number: int) -> float:
    """A time in the middle of a bin."""
    return FLOOR_S * 2 ** ((number + 0.5) / BINS_PER_OCTAVE)


def counted(*times: float) -> Histogram:
    histogram = Histogram()
    for time_s in times:
        histogram.add(time_s)
    return histogram


@pytest.mark.parametrize("bins_beyond", [1, 2, 5])
def test_the_tail_begins_with_the_first_bin_beyond_its_limit(bins_beyond: int) -> None:
    median_s = in_bin(80)
    late_s = in_bin(80 + 2 * BINS_PER_OCTAVE + bins_beyond)
    found = counted(*[median_s] * 9, late_s).tail_share(4.0)
    assert found == pytest.approx((late_s - median_s) / (9 * median_s + late_s))


def test_a_time_in_the_bin_of_the_limit_itself_is_no_tail() -> None:
    median_s = in_bin(80)
    at_limit_s = in_bin(80 + 2 * BINS_PER_OCTAVE)
    assert bin_of(at_limit_s) == bin_of(4.0 * median_s)
    assert counted(*[median_s] * 9, at_limit_s).tail_share(4.0) == 0.0


def test_eight_bins_double_a_time_from_a_tenth_of_a_microsecond_on() -> None:
    assert [bin_of(1e-7 * factor) for factor in (1.0, 1.05, 1.1, 2.05, 4.1)] == [0, 0, 1, 8, 16]


@pytest.mark.parametrize("time_s", [0.0, -1.0, 1e-12, 1e-7])
def test_what_is_too_short_to_tell_apart_lies_in_the_first_bin(time_s: float) -> None:
    assert bin_of(time_s) == 0


def test_what_is_too_long_to_tell_apart_lies_in_the_last_bin_with_its_sum() -> None:
    assert bin_of(390.0) == 254
    assert bin_of(400.0) == bin_of(1e9) == 255
    assert counted(1e9).quantile_s(0.5) == 1e9


def test_the_longest_time_is_known_exactly() -> None:
    assert counted(0.2, 0.7, 0.3).max_s == 0.7


def test_a_quantile_is_the_mean_of_its_bin_and_counts_from_the_shortest() -> None:
    histogram = counted(0.001, 0.01, 0.0101, 5.0)
    assert [histogram.quantile_s(share) for share in (0.25, 0.26, 0.75, 0.76, 1.0)] == [
        0.001,
        *[pytest.approx(0.01005)] * 2,
        5.0,
        5.0,
    ]


def test_nothing_counted_has_no_quantile_and_no_tail() -> None:
    assert Histogram().quantile_s(0.5) == 0.0
    assert Histogram().tail_share(4.0) == 0.0
    assert counted(0.0, 0.0).tail_share(4.0) == 0.0


def test_half_a_count_is_enough_for_the_tail_s_median() -> None:
    """Times of a few that are shorter than the others move no median."""
    times = [in_bin(60)] * 3 + [in_bin(80)] * 4 + [in_bin(120)]
    assert counted(*times).tail_share(4.0) == pytest.approx((times[-1] - in_bin(80)) / sum(times))


times = st.lists(st.floats(2e-7, 400), min_size=1, max_size=40)


@given(times, st.floats(0.01, 1.0))
def test_a_quantile_lies_within_a_bin_of_the_time_that_it_stands_for(times: list[float], share: float) -> None:
    exact = sorted(times)[math.ceil(share * len(times) - 1e-9) - 1]
    assert counted(*times).quantile_s(share) == pytest.approx(exact, rel=0.1)


@given(times)
def test_a_tail_is_a_share_of_all_time_and_counts_each_time_once(times: list[float]) -> None:
    histogram = counted(*times)
    assert 0 <= histogram.tail_share(1.0) < 1
    assert sum(histogram.counts) == len(times)
    assert sum(histogram.sums_s) == pytest.approx(sum(times))
