"""What a fix takes from the training step is known from rates and waits, and told only if it is certain."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.records import TimeSlices, Trial
from loaderbench.remedies.verified import longer_step

BEFORE, AFTER = {"decoder": "pillow"}, {"decoder": "device"}


def trial(config: dict[str, str], number: int, rate: float, wait: float, consumer: str = "model") -> Trial:
    return Trial(
        id=f"{config['decoder']}{number}", role="remedy", config=config, round=number, status="completed",
        consumer=consumer, samples_per_s=rate, data_wait_share=wait,
    )  # type: ignore[arg-type] # fmt: skip


def pairs(after_wait: float, consumer: str = "model") -> list[Trial]:
    """Before: 1,000 samples/s with half of the time waiting, a step of 0.5 ms. After: 1,200 samples/s."""
    waits = [after_wait - 0.005, after_wait, after_wait + 0.005]
    before = [trial(BEFORE, number, 1_000 + number, 0.5, consumer) for number in range(3)]
    return before + [trial(AFTER, number, 1_200 + number, waits[number], consumer) for number in range(3)]


def test_a_step_that_decodes_is_longer_and_by_how_much_is_known() -> None:
    (said,) = longer_step(BEFORE, AFTER, pairs(0.28))
    assert said.startswith("Training step is 1.20\N{MULTIPLICATION SIGN} ("), "0.6 ms and 0.5 ms"


@pytest.mark.parametrize("wait", [0.4, 0.5])
def test_a_step_that_is_as_long_or_shorter_costs_nothing(wait: float) -> None:
    assert list(longer_step(BEFORE, AFTER, pairs(wait))) == []


def test_without_a_step_of_its_own_a_trial_knows_none() -> None:
    assert list(longer_step(BEFORE, AFTER, pairs(0.28, "none"))) == []
    assert list(longer_step(BEFORE, AFTER, pairs(0.28, "emulated"))) == []
    sliced = [replace(one, time_slices=TimeSlices(20, 20, 640, 1.0)) for one in pairs(0.28)]
    assert list(longer_step(BEFORE, AFTER, sliced)) == []
