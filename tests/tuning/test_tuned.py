"""What a run over a script's loader says about its arguments, from a saved run with other rates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from loaderbench.records import Config, Failure, Interval, MachineUse, RunRecord
from loaderbench.store import read_run
from loaderbench.tuning.tuned import AS_FAST, NO_DECISION, Tuned, tuned_by

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


def test_one_with_too_few_rounds_to_win_may_be_faster(example: RunRecord) -> None:
    run = tied(example, 157)
    base, other = run.configurations
    found = tuned_by(replace(run, configurations=(base, replace(other, tied_with_best=False))), {}, Path())
    assert not found.is_decided
    assert "may be faster" in found.why_none


def test_failures_are_named_where_nothing_could_be_compared(example: RunRecord) -> None:
    failed = [
        replace(trial, status="failed", failure=Failure("error", "ValueError: planted\nmore", ""))
        for trial in example.sweep
    ]
    run = replace(tied(example, 157), best=None, trials=tuple(failed))
    assert tuned_by(run, {}, Path()).why_none == f"{NO_DECISION}; {len(failed)} trials failed: ValueError: planted"


def test_cpus_that_other_programs_used_are_told_where_they_were_missing(example: RunRecord) -> None:
    use = MachineUse(cpus=2, own_cpus=0.6, busy_cpus=1.9, throttled_share=0.0)
    sweep = tuple(replace(trial, machine=use) for trial in example.sweep)
    run = replace(tied(example, 60), trials=sweep)
    beside = replace(run, verdict=replace(run.verdict, limit="neighbors"))
    found = tuned_by(beside, {}, Path())
    assert (found.others_cpus, found.is_decided, found.holds_later) == (pytest.approx(1.3), True, False)
    alone = tuned_by(replace(run, verdict=replace(run.verdict, limit="cpu")), {}, Path())
    assert (alone.others_cpus, alone.holds_later) == (None, True)


def test_without_workers_what_needs_them_is_left_out() -> None:
    present: Config = {"num_workers": 4, "prefetch_factor": 4, "persistent_workers": True}
    found = Tuned(present=present, arguments={"num_workers": 0})
    assert found.changed == {"num_workers": 0, "prefetch_factor": None, "persistent_workers": False}
