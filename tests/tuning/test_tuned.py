"""What a run over a script's loader says about its arguments, from a saved run with other rates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loaderbench.records import Interval, RunRecord
from loaderbench.store import read_run
from loaderbench.tuning.tuned import AS_FAST, NO_DECISION, tuned_by

EXAMPLE = Path(__file__).parents[2] / "reports" / "examples" / "two-cores"


@pytest.fixture(scope="module")
def example() -> RunRecord:
    return read_run(EXAMPLE)


def tied(run: RunRecord, other: float) -> RunRecord:
    """The baseline at 100 samples/s, another configuration at `other`, and no difference shown."""
    assert run.best is not None
    base = next(one for one in run.configurations if one.config == run.plan.baseline)
    else_ = next(one for one in run.configurations if one.config != run.plan.baseline)
    wide = [
        replace(one, samples_per_s=Interval(rate, 20, 400), tied_with_best=True)
        for one, rate in ((base, 100.0), (else_, other))
    ]
    best = replace(run.best, config=base.config, gain=Interval(1.0, 1.0, 1.0))
    return replace(run, configurations=tuple(wide), best=best, verification=None)


def test_a_difference_hidden_by_noise_is_not_decided(example: RunRecord) -> None:
    run = tied(example, 157)
    found = tuned_by(run, {"num_workers": 0}, Path())
    assert not found.is_decided
    assert found.arguments == {"num_workers": 0}
    assert f"may be faster (+57%), but not beyond the noise of {run.plan.rounds} rounds" in found.why_none
    assert all(f"{axis}={value!r}" in found.why_none for axis, value in run.configurations[1].config.items())


@pytest.mark.parametrize("other", [60, 104])
def test_slower_or_practically_as_fast_is_decided(example: RunRecord, other: float) -> None:
    found = tuned_by(tied(example, other), {"num_workers": 0}, Path())
    assert (found.is_decided, found.why_none) == (True, AS_FAST)


def test_without_a_comparison_nothing_is_decided(example: RunRecord) -> None:
    found = tuned_by(replace(tied(example, 157), best=None), {"num_workers": 0}, Path())
    assert (found.is_decided, found.why_none) == (False, NO_DECISION)
