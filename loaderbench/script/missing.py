"""What the loop of a script could not show, with the reason that holds for a script."""

from __future__ import annotations

from dataclasses import replace

from loaderbench.profiler.other_loaders import without_wait
from loaderbench.records import Measured

WHY_NO_WAIT = "a background thread consumes the batches, so its wait is not the data wait of training"


def with_reason(measured: Measured, field: str, why: str) -> Measured:
    """The same with another reason, if this is not known of the trial."""
    trial = measured.trials[0]
    if trial.status != "completed" or field not in trial.not_measured:
        return measured
    return replace(measured, trials=(replace(trial, not_measured=trial.not_measured | {field: why}),))


def of_a_background_thread(measured: Measured) -> Measured:
    """The same with no data wait, which is then not known."""
    trial = measured.trials[0]
    if trial.status != "completed":
        return measured
    return replace(measured, trials=(without_wait(trial, WHY_NO_WAIT),))
