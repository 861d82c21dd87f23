"""Replaces values, or reasons for missing values, that a script's loop cannot provide."""

from __future__ import annotations

from dataclasses import replace

from loaderbench.profiler.other_loaders import without_wait
from loaderbench.records import Measured

WHY_NO_WAIT = "a background thread consumes the batches, so its wait is not the data wait of training"


def with_reason(measured: Measured, field: str, why: str) -> Measured:
    """Replace the reason why `field` was not measured; no change if the field was measured."""
    trial = measured.trials[0]
    if trial.status != "completed" or field not in trial.not_measured:
        return measured
    return replace(measured, trials=(replace(trial, not_measured=trial.not_measured | {field: why}),))


def of_a_background_thread(measured: Measured) -> Measured:
    """Remove the data wait, which is unknown for a loop in a background thread."""
    trial = measured.trials[0]
    if trial.status != "completed":
        return measured
    return replace(measured, trials=(without_wait(trial, WHY_NO_WAIT),))


def without_time_between(measured: Measured) -> Measured:
    """Remove the time between epochs, in which the script can iterate over its other loaders."""
    trial = measured.trials[0]
    if trial.status != "completed" or trial.epochs is None:
        return measured
    why = "the script iterates over other loaders between these epochs"
    without = dict.fromkeys(("between_s", "between_line"), why)
    epochs = replace(trial.epochs, between_s=None, between_line=None, not_measured=trial.epochs.not_measured | without)
    return replace(measured, trials=(replace(trial, epochs=epochs),))
