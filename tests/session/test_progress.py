"""How far a run is: its phase, and one estimate of the time left, which only shrinks."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fakes import Clock, FakeMeasuring, plan_of, planned, session_of, suite, trial_of
from hypothesis import given, strategies as st

from loaderbench.plan import Plan
from loaderbench.records import PlannedTrial, Trial
from loaderbench.session import Listener, run, sweep as sweep_step, time_slicing
from loaderbench.session.final import measure_final
from loaderbench.session.isolation import measure_isolation
from loaderbench.session.listener import Progress
from loaderbench.session.sweep import measure_sweep
from loaderbench.session.time_left import TimeLeft, mean_trial_s, sweep_left_s

PLAN = replace(
    plan_of(suite()), trial_s=5.0, isolation_s=3.0, isolation_runs=4, freed_s=40.0, verify_s=60.0, verify_trial_s=2.0
)
ZERO, TWO = PLAN.configurations


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(sweep_step.time, "monotonic", found)
    return found


def sweep(*took_s: float | None, rate: float | None = 100.0) -> list[Trial]:
    """Trials of both configurations in turns."""
    order = [PLAN.trial(PLAN.configurations[n % 2], 1 + n // 2) for n in range(len(took_s))]
    return [replace(trial_of(one, rate), duration_s=took) for one, took in zip(order, took_s, strict=True)]


def test_before_any_trial_the_time_left_is_the_plan_s_with_all_that_may_follow_the_sweep() -> None:
    found = TimeLeft(PLAN).in_sweep([])
    assert (PLAN.trials, PLAN.isolation_trials) == (4, 8)
    assert (found.phase, found.done, found.total, found.best) == ("Sweep", 0, 4, None)
    assert found.left_s == 4 * 5.0 + 8 * 3.0 + 40.0 + 60.0


def test_a_configuration_takes_as_long_as_in_earlier_rounds_and_an_unknown_one_as_planned() -> None:
    assert sweep_left_s(sweep(1.0), PLAN) == 1 * 1.0 + 2 * 5.0
    assert sweep_left_s(sweep(9.0), PLAN) == 1 * 9.0 + 2 * 9.0
    assert sweep_left_s(sweep(1.0, 9.0), PLAN) == 1.0 + 9.0
    assert sweep_left_s(sweep(1.0, 9.0, 3.0), PLAN) == 9.0
    assert sweep_left_s(sweep(1.0, 9.0, 3.0, None), PLAN) == 0.0


def test_the_twins_of_the_baseline_take_time_too() -> None:
    plan = replace(PLAN, rounds=3)
    twin = replace(trial_of(plan.twin(1)), duration_s=2.0)
    assert sweep_left_s([], plan) == 6 * 5.0 + 3 * 5.0
    assert sweep_left_s([twin], plan) == 3 * 2.0 + 3 * 5.0 + 2 * 2.0


def test_the_fastest_so_far_is_named() -> None:
    slow, fast = sweep(1.0, 1.0)
    found = TimeLeft(PLAN).in_sweep([slow, replace(fast, samples_per_s=1300.0)])
    assert found.best is not None
    assert found.best.startswith("1,300 samples/s")
    assert "num_workers=2" in found.best


def test_a_trial_takes_as_long_as_those_that_say_how_long_they_took() -> None:
    assert mean_trial_s(sweep(None, None), PLAN.trial_s) == 5.0
    assert mean_trial_s(sweep(None, 1.0, 4.0), PLAN.trial_s) == 2.5


def test_an_estimate_that_would_grow_stays_where_it_is() -> None:
    left = TimeLeft(PLAN)
    assert left.in_sweep(sweep(1.0, 1.0)).left_s == 2 * 1.0 + 24.0 + 40.0 + 60.0
    assert left.in_sweep(sweep(1.0, 1.0, 99.0)).left_s == 1.0 + 24.0 + 40.0 + 60.0
    assert TimeLeft(PLAN).in_sweep(sweep(1.0, 99.0)).left_s == 100.0 + 24.0 + 40.0 + 60.0
    assert left.in_sweep(sweep(1.0, 99.0)).left_s == 1.0 + 24.0 + 40.0 + 60.0


def test_isolation_runs_leave_the_time_for_fixes() -> None:
    found = TimeLeft(PLAN).in_isolation(2, 6, [], sweep(1.0))
    assert (found.phase, found.done, found.total, found.left_s) == ("Isolation runs", 2, 6, 4 * 3.0 + 40.0 + 60.0)
    ran = replace(trial_of(planned("i")), duration_s=2.0)
    assert TimeLeft(PLAN).in_isolation(2, 6, [ran], []).left_s == 4 * 2.0 + 40.0 + 60.0


@pytest.mark.parametrize(("until_s", "left_s"), [(10.0, 10.0), (0.0, 0.0), (-3.0, 0.0)])
def test_fixes_are_tried_for_the_time_that_is_left(clock: Clock, until_s: float, left_s: float) -> None:
    found = TimeLeft(PLAN).in_fixes(3, clock.now_s + until_s, sweep(1.0))
    assert (found.phase, found.done, found.total, found.left_s) == ("Fixes", 3, None, left_s)


@pytest.mark.parametrize(("verify_s", "budget_s", "left_s"), [(60.0, 30.0, 30.0), (0.0, 30.0, 30.0), (0.0, 90.0, 44.0)])
def test_a_budget_bounds_the_time_left(clock: Clock, verify_s: float, budget_s: float, left_s: float) -> None:
    left = TimeLeft(replace(PLAN, freed_s=0.0, verify_s=verify_s), clock.now_s + budget_s)
    assert left.in_sweep([]).left_s == left_s


def test_fixes_may_use_all_that_a_budget_leaves(clock: Clock) -> None:
    left = TimeLeft(PLAN, clock.now_s + 600.0)
    assert left.in_sweep([]).left_s == 600.0
    clock.now_s += 50.0
    found = left.in_fixes(0, clock.now_s + 550.0, [])
    assert (found.left_s, found.elapsed_s) == (550.0, 50.0)


class Heard(Listener):
    """Keeps what a session reports, in order."""

    def __init__(self) -> None:
        self.shown: list[Progress] = []
        self.plan: Plan | None = None

    def planned(self, plan: Plan) -> None:
        self.plan = plan

    def trial_started(self, planned: PlannedTrial, progress: Progress) -> None:
        self.shown.append(progress)

    def trial_ended(self, trial: Trial, progress: Progress) -> None:
        self.shown.append(progress)

    def append(self, trial: Trial) -> None:
        """As a store that keeps nothing."""


durations_s = st.floats(0.01, 500.0)


@given(
    took_s=st.lists(durations_s, min_size=1, max_size=40),
    rates=st.lists(st.sampled_from([None, 10.0, 500.0]), min_size=1, max_size=7),
    rounds=st.integers(1, 4),
    workers=st.integers(1, 4),
    budget=st.none() | st.floats(1.0, 2_000.0),
    verify=st.booleans(),
    strategy=st.sampled_from(["grid", "adaptive"]),
)
def test_the_time_left_of_any_run_only_shrinks(
    took_s: list[float],
    rates: list[float | None],
    rounds: int,
    workers: int,
    budget: float | None,
    verify: bool,
    strategy: str,
) -> None:
    """Sweep, final and isolation runs as a session measures them, and fixes until their time is up."""
    with pytest.MonkeyPatch.context() as patch:
        clock = Clock()
        patch.setattr(sweep_step.time, "monotonic", clock)
        measure = {"rounds": rounds, "budget": budget, "verify": verify, "strategy": strategy}
        session = _session(clock, suite(sweep={"num_workers": [*range(workers)]}, measure=measure), took_s, rates)
        patch.setattr(time_slicing.proc, "available", lambda: False)
        measure_sweep(session)
        measure_final(session)
        measure_isolation(session, next(iter(session.plan.configurations)))
        until_s = session.deadline_s or clock.now_s + session.plan.verify_s
        for tried, took in enumerate(took_s):
            session.listener.shown.append(session.time_left.in_fixes(tried, until_s, []))
            clock.now_s += took
        assert_only_shrinks(session.listener.shown, session.plan)


def _session(clock: Clock, found: Any, took_s: list[float], rates: list[float | None]) -> Any:
    """A session whose trials take these times in turns, some of which fail."""

    class Varied(FakeMeasuring):
        def __call__(self, one: PlannedTrial) -> Any:
            number = len(self.asked)
            self.takes_s, self.rate = took_s[number % len(took_s)], lambda _: rates[number % len(rates)]
            outcome = super().__call__(one)
            return replace(outcome, trial=replace(outcome.trial, duration_s=self.takes_s))

    heard: Any = Heard()
    return session_of(Varied(clock=clock), found, heard)


def assert_only_shrinks(shown: list[Progress], plan: Plan) -> None:
    """Of every run: the time left never grows, a phase counts up to its total, and phases come in their order."""
    assert all(later.left_s <= before.left_s for before, later in pairwise(shown))
    assert all(progress.left_s >= 0 for progress in shown)
    phases = list(dict.fromkeys(progress.phase for progress in shown))
    assert phases == [phase for phase in ("Sweep", "Final", "Isolation runs", "Fixes") if phase in phases]
    for progress in shown:
        assert progress.total is None or (progress.phase != "Fixes" and progress.done <= progress.total)
    total = None if plan.is_adaptive else plan.trials
    assert {progress.total for progress in shown if progress.phase == "Sweep"} <= {total}


@pytest.mark.slow
def test_the_time_left_of_a_real_run_only_shrinks_through_all_its_phases(tmp_path: Path, photos: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        f"dataset: {{root: {photos}}}\nloader: {{drop_last: true}}\nsweep: {{batch_size: [4], num_workers: [0, 1]}}\n"
        "consumer: {kind: emulated, demand: 100000}\nmeasure: {rounds: 1, seconds: 0.2, budget: 20s}\n"
    )
    heard = Heard()
    run(tmp_path / "s.yaml", out=tmp_path / "out", listener=heard)
    assert heard.plan is not None
    assert_only_shrinks(heard.shown, heard.plan)
    assert heard.shown[0].phase == "Sweep"
    assert "Isolation runs" in {progress.phase for progress in heard.shown}
    assert heard.shown[0].left_s > heard.shown[-1].left_s
