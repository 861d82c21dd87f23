"""Batches of a loop, one by one: what belongs to the steady state, and what a device tells late."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import Any

import numpy as np
import pytest
from followed_batches import Followed

from loaderbench.histogram import Histogram
from loaderbench.recorder.batches import MAX_POINTS, Timeline
from loaderbench.recorder.loop import LoopCallbacks, LoopRecorder
from loaderbench.recorder.samples import count_samples, sample_counter
from loaderbench.recorder.trials import spread_of
from loaderbench.tracing.block import SPANS
from loaderbench.tracing.made import Made


class LateDevice:
    """Tells a wait only `behind` batches later, as events of a device that is still at work do; never blocks."""

    def __init__(self, wait_s: float, behind: int) -> None:
        self.wait_s, self.behind = wait_s, behind
        self.pending: deque[float] = deque()

    def ask(self) -> None:
        pass

    def got(self) -> None:
        self.pending.append(self.wait_s)

    def take_s(self) -> list[float]:
        return [self.pending.popleft() for _ in range(max(0, len(self.pending) - self.behind))]


def batches(number: int) -> Iterator[list[int]]:
    return iter([[0] * 4] * number)


@pytest.mark.parametrize("events", [None, LateDevice(0.0, behind=2)], ids=["host", "device"])
def test_a_batch_that_the_loop_drops_is_freed_before_the_next_one_is_asked_for(events: LateDevice | None) -> None:
    """Unmapping a large batch takes milliseconds, and a device that has work left does not wait for it."""
    recorder, source = LoopRecorder(warmup=0, steps=None), Followed(6)
    recorder.events = events
    epoch = recorder.epoch(lambda: iter(source))
    while True:
        batch = next(epoch, None)
        if batch is None:
            break
        del batch
    assert source.freed == [True] * 6


def test_what_a_loop_does_between_epochs_of_its_own_is_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loader may keep one iterator for all epochs, as timm's does: a validation lies between two of its batches."""
    now_s = [0.0]
    monkeypatch.setattr("loaderbench.recorder.loop._now_s", lambda: now_s[0])

    def source() -> Iterator[list[int]]:
        for _ in range(7):
            now_s[0] += 1.0
            yield [0] * 4

    recorder = LoopRecorder(warmup=0, steps=None)
    recorder.note_pause()  # before the first epoch
    for number, _ in enumerate(recorder.epoch(source)):
        now_s[0] += 2.0
        if number in (2, 4):
            now_s[0] += 100.0
            recorder.note_pause()
    assert (recorder.log.batches, recorder.log.wall_s, sum(recorder.log.waits.sums_s)) == (4, 12.0, 4.0)


@pytest.mark.parametrize("events", [None, LateDevice(0.0, behind=0)], ids=["host", "device"])
def test_an_iterator_that_has_ended_is_not_asked_again(events: LateDevice | None) -> None:
    """DALI's begins another epoch then, and FFCV's waits forever."""

    class Restarting:
        """Ends after three batches, and then begins again."""

        def __init__(self) -> None:
            self.taken = 0

        def __iter__(self) -> Iterator[list[int]]:
            return self

        def __next__(self) -> list[int]:
            self.taken += 1
            if self.taken % 4 == 0:
                raise StopIteration
            return [0]

    source, recorder = Restarting(), LoopRecorder(warmup=0, steps=None)
    recorder.events = events
    assert [len(list(recorder.epoch(lambda: source))) for _ in range(3)] == [3, 3, 3]
    assert source.taken == 12


@pytest.mark.parametrize("warmup", [0, 1, 3])
def test_the_steady_state_begins_once_whatever_the_warm_up(warmup: int) -> None:
    begun: list[int] = []
    recorder = LoopRecorder(warmup, None, LoopCallbacks(steady=lambda: begun.append(recorder.seen)))
    for _ in range(2):
        list(recorder.epoch(lambda: batches(5)))
    assert begun == [max(1, warmup)]


def test_an_epoch_that_is_left_yields_what_follows_unrecorded() -> None:
    recorder = LoopRecorder(warmup=0, steps=None)
    epoch = recorder.epoch(lambda: iter([[number] for number in range(6)]))
    assert [next(epoch), next(epoch)] == [[0], [1]]
    recorder.leave(epoch)
    assert list(epoch) == [[2], [3], [4], [5]]
    assert (recorder.log.batches, recorder.begun) == (0, 1)


def test_the_first_of_an_epoch_and_the_warm_up_are_not_counted() -> None:
    recorder = LoopRecorder(warmup=3, steps=None)
    for _ in range(2):
        list(recorder.epoch(lambda: batches(10)))
    assert (recorder.log.batches, recorder.warmed.batches) == (7 + 9, 2)
    assert recorder.begun == 2
    assert sum(recorder.boundaries.times.counts) == 1


def test_a_loop_that_leaves_its_epochs_early_waits_for_the_first_batch_of_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 0.0
    monkeypatch.setattr("loaderbench.recorder.loop._now_s", lambda: now_s)

    def slowly() -> Iterator[Any]:
        nonlocal now_s
        now_s += 0.02
        return batches(10)

    recorder = LoopRecorder(warmup=0, steps=None)
    for _ in range(3):
        epoch = recorder.epoch(slowly)
        assert len(list(islice(epoch, 3))) == 3
        epoch.close()
    assert sum(recorder.boundaries.times.counts) == 2
    assert sum(recorder.boundaries.times.sums_s) == pytest.approx(0.04)


@pytest.mark.parametrize("worker", [0, None])
def test_making_a_first_batch_counts_from_the_second_epoch_on_and_only_in_a_worker(worker: int | None) -> None:
    asked: list[tuple[int, int]] = []

    def made(epoch: int, batch: int) -> Made:
        asked.append((epoch, batch))
        return Made(worker, began_s=0.0, collate_began_s=0.0, ended_s=float("inf"), samples=1, stages_s={})

    recorder = LoopRecorder(0, None, LoopCallbacks(find_made=made))
    for _ in range(3):
        asked.clear()
        list(recorder.epoch(lambda: batches(4)))
    assert asked[0] == (2, 0)
    assert sum(recorder.boundaries.first_makings.counts) == (0 if worker is None else 2)
    assert sum(recorder.boundaries.first_makings.sums_s) <= sum(recorder.boundaries.times.sums_s), (
        "at most the wait for the batch"
    )


def test_waits_of_a_device_are_taken_in_order_and_the_last_ones_left_out() -> None:
    recorder = LoopRecorder(warmup=0, steps=None)
    recorder.events = LateDevice(wait_s=1e-9, behind=2)
    list(recorder.epoch(lambda: batches(100)))
    assert recorder.log.batches == 97  # the first is apart, two were not told
    assert recorder.log.waits.max_s == 1e-9


def made_of(*counts: int) -> Callable[[int, int], Made | None]:
    """Workers that made so many batches of each epoch."""
    return lambda epoch, batch: Made(0, 0.0, 0.0, 0.0, 4, {}) if batch < counts[epoch] else None


@pytest.mark.parametrize("behind", [0, 5])
def test_a_batch_whose_wait_is_not_told_yet_was_taken_all_the_same(behind: int) -> None:
    recorder = LoopRecorder(warmup=0, steps=None, callbacks=LoopCallbacks(find_made=made_of(103)))
    recorder.events = LateDevice(wait_s=1e-9, behind=behind)
    list(recorder.epoch(lambda: batches(100)))
    assert [one.batch for one in recorder.batches() if one.asked_s is None] == [100, 101, 102]


def test_waits_that_are_not_told_yet_may_be_of_two_epochs() -> None:
    recorder = LoopRecorder(warmup=0, steps=None, callbacks=LoopCallbacks(find_made=made_of(10, 8)))
    recorder.events = LateDevice(wait_s=1e-9, behind=9)
    for number in (10, 5):
        list(recorder.epoch(lambda number=number: batches(number)))
    not_taken = [(one.epoch, one.batch) for one in recorder.batches() if one.asked_s is None]
    assert not_taken == [(1, 5), (1, 6), (1, 7)]


@pytest.mark.parametrize("warmup", [10, 3_000])
@pytest.mark.parametrize("longest", [0, 1_500])
def test_a_worker_is_asked_for_each_batch_while_it_remembers_it(
    warmup: int, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often there is a look in between, which happens by the clock."""
    moments_s = count(step=1e-3)
    monkeypatch.setattr("loaderbench.recorder.loop._now_s", lambda: next(moments_s))
    made = 0

    def worker() -> Iterator[list[int]]:
        """Is some batches ahead; one of them comes late."""
        nonlocal made
        for made in range(64, 64 + 4_000):
            if made - 64 == longest:
                deque(islice(moments_s, 1_000), maxlen=0)
            yield [0] * 4

    def find(epoch: int, batch: int) -> Made | None:
        return Made(0, 0.0, 0.0, 0.0, 4, {}) if made - SPANS <= batch < made else None

    recorder = LoopRecorder(warmup, steps=None, callbacks=LoopCallbacks(find_made=find))
    list(recorder.epoch(worker))
    assert all(one.worker == 0 for one in recorder.batches())


def test_a_wait_never_exceeds_the_time_from_batch_to_batch() -> None:
    recorder = LoopRecorder(warmup=0, steps=None)
    recorder.events = LateDevice(wait_s=10.0, behind=0)
    list(recorder.epoch(lambda: batches(50)))
    assert sum(recorder.log.waits.sums_s) == pytest.approx(recorder.log.wall_s)


def test_callbacks_are_called_at_the_right_moments() -> None:
    calls: list[str] = []
    callbacks = LoopCallbacks(
        steady=lambda: calls.append("steady"),
        epoch_ended=lambda: calls.append("epoch ended"),
        full=lambda: calls.append("full"),
    )
    recorder = LoopRecorder(warmup=2, steps=3, callbacks=callbacks)
    assert len(list(recorder.epoch(lambda: batches(20)))) == 20
    assert calls == ["steady", "full", "epoch ended"]


@pytest.mark.parametrize("warmup", [0, 10])
def test_each_short_epoch_is_looked_at_twice_or_paid_for_later(warmup: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One look alone tells nothing. Here a look takes 20 ms, and an epoch 600 ms."""
    now_s, steady_looks, taken = 0.0, list[int](), 0
    monkeypatch.setattr("loaderbench.recorder.loop._now_s", lambda: now_s)

    def pass_time(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    def slow_batches() -> Iterator[list[int]]:
        for _ in range(30):
            pass_time(0.02)
            yield [0] * 4

    def look() -> None:
        nonlocal taken
        pass_time(0.02)
        taken += 1

    def forget() -> None:
        nonlocal taken
        taken = 0

    recorder = LoopRecorder(warmup, steps=None, callbacks=LoopCallbacks(steady=forget, look=look))
    for _ in range(200):
        forget()
        list(recorder.epoch(slow_batches))
        steady_looks.append(taken)
    assert steady_looks[0] == 2
    assert max(steady_looks) == 2
    pairs = [epoch for epoch, looks in enumerate(steady_looks) if looks == 2]
    pauses = [(later - earlier) * 0.6 for earlier, later in itertools.pairwise(pairs)]
    assert min(pauses) > 0.04 / 0.005 - 2 * 0.6


def test_time_between_epochs_is_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0
    monkeypatch.setattr("loaderbench.recorder.loop._now_s", lambda: now_s)
    recorder = LoopRecorder(warmup=0, steps=None)
    for _ in range(3):
        list(recorder.epoch(lambda: batches(10)))
        now_s += 0.5
    assert recorder.between_s == pytest.approx(1.0)


def test_few_of_many_short_epochs_have_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look takes 5 ms, and the end of an epoch another 3 ms after a look. An epoch takes 10 ms."""
    now_s, looked, cost_s = 0.0, False, 0.0
    monkeypatch.setattr("loaderbench.recorder.loop._now_s", lambda: now_s)

    def spend(seconds: float) -> None:
        nonlocal now_s, cost_s
        now_s, cost_s = now_s + seconds, cost_s + seconds

    def short_batches() -> Iterator[list[int]]:
        nonlocal now_s
        for _ in range(5):
            now_s += 0.002
            yield [0] * 4

    def look() -> None:
        nonlocal looked
        looked = True
        spend(0.005)

    def epoch_ended() -> None:
        nonlocal looked
        spend(0.003 if looked else 0.0)
        looked = False

    recorder = LoopRecorder(0, steps=None, callbacks=LoopCallbacks(look=look, epoch_ended=epoch_ended))
    for _ in range(2_000):
        list(recorder.epoch(short_batches))
    assert 0.015 < cost_s / now_s < 0.025


def test_a_timeline_keeps_the_longest_wait_however_long_the_run() -> None:
    timeline = Timeline()
    for start in range(0, 100_000, 777):
        moments = np.arange(start, min(start + 777, 100_000), dtype=float)
        timeline.add(moments, np.where(moments == 77_777, 9.0, 0.1))
    assert len(timeline.shown()) <= 2 * MAX_POINTS
    assert (77_777.0, 9.0) in timeline.shown()


def test_quantiles_of_a_histogram_are_right_within_five_percent() -> None:
    times = [0.001 * (1 + number / 1_000) for number in range(10_000)]
    spread = spread_of(times)
    assert spread is not None
    for told, share in ((spread.p50_s, 0.5), (spread.p95_s, 0.95), (spread.p99_s, 0.99)):
        assert told == pytest.approx(times[int(share * len(times))], rel=0.05)
    assert spread.mean_s == pytest.approx(sum(times) / len(times))
    assert spread.max_s == max(times)


def test_the_tail_is_what_slow_times_took_beyond_the_median() -> None:
    histogram = Histogram()
    for _ in range(99):
        histogram.add(0.01)
    histogram.add(1.01)
    assert histogram.tail_share(4.0) == pytest.approx(1.0 / 2.0)


@pytest.mark.parametrize("batch", [[1, 2, 3], {"image": [1, 2]}, "abc", 3, None, ([1, 2], [3, 4]), [[1], [2], [3]]])
def test_the_fast_counter_counts_what_the_thorough_one_does(batch: object) -> None:
    assert sample_counter(batch)(batch) == count_samples(batch)


class _Shape:
    """As TensorFlow's, which is no tuple."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: int) -> int:
        return (7, 3)[place]


class _OtherTensor:
    shape = _Shape()


@pytest.mark.parametrize("batch", [_OtherTensor(), (_OtherTensor(), _OtherTensor()), {"images": _OtherTensor()}])
def test_tensors_of_other_libraries_are_counted_by_their_first_dimension(batch: Any) -> None:
    assert count_samples(batch) == 7
