"""Waits for batches of other loaders within the steps of a recorded loop, as in `zip(labeled, unlabeled)`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from loaderbench.diagnosis.thresholds import NOTICED
from loaderbench.records import Trial

_now_s = time.perf_counter


class OtherLoaders:
    """Seconds that the loop has waited for batches of other loaders since its steady state began."""

    def __init__(self) -> None:
        self.waited_s = 0.0

    def forget(self) -> None:
        """Reset the wait, at the start of the steady state."""
        self.waited_s = 0.0

    def timed(self, batches: Iterator[Any]) -> Iterator[Any]:
        """An epoch of another loader, which is not recorded except for the total wait for its batches."""
        return _TimedIterator(batches, self)


class _TimedIterator:
    """Wraps an iterator and times its batches. Other attributes are those of the wrapped iterator."""

    def __init__(self, own: Iterator[Any], waits: OtherLoaders) -> None:
        self._own, self._waits = own, waits

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        began_s = _now_s()
        try:
            return next(self._own)
        finally:
            self._waits.waited_s += _now_s() - began_s

    def __len__(self) -> int:
        return len(self._own)  # type: ignore[arg-type]

    def __bool__(self) -> bool:
        return bool(self._own)

    def __getattr__(self, name: str) -> Any:
        if name == "_own":  # copy looks this up before it is set
            raise AttributeError(name)
        return getattr(self._own, name)


def with_other_waits(trial: Trial, waited_s: float) -> Trial:
    """Remove the trial's data wait if the loop waits for other loaders more than for its own."""
    if trial.data_wait_share is None or not trial.steady_s:
        return trial
    share = waited_s / trial.steady_s
    if not waits_for_others(share, trial.data_wait_share):
        return trial
    why = f"the loop waits for another loader {min(1.0, share):.0%} of its time; give that one a Profiler of its own"
    return without_wait(trial, why)


def waits_for_others(share: float, own_share: float | None) -> bool:
    """Whether a loop waits for batches of other loaders rather than for its own."""
    return share >= max(NOTICED, own_share or 0.0)


def without_wait(trial: Trial, why: str) -> Trial:
    """The same trial without a data wait, with the reason."""
    missing = dict.fromkeys(("data_wait_share", "data_wait", "step"), why)
    return replace(trial, data_wait_share=None, data_wait=None, step=None, not_measured=trial.not_measured | missing)
