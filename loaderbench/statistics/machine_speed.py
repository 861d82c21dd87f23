"""How much the ratio of two rates varies between two times, from how much the machine's speed varied in a run."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import stdev

from loaderbench.records import Trial

LEAST_SD = 0.03
"""Of a log ratio between two times, in new processes, on a machine whose speed does not vary."""

SHARE_OF_SPEED_SD = 2 / 3
"""A log ratio varies between two times by this share of the standard deviation of the machine's log speed.

The estimate with the largest likelihood for 75 gains that `benchmarks/repeated_gains.py` repeated, by
`benchmarks/between_times.py`.
"""


def sd_between_times(trials: Iterable[Trial]) -> float:
    """The standard deviation of a log ratio between two times, beyond the noise of its rounds."""
    found = speed_sd(trials)
    return LEAST_SD if found is None else max(LEAST_SD, SHARE_OF_SPEED_SD * found)


def speed_sd(trials: Iterable[Trial]) -> float | None:
    """The standard deviation of the log time of the reference decode before trials of the sweep and of fixes.

    `None` with fewer than two.
    """
    log_times = [
        math.log(trial.reference_decode_before_s)
        for trial in trials
        if trial.role in ("sweep", "remedy") and trial.reference_decode_before_s
    ]
    return stdev(log_times) if len(log_times) > 1 else None
