"""Drives a loader and a consumer through first batch, warm-up and steady state, and decides when each one ends."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from loaderbench.consumers import Consumer
from loaderbench.recorder.batches import APART, STEADY, WARMUP, Row
from loaderbench.recorder.samples import count_samples
from loaderbench.recorder.stalls import Wait

FEWEST_TO_KEEP = 2  # batches, if the loader ended early


@dataclass(frozen=True)
class Measurement:
    """The batches of one trial. Times are in seconds of the monotonic clock, which all processes of a machine share.

    `firsts` are the places in `waits_s` of batches that are the first of their epoch. `waits` are the other waits of
    the steady state, by epoch.
    """

    time_to_first_batch_s: float
    warmup_batches: int
    began_s: float
    ended_s: float
    batches: int
    samples: int
    waits_s: tuple[float, ...]
    waits_at_s: tuple[float, ...]
    ended_early: bool = False
    firsts: tuple[int, ...] = ()
    waits: Mapping[int, Sequence[Wait]] = field(default_factory=dict)

    @property
    def steady_s(self) -> float:
        """Length of the steady state."""
        return self.ended_s - self.began_s

    @property
    def samples_per_s(self) -> float:
        """Samples delivered per second of the steady state."""
        return self.samples / self.steady_s

    @property
    def data_wait_share(self) -> float:
        """Data wait over wall time of the steady state."""
        return min(1.0, sum(self.waits_s) / self.steady_s)

    @property
    def epoch_ends(self) -> int:
        """The number of epochs that ended in the steady state, because another began."""
        return len(self.firsts)

    @property
    def waits_within_epochs_s(self) -> list[float]:
        """The waits without those for the first batch of an epoch."""
        firsts = frozenset(self.firsts)
        return [wait_s for place, wait_s in enumerate(self.waits_s) if place not in firsts]


def measure(
    batches: Iterable[Any],
    consumer: Consumer,
    rules: Rules,
    *,
    batch_size: int | None = None,
    on_steady: Callable[[], None] = lambda: None,
    on_closed: Callable[[Measurement, Steps], None] = lambda *_: None,
    on_progress: Callable[[], None] = lambda: None,
) -> Measurement:
    """Run a trial until the rules are satisfied.

    `on_steady` is called when the warm-up ends. `on_closed` gets the result, and the `Steps` for taking further
    batches, while the loader and its workers are still alive. `on_progress` is called at most every `PROGRESS_S`
    seconds while batches arrive. Raises `NoBatchesError` if the loader returns too few batches, and any exception of
    the loader.
    """
    began_s = time.monotonic()
    steps = Steps(batches, consumer, batch_size, on_progress)
    steps.take()
    settled = steps.take_until(rules.warmed_up)
    # a one-epoch loader that has already ended is measured from where its prefetch queue was turned over
    warmup = len(steps.moments_s) if settled else min(len(steps.moments_s), max(1, rules.prefetch_batches))
    on_steady()
    closed = steps.take_until(lambda moments_s: rules.closed(moments_s, warmup) and _may_end(steps, rules, warmup))
    if len(steps.moments_s) < warmup + FEWEST_TO_KEEP:
        raise NoBatchesError(f"the loader ran out of data after {len(steps.moments_s)} batches, before a steady state")
    if not any(steps.samples[warmup:]):
        raise NoBatchesError("empty batches: their first dimension is 0")
    waits_s = steps.waits_s()
    found = Measurement(
        time_to_first_batch_s=steps.got_s[0] - began_s,  # excludes the consumer's first step, which may compile
        warmup_batches=warmup,
        began_s=steps.moments_s[warmup - 1],
        ended_s=steps.moments_s[-1],
        batches=len(steps.moments_s) - warmup,
        samples=sum(steps.samples[warmup:]),
        waits_s=tuple(waits_s[warmup:]),
        waits_at_s=tuple(steps.moments_s[warmup:]),
        ended_early=not closed,
        firsts=tuple(place - warmup for place in steps.begins if place >= warmup),
        waits=_waits_by_epoch(steps, waits_s, warmup),
    )
    on_closed(found, steps)
    steps.close()
    return found


def _may_end(steps: Steps, rules: Rules, warmup: int) -> bool:
    """Whether the steady state consists of complete epochs, or took twice the requested seconds.

    With part of an epoch, a rate would depend on how many of the few boundaries it includes.
    """
    elapsed_s = steps.moments_s[-1] - steps.moments_s[warmup - 1]
    return not rules.in_complete_epochs or elapsed_s >= 2 * rules.seconds or steps.is_again_at(warmup - 1)


def _waits_by_epoch(steps: Steps, waits_s: list[float], warmup: int) -> dict[int, list[Wait]]:
    """Each wait of the steady state with the number of its batch in the epoch, without the first batches of epochs."""
    found: dict[int, list[Wait]] = {}
    for place in range(warmup, len(steps.moments_s)):
        epoch, got_s = steps.epochs[place], steps.got_s[place]
        if number := place - steps.begins[epoch]:
            found.setdefault(epoch, []).append(Wait(number, got_s - waits_s[place], got_s))
    return found


class NoBatchesError(Exception):
    """The loader ended before a steady state could be measured."""


class Steps:
    """Takes batches one by one, and notes when the consumer was ready to ask for the next.

    `epochs` has the epoch of each batch, from 0, and `begins` the place of the first batch of each epoch.
    """

    def __init__(
        self,
        batches: Iterable[Any],
        consumer: Consumer,
        batch_size: int | None = None,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_progress, self._reported_s = on_progress, 0.0
        self._iterator = self._repeated_epochs(batches)
        self._consumer = consumer
        self._batch_size = batch_size
        self.epoch_ends, self.begins = 0, [0]
        self.epochs: list[int] = []
        self.asked_s: list[float] = []
        self.got_s: list[float] = []
        self.moments_s: list[float] = []
        self.samples: list[int] = []
        self._batch: Any = None

    def waits_s(self) -> list[float]:
        """The data wait of every batch, in seconds. Can block until a device has reported the waits."""
        return self._consumer.wait_clock.waits_s()[: len(self.moments_s)]

    def rows(self, warmup: int) -> Iterator[Row]:
        """Every batch that was taken; the first `warmup` are marked as warm-up."""
        for place, at_s in enumerate(self.moments_s):
            kind = STEADY if place >= warmup else WARMUP if place else APART
            yield self.asked_s[place], at_s, self.got_s[place], self.samples[place], kind, self.epochs[place]

    def take(self) -> bool:
        """Take one batch. Returns `False` if there is none left."""
        clock, asked_s = self._consumer.wait_clock, time.monotonic()
        clock.ask()
        try:
            batch = next(self._iterator)
        except StopIteration:
            return False
        clock.got()
        self.got_s.append(time.monotonic())
        self.asked_s.append(asked_s)
        self._batch = batch  # frees the previous batch, like the variable of a `for` loop
        self.epochs.append(self.epoch_ends)
        samples = count_samples(batch, self._batch_size)
        self._consumer.consume(batch, samples)
        self.moments_s.append(time.monotonic())
        self.samples.append(samples)
        return True

    def close(self) -> None:
        """Close the loader's iterator, which ends its workers unless they are persistent."""
        self._iterator.close()

    def is_again_at(self, place: int) -> bool:
        """Whether the last batch has the same place in its epoch as another; true if no epoch ended in between."""
        epochs, begins, last = self.epochs, self.begins, len(self.moments_s) - 1
        return epochs[place] == epochs[last] or last - begins[epochs[last]] == place - begins[epochs[place]]

    def take_until(self, done: Callable[[list[float]], bool]) -> bool:
        """Take batches until `done(moments_s)` is true. Returns `False` if the batches end before."""
        if not self.moments_s:
            raise NoBatchesError("the loader returned no batch; with drop_last the dataset must fill one batch")
        while self.take():
            if self.moments_s[-1] - self._reported_s > PROGRESS_S:
                self._reported_s = self.moments_s[-1]
                self._on_progress()
            if done(self.moments_s):
                return True
        return False

    def _repeated_epochs(self, batches: Iterable[Any]) -> Generator[Any]:
        """Start another epoch when one ends; stop at an empty epoch, since a generator runs only once."""
        handed: list[Any] = []
        while True:
            is_first = True
            for batch in batches:
                if is_first and self.moments_s:
                    self.epoch_ends += 1
                    self.begins.append(len(self.moments_s))
                is_first = False
                handed.append(batch)
                del batch  # otherwise the batch is freed during the next wait
                yield handed.pop()
            if is_first:
                return


MIN_BATCHES = 20  # in a steady state, unless they take more than twice the requested seconds
MIN_SAMPLES = 640  # alternatively this many, in fewer batches: precision depends on the samples
FEWEST_BATCHES = 5  # in both cases
FEWEST_WHEN_SLOW = 2  # if `FEWEST_BATCHES` take more than four times the requested seconds
FEWEST_BEFORE_SLICES = 2  # if the rate is measured in time slices afterwards
AGREEMENT = 0.2  # relative difference up to which the rates of two windows agree
WINDOW_S = 0.05  # shorter windows are noise
PROGRESS_S = 0.2  # between two progress reports


def batches_wanted(batch_size: int | None) -> int:
    """Batches needed for a steady state: 20, or fewer that hold 640 samples, but at least 5."""
    if batch_size is None:
        return MIN_BATCHES
    return max(FEWEST_BATCHES, min(MIN_BATCHES, math.ceil(MIN_SAMPLES / batch_size)))


@dataclass(frozen=True)
class Rules:
    """How long to measure.

    `prefetch_batches` are prefetched before the first `next()` and excluded from the steady state. Workers deliver
    round-robin, so a rate needs at least one `cycle`: a batch from each worker. `wanted` batches are enough (see
    `batches_wanted`). If they take longer than twice `seconds`, `fewest` batches are enough; if those take longer than
    four times `seconds`, two batches are, or one from each worker. `in_complete_epochs`: short epochs are not cut.
    """

    in_complete_epochs: ClassVar[bool] = True

    seconds: float
    prefetch_batches: int = 0
    cycle: int = 1
    wanted: int = MIN_BATCHES
    fewest: int = FEWEST_BATCHES

    def warmed_up(self, moments_s: Sequence[float]) -> bool:
        """Whether the prefetch queue was turned over once and two consecutive windows agree, or time is up."""
        if not self.turned_over(moments_s):
            return False
        return moments_s[-1] - moments_s[0] > self.seconds or self._settled(moments_s)

    def turned_over(self, moments_s: Sequence[float]) -> bool:
        """Whether all prefetched batches were taken, and at least two."""
        return len(moments_s) >= max(2, self.prefetch_batches)

    def closed(self, moments_s: Sequence[float], warmup: int) -> bool:
        """Whether the steady state after `warmup` batches is long enough. It ends with a complete worker cycle."""
        batches, elapsed_s = len(moments_s) - warmup, moments_s[-1] - moments_s[warmup - 1]
        if batches % self.cycle or elapsed_s < self.seconds:
            return False
        if elapsed_s >= 4 * self.seconds:
            return batches >= min(self.fewest, FEWEST_WHEN_SLOW)
        return batches >= self.wanted or (elapsed_s >= 2 * self.seconds and batches >= self.fewest)

    def _settled(self, moments_s: Sequence[float]) -> bool:
        if len(moments_s) <= 2 * self.cycle:
            return False
        last_s = moments_s[-1] - moments_s[-1 - self.cycle]
        width = self.cycle * (math.ceil(WINDOW_S / last_s) if last_s > 0 else len(moments_s))
        if len(moments_s) <= 2 * width:
            return False
        now_s, before_s = (moments_s[-1 - skip] - moments_s[-1 - skip - width] for skip in (0, width))
        return before_s > 0 and abs(now_s / before_s - 1) <= AGREEMENT
