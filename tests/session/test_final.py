"""The final: who meets, until when, and that a noisy and costlier configuration does not win on its estimate alone."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import pytest
from fakes import Clock, FakeMeasuring, planned, session_of, suite, trial_of

from loaderbench.records import Config, PlannedTrial, TimeSlices, Trial
from loaderbench.session import final
from loaderbench.session.final import (
    MOST_ROUNDS,
    SEPARATED,
    SEPARATED_IN_FINAL,
    TIED,
    TOO_FEW_ROUNDS,
    FinalStep,
    measure_final,
)
from loaderbench.session.session import Session
from loaderbench.session.sweep import measure_sweep
from loaderbench.statistics.choice import choose_best
from loaderbench.statistics.configurations import finalists, summarize
from loaderbench.statistics.intervals import LEVEL
from loaderbench.statistics.sequential import level_at_looks

AXES = {"num_workers": [0, 2, 4, 8]}
NOISE = 0.2


def rate_of(workers: int, one: PlannedTrial) -> float:
    """The same mean for 2, 4 and 8 workers. In the sweep, more workers are noisier; the final has no noise."""
    noise = random.Random(f"{one.id}").gauss(0.0, NOISE * workers / 8) if one.role == "sweep" else 0.0
    return 100.0 if workers == 0 else 500.0 * (1 + noise)


def session(clock: Clock, rate: Any = None, **measure: Any) -> Session:
    found = suite(sweep=AXES, measure={"rounds": 3, "seconds": 3.0, "seed": 3, **measure})
    measuring = FakeMeasuring(rate or (lambda one: rate_of(int(one.config["num_workers"]), one)), clock, takes_s=2.0)
    made = session_of(measuring, found)
    measure_sweep(made)
    assert made.found.why_partial is None
    return made


def finals(made: Session) -> list[Trial]:
    return made.found.of("final")


def test_all_that_the_sweep_did_not_exclude_meet_in_rounds_of_their_own_until_time_is_up(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock)
    began_s = unsliced_clock.now_s
    measure_final(made)
    found = made.found.final
    assert found is not None
    assert {one["num_workers"] for one in found.finalists} == {2, 4, 8}
    assert found.rounds == max(trial.round for trial in finals(made))
    assert unsliced_clock.now_s - began_s <= made.plan.final_s
    assert len({trial.id for trial in finals(made)}) == len(finals(made)) >= 3
    assert made.step == "final"


def test_nothing_is_measured_where_one_configuration_is_clearly_the_best(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock, lambda one: 100.0 + 50 * float(one.config["num_workers"] or 0) + one.round)
    measure_final(made)
    assert (finals(made), made.found.final, made.found.left_out["final"]) == ([], None, SEPARATED)


def test_nothing_is_measured_where_the_best_are_tied_closely(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock, lambda one: 100.0 if one.config["num_workers"] == 0 else 500.0 + one.round)
    measure_final(made)
    assert (finals(made), made.found.left_out["final"]) == ([], TIED)


def test_two_rounds_have_no_finalists_and_an_incomplete_sweep_has_no_final(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock, rounds=2)
    measure_final(made)
    assert made.found.left_out["final"] == TOO_FEW_ROUNDS
    made.found.why_partial = "the budget was used up"
    measure_final(made)
    assert made.found.left_out["final"] == "incomplete sweep: the budget was used up"


def test_a_budget_leaves_half_of_its_rest_to_what_follows(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock, budget=40.0)
    left_s = 40.0 - (unsliced_clock.now_s - 1000.0)
    began_s = unsliced_clock.now_s
    measure_final(made)
    assert unsliced_clock.now_s - began_s <= final.BUDGET_SHARE * left_s


def test_a_signal_keeps_what_was_measured(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock)
    answer = made.measuring.rate  # type: ignore[attr-defined]

    def interrupted(one: PlannedTrial) -> float:
        if one.role == "final" and len(finals(made)) == 2:
            raise KeyboardInterrupt
        return float(answer(one))

    made.measuring.rate = interrupted  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        measure_final(made)
    assert made.found.final is not None
    assert made.found.final.ended == "interrupted"
    assert len(finals(made)) == 2


def test_where_not_all_finalists_entered_only_those_that_did_are_called_slower(unsliced_clock: Clock) -> None:
    def rate(one: PlannedTrial) -> float:
        workers = int(one.config["num_workers"])
        return 200.0 * workers if one.role == "final" else rate_of(workers, one)

    made = session(unsliced_clock, rate, budget=40.0)
    made.measuring.takes_s = 0.3  # type: ignore[attr-defined]
    measure_final(made)
    assert made.found.final is not None
    assert len(made.found.final.finalists) == 2, "of three"
    assert made.found.final.ended == SEPARATED_IN_FINAL


def test_a_difference_that_95_percent_would_find_by_checking_often_takes_further_rounds(unsliced_clock: Clock) -> None:
    """In the third round of the final, the ordinary interval of this ratio excludes 1 for the first time."""
    ratios = {"sweep": (1.10, 0.98, 1.04), "final": (1.05,) * MOST_ROUNDS}

    def rate(one: PlannedTrial) -> float:
        workers = int(one.config["num_workers"])
        return 500.0 * ratios[one.role][one.round - 1] if workers == 8 else {2: 500.0}.get(workers, 100.0)

    made = session(unsliced_clock, rate)
    made.measuring.takes_s = 0.5  # type: ignore[attr-defined]
    measure_final(made)
    trials = [one for one in made.found.of("sweep", "final") if one.role == "sweep" or one.round <= 3]
    eight, two = ({"num_workers": number} for number in (8, 2))
    assert finalists([eight, two], trials) == [eight]
    assert made.found.final is not None
    assert made.found.final.rounds > 3
    assert made.found.final.ended == SEPARATED


def test_a_final_checks_at_a_level_that_holds_for_all_of_its_rounds(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock)
    step = FinalStep(made)
    assert step._level(8) == LEVEL, "to enter"
    step._entered, step._rounds_before, step._rounds = [{"num_workers": 2}, {"num_workers": 4}], 3, 2
    assert step._level(4) == level_at_looks((4, 5, 6, 7)) > LEVEL
    assert step._level(0) == level_at_looks((4, 5))
    assert step._level(1000) == level_at_looks(tuple(range(4, 4 + MOST_ROUNDS)))


SWEEP = {(64, 2): (603.0, 655.0, 696.0), (64, 4): (516.0, 690.0, 945.0)}
"""Seen on a busy machine: four workers were chosen by an estimate of 698 before two, which had 650."""


def chosen(finals: dict[tuple[int, int], tuple[float, ...]]) -> tuple[Config, str]:
    """The best by these rounds of the sweep and of the final."""
    trials: dict[str, list[Trial]] = {"sweep": [], "final": []}
    for role, rates in (("sweep", SWEEP), ("final", finals)):
        for (batch, workers), found in rates.items():
            config: Config = {"batch_size": batch, "num_workers": workers}
            slices = TimeSlices(count=4, batches=40, samples=400, seconds=1.0) if role == "final" else None
            of_it = (planned(f"{role}{n}-{workers}", config, n, role=role) for n in range(1, 1 + len(found)))
            trials[role] += [trial_of(one, rate, time_slices=slices) for one, rate in zip(of_it, found, strict=True)]
    configs = [{"batch_size": batch, "num_workers": workers} for batch, workers in SWEEP]
    found = summarize(configs, trials["sweep"], finals=trials["final"])
    assert [len(one.trials) for one in found] == [3, 3], "a configuration's own rates are those of the sweep"
    best, _ = choose_best(found, configs[0], trials["sweep"], 3, {}, finals=trials["final"])
    assert best is not None
    return best.config, best.why_this_one


def test_a_noisy_and_costlier_configuration_loses_to_one_that_a_final_did_not_separate() -> None:
    without, _ = chosen({})
    config, why = chosen({(64, 2): (640.0,), (64, 4): (660.0,)})
    assert without == {"batch_size": 64, "num_workers": 4}
    assert config == {"batch_size": 64, "num_workers": 2}
    assert "2 configs that further rounds did not separate" in why


def test_one_that_only_the_final_puts_first_is_not_called_the_fastest() -> None:
    """Its printed rate is that of the sweep, below that of another."""
    config, why = chosen({(64, 2): (800.0, 820.0), (64, 4): (640.0, 600.0)})
    assert config == {"batch_size": 64, "num_workers": 2}
    assert why.startswith("Cheapest of 2 configs ")


def test_a_costlier_one_that_the_final_separates_wins() -> None:
    config, why = chosen({(64, 2): (500.0, 510.0, 505.0, 500.0), (64, 4): (700.0, 705.0, 715.0, 700.0)})
    assert config == {"batch_size": 64, "num_workers": 4}
    assert why == "Fastest; all others are significantly slower"


def test_time_left_of_the_final_only_shrinks(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock)
    measure_final(made)
    shown = [progress for _, progress in made.listener.ended]  # type: ignore[attr-defined]
    assert {progress.phase for progress in shown} == {"Sweep", "Final"}
    assert all(later.left_s <= before.left_s for before, later in pairwise(shown))
    assert shown[-1].total is None
