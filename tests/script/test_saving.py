"""What is saved of a script while it runs costs its loop little."""

from __future__ import annotations

import sys

import pytest
import torch
from recorded_loop import Loop, step_stages
from saved_recordings import recording_of, trial_of

from loaderbench.profiler.readings import AT_THE_END
from loaderbench.records import Trial
from loaderbench.script import recorder


@pytest.fixture(scope="module")
def trials() -> tuple[Trial, Trial]:
    """Saved in the middle of a loop, and at its end."""
    with step_stages() as stages:
        loop, saved = Loop(stages), []
        for number, _ in enumerate(loop.epoch([torch.zeros(4, 2)] * 30)):
            saved += [recording_of(loop)] if number == 20 else []
        loop.profiler.end()
        return trial_of(saved[0]), trial_of(recording_of(loop, has_ended=True))


def test_what_recording_costs_is_measured_when_the_script_has_ended(trials: tuple[Trial, Trial]) -> None:
    """It takes thousands of events on the device that the script computes on."""
    running, ended = trials
    assert running.recorder_s_per_batch is None
    assert running.not_measured["recorder_s_per_batch"] == AT_THE_END
    assert 0 < (ended.recorder_s_per_batch or 0) < 1e-3
    assert "recorder_s_per_batch" not in ended.not_measured


def test_all_else_is_there_while_the_script_runs(trials: tuple[Trial, Trial]) -> None:
    running, _ = trials
    assert running.status == "completed"
    assert running.batches == 10
    assert running.samples_per_s


def test_a_thread_that_waits_for_the_gil_waits_less_during_a_save() -> None:
    before_s = sys.getswitchinterval()

    def save() -> None:
        with recorder._yielding():
            meanwhile_s.append(sys.getswitchinterval())
            raise OSError("disk full")

    meanwhile_s: list[float] = []
    with pytest.raises(OSError, match="disk full"):
        save()
    assert meanwhile_s == [pytest.approx(recorder.LONGEST_IN_THE_WAY_S)]
    assert sys.getswitchinterval() == before_s


def test_an_interval_of_the_user_that_is_shorter_stays() -> None:
    before_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with recorder._yielding():
            assert sys.getswitchinterval() == pytest.approx(1e-5)
    finally:
        sys.setswitchinterval(before_s)
