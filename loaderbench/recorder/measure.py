"""Drives a loader and a consumer through first batch, warm-up and steady state."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from loaderbench.consumers import Consumer
from loaderbench.recorder.rules import Rules

FEWEST_TO_KEEP = 2  # batches of a loader that ended early


class NoBatchesError(Exception):
    """The loader ended before there was a steady state to measure."""


@dataclass(frozen=True)
class Measurement:
    """One trial's batches. Moments are of the monotonic clock, in seconds, one clock for all processes of a machine."""

    time_to_first_batch_s: float
    warmup_batches: int
    began_s: float
    ended_s: float
    batches: int
    samples: int
    waits_s: tuple[float, ...]
    waits_at_s: tuple[float, ...]

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


def measure(
    batches: Iterable[Any], consumer: Consumer, rules: Rules, on_steady: Callable[[], None] = lambda: None
) -> Measurement:
    """Run until the rules are content; `on_steady` is called when warm-up ends.

    Raises `NoBatchesError` where the loader gives too few batches, and whatever the loader raises.
    """
    began_s = time.monotonic()
    steps = Steps(batches, consumer)
    steps.take()
    first_s = steps.first_at_s - began_s  # the consumer's first step, which may compile, is not the loader's
    settled = steps.take_until(rules.warmed_up)
    # a loader that runs once and is over by now is measured from where its queue was turned over
    warmup = len(steps.moments_s) if settled else min(len(steps.moments_s), max(1, rules.prefetch_batches))
    on_steady()
    steps.take_until(lambda moments_s: rules.closed(moments_s, warmup))
    if len(steps.moments_s) < warmup + FEWEST_TO_KEEP:
        raise NoBatchesError(f"the loader ended after {len(steps.moments_s)} batches, before a steady state was seen")
    waits_s = consumer.wait_clock.waits_s()[warmup : len(steps.moments_s)]
    return Measurement(
        time_to_first_batch_s=first_s,
        warmup_batches=warmup,
        began_s=steps.moments_s[warmup - 1],
        ended_s=steps.moments_s[-1],
        batches=len(steps.moments_s) - warmup,
        samples=sum(steps.samples[warmup:]),
        waits_s=tuple(waits_s),
        waits_at_s=tuple(steps.moments_s[warmup:]),
    )


def count_samples(batch: Any) -> int:
    """Samples of a batch: the first dimension of its first tensor, or its length where it holds none."""
    shape = getattr(batch, "shape", None)
    if shape is not None and len(shape):
        return int(shape[0])
    if isinstance(batch, Mapping) and batch:
        return count_samples(next(iter(batch.values())))
    if isinstance(batch, list | tuple) and batch:
        nested = isinstance(batch[0], Mapping | list | tuple) or hasattr(batch[0], "shape")
        return count_samples(batch[0]) if nested else len(batch)
    return 1


class Steps:
    """Takes batches one by one and notes when the consumer could ask for the next."""

    def __init__(self, batches: Iterable[Any], consumer: Consumer) -> None:
        self._iterator = _again_and_again(batches)
        self._consumer = consumer
        self.first_at_s = 0.0
        self.moments_s: list[float] = []
        self.samples: list[int] = []

    def take(self) -> bool:
        """Take one batch; `False` when there is none left."""
        clock = self._consumer.wait_clock
        clock.ask()
        try:
            batch = next(self._iterator)
        except StopIteration:
            return False
        clock.got()
        if not self.moments_s:
            self.first_at_s = time.monotonic()
        samples = count_samples(batch)
        self._consumer.consume(batch, samples)
        self.moments_s.append(time.monotonic())
        self.samples.append(samples)
        return True

    def take_until(self, done: Callable[[list[float]], bool]) -> bool:
        """Take batches until `done` says so of their moments; `False` when they ended before."""
        if not self.moments_s:
            raise NoBatchesError("the loader gives no batch; is the dataset smaller than a batch, with drop_last?")
        while self.take():
            if done(self.moments_s):
                return True
        return False


def _again_and_again(batches: Iterable[Any]) -> Iterator[Any]:
    """Start the next epoch when one ends; stop when an epoch brings nothing (a generator runs once)."""
    while True:
        count = -1
        for count, batch in enumerate(batches):  # noqa: B007 - the last count says whether there was any
            yield batch
        if count < 0:
            return
