"""Replaces values, or reasons for missing values, that the loop of a script or of one rank cannot provide."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType

from loaderbench.profiler.other_loaders import without_wait
from loaderbench.records import Measured
from loaderbench.records.words import SENT_BY_RANK_0

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


HOME_OF_DISPATCHER = "accelerate.data_loader"


def is_sent_batches(asks: FrameType | None) -> bool:
    """Whether Accelerate's dispatcher begins this epoch in a rank that gets its batches from rank 0.

    `asks` is the frame that begins the epoch.
    """
    kind = getattr(sys.modules.get(HOME_OF_DISPATCHER), "DataLoaderDispatcher", None)
    iterate = getattr(getattr(kind, "__iter__", None), "__code__", None)
    while asks is not None and iterate is not None:
        if asks.f_code is iterate:
            state = getattr(asks.f_locals.get("self"), "state", None)
            return bool(getattr(state, "process_index", 0))
        asks = asks.f_back
    return False


def of_a_receiving_rank(measured: Measured) -> Measured:
    """Replace the reason why nothing was measured in a rank whose loader was never asked for a batch."""
    trial = measured.trials[0]
    if trial.status == "completed" or trial.failure is None:
        return measured
    failure = replace(trial.failure, message=SENT_BY_RANK_0, hint="")
    not_measured = {**trial.not_measured, "data_wait_share": SENT_BY_RANK_0}
    return replace(measured, trials=(replace(trial, failure=failure, not_measured=not_measured),))
