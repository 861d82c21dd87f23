"""The step that makes stages free: which trials, in which order, and what ends it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from fakes import Clock, FakeMeasuring, planned, session_of, suite, trial_of

from loaderbench.plan import FREED_ROUNDS, FREED_S
from loaderbench.records import Config, PlannedTrial, StageCost, Trial, config_label
from loaderbench.session import freeing
from loaderbench.session.freeing import KEEPS_UP, NO_TIME, OWN_LOADER, measure_bottlenecks
from loaderbench.session.session import NO_VERIFY, Session

BEST: Config = {"num_workers": 2}
STAGES = ("decode", "transport", "transform", "collate")
COSTS_S = {"decode": 0.004, "transform": 0.003, "collate": 0.001}


@pytest.fixture(autouse=True)
def verdict(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the sweep is said to show."""
    found = SimpleNamespace(bound="input")
    monkeypatch.setattr(freeing, "conclude", lambda _: SimpleNamespace(verdict=found))
    return found


def session(clock: Clock, takes_s: float = 1.0, failing: str | None = None, **measure: object) -> Session:
    """After a sweep that has timed the stages of its best configuration."""

    def rate(one: PlannedTrial) -> float | None:
        return None if failing is not None and one.freed == failing else 100.0

    made = session_of(FakeMeasuring(rate, clock, takes_s), suite(measure=measure))
    costs = {name: StageCost(cpu_s=found_s, wall_s=found_s) for name, found_s in COSTS_S.items()}
    made.found.trials += [
        trial_of(planned(f"r{number}-{workers}", {"num_workers": workers}, number), stages=costs)
        for number in (1, 2)
        for workers in (1, 2)
    ]
    return made


MORE = "num_workers=3"
"""The worker count that the sweep lacks."""


def rounds(made: Session) -> dict[int, list[str | None]]:
    """The free stages, or other workers, by round and in their order; `None` is the unchanged loader."""
    found: dict[int, list[str | None]] = {}
    for trial in made.found.of("freed"):
        asked = next(one for one in made.measuring.asked if one.id == trial.id)  # type: ignore[attr-defined]
        found.setdefault(trial.round, []).append(asked.freed if asked.config == BEST else config_label(asked.config))
    return found


def test_a_round_has_the_unchanged_loader_and_each_stage_once_in_an_order_of_its_own(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock)
    began_s = unsliced_clock.now_s
    measure_bottlenecks(made, BEST)
    found = rounds(made)
    assert len(found) == FREED_ROUNDS, "equal rates in all rounds leave nothing to know"
    assert all(sorted(map(str, order)) == sorted(map(str, (None, MORE, *STAGES))) for order in found.values())
    assert len({tuple(order) for order in found.values()}) > 1
    assert unsliced_clock.now_s - began_s <= FREED_S
    assert made.step == "freed"


def test_gains_that_vary_get_two_more_rounds(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock)
    made.measuring.rate = lambda one: 100.0 + (40.0 * (one.round % 2) if one.freed == "decode" else 0.0)  # type: ignore[attr-defined]
    measure_bottlenecks(made, BEST)
    assert len(rounds(made)) == freeing.MOST_ROUNDS


def test_trials_that_are_too_long_for_all_stages_leave_out_the_least_promising(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock, takes_s=3.0)
    made.found.trials = [replace(swept, duration_s=5.0) for swept in made.found.trials]
    measure_bottlenecks(made, BEST)
    assert "decode" in rounds(made)[1]
    assert "collate" not in rounds(made)[1]
    assert made.found.left_out["bottlenecks.collate"] == NO_TIME


def test_a_stage_that_fails_is_not_tried_again_and_an_unchanged_loader_that_fails_ends_it(
    unsliced_clock: Clock,
) -> None:
    made = session(unsliced_clock, failing="decode")
    measure_bottlenecks(made, BEST)
    assert [order.count("decode") for order in rounds(made).values()] == [1, *[0] * (len(rounds(made)) - 1)]
    broken = session(unsliced_clock)
    broken.measuring.rate = lambda one: 100.0 if one.freed else None  # type: ignore[attr-defined]
    measure_bottlenecks(broken, BEST)
    assert list(rounds(broken)) == [1]


def test_workers_that_fail_are_not_tried_again_and_the_stages_are(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock)
    made.measuring.rate = lambda one: 100.0 if one.config == BEST else None  # type: ignore[attr-defined]
    measure_bottlenecks(made, BEST)
    first, *later = rounds(made).values()
    assert MORE in first
    assert len(later) == FREED_ROUNDS - 1
    assert all(sorted(map(str, order)) == sorted(map(str, (None, *STAGES))) for order in later)


def test_gains_of_other_workers_that_vary_get_more_rounds(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock)
    made.measuring.rate = lambda one: 100.0 + (40.0 * (one.round % 2) if one.config != BEST else 0.0)  # type: ignore[attr-defined]
    measure_bottlenecks(made, BEST)
    assert len(rounds(made)) > FREED_ROUNDS


def test_a_budget_leaves_most_of_its_rest_to_fixes(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock, budget=50.0)
    began_s = unsliced_clock.now_s
    measure_bottlenecks(made, BEST)
    assert 0 < unsliced_clock.now_s - began_s <= freeing.BUDGET_SHARE * 50.0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"verify": False}, NO_VERIFY),
        ({"bound": "compute"}, KEEPS_UP),
        ({"partial": "interrupted"}, "incomplete sweep: interrupted"),
        ({"subject": None}, "nothing was measured"),
        ({"own_loader": True}, OWN_LOADER),
    ],
)
def test_where_nothing_is_made_free_the_reason_is_kept(
    unsliced_clock: Clock,
    verdict: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    change: dict[str, object],
    why: str,
) -> None:
    made = session(unsliced_clock, verify=change.get("verify", True))
    if "own_loader" in change:
        monkeypatch.setattr(type(made.conditions.loaded.suite.dataset), "is_of_script", True)
    verdict.bound = change.get("bound", "input")
    made.found.why_partial = change.get("partial")  # type: ignore[assignment]
    subject = None if "subject" in change else BEST
    measure_bottlenecks(made, subject)
    assert (made.found.of("freed"), made.found.left_out["bottlenecks"]) == ([], why)


def test_a_signal_keeps_what_was_measured(unsliced_clock: Clock) -> None:
    made = session(unsliced_clock)

    def interrupted(one: PlannedTrial) -> float:
        if len(made.found.of("freed")) == 3:
            raise KeyboardInterrupt
        return 100.0

    made.measuring.rate = interrupted  # type: ignore[attr-defined]
    with pytest.raises(KeyboardInterrupt):
        measure_bottlenecks(made, BEST)
    kept: list[Trial] = made.found.of("freed")
    assert len(kept) == 3
