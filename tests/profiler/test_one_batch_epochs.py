"""A loop that begins an epoch in every step is a loop that waits for epochs to begin."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from loops import trial_of

from loaderbench import Profiler, Run
from loaderbench.records import Trial


class SlowStart:
    """Each epoch starts slowly, and gives `number` batches."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __iter__(self) -> Iterator[list[int]]:
        time.sleep(0.01)
        return iter([[0] * 4] * self.number)


def left() -> Run:
    """As `next(iter(loader))` in each step."""
    loader = SlowStart(9)
    with Profiler("train") as prof:
        for _ in range(30):
            next(iter(prof.iter(loader)))
            time.sleep(0.002)
    return prof.result


def of_one_batch() -> Run:
    loader = SlowStart(1)
    with Profiler("train") as prof:
        for _ in range(30):
            for _ in prof.iter(loader):
                time.sleep(0.002)
    return prof.result


@pytest.mark.parametrize("loop", [left, of_one_batch])
def test_the_verdict_is_the_start_of_epochs(loop: Any) -> None:
    run = loop()
    trial = trial_of(run)
    assert (run.verdict.bound, run.verdict.limit) == ("input", "startup")
    assert trial.epochs is not None
    assert trial.epochs.begun == 30
    assert (trial.batches, trial.data_wait, trial.data_wait_share) == (30 - (loop is left), None, 0.0)
    assert trial.not_measured["data_wait"].startswith("each batch was the first or last of its epoch")
    assert any("keep it" in note for note in run.notes)


def test_time_between_such_epochs_is_the_step_only_where_the_loop_leaves_them() -> None:
    trials: list[Trial] = [trial_of(left()), trial_of(of_one_batch())]
    between_s = [trial.epochs.between_s for trial in trials if trial.epochs]
    assert between_s[0] is None
    assert between_s[1] is not None
    assert trials[0].epochs is not None
    assert "part of the steps" in trials[0].epochs.not_measured["between_s"]


def test_a_single_batch_is_not_measured_and_the_hint_names_the_pattern() -> None:
    with Profiler("train") as prof:
        next(iter(prof.iter(SlowStart(3))))
    failure = trial_of(prof.result).failure
    assert failure is not None
    assert failure.kind == "no_batches"
    assert "next(iter(loader))" in (failure.hint or "")
