"""Times are counted in bins: what a bin holds, and which bins are the tail."""

from __future__ import annotations

import pytest

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
