"""Measures the cost of the recorder in pairs: a loop over ready batches with the recorder, and one without."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import repeat
from statistics import median
from typing import Any

from loaderbench.consumers import NoConsumer, WaitClock
from loaderbench.recorder.loop import LoopRecorder
from loaderbench.recorder.measure import Steps

_BATCHES = 1_000
_PAIRS = 7


def recorder_s_per_batch(make_clock: Callable[[], WaitClock | None] = lambda: None) -> float:
    """Seconds that recording adds to each batch of a trial. `make_clock` creates the clock of its device, if any."""
    ready = [0] * _BATCHES

    def recorded() -> None:
        consumer: Any = NoConsumer()
        consumer.wait_clock = make_clock() or consumer.wait_clock
        steps = Steps(ready, consumer)
        for _ in repeat(None, _BATCHES):
            steps.take()

    return _difference_s(recorded, lambda: _drain(ready)) / _BATCHES


def loop_s_per_batch(make_events: Callable[[], Any] = lambda: None) -> float:
    """Seconds that recording adds to each batch of a user's loop. `make_events` creates its device's clock, if any."""
    ready = [[0]] * _BATCHES

    def recorded() -> None:
        recorder = LoopRecorder(0, None)
        recorder.events = make_events()
        _drain(recorder.epoch(lambda: iter(ready)))

    return _difference_s(recorded, lambda: _drain(ready)) / _BATCHES


def _difference_s(with_it: Callable[[], None], without: Callable[[], None]) -> float:
    """Median difference over interleaved pairs, in seconds; never negative."""
    return max(0.0, median(_seconds(with_it) - _seconds(without) for _ in range(_PAIRS)))


def _seconds(run: Callable[[], None]) -> float:
    began_s = time.perf_counter()
    run()
    return time.perf_counter() - began_s


def _drain(batches: Iterable[object]) -> None:
    for _ in batches:
        pass
