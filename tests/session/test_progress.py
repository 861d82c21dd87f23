"""How far a run is: what is done, what is left, and how long that takes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import plan_of, planned, suite, trial_of

from loaderbench.records import Trial
from loaderbench.session.listener import isolation_progress, progress_of, remedy_progress, typical_s

PLAN = replace(plan_of(suite()), trial_s=5.0, isolation_s=3.0, isolation_runs=4, verify_trial_s=2.0)


def sweep(*rates: float | None, took_s: float | None = 2.0) -> list[Trial]:
    return [
        replace(trial_of(planned(f"t{n}", {"num_workers": n}), rate), duration_s=took_s) for n, rate in enumerate(rates)
    ]


def test_before_any_trial_the_time_left_is_the_plan_s() -> None:
    found = progress_of([], PLAN)
    assert (PLAN.trials, PLAN.isolation_trials) == (4, 8)
    assert (found.done, found.total, found.best) == (0, 12, None)
    assert found.left_s == 4 * 5.0 + 8 * 3.0


def test_the_time_left_goes_by_the_trials_that_are_done() -> None:
    found = progress_of(sweep(100.0, 300.0, None), PLAN)
    assert (found.done, found.total, found.left_s) == (3, 12, 1 * 2.0 + 8 * 3.0)
    assert found.best is not None
    assert found.best.startswith("300 samples/s")
    assert "num_workers=1" in found.best


def test_a_trial_takes_as_long_as_those_that_say_how_long_they_took() -> None:
    assert typical_s(sweep(1.0, 1.0, took_s=None), PLAN) == 5.0
    assert typical_s([*sweep(1.0, took_s=None), *sweep(1.0, took_s=1.0), *sweep(1.0, took_s=4.0)], PLAN) == 2.5


def test_isolation_runs_come_after_all_trials_of_the_sweep() -> None:
    runs = [planned(f"i{n}") for n in range(6)]
    found = isolation_progress(sweep(100.0), PLAN, 2, runs)
    assert (found.done, found.total, found.left_s) == (6, 10, 4 * 3.0)
    assert found.best is not None


@pytest.mark.parametrize(("left_s", "more"), [(10.0, 5), (9.0, 5), (0.0, 0), (-3.0, 0)])
def test_remedies_are_tried_for_the_time_that_is_left(left_s: float, more: int) -> None:
    found = remedy_progress(3, left_s, sweep(100.0), PLAN)
    assert (found.done, found.total) == (4 + 8 + 3, 4 + 8 + 3 + more)
    assert found.left_s == max(0.0, left_s)


def test_trials_of_no_known_length_are_counted_as_the_shortest() -> None:
    assert remedy_progress(0, 0.01, [], replace(PLAN, verify_trial_s=0.0)).total == 12 + 10
