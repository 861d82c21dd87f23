"""Loops that take one or two batches of each epoch: their steps are known, and the waits belong to the epochs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from loaderbench.recorder.batches import MAX_ROWS
from loaderbench.recorder.loop import LoopCallbacks, LoopRecorder
from loaderbench.tracing.block import SPANS

FIRST_S, LATER_S, STEP_S = 2.0, 0.5, 3.0


class Clock:
    """A clock that only moves when a test sets it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def batches(self, number: int = 9) -> Iterator[list[int]]:
        """The first batch takes longer than the others."""
        for place in range(number):
            self.now_s += LATER_S if place else FIRST_S
            yield [0] * 4


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("loaderbench.recorder.loop._now_s", found)
    return found


def leave_each(recorder: LoopRecorder, clock: Clock, epochs: int, taken: int = 1) -> None:
    """As `next(iter(loader))` in each step: the iterator is dropped before the step."""
    for _ in range(epochs):
        iterator = recorder.epoch(clock.batches)
        for place in range(taken):
            clock.now_s += STEP_S if place else 0.0
            next(iterator)
        del iterator
        clock.now_s += STEP_S


def test_the_step_of_a_batch_at_which_its_epoch_is_left_ends_where_the_next_epoch_begins(clock: Clock) -> None:
    recorder = LoopRecorder(warmup=2, steps=None)
    leave_each(recorder, clock, 10)
    log = recorder.apart.log()
    assert (log.batches, log.samples, recorder.seen) == (9, 36, 10)
    assert (sum(log.waits.sums_s), sum(log.steps.sums_s)) == (0.0, 9 * STEP_S)
    assert sum(recorder.boundaries.times.sums_s) == 9 * FIRST_S
    assert (recorder.apart.has_left, recorder.log.batches, recorder.warmed.batches) == (True, 0, 0)


def test_the_wait_for_a_second_batch_is_a_data_wait(clock: Clock) -> None:
    recorder = LoopRecorder(warmup=0, steps=None)
    leave_each(recorder, clock, 5, taken=2)
    log = recorder.apart.log()
    assert log.batches == 5 + 4  # the last step of all has no known end
    assert sum(log.waits.sums_s) == 4 * LATER_S
    assert sum(log.steps.sums_s) == 9 * STEP_S


def test_epochs_of_one_batch_are_counted_without_the_time_between_them(clock: Clock) -> None:
    recorder = LoopRecorder(warmup=1, steps=None)
    for _ in range(4):
        for _ in recorder.epoch(lambda: clock.batches(1)):
            clock.now_s += STEP_S
        clock.now_s += 100.0
    log = recorder.apart.log()
    assert (log.batches, log.wall_s, recorder.apart.has_left) == (4, 4 * STEP_S, False)


def test_one_epoch_says_nothing_about_the_others(clock: Clock) -> None:
    recorder = LoopRecorder(warmup=0, steps=None)
    for _ in recorder.epoch(lambda: clock.batches(1)):
        clock.now_s += STEP_S
    assert recorder.apart.log().batches == 0


def test_a_long_loop_is_counted_in_total(clock: Clock) -> None:
    recorder, epochs = LoopRecorder(warmup=0, steps=None), 2 * MAX_ROWS + SPANS
    leave_each(recorder, clock, epochs)
    log = recorder.apart.log()
    assert (log.batches, log.wall_s) == (epochs - 1, (epochs - 1) * STEP_S)
    assert len(recorder.apart._waiting) <= MAX_ROWS


class Device:
    """Reports each wait at once: half of the host's."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.asked_s, self.found = clock, 0.0, list[float]()

    def ask(self) -> None:
        self.asked_s = self.clock.now_s

    def got(self) -> None:
        self.found.append((self.clock.now_s - self.asked_s) / 2)

    def take_s(self) -> list[float]:
        found, self.found = self.found, []
        return found


def test_with_a_device_the_waits_are_the_device_s(clock: Clock) -> None:
    recorder = LoopRecorder(warmup=0, steps=None)
    recorder.events = Device(clock)
    leave_each(recorder, clock, 5, taken=2)
    assert sum(recorder.apart.log().waits.sums_s) == 4 * LATER_S / 2


@pytest.mark.parametrize("left", [1, 3, 5])
def test_batches_of_epochs_that_are_left_count_for_the_warm_up(clock: Clock, left: int) -> None:
    begun: list[int] = []
    recorder = LoopRecorder(3, None, LoopCallbacks(steady=lambda: begun.append(recorder.seen)))
    leave_each(recorder, clock, left)
    for _ in recorder.epoch(clock.batches):
        clock.now_s += STEP_S
    assert begun == [max(3, left + 1)]
    assert recorder.log.batches == 9 - max(1, 3 - left)
