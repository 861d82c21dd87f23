"""How long to wait for a trial: in total, and without progress, based on what other trials needed."""

from __future__ import annotations

import time

from loaderbench.diagnosis.failures import hang, no_progress
from loaderbench.loaders import backend_of
from loaderbench.ranks import process_count
from loaderbench.records import Failure
from loaderbench.runner.protocol import BUILDING, TrialOrder

PATIENCE = 10.0
"""How many times as long as any completed trial of this run one may go without progress."""

LEAST_PATIENCE_S = 10.0
FEWEST_SIGNS = 5  # of progress, before a trial without neighbors is compared with itself
LOOK_S = 0.5  # between two looks at a trial that says nothing
PAUSED_S = 4 * LOOK_S  # a look that comes later than this was held up itself, and with it the machine


class Neighbors:
    """How long completed trials went without progress, in proportion to the samples that each had in flight."""

    def __init__(self) -> None:
        self._idle: list[tuple[int, float]] = []

    def add(self, order: TrialOrder, longest_idle_s: float) -> None:
        """Count a completed trial."""
        self._idle.append((_samples_under_way(order), longest_idle_s))

    def patience_s(self, order: TrialOrder) -> float | None:
        """Ten times the longest so far; `None` before the first trial."""
        own = _samples_under_way(order)
        longest_s = [idle_s * max(1.0, own / samples) for samples, idle_s in self._idle]
        return max(LEAST_PATIENCE_S, PATIENCE * max(longest_s)) if longest_s else None


def _samples_under_way(order: TrialOrder) -> int:
    arguments = {**order.suite.loader, **order.planned.config}
    found = backend_of(arguments).prefetch(arguments)
    return (found.batch_size or 1) * max(1, found.workers or 1) * process_count(order.planned.config)


class Patience:
    """How long one trial has been waited for; `longest_idle_s` is the longest time without progress.

    Before any trial of the run was completed, one is compared with the longest time that it has needed itself so far.
    While a dataset is built, only the time limit counts: how long that takes may depend on the configuration.
    `paused_s` is the time in which this process did not run either, such as a closed lid or a paused container. It is
    no part of the others.
    """

    def __init__(self, order: TrialOrder) -> None:
        self._limit_s, self._patience_s = order.suite.measure.timeout_s, order.patience_s
        self._waited_s = self._idle_s = self.longest_idle_s = self.paused_s = 0.0
        self._signs, self._own_idle_s, self._builds = 0, 0.0, False
        self._looked_s = time.monotonic()

    def renew(self, phase: str = "") -> None:
        """The trial made progress; it is in this phase now."""
        self._look()
        if not self._builds:
            self._signs, self._own_idle_s = self._signs + 1, max(self._own_idle_s, self._idle_s)
        self._idle_s, self._builds = 0.0, phase == BUILDING

    def is_over(self) -> bool:
        """Whether the trial took too long."""
        self._look()
        patience_s = self._patience_s
        if patience_s is None and self._signs >= FEWEST_SIGNS:
            patience_s = max(LEAST_PATIENCE_S, PATIENCE * self._own_idle_s)
        hangs = patience_s is not None and self._idle_s >= patience_s and not self._builds
        return self._waited_s >= self._limit_s or hangs

    def failure(self, phase: str, blocked_at: str, log_end: str) -> Failure:
        """Name what it ran out on."""
        if self._waited_s >= self._limit_s:
            return hang(self._limit_s, phase, blocked_at, log_end)
        than = "before" if self._patience_s is None else "in other trials"
        return no_progress(self._idle_s, phase, blocked_at, log_end, than=than)

    def _look(self) -> None:
        now_s = time.monotonic()
        passed_s = now_s - self._looked_s
        if passed_s > PAUSED_S:
            self.paused_s, passed_s = self.paused_s + passed_s, 0.0
        self._looked_s, self._waited_s, self._idle_s = now_s, self._waited_s + passed_s, self._idle_s + passed_s
        if not self._builds:
            self.longest_idle_s = max(self.longest_idle_s, self._idle_s)
