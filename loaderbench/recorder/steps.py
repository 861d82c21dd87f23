"""Times of a loop's last steps (batch requested, batch received, step ended), to compare ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from loaderbench.recorder.batches import STEADY, Numbers

MOST_STEPS = 1_024
"""Limit on the steps of a rank: 40 kB, which a process group sends to rank 0."""


@dataclass(frozen=True)
class StepTimes:
    """Steps of the steady state, by epoch and number in the epoch.

    `keys` has shape (steps, 2), and `times_s` has shape (steps, 3): when the batch was requested, when it arrived, and
    when the loop was done with it, in seconds of the host's monotonic clock.
    """

    keys: np.ndarray[Any, np.dtype[np.int64]]
    times_s: Numbers

    def at(self, keys: set[tuple[int, int]]) -> Numbers:
        """The times of the steps with these keys, in the order of the keys."""
        places = {(int(epoch), int(number)): place for place, (epoch, number) in enumerate(self.keys)}
        return self.times_s[[places[key] for key in sorted(keys)]]

    @property
    def names(self) -> set[tuple[int, int]]:
        """The keys of all steps."""
        return {(int(epoch), int(number)) for epoch, number in self.keys}


class RecentSteps:
    """Keeps the last steps of a loop."""

    def __init__(self) -> None:
        self._kept: Numbers = np.empty((0, 5))
        self._epoch, self._next = -1.0, 0

    def add(self, table: Numbers) -> None:
        """Add rows in order, in the format of `table_of`."""
        asked_s, ended_s, got_s, _, kinds, epochs = table.T
        places = np.arange(len(table))
        begins = epochs != np.concatenate([[self._epoch], epochs[:-1]])
        first = np.maximum.accumulate(np.where(begins, places, -self._next))
        numbers = places - first
        self._epoch, self._next = float(epochs[-1]), int(numbers[-1]) + 1
        found = np.stack([epochs, numbers, asked_s, got_s, ended_s], axis=1)[kinds == STEADY]
        self._kept = np.concatenate([self._kept, found])[-MOST_STEPS:]

    def take(self) -> StepTimes:
        """The steps that are kept."""
        return StepTimes(self._kept[:, :2].astype(np.int64), self._kept[:, 2:])
