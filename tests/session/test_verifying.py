"""What is tried ends in time; what was kept is compared with the baseline all the same, unless a budget forbids it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from loaderbench.plan import make_plan
from loaderbench.records import IDENTICAL, Candidate, Config, Trial
from loaderbench.session.verifying import CALLS_FOR_NONE, Verifier
from loaderbench.suite import load_suite

PRESENT: Config = {"num_workers": 2}
UINT8 = Candidate("uint8_transport", {"normalize": "device"}, 1.3)


def verifier(tmp_path: Path, left_s: float, *, strict: bool, called_for: bool = True) -> Verifier:
    (tmp_path / "s.yaml").write_text("sweep: {num_workers: [0, 2]}\nmeasure: {seconds: 0.1}\n")
    plan = make_plan(load_suite(tmp_path / "s.yaml").suite, cpus_allotted=2, accelerator=False)
    wanted = [UINT8] if called_for else []
    return Verifier(
        plan,
        PRESENT,
        lambda config: [] if "normalize" in config else wanted,
        lambda pairs: [IDENTICAL] * len(pairs),
        until_s=time.monotonic() + left_s,
        strict=strict,
    )


def run(found: Verifier, *, takes_s: float) -> list[Trial]:
    """Run the verifier on fake trials and return them; after ten it expects each to take `takes_s`."""
    trials: list[Trial] = []
    while planned := found.next_round(trials):
        for one in planned:
            rate = 100.0 * (1.3 if "normalize" in one.config else 1.0) * (1 + one.config["num_workers"])  # type: ignore[operator]
            done = Trial(
                role="remedy", id=one.id, config=one.config, round=one.round, status="completed", samples_per_s=rate
            )
            trials.append(done)
        if len(trials) >= 10:  # from here on a trial may be too long for the time left
            found._expected_s = takes_s
    return trials


@pytest.mark.parametrize(("strict", "compared"), [(False, 3), (True, 0)])
def test_out_of_time_the_result_is_compared_unless_a_budget_forbids_it(
    tmp_path: Path, strict: bool, compared: int
) -> None:
    found = verifier(tmp_path, 60, strict=strict)
    trials = run(found, takes_s=1000)
    result, _ = found.result(trials)
    assert result is not None
    assert [tried.id for tried in result.accepted] == ["uint8_transport"]
    assert sum(trial.config["num_workers"] == 0 for trial in trials) == compared


def test_with_time_enough_it_ends_when_no_cause_is_left(tmp_path: Path) -> None:
    found = verifier(tmp_path, 600, strict=False)
    trials = run(found, takes_s=0.1)
    result, _ = found.result(trials)
    assert result is not None
    assert "no more fixes" in result.ended


def test_without_time_nothing_is_tried_and_the_reason_is_the_time(tmp_path: Path) -> None:
    found = verifier(tmp_path, 0, strict=True)
    trials = run(found, takes_s=1)
    assert found.result(trials) == (None, "time for fixes used up")


def test_without_a_remedy_nothing_is_tried_and_the_reason_is_the_cause(tmp_path: Path) -> None:
    found = verifier(tmp_path, 600, strict=False, called_for=False)
    trials = run(found, takes_s=1)
    assert found.result(trials) == (None, CALLS_FOR_NONE)
