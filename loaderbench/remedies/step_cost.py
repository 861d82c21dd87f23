"""How a tried fix lengthens the training step, for example by moving work to the GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from loaderbench.consumers import consumer_kind
from loaderbench.records import Config, Trial
from loaderbench.statistics.intervals import excludes_one, ratio_interval
from loaderbench.statistics.ratios import times


def longer_step(before: Config, after: Config, trials: Iterable[Trial]) -> Iterator[str]:
    """Yield by what factor the training step gets longer, if it does, in pairs of the same round.

    Step time is the time per batch minus the data wait. Trials in time slices do not record the wait of their slices.
    """
    found = list(trials)
    ratio = ratio_interval(_steps_s(after, found), _steps_s(before, found))
    if ratio is not None and ratio.est > 1 and excludes_one(ratio):
        yield f"Training step is {times(ratio)} as long"


def _steps_s(config: Config, trials: Iterable[Trial]) -> dict[int, float]:
    """Seconds per sample spent in the training step, by round."""
    return {
        trial.round: (1 - trial.data_wait_share) / trial.samples_per_s
        for trial in trials
        if trial.config == config and _has_step(trial) and trial.samples_per_s and trial.data_wait_share is not None
        if trial.data_wait_share < 1
    }


def _has_step(trial: Trial) -> bool:
    kind = consumer_kind(trial.consumer or "")
    return trial.time_slices is None and trial.consumer is not None and kind.consumes and not kind.capped
