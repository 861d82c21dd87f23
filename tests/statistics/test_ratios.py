"""How a ratio is written: one form, and never a 0 or 1 that it is not."""

import math

import pytest

from loaderbench.records import Interval
from loaderbench.statistics.intervals import percent_gain, times


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (Interval(1.513, 1.494, 1.526), "1.51\u00d7 (1.49\u20131.53\u00d7)"),
        (Interval(12.34, 10.0, 15.06), "12.3\u00d7 (10.0\u201315.1\u00d7)"),
        (Interval(1234.4, 1000.0, 1500.0), "1,234\u00d7 (1,000\u20131,500\u00d7)"),
        (Interval(1.02, 1.001, 1.04), "1.020\u00d7 (1.001\u20131.040\u00d7)"),
        (Interval(3.3, 0.004, 72.8), "3.300\u00d7 (0.004\u201372.800\u00d7)"),
        (Interval(1.0, 1.0, 1.0), "1.00\u00d7 (1.00\u20131.00\u00d7)"),
        (Interval(1.5, None, None), "1.50\u00d7"),
        (Interval(1.5, 0.1, math.inf), "1.50\u00d7"),
    ],
)
def test_a_ratio_is_a_number_of_times_with_its_bounds(ratio: Interval, text: str) -> None:
    assert times(ratio) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (Interval(1.84, 1.76, 1.93), "+84% (76\u201393%)"),
        (Interval(0.85, 0.8, 0.91), "-15% (-20 to -9%)"),
        (Interval(1.04, 0.9, 1.2), "+4% (-10 to 20%)"),
        (Interval(1.3, None, None), "+30%"),
    ],
)
def test_a_gain_in_percent_has_a_word_between_bounds_that_may_be_negative(ratio: Interval, text: str) -> None:
    assert percent_gain(ratio) == text


def test_a_bound_near_zero_has_no_sign() -> None:
    assert percent_gain(Interval(1.05, 0.9997, 1.1)) == "+5% (0 to 10%)"
    assert percent_gain(Interval(0.9997, None, None)) == "+0%"
