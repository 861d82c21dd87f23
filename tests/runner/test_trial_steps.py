"""A step of the user's own in a trial, and what it receives."""

from __future__ import annotations

from pathlib import Path

import pytest
from target_trials import completed, run, target

from loaderbench.runner import TrialRunner


@pytest.mark.parametrize("name", ["make_step", "step", "slow_step"])
def test_the_user_s_own_step_or_what_makes_one_is_a_consumer(runner: TrialRunner, tmp_path: Path, name: str) -> None:
    args = {"pause_s": 0.01} if name == "slow_step" else {}
    consumer = {"kind": "target", "target": f"lb_runner_targets:{name}", "args": args}
    trial = completed(run(runner, tmp_path, target("generator"), {}, consumer))
    assert (trial.data_wait_share or 1) < 0.5


def test_a_step_receives_the_axes_that_it_has_parameters_for(runner: TrialRunner, tmp_path: Path) -> None:
    consumer = {"kind": "target", "target": "lb_runner_targets:step_of_size"}
    trial = completed(run(runner, tmp_path, target("loader"), {"batch_size": 16}, consumer))
    assert (trial.data_wait_share or 1) < 0.5


def test_what_makes_a_step_receives_what_the_suite_fixes(runner: TrialRunner, tmp_path: Path) -> None:
    consumer = {"kind": "target", "target": "lb_runner_targets:makes_step_of_size"}
    dataset = target("loader")
    trial = completed(run(runner, tmp_path, dataset, {}, consumer, loader={"batch_size": 16}))
    assert (trial.data_wait_share or 1) < 0.5
