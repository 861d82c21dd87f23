"""Which of two counts explains a time."""

from __future__ import annotations

from statistics import correlation, fmean

import pytest

from loaderbench.attach.workers import FEWEST_PAIRS, share_explained

STEADY = [100.0, 101, 99, 100, 100, 102, 98, 100]
VARIED = [100.0, 140, 60, 120, 80, 130, 70, 100]


def test_the_steadier_of_two_counts_explains_the_time() -> None:
    assert share_explained(STEADY, VARIED) == pytest.approx(0, abs=0.05)
    assert share_explained(VARIED, STEADY) == pytest.approx(1, abs=0.05)


def test_both_explain_it_where_one_makes_up_for_the_other() -> None:
    requests = [10.0, 14, 6, 12, 8, 13, 7, 10]
    read = [(1 - 0.03 * count) / 0.01 for count in requests]  # 30 ms a request, and 10 ms a megabyte
    assert share_explained(requests, read) == pytest.approx(0.7)


def test_a_correlation_that_rounding_puts_beyond_one_is_a_correlation_of_one() -> None:
    varied = [66.0, 116, 149, 121, 76, 104, 57, 111]
    means = [value / fmean(varied) for value in varied]
    assert abs(correlation([1 + mean for mean in means], [1 - mean for mean in means])) > 1
    assert share_explained([100.0] * 8, varied) == pytest.approx(0)


@pytest.mark.parametrize(
    "values",
    [
        (STEADY, [9 * value for value in STEADY]),
        (VARIED, VARIED[1:] + VARIED[:1]),  # as varied as each other
        (STEADY[: FEWEST_PAIRS - 1], VARIED[: FEWEST_PAIRS - 1]),
        (STEADY, [0.0] * len(STEADY)),
    ],
)
def test_two_that_vary_alike_are_not_told_apart(values: tuple[list[float], list[float]]) -> None:
    assert share_explained(*values) is None
