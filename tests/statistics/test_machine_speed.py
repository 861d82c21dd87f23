"""How much a ratio varies between two times follows from how much the speed of the machine varied in the run."""

from __future__ import annotations

import math
from typing import Any

import pytest

from loaderbench.records import Trial
from loaderbench.statistics.intervals import LEAST_SD, SHARE_OF_SPEED_SD, sd_between_times


def decoded(*times_s: float | None, role: Any = "sweep") -> list[Trial]:
    return [
        Trial(id=f"{at}", role=role, config={}, round=1, status="failed", reference_decode_before_s=time_s)
        for at, time_s in enumerate(times_s)
    ]


def test_it_grows_with_the_variation_of_the_machine() -> None:
    swings = [math.exp(sign * 0.15) * 0.005 for sign in (-1, 1) * 10]
    assert sd_between_times(decoded(*swings)) == pytest.approx(SHARE_OF_SPEED_SD * 0.154, rel=0.01)
    assert sd_between_times(decoded(*swings, role="remedy")) == sd_between_times(decoded(*swings))


def test_it_has_a_minimum_where_the_speed_is_steady_or_unknown() -> None:
    for times_s in ([], [None], [0.005], [0.005, 0.005, 0.005]):
        assert sd_between_times(decoded(*times_s)) == LEAST_SD


def test_isolated_trials_do_not_count() -> None:
    assert sd_between_times(decoded(0.004, 0.009, role="isolation")) == LEAST_SD
