"""Whether a changed rate meets the demand, and whether the demand capped its gain."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sweeps import TODAY

from loaderbench.consumers import NOTHING
from loaderbench.records import Gain, Interval, Recommendation, Trial
from loaderbench.remedies.findings import Findings
from loaderbench.remedies.verified import with_target

DEMAND = 1_000.0


def told(after: Interval, consumer: str | None) -> Recommendation:
    trial = Trial(role="sweep", id="r1", config=TODAY, round=1, status="completed", samples_per_s=after.est)
    gain = Gain("samples_per_s", 2.0, 1.9, 2.1)
    advice = Recommendation(
        id="x", title="X", change={}, basis="measured", gain=gain, status="open", after=after, trials=("r1",)
    )
    findings = Findings([], [replace(trial, consumer=consumer)], None, TODAY, {}, False, demand_of=lambda _: DEMAND)
    return with_target(advice, findings)


@pytest.mark.parametrize("consumer", [NOTHING, None])
@pytest.mark.parametrize(
    ("after", "met"),
    [
        (Interval(1_010.0, 1_000.0, 1_020.0), True),
        (Interval(1_005.0, 999.0, 1_011.0), False),
        (Interval(993.0, 984.0, 1_002.0), False),
        (Interval(970.0, None, None), False),
        (Interval(1_000.0, None, None), True),
    ],
)
def test_the_target_is_met_only_if_the_whole_interval_reaches_it_for_every_consumer(
    after: Interval, met: bool, consumer: str | None
) -> None:
    assert told(after, consumer).meets_target is met


@pytest.mark.parametrize(
    ("rate", "consumer", "is_floor"), [(975, None, True), (960, None, False), (975, NOTHING, False)]
)
def test_a_gain_is_a_floor_if_a_consumer_capped_its_rate(rate: float, consumer: str | None, is_floor: bool) -> None:
    gain = told(Interval(rate, rate - 5, rate + 5), consumer).gain
    assert gain is not None
    assert gain.is_floor is is_floor


def test_nothing_is_said_without_a_demand_or_a_rate() -> None:
    findings = Findings([], [], None, TODAY, {}, False)
    advice = Recommendation(id="x", title="X", change={}, basis=None, gain=None, status="open")
    assert with_target(advice, findings) == advice


def test_the_target_is_that_of_the_changed_configuration() -> None:
    """A step that takes a fixed time per batch takes larger batches at a higher rate."""
    advice = replace(told(Interval(800.0, 790.0, 810.0), None), change={"batch_size": 32})
    findings = Findings([], [], None, TODAY, {}, False, demand_of=lambda config: 24.0 * int(config["batch_size"] or 0))
    assert with_target(advice, findings).meets_target is True
    assert with_target(replace(advice, change={"batch_size": 64}), findings).meets_target is False
