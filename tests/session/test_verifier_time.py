"""How many remedies are tried at once, and when trying ends: by a clock of our own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import pytest
from fakes import Clock, FakeMeasuring, Notes, plan_of, planned, session_of, suite, trial_of

from loaderbench.consumers.model import COMPILE_S
from loaderbench.errors import Terminated
from loaderbench.plan import DEVICE_START_S, FIRST_CHILD_S, FREED_TRIAL_S, MOST_VERIFY_S, Plan
from loaderbench.records import IDENTICAL, Candidate, Config, PixelChange, PlannedTrial, Trial
from loaderbench.session import verifying
from loaderbench.session.session import NO_VERIFY
from loaderbench.session.verifying import (
    CALLS_FOR_NONE,
    MOST_OF_PLAN,
    Verifier,
    try_remedies,
    until_s,
)

PRESENT: Config = {"num_workers": 2}
PLAN = replace(plan_of(suite()), verify_trial_s=2.0, verify_steady_s=1.0, verify_s=120.0)
MANY = [Candidate(f"c{n}", {f"axis{n}": 1}, 2.0 - n / 10) for n in range(9)]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(time, "monotonic", found)
    return found


def verifier(clock: Clock, left_s: float, candidates: Sequence[Candidate] = MANY, **known: Any) -> Verifier:
    def propose(config: Config) -> list[Candidate]:
        return [one for one in candidates if not one.change.items() <= config.items()]

    compare = known.pop("compare_pixels", lambda pairs: [IDENTICAL] * len(pairs))
    return Verifier(PLAN, PRESENT, propose, compare, until_s=clock.now_s + left_s, **known)


def measured(one: PlannedTrial, took_s: float | None = 2.0, gain: float = 1.3) -> Trial:
    rate = (300.0 if one.config["num_workers"] else 100.0) * gain ** sum(name.startswith("axis") for name in one.config)
    return replace(trial_of(one, rate), duration_s=took_s)


def run(found: Verifier, clock: Clock, takes_s: float = 2.0, gain: float = 1.3) -> list[list[Trial]]:
    """Rounds until it is content, each trial of which takes so long on the clock."""
    rounds: list[list[Trial]] = []
    while one := found.next_round([trial for each in rounds for trial in each]):
        rounds.append([measured(trial, takes_s, gain) for trial in one])
        clock.now_s += takes_s * len(one)
    return rounds


@pytest.mark.parametrize(
    ("left_s", "most"), [(1.0, 1), (7.5 * 2.9, 1), (7.5 * 3.1, 2), (7.5 * 4.1, 3), (7.5 * 6.9, 5), (1e6, 6)]
)
def test_as_many_are_tried_at_once_as_four_fifths_of_the_time_have_three_rounds_for(
    clock: Clock, left_s: float, most: int
) -> None:
    """Three trials take six seconds: so many for each candidate, and for the unchanged configuration."""
    assert len(verifier(clock, left_s)._selection.candidates) == most


def on_gpu(start_s: float, *, compiled: bool = False) -> tuple[Plan, list[Trial]]:
    """A plan for trials that start CUDA, and a sweep in which that took so long."""
    plan = plan_of(suite(consumer={"kind": "model", "compile": compiled}), "model", accelerator=True)
    beside_s = plan.verify_trial_s - plan.verify_steady_s - plan.start_s
    sweep = [planned(f"r{number}-c01", PRESENT, number) for number in range(1, 4)]
    return plan, [replace(trial_of(one), duration_s=start_s + beside_s + 3.0, steady_s=3.0) for one in sweep]


@pytest.mark.parametrize("start_s", [1.0, 3.0, 6.0])
def test_where_trials_start_cuda_as_many_fixes_are_tried_as_on_a_cpu(clock: Clock, start_s: float) -> None:
    plan, sweep = on_gpu(start_s)
    began_s = clock.now_s
    clock.now_s += plan.trials * (plan.trial_s - plan.start_s + start_s)  # the sweep
    until = until_s(plan, PRESENT, sweep, began_s)
    found = Verifier(plan, PRESENT, lambda _: MANY, lambda _: [], until_s=until, sweep=sweep)
    cpu = Verifier(made := plan_of(suite()), PRESENT, lambda _: MANY, lambda _: [], until_s=clock.now_s + made.verify_s)
    assert len(found._selection.candidates) == len(cpu._selection.candidates) == 6


def test_a_start_that_takes_minutes_does_not_make_a_run_of_an_hour(clock: Clock) -> None:
    plan, sweep = on_gpu(60.0)
    assert until_s(plan, PRESENT, sweep, clock.now_s) - clock.now_s == MOST_VERIFY_S
    assert on_gpu(3.0, compiled=True)[0].start_s == DEVICE_START_S + COMPILE_S


def test_a_trial_takes_as_long_for_its_start_as_in_the_sweep() -> None:
    def expected(*sweep: Trial) -> float:
        return verifying._expected_s(PLAN, PRESENT, sweep)

    one = trial_of(planned("r1-c01", PRESENT))
    assert expected() == 2.0
    assert expected(replace(one, duration_s=9.0, steady_s=3.0), replace(one, duration_s=7.0, steady_s=3.0)) == 6.0
    assert expected(replace(one, duration_s=1.5, steady_s=1.0)) == 2.0
    assert expected(replace(one, duration_s=99.0, config={"num_workers": 0})) == 2.0
    assert expected(replace(one, duration_s=None), replace(one, steady_s=None)) == 2.0


def test_no_step_begins_that_would_pass_four_fifths_of_the_time_and_the_result_is_compared_in_the_rest(
    clock: Clock,
) -> None:
    """Three remedies take 24 seconds, and ten a round together, where they are compared with the baseline too."""
    began_s = clock.now_s
    rounds = run(found := verifier(clock, 100.0, MANY[:3], strict=True), clock)
    assert clock.now_s - began_s <= 100.0
    result, why = found.result([trial for each in rounds for trial in each])
    assert result is not None
    assert (why, len(result.accepted) >= 1) == ("", True)
    assert sum(trial.config["num_workers"] == 0 for each in rounds for trial in each) == 5


@pytest.mark.parametrize(
    ("left_s", "strict", "accepted", "took_s"),
    [
        (150.0, False, 3, 62.0),
        (60.0, False, 3, 54.0),
        (52.0, False, 3, 54.0),
        (60.0, True, 3, 54.0),
        (52.0, True, 1, 44.0),
    ],
)
def test_a_combination_may_take_half_as_long_again_unless_the_time_is_strict(
    clock: Clock, left_s: float, strict: bool, accepted: int, took_s: float
) -> None:
    """Three alone take 24 seconds; together they take ten a round, for three rounds."""
    began_s = clock.now_s
    rounds = run(found := verifier(clock, left_s, MANY[:3], strict=strict), clock)
    result, _ = found.result([trial for each in rounds for trial in each])
    assert result is not None
    assert (len(result.accepted), clock.now_s - began_s) == (accepted, took_s)


def test_a_strict_time_is_never_passed_and_another_is_for_the_comparison(clock: Clock) -> None:
    for strict, compared in ((True, 0), (False, 3)):
        began_s = clock.now_s
        rounds = run(verifier(clock, 24.0, MANY[:1], strict=strict), clock, takes_s=2.3)
        assert sum(trial.config["num_workers"] == 0 for each in rounds for trial in each) == compared
        assert (clock.now_s - began_s <= 24.0) == strict


def test_pixels_are_compared_of_the_whole_and_of_each_against_what_it_was_tried_on(clock: Clock) -> None:
    asked: list[tuple[Config, Config]] = []

    def compare(pairs: Sequence[tuple[Config, Config]]) -> list[PixelChange]:
        asked.extend(pairs)
        return [IDENTICAL, *(PixelChange(float(number)) for number in range(1, len(pairs)))]

    rounds = run(found := verifier(clock, 1e4, MANY[:2], compare_pixels=compare), clock)
    result, _ = found.result([trial for each in rounds for trial in each])
    assert result is not None
    assert asked[0] == (PLAN.baseline, result.config)
    assert asked[1:] == [(tried.against, tried.config) for tried in result.tried]
    assert (result.psnr_db, result.not_measured) == (None, {"psnr_db": "identical"})
    assert [tried.psnr_db for tried in result.tried] == [1.0, 2.0, 3.0, 4.0], "two alone, and each without the other"
    assert result.whole is not None
    assert all(tried.judgement is not None for tried in result.tried)


def test_where_it_was_cut_short_nobody_waits_for_pixels_and_the_reason_is_kept(clock: Clock) -> None:
    def compare(_: object) -> list[PixelChange]:
        raise AssertionError("nobody waits for pixels")

    rounds = run(found := verifier(clock, 1e4, MANY[:1], compare_pixels=compare), clock)
    result, _ = found.result([trial for each in rounds for trial in each], "interrupted")
    assert result is not None
    assert (result.ended, result.psnr_db) == ("interrupted", None)
    assert {one.not_measured["psnr_db"] for one in (result, *result.tried)} == {"interrupted"}
    assert verifier(clock, 1e4).result([], "interrupted") == (None, "interrupted")
    assert verifier(clock, 1e4, []).result([]) == (None, CALLS_FOR_NONE)


class Slicing:
    """Measures a round at once, and sends a signal in one of them."""

    signal_in: int | None = None
    rounds = 0
    on_device: ClassVar[set[bool]] = set()

    def __init__(self, measure: FakeMeasuring, is_alone: Callable[[PlannedTrial], bool]) -> None:
        self._measure, self._is_alone = measure, is_alone
        Slicing.on_device = set()

    def run(self, round_: Sequence[PlannedTrial], started: Any, keep: Any) -> None:
        Slicing.rounds += 1
        for one in round_:
            started(one)
            Slicing.on_device.add(self._is_alone(one))
            if Slicing.rounds == Slicing.signal_in:
                raise Terminated
            keep(self._measure(one))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Any:
    Slicing.rounds, Slicing.signal_in = 0, None
    monkeypatch.setattr(verifying, "SlicedRounds", Slicing)
    monkeypatch.setattr(verifying, "put_off_signals", lambda _: None)
    monkeypatch.setattr(
        verifying, "candidates", lambda _, config: [one for one in MANY[:1] if not one.change.items() <= config.items()]
    )
    measuring = FakeMeasuring(lambda one: measured(one).samples_per_s)
    measuring.pixel_changes = lambda pairs: [IDENTICAL] * len(pairs)  # type: ignore[attr-defined]
    return session_of(measuring, notes=Notes())


def test_a_session_tries_remedies_and_keeps_their_trials(session: Any) -> None:
    try_remedies(session, PRESENT)
    found = session.found
    assert [tried.id for tried in found.verification.accepted] == ["c0"]
    assert (session.step, found.left_out) == ("remedies", {})
    assert len(found.of("remedy")) == 10 + 10
    assert Slicing.on_device == {False}
    notes = session.listener
    assert [name for name, _ in notes.started] == [name for name, _ in notes.ended]
    assert notes.ended[0][1].left_s == session.plan.verify_s


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"why_partial": "a budget"}, "incomplete sweep: a budget"),
        ({"verify": False}, NO_VERIFY),
        ({"subject": None}, "nothing was measured"),
    ],
)
def test_where_no_remedy_is_tried_the_reason_is_kept(session: Any, changed: dict[str, Any], why: str) -> None:
    session.found.why_partial = changed.get("why_partial")
    session.conditions.loaded.suite = suite(measure={"verify": changed.get("verify", True)})
    try_remedies(session, changed.get("subject", PRESENT))
    assert session.found.left_out == {"verification": why}
    assert (session.found.verification, session.found.trials) == (None, [])


def test_a_budget_without_time_tries_nothing_and_says_so(session: Any, clock: Clock) -> None:
    session.deadline_s, session.budget_s = clock.now_s, 60.0
    try_remedies(session, PRESENT)
    assert session.found.trials == []
    assert "time" in session.found.left_out["verification"]


def test_a_signal_keeps_what_was_tried_and_goes_on_to_end_the_run(session: Any) -> None:
    Slicing.signal_in = 6
    with pytest.raises(Terminated):
        try_remedies(session, PRESENT)
    assert session.found.verification.ended == "interrupted"
    assert [tried.id for tried in session.found.verification.accepted] == ["c0"]
    assert len(session.found.of("remedy")) == 10


@pytest.mark.parametrize(("strict", "compared"), [(True, False), (False, True)])
def test_a_budget_forbids_a_comparison_for_which_no_time_is_left(
    session: Any, clock: Clock, strict: bool, compared: bool
) -> None:
    until_s = clock.now_s + 60.0
    session.deadline_s, session.budget_s = until_s, 60.0 if strict else None
    measure = session.measuring

    def slow(one: PlannedTrial) -> Any:
        clock.now_s = until_s if len(measure.asked) == 9 else clock.now_s
        return FakeMeasuring.__call__(measure, one)

    others = {name: staticmethod(getattr(measure, name)) for name in ("pixel_changes", "write_copies")}
    session.measuring = type("Slow", (), {"__call__": lambda _, one: slow(one), **others})()
    try_remedies(session, PRESENT)
    assert [tried.id for tried in session.found.verification.accepted] == ["c0"]
    assert any(trial.config["num_workers"] == 0 for trial in session.found.of("remedy")) == compared


def test_a_signal_before_anything_was_tried_leaves_the_reason(session: Any) -> None:
    Slicing.signal_in = 1
    with pytest.raises(Terminated):
        try_remedies(session, PRESENT)
    assert (session.found.verification, session.found.left_out) == (None, {"verification": "interrupted"})


@pytest.mark.parametrize(
    ("consumer", "loader", "on_device"),
    [("model", {}, True), ("target", {}, True), ("none", {}, False), ("none", {"pin_memory": True}, True)],
)
def test_trials_use_a_gpu_where_there_is_one_and_they_train_on_it_or_pin_memory(
    session: Any, consumer: str, loader: dict[str, Any], on_device: bool
) -> None:
    session.conditions.consumer, session.conditions.loaded.suite = consumer, suite(loader=loader)
    session.conditions.accelerator = True
    try_remedies(session, PRESENT)
    assert Slicing.on_device == {on_device}
    session.found.trials.clear()
    session.conditions.accelerator = False
    try_remedies(session, PRESENT)
    assert Slicing.on_device == {False}


def test_as_many_fixes_are_tried_where_trials_start_cuda_as_on_a_machine_without(clock: Clock) -> None:
    def tried(accelerator: bool) -> int:
        found = verifying.Verifier(
            plan := plan_of(suite(), "model", accelerator=accelerator),
            PRESENT,
            lambda _: MANY,
            lambda pairs: [IDENTICAL] * len(pairs),
            until_s=clock.now_s + plan.verify_s,
        )
        return len(found._selection.candidates)

    assert tried(True) == tried(False) >= 3


def test_candidates_are_put_off_when_trials_take_longer_than_expected_and_the_others_get_all_their_pairs(
    clock: Clock,
) -> None:
    """Four at once are expected to take 50 of 62 seconds; with trials twice as long five rounds would take 100."""
    found = verifier(clock, 62.5, MANY[:4])
    assert len(found._selection.candidates) == 4
    rounds = run(found, clock, takes_s=4.0)
    sizes = [len(one) for one in rounds]
    assert sizes[0] == 5
    assert sizes[1] < 5
    done = [trial for one in rounds for trial in one]
    tried, _ = found.result(done)
    assert tried is not None
    answers = {one.id: one.judgement for one in tried.tried}
    assert any(how and how.pairs >= 5 and how.answer == "gain" for how in answers.values())
    assert any(how and how.pairs < 5 and how.answer == "undecided" for how in answers.values())


def test_the_least_promising_candidate_is_put_off_first(clock: Clock) -> None:
    found = verifier(clock, 62.5, MANY[:4])._selection
    trials = [
        replace(trial_of(one, 100.0 + 10.0 * len(one.config.keys() & {"axis0", "axis2"})), duration_s=4.0)
        for one in found.next_round([])
    ]
    found.keep_what_fits(trials, 4 * 3.0)
    assert {one.id for one in found.candidates} == {"c0", "c2"}
    found.keep_what_fits(trials, 0.0)
    assert len(found.candidates) == 1
    found.finish(trials)
    tried = [(one.id, tuple(one.against.items())) for one in found.tried]
    assert len(set(tried)) == len(tried)


def test_a_candidate_that_failed_is_not_put_off_since_that_saves_no_time(clock: Clock) -> None:
    found = verifier(clock, 62.5, MANY[:3])._selection
    trials = [trial_of(one, None if one.id.endswith("-c0") else 100.0) for one in found.next_round([])]
    found.keep_what_fits(trials, 0.0)
    put_off = {one.id for one in found.tried}
    assert "c0" in {one.id for one in found.candidates}
    assert len(put_off) == 1


@pytest.mark.parametrize(("ran_s", "left_s"), [(0.0, 120.0), (40.0, 120.0), (90.0, 82.5), (160.0, 60.0), (1e4, 60.0)])
def test_a_sweep_that_took_long_leaves_less_time_for_fixes_and_at_least_half(
    clock: Clock, ran_s: float, left_s: float
) -> None:
    """The plan expects 150 s, 120 of them for fixes."""
    plan = replace(PLAN, isolation_runs=0, freed_s=0.0, trial_s=(20.0 - FIRST_CHILD_S) / PLAN.trials)
    plan = replace(plan, freed_s=150.0 - plan.final_s - plan.estimated_s - plan.verify_s)
    assert MOST_OF_PLAN * plan.estimated_with_fixes_s == pytest.approx(172.5)
    began_s, clock.now_s = clock.now_s, clock.now_s + ran_s
    assert until_s(plan, PRESENT, [], began_s) == pytest.approx(clock.now_s + left_s)


@pytest.mark.parametrize(("took_s", "left_s"), [(0.5, 60.0), (1.0, 60.0), (1.5, 90.0), (4.0, 120.0)])
def test_longer_trials_leave_more_time_for_fixes_as_the_run_has_it_or_half_of_that(
    clock: Clock, took_s: float, left_s: float
) -> None:
    """The plan expects 150 s, 60 of them for fixes; 60 s have passed. `took_s` is relative to the planned trial."""
    plan = replace(PLAN, isolation_runs=0, freed_s=0.0, verify_s=60.0, trial_s=(20.0 - FIRST_CHILD_S) / PLAN.trials)
    plan = replace(plan, freed_s=150.0 - plan.final_s - plan.estimated_s - plan.verify_s)
    freed = [replace(measured(planned("x", PRESENT, 1)), role="freed", duration_s=took_s * FREED_TRIAL_S)]
    began_s, clock.now_s = clock.now_s, clock.now_s + 60.0
    assert until_s(plan, PRESENT, [], began_s, freed) == pytest.approx(clock.now_s + left_s)
