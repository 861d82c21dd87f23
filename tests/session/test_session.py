"""The sweep of a session: its order, its budget, what an earlier call measured, and what a signal leaves."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import Any

import pytest
from fakes import Clock, FakeMeasuring, Notes, earlier_of, planned, session_of, suite, trial_of

from loaderbench.errors import Terminated
from loaderbench.records import PlannedTrial, Verification
from loaderbench.runner import TrialOutcome
from loaderbench.search.grid import BRIEF_HANG_S
from loaderbench.session import sweep as sweep_step
from loaderbench.session.session import ALL_FAILED, LATER_STEPS
from loaderbench.session.sweep import measure_sweep

TARGET = {"kind": "target", "target": "mine:data"}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(sweep_step.time, "monotonic", found)
    return found


@pytest.fixture(autouse=True)
def _handlers() -> Any:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    yield
    for number, handler in zip((signal.SIGINT, signal.SIGTERM), before, strict=True):
        signal.signal(number, handler)


def test_every_configuration_is_measured_in_every_round_and_each_trial_is_kept_at_once() -> None:
    measuring, notes = FakeMeasuring(), Notes()
    session = session_of(measuring, notes=notes)
    measure_sweep(session)
    names = [one.id for one in measuring.asked]
    assert sorted(names) == ["r1-c00", "r1-c01", "r2-c00", "r2-c01"]
    assert [name[:2] for name in names] == ["r1", "r1", "r2", "r2"]
    assert [trial.id for trial in notes.kept] == names == [trial.id for trial in session.found.trials]
    assert [name for name, _ in notes.started] == names == [name for name, _ in notes.ended]
    assert [progress.done for _, progress in notes.started] == [0, 1, 2, 3]
    assert [progress.done for _, progress in notes.ended] == [1, 2, 3, 4]
    assert len(session.found.readings) == 4
    assert (session.found.why_partial, session.step) == (None, "sweep")


def test_each_round_but_the_last_is_reported_when_all_of_it_is_kept() -> None:
    session = session_of(FakeMeasuring(), suite(measure={"rounds": 3}))
    heard = list[tuple[str, int]]()
    measure_sweep(session, lambda after: heard.append((after, len(session.found.trials))))
    assert heard == [("round 1 of 3", 3), ("round 2 of 3", 6)]  # an A/A trial in each


def test_a_round_that_a_budget_cuts_is_not_reported(clock: Clock) -> None:
    heard = list[str]()
    measure_sweep(session_of(FakeMeasuring(clock=clock, takes_s=3.0), suite(measure={"budget": 3.0})), heard.append)
    assert heard == []


def test_a_budget_ends_the_sweep_before_a_trial_that_would_pass_it(clock: Clock) -> None:
    measuring = FakeMeasuring(clock=clock, takes_s=2.0)
    session = session_of(measuring, suite(measure={"budget": 7.0}))
    measure_sweep(session)
    assert len(measuring.asked) == 3
    assert session.found.why_partial == "the budget of 7 s was used up after 3 trials"


def test_a_budget_that_is_used_up_in_a_round_ends_the_others_of_it_too(clock: Clock) -> None:
    measuring = FakeMeasuring(clock=clock, takes_s=3.0)
    session = session_of(measuring, suite(sweep={"num_workers": [0, 1, 2, 3]}, measure={"budget": 3.0}))
    measure_sweep(session)
    assert len(measuring.asked) == 1
    assert str(session.found.why_partial).endswith("after 1 trial")


def test_a_budget_that_the_last_trial_just_meets_is_enough(clock: Clock) -> None:
    measuring = FakeMeasuring(clock=clock, takes_s=2.0)
    session = session_of(measuring, suite(measure={"budget": 8.0}))
    measure_sweep(session)
    assert (len(measuring.asked), session.found.why_partial) == (4, None)


def test_without_a_budget_nothing_is_ever_late(clock: Clock) -> None:
    session = session_of(FakeMeasuring())
    assert (session.deadline_s, session.is_late(1e9)) == (None, False)
    limited = session_of(FakeMeasuring(), suite(measure={"budget": 60.0}))
    assert limited.deadline_s == 1060.0
    assert [limited.is_late(takes_s) for takes_s in (60.0, 60.1)] == [False, True]


def test_where_every_trial_of_the_first_round_fails_no_other_is_run() -> None:
    measuring = FakeMeasuring(lambda _: None)
    session = session_of(measuring)
    measure_sweep(session)
    assert (len(measuring.asked), session.found.why_partial) == (2, ALL_FAILED)


def test_one_trial_that_is_completed_lets_the_sweep_go_on() -> None:
    measuring = FakeMeasuring(lambda one: 100.0 if one.id == "r1-c01" else None)
    session = session_of(measuring)
    measure_sweep(session)
    assert session.found.why_partial is None
    assert {trial.round for trial in session.found.trials} == {1, 2}


def test_the_only_round_may_fail_and_the_run_is_complete() -> None:
    session = session_of(FakeMeasuring(lambda _: None), suite(measure={"rounds": 1}))
    measure_sweep(session)
    assert session.found.why_partial is None


class HangsWithWorkers(FakeMeasuring):
    """Each trial with workers hangs, and is ended after so long."""

    def __init__(self, hang_s: float) -> None:
        super().__init__(lambda one: None if one.config["num_workers"] else 100.0)
        self.hang_s = hang_s

    def __call__(self, one: PlannedTrial) -> TrialOutcome:
        outcome = super().__call__(one)
        return replace(outcome, trial=replace(outcome.trial, duration_s=self.hang_s))


def test_what_hung_for_a_few_seconds_is_tried_once_more() -> None:
    measuring = HangsWithWorkers(hang_s=BRIEF_HANG_S / 2)
    measure_sweep(session_of(measuring, suite(measure={"rounds": 4})))
    assert sum(one.config["num_workers"] == 2 for one in measuring.asked) == 2


def test_what_hung_for_long_is_not_tried_again_and_says_so_without_being_run() -> None:
    measuring, notes = HangsWithWorkers(hang_s=BRIEF_HANG_S), Notes()
    session = session_of(measuring, notes=notes, consumer="model")
    measure_sweep(session)
    assert sum(one.config["num_workers"] == 2 for one in measuring.asked) == 1
    left_out = session.found.trials[-1] if session.found.trials[-1].config["num_workers"] else session.found.trials[-2]
    assert left_out.status != "completed"
    assert left_out.failure is not None
    assert "failed in round" in left_out.failure.message
    assert left_out.consumer == "model"
    assert len(notes.kept) == 4


def test_what_an_earlier_call_measured_is_not_measured_again() -> None:
    measuring, notes = FakeMeasuring(), Notes()
    session = session_of(measuring)
    one = session.plan.trial(session.plan.configurations[0], 1)
    other = planned("r1-c01", {"num_workers": 99})
    again = session_of(measuring, notes=notes, earlier=earlier_of(trial_of(one, 77.0), trial_of(other, 55.0)))
    measure_sweep(again)
    assert one.id not in [asked.id for asked in measuring.asked]
    assert len(measuring.asked) == 3
    rates = {trial.id: trial.samples_per_s for trial in again.found.trials}
    assert (rates[one.id], rates["r1-c01"]) == (77.0, 100.0)
    assert one.id not in [trial.id for trial in notes.kept]
    assert len(again.found.readings) == 5
    assert len(notes.ended) == 4


def test_the_run_so_far_has_all_that_is_known() -> None:
    session = session_of(FakeMeasuring())
    session.found.left_out["verification"] = "why"
    trial = session.measure(planned("r1-c00", {"num_workers": 0}))
    session.found.why_partial = "interrupted"
    so_far = session.so_far()
    assert (so_far.trials, so_far.verification) == ((trial,), None)
    assert (so_far.left_out, so_far.notes, so_far.complete) == ({"verification": "why"}, ("interrupted",), False)
    assert session.found.of("sweep") == [trial]
    assert session.found.of("twin", "remedy") == []


@pytest.mark.parametrize(("stop", "number"), [(KeyboardInterrupt(), signal.SIGINT), (Terminated(), signal.SIGTERM)])
def test_a_signal_is_noted_and_says_how_far_the_sweep_was(stop: BaseException, number: int) -> None:
    session = session_of(FakeMeasuring())
    session.measure(planned("r1-c00"))
    session.measure(planned("r1-aa", role="twin"))
    session.measure(planned("v1", role="remedy"))
    session.stopped(stop)
    found = session.found
    assert (found.stopped_by, found.why_partial) == (number, "interrupted after 2 of 4 trials")
    assert found.left_out == dict.fromkeys(LATER_STEPS, found.why_partial)


def test_a_signal_in_an_adaptive_sweep_or_in_further_rounds_counts_what_was_done() -> None:
    given = suite(measure={"budget": 60.0, "rounds": 3, "strategy": "adaptive"})
    adaptive = session_of(FakeMeasuring(), given)
    adaptive.measure(planned("r1-c00"))
    adaptive.stopped(KeyboardInterrupt())
    assert adaptive.found.why_partial == "interrupted after 1 trial"
    further = session_of(FakeMeasuring())
    for number in range(5):
        further.measure(planned(f"r{number}-c00"))
    further.stopped(KeyboardInterrupt())
    assert further.found.why_partial == "interrupted after 5 trials"


def test_a_signal_keeps_what_an_earlier_call_had_measured_and_this_one_had_not_reached() -> None:
    before = session_of(FakeMeasuring())
    measure_sweep(before)
    session = session_of(FakeMeasuring(), earlier=earlier_of(*before.found.trials))
    assert session.from_earlier(planned("r1-c00", before.found.trials[0].config)) is not None
    session.stopped(KeyboardInterrupt())
    assert sorted(trial.id for trial in session.found.trials) == sorted(trial.id for trial in before.found.trials)


def test_a_signal_during_isolation_runs_says_what_was_not_done() -> None:
    session = session_of(FakeMeasuring())
    session.measure(planned("r1-c00"))
    session.step = "isolation"
    session.stopped(KeyboardInterrupt())
    assert "during the isolation runs; the sweep is complete" in str(session.found.why_partial)


def test_a_signal_while_remedies_are_tried_keeps_what_was_said_before() -> None:
    session = session_of(FakeMeasuring())
    session.step = "remedies"
    session.found.left_out["isolation"] = "no files"
    session.found.verification = Verification(present={}, config={}, tried=(), ended="interrupted")
    session.stopped(KeyboardInterrupt())
    assert "while trying fixes" in str(session.found.why_partial)
    assert session.found.left_out == {"isolation": "no files"}


def test_a_signal_that_comes_when_all_is_measured_is_put_off_and_noted() -> None:
    session = session_of(FakeMeasuring())
    session.stopped(KeyboardInterrupt())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.raise_signal(number)
    assert session.found.late_signals == [signal.SIGTERM, signal.SIGINT]


def test_an_adaptive_sweep_leaves_a_part_of_its_budget_and_is_complete_with_what_it_looked_at(clock: Clock) -> None:
    """Of 60 s, 36 s are for the sweep. A trial takes 2 s, so 8 configurations get a look, with the twin."""
    measuring = FakeMeasuring(lambda one: 100.0 + float(one.config["x"] or 0), clock=clock, takes_s=2.0)
    axes = {"num_workers": [1, 2], "x": [*range(20)]}
    given = suite(dataset=TARGET, sweep=axes, measure={"budget": 60.0, "rounds": 3, "strategy": "adaptive"})
    session = session_of(measuring, given)
    measure_sweep(session)
    found = session.found
    assert found.why_partial is None
    assert clock.now_s - 1000.0 <= 36.0
    first = [trial for trial in found.trials if trial.round == 1]
    unseen = [one for one in found.dropped if not one.rounds]
    assert len(first) - 1 + len(unseen) == 40
    assert {one.why for one in unseen} == {"the budget of 60 s left no time for it"}
    assert {trial.round for trial in found.trials} == {1, 2, 3}


def test_an_adaptive_sweep_that_names_no_winner_in_its_budget_is_incomplete(clock: Clock) -> None:
    measuring = FakeMeasuring(clock=clock, takes_s=2.0)
    given = suite(measure={"budget": 12.0, "rounds": 3, "strategy": "adaptive"})
    session = session_of(measuring, given)
    measure_sweep(session)
    assert str(session.found.why_partial).startswith("the budget of 12 s was used up after")
