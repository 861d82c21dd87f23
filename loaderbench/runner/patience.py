"""How long a trial is waited for: in all, and since its last batch, by what its neighbors of the same run took."""

from __future__ import annotations

import time

from loaderbench.diagnosis.failures import hang, no_progress
from loaderbench.loaders import backend_of
from loaderbench.records import Failure, Trial
from loaderbench.runner.protocol import TrialOrder

PATIENCE = 10.0
"""How many times as long as a whole trial of this run one may take without a batch."""

LEAST_PATIENCE_S = 10.0
LOOK_S = 0.5  # between two looks at a trial that says nothing
PAUSED_S = 4 * LOOK_S  # a look that comes later than this was held up itself, and with it the machine


class Neighbors:
    """What the completed trials of this run took, in proportion to the samples that each had under way."""

    def __init__(self) -> None:
        self._took: list[tuple[int, float]] = []

    def add(self, order: TrialOrder, trial: Trial) -> None:
        """Count a completed trial."""
        if trial.status == "completed" and trial.duration_s is not None:
            self._took.append((_samples_under_way(order), trial.duration_s))

    def patience_s(self, order: TrialOrder) -> float | None:
        """Ten times the longest trial so far; `None` before the first one."""
        own = _samples_under_way(order)
        took_s = [took_s * max(1.0, own / samples) for samples, took_s in self._took]
        return max(LEAST_PATIENCE_S, PATIENCE * max(took_s)) if took_s else None


def _samples_under_way(order: TrialOrder) -> int:
    arguments = {**order.suite.loader, **order.planned.config}
    found = backend_of(arguments).prefetch(arguments)
    return (found.batch_size or 1) * max(1, found.workers or 1)


class Patience:
    """How long one trial has been waited for.

    `paused_s` is the time in which this process did not run either, such as a closed lid or a paused container. It is
    no part of the others.
    """

    def __init__(self, order: TrialOrder) -> None:
        self._limit_s, self._patience_s = order.suite.measure.timeout_s, order.patience_s
        self._waited_s = self._idle_s = self.paused_s = 0.0
        self._looked_s = time.monotonic()

    def renew(self) -> None:
        """The trial made progress."""
        self._look()
        self._idle_s = 0.0

    def is_over(self) -> bool:
        """Whether the trial took too long."""
        self._look()
        return self._waited_s >= self._limit_s or (self._patience_s is not None and self._idle_s >= self._patience_s)

    def failure(self, phase: str, blocked_at: str, log_end: str) -> Failure:
        """Name what it ran out on."""
        if self._waited_s >= self._limit_s:
            return hang(self._limit_s, phase, blocked_at, log_end)
        return no_progress(self._idle_s, phase, blocked_at, log_end)

    def _look(self) -> None:
        now_s = time.monotonic()
        passed_s = now_s - self._looked_s
        if passed_s > PAUSED_S:
            self.paused_s, passed_s = self.paused_s + passed_s, 0.0
        self._looked_s, self._waited_s, self._idle_s = now_s, self._waited_s + passed_s, self._idle_s + passed_s
