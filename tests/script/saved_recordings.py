"""What a recorded loop has saved at some of its batches, and the same with other numbers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from recorded_loop import Loop, step_stages

from loaderbench.profiler.measured import Script
from loaderbench.records import Trial
from loaderbench.script.recording import Recording

SAMPLES = 4


def saved_at(batches: Iterable[int], slow_from: int = 1_000) -> list[Recording]:
    """Recordings of one loop, saved when it has so many batches; from a batch on, each step takes 2 ms more."""
    with step_stages() as stages:
        loop, found = Loop(stages), list[Recording]()
        for number, _ in enumerate(loop.epoch([torch.zeros(SAMPLES, 2)] * (max(batches) + 1))):
            if number in batches:  # the loop is done with so many
                found.append(recording_of(loop))
            if number >= slow_from:
                time.sleep(0.002)
    return found


def recording_of(loop: Loop, name: str = "train_loader", *, has_ended: bool = False) -> Recording:
    measured, readings = loop.profiler.measured(Script("train.py", name, has_ended))
    return Recording(name=name, place=name, rank=None, measured=measured, readings=readings)


def trial_of(recording: Recording) -> Trial:
    (trial,) = recording.measured.trials
    return trial


def with_trial(recording: Recording, **changes: Any) -> Recording:
    """The same with other numbers in its trial."""
    trial = replace(trial_of(recording), **changes)
    return replace(recording, measured=replace(recording.measured, trials=(trial,)))


def with_batches(recording: Recording, batches: int, seconds: float) -> Recording:
    """The same loop after so many batches of its steady state."""
    return with_trial(recording, batches=batches, samples=SAMPLES * batches, steady_s=seconds)
