"""Intervals of repeated looks: as published, and false alarms stay below what they claim whenever one stops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit

from loaderbench.statistics.sequential import FIRST_LOOK, MOST_LOOKS, level_at_looks, planned_looks


@pytest.mark.parametrize(("looks", "nominal"), [(2, 0.0294), (3, 0.0221), (4, 0.0182), (5, 0.0158), (10, 0.0106)])
def test_the_level_of_equally_spaced_looks_is_that_of_pocock(looks: int, nominal: float) -> None:
    assert 1 - level_at_looks(tuple(range(1, looks + 1))) == pytest.approx(nominal, abs=6e-5)


def test_one_look_has_the_usual_level_and_a_stricter_one_can_be_asked_for() -> None:
    assert level_at_looks((12,)) == level_at_looks(()) == 0.95
    assert level_at_looks((5, 10), 0.99) > level_at_looks((5, 10)) > 0.95


@pytest.mark.parametrize("most", [1, 4, 5, 6, 9, 40, 1000])
def test_looks_begin_at_the_first_grow_and_end_with_the_budget(most: int) -> None:
    looks = planned_looks(most)
    assert looks[-1] == most
    assert looks[0] == min(most, FIRST_LOOK)
    assert list(looks) == sorted(set(looks))
    assert len(looks) <= MOST_LOOKS


@pytest.mark.parametrize("most", [8, 40])
def test_of_intervals_looked_at_again_and_again_95_of_100_hold_at_every_look(most: int) -> None:
    looks = planned_looks(most)
    held = _held(looks, level_at_looks(looks))
    assert 0.935 <= held <= 0.97
    assert _held(looks, 0.95) < 0.92, "looking again without this costs far more than 5%"


def _held(looks: tuple[int, ...], level: float, repeats: int = 8_000) -> float:
    """How often the truth, 0, lies in the intervals of all looks."""
    values = np.random.default_rng(7).standard_normal((repeats, looks[-1]))
    inside = np.ones(repeats, bool)
    for look in looks:
        seen = values[:, :look]
        half = stdtrit(look - 1, 0.5 + level / 2) * seen.std(axis=1, ddof=1) / np.sqrt(look)
        inside &= np.abs(seen.mean(axis=1)) <= half
    return float(inside.mean())
