"""Finds ranks that get their batches from rank 0, which loads the data of all ranks: Accelerate's `dispatch_batches`.

Such a rank begins an epoch of its loader to keep random states equal in all ranks, but asks it for no batch. It waits
for batches in a broadcast instead.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from types import FrameType

from loaderbench.records import Measured
from loaderbench.records.words import SENT_BY_RANK_0

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
