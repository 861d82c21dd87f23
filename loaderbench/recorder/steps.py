"""Takes batches one by one from a loader that is begun again when it ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from loaderbench.consumers import Consumer
from loaderbench.recorder.samples import count_samples


class NoBatchesError(Exception):
    """The loader ended before there was a steady state to measure."""


class Steps:
    """Takes batches one by one and notes when the consumer could ask for the next."""

    def __init__(self, batches: Iterable[Any], consumer: Consumer, batch_size: int | None = None) -> None:
        self._iterator = self._again_and_again(batches)
        self._consumer = consumer
        self._batch_size = batch_size
        self.epoch_ends = self.epoch_at = 0
        self.got_s: list[float] = []
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
        self.got_s.append(time.monotonic())
        samples = count_samples(batch, self._batch_size)
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

    def _again_and_again(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Start the next epoch when one ends; stop when an epoch brings nothing (a generator runs once)."""
        while True:
            count = -1
            for count, batch in enumerate(batches):
                if count == 0 and self.moments_s:
                    self.epoch_ends += 1
                    self.epoch_at = len(self.moments_s)
                yield batch
            if count < 0:
                return
