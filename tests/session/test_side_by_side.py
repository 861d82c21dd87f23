"""Pairs of two versions: in which order, how many, and when they end."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from fakes import Clock, FakeMeasuring, session_of, suite

from loaderbench.errors import UsageError
from loaderbench.records import Config, PlannedTrial, SideBySide, Version
from loaderbench.session import session as session_module, side_by_side, time_left
from loaderbench.session.listener import Listener
from loaderbench.session.side_by_side import MOST_CONFIGS, Pairs, TwoVersions, _configs
from loaderbench.statistics.gates import parse_gate
from loaderbench.statistics.sequential import planned_looks
from loaderbench.statistics.sides import pairs_used_up

VERSIONS = (
    Version(side="before", name="main", suite_file="s.yaml"),
    Version(side="after", name="working tree", suite_file="s.yaml"),
)
TWO: Config = {"num_workers": 2}
PAIR_S = 4.0

Rate = Callable[[PlannedTrial], float | None]


def noisy(after: float, noise: float = 0.02) -> Rate:
    """The later version has this part of the other's rate, on a machine that drifts."""

    def rate(one: PlannedTrial) -> float:
        machine = 100 * (1 + 0.1 * (one.round % 4))
        return machine if one.side == "before" else machine * after * (1 + noise * (one.round % 3 - 1))

    return rate


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[SideBySide, list[PlannedTrial]]]:
    """Measures pairs that take four seconds, on a clock that only they advance."""

    def run(
        rate: Rate,
        *gates: str,
        budget_s: float = 180.0,
        configs: tuple[Config, ...] = (TWO,),
        takes_s: Callable[[PlannedTrial], float] = lambda _: PAIR_S / 2,
    ) -> tuple[SideBySide, list[PlannedTrial]]:
        clock = Clock()
        for module in (side_by_side, session_module, time_left):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock))

        def timed(one: PlannedTrial) -> float | None:
            clock.now_s += takes_s(one)
            return rate(one)

        measuring = FakeMeasuring(timed, clock)
        session: Any = session_of(measuring, suite())
        session.found.side_by_side = SideBySide(
            versions=VERSIONS,
            configs=configs,
            gates=tuple(parse_gate(gate, "--fail-if") for gate in gates),
            looks=(),
            budget_s=budget_s,
            ended="",
        )
        measuring.is_alone = lambda _: True  # type: ignore[attr-defined]
        pairs = Pairs(session, measuring, budget_s, alone=True)  # type: ignore[arg-type]
        pairs.run()
        pairs.end()
        return session.found.side_by_side, measuring.asked

    return run


Measured = Callable[..., tuple[SideBySide, list[PlannedTrial]]]


def test_the_order_is_reversed_in_every_other_round(measured: Measured) -> None:
    _, asked = measured(noisy(1.0), "samples_per_s:-10%")
    assert [one.side for one in asked[:6]] == ["before", "after", "after", "before", "before", "after"]
    assert len({one.id for one in asked}) == len(asked)


@pytest.mark.parametrize(("after", "gate"), [(1.0, "samples_per_s:-10%"), (0.8, "samples_per_s:-10%")])
def test_it_ends_at_the_first_look_that_decides(measured: Measured, after: float, gate: str) -> None:
    found, asked = measured(noisy(after), gate)
    assert found.ended == "decided"
    assert len(asked) == 2 * found.looks[0] == 10
    assert found.looks[-1] == 45, "as many as the budget allows"


def test_an_undecided_comparison_continues_until_the_budget_ends(measured: Measured) -> None:
    found, asked = measured(noisy(0.9, 0.1), "samples_per_s:-10%", budget_s=60)
    assert found.ended == "the budget of 60 s was used up"
    assert len(asked) * PAIR_S / 2 == 60


def test_without_a_gate_it_ends_when_the_change_is_known(measured: Measured) -> None:
    assert len(measured(noisy(0.8))[1]) == 10
    assert measured(noisy(1.0, 0.3), budget_s=40)[0].ended.startswith("the budget")


def test_a_budget_for_few_pairs_still_compares_them(measured: Measured) -> None:
    found, asked = measured(noisy(0.5), "samples_per_s:-10%", budget_s=13)
    assert len(asked) == 6
    assert found.looks == (3,)


def test_only_what_is_undecided_is_measured_further(measured: Measured) -> None:
    four: Config = {"num_workers": 4}

    def rate(one: PlannedTrial) -> float | None:
        return noisy(1.0)(one) if one.config == TWO else noisy(0.95, 0.15)(one)

    found, asked = measured(rate, "samples_per_s:-10%", configs=(TWO, four), budget_s=100)
    counts = [sum(one.config == config for one in asked) for config in (TWO, four)]
    assert counts[0] < counts[1]
    assert found.ended.startswith("the budget")


def test_a_configuration_that_is_left_alone_has_checks_until_the_budget_ends(measured: Measured) -> None:
    four: Config = {"num_workers": 4}

    def rate(one: PlannedTrial) -> float | None:
        return noisy(1.0)(one) if one.config == TWO else noisy(0.95, 0.15)(one)

    found, asked = measured(rate, "samples_per_s:-10%", configs=(TWO, four), budget_s=180)
    alone = sum(one.config == four for one in asked) // 2
    assert found.ended == "the budget of 180 s was used up"
    assert sum(one.config == TWO for one in asked) == 10, "decided at the first check"
    assert found.looks[-1] == alone == 40
    assert found.looks == planned_looks(40)


def test_no_configuration_is_compared_at_more_checks_than_planned(measured: Measured) -> None:
    """Pairs that take half as long from the sixth round on would be twice as many."""

    def takes_s(one: PlannedTrial) -> float:
        return PAIR_S / (2 if one.round < 6 else 4)

    found, asked = measured(noisy(0.9, 0.1), "samples_per_s:-10%", budget_s=60, takes_s=takes_s)
    assert found.looks[-1] == 15
    assert max(one.round for one in asked) == 15
    assert found.ended == pairs_used_up(found.looks)


def test_a_gate_that_fails_at_a_later_check_is_a_decision(measured: Measured) -> None:
    four: Config = {"num_workers": 4}

    def rate(one: PlannedTrial) -> float:
        return noisy(1.0)(one) if one.config == TWO else noisy(0.85, 0.03)(one)

    found, _ = measured(rate, "samples_per_s:-10%", configs=(TWO, four), budget_s=180)
    assert found.ended == "decided"


def test_a_version_that_crashes_now_and_then_is_measured_until_the_budget_ends(measured: Measured) -> None:
    def rate(one: PlannedTrial) -> float | None:
        return None if one.side == "after" and one.round % 9 == 2 else noisy(1.0)(one)

    found, asked = measured(rate, "samples_per_s:-10%", budget_s=60)
    assert found.ended == "the budget of 60 s was used up"
    assert len(asked) == 30


def test_a_version_that_crashes_often_fails_the_gate_before_the_budget_ends(measured: Measured) -> None:
    def rate(one: PlannedTrial) -> float | None:
        return None if one.side == "after" and one.round % 2 else noisy(1.0)(one)

    found, asked = measured(rate, "samples_per_s:-10%")
    assert found.ended == "decided"
    assert len(asked) < 60


def test_a_version_that_always_fails_is_not_tried_for_long(measured: Measured) -> None:
    found, asked = measured(lambda one: None if one.side == "after" else 100.0, "samples_per_s:-10%")
    assert len(asked) == 4
    assert found.ended == "every trial of a version failed, with num_workers=2"


@pytest.mark.parametrize("sides", [("after",), ("before", "after")])
def test_a_config_that_fails_does_not_end_the_measuring_of_the_others(
    measured: Measured, sides: tuple[str, ...]
) -> None:
    four: Config = {"num_workers": 4}

    def rate(one: PlannedTrial) -> float | None:
        return None if one.config == four and one.side in sides else noisy(1.0)(one)

    found, asked = measured(rate, "samples_per_s:-10%", configs=(TWO, four))
    counts = [sum(one.config == config for one in asked) for config in (TWO, four)]
    assert counts == [10, 4]
    assert found.ended == "decided"


@pytest.mark.parametrize("compares_rates", [True, False])
def test_trials_of_both_versions_are_ordered_without_a_demand_unless_a_gate_needs_it(
    monkeypatch: pytest.MonkeyPatch, compares_rates: bool
) -> None:
    made: list[bool] = []
    monkeypatch.setattr(side_by_side, "TrialRunner", lambda *_: None)
    monkeypatch.setattr(side_by_side, "TrialMeasurer", lambda *_, **options: made.append(options["compares_rates"]))
    one = SimpleNamespace(environment=None, loaded=None, inputs=None, consumer="model")
    nothing: Any = None
    conditions: Any = {"before": one, "after": one}
    servers: Any = {"before": None, "after": None}
    TwoVersions(conditions, servers, nothing, nothing, compares_rates=compares_rates)
    assert made == [compares_rates] * 2


class Warned(Listener):
    """Notes warnings."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def warned(self, why: str) -> None:
        self.said.append(why)


def plans(before: list[Config], after: list[Config]) -> Any:
    """Conditions with these configurations."""
    return {
        side: SimpleNamespace(plan=SimpleNamespace(configurations=tuple(found), baseline=found[-1]))
        for side, found in (("before", before), ("after", after))
    }


def test_few_configurations_are_all_compared_and_of_many_the_baseline() -> None:
    listener = Warned()
    few = [{"num_workers": n} for n in range(MOST_CONFIGS)]
    assert _configs(plans(few, few[1:]), listener) == tuple(few[1:])
    assert not listener.said
    many = [{"num_workers": n} for n in range(MOST_CONFIGS + 1)]
    assert _configs(plans(many, many), listener) == (many[-1],)
    assert "1 of 5 configs" in listener.said[0]
    with pytest.raises(UsageError, match=r"no config is in both suites .* -P num_workers=2"):
        _configs(plans(few, [{"num_workers": 99}]), listener)
