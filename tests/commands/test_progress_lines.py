"""What a user reads during a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loaderbench.commands.options import ProgressKind
from loaderbench.commands.progress import Bar, about_how_long, describe_plan, make_listener, time_left
from loaderbench.plan import make_plan
from loaderbench.records import Failure, PlannedTrial, Trial
from loaderbench.session.listener import Progress
from loaderbench.suite import Suite

PLAN = make_plan(Suite.model_validate({"sweep": {"num_workers": [0, 2]}}), cpus_allotted=2, accelerator=False)
SWEEP = Progress("Sweep", 3, 30, left_s=240.0, elapsed_s=80.0, best="836 samples/s (num_workers=2)")
PLANNED = PlannedTrial(id="r1-c01", role="sweep", config={"num_workers": 2}, round=1)
DONE = Trial(**vars(PLANNED), status="completed", samples_per_s=836.4)
FAILED = Trial(**vars(PLANNED), status="timed_out", failure=Failure("shared_memory_full", "", ""))


@pytest.mark.parametrize(
    ("phase", "left_s", "words"),
    [
        ("Sweep", 240.0, "about 4 min left"),
        ("Isolation runs", 42.4, "about 42 s left"),
        ("Fixes", 99.0, "up to 99 s left"),
        ("Fixes", 4.9, "almost done"),
        ("Sweep", 0.0, "almost done"),
    ],
)
def test_the_time_left_is_one_phrase(phase: str, left_s: float, words: str) -> None:
    total = None if phase == "Fixes" else 9
    assert time_left(replace(SWEEP, phase=phase, left_s=left_s, total=total)) == words  # type: ignore[arg-type]


def test_a_line_names_the_phase_the_trials_of_it_and_the_time_left_of_the_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with make_listener(ProgressKind.plain, verbose=True) as lines:
        lines.planned(PLAN)
        lines.trial_started(PLANNED, SWEEP)
        lines.trial_ended(DONE, SWEEP)
        lines.trial_ended(FAILED, replace(SWEEP, phase="Fixes", total=None, done=1_200, left_s=1.0))
    assert capsys.readouterr().err.splitlines()[1:] == [
        "Trial r1-c01: num_workers=2",
        "[Sweep 3/30] num_workers=2: 836 samples/s; about 4 min left",
        "[Fixes 1,200] num_workers=2: timed out (shared memory full); almost done",
    ]


def test_without_progress_only_warnings_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with make_listener(ProgressKind.none, verbose=False) as quiet:
        quiet.doing("Looking")
        quiet.planned(PLAN)
        quiet.warned("before and after are the same code")
        quiet.trial_ended(DONE, SWEEP)
    assert capsys.readouterr().err == "Warning: before and after are the same code\n"


def test_the_bar_is_as_far_as_the_run_is_and_never_goes_back() -> None:
    bar = Bar()
    bar.planned(PLAN)
    filled = []
    for elapsed_s, left_s in ((0.0, 0.0), (10.0, 30.0), (20.0, 30.0), (30.0, 10.0), (40.0, 0.0)):
        bar.trial_started(PLANNED, replace(SWEEP, elapsed_s=elapsed_s, left_s=left_s))
        filled.append(bar._progress.tasks[0].percentage)
    assert filled == [0.0, 25.0, 40.0, 75.0, 100.0]
    bar.trial_ended(DONE, SWEEP)
    shown = bar._progress.tasks[0].description
    assert shown == "Sweep 3 of 30; about 4 min left; best so far: 836 samples/s (num_workers=2)"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rounds": 1}, "2 trials (2 configs, 1 round), plus up to 2 isolation runs; about 17 s"),
        (
            {"rounds": 3, "verify_s": 120.0},
            "6 trials (2 configs, 3 rounds), plus 3 A/A trials and up to 6 isolation runs; "
            "about 40 s, then up to 3 min for free-stage trials and fixes",
        ),
        (
            {"configurations": PLAN.configurations[:1], "rounds": 1, "isolation_runs": 0},
            "1 trial (1 config, 1 round); about 8 s",
        ),
    ],
)
def test_a_plan_is_one_line(changed: dict[str, object], words: str) -> None:
    plan = replace(PLAN, trial_s=1.0, isolation_s=4.0, isolation_runs=2, verify_s=0.0)
    assert describe_plan(replace(plan, **changed)) == words  # type: ignore[arg-type]


def test_the_bar_names_a_failed_trial_of_a_comparison_which_has_no_plan() -> None:
    bar, trial = Bar(), Trial(
        id="p1-after", role="ab", config={"num_workers": 2}, round=1, side="after", status="failed",
        failure=Failure("user_code", "no such file", ""),
    )  # fmt: skip
    with bar._progress.console.capture() as said:
        bar.trial_ended(trial, SWEEP)
    assert "Failed: " in said.get()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (99.0, "99 s"),
        (100.0, "2 min"),
        (5_900.0, "98 min"),
        (6_000.0, "1.7 hours"),
        (100_000.0, "28 hours"),
        (28_028_100.0, "324 days"),
        (1e9, "11,574 days"),
    ],
)
def test_a_long_time_has_the_unit_of_a_person(seconds: float, words: str) -> None:
    assert about_how_long(seconds) == words
