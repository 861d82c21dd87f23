"""How long to wait for a trial, in total and without progress, based on the run's other trials."""

from __future__ import annotations

import time

from loaderbench.diagnosis.failures import hang, no_progress
from loaderbench.loaders import backend_of, prefetch_of
from loaderbench.ranks import process_count
from loaderbench.records import Failure
from loaderbench.runner.protocol import BUILDING, TrialOrder

PATIENCE = 10.0
"""A trial may go without progress this many times as long as any completed trial of the run."""

LEAST_PATIENCE_S = 10.0
FEWEST_SIGNS = 5  # progress messages before a trial is compared with itself, if no other trial is known
LOOK_S = 0.5  # seconds between two checks of a silent trial
PAUSED_S = 4 * LOOK_S  # a check later than this was itself delayed: the machine was paused


class Neighbors:
    """How long completed trials went without progress, scaled by the samples that each had in flight.

    A worker that imports all libraries anew takes seconds where a forked one takes milliseconds, so trials are compared
    only with those whose workers start in the same way.
    """

    def __init__(self) -> None:
        self._idle: dict[bool, list[tuple[int, float]]] = {False: [], True: []}

    def add(self, order: TrialOrder, longest_idle_s: float) -> None:
        """Add a completed trial."""
        self._idle[_starts_interpreters(order)].append((_samples_in_flight(order), longest_idle_s))

    def patience_s(self, order: TrialOrder) -> float | None:
        """Allowed seconds without progress: ten times the longest so far; `None` before the first comparable trial."""
        own = _samples_in_flight(order)
        longest_s = [idle_s * max(1.0, own / samples) for samples, idle_s in self._idle[_starts_interpreters(order)]]
        return max(LEAST_PATIENCE_S, PATIENCE * max(longest_s)) if longest_s else None


def _starts_interpreters(order: TrialOrder) -> bool:
    return backend_of(order.arguments).starts_interpreters(order.arguments)


def _samples_in_flight(order: TrialOrder) -> int:
    found = prefetch_of(order.suite.loader, order.planned.config)
    return (found.batch_size or 1) * max(1, found.workers or 1) * process_count(order.planned.config)


class Patience:
    """Tracks how long one trial has been waited for; `longest_idle_s` is its longest time without progress.

    Before any comparable trial of the run has completed, the trial is compared with its own longest time so far. While
    its dataset is built, only the time limit applies, because that time can depend on the configuration. `paused_s` is
    time in which this process did not run either, as with a closed lid or a paused container; the other times exclude
    it.
    """

    def __init__(self, order: TrialOrder) -> None:
        self._limit_s, self._patience_s = order.suite.measure.timeout_s, order.patience_s
        self._waited_s = self._idle_s = self.longest_idle_s = self.paused_s = 0.0
        self._progress_count, self._own_idle_s, self._is_building = 0, 0.0, False
        self._updated_s = time.monotonic()

    def renew(self, phase: str = "") -> None:
        """Record progress of the trial, which is now in `phase`."""
        self._update()
        if not self._is_building:
            self._progress_count, self._own_idle_s = self._progress_count + 1, max(self._own_idle_s, self._idle_s)
        self._idle_s, self._is_building = 0.0, phase == BUILDING

    def is_over(self) -> bool:
        """Whether the trial took too long."""
        self._update()
        patience_s = self._patience_s
        if patience_s is None and self._progress_count >= FEWEST_SIGNS:
            patience_s = max(LEAST_PATIENCE_S, PATIENCE * self._own_idle_s)
        hangs = patience_s is not None and self._idle_s >= patience_s and not self._is_building
        return self._waited_s >= self._limit_s or hangs

    def failure(self, phase: str, blocked_at: str, log_end: str) -> Failure:
        """The failure, which names the limit that was exceeded."""
        if self._waited_s >= self._limit_s:
            return hang(self._limit_s, phase, blocked_at, log_end)
        than = "before" if self._patience_s is None else "in other trials"
        return no_progress(self._idle_s, phase, blocked_at, log_end, than=than)

    def _update(self) -> None:
        now_s = time.monotonic()
        passed_s = now_s - self._updated_s
        if passed_s > PAUSED_S:
            self.paused_s, passed_s = self.paused_s + passed_s, 0.0
        self._updated_s, self._waited_s, self._idle_s = now_s, self._waited_s + passed_s, self._idle_s + passed_s
        if not self._is_building:
            self.longest_idle_s = max(self.longest_idle_s, self._idle_s)
