"""The boundaries between the epochs of a trial, on a clock that passes only while somebody sleeps."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from sleeping_clock import sleeping_clock

from loaderbench.consumers import Consumer
from loaderbench.consumers.emulated import EmulatedAccelerator
from loaderbench.consumers.kind import HostWaitClock
from loaderbench.recorder import Measurement, Rules, Steps, measure
from loaderbench.recorder.epochs import epochs_of
from loaderbench.recorder.windows import FindMade
from loaderbench.records import Epochs
from loaderbench.tracing.made import Made

START_S, BATCH_S = 0.3, 0.01


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeping_clock(monkeypatch)


class Short:
    """Epochs of `batches`, each of which starts for `START_S`; only `epochs` of them."""

    def __init__(self, batches: int, epochs: int = 1_000) -> None:
        self.batches, self.epochs = batches, epochs

    def __iter__(self) -> Iterator[list[int]]:
        self.epochs -= 1
        if self.epochs < 0:
            return
        time.sleep(START_S)
        for _ in range(self.batches):
            time.sleep(BATCH_S)
            yield [0] * 10


class Idle:
    """A consumer that computes nothing, by the same clock."""

    def __init__(self) -> None:
        self.wait_clock = HostWaitClock(lambda: 0.0, time.monotonic)

    def consume(self, batch: object, samples: int) -> None:
        """Do nothing."""


def unknown(epoch: int, batch: int) -> None:
    """No worker is known."""


def measured(
    source: Short, consumer: Consumer, seconds: float = 3.0, find_made: FindMade = unknown
) -> tuple[Measurement, Epochs | None]:
    found: list[Epochs | None] = []

    def closed(_: Measurement, steps: Steps) -> None:
        found.append(epochs_of(steps, find_made, None, workers_persist=False))

    return measure(source, consumer, Rules(seconds), on_closed=closed), found[0]


def test_a_boundary_lasts_from_the_last_request_of_an_epoch_to_the_next_one_s_first_batch() -> None:
    source = Short(7)
    trial, epochs = measured(source, Idle())
    assert epochs is not None
    assert (epochs.boundary_s, epochs.boundary_max_s) == (pytest.approx(START_S + BATCH_S),) * 2
    assert epochs.begun == 1_000 - source.epochs
    assert trial.epoch_ends == len(trial.firsts) > 1
    assert trial.waits_within_epochs_s == pytest.approx([BATCH_S] * (trial.batches - trial.epoch_ends))
    assert sum(trial.waits_s) == pytest.approx(trial.batches * BATCH_S + trial.epoch_ends * START_S)
    assert epochs.not_measured.keys() >= {"between_s", "between_line", "sampler_s", "first_making_s"}


def test_waits_are_numbered_within_each_epoch_and_a_first_batch_is_none_of_them() -> None:
    trial, _ = measured(Short(7), Idle())
    assert len(trial.waits) == trial.epoch_ends + 1
    _, *complete, _ = trial.waits.values()
    for waits in complete:
        assert [wait.batch for wait in waits] == [1, 2, 3, 4, 5, 6]
        assert [wait.got_s - wait.asked_s for wait in waits] == pytest.approx([BATCH_S] * 6)


def test_what_a_device_computes_meanwhile_is_no_part_of_a_boundary() -> None:
    """Two batches of 0.1 s are queued when the last request of an epoch begins."""
    _, epochs = measured(Short(7), EmulatedAccelerator(100, time.monotonic))
    assert epochs is not None
    assert epochs.boundary_s == pytest.approx(START_S + BATCH_S - 0.2)
    _, hidden = measured(Short(7), EmulatedAccelerator(50, time.monotonic), seconds=6.0)
    assert hidden is not None
    assert (hidden.boundary_s, hidden.boundary_max_s) == (0.0, 0.0)


@pytest.mark.parametrize(("batches", "seconds"), [(7, 3.0), (7, 3.2), (13, 1.3), (2, 0.5)])
def test_the_steady_state_has_complete_epochs(batches: int, seconds: float) -> None:
    trial, _ = measured(Short(batches), Idle(), seconds)
    assert trial.batches == trial.epoch_ends * batches
    assert trial.samples_per_s == pytest.approx(10 * batches / (START_S + batches * BATCH_S))


def test_epochs_that_differ_are_cut_after_twice_the_seconds() -> None:
    """No later epoch has as many batches as the warm-up took of the first."""

    class Shrinking(Short):
        def __iter__(self) -> Iterator[list[int]]:
            yield from super().__iter__()
            self.batches = 3

    trial, _ = measured(Shrinking(60), Idle(), seconds=0.7)
    assert trial.warmup_batches > 3
    assert 2 * 0.7 <= trial.steady_s <= 2 * 0.7 + START_S + BATCH_S


def test_in_epochs_of_one_batch_each_wait_is_a_boundary() -> None:
    trial, epochs = measured(Short(1), Idle())
    assert epochs is not None
    assert epochs.boundary_s == pytest.approx(START_S + BATCH_S)
    assert trial.epoch_ends == trial.batches
    assert (trial.waits_within_epochs_s, trial.waits) == ([], {})


def test_an_epoch_longer_than_the_trial_has_no_boundary() -> None:
    trial, epochs = measured(Short(10_000), Idle())
    assert epochs is None
    assert (trial.epoch_ends, len(trial.waits_within_epochs_s)) == (0, trial.batches)


def test_the_end_of_the_last_epoch_is_no_boundary() -> None:
    trial, epochs = measured(Short(40, epochs=2), Idle())
    assert trial.ended_early
    assert epochs is not None
    assert epochs.begun == 2


@pytest.mark.parametrize(("worker", "making_s"), [(1, BATCH_S), (None, None)])
def test_a_boundary_includes_the_time_in_which_a_worker_makes_the_first_batch(
    worker: int | None, making_s: float | None
) -> None:
    def made_last(epoch: int, batch: int) -> Made | None:
        first = 100.0 + epoch * (START_S + 7 * BATCH_S)
        return Made(worker, first + START_S, 0.0, first + START_S + BATCH_S, 10, {}) if batch == 0 else None

    _, epochs = measured(Short(7), Idle(), find_made=made_last)
    assert epochs is not None
    assert epochs.first_making_s == (None if making_s is None else pytest.approx(making_s))
    assert ("first_making_s" in epochs.not_measured) is (making_s is None)
